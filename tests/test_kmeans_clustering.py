"""The k-means of clustering/: against scikit-learn, against naive loops, and its own shortcuts against full passes."""

import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from torch import Tensor

from autonovel.clustering import kmeans, pruned
from autonovel.clustering.kmeans import _lloyd, class_means
from autonovel.clustering.seeding import spread_starts

module = sys.modules["autonovel.clustering.kmeans"]  # its name in the package is the function


def blobs(classes: int, each: int, d: int, spread: float = 1.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    middles = 4 * torch.randn(classes, d, generator=rng)
    y = torch.arange(classes).repeat_interleave(each)
    return middles[y] + spread * torch.randn(len(y), d, generator=rng), y


def naive(x: Tensor, centres: Tensor, pinned: Tensor, iterations: int, limit: float) -> tuple[Tensor, list[int], float]:
    """Lloyd's algorithm as loops over points and clusters, in float64."""
    points, now = x.double().tolist(), centres.double().tolist()

    def distance(a: list[float], b: list[float]) -> float:
        return sum((p - q) ** 2 for p, q in zip(a, b, strict=True))

    def nearest(row: int) -> int:
        if pinned[row] >= 0:
            return int(pinned[row])
        return min(range(len(now)), key=lambda c: distance(points[row], now[c]))

    before: list[int] = []
    for _ in range(iterations):
        labels = [nearest(row) for row in range(len(points))]
        moved = []
        for c in range(len(now)):
            members = [points[row] for row in range(len(points)) if labels[row] == c]
            assert members, "this oracle knows no empty clusters"
            moved.append([sum(column) / len(members) for column in zip(*members, strict=True)])
        shift = sum(distance(a, b) for a, b in zip(now, moved, strict=True))
        now = moved
        if shift <= limit or labels == before:
            break
        before = labels
    labels = [nearest(row) for row in range(len(points))]
    return torch.tensor(now).float(), labels, sum(distance(points[i], now[c]) for i, c in enumerate(labels))


@pytest.mark.parametrize("k", [1, 3, 6, 9])
def test_inertia_is_that_of_scikit_learn(k: int) -> None:
    """Up to the true number of clusters the best one is found by both; beyond it there are many nearly as good."""
    x, _ = blobs(6, 60, 10, spread=2.0)
    ours = kmeans(x, k, seed=0, restarts=10)
    theirs = KMeans(k, n_init=10, random_state=0).fit(x.numpy())
    assert ours.inertia == pytest.approx(theirs.inertia_, rel=1e-5 if k <= 6 else 0.02)


def test_from_the_same_start_the_answer_is_that_of_scikit_learn() -> None:
    x, _ = blobs(5, 80, 6, spread=3.0, seed=1)
    starts = torch.tensor([[3, 90, 200, 201, 390, 17]])
    ours = kmeans(x, 6, seed=0, starts=starts)
    theirs = KMeans(6, init=x[starts[0]].numpy(), n_init=1, max_iter=100).fit(x.numpy())
    assert ours.labels.tolist() == theirs.labels_.tolist()
    assert ours.inertia == pytest.approx(theirs.inertia_, rel=1e-5)
    np.testing.assert_allclose(ours.centres, theirs.cluster_centers_, atol=1e-4)


def test_inertia_and_centres_belong_to_the_labels() -> None:
    x, _ = blobs(4, 50, 5, seed=2)
    found = kmeans(x, 4, seed=1, tol=0.0, iterations=300)
    again = sum(float((x[found.labels == c] - found.centres[c]).square().sum()) for c in range(4))
    assert found.inertia == pytest.approx(again, rel=1e-5)
    for c in range(4):
        torch.testing.assert_close(found.centres[c], x[found.labels == c].mean(dim=0), atol=1e-5, rtol=0)


def test_pinned_points_are_clustered_as_naive_loops_do() -> None:
    x, y = blobs(5, 16, 3, spread=2.5, seed=3)
    pinned = torch.where((y < 2) & (torch.arange(len(y)) % 2 == 0), y, -1)
    starts = torch.tensor([[40, 60, 79], [33, 34, 35]])
    limit = 1e-4 * float((x - x.mean(dim=0)).var(dim=0, unbiased=False).mean())
    runs = [naive(x, torch.cat([class_means(x, pinned), x[rows]]), pinned, 100, limit) for rows in starts]
    centres, labels, inertia = min(runs, key=lambda run: run[2])
    found = kmeans(x, 5, seed=0, pinned=pinned, starts=starts)
    assert found.labels.tolist() == labels
    assert found.inertia == pytest.approx(inertia, rel=1e-5)
    torch.testing.assert_close(found.centres, centres, atol=1e-4, rtol=0)


@given(seed=st.integers(0, 10**6), k=st.integers(3, 9), spread=st.floats(0.1, 6.0))
def test_pinned_points_stay(seed: int, k: int, spread: float) -> None:
    x, y = blobs(3, 12, 4, spread, seed)
    pinned = torch.where(torch.arange(len(y)) % 3 == 0, y, -1)
    found = kmeans(x, k, seed=seed, restarts=2, pinned=pinned)
    held = pinned >= 0
    assert found.labels[held].tolist() == pinned[held].tolist()
    assert int(found.labels.max()) < k and torch.isfinite(found.centres).all()


@given(seed=st.integers(0, 10**6), k=st.integers(2, 12), pin=st.booleans())
def test_leaving_out_points_that_cannot_move_changes_nothing(seed: int, k: int, pin: bool) -> None:
    x, y = blobs(4, 30, 5, 3.0, seed)
    pinned = torch.where((y < 2) & (torch.arange(len(y)) % 4 == 0), y, -1) if pin else None
    starts = x[spread_starts(x, k, seed, 3)]
    if pinned is not None:
        starts[:, :2] = class_means(x, pinned)
    full, passes = _lloyd(x, starts, pinned, 100, 0.0, prune=False)
    quick, steps = _lloyd(x, starts, pinned, 100, 0.0, prune=True)
    torch.testing.assert_close(quick, full, atol=1e-4, rtol=1e-4)
    assert (passes - steps).abs().max() <= 1  # full passes see a label settle one pass later


def test_no_cluster_stays_empty_while_points_lie_apart() -> None:
    x = torch.cat([torch.zeros(20, 2), torch.tensor([[50.0, 0], [0, 50], [60, 60]])])
    starts = torch.tensor([[0, 1, 2, 3]])  # four equal centres: three of them begin empty
    for prune in (False, True):
        centres, _ = _lloyd(x, x[starts], None, 100, 0.0, prune=prune)
        assert len(torch.cdist(x, centres[0]).argmin(dim=1).unique()) == 4
    assert kmeans(x, 4, seed=0, starts=starts).inertia == pytest.approx(0)


def test_a_cluster_that_runs_empty_late_is_filled_too() -> None:
    """Pruned passes only begin after the full ones: put them at a start where a cluster is empty from the outset."""
    x = torch.cat([torch.zeros(20, 2), torch.tensor([[50.0, 0], [0, 50]])])
    centres, _ = pruned.settle(x, x.square().sum(dim=1), torch.tensor([[0.0, 0], [900, 900], [40, 40]]), None, 50, 0.0)
    assert sorted(map(tuple, centres.round().tolist())) == [(0, 0), (0, 50), (50, 0)]


def test_fewer_distinct_points_than_clusters_is_no_error() -> None:
    found = kmeans(torch.ones(6, 3), 4, seed=0)
    assert found.inertia == 0 and torch.isfinite(found.centres).all()


def test_the_same_seed_gives_the_same_bits_and_another_one_another_start() -> None:
    x, _ = blobs(8, 30, 4, 4.0)
    one, two = kmeans(x, 8, seed=5, restarts=3), kmeans(x, 8, seed=5, restarts=3)
    assert torch.equal(one.centres, two.centres) and torch.equal(one.labels, two.labels)
    assert not torch.equal(spread_starts(x, 8, 5, 3), spread_starts(x, 8, 6, 3))


def test_more_restarts_are_never_worse() -> None:
    x, _ = blobs(12, 20, 3, 2.0, seed=7)
    starts = spread_starts(x, 12, 0, 10)
    few, many = (kmeans(x, 12, seed=0, starts=starts[:n]).inertia for n in (1, 10))
    assert many <= few * (1 + 1e-6)


def test_starts_are_spread_nested_and_free() -> None:
    x, y = blobs(6, 40, 4, 0.2, seed=8)
    starts = spread_starts(x, 6, 0, 20)
    assert sum(len(y[rows].unique()) == 6 for rows in starts) >= 18  # far apart: nearly always one in each blob
    assert (starts[:, 0].unique().numel()) > 5
    pinned = torch.where(y < 2, y, -1)
    beside = spread_starts(x, 4, 0, 20, class_means(x, pinned), pinned < 0)
    assert (pinned[beside] < 0).all()
    assert sum(len(y[rows].unique()) == 4 for rows in beside) >= 18


def test_small_chunks_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x, _ = blobs(5, 100, 6, 2.0)
    whole = kmeans(x, 5, seed=0, restarts=4)
    monkeypatch.setattr("autonovel.clustering.seeding.BUDGET", 700)
    monkeypatch.setitem(module.BUDGET, "cpu", 1)
    parts = kmeans(x, 5, seed=0, restarts=4)
    assert parts.labels.tolist() == whole.labels.tolist()
    assert parts.inertia == pytest.approx(whole.inertia, rel=1e-6)


@pytest.mark.parametrize(
    ("n", "k", "pinned"), [(3, 4, None), (5, 0, None), (4, 1, [0, 1, -1, -1]), (4, 4, [0, 0, 0, -1])]
)
def test_what_cannot_be_clustered_is_told(n: int, k: int, pinned: list[int] | None) -> None:
    with pytest.raises(ValueError, match="cannot make"):
        kmeans(torch.randn(n, 2), k, seed=0, pinned=None if pinned is None else torch.tensor(pinned))
