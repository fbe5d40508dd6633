"""Learning rates, guards, optimisers and checkpoints."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F
from torch.optim import Optimizer

from autonovel import draws, networks
from autonovel.errors import RunFolderError, UsageError
from autonovel.networks import Model, heads
from autonovel.settings import Pretrain, Stage, Supervised
from autonovel.training import checkpoint, guard, optimisers
from autonovel.training.schedules import learning_rate

# ---------------------------------------------------------------------------------------------------
# learning rates


def at_epoch(s: Stage, epoch: int, steps: int = 10, row: int = 0) -> float:
    return learning_rate(s, epoch * steps + row, steps)


@pytest.mark.parametrize("row", [0, 9])
@pytest.mark.parametrize(
    ("stage", "epoch", "wanted"),
    [
        (Stage(schedule="constant", lr=0.3), 0, 0.3),
        (Stage(schedule="constant", lr=0.3), 199, 0.3),
        (Stage(), 169, 0.1),
        (Stage(), 170, 0.01),
        (Stage(), 199, 0.01),
        (Stage(schedule_ahead=1), 168, 0.1),  # the published code: 169 epochs at 0.1, then 31 at 0.01
        (Stage(schedule_ahead=1), 169, 0.01),
        (Stage(schedule_ahead=1), 199, 0.01),
        (Supervised(), 9, 0.1),
        (Supervised(), 10, 0.05),
        (Supervised(), 35, 0.0125),
        (Supervised(schedule_ahead=1), 8, 0.1),  # the published code: 9 epochs at 0.1, then 10 each
        (Supervised(schedule_ahead=1), 9, 0.05),
        (Supervised(schedule_ahead=1), 18, 0.05),
        (Supervised(schedule_ahead=1), 19, 0.025),
        (Pretrain(), 59, 0.1),
        (Pretrain(), 60, 0.02),
        (Pretrain(), 120, 0.004),
        (Pretrain(), 160, 0.0008),
        (Pretrain(epochs=201), 200, 0.00016),
        (Pretrain(schedule_ahead=1), 58, 0.1),
        (Pretrain(schedule_ahead=1), 59, 0.02),
        (Pretrain(schedule_ahead=1), 119, 0.004),
        (Stage(schedule="multistep", decay_at=(), lr=0.2), 150, 0.2),
    ],
    ids=lambda value: f"{value.schedule}" if isinstance(value, Stage) else str(value),
)
def test_rates_that_are_constant_inside_an_epoch(stage: Stage, epoch: int, wanted: float, row: int) -> None:
    assert at_epoch(stage, epoch, row=row) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    ("step", "wanted"),
    [(0, 0.0), (15, 0.1), (30, 0.2), (65, 0.1), (99, 0.2 / 70), (100, 0.0)],  # 10 epochs of 10 steps, peak at 30
)
def test_one_cycle_rises_to_the_peak_and_falls_to_zero(step: int, wanted: float) -> None:
    s = Stage(schedule="one-cycle", lr=0.2, epochs=10, peak_at=0.3)
    assert learning_rate(s, step, 10) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(("peak_at", "first", "last"), [(0.0, 0.2, 0.002), (1.0, 0.0, 0.198)])
def test_one_cycle_with_its_peak_at_an_end(peak_at: float, first: float, last: float) -> None:
    s = Stage(schedule="one-cycle", lr=0.2, epochs=10, peak_at=peak_at)
    assert learning_rate(s, 0, 10) == pytest.approx(first, abs=1e-12)
    assert learning_rate(s, 99, 10) == pytest.approx(last, abs=1e-12)


@pytest.mark.parametrize(
    ("tail", "step", "wanted"),
    [
        (0.2, 0, 0.1),
        (0.2, 80, 0.1),
        (0.2, 90, 0.05),
        (0.2, 99, 0.005),
        (1.0, 0, 0.1),
        (1.0, 50, 0.05),
        (0.0, 99, 0.1),
    ],
)
def test_tail_holds_and_then_falls(tail: float, step: int, wanted: float) -> None:
    s = Stage(schedule="tail", lr=0.1, epochs=10, tail=tail)
    assert learning_rate(s, step, 10) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(
    ("warmup", "step", "wanted"),
    [(2.0, 0, 0.005), (2.0, 9, 0.05), (2.0, 19, 0.1), (2.0, 20, 0.1), (0.5, 0, 0.02), (0.5, 4, 0.1), (0.0, 0, 0.1)],
)
def test_warm_up_rises_over_its_epochs(warmup: float, step: int, wanted: float) -> None:
    assert learning_rate(Stage(warmup_epochs=warmup), step, 10) == pytest.approx(wanted, abs=1e-12)


def test_warm_up_multiplies_the_schedule() -> None:
    s = Stage(schedule="tail", tail=1.0, epochs=10, lr=1.0, warmup_epochs=5)
    assert learning_rate(s, 24, 10) == pytest.approx(0.76 * 0.5)


SCHEDULES = ["constant", "step", "multistep", "one-cycle", "tail"]


@given(
    st.sampled_from(SCHEDULES),
    st.integers(1, 30),
    st.integers(1, 20),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 5),
)
def test_rates_stay_between_zero_and_the_peak(
    schedule: str, epochs: int, steps: int, peak_at: float, tail: float, warmup: float
) -> None:
    s = Stage(
        schedule=schedule, epochs=epochs, lr=0.3, peak_at=peak_at, tail=tail, warmup_epochs=warmup,
        decay_every=3, decay_at=(2, 7),
    )  # fmt: skip
    rates = [learning_rate(s, step, steps) for step in range(epochs * steps)]
    assert all(0 <= rate <= 0.3 + 1e-9 for rate in rates)


# ---------------------------------------------------------------------------------------------------
# guards


@pytest.mark.parametrize(
    ("usage", "wanted"),
    [
        ([1.0, 0.0, 0.0], 0.0),
        ([0.25, 0.25, 0.25, 0.25], 1.0),
        ([5.0, 5.0], 1.0),  # counts as well as shares
        ([0.5, 0.5, 0.0, 0.0], 0.5),  # one of two bits
        ([0.75, 0.25], 0.811278),
        ([3.0], 0.0),
    ],
)
def test_usage_entropy_by_hand(usage: list[float], wanted: float) -> None:
    assert guard.usage_entropy(torch.tensor(usage)) == pytest.approx(wanted, abs=1e-5)


@given(st.lists(st.floats(0.001, 1), min_size=2, max_size=8), st.randoms(use_true_random=False))
def test_usage_entropy_does_not_depend_on_order_or_scale(usage: list[float], random: object) -> None:
    other = [3 * x for x in random.sample(usage, len(usage))]  # type: ignore[attr-defined]
    a, b = (guard.usage_entropy(torch.tensor(x)) for x in (usage, other))
    assert a == pytest.approx(b, abs=1e-6)
    assert 0 <= a <= 1 + 1e-9


@pytest.mark.parametrize(("bad", "word"), [(math.nan, "nan"), (math.inf, "beyond"), (-math.inf, "beyond")])
def test_a_loss_that_is_not_finite_is_named(bad: float, word: str) -> None:
    said = guard.ruined({"loss/ce": 0.5, "loss/bce": bad}, {"loss/bce": 17}, {"model.w": 1.0})
    assert said is not None
    assert "no longer a finite number" in said and f"loss/bce is {'not' if word == 'nan' else word}" in said
    assert "since step 17" in said and "loss/ce" not in said and "tensor" not in said


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_weights_that_are_not_finite_are_named(bad: float) -> None:
    said = guard.ruined({"loss/ce": 0.5}, {}, {"model.a": 1.0, "model.b": bad, "optimiser.m.b": bad})
    assert said is not None and "2 tensors (model.b, optimiser.m.b)" in said and "loss" not in said


def test_finite_numbers_that_no_sound_training_has_are_told() -> None:
    assert guard.ruined({"loss/ce": 1e30}, {}, {"model.a": 1e30}) is None
    assert "loss/ce is 2e+05" in (guard.diverged({"loss/ce": 2e5, "loss/bce": 1.0}, {}) or "")
    assert "1 tensor (model.a)" in (guard.diverged({"loss/ce": 1.0}, {"model.a": 1e7, "model.b": 50.0}) or "")
    assert guard.diverged({"loss/ce": 30.0}, {"model.a": 300.0}) is None


@pytest.mark.parametrize(
    "usage", [[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0], [0.9993, 0.0007, 0.0, 0.0], [0.0, 0.0, 500.0]]
)
def test_a_collapse_is_said(usage: list[float]) -> None:
    said = guard.collapsed(torch.tensor(usage))
    assert said is not None
    share = 100 * max(usage) / sum(usage)
    assert "collapsed" in said and f"{share:.1f} %" in said


@pytest.mark.parametrize("usage", [[0.2] * 5, [0.9, 0.1], [0.97, 0.03, 0.0, 0.0, 0.0], [0.99, 0.01], [1.0], None])
def test_a_healthy_epoch_is_let_pass(usage: list[float] | None) -> None:
    assert guard.collapsed(None if usage is None else torch.tensor(usage)) is None
    assert guard.ruined({"loss/ce": 0.0, "loss/bce": 15.9}, {}, {}) is None


@given(st.lists(st.lists(st.sampled_from([0.0, 0.01, 0.4, 1.0]), min_size=3, max_size=3), max_size=6))
def test_a_class_vanishes_once(history: list[list[float]]) -> None:
    """Each class is told of at most once in a run: one that was there and is empty, for long or in the end."""
    ends = len(history)
    told = [c for n in range(ends + 1) for c in guard.vanished(history[:n], n == ends)]

    def stays_empty(c: int, now: int) -> bool:
        empty = range(now, min(now + guard.PATIENCE, ends))
        was_there = any(history[e][c] >= 1 / 6 for e in range(now))
        return was_there and not any(history[e][c] for e in empty)

    assert sorted(told) == [c for c in range(3) if any(stays_empty(c, now) for now in range(ends))]


def test_a_class_that_never_was_there_cannot_vanish() -> None:
    assert guard.vanished([[0.9, 0.1, 0.0], [1.0, 0.0, 0.0]], True) == []
    lost = [[0.5, 0.3, 0.2], [0.7, 0.0, 0.3]]
    assert guard.vanished(lost, True) == [1] and guard.vanished(lost, False) == []
    assert guard.vanished([*lost, lost[0]], True) == [], "which came back"
    assert guard.vanished([*lost, lost[1], lost[1]], False) == [1]
    assert guard.vanished([*lost, lost[1], lost[1], lost[1]], True) == [], "which was told before"


# ---------------------------------------------------------------------------------------------------
# optimisers


def parameters() -> list[nn.Parameter]:
    return [nn.Parameter(torch.tensor([1.0, -2.0])), nn.Parameter(torch.ones(1), requires_grad=False)]


def test_sgd_takes_its_settings() -> None:
    made = optimisers.make(Pretrain(lr=0.3, momentum=0.8, weight_decay=0.02), parameters())
    assert isinstance(made, torch.optim.SGD)
    (group,) = made.param_groups
    assert (group["lr"], group["momentum"], group["nesterov"], group["weight_decay"]) == (0.3, 0.8, True, 0.02)
    assert group["dampening"] == 0


def test_adam_takes_its_settings() -> None:
    made = optimisers.make(Stage(optimiser="adam", lr=0.01, weight_decay=0.5), parameters())
    assert isinstance(made, torch.optim.Adam)
    (group,) = made.param_groups
    assert (group["lr"], group["weight_decay"]) == (0.01, 0.5)


def test_nesterov_without_momentum_is_plain_descent() -> None:
    p = parameters()
    made = optimisers.make(Stage(nesterov=True, momentum=0.0, lr=0.1, weight_decay=0.0), p)
    p[0].grad = torch.tensor([1.0, 1.0])
    made.step()
    assert p[0].tolist() == pytest.approx([0.9, -2.1])


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_frozen_parameters_are_left_out(optimiser: str) -> None:
    p = parameters()
    (group,) = optimisers.make(Stage(optimiser=optimiser), p).param_groups
    assert [id(q) for q in group["params"]] == [id(p[0])]


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_by_hand(nesterov: bool) -> None:
    p = nn.Parameter(torch.tensor([1.0]))
    made = optimisers.make(Stage(lr=0.1, momentum=0.5, weight_decay=0.1, nesterov=nesterov), [p])
    x, v = 1.0, 0.0
    for gradient in (2.0, -1.0, 0.5):
        p.grad = torch.tensor([gradient])
        made.step()
        g = gradient + 0.1 * x
        v = 0.5 * v + g
        x -= 0.1 * (g + 0.5 * v if nesterov else v)
        assert p.item() == pytest.approx(x, rel=1e-5)


def test_the_rate_can_be_set_for_the_next_step() -> None:
    p = nn.Parameter(torch.tensor([1.0]))
    made = optimisers.make(Stage(lr=0.1, momentum=0.0, weight_decay=0.0), [p])
    optimisers.set_rate(made, 0.25)
    p.grad = torch.ones(1)
    made.step()
    assert p.item() == pytest.approx(0.75)


# ---------------------------------------------------------------------------------------------------
# checkpoints


def small_model(seed: int = 0, layout: torch.memory_format = torch.contiguous_format) -> Model:
    m = networks.build("small", 1, torch.full((1,), 0.4), torch.full((1,), 0.3), seed)
    m.heads["known"] = heads.linear_head(64, 3, draws.generator(seed, 20))
    m.trunk.freeze(("stem",))
    return m.to(memory_format=layout)  # type: ignore[call-overload, no-any-return]


def train(model: Model, optimiser: Optimizer, first: int, last: int) -> None:
    model.train()
    for step in range(first, last):
        x = torch.rand(6, 1, 6, 6, generator=torch.Generator().manual_seed(step))
        optimiser.zero_grad(set_to_none=True)
        F.cross_entropy(model(x, "known"), torch.arange(6) % 3).backward()
        optimiser.step()


def same(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


STAGES = {
    "sgd": Stage(lr=0.05),
    "nesterov": Stage(lr=0.05, nesterov=True),
    "sgd without momentum": Stage(lr=0.05, momentum=0.0),
    "adam": Stage(optimiser="adam", lr=0.01),
}
LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_training_goes_on_from_a_checkpoint_bit_by_bit(
    tmp_path: Path, stage: Stage, layout: torch.memory_format
) -> None:
    undisturbed = small_model(layout=layout)
    optimiser = optimisers.make(stage, undisturbed.parameters())
    train(undisturbed, optimiser, 0, 4)
    checkpoint.save(tmp_path / "c.safetensors", undisturbed, optimiser, 4, 12.5)
    train(undisturbed, optimiser, 4, 8)
    resumed = small_model(seed=1, layout=layout)  # other weights, all to be replaced
    optimiser = optimisers.make(stage, resumed.parameters())
    assert checkpoint.load(tmp_path / "c.safetensors", resumed, optimiser) == (4, 12.5)
    assert not same(resumed, undisturbed)
    train(resumed, optimiser, 4, 8)
    assert same(resumed, undisturbed)


def test_a_checkpoint_without_momentum_would_not_do(tmp_path: Path) -> None:
    """What the test above compares does depend on the optimiser's state."""
    model = small_model()
    optimiser = optimisers.make(STAGES["sgd"], model.parameters())
    train(model, optimiser, 0, 4)
    checkpoint.save_model(tmp_path / "m.safetensors", model)
    train(model, optimiser, 4, 8)
    other = small_model(seed=1)
    checkpoint.load_model(tmp_path / "m.safetensors", other)
    train(other, optimisers.make(STAGES["sgd"], other.parameters()), 4, 8)
    assert not same(model, other)


