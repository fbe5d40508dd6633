"""The runs of a benchmark made of parts: what they share is trained once, then all parts, several at a time."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from autonovel import recipe
from autonovel.errors import GuardError
from autonovel.settings import ALL_STAGES
from autonovel.studies.parts import RESULTS, Parts, combine, spend
from autonovel.studies.side_by_side import RunOrder, carry_out

PAIRS = ("kcl", "mcl")


def run_parts(parts: Parts, order: RunOrder, beside: int) -> None:
    """Make the run of every part in a folder under ``order.folder``, and write their mean there.

    The first part trains what all share; the others take it over, also where the first one collapsed after that.
    """
    console, start = Console(), time.monotonic()
    runs = [_of_part(parts, part, order) for part in parts.n_new]
    if (order.folder / RESULTS).exists() and all(_finished(run.folder) for run in runs):
        console.print(f"{order.folder} is finished; nothing was left to do.", highlight=False)
        return
    shared, rest = _shared(runs, order.manner.stages)
    collapse: GuardError | None = None
    try:
        if shared is not None and not _finished(shared.folder):
            try:
                carry_out([shared], 1, console)
            except GuardError as error:
                if shared is not runs[0]:  # it was to train no more than what the others need
                    raise
                collapse = error
        carry_out([run for run in rest if not _finished(run.folder)], beside, console)
    finally:
        if any((run.folder / "run.json").exists() for run in runs):
            spend(order.folder, time.monotonic() - start)
        combine(parts, order.folder)
    if collapse:
        raise collapse


def _shared(runs: Sequence[RunOrder], stages: tuple[int, ...]) -> tuple[RunOrder | None, list[RunOrder]]:
    """Return the run that trains what all have in common, and those that follow."""
    first, last = runs[0], ALL_STAGES[-1]
    if last not in stages:
        return first, []
    systems = recipe.load(first.recipe, [*first.sets, *first.variant.overrides]).recipe.run.systems
    if any(system in PAIRS for system in systems):  # a similarity network is shared too, but is no stage of its own
        return first, list(runs[1:])
    before = tuple(stage for stage in stages if stage < last)
    shared = replace(first, manner=replace(first.manner, stages=before)) if before else None
    return shared, list(runs)


def _of_part(parts: Parts, part: str, order: RunOrder) -> RunOrder:
    """Return the run of one part; it may take stages over from the first part, or from its like in other variants."""
    first, out = next(iter(parts.n_new)), order.folder.parent
    others = [path.parent for path in sorted(out.glob(f"*/{'*' if part == first else part}/run.json"))]
    folder = order.folder / part
    bases = [path for path in (order.folder / first, *others) if path != folder]
    manner = replace(order.manner, bases=tuple(bases))
    return replace(order, folder=folder, sets=(*order.sets, f"{parts.key}={part}"), manner=manner)


def _finished(folder: Path) -> bool:
    from autonovel import record  # late: it needs torch

    return (folder / "run.json").exists() and record.finished(folder)
