"""Results relative to what their recipe says today.

A recipe of the package may change from one version to the next, and results of both may lie side by side.  Results hold
the settings they came from; what the recipe says otherwise today counts as changed.  So a table does not average over
two versions of a recipe, and the k that a recipe once had is a value of today's sweep.  What the caller changed himself
is kept apart (``given``): where nobody has run that with the recipe of today, results of an earlier one may stand in.
"""

import functools
from collections.abc import Mapping
from typing import Any

from autonovel import recipe
from autonovel.errors import UsageError
from autonovel.labels import GROWN, PIXELS
from autonovel.settings import PLACES, SENTENCES, WHICH_IMAGES, Recipe
from autonovel.studies.variants import STAGES_1_AND_2, WITHOUT_EFFECT
from autonovel.tables import paper
from autonovel.tables.naming import Results, changes_in_words

OWN = {
    "rankstats": ("joint.",),
    "rankstats-incremental": ("incremental.",),
    "kcl": ("similarity.", "kcl.", "linear."),
    "mcl": ("similarity.", "mcl.", "linear."),
    "dtc": ("dtc.", "linear."),
    "kmeans": (),
    PIXELS: (),
    "kmeans-pretrained": ("centres.",),
    "known-only": (),
}  # sections of a recipe that a system depends on beside those of stages 1 and 2; a system of somebody else's, on all
LEFT_OUT = {*PLACES, *SENTENCES, "name", "preset"}
FOR_SPEED = ("compile", "threads")
SCHEDULED = {"decay_at": "multistep", "decay_every": "step", "tail": "tail", "peak_at": "one-cycle"}  # used by it alone
SWITCHED = {"rebalance_by": "rebalance", "renew_views": "fixed_views"}  # used with it alone
WITHOUT_STAGE_1 = {
    "supervised": ("pretrain.kind",),
    "weights": ("pretrain.kind", "pretrain.weights"),
}  # what counts then
COUNT, NEW_CLASSES = "count.", "count.new_classes"
JOINT, INCREMENTAL = "joint.", "incremental."


def settings_held(settings: Recipe) -> dict[str, Any]:
    """Return the settings that the results of the systems of a run depend on, as ``results.json`` holds them."""
    flat = recipe.flatten(settings)
    return {k: v for k, v in flat.items() if any(matters(k, system, flat) for system in settings.run.systems)}


def as_today(results: Results) -> list[Results]:
    """Return ``results`` with what differs from the recipe of today as ``changed``.

    Where some of that is not the caller's doing, what is his is ``given``.  Split into parts where systems differ
    in it; as they are where they hold no settings or their recipe is not one of the package.
    """
    held, changed = results.get("settings"), results.get("changed") or {}
    preset = changed.get("preset")
    if not held or not isinstance(preset, str | None):
        return [results]
    try:
        today = recipe_today(results["recipe"], preset)
    except UsageError:
        return [results]
    held = recipe.completed(held)
    aside = {k: v for k, v in changed.items() if k not in today or k == "preset" or k.startswith(WITHOUT_EFFECT)}
    given = {k: v for k, v in changed.items() if k in aside or v != today[k]}  # what the recipe has by now is none
    differs = {
        system: {
            _as_given(k, held[k], changed): held[k] for k in today if held[k] != today[k] and matters(k, system, held)
        }
        for system in results["systems"]
    }
    return [part | _changes(aside | own, given) for own, part in in_parts(results, differs)] or [results]


def in_parts(results: Results, differs: Mapping[str, dict[str, Any]]) -> list[tuple[dict[str, Any], Results]]:
    """Return ``results`` split into parts of systems of which the same ``differs``, each behind that."""
    parts: list[tuple[dict[str, Any], list[str]]] = []
    for system in results["systems"]:
        alike = next((systems for other, systems in parts if other == differs[system]), None)
        if alike is None:
            parts.append((differs[system], [system]))
        else:
            alike.append(system)
    return [(own, _part(results, systems)) for own, systems in parts]