def test_a_saved_model_is_restored_with_its_statistics(tmp_path: Path) -> None:
    model = small_model(layout=torch.channels_last)
    train(model, optimisers.make(STAGES["sgd"], model.parameters()), 0, 3)
    checkpoint.save_model(tmp_path / "m.safetensors", model)
    other = small_model(seed=1)
    checkpoint.load_model(tmp_path / "m.safetensors", other)
    assert same(model, other)
    x = torch.rand(2, 1, 6, 6)
    assert torch.allclose(model.eval()(x, "known"), other.eval()(x, "known"), atol=1e-6)


def checkpoint_file(folder: Path) -> Path:
    model = small_model()
    optimiser = optimisers.make(STAGES["sgd"], model.parameters())
    train(model, optimiser, 0, 1)
    checkpoint.save(folder / "c.safetensors", model, optimiser, 1, 0.0)
    return folder / "c.safetensors"


def load_checkpoint(path: Path) -> None:
    model = small_model()
    checkpoint.load(path, model, optimisers.make(STAGES["sgd"], model.parameters()))


def load_model(path: Path) -> None:
    checkpoint.load_model(path, small_model())


@pytest.mark.parametrize("kept", [0, 4, 100, 0.5, 0.999])
@pytest.mark.parametrize("load", [load_checkpoint, load_model])
def test_a_truncated_file_is_explained(tmp_path: Path, kept: float, load: Callable[[Path], None]) -> None:
    path = checkpoint_file(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept if kept >= 1 else kept * len(content))])
    with pytest.raises(RunFolderError) as error:
        load(path)
    assert str(path) in str(error.value) and "cannot be read" in str(error.value) and "--overwrite" in str(error.value)


