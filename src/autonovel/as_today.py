"""Results by what their settings are called today.

A recipe may change from one version to the next, and results of both may lie side by side.  They hold the settings they
came from: what the recipe says otherwise today counts as changed.  So no table averages over two versions of a recipe,
and the k that a recipe once had is a value of today's sweep.
"""

import functools
from collections.abc import Mapping
from typing import Any

from autonovel import recipe
from autonovel.errors import UsageError
from autonovel.settings import PLACES, SENTENCES, Recipe
from autonovel.variants import STAGES_1_AND_2, WITHOUT_EFFECT, with_effect

Results = dict[str, Any]
OWN = {
    "rankstats": ("joint.",),
    "rankstats-incremental": ("incremental.",),
    "kcl": ("similarity.", "kcl.", "linear."),
    "mcl": ("similarity.", "mcl.", "linear."),
    "dtc": ("dtc.", "linear."),
    "kmeans": (),
}  # sections of a recipe that a system depends on beside those of stages 1 and 2; of others, all of them
FOR_SPEED = (".compile", ".threads")
SCRATCH = ("pretrain.", "supervised.scratch_epochs")  # which of them counts depends on the start
COUNT, NEW_CLASSES = "count.", "count.new_classes"


def settings_held(settings: Recipe) -> dict[str, Any]:
    """Return the settings that the results of the systems of a run depend on, as ``results.json`` holds them."""
    flat = with_effect(recipe.flatten(settings))
    left_out = {*PLACES, *SENTENCES, "name", "preset"}
    return {k: v for k, v in flat.items()
            if k not in left_out and any(_matters(k, system, flat) for system in settings.run.systems)}  # fmt: skip


def as_today(results: Results) -> list[Results]:
    """Return ``results`` with what differs from the recipe of today as ``changed``.

    In parts, where that is another thing for other systems; as they are, where they do not hold their settings or the
    recipe is not at hand.
    """
    held, changed = results.get("settings"), results.get("changed") or {}
    try:
        today = _today(results["recipe"], changed.get("preset")) if held else {}
    except UsageError:
        return [results]
    if not held:
        return [results]
    aside = {key: value for key, value in changed.items() if key.startswith((*WITHOUT_EFFECT, "preset"))}
    parts: list[tuple[dict[str, Any], list[str]]] = []
    for system in results["systems"]:
        differs = {k: v for k, v in held.items() if k in today and v != today[k] and _matters(k, system, held)}
        alike = next((systems for other, systems in parts if other == differs), None)
        if alike is None:
            parts.append((differs, [system]))
        else:
            alike.append(system)
    return [_part(results, systems) | {"changed": aside | differs} for differs, systems in parts]


@functools.cache
def _today(name: str, preset: str | None) -> dict[str, Any]:
    return recipe.flatten(recipe.load(name, {"preset": preset} if preset else {}).recipe)


def _matters(key: str, system: str, held: Mapping[str, Any]) -> bool:
    """Tell whether the results of ``system`` depend on the setting ``key``, the others being as they are."""
    if key.endswith(FOR_SPEED):
        return False
    if key.startswith(COUNT):
        return key == NEW_CLASSES or held.get(NEW_CLASSES) == "auto"
    if key.startswith(SCRATCH) and key != "pretrain.kind":
        return key.startswith("supervised.") == (held.get("pretrain.kind") == "supervised")
    return key.startswith((*STAGES_1_AND_2, *OWN.get(system, ("",))))


def _part(results: Results, systems: list[str]) -> Results:
    """Return what ``results`` say of some of the systems."""
    if len(systems) == len(results["systems"]):
        return results
    own = {key: {name: results[key][name] for name in systems if name in results[key]}
           for key in ("systems", "joint_classifiers") if results.get(key)}  # fmt: skip
    joint = [one for one in own.get("joint_classifiers", {}).values() if one]
    return results | own | {"incremental": joint[0] if joint else None}
