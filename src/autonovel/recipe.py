"""Recipes: read from TOML, filled from a preset, overridden by ``--set``, checked at the border.

Order of precedence, later wins: defaults, the recipe's own preset, the recipe, a preset given by
``--set preset=…`` (which replaces the recipe's own), other ``--set`` values.  Where ``--set`` names another
source of images, what the recipe says of its own source's classes is left out.  What [incremental] does not
set is as in [joint]; so is what it does set where the caller sets it for [joint], unless it comes after joint training
(incremental.after).  Every value remembers where it came from.

A recipe may extend another one (``extends = "cifar10-fast"``, or the path of a TOML file from where it lies): what it
says is then to that one as if a caller had given it, but for its departures from the paper, which come on top.

A departure from the paper may end with the settings it is about, as in ``"both views in one pass [joint.views]"``:
with one of these given by the caller it is no longer said.  So may what a recipe is ``about``, of which then only the
part before its colon is said.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from autonovel.errors import UsageError
from autonovel.presets import PRESETS
from autonovel.recipe_files import Document, Flat, line
from autonovel.recipe_files import names as names
from autonovel.setting_values import check_name, checked, nearest, parse_override
from autonovel.settings import PLACES, Recipe

SET = "--set"
ABOUT, DEPARTURES = OWN_SENTENCES = "about", "departures"
JOINT, INCREMENTAL, AFTER = "joint.", "incremental.", "incremental.after"
KCL, MCL = "kcl.", "mcl."
AS_JOINT, AS_KCL = "as joint", "as kcl"
OF_THE_SOURCE = (
    "data.known",
    "data.first_known",
    "data.per_class",
    "data.alphabet",
    "data.subset",
)  # a recipe says them of its own source's classes


@dataclass(frozen=True)
class Loaded:
    """A recipe, and the source of every value in it."""

    recipe: Recipe
    sources: dict[str, str]

    @property
    def changed(self) -> Flat:
        """Return the settings given by ``--set``; a folder of images is a place, not a change."""
        values = flatten(self.recipe)
        return {key: values[key] for key, origin in self.sources.items() if origin == SET and key not in PLACES}


def load(name: str, overrides: Iterable[str] | Mapping[str, Any] = ()) -> Loaded:
    """Return the recipe ``name`` (of the package, or a path to a TOML file) with ``overrides`` applied.

    Args:
        name: ``demo``, or ``my/recipe.toml``.
        overrides: ``section.key=value`` strings, or a mapping from ``section.key`` to values.
    """
    given = dict(overrides) if isinstance(overrides, Mapping) else parse_overrides(overrides)
    given = {key: value.item() if hasattr(value, "item") else value for key, value in given.items()}  # NumPy's numbers
    first, *extensions = line(name)
    return _extended(first, extensions, given) if extensions else _filled(first, given)


def _filled(document: Document, given: Flat) -> Loaded:
    """Return the recipe that a document alone and the caller make."""
    written = document.values
    if given.get("data.source", written.get("data.source")) != written.get("data.source"):
        written = {key: value for key, value in written.items() if key not in OF_THE_SOURCE}
    own = written.get("preset", "")
    other = given.get("preset", own)
    if other == own:  # it stays under the recipe, as if it had not been named
        other = ""
        given = {key: value for key, value in given.items() if key != "preset"}
    else:
        own = ""
    layers: list[tuple[Flat, str]] = [
        (_preset(own), f"preset {own}"),
        (written, ""),
        (_preset(other), f"preset {other}"),
        (given, SET),
    ]
    values, sources = default_values(), default_sources()
    for layer, origin in layers:
        for key, value in layer.items():
            values[key] = checked(key, value, values)
            sources[key] = origin or document.origin(key)
    _inherit(values, sources, written, given)
    values[ABOUT] = _sentence(_cut(values[ABOUT], {*given}, values), values)[0]
    given_way = {key for key in written if sources[key] in (AS_JOINT, AS_KCL)}  # to what the caller said of another
    taken_back = given_way | {*given, *_preset(other)}
    values[DEPARTURES] = _that_hold(values[DEPARTURES], taken_back, values)
    return Loaded(build(values), sources)


def _extended(first: Document, extensions: list[Document], given: Flat) -> Loaded:
    """Return the recipe that ``extensions``, each of the one before it, and the caller make of the first document."""
    said: Flat = {}  # to the first document, as if by a caller
    sources: dict[str, str] = {}
    about, beyond, known = "", list[str](), default_values()
    for document in extensions:
        said, left = _said_over(first, said, {k: v for k, v in document.values.items() if k not in OWN_SENTENCES})
        about = checked(ABOUT, document.values.get(ABOUT, _cut(about, left, known)), known)
        beyond = [text for text in beyond if not left.intersection(_sentence(text, known)[1])]
        beyond += checked(DEPARTURES, document.values.get(DEPARTURES, ()), known)
        sources |= {key: document.origin(key) for key in document.values}
    said, left = _said_over(first, said, given)
    loaded = _filled(first, said)
    values = dict(_walk(loaded.recipe, ""))
    if about and ABOUT not in given:
        values[ABOUT] = _sentence(_cut(about, left, known), known)[0]
    if DEPARTURES not in given:
        values[DEPARTURES] += _that_hold(beyond, left, known)
    theirs = {key: source for key, source in sources.items() if key in {*said, *OWN_SENTENCES} - given.keys()}
    return Loaded(build(values), loaded.sources | theirs)


def _said_over(first: Document, said: Flat, above: Flat) -> tuple[Flat, set[str]]:
    """Return what was said with what is said ``above`` it, and of which settings nothing below counts any more."""
    below = default_values() | first.values | said
    left: set[str] = set()
    if above.get("data.source", below["data.source"]) != below["data.source"]:
        left |= {*OF_THE_SOURCE}
    if above.get("preset", below["preset"]) != below["preset"]:
        left |= {*_preset(above["preset"])}
    if above.get("preset") == "paper":  # with incremental learning all settings stay the same
        left |= {key for key in below if key.startswith(INCREMENTAL)}
    elif (below | above)[AFTER] != "joint":  # which is then as joint training
        left |= {key.replace(JOINT, INCREMENTAL, 1) for key in above if key.startswith(JOINT)}
    return {key: value for key, value in said.items() if key not in left} | above, left | above.keys()


def _inherit(values: Flat, sources: dict[str, str], written: Flat, given: Flat) -> None:
    """Let [incremental] be as [joint] and [mcl] as [kcl] in all that neither the recipe nor the caller sets apart."""
    for key in [AFTER, *(key for key in values if key.startswith(INCREMENTAL) and key != AFTER)]:
        twin = JOINT + key.removeprefix(INCREMENTAL)
        after_joint = key != AFTER and values[AFTER] == "joint"  # a training of its own
        # what a recipe says of such a training is not about one that a caller or a preset makes one with joint training
        meant = key in written and (key == AFTER or after_joint or written.get(AFTER) != "joint")
        # the paper states that all hyper-parameters stay the same with incremental learning; its code differs
        apart = meant and given.get("preset") != "paper" and (after_joint or twin not in given)
        if key not in given and not apart:
            values[key], sources[key] = values[twin], AS_JOINT
    for key in [key for key in values if key.startswith(MCL) and key not in written and key not in given]:
        values[key], sources[key] = values[KCL + key.removeprefix(MCL)], AS_KCL  # one trunk, one similarity network


def _that_hold(departures: Iterable[str], given: set[str], known: Flat) -> tuple[str, ...]:
    """Return the departures from the paper that are not about settings which the caller has given or taken back."""
    told = [_sentence(departure, known) for departure in departures]
    return tuple(said for said, keys in told if not given.intersection(keys))


def _cut(about: str, given: set[str], known: Flat) -> str:
    """Return what a recipe is about; if a caller has given what that names, only the part before its colon."""
    told, keys = _sentence(about, known)
    return told.partition(": ")[0] if given.intersection(keys) else about


def _sentence(text: str, known: Flat) -> tuple[str, list[str]]:
    """Return a sentence of a recipe and the settings it is about, which may stand in brackets behind it."""
    about = _ABOUT.search(text)
    keys = about[1].split(", ") if about else []
    for key in keys:
        if key not in known:
            raise UsageError(f"{text!r} is about {key!r}, which is no setting.{nearest(key, known)}")
    return (text[: about.start()] if about else text), keys


def build(values: Mapping[str, Any]) -> Recipe:
    """Return the recipe of flat ``values``, with every bound and choice checked."""
    made = _make(Recipe, values, "")
    assert isinstance(made, Recipe)
    return made


def flatten(recipe: Recipe) -> Flat:
    """Return every setting of ``recipe`` by its dotted name, as plain values for JSON."""
    return {key: list(v) if isinstance(v, tuple) else v for key, v in _walk(recipe, "")}


def completed(values: Mapping[str, Any]) -> Flat:
    """Return what ``flatten`` wrote; a setting that is younger had its default."""
    return {**flatten(Recipe()), **values}


def restore(values: Mapping[str, Any]) -> Recipe:
    """Return the recipe that ``flatten`` wrote; settings it does not know are an error."""
    known = default_values()
    try:
        return build(known | {key: checked(key, value, known) for key, value in values.items()})
    except UsageError as error:
        raise UsageError(
            f"{error} These settings are those of a run, whose run.json was changed or written by another version of "
            "autonovel: use the version it names under versions."
        ) from error


def default_values() -> Flat:
    """Return the defaults of all settings by dotted name."""
    return dict(_walk(Recipe(), ""))


def default_sources() -> dict[str, str]:
    """Return where each default comes from."""
    return {key: f"default: {meta.get('source', 'ours')}" for key, meta in _metadata(Recipe(), "")}


def documentation() -> dict[str, str]:
    """Return what each setting means."""
    return {key: str(meta.get("doc", "")) for key, meta in _metadata(Recipe(), "")}


def _walk(section: Any, prefix: str) -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    for f in fields(section):
        value = getattr(section, f.name)
        out += _walk(value, f"{prefix}{f.name}.") if is_dataclass(value) else [(prefix + f.name, value)]
    return out


def _metadata(section: Any, prefix: str) -> list[tuple[str, Mapping[str, Any]]]:
    out: list[tuple[str, Mapping[str, Any]]] = []
    for f in fields(section):
        value = getattr(section, f.name)
        out += _metadata(value, f"{prefix}{f.name}.") if is_dataclass(value) else [(prefix + f.name, f.metadata)]
    return out


def _make(kind: type, values: Mapping[str, Any], prefix: str) -> Any:
    made = {}
    for f in fields(kind):
        default = f.default_factory() if callable(f.default_factory) else f.default
        nested = is_dataclass(default) and not isinstance(default, type)
        made[f.name] = _make(type(default), values, f"{prefix}{f.name}.") if nested else values[prefix + f.name]
    try:
        return kind(**made)
    except UsageError as error:
        raise UsageError(f"{prefix}{error}") from None


# settings in brackets at the end of a sentence about them
_ABOUT = re.compile(r" \[([\w.]+(?:, [\w.]+)*)\]$")


def _preset(name: Any) -> Flat:
    if name and (not isinstance(name, str) or name not in PRESETS):
        raise UsageError(f"no preset {name!r}; presets: {', '.join(PRESETS)}.")
    return PRESETS[name] if name else {}


def check_names(texts: Iterable[str]) -> None:
    """Say so if one of ``section.key=value`` strings names a setting there is not."""
    known = default_values()
    for key in parse_overrides(texts):
        check_name(key, known)


def parse_overrides(texts: Iterable[str]) -> Flat:
    """Return the values of ``section.key=value`` strings by key; later ones win."""
    defaults = default_values()
    return dict(parse_override(text, defaults) for text in texts)