@pytest.mark.parametrize("load", [load_checkpoint, load_model])
def test_a_missing_file_is_explained(tmp_path: Path, load: Callable[[Path], None]) -> None:
    with pytest.raises(RunFolderError) as error:
        load(tmp_path / "none.safetensors")
    assert "none.safetensors" in str(error.value)


@pytest.mark.parametrize("entry", ["optimiser.momentum_buffer.bias", "optimiser.momentum_buffer", "another shape"])
def test_momentum_of_what_is_not_trained_is_refused(tmp_path: Path, entry: str) -> None:
    path = checkpoint_file(tmp_path)
    tensors = load_file(path)
    own = next(name for name in tensors if name.startswith("optimiser."))
    tensors[own if entry == "another shape" else entry] = torch.zeros(3, 7)
    save_file(tensors, path, {"position": '{"epoch": 1, "seconds": 0.0}'})
    with pytest.raises(RunFolderError, match=r"does not fit this network: it holds optimiser.*--overwrite"):
        load_checkpoint(path)


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    path = checkpoint_file(tmp_path)
    other = small_model()
    other.heads["known"] = heads.linear_head(64, 4, draws.generator(0))
    with pytest.raises(RunFolderError) as error:
        checkpoint.load(path, other, optimisers.make(STAGES["sgd"], other.parameters()))
    assert "does not fit this network" in str(error.value)
    checkpoint.save_model(tmp_path / "m.safetensors", small_model())
    with pytest.raises(RunFolderError) as error:
        checkpoint.load_model(tmp_path / "m.safetensors", other)
    assert "does not fit this network" in str(error.value)


