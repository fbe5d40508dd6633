"""Every objective again as naive loops, and the comparison of the two.

The tests use these oracles on many inputs; ``autonovel doctor`` uses them on a few, on whatever device
and build of torch it finds.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from autonovel import objectives

Rows = Sequence[Sequence[float]]


def top_k_set(z: Sequence[float], k: int, by: str = "value") -> set[int]:
    """Return the k dimensions with the highest value (or magnitude); ties go to the lower dimension."""
    ranked = sorted(range(len(z)), key=lambda d: (-(abs(z[d]) if by == "magnitude" else z[d]), d))
    return set(ranked[:k])


def pair_labels(z: Rows, k: int, by: str = "value") -> list[list[bool]]:
    """Return s_ij for all ordered pairs by comparing sets."""
    sets = [top_k_set(row, k, by) for row in z]
    return [[a == b for b in sets] for a in sets]


def pairs_in_groups(taken: Sequence[bool], group: int) -> list[list[bool]]:
    """Return which pairs are compared: both taken, and in one group of the taken in order."""
    place = {i: rank for rank, i in enumerate(i for i, t in enumerate(taken) if t)}
    n = len(taken)
    return [
        [i in place and j in place and (group <= 0 or place[i] // group == place[j] // group) for j in range(n)]
        for i in range(n)
    ]


def pairwise_bce(p: Rows, q: Rows, s: Sequence[Sequence[bool]], pairs: Sequence[Sequence[bool]]) -> float:
    """Return the mean over ``pairs`` of −log(score) or −log(1 − score)."""
    losses = []
    for i, row in enumerate(p):
        for j, other in enumerate(q):
            if pairs[i][j]:
                score = sum(a * b for a, b in zip(row, other, strict=True))
                losses.append(-math.log((score if s[i][j] else 1 - score) + 1e-7))
    return sum(losses) / len(losses) if losses else 0.0


def consistency(p: Rows, q: Rows, taken: Sequence[bool], over_classes: str) -> float:
    """Return the mean over taken rows of the mean (or sum) over classes of squared differences."""
    rows = []
    for a, b, t in zip(p, q, taken, strict=True):
        if t:
            total = sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
            rows.append(total / len(a) if over_classes == "mean" else total)
    return sum(rows) / len(rows) if rows else 0.0


def cross_entropy(logits: Rows, y: Sequence[int], taken: Sequence[bool]) -> float:
    """Return the mean over taken rows of −log softmax(logits)[y]."""
    losses = []
    for row, label, t in zip(logits, y, taken, strict=True):
        if t:
            losses.append(math.log(sum(math.exp(v) for v in row)) - row[label])
    return sum(losses) / len(losses) if losses else 0.0


def ramp(t: float, length: float) -> float:
    """Return exp(−5 (1 − min(t, T) / T)²)."""
    return math.exp(-5 * (1 - min(t, length) / length) ** 2) if length > 0 else 1.0


def kcl(p: Rows, s: Sequence[Sequence[bool]], pairs: Sequence[Sequence[bool]], margin: float = 2.0) -> float:
    """Return the mean over ``pairs`` of KL(p_i ‖ p_j), or of what it lacks to the margin."""
    losses = []
    for i, row in enumerate(p):
        for j, other in enumerate(p):
            if pairs[i][j]:
                kl = sum(a * (math.log(a + 1e-7) - math.log(b + 1e-7)) for a, b in zip(row, other, strict=True))
                losses.append(kl if s[i][j] else max(0.0, margin - kl))
    return sum(losses) / len(losses) if losses else 0.0


def mcl(p: Rows, s: Sequence[Sequence[bool]], pairs: Sequence[Sequence[bool]]) -> float:
    """Return the mean over ``pairs`` of minus the log-likelihood of the pair label."""
    total, count = 0.0, 0
    for i, j in ((i, j) for i in range(len(p)) for j in range(len(p)) if pairs[i][j]):
        meeting = sum(p[i][c] * p[j][c] for c in range(len(p[i])))
        total -= math.log(1e-7 + (meeting if s[i][j] else 1 - meeting))
        count += 1
    return total / count if count else 0.0


def pair_cross_entropy(logits: Sequence[Rows], same: Sequence[Sequence[bool]], balance: str) -> float:
    """Return the two-way cross-entropy over all ordered pairs, or the mean of its means over the two kinds of pair."""
    losses: dict[bool, list[float]] = {True: [], False: []}
    for row, answers in zip(logits, same, strict=True):
        for (different, alike), answer in zip(row, answers, strict=True):
            chosen = alike if answer else different
            losses[answer].append(math.log(math.exp(different) + math.exp(alike)) - chosen)
    kinds = [kind for kind in losses.values() if kind]
    if balance == "even":
        return sum(sum(kind) / len(kind) for kind in kinds) / len(kinds)
    return sum(map(sum, kinds)) / sum(map(len, kinds))


def student_t(z: Rows, centres: Rows) -> list[list[float]]:
    """Return the soft assignments of points to centres."""
    rows = []
    for point in z:
        kernel = [1 / (1 + sum((a - b) ** 2 for a, b in zip(point, centre, strict=True))) for centre in centres]
        rows.append([value / sum(kernel) for value in kernel])
    return rows


def sharpened(q: Rows) -> list[list[float]]:
    """Return the target distribution of soft assignments."""
    sizes = [sum(row[c] for row in q) for c in range(len(q[0]))]
    rows = [[value**2 / size for value, size in zip(row, sizes, strict=True)] for row in q]
    return [[value / sum(row) for value in row] for row in rows]


def kl_to_target(q: Rows, p: Rows) -> float:
    """Return the mean over images and clusters of p log(p / q)."""
    parts = [a * math.log(a / b) for wanted, is_ in zip(p, q, strict=True) for a, b in zip(wanted, is_, strict=True)]
    return sum(parts) / len(parts)


def running_average(history: Sequence[float], momentum: float) -> float:
    """Return the average of a history, the last value weighing 1 − α, the one before α (1 − α), and so on."""
    return sum((1 - momentum) * momentum**age * value for age, value in enumerate(reversed(history)))


def prototypical(z: Rows, n_classes: int, n_support: int) -> tuple[list[list[float]], float]:
    """Return the squared distances of queries from prototypes, and the mean of −log softmax(−distance) at their own."""
    each = len(z) // n_classes
    by_class = [z[number * each : (number + 1) * each] for number in range(n_classes)]
    means = [[sum(column) / n_support for column in zip(*rows[:n_support], strict=True)] for rows in by_class]
    distances, losses = [], []
    for number, rows in enumerate(by_class):
        for query in rows[n_support:]:
            row = [sum((a - b) ** 2 for a, b in zip(query, mean, strict=True)) for mean in means]
            distances.append(row)
            losses.append(row[number] + math.log(sum(math.exp(-d) for d in row)))
    return distances, sum(losses) / len(losses)


def _close(got: Tensor, wanted: float) -> bool:
    return math.isclose(float(got), wanted, rel_tol=1e-4, abs_tol=1e-5)


def _all_close(got: Tensor, wanted: Rows) -> bool:
    return all(math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-5) for g, w in zip(got.tolist(), wanted, strict=True)
               for a, b in zip(g, w, strict=True))  # fmt: skip


def _case(device: torch.device) -> dict[str, Tensor]:
    rng = torch.Generator().manual_seed(0)
    z = torch.randn(12, 16, generator=rng).relu()
    z[3], z[7] = z[2], 0.0
    p, q = torch.randn(2, 12, 5, generator=rng)
    case = {"z": z, "logits": p, "p": p.softmax(1), "q": q.softmax(1)}
    case |= {"y": torch.randint(0, 5, (12,), generator=rng), "w": (torch.rand(12, generator=rng) < 0.7).float()}
    return {name: value.to(device) for name, value in case.items()}


def check(device: torch.device) -> dict[str, bool]:
    """Return, for each objective by name, whether it agrees with its oracle on ``device``."""
    c = _case(device)
    logits = c["logits"].tolist()
    z, p, q, y, w = c["z"].tolist(), c["p"].tolist(), c["q"].tolist(), c["y"].tolist(), (c["w"] > 0).tolist()
    s, pairs = objectives.pair_labels(c["z"], 3), objectives.pairs_in_groups(c["w"], 4)
    named: dict[str, Callable[[], bool]] = {
        "pair labels": lambda: bool(s.tolist() == pair_labels(z, 3)),
        "pair labels by magnitude": lambda: bool(
            objectives.pair_labels(c["logits"], 2, "magnitude").tolist() == pair_labels(logits, 2, "magnitude")
        ),
        "pairs in groups": lambda: bool((pairs > 0).tolist() == pairs_in_groups(w, 4)),
        "pairwise BCE": lambda: _close(
            objectives.pairwise_bce(c["p"], c["q"], s, pairs), pairwise_bce(p, q, s.tolist(), pairs_in_groups(w, 4))
        ),
        "consistency (mean)": lambda: _close(
            objectives.consistency(c["p"], c["q"]), consistency(p, q, [True] * 12, "mean")
        ),
        "consistency (sum)": lambda: _close(
            objectives.consistency(c["p"], c["q"], c["w"], "sum"), consistency(p, q, w, "sum")
        ),
        "cross-entropy": lambda: _close(
            objectives.cross_entropy(c["logits"], c["y"], c["w"]), cross_entropy(logits, y, w)
        ),
        "pseudo-labels": lambda: bool(
            objectives.pseudo_labels(c["logits"], 7).tolist()
            == [7 + max(range(5), key=row.__getitem__) for row in logits]
        ),
        "prototypes": lambda: _prototypes_agree(c["logits"]),
        "ramp": lambda: all(
            _close(objectives.ramp(torch.tensor(float(t), device=device), 10.0), ramp(t, 10.0)) for t in range(12)
        ),
    }
    return {name: test() for name, test in (named | _compared_systems(c)).items()}


def _prototypes_agree(z: Tensor) -> bool:
    got = objectives.prototype_distances(z, 3, 2)
    distances, loss = prototypical(z.tolist(), 3, 2)
    return _all_close(got, distances) and _close(objectives.prototypical(got), loss)


def _compared_systems(c: dict[str, Tensor]) -> dict[str, Callable[[], bool]]:
    """Return the checks of the objectives of KCL, MCL and DTC."""
    p, q, w = c["p"].tolist(), c["q"].tolist(), (c["w"] > 0).tolist()
    s, pairs = objectives.pair_labels(c["z"], 3), objectives.pairs_in_groups(c["w"], 4)
    compared = pairs_in_groups(w, 4)
    points, centres = c["logits"], c["logits"][:4] + 0.5
    soft = objectives.student_t(torch.cdist(points, centres).square())
    two_way = torch.stack([c["p"] @ c["q"].T, c["q"] @ c["p"].T], dim=2)
    latest, average = c["p"], torch.zeros_like(c["p"])
    for view in (c["q"], latest):
        average = objectives.running_average(average, view, 0.6)
    wanted = [[running_average([b, a], 0.6) for a, b in zip(x, y, strict=True)] for x, y in zip(p, q, strict=True)]
    return {
        "KCL": lambda: _close(objectives.kcl(c["p"], s, pairs), kcl(p, s.tolist(), compared)),
        "MCL": lambda: _close(objectives.mcl(c["p"], s, pairs), mcl(p, s.tolist(), compared)),
        "similarity of pairs": lambda: all(
            _close(
                objectives.pair_cross_entropy(two_way, s, how), pair_cross_entropy(two_way.tolist(), s.tolist(), how)
            )
            for how in ("none", "even")
        ),
        "Student-t assignment": lambda: _all_close(soft, student_t(points.tolist(), centres.tolist())),
        "sharpened target": lambda: _all_close(objectives.sharpened(soft), sharpened(soft.tolist())),
        "KL to the target": lambda: _close(objectives.kl_to_target(c["q"], c["p"]), kl_to_target(q, p)),
        "running average": lambda: _all_close(average, wanted),
    }
