"""``autonovel reproduce``: a recipe and variants of it on several seeds, and their table beside the paper's."""

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from autonovel import recipe
from autonovel.commands.look import print_table
from autonovel.errors import GuardError, UsageError
from autonovel.manner import Manner
from autonovel.storage.documents import read_json
from autonovel.studies.part_runs import run_parts
from autonovel.studies.parts import parts_of
from autonovel.studies.side_by_side import RunOrder, carry_out
from autonovel.studies.variants import (
    FULL_VARIANT,
    Variant,
    folder_name,
    refuse_said_twice,
    siblings,
    that_apply,
    that_differ,
)

STUDIED = "rankstats"


def reproduce_recipe(
    name: str,
    seeds: Sequence[int],
    out: Path,
    sets: list[str],
    manner: Manner,
    compared: tuple[Variant, ...] = (),
    systems: Variant = FULL_VARIANT,
    beside: int = 1,
) -> None:
    """Run a recipe, and variants of it, on ``seeds``, going on with what is there; print the table.

    ``beside`` runs are made at a time: those of a benchmark's parts, which has their mean as its result, or else the
    seeds, and then the variants, which take stages 1 and 2 over from them.
    """
    if compared and systems != FULL_VARIANT:
        raise UsageError(
            "--ablations, --sweep-k and --sweep-group study ranking statistics; give them without --method, "
            "--no-self-supervision and --label."
        )
    refuse_said_twice(systems, sets)
    if compared and "run.systems" in recipe.parse_overrides(sets):
        raise UsageError(
            "--ablations, --sweep-k and --sweep-group study ranking statistics alone; give no run.systems."
        )
    settings = recipe.load(name, sets).recipe
    label, parts = settings.name, parts_of(settings)
    applied = that_apply(compared, settings.pretrain.kind)
    if applied != compared:
        start = f"pretrain.kind = {settings.pretrain.kind}"
        Console().print(f"Not without self-supervision, which {label} does not start by ({start}).", highlight=False)
    applied = that_differ(applied, settings)

    def order(seed: int, variant: Variant) -> RunOrder:
        folder = out / folder_name(label, variant, seed)
        changes = [_of_study(folder)] if compared else []
        full = out / folder_name(label, FULL_VARIANT, seed)
        bases = sorted(siblings(folder), key=lambda other: other != full)  # a study's own base first
        own = replace(manner, bases=tuple(bases))
        return RunOrder(name, folder, seed, (*sets, *changes), own, variant)

    every = [out / folder_name(label, variant, seed) for seed in seeds for variant in (systems, *applied)]
    settled = _settled(every)

    def made(variants: Iterable[Variant]) -> list[RunOrder]:
        orders = [order(seed, variant) for seed in seeds for variant in variants]
        return [one for one in orders if one.folder not in settled]

    collapses: list[GuardError] = []
    if parts is not None:
        for one in made((systems, *applied)):
            collapses += _collapsed(lambda one=one: run_parts(parts, one, beside))  # type: ignore[misc]
    elif beside == 1:
        for place, (seed, variant) in enumerate(itertools.product(seeds, (systems, *applied))):
            started = None if place else manner.started  # the time of the first counts from the start of the process
            if (one := order(seed, variant)).folder not in settled:
                collapses += _carried_out([replace(one, started=started)], 1)
    else:
        for variants in (systems,), applied:  # the latter take over what the former have trained
            collapses += _carried_out(made(variants), beside)
    finished = [folder for folder in every if (folder / "results.json").exists()]
    if finished:
        print_table(finished, as_json=False)
    if collapses:
        raise collapses[0]


def _of_study(folder: Path) -> str:
    """Return the systems of a run in a study, which is about ranking statistics alone.

    A run that was made before, with those among others, serves as well and keeps them.
    """
    facts = read_json(folder / "run.json") if (folder / "run.json").exists() else {}
    there = facts.get("recipe", {}).get("run.systems", [])
    return f"run.systems={json.dumps(there if STUDIED in there else [STUDIED])}"


def _settled(folders: Sequence[Path]) -> set[Path]:
    """Return the finished ones of some runs, if a guard has stopped another of them.

    That one may go on with gentler settings, which are none of theirs: they are not even compared.
    """
    from autonovel import record  # late: it needs torch
    from autonovel.training.remedies import stopped

    there = [folder for folder in folders if (folder / "run.json").exists()]
    return {folder for folder in there if record.finished(folder)} if any(map(stopped, there)) else set()


def _carried_out(orders: Sequence[RunOrder], beside: int) -> list[GuardError]:
    """Make some runs; return what ended one that collapsed, as the others need not fare alike."""
    return _collapsed(lambda: carry_out(orders, beside, Console()))


def _collapsed(work: Callable[[], None]) -> list[GuardError]:
    try:
        work()
    except GuardError as error:
        return [error]
    return []
