"""The parts of a benchmark one by one, as a table: what stands behind a mean over alphabets."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from autonovel.labels import label_of, with_labels_first
from autonovel.studies.parts import error_of_the_numbers
from autonovel.tables.markdown import grid
from autonovel.words import ranges

Results = Mapping[str, Any]


def part_table(name: str, runs: Sequence[Results]) -> list[str]:
    """Return Markdown lines with the accuracy of each system on each part, the mean over the seeds.

    Args:
        name: of the recipe, with what was changed in it.
        runs: results of that recipe with ``each``, one per seed and set of systems.
    """
    ran = [system for r in runs for system in r["systems"]]
    systems = [system for system in with_labels_first(ran) if any(_scored(r, system) for r in runs)]
    told = f"Parts of `{name}`: accuracy in per cent, mean over seeds {_seeds(runs, systems)}."
    header = ["part", "new classes", "taken for", *(label_of(system) for system in systems)]
    cells = []
    for part in runs[0]["each"]:
        own = [r["each"][part] for r in runs]
        accuracies = [statistics.fmean(_accuracies(runs, system, part)) for system in systems]
        taken = ", ".join(map(str, sorted({of["n_new"] for of in own})))
        cells.append([part, str(own[0]["true_n_new"]), taken, *(f"{a:.1f}" for a in accuracies)])
    lines = ["", told, "", *grid(header, cells)]
    errors = {(int(r["seed"]), error_of_the_numbers(r["each"])) for r in runs}
    if any(error for _, error in errors):
        mean = statistics.fmean(error for _, error in errors)
        lines += ["", f"The numbers of new classes taken are wrong by {mean:.1f} in the mean over parts and seeds."]
    return lines


def _seeds(runs: Sequence[Results], systems: Sequence[str]) -> str:
    """Return the seeds, and in brackets the systems that were run on some of them alone."""
    of = {system: sorted({int(r["seed"]) for r in runs if _scored(r, system)}) for system in systems}
    every = sorted({seed for seeds in of.values() for seed in seeds})
    fewer = [f"{label_of(system)}: {ranges(of[system])}" for system in systems if of[system] != every]
    return ranges(every) + (f" ({'; '.join(fewer)})" if fewer else "")


def _scored(results: Results, system: str) -> bool:
    return (results["systems"].get(system) or {}).get("acc") is not None


def _accuracies(runs: Sequence[Results], system: str, part: str) -> list[float]:
    return [100 * r["each"][part]["systems"][system]["acc"] for r in runs if _scored(r, system)]
