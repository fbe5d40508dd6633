"""A run that its guards stopped may go on from its last good state with gentler settings; which, and where it says so.

Settings of a run never change under it, except here: after a stop, and for stages that are not finished.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from autonovel.labels import GROWN
from autonovel.stage_names import AFTER_JOINT, JOINT, JOINT_FIRST, SIMILARITY
from autonovel.storage.run_folder import FINISHED

STOPPED = "stopped.json"  # in the folder of a stage that a guard has stopped
PRECISION = "network.precision"
# settings that make a stage gentler, and leave its shapes as they are
REMEDIES = (
    "lr",
    "start_lr",
    "warmup_epochs",
    "ramp_epochs",
    "weight",
    "pseudo_weight",
    "group",
    "group_per_class",
    "weight_decay",
)
SECTIONS = {
    "1-rotation": "pretrain", "1-prototypical": "pretrain", "2-supervised": "supervised", JOINT: "joint",
    JOINT_FIRST: "joint", AFTER_JOINT: "incremental", SIMILARITY: "similarity",
    "4-kcl": "kcl", "4-mcl": "mcl", "3-dtc-start": "dtc", "4-dtc": "dtc",
    "9-linear": "linear", "3-centres": "centres",
}  # fmt: skip
HEIRS = {"incremental": "joint", "mcl": "kcl"}  # sections that have another one's settings unless they have their own


def section(stage: str, system: str) -> str:
    """Return the section of the recipe that a stage of a system is trained by; nothing for an unknown one."""
    return "incremental" if (stage, system) == (JOINT, GROWN) else SECTIONS.get(stage, "")


def rate_of(stage: str, system: str) -> str:
    """Return the name of the setting that is a stage's learning rate; nothing for an unknown stage."""
    own = section(stage, system)
    return own and f"{own}.{'start_lr' if stage == '3-dtc-start' else 'lr'}"


def may_change(folder: Path, facts: Mapping[str, Any], settings: Iterable[str]) -> bool:
    """Tell whether a run may be resumed with other values of ``settings``.

    Args:
        folder: the run folder.
        facts: its ``run.json``.
        settings: dotted names of those that differ.
    """
    if not stopped(folder):
        return False
    done = _finished(folder, facts)
    return all(key == PRECISION or _gentler(key, done) for key in settings)


def stopped(folder: Path) -> bool:
    """Tell whether a guard has stopped a stage of the run in ``folder`` that has not been finished since."""
    return any((place / STOPPED).exists() for place, _ in _stages(folder, {}))


def too_late_to_inherit(
    folder: Path, facts: Mapping[str, Any], differing: Mapping[str, tuple[Any, Any]], now: Mapping[str, Any]
) -> set[str]:
    """Return the settings that differ only because another section's was made gentler, of stages that were finished.

    Args:
        folder: the run folder.
        facts: its ``run.json``.
        differing: settings as they were and as they are asked for now.
        now: all settings that are asked for.
    """
    altered = {key for part in facts.get("parts", []) for key in part.get("altered", {})} | set(differing)
    done, found = _finished(folder, facts), set()
    for key in differing:
        own, _, name = key.partition(".")
        origin = f"{HEIRS.get(own)}.{name}"
        if own in done and name in REMEDIES and origin in altered and now.get(origin) == now[key]:
            found.add(key)
    return found


def _finished(folder: Path, facts: Mapping[str, Any]) -> set[str]:
    """Return the sections all of whose stages are finished, in one system or another, and the rates of single stages.

    DTC has two stages of one section: when the first is finished, its own rate is settled and the others are not.
    """
    done: set[tuple[Path, str]] = set()
    begun: set[tuple[Path, str]] = set()
    rates: set[str] = set()
    for place, system in _stages(folder, facts):
        finished = (place / FINISHED).exists()
        (done if finished else begun).add((place.parent, section(place.name, system)))
        rates |= {rate_of(place.name, system)} if finished else set()
    return {own for _, own in done - begun} | rates


def _gentler(key: str, done: set[str]) -> bool:
    own, _, name = key.partition(".")
    return name in REMEDIES and not done & {own, key}


def _stages(folder: Path, facts: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Return the folder of every stage of a run and the system it belongs to."""
    primary = str(facts.get("primary", ""))
    for place in sorted([*folder.glob("stages/*"), *folder.glob("count/stages/*")]):
        yield place, primary
    for place in sorted(folder.glob("systems/*/stages/*")):
        yield place, place.parent.parent.name
