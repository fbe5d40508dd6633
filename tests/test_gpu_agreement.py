"""One float32 step from the same weights and draws: the same on a CPU and on a GPU, to 1e-4, for every stage.

Here the CPU is held against itself, bit by bit; `make test-gpu` holds a GPU against it.
"""

import copy
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from autonovel import draws
from autonovel.data import loader
from autonovel.device import torch_settings
from autonovel.training import optimisers
from autonovel.training.stage import OnMaterial, Remembers
from autonovel.training.steps import Step
from every_stage import STAGES, ready, some_images

ON_GPU = pytest.param(
    "cuda",
    marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")],
)
NOISE = 1e-3  # share of a tensor's largest gradient below which Adam, which takes its sign, may step either way
STEP, RATE = 2, 0.02


class Taken(NamedTuple):
    """What a step made: its loss terms, its gradients, and the weights after it, all on the CPU."""

    terms: dict[str, Tensor]
    gradients: dict[str, Tensor]
    weights: dict[str, Tensor]


def one_step(name: str, device: str, spoil: float = 0.0) -> Taken:
    """Take a step of the stage ``name``; all that comes before it is done on the CPU, so that it begins alike."""
    model, stage = ready(name)
    stage = copy.deepcopy(stage)
    stage.prepare(model)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    images = stage.material(model, some_images()) if isinstance(stage, OnMaterial) else some_images()
    stage.before_epoch(model, images, 0)
    model.to(device)
    if isinstance(stage, Remembers):
        for key, value in stage.memory.items():
            stage.memory[key] = value.to(device)
    with torch.no_grad():
        next(p for p in model.parameters() if p.requires_grad).mul_(1 + spoil)
    sampler = stage.sampler(images)
    index = sampler.epoch(0)[0].to(device)
    u = draws.uniform(draws.stream(0, 1), torch.tensor([STEP], device=device), index[None], stage.n_draws)[0]
    source = loader(images, torch.device(device))
    optimiser = optimisers.make(stage.settings, model.parameters())
    step = Step(model, stage, source, optimiser, sampler.steps_per_epoch)
    model.train()
    with torch_settings("float32"):
        step(index, u, STEP, RATE)
    gradients = {name: p.grad.cpu() for name, p in model.named_parameters() if p.grad is not None}
    weights = {key: value.cpu() for key, value in model.state_dict().items()}
    return Taken({key: value.cpu() for key, value in step.terms.items()}, gradients, weights)


def furthest(one: Taken, other: Taken, adam: bool) -> float:
    """Return the largest difference of two steps, relative to values above 1."""
    apart = [0.0]
    for mine, theirs in zip(one, other, strict=True):
        assert mine.keys() == theirs.keys()
        for key, value in mine.items():
            difference = (value.double() - theirs[key].double()).abs() / value.double().abs().clamp(min=1)
            if adam and mine is one.weights and key in one.gradients:
                g = one.gradients[key].abs()
                difference = difference[g > NOISE * g.max()]
            apart.append(float(difference.max()) if difference.numel() else 0.0)
    return max(apart)


def is_adam(name: str) -> bool:
    return ready(name)[1].settings.optimiser == "adam"


@pytest.mark.parametrize("device", ["cpu", ON_GPU])
@pytest.mark.parametrize("name", STAGES)
def test_a_step_is_the_same_on_another_device(name: str, device: str) -> None:
    here, there = one_step(name, "cpu"), one_step(name, device)
    assert here.terms and here.gradients and all(torch.isfinite(value).all() for value in here.terms.values())
    assert furthest(here, there, is_adam(name)) <= (0.0 if device == "cpu" else 1e-4)


@pytest.mark.parametrize("name", STAGES)
def test_a_step_from_other_weights_is_another(name: str) -> None:
    """The comparison can fail: weights a hundredth apart are seen."""
    assert furthest(one_step(name, "cpu"), one_step(name, "cpu", spoil=0.01), is_adam(name)) > 1e-4
