"""A classifier of the known classes alone: what remains to be done where nothing is left to discover."""

from dataclasses import dataclass

from autonovel.data import ImageSet
from autonovel.methods.method import Problem
from autonovel.networks import Model, heads
from autonovel.settings import Recipe
from autonovel.training.stage import Stage


@dataclass(frozen=True)
class KnownOnly:
    """Stage 2 and nothing after it; a model like any other, whose head of the new classes has no outputs."""

    def stages(self, recipe: Recipe, problem: Problem) -> list[Stage]:
        """Return no stage: the shared stage 2 has trained the classifier."""
        return []

    def finish(self, model: Model, images: ImageSet, problem: Problem) -> None:
        """Add the head of no new classes."""
        model.heads["new"] = heads.plain_linear(model.trunk.n_features, problem.n_new).to(model.mean.device)