def test_a_model_in_place_of_a_checkpoint_is_refused(tmp_path: Path) -> None:
    model = small_model()
    save_file({f"model.{k}": v.contiguous() for k, v in model.state_dict().items()}, tmp_path / "c.safetensors")
    with pytest.raises(RunFolderError):
        load_checkpoint(tmp_path / "c.safetensors")


# ---------------------------------------------------------------------------------------------------
# weights from elsewhere


@pytest.mark.parametrize("whole", [True, False], ids=["of a whole model", "of a trunk alone"])
def test_a_trunk_is_filled_from_a_file(tmp_path: Path, whole: bool) -> None:
    source = small_model(seed=5)
    checkpoint.save_model(tmp_path / "w.safetensors", source if whole else source.trunk)
    model = small_model(seed=6)
    head = model.heads["known"].weight.detach().clone()
    assert not same(model.trunk, source.trunk)
    checkpoint.load_trunk(tmp_path / "w.safetensors", model)
    assert same(model.trunk, source.trunk)
    assert torch.equal(model.heads["known"].weight, head)


def test_weights_that_are_not_there_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.safetensors", tmp_path):
        with pytest.raises(UsageError) as error:
            checkpoint.load_trunk(path, small_model())
        assert str(path) in str(error.value) and "pretrain.weights" in str(error.value)
        assert "safetensors file" in str(error.value)


def test_weights_of_another_trunk_are_refused(tmp_path: Path) -> None:
    other = networks.build("small", 3, torch.zeros(3), torch.ones(3), 0)
    checkpoint.save_model(tmp_path / "w.safetensors", other)
    with pytest.raises(UsageError) as error:
        checkpoint.load_trunk(tmp_path / "w.safetensors", small_model())
    assert "do not fit network.name" in str(error.value)


def test_weights_with_blocks_missing_are_refused(tmp_path: Path) -> None:
    checkpoint.save_model(tmp_path / "w.safetensors", small_model())
    tensors = {k: v for k, v in load_file(tmp_path / "w.safetensors").items() if "block2" not in k}
    save_file(tensors, tmp_path / "w.safetensors")
    with pytest.raises(UsageError) as error:
        checkpoint.load_trunk(tmp_path / "w.safetensors", small_model())
    assert "block2" in str(error.value)


def test_weights_that_are_no_safetensors_are_refused(tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(b"not weights")
    with pytest.raises(UsageError) as error:
        checkpoint.load_trunk(tmp_path / "w.safetensors", small_model())
    assert "w.safetensors" in str(error.value)
