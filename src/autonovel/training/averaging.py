"""Weights averaged over the last epochs of a stage (stochastic weight averaging).

At a high learning rate the weights circle around a good place without coming to rest there.  Their mean lies nearer to
it than any of them, and with agreement of two views as a loss by more than otherwise (Athiwaratkun et al., ICLR 2019).
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from autonovel import stopping
from autonovel.networks import Model
from autonovel.settings import Stage
from autonovel.training.batch_statistics import taken_anew
from autonovel.training.steps import Step

STEPS = 100  # batches from which BatchNorm takes the statistics of averaged weights
PREFIX = "average."


class Average:
    """The mean of the trained weights after each of the last epochs of a stage.

    Attributes:
        memory: the mean so far by name, for checkpoints.
    """

    def __init__(self, model: Model, settings: Stage, memory: dict[str, Tensor]) -> None:
        self.trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        last = math.ceil(round(settings.average * settings.epochs, 6))  # 0.28 · 100 is a little more than 28
        self.first = settings.epochs - last  # epoch with which the mean begins
        self.wanted = self.first < settings.epochs
        self.memory = {name: memory.pop(name) for name in list(memory) if name.startswith(PREFIX)}

    @torch.no_grad()
    def after_epoch(self, epoch: int) -> None:
        """Take the weights after ``epoch`` into the mean, if it is one of the last."""
        if epoch < self.first:
            return
        if epoch == self.first:
            self.memory = {PREFIX + name: weights.clone() for name, weights in self.trained.items()}
        for name, weights in self.trained.items():
            self.memory[PREFIX + name].lerp_(weights, 1 / (epoch - self.first + 1))

    @torch.no_grad()
    def settle(self, model: Model, step: Step, batches: Iterable[tuple[int, Tensor, Tensor]]) -> None:
        """Put the mean in the place of the weights; BatchNorm takes its statistics, where not fixed, from ``batches``.

        These are numbers, images and random numbers of steps, as the training loop has them.
        """
        for name, weights in self.trained.items():
            weights.copy_(self.memory[PREFIX + name])
        model.train()
        with taken_anew(model) as any_left:
            for number, index, u in batches if any_left else ():
                stopping.check()
                step.look(index, u, number)
