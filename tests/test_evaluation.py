"""Scores against numbers worked out by hand and against brute force."""

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autonovel import class_tables, evaluation, scoring
from autonovel.data import ImageSet
from autonovel.embedding import Embedding
from autonovel.errors import UsageError
from autonovel.evaluation import MATCHED_EACH, MATCHED_ONCE, PLAIN_OLD

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=25)


@st.composite
def two_labellings(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    truth = draw(LABELS)
    return truth, draw(st.lists(st.integers(0, 4), min_size=len(truth), max_size=len(truth)))


def brute_force_accuracy(truth: list[int], found: list[int]) -> float:
    """Try every one-to-one map from clusters to classes (or from classes to clusters, if there are fewer)."""
    classes, clusters = sorted(set(truth)), sorted(set(found))
    best = 0
    if len(clusters) <= len(classes):
        maps = (dict(zip(clusters, chosen, strict=True)) for chosen in itertools.permutations(classes, len(clusters)))
    else:
        maps = (dict(zip(chosen, classes, strict=True)) for chosen in itertools.permutations(clusters, len(classes)))
    for mapping in maps:
        best = max(best, sum(mapping.get(f) == t for t, f in zip(truth, found, strict=True)))
    return best / len(truth)


# ---------------------------------------------------------------------------------------------------
# confusion, matching, accuracy


def test_confusion_by_hand() -> None:
    counts, classes, clusters = evaluation.confusion([7, 7, 9, 7, 3], [1, 0, 1, 1, 5])
    assert classes.tolist() == [3, 7, 9]
    assert clusters.tolist() == [0, 1, 5]
    assert counts.tolist() == [[0, 0, 1], [1, 2, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("truth", "found", "mapping", "accuracy"),
    [
        ([0, 0, 1, 1], [0, 0, 1, 1], {0: 0, 1: 1}, 1.0),
        ([0, 0, 1, 1], [1, 1, 0, 0], {1: 0, 0: 1}, 1.0),
        ([5, 5, 6, 6], [0, 0, 1, 1], {0: 5, 1: 6}, 1.0),  # classes 5…9 against outputs 0…4
        ([0, 0, 0, 1], [0, 1, 0, 1], {0: 0, 1: 1}, 0.75),
        # greedy would give cluster 0 to class 0 (4 right, then 0): the best is 3 + 3
        ([0, 0, 0, 0, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1, 1, 1], {0: 1, 1: 0}, 0.6),
        # more clusters than classes: cluster 2 stays unmatched and its images are errors
        ([0, 0, 0, 1, 1, 1], [0, 0, 2, 1, 1, 1], {0: 0, 1: 1}, 5 / 6),
        # every image a cluster of its own: one per class counts
        ([0, 0, 0, 1, 1, 1], [0, 1, 2, 3, 4, 5], None, 2 / 6),
        # fewer clusters than classes: class 2 cannot be right
        ([0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 1, 1], None, 4 / 6),
        # one cluster for all: the largest class counts
        ([0, 0, 0, 1, 1, 2], [4, 4, 4, 4, 4, 4], {4: 0}, 0.5),
        ([3], [8], {8: 3}, 1.0),
    ],
)
def test_matching_by_hand(truth: list[int], found: list[int], mapping: dict[int, int] | None, accuracy: float) -> None:
    assert evaluation.accuracy(truth, found) == pytest.approx(accuracy)
    matched = evaluation.matching(truth, found)
    assert mapping is None or matched == mapping
    assert np.mean([matched.get(f) == t for t, f in zip(truth, found, strict=True)]) == pytest.approx(accuracy)


@given(two_labellings())
def test_accuracy_equals_brute_force(case: tuple[list[int], list[int]]) -> None:
    truth, found = case
    assert evaluation.accuracy(truth, found) == pytest.approx(brute_force_accuracy(truth, found))


@given(two_labellings())
def test_matching_is_one_to_one_and_gives_the_accuracy(case: tuple[list[int], list[int]]) -> None:
    truth, found = case
    matched = evaluation.matching(truth, found)
    assert len(set(matched.values())) == len(matched) == min(len(set(truth)), len(set(found)))
    right = [matched.get(f) == t for t, f in zip(truth, found, strict=True)]
    assert np.mean(right) == pytest.approx(evaluation.accuracy(truth, found))


@given(two_labellings(), st.permutations(range(5)), st.permutations(range(5)), st.randoms(use_true_random=False))
def test_scores_do_not_depend_on_names_or_order(
    case: tuple[list[int], list[int]], names: list[int], others: list[int], random: object
) -> None:
    truth, found = case
    rows = list(range(len(truth)))
    random.shuffle(rows)  # type: ignore[attr-defined]
    before = evaluation.score(truth, found).as_dict()
    after = evaluation.score([names[truth[r]] for r in rows], [10 + others[found[r]] for r in rows]).as_dict()
    assert after == pytest.approx(before, abs=1e-9)


@given(LABELS)
def test_a_perfect_clustering_scores_one(truth: list[int]) -> None:
    scores = evaluation.score(truth, [(t + 3) % 5 for t in truth])
    assert scores.as_dict() == pytest.approx({"acc": 1.0, "nmi": 1.0, "ari": 1.0})


# ---------------------------------------------------------------------------------------------------
# NMI and ARI


def test_nmi_and_ari_by_hand() -> None:
    truth, found = [0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1]
    # counts [[2, 1], [0, 3]]; H(truth) = log 2, H(found) = −(1/3) log(1/3) − (2/3) log(2/3)
    mutual = 2 / 6 * math.log((2 / 6) / (1 / 2 * 1 / 3))
    mutual += 1 / 6 * math.log((1 / 6) / (1 / 2 * 2 / 3)) + 3 / 6 * math.log((3 / 6) / (1 / 2 * 2 / 3))
    entropies = math.log(2), -math.log(1 / 3) / 3 - 2 * math.log(2 / 3) / 3
    nmi = mutual / (sum(entropies) / 2)  # the arithmetic mean
    # pairs together in both: 1 + 0 + 0 + 3 = 4; in truth 3 + 3 = 6; in found 1 + 6 = 7; of 15
    ari = (4 - 6 * 7 / 15) / ((6 + 7) / 2 - 6 * 7 / 15)
    assert (nmi, ari) == pytest.approx((0.478704, 0.324324), abs=1e-6)
    scores = evaluation.score(truth, found)
    assert (scores.acc, scores.nmi, scores.ari) == pytest.approx((5 / 6, nmi, ari), abs=1e-9)


def test_independent_labels_score_nothing() -> None:
    rng = np.random.default_rng(0)
    scores = evaluation.score(rng.integers(0, 5, 5000), rng.integers(0, 5, 5000))
    assert abs(scores.ari) < 0.01 and scores.nmi < 0.01
    assert 0.2 <= scores.acc < 0.25


@pytest.mark.parametrize(
    ("truth", "found"), [([], []), ([0, 1], [0]), ([[0, 1]], [[0, 1]]), (0, 0)], ids=["empty", "lengths", "2-d", "0-d"]
)
def test_labellings_that_do_not_fit_are_refused(truth: object, found: object) -> None:
    for measure in (evaluation.score, evaluation.accuracy, evaluation.confusion, evaluation.matching):
        with pytest.raises(ValueError, match="one length"):
            measure(truth, found)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------
# incremental protocols


def test_known_outputs_that_are_exchanged_are_wrong_in_plain_terms_only() -> None:
    # known classes 0, 1; new classes 2, 3
    truth = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    said = [1, 1, 1, 2, 0, 0, 0, 0, 3, 3, 3, 0, 2, 2, 0, 0]
    found = evaluation.incremental(truth, said, n_known=2)

    # Each subset on its own.  Old: outputs 1 → 0 (3 right) and 0 → 1 (4): 7 of 8.
    # New: outputs 3 → 2 (3 right) and 2 → 3 (2) or 0 → 3 (2): 5 of 8.
    # All: counts of outputs 0, 1, 2, 3 by class are 0: 0 3 1 0; 1: 4 0 0 0; 2: 1 0 0 3; 3: 2 0 2 0.
    # Best: 1 → 0 (3), 0 → 1 (4), 3 → 2 (3), 2 → 3 (2): 12 of 16.
    assert found[MATCHED_EACH].as_dict() == pytest.approx({"old": 7 / 8, "new": 5 / 8, "all": 12 / 16})
    assert found[MATCHED_ONCE].as_dict() == pytest.approx({"old": 7 / 8, "new": 5 / 8, "all": 12 / 16})
    # Plain: output 0 means class 0 and output 1 class 1, which is never right; new: 3 → 2 and 2 → 3.
    assert found[PLAIN_OLD].as_dict() == pytest.approx({"old": 0.0, "new": 5 / 8, "all": 5 / 16})


def test_the_most_lenient_protocol_differs_from_one_matching() -> None:
    # known classes 0, 1; new classes 2, 3
    truth = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    said = [0, 0, 0, 1, 2, 2, 2, 2, 2, 1, 1, 3]
    found = evaluation.incremental(truth, said, n_known=2)
    # Old alone: 0 → 0 (3), 2 → 1 (2): 5 of 6.  New alone: 2 → 2 (3), 1 → 3 (2): 5 of 6.
    # All at once: 0 → 0 (3), 2 → 2 (3), then 1 → 3 (2), and 3 → 1 (0); or 1 → 1 (1) and 3 → 3 (1): 8 of 12 both ways.
    each, once, plain = found[MATCHED_EACH], found[MATCHED_ONCE], found[PLAIN_OLD]
    assert (each.old, each.new, each.all) == pytest.approx((5 / 6, 5 / 6, 8 / 12))
    assert once.all == pytest.approx(8 / 12)
    assert (once.old, once.new) in [(3 / 6, 5 / 6), (4 / 6, 4 / 6)]
    # Plain: class 0 has 3 right, class 1 one; new outputs 2 → 2 (3) and 3 → 3 (1).
    assert (plain.old, plain.new, plain.all) == pytest.approx((4 / 6, 4 / 6, 8 / 12))


def test_three_protocols_give_three_numbers() -> None:
    # known classes 0, 1; new class 2
    truth = [0] * 4 + [1] * 4 + [2] * 7
    said = [1, 1, 1, 0, 2, 2, 2, 1, 2, 2, 0, 0, 1, 1, 1]
    found = evaluation.incremental(truth, said, n_known=2)
    # Counts of outputs 0, 1, 2 by class: (1, 3, 0), (0, 1, 3), (2, 3, 2).
    # Old alone: 1 → 0 (3), 2 → 1 (3): 6 of 8.  New alone: one class, its best output 1: 3 of 7.
    # All: 1 → 0 (3), 2 → 1 (3), 0 → 2 (2): 8 of 15, and so 2 of 7 new ones.
    assert found[MATCHED_EACH].as_dict() == pytest.approx({"old": 6 / 8, "new": 3 / 7, "all": 8 / 15})
    assert found[MATCHED_ONCE].as_dict() == pytest.approx({"old": 6 / 8, "new": 2 / 7, "all": 8 / 15})
    # Plain: classes 0 and 1 have one right each, and output 2 is class 2: 2 of 7.
    assert found[PLAIN_OLD].as_dict() == pytest.approx({"old": 2 / 8, "new": 2 / 7, "all": 4 / 15})


def test_a_perfect_joint_classifier_is_perfect_under_every_protocol() -> None:
    truth = [0, 1, 2, 3, 4] * 3
    renamed = [{0: 0, 1: 1, 2: 4, 3: 2, 4: 3}[t] for t in truth]
    for values in evaluation.incremental(truth, renamed, n_known=2).values():
        assert values.as_dict() == {"old": 1.0, "new": 1.0, "all": 1.0}


def test_new_images_that_all_look_known_are_all_wrong_in_plain_terms() -> None:
    found = evaluation.incremental([0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 0, 0], n_known=2)
    assert found[PLAIN_OLD].as_dict() == pytest.approx({"old": 1.0, "new": 0.0, "all": 4 / 6})
    assert found[MATCHED_EACH].new == 1.0  # the lenient protocol calls output 0 a new class


@st.composite
def joint_outputs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    truth = [0, 3, *draw(LABELS)]
    return truth, draw(st.lists(st.integers(0, 4), min_size=len(truth), max_size=len(truth)))


@given(joint_outputs())
def test_protocols_are_ordered_by_leniency(case: tuple[list[int], list[int]]) -> None:
    truth, said = case
    each, once, plain = evaluation.incremental(truth, said, n_known=3).values()
    assert each.old >= once.old - 1e-12 and each.new >= once.new - 1e-12
    assert each.all == pytest.approx(once.all)
    assert once.all >= plain.all - 1e-12
    assert each.old >= plain.old - 1e-12
    share = np.mean([t < 3 for t in truth])
    for values in (once, plain):  # one map for all: the whole is the mean of its parts
        assert values.all == pytest.approx(share * values.old + (1 - share) * values.new)
    assert plain.old == pytest.approx(np.mean([t == s for t, s in zip(truth, said, strict=True) if t < 3]))


@pytest.mark.parametrize("truth", [[0, 1, 1], [2, 3, 3]], ids=["only old", "only new"])
def test_protocols_need_old_and_new_images(truth: list[int]) -> None:
    with pytest.raises(ValueError, match="known and of new"):
        evaluation.incremental(truth, [0, 1, 2], n_known=2)


def test_protocols_are_named_in_the_output() -> None:
    names = list(evaluation.incremental([0, 1], [0, 1], n_known=1))
    assert names == [
        "matched on each subset (published code)",
        "matched once on all",
        "plain on old, matched on new",
    ]


def test_a_grown_head_is_judged_on_the_unlabelled_training_images_beside_the_test_images() -> None:
    """Two known classes and two new ones; of six unlabelled images one is taken for a known class."""
    pixels = torch.zeros(8, 1, 4, 4, dtype=torch.uint8)
    truth, y = torch.tensor([0, 1, 2, 2, 2, 3, 3, 3]), torch.tensor([0, 1, -1, -1, -1, -1, -1, -1])
    images = ImageSet(pixels, y, tuple("abcdefgh"), ("old 0", "old 1"), truth, ("new 0", "new 1"))

    def said(outputs: list[int], width: int = 4) -> Embedding:
        return Embedding(torch.zeros(8, 1), torch.zeros(8, 2), torch.eye(width)[torch.tensor(outputs)])

    on_train, on_test = said([0, 1, 3, 3, 0, 2, 2, 3]), said([0, 1, 3, 3, 3, 2, 2, 2])
    found = scoring.joint_scores(images, on_train, images, on_test)
    assert found is not None and found["split"] == "held-out test images"
    assert found["protocols"][PLAIN_OLD] == {"old": 1.0, "new": 1.0, "all": 1.0}
    assert found["unlabelled"] == {"acc": pytest.approx(4 / 6), "taken_for_known": pytest.approx(1 / 6)}
    astray = scoring.joint_scores(images, said([0, 1, 0, 0, 0, 1, 1, 3]))
    assert astray is not None, "a known class that all of a new one are taken for is no match"
    assert astray["unlabelled"] == {"acc": pytest.approx(1 / 6), "taken_for_known": pytest.approx(5 / 6)}
    assert scoring.joint_scores(images, said([0, 1, 1, 1, 1, 0, 0, 0], width=2)) is None, "no grown head"
    mixed = replace(images, truth=torch.tensor([0, 1, 0, 1, 2, 3, 3, 3]))  # a pile with known classes in it
    told = scoring.joint_scores(mixed, said([0, 1, 0, 0, 2, 3, 3, 3]))
    assert told is not None and told["unlabelled"] == {
        "acc": pytest.approx(5 / 6),
        "taken_for_known": pytest.approx(1 / 6),
    }


def plainly_right(truth: list[int], outputs: list[int], n_known: int) -> float:
    """Try every one-to-one map from new outputs to new classes; known outputs mean their class."""
    new = sorted({t for t in truth if t >= n_known})
    stray = sorted({o for o in outputs if o >= n_known})
    spare = new + [-1] * len(stray)  # an output may stay without a class
    best = 0
    for chosen in itertools.permutations(spare, len(stray)):
        means = dict(zip(stray, chosen, strict=True)) | {number: number for number in range(n_known)}
        best = max(best, sum(means[o] == t for t, o in zip(truth, outputs, strict=True)))
    return best / len(truth)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=25))
