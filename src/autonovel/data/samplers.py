"""Which images make up each batch: a function of (seed, epoch), the same on every machine.

A sampler answers for a whole epoch at once, so that a GPU gets its indices in one transfer.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from autonovel import draws
from autonovel.errors import UsageError
from autonovel.training.ranks import Ranks


class Sampler(Protocol):
    """Batches of image numbers, epoch by epoch."""

    @property
    def steps_per_epoch(self) -> int:
        """Return the number of batches in an epoch."""

    def epoch(self, number: int) -> Tensor:
        """Return this process's share of the epoch's batches, one per row."""


def share_of(sampler: Sampler, ranks: Ranks, stage: str) -> Sampler:
    """Return what gives this process its shares of the batches of ``sampler``; all must be of one size."""
    if ranks.world == 1:
        return sampler
    given: Any = sampler
    if not hasattr(given, "world"):
        raise UsageError(
            f"the batches of stage {stage} cannot be shared by {ranks.world} processes: {type(given).__name__} has no "
            "rank and world. Run it without torchrun, or give the sampler both."
        )
    for what, size in given.parts.items():
        if size % ranks.world:
            raise UsageError(
                f"a batch of stage {stage} has {size} {what}, which {ranks.world} processes cannot share equally. "
                f"Choose a multiple of {ranks.world}, such as {-(-size // ranks.world) * ranks.world}; batch_size is "
                "that of all processes together."
            )
    shared: Sampler = replace(given, rank=ranks.rank, world=ranks.world)
    return shared


@dataclass(frozen=True)
class Stream:
    """An endless row of shuffles of ``members``; what is left of one starts the next batch."""

    members: Tensor
    seed: int
    purpose: int

    def take(self, start: int, count: int) -> Tensor:
        """Return the ``count`` image numbers from position ``start`` on."""
        n = len(self.members)
        first, last = start // n, (start + count - 1) // n
        order = torch.cat([self._shuffle(lap) for lap in range(first, last + 1)])
        return self.members[order[start - first * n :][:count]]

    def _shuffle(self, lap: int) -> Tensor:
        return torch.randperm(len(self.members), generator=draws.generator(self.seed, self.purpose, lap))


@dataclass(frozen=True)
class Merged:
    """One shuffle of all members, cut into batches: the paper's sampling.

    The published code ends an epoch with a smaller batch; here it is filled from the next shuffle, so
    that all batches have one shape.
    """

    members: Tensor
    batch_size: int
    seed: int
    purpose: int
    rank: int = 0
    world: int = 1

    @property
    def parts(self) -> dict[str, int]:
        """Return the sizes that processes must share equally."""
        return {"images": self.batch_size}

    @property
    def steps_per_epoch(self) -> int:
        """Return the batches it takes to see every member."""
        return -(-len(self.members) // self.batch_size)

    def epoch(self, number: int) -> Tensor:
        """Return steps×batch image numbers (this rank's columns)."""
        count = self.steps_per_epoch * self.batch_size
        taken = Stream(self.members, self.seed, self.purpose).take(number * count, count)
        return taken.view(-1, self.batch_size)[:, self.rank :: self.world]


@dataclass(frozen=True)
class Fixed:
    """A fixed number of labelled and unlabelled images in every batch, labelled ones first."""

    labelled: Tensor
    unlabelled: Tensor
    n_labelled: int
    n_unlabelled: int
    seed: int
    purpose: int
    rank: int = 0
    world: int = 1
    epoch_of: str = "all"

    @property
    def parts(self) -> dict[str, int]:
        """Return the sizes that processes must share equally."""
        return {
            "labelled images (labelled_per_batch)": self.n_labelled,
            "unlabelled images (the rest of batch_size)": self.n_unlabelled,
        }

    @property
    def steps_per_epoch(self) -> int:
        """Return the batches it takes to see as many images as there are; of ``labelled`` ones, that fit in whole."""
        if self.epoch_of == "labelled":
            return max(len(self.labelled) // self.n_labelled, 1)
        return -(-(len(self.labelled) + len(self.unlabelled)) // (self.n_labelled + self.n_unlabelled))

    def epoch(self, number: int) -> Tensor:
        """Return steps×batch image numbers (this rank's columns)."""
        parts = []
        for offset, members, share in ((0, self.labelled, self.n_labelled), (1, self.unlabelled, self.n_unlabelled)):
            count = self.steps_per_epoch * share
            taken = Stream(members, self.seed, 2 * self.purpose + offset).take(number * count, count)
            parts.append(taken.view(-1, share)[:, self.rank :: self.world])
        return torch.cat(parts, dim=1)


@dataclass(frozen=True)
class ByClass:
    """A few classes in every batch, drawn anew each time, with the same number of images of each.

    Pairs of one class are then as frequent as one in ``n_classes``, however many classes there are.
    """

    y: Tensor
    n_classes: int
    batch_size: int
    seed: int
    purpose: int
    rank: int = 0
    world: int = 1

    @property
    def parts(self) -> dict[str, int]:
        """Return the sizes that processes must share equally."""
        return {f"images ({self.n_classes} classes, {self.per_class} of each)": self.n_classes * self.per_class}

    @property
    def per_class(self) -> int:
        """Return the images of one class in a batch."""
        return self.batch_size // self.n_classes

    @property
    def steps_per_epoch(self) -> int:
        """Return the batches it takes to see as many images as there are labelled ones."""
        return -(-int((self.y >= 0).sum()) // (self.n_classes * self.per_class))

    def epoch(self, number: int) -> Tensor:
        """Return steps×(classes · images of each) image numbers (this rank's columns)."""
        rng = draws.generator(self.seed, self.purpose, number)
        members = [(self.y == label).nonzero()[:, 0] for label in self.y[self.y >= 0].unique().tolist()]
        rows = []
        for _ in range(self.steps_per_epoch):
            chosen = torch.randperm(len(members), generator=rng)[: self.n_classes].tolist()
            rows.append(torch.cat([self._some(members[label], rng) for label in chosen]))
        return torch.stack(rows)[:, self.rank :: self.world]

    def _some(self, members: Tensor, rng: torch.Generator) -> Tensor:
        """Return images of one class, each once, and again from the first where the class has too few."""
        order = torch.randperm(len(members), generator=rng)
        return members[order[torch.arange(self.per_class) % len(members)]]
