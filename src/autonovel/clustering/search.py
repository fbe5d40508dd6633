"""From coarse to fine: where a curve over candidate counts has its top, without visiting every count."""

from collections.abc import Callable, Iterable

from autonovel.errors import UsageError

NEARLY = 0.25  # a second peak is looked at if it is lower by at most this share of the curve's range
Values = tuple[float, ...]
Evaluate = Callable[[int, int], Values]


def exhaustive(candidates: range, evaluate: Evaluate, restarts: int) -> dict[int, Values]:
    """Return the value of every curve at every candidate."""
    return {c: evaluate(c, restarts) for c in candidates}


def coarse_to_fine(candidates: range, evaluate: Evaluate, restarts: int, few: int, reach: int = 2) -> dict[int, Values]:
    """Return the values of every curve around its top, where the top of the exhaustive search is expected.

    First with ``few`` restarts: a grid whose steps grow with the count, then halving the gaps beside the two
    highest places of each curve.  Then with all ``restarts``: the candidates within ``reach`` of either, and of the
    tops that are found so, until none lies at an edge of what was looked at.

    Args:
        candidates: counts in question.
        evaluate: gives the values of all curves at a count, with a number of restarts.
        restarts: of the clusterings that decide.
        few: of those that only show where to look.
        reach: how far around a top the deciding values are taken.
    """
    rough = {c: evaluate(c, few) for c in grid(candidates)}
    while missing := {c for tops in _tops(rough) for top in tops for c in _gaps(rough, top)} - rough.keys():
        rough |= {c: evaluate(c, few) for c in sorted(missing)}
    near = {c for tops in _tops(rough) for top in tops for c in _around(top, candidates, reach)}
    fine: dict[int, Values] = {}
    while near:
        fine |= {c: evaluate(c, restarts) for c in sorted(near)}
        near = {c for curve in curves(fine) for c in _around(top(curve), candidates, reach)} - fine.keys()
    return dict(sorted(fine.items()))


def grid(candidates: range) -> list[int]:
    """Return candidates with steps that grow with the count: every one at first, then a quarter farther each."""
    if not len(candidates):
        raise UsageError("there are no candidate counts; count.most must be at least 2.")
    out, c = [], candidates[0]
    while c < candidates[-1]:
        out.append(c)
        c += max(1, c // 4)
    return [*out, candidates[-1]]


def top(values: dict[int, float]) -> int:
    """Return the count with the highest value, the largest one among equals."""
    return max(values, key=lambda c: (values[c], c))


def least(best: int, candidates: range, enough: Callable[[int], bool]) -> int:
    """Return the smallest count from which on, up to the ``best``, every one is good ``enough``."""
    while best - 1 in candidates and enough(best - 1):
        best -= 1
    return best


def curves(points: dict[int, Values]) -> list[dict[int, float]]:
    """Return each curve as values by count."""
    return [dict(zip(points, column, strict=True)) for column in zip(*points.values(), strict=True)]


def second_peak(curve: dict[int, float]) -> int | None:
    """Return where a curve has its second peak, if that is nearly as high as its top."""
    order = sorted(curve)
    peaks = [c for i, c in enumerate(order) if all(curve[c] >= curve[other] for other in order[max(i - 1, 0) : i + 2])]
    first = top(curve)
    enough = curve[first] - NEARLY * (curve[first] - min(curve.values()))
    others = {c: curve[c] for c in peaks if c != first and curve[c] >= enough}
    return top(others) if others else None


def _tops(points: dict[int, Values]) -> list[list[int]]:
    """Return the top of each curve, and its second peak where that is nearly as high."""
    found = [(top(curve), second_peak(curve)) for curve in curves(points)]
    return [[first] if second is None else [first, second] for first, second in found]


def _around(place: int, candidates: range, reach: int) -> set[int]:
    """Return the candidates within ``reach`` of ``place``."""
    return {c for c in range(place - reach, place + reach + 1) if c in candidates}


def _gaps(points: Iterable[int], place: int) -> list[int]:
    """Return the middle of the gap on either side of ``place``."""
    below, above = [c for c in points if c < place], [c for c in points if c > place]
    sides = ([max(below)] if below else []) + ([min(above)] if above else [])
    return [(place + side) // 2 if side < place else (place + side + 1) // 2 for side in sides if abs(side - place) > 1]
