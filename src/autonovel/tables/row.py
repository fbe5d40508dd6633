"""A row of the table of results."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from autonovel.words import ranges

HEADER = ("recipe", "system", "paper (n = 10)", "ours", "n", "seeds", "time with all stages", "hardware", "commit")


@dataclass(frozen=True)
class Row:
    """One system under one recipe, over its seeds.

    ``given`` is its name by the caller's changes alone, where the recipe has changed itself since, and ``since`` what
    the recipe itself said otherwise; else both are empty.
    """

    recipe: str
    system: str
    paper: str
    ours: str
    values: dict[str, list[float]]
    seeds: tuple[int, ...]
    seconds: tuple[float, ...]
    hardware: str
    commit: str
    given: str = ""
    since: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the row in the order of ``HEADER``."""
        if not self.seeds:
            return (self.recipe, self.system, self.paper, self.ours, *("–",) * (len(HEADER) - 4))
        wall = f"{statistics.mean(self.seconds):.0f} s"
        measured = (self.ours, str(len(self.seeds)), ranges(self.seeds), wall, self.hardware, self.commit)
        return (self.recipe, self.system, self.paper, *measured)


def spread(values: Sequence[float]) -> str:
    """Return mean ± standard deviation (of the sample), or the only value there is."""
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"
