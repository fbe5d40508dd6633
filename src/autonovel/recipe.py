"""Recipes: read from TOML, filled from a preset, overridden by ``--set``, checked at the border.

Order of precedence, later wins: defaults, the recipe's own preset, the recipe, a preset given by
``--set preset=…`` (which replaces the recipe's own), other ``--set`` values; ``layers`` has the rest of the rules.
Every value remembers where it came from.

A recipe may extend another one (``extends = "cifar10-fast"``, or the path of a TOML file from where it lies): what it
says is then to that one as if a caller had given it, but for its departures from the paper, which come on top.

A departure from the paper may end with the settings it is about, as in ``"both views in one pass [joint.views]"``:
where one of these is said otherwise above, it no longer holds.  So may the ``minutes`` it takes, and what it is
``about``, of which then only the part before its colon is said.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from autonovel.errors import UsageError
from autonovel.labels import LABELS
from autonovel.layers import AS_JOINT as AS_JOINT
from autonovel.layers import AS_KCL as AS_KCL
from autonovel.layers import Flat, Layer, in_force, laid_over, origins, with_preset
from autonovel.recipe_files import line
from autonovel.recipe_files import names as names
from autonovel.setting_values import checked, nearest, parse_override
from autonovel.settings import PLACES, SENTENCES, Recipe, Section

SET = "--set"
ABOUT, DEPARTURES, MINUTES = SENTENCES


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
    known, layers = default_values(), list[Layer]()
    about, minutes, departures = "", "", tuple[str, ...]()
    said_by: dict[str, str] = {}
    voices = [*((one.values, one.origin, f"recipe {one.name}: ") for one in line(name)), (given, lambda _: SET, "")]
    of_preset = with_preset([said for said, _, _ in voices], known)
    for place, (said, origin, who) in enumerate(voices):
        with _telling(who):
            one = Layer({key: checked(key, value, known) for key, value in said.items()}, origin)
            _check_sentences(one.values, known)
            layers, decided = laid_over(layers, one, known, replaced=place < of_preset)
            about = one.values.get(ABOUT, _cut(about, decided, known))
            minutes = one.values.get(MINUTES, "".join(_that_hold([minutes], decided, known)))
            beyond = () if said is given and DEPARTURES in given else _that_hold(departures, decided, known)
            departures = (*beyond, *one.values.get(DEPARTURES, ()))
            said_by |= dict.fromkeys(one.values, who)
    values = in_force(layers, known)
    values[ABOUT], values[MINUTES] = (_sentence(text, known)[0] for text in (about, minutes))
    values[DEPARTURES] = tuple(_sentence(departure, known)[0] for departure in departures)
    _check_own_name(name, values["name"])
    try:
        made = build(values)
        check_registered(made.run.systems)
        return Loaded(made, origins(layers, default_sources()))
    except UsageError as error:
        who = said_by.get(str(error).split(" ")[0], "")
        if who and given:
            load(name)  # complains itself, unless it is what was given that is wrong
            who = ""
        raise UsageError(f"{who}{error}") from None


@contextmanager
def _telling(who: str) -> Iterator[None]:
    """Put before a complaint who said what it is about."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{who}{error}") from None


def _check_own_name(name: str, called: str) -> None:
    """Say so if what was asked for as ``name`` is called as another recipe, one of the package, is."""
    if called != name and called in names():
        raise UsageError(
            f"recipe {name} is called {called}, as one of the package is, so that results of the two would be taken "
            'for one: rename the file, or let it say another name (name = "…").'
        )


def _check_sentences(values: Flat, known: Flat) -> None:
    """Say so if a sentence of a recipe is about what is no setting."""
    for text in (values.get(ABOUT, ""), values.get(MINUTES, ""), *values.get(DEPARTURES, ())):
        _sentence(text, known)


def _that_hold(departures: Iterable[str], decided: set[str], known: Flat) -> tuple[str, ...]:
    """Return the departures from the paper that are not about settings which were decided above them."""
    return tuple(said for said in departures if not decided.intersection(_sentence(said, known)[1]))


def _cut(about: str, decided: set[str], known: Flat) -> str:
    """Return what a recipe is about; if what that names was decided above it, only the part before its colon."""
    told, keys = _sentence(about, known)
    return told.partition(": ")[0] if decided.intersection(keys) else about


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


def check_registered(systems: Iterable[str]) -> None:
    """Say so if one of the systems to be trained is not known here; what it left elsewhere can be read all the same."""
    for name in systems:
        if name not in LABELS:
            raise UsageError(
                f"run.systems has {name!r}; each must be one of {', '.join(LABELS)}. A method of your own has to be "
                "registered first, by the very program that trains with it, as examples/new_method.py does; processes "
                "beside it (run.parallel) do not know it."
            )


def restore(values: Mapping[str, Any]) -> Recipe:
    """Return the recipe that ``flatten`` wrote; settings it does not know are an error, systems are not."""
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


def check_given(texts: Iterable[str]) -> None:
    """Say so if one of ``section.key=value`` strings names a setting there is not, or a value it cannot have."""
    known = default_values()
    for key, value in parse_overrides(texts).items():
        *place, name = key.split(".")
        value = checked(key, value, known)
        section: Section = functools.reduce(getattr, place, Recipe())
        setting = next(f for f in fields(section) if f.name == name)
        with _telling("".join(f"{part}." for part in place)):
            section.check(setting, value)
        if key == "run.systems":
            check_registered(value)


def parse_overrides(texts: Iterable[str]) -> Flat:
    """Return the values of ``section.key=value`` strings by key; later ones win."""
    defaults = default_values()
    return dict(parse_override(text, defaults) for text in texts)
