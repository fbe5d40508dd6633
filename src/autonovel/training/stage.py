"""What the training loop asks of a stage, and what it tells it."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from autonovel import settings
from autonovel.data import Batch, ImageSet, Sampler
from autonovel.networks import Model
from autonovel.training.display import Display

Terms = dict[str, Tensor]


@dataclass
class Progress:
    """How far a stage is, as 0-d tensors on the device, and a place to leave diagnostics.

    Attributes:
        step: number of the step in the stage.
        steps_per_epoch: steps in an epoch.
        notes: diagnostics of this step by name, each as (count, out of how many).
    """

    step: Tensor
    steps_per_epoch: int
    notes: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)

    @property
    def epoch(self) -> Tensor:
        """Return the epochs behind us, with their fraction."""
        return self.step / self.steps_per_epoch

    @property
    def whole_epochs(self) -> Tensor:
        """Return the number of the epoch, divided as integers: a float quotient can fall just short of one."""
        return torch.div(self.step, self.steps_per_epoch, rounding_mode="floor")

    def note(self, name: str, count: Tensor, out_of: Tensor | int) -> None:
        """Leave a diagnostic share, which is not part of the loss.

        The loop sums both numbers over the epoch before it divides them, so that a batch without any
        positive pair, say, does not pull their precision down.
        """
        total = count.detach().float()
        parts = out_of.detach().float() if isinstance(out_of, Tensor) else torch.full_like(total, float(out_of))
        self.notes[name] = (total, parts)


class Stage(Protocol):
    """One training stage of a method.  ``step`` must keep static shapes and never wait for the device."""

    @property
    def name(self) -> str:
        """Return the stage's name, which is also its folder's."""

    @property
    def number(self) -> int:
        """Return the stage's number, which keeps its random draws apart from other stages'."""

    @property
    def settings(self) -> settings.Stage:
        """Return the settings of optimiser, schedule and views."""

    @property
    def n_draws(self) -> int:
        """Return how many uniform random numbers a step needs for each image."""

    def prepare(self, model: Model) -> None:
        """Give ``model`` the heads this stage needs and freeze what it holds fixed."""

    def sampler(self, images: ImageSet) -> Sampler:
        """Return the batches of this stage."""

    def before_epoch(self, model: Model, images: ImageSet, epoch: int) -> None:
        """Refresh whatever depends on the whole set; most stages have nothing to do here."""

    def step(self, model: Model, batch: Batch, progress: Progress) -> Terms:
        """Return the loss terms of one batch by name; the loop minimises their sum."""


@runtime_checkable
class Remembers(Protocol):
    """A stage that carries tensors from epoch to epoch, such as targets and averages of every image.

    They go into its checkpoints, so a resumed stage finds them.  A recorded step reads them where they first
    were: refresh them in place.
    """

    @property
    def memory(self) -> dict[str, Tensor]:
        """Return the tensors by name."""


@runtime_checkable
class Foresees(Protocol):
    """A stage that computes something of all images before its first step, whether it is fresh or resumed."""

    def foresee(self, model: Model, images: ImageSet, display: Display, epoch: int = 0) -> AbstractContextManager[None]:
        """Compute it for the ``epoch`` at which training begins, and tell of it.

        It is there inside the context, and its memory is free after it.
        """


@runtime_checkable
class Concludes(Protocol):
    """A stage that, once trained, has something to settle, such as which of several heads stays.

    Its file has the model before that: what it concludes is a function of it and the images.
    """

    def conclude(self, model: Model, images: ImageSet) -> None:
        """Bring ``model`` into the form in which the next stage takes it."""


@runtime_checkable
class OnMaterial(Protocol):
    """A stage that does not train on the images themselves, but on something made of them once, such as features."""

    def material(self, model: Model, images: ImageSet) -> ImageSet:
        """Return what stands in the images' place, with the labels to learn."""
