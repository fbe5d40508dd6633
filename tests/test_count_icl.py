"""The integrated completed likelihood along Ward's tree: against plain loops, and what a count by it says."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from autonovel.clustering import gaussians
from autonovel.clustering.count import Points, estimate, sweep
from autonovel.clustering.gaussians import WardTree
from autonovel.counting.checks import Check, in_a_sentence, stretched
from autonovel.counting.probes import Probes
from autonovel.counting.words import in_words
from autonovel.errors import InputError, UsageError
from autonovel.settings import Count
from autonovel.storage.documents import read_json
from runs import TINY, autonovel

ICL = Count(criterion="icl", halves=0)


def gaussian_classes(sizes: list[int], seed: int, spread: float = 0.5, d: int = 12) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    y = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return 2 * torch.randn(len(sizes), d, generator=rng)[y] + spread * torch.randn(len(y), d, generator=rng), y


def scatter(x: np.ndarray, clusters: list[list[int]]) -> float:
    return sum(float(((x[rows] - x[rows].mean(axis=0)) ** 2).sum()) for rows in clusters)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), n=st.integers(3, 14), d=st.integers(1, 4))
def test_the_tree_and_its_criterion_are_those_of_plain_loops(seed: int, n: int, d: int) -> None:
    points = torch.randn(n, d, generator=torch.Generator().manual_seed(seed))
    tree, x = WardTree(points), points.double().numpy()
    clusters = [[row] for row in range(n)]
    while True:
        k = len(clusters)
        wanted = scatter(x, clusters)
        assert tree.scatter[k - 1] == pytest.approx(wanted, abs=1e-9)
        assert sorted(
            sorted(np.nonzero(tree.labels(k).numpy() == number)[0].tolist()) for number in range(k)
        ) == sorted(map(sorted, clusters))
        if k < n:  # where every point is a cluster nothing is left to take the logarithm of
            twice = -n * d * math.log(wanted / (n * d)) + 2 * sum(len(c) * math.log(len(c) / n) for c in clusters)
            assert tree.icl(range(k, k + 1))[k] * n * d == pytest.approx(twice - k * (d + 1) * math.log(n))
        if k == 1:
            return
        merged = {
            (one, two): scatter(
                x, [c for i, c in enumerate(clusters) if i not in (one, two)] + [clusters[one] + clusters[two]]
            )
            for one, two in itertools.combinations(range(k), 2)
        }
        one, two = min(merged, key=lambda pair: merged[pair])
        clusters = [c for i, c in enumerate(clusters) if i not in (one, two)] + [clusters[one] + clusters[two]]


@pytest.mark.parametrize(
    ("sizes", "seed"), [([20] * 8, 0), ([8, 15, 40, 25, 10, 30], 1), ([12] * 30, 2), ([60, 60], 3), ([500, 300, 20], 4)]
)
def test_round_classes_of_any_number_and_sizes_are_counted(sizes: list[int], seed: int) -> None:
    x, _ = gaussian_classes(sizes, seed)
    found = sweep(Points(x, torch.full((len(x),), -1)), ICL, 0)
    assert found.number == found.candidate == len(sizes) == found.tops[0]
    assert found.criterion == "icl" and not found.accuracy
    assert list(found.index) == list(range(2, min(100, len(x) // 2) + 1))


@given(seed=st.integers(0, 10**6), scale=st.floats(0.01, 100))
@settings(max_examples=10)
def test_neither_scale_nor_place_nor_order_matters(seed: int, scale: float) -> None:
    x, _ = gaussian_classes([9, 14, 7, 11], seed, 1.2)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    free = torch.full((len(x),), -1)
    assert sweep(Points(x, free), ICL, 0).number == sweep(Points(scale * x[order] + 3, free), ICL, 5).number


def test_images_of_known_classes_have_no_part() -> None:
    x, y = gaussian_classes([15] * 9, 4)
    free = y >= 4
    with_known = sweep(Points(x, torch.where(free, -1, y), (0, 1)), ICL, 0)
    assert with_known == sweep(Points(x[free], torch.full((int(free.sum()),), -1)), ICL, 0)
    assert with_known.number == 5


def test_clusters_that_are_too_small_do_not_count() -> None:
    x, _ = gaussian_classes([200, 200, 200], 5, 0.3)
    far = 40 + 0.3 * torch.randn(2, x.shape[1], generator=torch.Generator().manual_seed(0))
    found = sweep(Points(torch.cat([x, far]), torch.full((602,), -1)), ICL, 0)
    assert (found.candidate, found.number) == (4, 3)  # the two far points are a cluster, but no class


def test_images_that_are_all_alike_are_no_error() -> None:
    found = sweep(Points(torch.ones(12, 3), torch.full((12,), -1)), ICL, 0)
    assert found.candidate == 2 and all(math.isfinite(value) for value in found.index.values())


def test_halves_give_a_range_and_too_few_or_too_many_images_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    x, _ = gaussian_classes([30] * 5, 6)
    points = Points(x, torch.full((150,), -1))
    found = estimate(points, Count(criterion="icl", halves=4), 0)
    assert len(found.halves) == 4 and found.low <= found.number == 5 <= found.high
    with pytest.raises(InputError, match="too few to count"):
        sweep(Points(x[:3], torch.full((3,), -1)), ICL, 0)
    monkeypatch.setattr(gaussians, "MOST_POINTS", 149)
    with pytest.raises(UsageError, match=r"each of 150 images .* up to 149"):
        sweep(points, ICL, 0)


def test_a_criterion_without_standard_errors_refuses_them() -> None:
    with pytest.raises(UsageError, match="standard_errors is 1"):
        Count(criterion="icl", standard_errors=1)


# --- known classes that are counted too ----------------------------------------------------------------------------


def check(group: str, true: int, found: int) -> Check:
    return Check(Probes(tuple(range(true)), 0, group), found)


def test_the_range_is_the_estimate_stretched_as_far_as_known_classes_are_off() -> None:
    """20 counted as 25 and 33 as 30: new ones that are counted as 40 may be 32, or 44."""
    checks = [check("Latin", 20, 25), check("Greek", 33, 30)]
    assert stretched(40, 40, 40, checks) == (32, 44)
    assert stretched(40, 30, 41, checks) == (30, 44)  # halves of the images went farther down
    assert stretched(40, 40, 40, [check("", 9, 9)]) == (40, 40)
    assert stretched(41, 41, 41, [check("", 30, 31)]) == (39, 41)
    said = in_a_sentence(checks, 900)
    assert said.startswith("53 of 900 known classes") and "Latin 25 (there are 20), Greek 30 (there are 33)" in said
    content = {"estimate": 40, "low": 32, "high": 44, "halves": [], "true": 45, "checks": [{}]}
    assert in_words(content) == (
        "About 40 new classes, 32 to 44 if it is as far off as that of known classes; there are 45."
    )


def test_a_run_counts_by_it_and_shows_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    quick = ("--set", "count.criterion=icl", "--set", "count.halves=2", "--set", "count.most=15")
    quick += ("--set", "count.directions=2", "--set", "count.shrinkage=1")
    seven = ("--set", 'data.known=["0", "1", "2", "3", "4", "5", "6"]')
    told = autonovel("count", TINY, "--out", run, *seven, *quick)
    assert told.returncode == 0, told.stderr
    content = read_json(run / "count.json")
    assert set(content["tops"]) == {"icl"} and content["anchors"] == []
    assert [point["classes"] for point in content["curve"]] == list(range(2, 16))
    assert all(point["decides"] and math.isfinite(point["icl"]) for point in content["curve"])
    (one,) = content["checks"]
    assert one["true"] == 4 == len(content["probes"]) and one["group"] == ""
    assert content["low"] <= content["estimate"] <= content["high"]
    assert (
        f"4 of 7 known classes taught the count nothing and were counted like the new ones: {one['estimate']}"
        in told.stdout
    )
    assert "completed likelihood (ICL)" in told.stdout and "silhouette" not in told.stdout
    assert "only the 2 directions count" in told.stdout and "distances are scaled" not in told.stdout
    assert (run / "count.png").read_bytes().startswith(b"\x89PNG")
