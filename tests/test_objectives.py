"""Every objective against its naive-loop oracle, and the oracles against numbers worked out by hand."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from autonovel import objectives, selftest

# Few different values, so that ties, zeros and both zeros are common; float32 has all of them exactly.
VALUES = st.sampled_from([0.0, -0.0, 0.5, 1.0, 1.5, -1.0, -0.5, 3.0e38, -3.0e38, 1e-38, -1e-38, 1e-45, 2.0])


@st.composite
def features(draw: st.DrawFn) -> tuple[Tensor, int]:
    n, d = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    rows = draw(st.lists(st.lists(VALUES, min_size=d, max_size=d), min_size=n, max_size=n))
    return torch.tensor(rows), draw(st.integers(1, d))


@st.composite
def two_views(draw: st.DrawFn) -> dict[str, Tensor]:
    n, c = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    sharpness = draw(st.sampled_from([0.1, 1.0, 10.0]))
    logits, logits_hat = sharpness * torch.randn(2, n, c, generator=rng)
    return {
        "logits": logits,
        "p": logits.softmax(dim=1),
        "p_hat": logits_hat.softmax(dim=1),
        "y": torch.randint(0, c, (n,), generator=rng),
        "s": torch.rand(n, n, generator=rng) < 0.4,
        "w": (torch.rand(n, generator=rng) < draw(st.sampled_from([0.0, 0.5, 1.0]))).float(),
    }


def close(wanted: float) -> object:
    return pytest.approx(wanted, rel=1e-4, abs=1e-6)


# ---------------------------------------------------------------------------------------------------
# pair labels


@given(features(), st.sampled_from(["value", "magnitude"]))
def test_pair_labels_equal_the_oracle(case: tuple[Tensor, int], by: str) -> None:
    z, k = case
    assert objectives.pair_labels(z, k, by).tolist() == selftest.pair_labels(z.tolist(), k, by)


@given(features(), st.sampled_from(["value", "magnitude"]))
def test_top_k_sets_equal_the_oracle(case: tuple[Tensor, int], by: str) -> None:
    z, k = case
    found = [{d for d, member in enumerate(row) if member == 1} for row in objectives.top_k_sets(z, k, by).tolist()]
    assert found == [selftest.top_k_set(row, k, by) for row in z.tolist()]


@pytest.mark.parametrize(
    ("row", "k", "by", "wanted"),
    [
        ([3.0, 1.0, 2.0], 1, "value", {0}),
        ([3.0, 1.0, 2.0], 2, "value", {0, 2}),
        ([3.0, 1.0, 2.0], 3, "value", {0, 1, 2}),
        ([1.0, 1.0, 1.0, 1.0], 2, "value", {0, 1}),  # ties: the lower dimensions
        ([0.0, 5.0, 0.0, 0.0], 3, "value", {0, 1, 2}),  # ReLU zeros tie
        ([0.0, 0.0, 0.0], 2, "value", {0, 1}),
        ([-0.0, 0.0, -0.0], 1, "value", {0}),  # both zeros are one value
        ([0.0, -0.0, 1.0], 2, "value", {0, 2}),
        ([-1.0, -3.0, -2.0], 2, "value", {0, 2}),
        ([-1.0, -3.0, -2.0], 2, "magnitude", {1, 2}),
        ([-4.0, 1.0, 2.0], 1, "value", {2}),
        ([-4.0, 1.0, 2.0], 1, "magnitude", {0}),
        ([2.0, -2.0, 1.0], 1, "magnitude", {0}),
        ([-2.0, 2.0, 1.0], 1, "magnitude", {0}),
        ([1e-45, 0.0, 3e-45], 1, "value", {2}),  # the smallest float32 numbers
        ([3.4e38, 3.3e38, -3.4e38], 1, "value", {0}),
        ([0.0, math.inf, 3.4e38], 2, "value", {1, 2}),
        ([1.0, 1.0000001, 1.0], 1, "value", {1}),  # one step of float32 apart
    ],
)
def test_top_k_set_by_hand(row: list[float], k: int, by: str, wanted: set[int]) -> None:
    assert selftest.top_k_set(row, k, by) == wanted
    found = objectives.top_k_sets(torch.tensor([row]), k, by)
    assert set(found[0].nonzero()[:, 0].tolist()) == wanted
    assert found.sum() == k


def test_pair_labels_by_hand() -> None:
    z = torch.tensor([[9.0, 8.0, 1.0, 0.0], [2.0, 3.0, 0.0, 1.0], [9.0, 0.0, 8.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    # top 2: {0, 1}, {0, 1}, {0, 2}, and for the row of zeros the first two dimensions {0, 1}
    wanted = [
        [True, True, False, True],
        [True, True, False, True],
        [False, False, True, False],
        [True, True, False, True],
    ]
    assert objectives.pair_labels(z, 2).tolist() == wanted
    assert selftest.pair_labels(z.tolist(), 2) == wanted


@given(features(), st.randoms(use_true_random=False))
def test_pair_labels_move_with_the_rows(case: tuple[Tensor, int], random: object) -> None:
    z, k = case
    order = torch.tensor(random.sample(range(len(z)), len(z)))  # type: ignore[attr-defined]
    s = objectives.pair_labels(z, k)
    assert torch.equal(objectives.pair_labels(z[order], k), s[order][:, order])


@given(features(), st.sampled_from(["value", "magnitude"]))
def test_pair_labels_are_an_equivalence(case: tuple[Tensor, int], by: str) -> None:
    s = objectives.pair_labels(*case, by)
    assert torch.equal(s, s.T)
    assert s.diagonal().all()
    assert torch.equal((s.float() @ s.float()) > 0, s)  # i ~ j ~ l means i ~ l


@given(features())
def test_all_pairs_agree_when_k_takes_every_dimension(case: tuple[Tensor, int]) -> None:
    z, _ = case
    assert objectives.pair_labels(z, z.shape[1]).all()


@given(features(), st.integers(-100, 100))
def test_only_the_order_of_features_matters(case: tuple[Tensor, int], exponent: int) -> None:
    z, k = case
    z = z.clamp(-2, 2).double().round(decimals=1)
    scaled = (z * 2.0**exponent).float()  # a power of two: exact
    assert torch.equal(objectives.pair_labels(scaled, k), objectives.pair_labels(z.float(), k))


def test_non_negative_features_rank_alike_by_value_and_magnitude() -> None:
    z = torch.randn(40, 16, generator=torch.Generator().manual_seed(0)).relu()
    assert torch.equal(objectives.pair_labels(z, 3, "value"), objectives.pair_labels(z, 3, "magnitude"))


def test_pair_labels_of_half_precision_features_are_those_of_the_same_numbers() -> None:
    z = torch.randn(30, 8, generator=torch.Generator().manual_seed(1)).bfloat16()
    assert torch.equal(objectives.pair_labels(z, 2), objectives.pair_labels(z.float(), 2))


def test_pair_labels_of_a_view_with_strides() -> None:
    z = torch.randn(16, 30, generator=torch.Generator().manual_seed(2)).T
    assert torch.equal(objectives.pair_labels(z, 2), objectives.pair_labels(z.contiguous(), 2))


# ---------------------------------------------------------------------------------------------------
# groups


@given(st.lists(st.booleans(), min_size=1, max_size=14), st.integers(0, 6))
def test_pairs_in_groups_equal_the_oracle(taken: list[bool], group: int) -> None:
    found = objectives.pairs_in_groups(torch.tensor(taken).float(), group)
    assert found.tolist() == [[float(x) for x in row] for row in selftest.pairs_in_groups(taken, group)]


def test_pairs_in_groups_by_hand() -> None:
    taken = [False, True, True, False, True, False]
    pairs = {(1, 1), (1, 2), (2, 1), (2, 2), (4, 4)}  # rows 1 and 2 are a group of two, row 4 begins the next
    wanted = [[(i, j) in pairs for j in range(6)] for i in range(6)]
    assert selftest.pairs_in_groups(taken, 2) == wanted
    assert (objectives.pairs_in_groups(torch.tensor(taken).float(), 2) > 0).tolist() == wanted


@pytest.mark.parametrize(("group", "count"), [(0, 49), (1, 7), (3, 19), (7, 49), (100, 49)])
def test_group_size_sets_the_number_of_pairs(group: int, count: int) -> None:
    w = torch.tensor([0.0, 1, 1, 1, 1, 1, 1, 1, 0])
    assert objectives.pairs_in_groups(w, group).sum() == count


# ---------------------------------------------------------------------------------------------------
# pairwise binary cross-entropy


@given(two_views(), st.integers(0, 4))
def test_pairwise_bce_equals_the_oracle(case: dict[str, Tensor], group: int) -> None:
    taken = (case["w"] > 0).tolist()
    pairs = objectives.pairs_in_groups(case["w"], group)
    wanted = selftest.pairwise_bce(
        case["p"].tolist(), case["p_hat"].tolist(), case["s"].tolist(), selftest.pairs_in_groups(taken, group)
    )
    assert float(objectives.pairwise_bce(case["p"], case["p_hat"], case["s"], pairs)) == pytest.approx(
        wanted, rel=2e-3, abs=1e-5
    )


def test_pairwise_bce_by_hand() -> None:
    p, q = [[0.8, 0.2], [0.5, 0.5]], [[0.6, 0.4], [0.1, 0.9]]
    # scores <p_i, q_j>: 0.56, 0.26 / 0.5, 0.5; the diagonal is positive, the rest negative
    wanted = -(math.log(0.56) + math.log(1 - 0.26) + math.log(1 - 0.5) + math.log(0.5)) / 4
    assert wanted == pytest.approx(0.566804, abs=1e-6)
    s, pairs = [[True, False], [False, True]], [[True, True], [True, True]]
    assert selftest.pairwise_bce(p, q, s, pairs) == pytest.approx(wanted, abs=1e-6)
    found = objectives.pairwise_bce(torch.tensor(p), torch.tensor(q), torch.tensor(s), torch.ones(2, 2))
    assert float(found) == pytest.approx(wanted, abs=1e-6)


def test_the_first_argument_gives_the_rows_of_the_pairs() -> None:
    p, q = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    pairs = torch.tensor([[0.0, 1.0], [0.0, 0.0]])  # only <p_0, q_1> = 0.2
    found = objectives.pairwise_bce(p, q, torch.ones(2, 2, dtype=torch.bool), pairs)
    assert float(found) == close(-math.log(0.2))


@pytest.mark.parametrize(("same", "wanted"), [(True, 0.0), (False, -math.log(1e-7))])
def test_certain_scores_stay_finite(same: bool, wanted: float) -> None:
    p = torch.tensor([[1.0, 0.0]], requires_grad=True)
    loss = objectives.pairwise_bce(p, p, torch.tensor([[same]]), torch.ones(1, 1))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(wanted, abs=0.2)  # 1e-7 is one step of float32 below 1: 15.9 or 16.1
    assert p.grad is not None and torch.isfinite(p.grad).all()


def test_half_precision_probabilities_are_multiplied_in_float32() -> None:
    p = torch.tensor([[0.96, 0.04]]).bfloat16()
    exact = float((p.double() @ p.double().T)[0, 0])
    found = objectives.pairwise_bce(p, p, torch.tensor([[False]]), torch.ones(1, 1))
    assert found.dtype == torch.float32
    assert float(found) == pytest.approx(-math.log(1 - exact + 1e-7), rel=1e-3)


def test_gradient_flows_through_both_views() -> None:
    rng = torch.Generator().manual_seed(0)
    logits, logits_hat = torch.randn(2, 5, 3, generator=rng)
    logits.requires_grad_()
    logits_hat.requires_grad_()
    p, p_hat = logits.softmax(dim=1), logits_hat.softmax(dim=1)
    objectives.pairwise_bce(p, p_hat, torch.eye(5, dtype=torch.bool), torch.ones(5, 5)).backward()
    for view in (logits, logits_hat):
        assert view.grad is not None
        assert (view.grad.abs().sum(dim=1) > 1e-4).all()


def test_gradient_of_pairwise_bce_by_hand() -> None:
    p, q = torch.tensor([[0.25]], requires_grad=True), torch.tensor([[0.5]], requires_grad=True)
    objectives.pairwise_bce(p, q, torch.tensor([[True]]), torch.ones(1, 1), eps=0.0).backward()
    assert p.grad is not None and float(p.grad) == close(-1 / 0.25)  # d −log(pq) / dp
    assert q.grad is not None and float(q.grad) == close(-1 / 0.5)


def test_no_gradient_flows_through_labels() -> None:
    z = torch.randn(4, 6, requires_grad=True)
    for labels in (objectives.pair_labels(z, 2), objectives.top_k_sets(z, 2), objectives.pseudo_labels(z, 3)):
        assert not labels.requires_grad


def test_excluded_rows_get_no_gradient_from_pairwise_bce() -> None:
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    pairs = objectives.pairs_in_groups(torch.tensor([0.0, 1, 0, 1]))
    p = logits.softmax(dim=1)
    objectives.pairwise_bce(p, p, torch.eye(4, dtype=torch.bool), pairs).backward()
    assert logits.grad is not None
    assert torch.equal(logits.grad.abs().sum(dim=1) > 0, torch.tensor([False, True, False, True]))


# ---------------------------------------------------------------------------------------------------
# consistency


@given(two_views(), st.sampled_from(["mean", "sum"]))
def test_consistency_equals_the_oracle(case: dict[str, Tensor], over: str) -> None:
    p, p_hat, w = case["p"], case["p_hat"], case["w"]
    taken = (w > 0).tolist()
    wanted = selftest.consistency(p.tolist(), p_hat.tolist(), taken, over)
    assert float(objectives.consistency(p, p_hat, w, over)) == close(wanted)
    everything = selftest.consistency(p.tolist(), p_hat.tolist(), [True] * len(p), over)
    assert float(objectives.consistency(p, p_hat, None, over)) == close(everything)


@pytest.mark.parametrize(
    ("over", "taken", "wanted"),
    [
        # squared differences of the rows: (0.04, 0.04, 0) and (0.25, 0.01, 0.16)
        ("sum", [True, True], (0.08 + 0.42) / 2),
        ("mean", [True, True], (0.08 + 0.42) / 6),
        ("sum", [False, True], 0.42),
        ("mean", [True, False], 0.08 / 3),
        ("sum", [False, False], 0.0),
    ],
)
def test_consistency_by_hand(over: str, taken: list[bool], wanted: float) -> None:
    p, q = [[0.5, 0.3, 0.2], [0.7, 0.2, 0.1]], [[0.3, 0.5, 0.2], [0.2, 0.3, 0.5]]
    assert selftest.consistency(p, q, taken, over) == pytest.approx(wanted, abs=1e-12)
    found = objectives.consistency(torch.tensor(p), torch.tensor(q), torch.tensor(taken).float(), over)
    assert float(found) == close(wanted)


def test_consistency_teaches_both_views() -> None:
    p, q = torch.tensor([[0.9, 0.1]], requires_grad=True), torch.tensor([[0.4, 0.6]], requires_grad=True)
    objectives.consistency(p, q, over_classes="sum").backward()
    assert p.grad is not None and p.grad[0].tolist() == pytest.approx([1.0, -1.0])  # 2 (p − q)
    assert q.grad is not None and q.grad[0].tolist() == pytest.approx([-1.0, 1.0])


# ---------------------------------------------------------------------------------------------------
# cross-entropy and pseudo-labels


@given(two_views())
def test_cross_entropy_equals_the_oracle(case: dict[str, Tensor]) -> None:
    logits, y, w = case["logits"], case["y"], case["w"]
    wanted = selftest.cross_entropy(logits.tolist(), y.tolist(), (w > 0).tolist())
    assert float(objectives.cross_entropy(logits, y, w)) == close(wanted)
    everything = selftest.cross_entropy(logits.tolist(), y.tolist(), [True] * len(y))
    assert float(objectives.cross_entropy(logits, y)) == close(everything)


def test_cross_entropy_by_hand() -> None:
    logits, y = [[math.log(2.0), 0.0, 0.0], [0.0, 0.0, 0.0]], [0, 2]
    # softmax: (1/2, 1/4, 1/4) and thirds
    for taken, wanted in (([True, True], (math.log(2) + math.log(3)) / 2), ([False, True], math.log(3))):
        assert selftest.cross_entropy(logits, y, taken) == pytest.approx(wanted, abs=1e-12)
        found = objectives.cross_entropy(torch.tensor(logits), torch.tensor(y), torch.tensor(taken).float())
        assert float(found) == close(wanted)


@pytest.mark.parametrize("outside", [-1, 3, 10_000, -100])
def test_rows_of_weight_zero_may_carry_any_label(outside: int) -> None:
    logits = torch.randn(3, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    y, w = torch.tensor([0, outside, 2]), torch.tensor([1.0, 0.0, 1.0])
    loss = objectives.cross_entropy(logits, y, w)
    loss.backward()
    wanted = objectives.cross_entropy(logits[[0, 2]], y[[0, 2]])
    assert float(loss.detach()) == close(float(wanted.detach()))
    assert logits.grad is not None
    assert torch.equal(logits.grad[1], torch.zeros(3))
    assert (logits.grad[[0, 2]].abs().sum(dim=1) > 0).all()


def test_pseudo_labels_by_hand() -> None:
    logits = torch.tensor([[0.1, 2.0, -1.0], [3.0, 0.0, 2.9], [-5.0, -6.0, -4.0]])
    assert objectives.pseudo_labels(logits, 5).tolist() == [6, 5, 7]


@pytest.mark.parametrize("name", ["bce", "consistency", "ce"])
def test_an_empty_selection_is_zero_with_finite_gradients(name: str) -> None:
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    p, w = logits.softmax(dim=1), torch.zeros(4)
    loss = {
        "bce": lambda: objectives.pairwise_bce(
            p, p, torch.zeros(4, 4, dtype=torch.bool), objectives.pairs_in_groups(w, 2)
        ),
        "consistency": lambda: objectives.consistency(p, p.flip(0), w),
        "ce": lambda: objectives.cross_entropy(logits, torch.full((4,), -1), w),
    }[name]()
    loss.backward()
    assert float(loss.detach()) == 0
    assert logits.grad is not None and torch.equal(logits.grad, torch.zeros(4, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_losses_are_float32(dtype: torch.dtype) -> None:
    logits = torch.randn(4, 3).to(dtype)
    p = logits.softmax(dim=1)
    assert objectives.cross_entropy(logits, torch.zeros(4, dtype=torch.long)).dtype == torch.float32
    assert objectives.consistency(p, p).dtype == torch.float32
    assert objectives.pairwise_bce(p, p, torch.eye(4) > 0, torch.ones(4, 4)).dtype == torch.float32


# ---------------------------------------------------------------------------------------------------
# ramp


@pytest.mark.parametrize(
    ("t", "length", "wanted"),
    [
        (0.0, 50.0, math.exp(-5)),
        (25.0, 50.0, math.exp(-1.25)),
        (40.0, 50.0, math.exp(-0.2)),
        (50.0, 50.0, 1.0),
        (51.0, 50.0, 1.0),
        (1e6, 50.0, 1.0),
        (0.0, 0.0, 1.0),
        (7.0, 0.0, 1.0),
        (0.5, 1.0, math.exp(-1.25)),
    ],
)
def test_ramp_by_hand(t: float, length: float, wanted: float) -> None:
    assert selftest.ramp(t, length) == pytest.approx(wanted, abs=1e-12)
    assert float(objectives.ramp(torch.tensor(t), length)) == pytest.approx(wanted, rel=1e-6)


@given(st.floats(0, 400), st.just(0.0) | st.floats(0.001, 300))
def test_ramp_equals_the_oracle(t: float, length: float) -> None:
    assert float(objectives.ramp(torch.tensor(t), length)) == close(selftest.ramp(t, length))


def test_ramp_never_falls() -> None:
    values = [float(objectives.ramp(torch.tensor(t / 10), 20.0)) for t in range(250)]
    assert all(a <= b for a, b in pairwise(values))
    assert values[0] == pytest.approx(0.0067379, abs=1e-6) and values[-1] == 1.0


# ---------------------------------------------------------------------------------------------------
# the systems compared with: KCL, MCL, DTC


@given(two_views(), st.integers(0, 4))
def test_kcl_and_mcl_equal_their_oracles(case: dict[str, Tensor], group: int) -> None:
    p, s, pairs = case["p"], case["s"], objectives.pairs_in_groups(case["w"], group)
    plain = p.tolist(), s.tolist(), (pairs > 0).tolist()
    assert float(objectives.kcl(p, s, pairs)) == close(selftest.kcl(*plain))
    assert float(objectives.mcl(p, s, pairs)) == close(selftest.mcl(*plain))


def test_kcl_by_hand() -> None:
    p = torch.tensor([[0.5, 0.5], [0.25, 0.75]])
    kl_01 = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    kl_10 = 0.25 * math.log(0.25 / 0.5) + 0.75 * math.log(0.75 / 0.5)
    off = 1 - torch.eye(2)
    alike, different = torch.ones(2, 2, dtype=torch.bool), torch.zeros(2, 2, dtype=torch.bool)
    assert float(objectives.kcl(p, alike, off)) == close((kl_01 + kl_10) / 2)
    assert float(objectives.kcl(p, different, off)) == close(2 - (kl_01 + kl_10) / 2)
    far = torch.eye(2)  # their divergence is beyond the margin: nothing is left to learn
    assert float(objectives.kcl(far, different, off)) == 0


def test_the_first_of_a_pair_is_a_fixed_target_of_kcl() -> None:
    logits = torch.tensor([[1.0, 0.0], [0.0, 0.5]], requires_grad=True)
    only_01 = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    objectives.kcl(logits.softmax(dim=1), torch.ones(2, 2, dtype=torch.bool), only_01).backward()
    assert logits.grad is not None
    assert bool((logits.grad[0] == 0).all()) and bool((logits.grad[1] != 0).all())


def test_mcl_is_the_pair_loss_of_one_view() -> None:
    p = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).softmax(dim=1)
    s, pairs = torch.rand(5, 5) < 0.5, torch.ones(5, 5)
    assert torch.equal(objectives.mcl(p, s, pairs), objectives.pairwise_bce(p, p, s, pairs))


@given(two_views(), st.sampled_from(["none", "even"]))
def test_pair_cross_entropy_equals_the_oracle(case: dict[str, Tensor], balance: str) -> None:
    n = len(case["p"])
    logits = torch.randn(n, n, 2, generator=torch.Generator().manual_seed(n))
    found = float(objectives.pair_cross_entropy(logits, case["s"], balance))
    assert found == close(selftest.pair_cross_entropy(logits.tolist(), case["s"].tolist(), balance))


def test_balanced_pairs_weigh_both_kinds_alike() -> None:
    logits = torch.zeros(3, 3, 2)
    logits[..., 1] = 4.0  # calls everything the same
    same = torch.eye(3, dtype=torch.bool)
    right, wrong = math.log(1 + math.exp(-4)), math.log(1 + math.exp(4))
    assert float(objectives.pair_cross_entropy(logits, same, "even")) == close((right + wrong) / 2)
    assert float(objectives.pair_cross_entropy(logits, same, "none")) == close((3 * right + 6 * wrong) / 9)
    assert float(objectives.pair_cross_entropy(logits, torch.ones_like(same), "even")) == close(right)


@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 4), st.integers(0, 99))
def test_assignment_and_target_equal_their_oracles(n: int, clusters: int, d: int, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    z, centres = 3 * torch.randn(n, d, generator=rng), 3 * torch.randn(clusters, d, generator=rng)
    q = objectives.student_t((z[:, None] - centres).square().sum(dim=2))
    for got, wanted in ((q, selftest.student_t(z.tolist(), centres.tolist())),
                        (objectives.sharpened(q), selftest.sharpened(q.tolist()))):  # fmt: skip
        assert all(
            row == pytest.approx(other, rel=1e-3, abs=1e-6) for row, other in zip(got.tolist(), wanted, strict=True)
        )


def test_the_target_is_surer_and_never_favours_a_large_cluster() -> None:
    q = torch.tensor([[0.6, 0.4], [0.7, 0.3], [0.8, 0.2]])
    p = objectives.sharpened(q)
    assert bool((p.sum(dim=1) - 1).abs().max() < 1e-6)
    assert p[0].tolist() == pytest.approx(
        [0.36 / 2.1 / (0.36 / 2.1 + 0.16 / 0.9), 0.16 / 0.9 / (0.36 / 2.1 + 0.16 / 0.9)]
    )
    assert p[2, 0] > q[2, 0] and p[0, 0] < q[0, 0]  # the cluster of 2.1 images pulls less than that of 0.9


@given(two_views())
def test_kl_to_target_equals_the_oracle(case: dict[str, Tensor]) -> None:
    q, p = 0.9 * case["p"] + 0.1 / case["p"].shape[1], 0.9 * case["p_hat"] + 0.1 / case["p"].shape[1]
    found = float(objectives.kl_to_target(q, p))
    assert found == pytest.approx(selftest.kl_to_target(q.tolist(), p.tolist()), rel=1e-3, abs=1e-6)
    assert found >= -1e-6 and float(objectives.kl_to_target(p, p)) == pytest.approx(0, abs=1e-7)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.sampled_from([0.0, 0.6, 0.9]))
def test_running_averages_equal_the_oracle_and_have_no_bias(history: list[float], momentum: float) -> None:
    average, ones = torch.zeros(1), torch.zeros(1)
    for value in history:
        average = objectives.running_average(average, torch.tensor([value]), momentum)
        ones = objectives.running_average(ones, torch.ones(1), momentum)
    assert float(average) == pytest.approx(selftest.running_average(history, momentum), abs=1e-6)
    assert float(ones / (1 - momentum ** len(history))) == pytest.approx(1, abs=1e-5)


# ---------------------------------------------------------------------------------------------------
# the self-test itself


def test_the_self_test_passes_here() -> None:
    found = selftest.check(torch.device("cpu"))
    assert len(found) == 17
    assert all(found.values()), found


@pytest.mark.parametrize(
    ("objective", "checks"),
    [
        ("pair_labels", {"pair labels", "pair labels by magnitude"}),
        ("pairs_in_groups", {"pairs in groups"}),
        ("pairwise_bce", {"pairwise BCE"}),
        ("consistency", {"consistency (mean)", "consistency (sum)"}),
        ("cross_entropy", {"cross-entropy"}),
        ("pseudo_labels", {"pseudo-labels"}),
        ("ramp", {"ramp"}),
        ("kcl", {"KCL"}),
        ("mcl", {"MCL"}),
        ("pair_cross_entropy", {"similarity of pairs"}),
        ("student_t", {"Student-t assignment"}),
        ("sharpened", {"sharpened target"}),
        ("kl_to_target", {"KL to the target"}),
        ("running_average", {"running average"}),
    ],
)
def test_the_self_test_notices_a_wrong_objective(
    monkeypatch: pytest.MonkeyPatch, objective: str, checks: set[str]
) -> None:
    right = getattr(objectives, objective)

    def wrong(*args: object) -> Tensor:
        out = right(*args)
        return ~out if out.dtype == torch.bool else out + 1

    monkeypatch.setattr(objectives, objective, wrong)
    found = selftest.check(torch.device("cpu"))
    assert checks <= {name for name, right in found.items() if not right}
