"""How many new classes: every shortcut against the long way, and the long way against plain loops."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import silhouette_score
from torch import Tensor

from autonovel.clustering import kmeans, search
from autonovel.clustering.count import Points, candidates, estimate, sweep
from autonovel.clustering.kmeans import class_means
from autonovel.clustering.metric import class_metric
from autonovel.clustering.seeding import spread_starts
from autonovel.clustering.validity import Silhouette
from autonovel.counting.features import without
from autonovel.counting.probes import Probes, choose_probes, probe_sets
from autonovel.data import ImageSet
from autonovel.errors import InputError, UsageError
from autonovel.evaluation import accuracy
from autonovel.settings import Count, Pretrain, Recipe


def blobs(classes: int, each: int, seed: int, spread: float = 1.0, d: int = 12) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    middles = 3 * torch.randn(classes, d, generator=rng)
    y = torch.arange(classes).repeat_interleave(each)
    return middles[y] + spread * torch.randn(len(y), d, generator=rng), y


def with_probes(new: int, seed: int, each: int = 40) -> Points:
    """Five probe classes, three of them anchors, beside unlabelled images of ``new`` classes."""
    x, y = blobs(5 + new, each, seed)
    return Points(x, torch.where(y < 5, y, -1), (0, 1, 2))


def without_probes(new: int, seed: int, each: int = 40) -> Points:
    x, y = blobs(new, each, seed)
    return Points(x, torch.full_like(y, -1))


# --- the silhouette ------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), k=st.integers(2, 9))
def test_silhouette_is_that_of_scikit_learn(seed: int, k: int) -> None:
    x, _ = blobs(4, 15, seed, 2.0)
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, k, (len(x),), generator=rng)
    labels[:2] = torch.tensor([0, 1])
    labels[labels == 1] = 0
    labels[1] = 1  # a cluster of one point has silhouette 0
    assert Silhouette(x, 1000, 0)(labels) == pytest.approx(silhouette_score(x.numpy(), labels.numpy()), abs=1e-5)


def test_a_sample_of_points_estimates_the_silhouette_of_all() -> None:
    x, y = blobs(5, 300, 1)
    labels = torch.where(y == 4, 3, y)
    whole = Silhouette(x, 10**6, 0)(labels)
    parts = [Silhouette(x, 200, seed)(labels) for seed in range(40)]
    assert sum(parts) / 40 == pytest.approx(whole, abs=0.005)
    assert len(set(parts)) > 30  # drawn anew with each seed
    assert len(Silhouette(x, 200, 0).rows) == 200


def test_one_cluster_has_the_lowest_silhouette() -> None:
    assert Silhouette(torch.randn(5, 2), 10, 0)(torch.zeros(5, dtype=torch.int64)) == -1


# --- the search ----------------------------------------------------------------------------------------------------


@given(top=st.integers(2, 100), left=st.floats(0.2, 3.0), right=st.floats(0.2, 3.0))
def test_search_finds_the_top_of_a_hill(top: int, left: float, right: float) -> None:
    calls: list[tuple[int, int]] = []

    def evaluate(c: int, restarts: int) -> tuple[float, ...]:
        calls.append((c, restarts))
        return (-abs(c - top) * (left if c < top else right),)

    found = search.coarse_to_fine(range(2, 101), evaluate, 10, 2)
    assert search.top(search.curves(found)[0]) == top
    assert len(calls) == len(set(calls)) <= 45  # of 99, and none twice
    assert {restarts for c, restarts in calls if c in found} >= {10}


@given(edge=st.integers(2, 60), peak=st.integers(2, 60))
def test_search_takes_the_largest_of_equals_on_each_curve(edge: int, peak: int) -> None:
    def evaluate(c: int, restarts: int) -> tuple[float, ...]:
        return -float(abs(c - peak)), 1.0 if c <= edge else 0.5 - c / 1000

    found = search.curves(search.coarse_to_fine(range(2, 61), evaluate, 10, 2))
    assert [search.top(curve) for curve in found] == [peak, edge]


def test_a_second_peak_that_is_rough_below_but_decides_is_looked_at() -> None:
    """With few restarts the wrong peak is a little higher; with all of them, the right one."""

    def evaluate(c: int, restarts: int) -> tuple[float, ...]:
        far = 1.0 if restarts == 2 else 0.9
        return (max(0.95 - 0.1 * abs(c - 5), far - 0.05 * abs(c - 30)),)

    found = search.coarse_to_fine(range(2, 61), evaluate, 10, 2)
    assert search.top(search.curves(found)[0]) == 5


def test_a_top_at_the_edge_of_what_was_looked_at_is_followed() -> None:
    """With few restarts the hill seems to be elsewhere: from there the deciding values rise to the right place."""

    def evaluate(c: int, restarts: int) -> tuple[float, ...]:
        return (-float(abs(c - (20 if restarts == 2 else 31))),)

    found = search.curves(search.coarse_to_fine(range(2, 61), evaluate, 10, 2))[0]
    assert search.top(found) == 31 and {29, 30, 31, 32, 33} <= found.keys()


def test_the_least_count_that_is_good_enough_is_looked_for_all_the_way_down() -> None:
    asked: list[int] = []

    def enough(c: int) -> bool:
        asked.append(c)
        return c >= 8 or c == 5

    assert search.least(24, range(2, 61), enough) == 8
    assert asked == list(range(23, 6, -1))
    assert search.least(9, range(8, 61), lambda _: True) == 8


def test_a_second_peak_is_told_where_it_is_nearly_as_high() -> None:
    groups_and_classes = {2: 0.089, 3: 0.081, 4: 0.076, 5: 0.077, 6: 0.062, 10: 0.043, 100: 0.015}
    assert search.second_peak(groups_and_classes) == 5
    assert search.second_peak(groups_and_classes | {4: 0.055, 5: 0.06}) is None  # too low
    assert search.second_peak({c: 1 / c for c in range(2, 30)}) is None
    assert search.second_peak({c: -abs(c - 7) for c in range(2, 30)}) is None


def test_the_grid_covers_the_range_and_small_counts_one_by_one() -> None:
    assert search.grid(range(2, 31)) == [2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 30]
    assert search.grid(range(0, 2)) == [0, 1]
    with pytest.raises(UsageError, match="no candidate"):
        search.grid(range(2, 2))


@pytest.mark.parametrize("errors", [0.0, 1.0, 40.0])
@pytest.mark.parametrize("make", [without_probes, with_probes])
@pytest.mark.parametrize(("new", "seed"), [(3, 0), (5, 1), (8, 2), (12, 3)])
def test_search_and_every_count_give_the_same(
    make: Callable[[int, int], Points], new: int, seed: int, errors: float
) -> None:
    points = make(new, seed)
    quick = sweep(points, Count(most=30, standard_errors=errors), seed)
    long = sweep(points, Count(most=30, standard_errors=errors, search="exhaustive"), seed)
    assert (quick.number, quick.candidate, quick.tops) == (long.number, long.candidate, long.tops)
    assert {c: long.index[c] for c in quick.index} == quick.index  # the very same clusterings
    assert len(long.index) == len(candidates(points, Count(most=30)))
    if make is without_probes and not errors:
        assert abs(quick.number - new) <= 1


# --- the estimate --------------------------------------------------------------------------------------------------


def test_the_exhaustive_count_is_what_plain_loops_find() -> None:
    points, settings, seed = with_probes(4, 5, each=25), Count(most=12, search="exhaustive", sample=10**6), 7
    x, pinned = points.x, points.pinned
    assert pinned is not None
    free = [row for row in range(len(x)) if int(pinned[row]) < 0]
    validation = [row for row in free if int(points.probe[row]) >= 0]
    starts = spread_starts(x, 12 + 2, seed, 10, class_means(x, pinned), pinned < 0)
    index, right = {}, {}
    for c in range(0, 13):
        labels = kmeans(x, c + 5, seed=seed, pinned=pinned, starts=starts).labels
        index[c] = silhouette_score(x[free].numpy(), labels[free].numpy())
        right[c] = accuracy(points.probe[validation].numpy(), labels[validation].numpy())
    tops = [max(c for c in curve if curve[c] == max(curve.values())) for curve in (index, right)]
    candidate = math.ceil(sum(tops) / 2)
    labels = kmeans(x, candidate + 5, seed=seed, pinned=pinned, starts=starts).labels
    sizes = [int((labels[points.probe < 0] == cluster).sum()) for cluster in range(candidate + 5)]
    found = sweep(points, settings, seed)
    assert found.tops == tuple(tops)
    assert found.candidate == candidate
    probes = [int((labels[points.probe >= 0] == cluster).sum()) for cluster in range(candidate + 5)]
    large = [size > 0.01 * max(sizes) for size in sizes]
    assert found.number == sum(ok and size > p for ok, size, p in zip(large, sizes, probes, strict=True))
    assert sweep(points, replace(settings, majority=False), seed).number == sum(large)
    assert found.index == pytest.approx(index, abs=1e-5)
    assert found.accuracy == pytest.approx(right)


def test_stray_images_in_the_cluster_of_a_probe_are_no_class() -> None:
    """Three unlabelled images lie among the images of an anchor: the published rule counts its cluster."""
    x, y = blobs(8, 60, 4, 0.4)
    probe = torch.where(y < 5, y, -1)
    probe[:3] = -1
    points = Points(x, probe, (0, 1, 2))
    settings = Count(most=3, search="exhaustive")
    found, published = sweep(points, settings, 0), sweep(points, replace(settings, majority=False), 0)
    assert found.candidate == 3
    assert (found.number, published.number) == (3, 4)


def test_clusters_that_are_too_small_do_not_count() -> None:
    x, _ = blobs(4, 200, 11, 0.3)
    far = 40 + torch.randn(2, x.shape[1], generator=torch.Generator().manual_seed(0))
    points = Points(torch.cat([x, far]), torch.full((len(x) + 2,), -1))
    assert sweep(points, Count(most=20, size_ratio=0.0), 0).number == sweep(points, Count(most=20), 0).candidate
    at_five = Count(most=5, search="exhaustive")
    found = sweep(points, at_five, 0)
    assert (found.candidate, found.number) in ((5, 4), (2, 1))  # two far points are a cluster, but no class


def test_the_range_comes_from_halves_and_holds_the_estimate() -> None:
    points = without_probes(5, 3, each=60)
    told: list[int] = []
    found = estimate(points, Count(most=20, halves=5), 0, told.append)
    assert len(found.halves) == 5
    assert found.low == min(found.number, *found.halves) and found.high == max(found.number, *found.halves)
    assert found.low <= found.number == 5 <= found.high
    assert told == list(range(1, len(told) + 1))
    assert estimate(points, Count(most=20, halves=0), 0).halves == ()


def test_halves_keep_all_probes_and_share_no_image() -> None:
    points = with_probes(3, 0, each=10)
    rows = torch.randperm(30)
    one, two = points.half(rows[:15]), points.half(rows[15:])
    for part in (one, two):
        assert torch.equal(part.probe[part.probe >= 0], points.probe[points.probe >= 0])
        assert int((part.probe < 0).sum()) == 15
    seen = torch.cat([part.x[part.probe < 0] for part in (one, two)])
    assert torch.equal(seen.sort(dim=0).values, points.x[points.probe < 0].sort(dim=0).values)


@pytest.mark.parametrize("n", [4, 5, 7, 9])
def test_few_images_are_counted_and_halves_too_small_are_left_out(n: int) -> None:
    found = estimate(Points.unlabelled(torch.randn(n, 2)), Count(halves=4), 0)
    assert 2 <= found.number <= n // 2 and len(found.halves) == (4 if n // 2 >= 4 else 2 if n == 7 else 0)


def test_too_few_images_to_count_in_are_told() -> None:
    with pytest.raises(InputError, match="too few to count"):
        sweep(Points(torch.randn(3, 2), torch.full((3,), -1)), Count(), 0)


# --- features and probes -------------------------------------------------------------------------------------------


def test_in_the_metric_directions_of_no_class_hide_nothing() -> None:
    """Classes differ a little in six directions; images of every class differ a lot in a seventh."""
    rng = torch.Generator().manual_seed(0)
    y = torch.arange(9).repeat_interleave(50)
    middles = torch.cat([3 * torch.randn(9, 6, generator=rng), torch.zeros(9, 1)], dim=1)
    x = middles[y] + torch.randn(len(y), 7, generator=rng) * torch.tensor([0.5] * 6 + [60.0])
    known = torch.where(y < 4, y, -1)
    found = class_metric([x], known, 0.0)
    free = known < 0
    plain = kmeans(x[free], 5, seed=0).labels
    measured = kmeans(found[free], 5, seed=0).labels
    assert accuracy(y[free].numpy(), plain.numpy()) < 0.5 < 0.8 < accuracy(y[free].numpy(), measured.numpy())
    torch.testing.assert_close(found.norm(dim=1), torch.ones(len(x)))


def test_the_metric_does_not_depend_on_the_scale_of_a_part_nor_on_labels_of_new_classes() -> None:
    x, y = blobs(6, 20, 0)
    z = torch.randn(len(x), 4, generator=torch.Generator().manual_seed(1))
    known = torch.where(y < 3, y, -1)
    one, two = class_metric([x, z], known, 0.1), class_metric([100 * x + 5, z - 3], known, 0.1)
    torch.testing.assert_close(one @ one.T, two @ two.T, atol=1e-4, rtol=1e-4)
    assert torch.isfinite(class_metric([torch.zeros(len(x), 3)], known, 0.1)).all()


def test_the_directions_kept_are_those_of_discriminant_analysis() -> None:
    x, y = blobs(6, 30, 5, 1.5)
    known = torch.where(y < 4, y, -1)
    found = class_metric([x], known, 0.0, apart=3)
    a = x[known >= 0].double().numpy()
    labels = known[known >= 0].numpy()
    means = np.stack([a[labels == number].mean(axis=0) for number in range(4)])
    inside = a - means[labels]
    values, vectors = np.linalg.eigh(inside.T @ inside / len(a))
    whitening = vectors / np.sqrt(values)
    apart = (means - means.mean(axis=0)) @ whitening
    directions = np.linalg.svd(apart)[2][:3].T
    wanted = (x.double().numpy() - x.double().numpy().mean(axis=0)) @ whitening @ directions
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    assert found.shape == (180, 3)
    np.testing.assert_allclose((found @ found.T).numpy(), wanted @ wanted.T, atol=1e-3)
    assert torch.equal(class_metric([x], known, 0.1, apart=12), class_metric([x], known, 0.1))


@given(n_known=st.integers(2, 200), share=st.floats(0, 0.9), anchors=st.floats(0, 0.9), seed=st.integers(0, 99))
def test_probes_leave_classes_to_teach_and_classes_to_find(
    n_known: int, share: float, anchors: float, seed: int
) -> None:
    found = choose_probes(n_known, Count(probe_share=share, anchor_share=anchors), seed)
    if n_known < 6 or share == 0:
        assert found == Probes()
        return
    assert 4 <= len(found.classes) <= n_known - 2
    assert len(set(found.classes)) == len(found.classes) and set(found.classes) <= set(range(n_known))
    assert len(found.classes) - len(found.anchors) >= 2
    assert found == choose_probes(n_known, Count(probe_share=share, anchor_share=anchors), seed)


def test_the_published_numbers_of_probes_and_anchors() -> None:
    found = choose_probes(80, Count(), 0)
    assert (len(found.classes), len(found.anchors)) == (10, 6)
    assert found.classes != choose_probes(80, Count(), 1).classes


@pytest.mark.parametrize(
    ("told", "remedy"),
    [({"kind": "prototypical"}, "pretrain.held_out"), ({"kind": "rotation", "label_weight": 0.5}, "label_weight=0")],
)
def test_classes_whose_labels_stage_1_learned_play_no_new_ones(
    told: dict[str, Any], remedy: str, make_images: Callable[..., ImageSet]
) -> None:
    images, settings = make_images(labelled=24, n_known=8), Recipe(pretrain=Pretrain(**told))
    with pytest.raises(UsageError, match=f"learns from the labels of known classes.*{remedy}.*count.probe_share=0"):
        probe_sets(images, settings, 0)
    assert probe_sets(images, replace(settings, count=Count(probe_share=0.0)), 0) == [Probes()]
    assert probe_sets(images, replace(settings, pretrain=Pretrain(kind="weights", label_weight=0.5)), 0)[0].classes
    assert probe_sets(make_images(), settings, 0) == [Probes()], "of two known classes none would play a new one"


def test_classes_held_out_play_new_ones_where_stage_1_was_not_told_them(make_images: Callable[..., ImageSet]) -> None:
    images = replace(make_images(labelled=24, n_known=8), class_names=tuple(f"{c}/{n}" for c in "ab" for n in range(4)))
    count = Count(probes="held-out")
    found = probe_sets(images, Recipe(count=count, pretrain=Pretrain(kind="prototypical", held_out=("b",))), 0)
    assert [sorted(chosen.classes) for chosen in found] == [[4, 5, 6, 7]]
    with pytest.raises(UsageError, match="learns from the labels of known classes"):  # of all of them
        probe_sets(images, Recipe(count=count, pretrain=Pretrain(label_weight=1.0, held_out=("b",))), 0)


def test_hidden_classes_are_hidden_and_the_others_numbered_anew(make_images: Callable[..., ImageSet]) -> None:
    images = make_images(labelled=12, unlabelled=4, n_known=4)
    rest = without(images, (0, 2))
    assert rest.class_names == ("known-1", "known-3")
    assert rest.y.tolist() == [{1: 0, 3: 1}.get(label, -1) for label in images.y.tolist()]
    assert rest.truth is None and rest.images is images.images
    assert without(images, ()).y.tolist() == images.y.tolist()


@pytest.mark.parametrize("asked", ["1", "0", "-3", "many", "2.5", "10000000"])
def test_a_number_of_classes_that_is_none_is_told(asked: str) -> None:
    with pytest.raises(UsageError, match="whole number from 2 on, or auto"):
        Count(new_classes=asked)