def _changes(differs: dict[str, Any], given: dict[str, Any]) -> Results:
    """Return what differs from the recipe of today, and apart what the caller changed if that is not all of it."""
    return {"changed": differs} | ({} if differs.keys() <= given.keys() else {"given": given})


@functools.cache
def recipe_today(name: str, preset: str | None) -> dict[str, Any]:
    """Return all settings of a recipe of the package, under a preset where one is given; an error without such."""
    if name not in recipe.names():  # a file of that name may lie here by chance
        raise UsageError(f"{name} is no recipe of the package.")
    return recipe.flatten(recipe.load(name, {"preset": preset} if preset else {}).recipe)


def as_published(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of the recipe that is named after the benchmark of these; nothing where there is none."""
    source = str(settings.get("data.source"))
    return recipe_today(source, None) if source in recipe.names() else {}


def published_as(name: str, changes: str, settings: Mapping[str, Any] | None, system: str) -> tuple[str, str]:
    """Return the recipe, and what was changed in it, of which the paper's number stands beside runs of a system.

    For a recipe of somebody else it is that of the package which is named after the benchmark, if the classes are the
    same (else none), and changed is also what it says itself of what the paper's tables vary.
    """
    if not settings or name in recipe.names():
        return name, changes
    published, own = as_published(settings), recipe.completed(settings)
    if not published or any(own[key] != published[key] for key in WHICH_IMAGES):
        return "", changes
    alike = {key for key in paper.VARIED if own[key] == published[key]}  # perhaps since the caller took it back
    said = [change for change in changes.split() if change.partition("=")[0] not in alike]
    told = {change.partition("=")[0] for change in said}
    differs = {key: own[key] for key in paper.VARIED if key not in alike | told and matters(key, system, own)}
    return str(own["data.source"]), " ".join([*changes_in_words(differs).split(), *said])


def matters(key: str, system: str, held: Mapping[str, Any]) -> bool:
    """Tell whether the results of ``system`` depend on the setting ``key``, the others being as they are."""
    section, _, name = key.rpartition(".")
    if key in LEFT_OUT or name in FOR_SPEED or key.startswith(WITHOUT_EFFECT):
        return False
    if name in SWITCHED and not held.get(f"{section}.{SWITCHED[name]}"):
        return False
    if name in SCHEDULED and held.get(f"{section}.schedule") != SCHEDULED[name]:
        return False
    if key.startswith(COUNT):
        return key == NEW_CLASSES or held.get(NEW_CLASSES) == "auto"
    start = str(held.get("pretrain.kind"))
    if section.startswith("pretrain"):
        return key in WITHOUT_STAGE_1.get(start, (key,))
    if key == "supervised.scratch_epochs":
        return start == "supervised"
    if section.startswith("supervised") and start != "supervised" and not held.get("supervised.epochs"):
        return key == "supervised.epochs"  # there was no stage 2
    if key == "supervised.epochs" and start == "supervised":
        return not held.get("supervised.scratch_epochs")
    if key.startswith(JOINT) and system == GROWN:
        return held.get("incremental.after") == "joint"
    return key.startswith((*STAGES_1_AND_2, *OWN.get(system, ("",))))


def _as_given(key: str, value: Any, changed: Mapping[str, Any]) -> str:
    """Return the name under which the caller gave a setting: incremental learning takes those of joint training."""
    twin = key.replace(INCREMENTAL, JOINT, 1)
    return twin if key.startswith(INCREMENTAL) and key not in changed and changed.get(twin) == value else key


def _part(results: Results, systems: list[str]) -> Results:
    """Return what ``results`` say of some of the systems."""
    if len(systems) == len(results["systems"]):
        return results
    own = {key: {name: results[key][name] for name in systems if name in results[key]}
           for key in ("systems", "joint_classifiers") if results.get(key)}  # fmt: skip
    joint = [one for one in own.get("joint_classifiers", {}).values() if one]
    return results | own | {"incremental": joint[0] if joint else None}
