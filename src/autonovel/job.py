"""A run to do, as every room of the house is told of it."""

import time
from dataclasses import dataclass, field
from pathlib import Path

import torch

from autonovel.data import ImageSet
from autonovel.methods import Problem
from autonovel.settings import ALL_STAGES, Recipe
from autonovel.storage.journal import Journal
from autonovel.training.display import Display
from autonovel.training.loop import Context
from autonovel.training.ranks import ALONE, Ranks


@dataclass(frozen=True)
class Job:
    """A run to do: images, recipe, and where.

    Attributes:
        recipe: all settings.
        train: labelled and unlabelled images.
        test: held-out images with truth, or None.
        n_new: number of new classes; None if it is to be estimated.
        seed: of every random draw.
        device: that trains.
        folder: the run folder, locked by the caller.
        display: for progress.
        keep_going: go on after a collapse.
        started: when the work began, on the monotonic clock; the total time counts from here.
        stages: numbers of the stages that may be trained now; earlier ones must be there.
        ranks: the processes that do the job together; the first one writes and delivers.
    """

    recipe: Recipe
    train: ImageSet
    test: ImageSet | None
    n_new: int | None
    seed: int
    device: torch.device
    folder: Path
    display: Display
    keep_going: bool = False
    started: float = field(default_factory=time.monotonic)
    stages: tuple[int, ...] = ALL_STAGES
    ranks: Ranks = ALONE

    @property
    def problem(self) -> Problem:
        """Return the numbers a method needs."""
        assert self.n_new is not None, "the new classes are counted before a method starts"
        return Problem(self.train.n_known, self.n_new, self.seed)

    def context(self, folder: Path, label: str = "") -> Context:
        """Return the training context for stages under ``folder``."""
        return Context(
            folder, Journal(folder / "metrics.jsonl"), self.seed, self.device, self.display,
            self.keep_going, self.recipe.run.checkpoint_seconds, label, self.recipe.run.cuda_graphs, self.ranks,
        )  # fmt: skip
