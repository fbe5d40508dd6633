"""What the pipeline asks of a method."""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from autonovel.data import ImageSet
from autonovel.networks import Model
from autonovel.settings import Recipe
from autonovel.training.stage import Stage


@dataclass(frozen=True)
class Problem:
    """How many classes are known, how many are new, and the seed of the attempt."""

    n_known: int
    n_new: int
    seed: int


class Method(Protocol):
    """A way from the shared feature extractor (stages 1 and 2) to new classes.

    However it finds them, it ends with a model whose head ``new`` tells the new classes and whose head
    ``known`` tells the known ones (or, grown, both).  A new method is one file and one line in
    ``methods/__init__.py``.
    """

    def stages(self, recipe: Recipe, problem: Problem) -> list[Stage]:
        """Return the training stages after the shared ones; none for a method that only clusters."""

    def finish(self, model: Model, images: ImageSet, problem: Problem) -> Tensor | None:
        """Do what remains after training, such as clustering; leave heads ``known`` and ``new``.

        May return the features of all images, where it has computed them, so that nobody does it again.
        """
