"""Benchmarks made of parts, such as OmniGlot's alphabets: a run for each, and their mean as the benchmark's result."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autonovel.settings import Recipe
from autonovel.storage.documents import read_json, write_json
from autonovel.storage.run_folder import FORMAT
from autonovel.storage.shapes import STAGE, read_shaped

RESULTS = "results.json"
SPENT = "spent.json"


@dataclass(frozen=True)
class Parts:
    """The parts of a benchmark.

    Attributes:
        key: the setting that chooses one.
        n_new: the true number of new classes of each, by name.
    """

    key: str
    n_new: Mapping[str, int]


def parts_of(settings: Recipe) -> Parts | None:
    """Return the parts of which a recipe's benchmark is the mean; None if it has none, or if one is chosen."""
    if settings.data.source == "omniglot" and not settings.data.alphabet:
        from autonovel.data.layouts import OMNIGLOT  # late: the package of images needs torch

        return Parts("data.alphabet", OMNIGLOT.evaluation)
    if settings.data.source == "imagenet" and not settings.data.subset:
        from autonovel.data.layouts import IMAGENET

        return Parts("data.subset", {name: len(classes) for name, classes in IMAGENET.subsets.items()})
    return None


def spend(folder: Path, seconds: float) -> None:
    """Add to the time spent on the parts in ``folder``, from start to end, however many ran beside each other."""
    write_json(folder / SPENT, {"seconds": spent(folder) + seconds})


def spent(folder: Path) -> float:
    """Return the time spent so far on the parts in ``folder``."""
    return float(read_shaped(folder / SPENT, STAGE, ("seconds",))["seconds"]) if (folder / SPENT).exists() else 0.0


def combine(parts: Parts, folder: Path) -> None:
    """Write the mean over all parts, whose runs lie in ``folder``, to its ``results.json``, unless one is missing."""
    places = {part: folder / part / RESULTS for part in parts.n_new}
    if not all(place.exists() for place in places.values()):
        return
    each = {part: read_json(place) for part, place in places.items()}
    first = next(iter(each.values()))
    kept = ("recipe", "preset", "seed", "primary", "epoch", "departures", "hardware", "threads", "versions", "platform")
    settings = [{k: v for k, v in of.get("settings", {}).items() if k != parts.key} for of in each.values()]
    content = {
        "format": FORMAT,
        **{key: first[key] for key in kept},
        "systems": mean([of["systems"] for of in each.values()]),
        "incremental": mean([of["incremental"] for of in each.values()]),
        "joint_classifiers": mean([of["joint_classifiers"] for of in each.values()]),
        "seconds": {"total": spent(folder)},
        "changed": {key: value for key, value in first["changed"].items() if key != parts.key},
        "settings": settings[0] if all(one == settings[0] for one in settings) else {},
        "commit": first["commit"] if len({of["commit"] for of in each.values()}) == 1 else None,
        "each": {
            part: {
                "systems": of["systems"],
                "n_new": of["n_new"],
                "true_n_new": parts.n_new[part],
                "seconds": of["seconds"],
            }
            for part, of in each.items()
        },
    }
    write_json(folder / RESULTS, content)


def mean(values: Sequence[Any]) -> Any:
    """Return the mean of numbers, or of tables of such by their keys; what is no number is kept from the first.

    What is nothing (None) in one of them is nothing in the mean; what one of them does not name, it does not either.
    """
    if any(value is None for value in values):
        return None
    if isinstance(values[0], Mapping):
        named = [key for key in values[0] if all(key in value for value in values)]
        return {key: mean([value[key] for value in values]) for key in named}
    return statistics.fmean(values) if isinstance(values[0], int | float) else values[0]


def error_of_the_numbers(each: Mapping[str, Any]) -> float:
    """Return the mean absolute difference between the number of new classes a run used and the true one."""
    return statistics.fmean(abs(of["n_new"] - of["true_n_new"]) for of in each.values())
