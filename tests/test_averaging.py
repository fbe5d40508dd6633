"""Weights averaged over the last epochs: which, what BatchNorm makes of them, and a stage that is stopped meanwhile."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from autonovel import draws
from autonovel.data.streamed import HostPixels
from autonovel.networks import Model, heads
from autonovel.settings import Joint
from autonovel.training.averaging import Average
from autonovel.training.loop import run_stage
from autonovel.training.stage import Stage
from every_stage import context_in, equal, ready, some_images, train

EPOCHS = 5


def after_each_epoch(folder: Path, name: str, **changes: object) -> list[dict[str, Tensor]]:
    """Train a stage; return the weights that are learned, as they were before each epoch but the first."""
    model, stage = ready(name, **changes)
    seen: list[dict[str, Tensor]] = []
    learn = stage.before_epoch

    def looking(model: Model, images: object, epoch: int) -> None:
        if epoch:
            seen.append({name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad})
        learn(model, images, epoch)  # type: ignore[arg-type]

    object.__setattr__(stage, "before_epoch", looking)
    run_stage(model, stage, some_images(), context_in(folder))
    return [*seen, {name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad}]


@pytest.mark.parametrize("name", ["joint", "supervised", "fixed views"])
def test_the_mean_is_over_the_last_epochs(tmp_path: Path, name: str) -> None:
    plain = after_each_epoch(tmp_path / "plain", name, epochs=EPOCHS)
    averaged = after_each_epoch(tmp_path / "averaged", name, epochs=EPOCHS, average=0.5)
    for epoch in range(EPOCHS - 1):
        assert equal(plain[epoch], averaged[epoch]), "training itself is the same"
    for key, found in averaged[-1].items():
        mean = (plain[2][key] + plain[3][key] + plain[4][key]) / 3  # half of five epochs, and one begun
        assert torch.allclose(found, mean, atol=1e-6), key
    assert not equal(plain[-1], averaged[-1])


def test_no_share_leaves_everything_as_it_was_and_a_tiny_one_is_the_last_epoch(tmp_path: Path) -> None:
    plain, none, last = (
        train(tmp_path / label, "joint", epochs=3, **changes)
        for label, changes in (("plain", {}), ("none", {"average": 0.0}), ("last", {"average": 0.01}))
    )
    assert equal(plain, none)
    same = [key for key, value in plain.items() if torch.equal(value, last[key])]
    assert "heads.new.weight" in same
    assert not [key for key in same if "running_mean" in key], "statistics are taken anew all the same"


class Stub:
    """Stands for a training step: sends a batch through the model."""

    def __init__(self, model: nn.Sequential, batches: list[Tensor]) -> None:
        self.model, self.batches = model, batches

    def look(self, index: Tensor, u: Tensor, step: int) -> None:
        self.model[:2](self.batches[step])


def test_statistics_are_those_of_the_averaged_weights() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    linear, norm = model[0], model[1]
    assert isinstance(linear, nn.Linear) and isinstance(norm, nn.BatchNorm1d)
    _, stage = ready("joint", epochs=4, average=0.5)
    average = Average(model, stage.settings, {})  # type: ignore[arg-type]
    weights = [torch.randn(4, 3) for _ in range(4)]
    batches = [torch.randn(6, 3) for _ in range(5)]
    with torch.no_grad():
        for epoch, weight in enumerate(weights):
            linear.weight.copy_(weight)
            model(batches[0])  # statistics of other weights, to be forgotten
            average.after_epoch(epoch)
    numbers = [(step, torch.zeros(0), torch.zeros(0)) for step in range(5)]
    idle = nn.BatchNorm1d(2)  # sees no batch
    idle(torch.randn(4, 2))
    model.add_module("idle", idle)
    kept = {name: value.clone() for name, value in idle.state_dict().items()}
    average.settle(model, Stub(model, batches), numbers)  # type: ignore[arg-type]
    expected = (weights[2] + weights[3]) / 2
    assert torch.allclose(linear.weight, expected)
    outputs = [batch @ expected.T + linear.bias for batch in batches]
    assert torch.allclose(norm.running_mean, sum(o.mean(dim=0) for o in outputs) / 5, atol=1e-6)  # type: ignore[arg-type]
    assert torch.allclose(norm.running_var, sum(o.var(dim=0) for o in outputs) / 5, atol=1e-6)  # type: ignore[arg-type]
    assert norm.momentum == 0.1 and equal(kept, idle.state_dict())


class KilledError(Exception):
    """Stops a stage."""


def stopping_at(stage: Stage, stop: int) -> Stage:
    learn = stage.before_epoch

    def dying(model: Model, images: object, epoch: int) -> None:
        if epoch == stop:
            raise KilledError
        learn(model, images, epoch)  # type: ignore[arg-type]

    object.__setattr__(stage, "before_epoch", dying)
    return stage


@pytest.mark.parametrize("stop", [1, 3, 4])
def test_a_stopped_stage_goes_on_to_the_same_mean(tmp_path: Path, stop: int) -> None:
    whole = train(tmp_path / "whole", "averaged", epochs=EPOCHS)
    model, stage = ready("averaged", epochs=EPOCHS)
    with pytest.raises(KilledError):
        run_stage(model, stopping_at(stage, stop), some_images(), context_in(tmp_path / "parts"))
    assert equal(whole, train(tmp_path / "parts", "averaged", epochs=EPOCHS))


@pytest.mark.parametrize("name", ["rotation", "averaged", "dtc"])
def test_images_that_come_batch_by_batch_end_with_the_same_mean(tmp_path: Path, name: str) -> None:
    whole = train(tmp_path / "whole", name, epochs=3, average=0.7)
    model, stage = ready(name, epochs=3, average=0.7)
    images = some_images()
    assert isinstance(images.images, Tensor)
    run_stage(model, stage, replace(images, images=HostPixels(images.images)), context_in(tmp_path / "streamed"))
    assert equal(whole, model.state_dict())


def test_a_classifier_on_frozen_features_leaves_the_statistics_of_the_head_beside_it(tmp_path: Path) -> None:
    model, stage = ready("linear", epochs=4, average=0.5)
    model.heads["new"] = heads.class_head(model.trunk.n_features, 2, 8, draws.generator(3))
    model.train()
    model.heads["new"](torch.randn(8, model.trunk.n_features))
    before = {name: value.clone() for name, value in model.heads["new"].state_dict().items()}
    run_stage(model, stage, some_images(), context_in(tmp_path))
    assert equal(before, model.heads["new"].state_dict())


@pytest.mark.parametrize(("share", "epochs", "first"), [(0.28, 100, 72), (0.07, 100, 93), (0.4, 5, 3), (0.41, 5, 2)])
def test_as_many_epochs_as_the_share_asks_for(share: float, epochs: int, first: int) -> None:
    assert Average(nn.Linear(1, 1), Joint(average=share, epochs=epochs), {}).first == first  # type: ignore[arg-type]
