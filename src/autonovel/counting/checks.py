"""Known classes that are counted like the new ones: how far that is off says how far the estimate may be."""

import math
from dataclasses import dataclass

from autonovel.counting.probes import Probes


@dataclass(frozen=True)
class Check:
    """A set of known classes that was counted as if it were new.

    Attributes:
        probes: the classes.
        estimate: how many the count found.
    """

    probes: Probes
    estimate: int

    @property
    def true(self) -> int:
        """Return how many there are."""
        return len(self.probes.classes)


def stretched(number: int, low: int, high: int, checks: list[Check]) -> tuple[int, int]:
    """Return the range of an estimate: it may be too small or too large by the same factors as the checks were.

    Args:
        number: the estimate.
        low: lower end of the range that is known already, the estimate itself if none is.
        high: upper end.
        checks: counts of known classes.
    """
    factors = [check.true / max(check.estimate, 1) for check in checks]
    ends = [number * factor for factor in factors]
    return min([low, *map(math.floor, ends)]), max([high, *map(math.ceil, ends)])


def in_a_sentence(checks: list[Check], n_known: int) -> str:
    """Return what the checks gave and what it is taken for."""
    hidden = sum(check.true for check in checks)
    said = ", ".join(
        f"{check.probes.group + ' ' if check.probes.group else ''}{check.estimate} (there are {check.true})"
        for check in checks
    )
    by_itself = ", each group by itself" if len(checks) > 1 else ""
    return (
        f"{hidden} of {n_known} known classes taught the count nothing and were counted like the new ones{by_itself}: "
        f"{said}. The range is the estimate, stretched as far as these are off."
    )
