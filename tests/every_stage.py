"""Every training stage of every method on a few random images, ready to be trained by itself."""

import tempfile
from pathlib import Path
from typing import Any

import torch

from autonovel import networks, recipe
from autonovel.data import ImageSet, channel_statistics
from autonovel.methods import METHODS, Problem
from autonovel.methods.prototypical import Prototypical
from autonovel.methods.rotnet import Rotation
from autonovel.methods.supervised import Supervised
from autonovel.networks import Model
from autonovel.settings import Recipe
from autonovel.storage.journal import Journal
from autonovel.training.loop import Context, run_stage
from autonovel.training.stage import Stage
from runs import TINY

N_KNOWN, N_NEW = 2, 2
# system, how many of its stages go before, the section of its settings, the setting that is its learning rate
OF_METHODS = {
    "joint": ("rankstats", 0, "joint", "lr"),
    "starts": ("rankstats", 0, "joint", "lr"),
    "fixed views": ("rankstats", 0, "joint", "lr"),
    "renewed views": ("rankstats", 0, "joint", "lr"),
    "incremental": ("rankstats-incremental", 0, "incremental", "lr"),
    "rebalanced": ("rankstats-incremental", 0, "incremental", "lr"),
    "grown after joint": ("rankstats-incremental", 1, "incremental", "lr"),
    "similarity": ("kcl", 0, "similarity", "lr"),
    "kcl": ("kcl", 1, "kcl", "lr"),
    "mcl": ("mcl", 1, "mcl", "lr"),
    "dtc-start": ("dtc", 0, "dtc", "start_lr"),
    "dtc": ("dtc", 1, "dtc", "lr"),
    "linear": ("kcl", 2, "linear", "lr"),
}
STAGES = ("rotation", "labelled rotation", "prototypical", "supervised", *OF_METHODS)
QUICK = {
    "pretrain.batch_size": 12, "pretrain.classes_per_batch": 2, "pretrain.support": 2, "supervised.batch_size": 6,
    "joint.batch_size": 8, "joint.group": 0, "joint.watch": 0, "joint.keep_embeddings_at": (),
    "similarity.batch_size": 6, "kcl.batch_size": 6, "dtc.batch_size": 6, "linear.batch_size": 12,
}  # fmt: skip


FIXED: dict[str, Any] = {"fixed_views": 3, "frozen": ("stem", "block1"), "frozen_batchnorm": "eval"}
ALWAYS: dict[str, dict[str, Any]] = {
    "starts": {"starts": 3, "starts_until": 0.5},
    "rebalanced": {"rebalance": True},
    "grown after joint": {"after": "joint"},
    "fixed views": FIXED,
    "renewed views": FIXED | {"renew_views": 1, "augment.shift": 1.0},
    "labelled rotation": {"label_weight": 1.0},
}


def some_images(seed: int = 0) -> ImageSet:
    """Return 12 labelled images of two classes and 12 unlabelled ones of two others, each class bright elsewhere."""
    rng = torch.Generator().manual_seed(seed)
    truth = torch.arange(24) % 4
    truth = truth[truth.argsort(stable=True)]
    pixels = torch.randint(0, 100, (24, 1, 8, 8), generator=rng, dtype=torch.uint8)
    for image, c in zip(pixels, truth.tolist(), strict=True):
        image[0, 4 * (c // 2) : 4 * (c // 2) + 4, 4 * (c % 2) : 4 * (c % 2) + 4] += 120
    y = torch.where(truth < N_KNOWN, truth, -1)
    return ImageSet(pixels, y, tuple(map(str, range(24))), ("a", "b"), truth, ("c", "d"))


def section_of(name: str) -> tuple[str, str]:
    """Return the section of a stage's settings and the name of its learning rate there."""
    if name in OF_METHODS:
        return OF_METHODS[name][2:]
    return ("supervised" if name == "supervised" else "pretrain"), "lr"


def settings_of(name: str, changes: dict[str, Any]) -> Recipe:
    own = {f"{section_of(name)[0]}.{key}": value for key, value in (ALWAYS.get(name, {}) | changes).items()}
    return recipe.load(str(TINY), QUICK | own).recipe


def line(name: str, **changes: Any) -> list[Stage]:
    """Return the stage ``name`` with settings of its own changed, after those that must be prepared before it."""
    made, problem = settings_of(name, changes), Problem(N_KNOWN, N_NEW, 0)
    supervised = Supervised(made.supervised, N_KNOWN, 0)
    if name in OF_METHODS:
        method, before, _, _ = OF_METHODS[name]
        return [supervised, *METHODS[method].stages(made, problem)[: before + 1]]
    rotation = Rotation(made.pretrain, N_KNOWN, 0)
    first = {"rotation": rotation, "labelled rotation": rotation, "prototypical": Prototypical(made.pretrain, 0)}
    return [first[name]] if name in first else [supervised]


def ready(name: str, **changes: Any) -> tuple[Model, Stage]:
    """Return a network that has come as far as the stage ``name``, and the stage."""
    torch.manual_seed(0)
    model = networks.build("small", 1, *channel_statistics(some_images().images), seed=0)
    *before, stage = line(name, **changes)
    for earlier in before:
        earlier.prepare(model)
    if name == "dtc":  # its centres come from the stage before
        with tempfile.TemporaryDirectory() as place:
            run_stage(model, before[-1], some_images(), context_in(Path(place)))
    return model, stage


class Told:
    """A display that remembers what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def begin(self, stage: str, total: int, done: int, of: str = "steps") -> None: ...

    def update(self, stage: str, done: int, terms: dict[str, float], images_per_second: float) -> None: ...

    def end(self, stage: str) -> None: ...


def train(
    folder: Path, name: str, display: Told | None = None, keep_going: bool = False, **changes: Any
) -> dict[str, torch.Tensor]:
    """Train the stage ``name`` under ``folder``, keeping a checkpoint after every epoch; return its weights."""
    model, stage = ready(name, **changes)
    system = OF_METHODS[name][0] if name in OF_METHODS else ""
    run_stage(model, stage, some_images(), context_in(folder, display, keep_going, system))
    return model.state_dict()


def context_in(folder: Path, display: Told | None = None, keep_going: bool = False, system: str = "") -> Context:
    journal = Journal(folder / "metrics.jsonl")
    return Context(folder, journal, 0, torch.device("cpu"), display or Told(), keep_going, 0.0, system)


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(value, other[key]) for key, value in one.items())
