"""A method of your own in one file: pairs by the angle between features instead of ranking statistics.

Run `python examples/new_method.py`: its row stands in the table beside k-means and ranking statistics.  Two images are
a pair where the cosine of their features is high; all else is the paper's joint training.  `--help` has its options.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor
from torch.nn import functional as F

from autonovel.commands.look import print_table
from autonovel.commands.training import run_recipe
from autonovel.data import ImageSet
from autonovel.labels import LABELS
from autonovel.manner import Manner
from autonovel.methods import METHODS, Problem
from autonovel.methods.rankstats import Joint
from autonovel.networks import Model
from autonovel.settings import Recipe
from autonovel.training.stage import Stage

THRESHOLD = 0.95


class CosineJoint(Joint):
    """Joint training whose pair labels s_ij say whether two features point the same way."""

    def same(self, z: Tensor) -> Tensor:
        """Return s_ij for all pairs of a batch."""
        direction = F.normalize(z.detach(), dim=1)
        return direction @ direction.T > THRESHOLD


@dataclass(frozen=True)
class Cosine:
    """A method: its stages after the shared ones, and what remains to be done at the end."""

    def stages(self, recipe: Recipe, problem: Problem) -> list[Stage]:
        """Return the joint training, with the settings of [joint]."""
        return [CosineJoint(recipe.joint, problem.n_known, problem.n_new, problem.seed)]

    def finish(self, model: Model, images: ImageSet, problem: Problem) -> None:
        """Joint training has left both heads; nothing remains."""


METHODS["cosine"], LABELS["cosine"] = Cosine(), "cosine of pairs"

if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--recipe", default="demo")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, default=Path("runs/new-method"))
    options.add_argument("--set", action="append", default=[], dest="sets")
    given = options.parse_args()
    systems = ['run.systems=["cosine", "rankstats", "kmeans"]', "run.parallel=false"]  # only this process knows cosine
    run = run_recipe(given.recipe, given.out, given.seed, systems + given.sets, Manner(overwrite=True))
    print_table([run], as_json=False)
