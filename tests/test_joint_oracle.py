"""Whole steps of joint training beside the paper's formulas written out in loops, under both presets.

Objectives have oracles of their own; this is about what a step makes of them: which view goes where, what is weighed
and ramped by what, what is frozen, what BatchNorm sees, what is pseudo-labelled, and what the optimiser does.
"""

import copy
import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from autonovel import networks, recipe
from autonovel.data import ImageSet, loader
from autonovel.methods.method import Problem
from autonovel.methods.rankstats import RankStats
from autonovel.methods.supervised import supervised_stage
from autonovel.methods.views import augmentation
from autonovel.networks import Model
from autonovel.training import optimisers
from autonovel.training.steps import Step

KNOWN, NEW, BATCH, STEPS, EPOCHS = 3, 4, 24, 2, 3
RATE, WEIGHT, PSEUDO, K = 0.002, 5.0, 0.05, 2  # a small rate: at the published one rounding grows from step to step
MEAN, STD = torch.tensor([0.5, 0.45, 0.4]), torch.tensor([0.25, 0.2, 0.3])
LAST = "trunk.blocks.block3"  # of the small network; the paper's has four


def toy_images() -> ImageSet:
    generator = torch.Generator().manual_seed(0)
    truth = torch.arange(96) % (KNOWN + NEW)
    prototypes = torch.randint(0, 256, (KNOWN + NEW, 3, 8, 8), generator=generator)
    noise = torch.randint(0, 256, (96, 3, 8, 8), generator=generator)
    pixels = (0.8 * prototypes[truth] + 0.2 * noise).to(torch.uint8)
    names = tuple(map(str, range(KNOWN)))
    y = torch.where(truth < KNOWN, truth, -1)
    return ImageSet(images=pixels, y=y, ids=tuple(map(str, range(96))), class_names=names, truth=truth)


class Formulas:
    """A copy of a model, trained as the paper prints it (or as its published code has it) and nothing more."""

    def __init__(self, model: Model, preset: str, incremental: bool) -> None:
        self.model, self.as_run, self.incremental = copy.deepcopy(model), preset == "code", incremental
        for module in self.model.modules():
            module.training = True  # frozen blocks too: BatchNorm goes by the batch everywhere
        self.trained = {name: p for name, p in self.model.named_parameters() if name.startswith(("heads.", LAST))}
        self.velocity = {name: torch.zeros_like(p) for name, p in self.trained.items()}

    def features(self, pixels: Tensor) -> Tensor:
        x = (pixels - MEAN.view(3, 1, 1)) / STD.view(3, 1, 1)
        blocks = self.model.trunk.blocks
        assert isinstance(blocks, nn.Module)
        for block in blocks.children():
            x = block(x)
        return x.mean((2, 3))

    def terms(self, first: Tensor, second: Tensor, y: Tensor, ramp: float) -> dict[str, Tensor]:
        z, z_other = self.features(first), self.features(second)
        known, new = self.model.heads["known"], self.model.heads["new"]
        p_known, q_known = known(z).softmax(1), known(z_other).softmax(1)
        p_new, q_new = new(z).softmax(1), new(z_other).softmax(1)
        labelled = [i for i in range(len(y)) if y[i] >= 0]
        unlabelled = [i for i in range(len(y)) if y[i] < 0]
        ce = torch.stack([-p_known[i, y[i]].log() for i in labelled]).mean()
        strongest = {i: {int(j) for j in z[i].argsort(descending=True)[:K]} for i in unlabelled}
        partner = q_new if self.as_run else p_new
        pairs = []
        for i in unlabelled:
            for j in unlabelled:
                alike = (p_new[i] * partner[j]).sum()
                pairs.append(-((alike if strongest[i] == strongest[j] else 1 - alike) + 1e-7).log())
        squares_known, squares_new = (p_known - q_known) ** 2, (p_new - q_new) ** 2
        if self.as_run:
            consistency = squares_known.mean() + squares_new.mean()
        else:
            consistency = squares_known[labelled].sum(1).mean() + squares_new[unlabelled].sum(1).mean()
        found = {"ce": ce, "bce": torch.stack(pairs).mean(), "consistency": WEIGHT * ramp * consistency}
        if self.incremental:
            pseudo = KNOWN + p_new[unlabelled].argmax(1)
            found["pseudo"] = PSEUDO * ramp * F.cross_entropy(known(z[unlabelled]), pseudo)
        return found

    def step(self, first: Tensor, second: Tensor, y: Tensor, ramp: float) -> dict[str, Tensor]:
        found = self.terms(first, second, y, ramp)
        slopes = torch.autograd.grad(sum(found.values(), torch.tensor(0.0)), list(self.trained.values()))
        with torch.no_grad():
            for (name, p), slope in zip(self.trained.items(), slopes, strict=True):
                self.velocity[name].mul_(0.9).add_(slope + 1e-4 * p)  # momentum; weight decay as part of the slope
                p -= RATE * self.velocity[name]
        return found


def batches() -> Iterator[tuple[int, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    for step in range(STEPS * EPOCHS):
        yield step, torch.randperm(96, generator=generator)[:BATCH]


@pytest.mark.parametrize("incremental", [False, True], ids=["plain", "incremental"])
@pytest.mark.parametrize("preset", ["code", "paper"])
def test_training_follows_the_formulas(preset: str, incremental: bool) -> None:
    sets = {
        "preset": preset, "joint.batch_size": BATCH, "joint.lr": RATE, "joint.weight": WEIGHT, "joint.k": K,
        "joint.ramp_epochs": EPOCHS, "joint.pseudo_weight": PSEUDO, "joint.frozen": ["stem", "block1", "block2"],
    }  # fmt: skip
    settings = recipe.load("cifar10", sets).recipe
    images = toy_images()
    model = networks.build("small", 3, MEAN, STD, seed=0)
    supervised_stage(settings, KNOWN, 0).prepare(model)
    stage = RankStats(incremental=incremental).stages(settings, Problem(KNOWN, NEW, 0))[0]
    stage.prepare(model)
    model.train()
    assert model.heads["known"].out_features == KNOWN + (NEW if incremental else 0)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    formulas = Formulas(model, preset, incremental)
    take = Step(
        model, stage, loader(images, torch.device("cpu")), optimisers.make(stage.settings, model.parameters()), STEPS
    )
    views = augmentation(stage.settings)
    for step, rows in batches():
        draws = torch.rand(BATCH, stage.n_draws, generator=torch.Generator().manual_seed(step))
        ramp = math.exp(-5 * (1 - (step // STEPS) / EPOCHS) ** 2)
        two = [views.view(images.images[rows], half) for half in draws.chunk(2, 1)]
        wanted = formulas.step(two[0], two[1], images.y[rows], ramp)
        take(rows, draws, step, RATE)
        assert take.terms.keys() == wanted.keys()
        for name, value in wanted.items():
            assert take.terms[name].item() == pytest.approx(value.item(), rel=1e-3, abs=1e-7), (step, name)
    after = formulas.model.state_dict()
    for name, value in model.state_dict().items():
        moved, wanted_move = (new.float() - before[name].float() for new in (value, after[name]))
        # rounding differs by 1e-5, and where it turns the sign of a ReLU's input, once in a while, by 1e-3
        assert (moved - wanted_move).norm() <= 1e-2 * wanted_move.norm() + 1e-6, name
        buffer = "running" in name or "num_batches" in name
        assert bool(wanted_move.any()) == (buffer or name in formulas.trained), name