def test_known_classes_among_the_unlabelled_images_are_no_match_for_outputs_of_new_ones(
    pile: list[tuple[int, int]],
) -> None:
    truth, outputs = [0, 1, 4, *(one[0] for one in pile)], [0, 1, 4, *(one[1] for one in pile)]
    n, y = len(truth), torch.full((len(truth),), -1)
    y[0], y[1] = 0, 1
    images = ImageSet(
        torch.zeros(n, 1, 2, 2, dtype=torch.uint8), y, tuple(map(str, range(n))), ("a", "b"), torch.tensor(truth)
    )
    said = Embedding(torch.zeros(n, 1), torch.zeros(n, 3), torch.eye(5)[torch.tensor(outputs)])
    told = scoring.joint_scores(images, said)
    assert told is not None
    wrongly = sum(o < 2 and o != t for t, o in zip(truth[2:], outputs[2:], strict=True)) / (n - 2)
    assert told["unlabelled"] == {
        "acc": pytest.approx(plainly_right(truth[2:], outputs[2:], 2)),
        "taken_for_known": pytest.approx(wrongly),
    }


def test_every_class_by_hand() -> None:
    truth = [0, 0, 0, 0, 1, 1, 2]
    found = [5, 5, 6, 7, 6, 6, 5]
    assert evaluation.by_class(truth, found, {5: 0, 6: 1}) == [
        evaluation.OfClass(0, 4, 0.5, {1: 1, None: 1}),
        evaluation.OfClass(1, 2, 1.0, {}),
        evaluation.OfClass(2, 1, 0.0, {0: 1}),
    ]


@given(two_labellings())
def test_classes_add_up_to_the_accuracy(case: tuple[list[int], list[int]]) -> None:
    truth, found = case
    rows = evaluation.by_class(truth, found, evaluation.matching(truth, found))
    assert sum(row.images for row in rows) == len(truth)
    assert sum(row.right * row.images for row in rows) / len(truth) == pytest.approx(evaluation.accuracy(truth, found))
    for row in rows:
        assert row.number not in row.taken_for
        assert sum(row.taken_for.values()) == pytest.approx((1 - row.right) * row.images)


def test_classes_of_images_whose_truth_nobody_knows_are_refused() -> None:
    images = ImageSet(torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.tensor([0, -1]), ("a", "b"), ("x",))
    said = Embedding(torch.zeros(2, 1), torch.eye(2), torch.eye(2))
    with pytest.raises(UsageError, match=r"nobody has told those of the images of runs/mine.*--truth FILE"):
        class_tables.of_run(Path("runs/mine"), images, said, None, None)
    nothing_new = replace(said, p_new=torch.zeros(2, 0), p_known=torch.ones(2, 1))
    with pytest.raises(UsageError, match="runs/mine has none"):
        class_tables.of_run(Path("runs/mine"), images, nothing_new, None, None)
