"""``autonovel reproduce``: a recipe and variants of it on several seeds, and their table beside the paper's."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from autonovel import recipe
from autonovel.commands import STARTED
from autonovel.errors import GuardError, UsageError
from autonovel.look_commands import print_table
from autonovel.part_runs import run_parts
from autonovel.parts import parts_of
from autonovel.settings import ALL_STAGES
from autonovel.side_by_side import RunOrder, carry_out
from autonovel.variants import FULL_VARIANT, Variant, folder_name, siblings, that_apply


def reproduce_recipe(
    name: str,
    seeds: Sequence[int],
    out: Path,
    sets: list[str],
    device: str,
    keep_going: bool,
    compared: tuple[Variant, ...] = (),
    stages: tuple[int, ...] = ALL_STAGES,
    systems: Variant = FULL_VARIANT,
    beside: int = 1,
) -> None:
    """Run a recipe, and variants of it, on ``seeds``, going on with what is there; print the table.

    ``beside`` runs are made at a time: those of a benchmark's parts, which has their mean as its result, or else the
    seeds, and then the variants, which take stages 1 and 2 over from them.
    """
    if compared and systems != FULL_VARIANT:
        raise UsageError(
            "--ablations and --sweep-k study ranking statistics; give them without --method and --no-self-supervision."
        )
    settings = recipe.load(name, sets).recipe
    label, parts = settings.name, parts_of(settings)
    applied = that_apply(compared, settings.pretrain.kind)
    if applied != compared:
        start = f"pretrain.kind = {settings.pretrain.kind}"
        Console().print(f"Not without self-supervision, which {label} does not start by ({start}).", highlight=False)

    def order(seed: int, variant: Variant) -> RunOrder:
        folder = out / folder_name(label, variant, seed)
        changes = ['run.systems=["rankstats"]'] if compared else []  # a study is about ranking statistics alone
        bases = siblings(folder) if systems != FULL_VARIANT else [out / folder_name(label, FULL_VARIANT, seed)]
        return RunOrder(name, folder, seed, (*sets, *changes), device, keep_going, stages, variant, tuple(bases))

    orders = {(seed, variant.name): order(seed, variant) for seed in seeds for variant in (systems, *applied)}
    if parts is not None:
        for one in orders.values():
            run_parts(parts, replace(one, bases=()), beside)
    elif beside == 1:
        _one_after_another(list(orders.values()))
    else:
        for variants in (systems,), applied:  # the latter take over what the former have trained
            carry_out([orders[seed, variant.name] for seed in seeds for variant in variants], beside, Console())
    finished = [one.folder for one in orders.values() if (one.folder / "results.json").exists()]
    if finished:
        print_table(finished, as_json=False)


def _one_after_another(orders: Sequence[RunOrder]) -> None:
    """Make all runs; one that collapses is told of at the end, since the others need not fare alike."""
    collapses: list[GuardError] = []
    for place, order in enumerate(orders):
        try:
            carry_out([replace(order, started=None if place else STARTED)], 1, Console())
        except GuardError as error:
            collapses.append(error)
    if collapses:
        raise collapses[0]
