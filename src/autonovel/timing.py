"""How long a run will take on this machine: a few steps of each stage are taken on blank images, and counted up.

Blank images cost what others do.  They are one image seen n times, so that no memory is needed for them.
"""

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from autonovel import draws, networks
from autonovel.choosing import MOST_TIMES
from autonovel.data import ImageSet, Resident
from autonovel.device import precision, torch_settings
from autonovel.labels import PLAIN
from autonovel.methods import METHODS, Problem
from autonovel.methods.dtc import Sharpen
from autonovel.methods.rotnet import Rotation
from autonovel.methods.supervised import supervised_stage
from autonovel.networks import Adapted, Model
from autonovel.networks.folded import folded
from autonovel.passes import batch_size, side_by_side
from autonovel.settings import Recipe
from autonovel.stage_names import JOINT_FIRST
from autonovel.training import optimisers
from autonovel.training.loop import DEFAULT_THREADS
from autonovel.training.ranks import ALONE
from autonovel.training.stage import OnMaterial, Stage
from autonovel.training.steps import Step

STEPS = 5
FEW_NEW = 10  # new classes assumed where nobody knows their number


@dataclass(frozen=True)
class Sizes:
    """How many images of what kind."""

    known: tuple[int, ...]
    unlabelled: int
    channels: int


def estimate(recipe: Recipe, sizes: Sizes, device: torch.device) -> dict[str, float]:
    """Return about how many seconds each part of a run will take: features, stages, trials."""
    with torch_settings(precision(recipe.network.precision, device)):
        images = _blank(recipe, sizes)
        model = _model(recipe, sizes.channels, device)
        out: dict[str, float] = {}
        if recipe.network.cached_views:
            per_image, width = _features(model, images, device)
            out["features"] = per_image * len(images) * recipe.network.cached_views
            row = torch.rand(1, recipe.network.cached_views, width).half()
            images = _with(images, row)
        n_new = int(recipe.count.new_classes) if recipe.count.new_classes.isdecimal() else FEW_NEW
        problem = Problem(images.n_known, n_new, 0)
        if recipe.pretrain.kind == "rotation":
            out["rotation"] = _stage(model, Rotation(recipe.pretrain, images.n_known, 0), images, device)
        if recipe.supervised.epochs:
            out["supervised"] = _stage(model, supervised_stage(recipe, images.n_known, 0), images, device)
        systems = 0.0
        for name in recipe.run.systems:
            for stage in METHODS[name].stages(recipe, problem) if name in METHODS else []:
                taken_over = stage.name == JOINT_FIRST and PLAIN in recipe.run.systems
                if not taken_over and not isinstance(stage, OnMaterial):  # a classifier on features takes no time
                    systems += _stage(model, stage, images, device)
        out["systems"] = systems
        if recipe.run.trials and len(sizes.known) > 3:
            hidden = max(sum(sizes.known) / 2, 1)
            times = min(max(sizes.unlabelled / hidden, 1), MOST_TIMES)  # as the trials are stretched
            each = systems * times * hidden / max(sizes.unlabelled, 1) + out.get("supervised", 0.0) / 2
            out["trials"] = recipe.run.trials * each
        torch.set_num_threads(DEFAULT_THREADS)
        return out


def in_words(parts: dict[str, float]) -> str:
    """Return the estimate as a sentence."""
    named = ", ".join(f"{name} {_rounded(seconds)}" for name, seconds in parts.items() if seconds >= 1)
    which = f"{named}; " if named else ""
    whole = _rounded(sum(parts.values()))
    return f"Takes about {whole} to train on this machine ({which}start, counting and the report come on top)."


def _rounded(seconds: float) -> str:
    if seconds < 90:
        return f"{max(5 * round(seconds / 5), 1)} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _blank(recipe: Recipe, sizes: Sizes) -> ImageSet:
    side = recipe.data.size
    y = torch.cat([torch.full((n,), number) for number, n in enumerate(sizes.known)])
    y = torch.cat([y, torch.full((sizes.unlabelled,), -1)])
    pixels = torch.full((1, sizes.channels, side, side), 128, dtype=torch.uint8).expand(len(y), -1, -1, -1)
    return ImageSet(pixels, y, tuple(map(str, range(len(y)))), tuple(map(str, range(len(sizes.known)))))


def _with(images: ImageSet, row: Tensor) -> ImageSet:
    return ImageSet(row.expand(len(images), -1, -1), images.y, images.ids, images.class_names)


def _model(recipe: Recipe, channels: int, device: torch.device) -> Model:
    blank = torch.full((channels,), 0.5)
    model = networks.build(recipe.network, channels, blank, blank, 0)  # weights do not matter here
    model.precision = precision(recipe.network.precision, device)
    return model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


@torch.no_grad()
def _features(model: Model, images: ImageSet, device: torch.device) -> tuple[float, int]:
    """Return the seconds that a pretrained network takes for an image, and the number of its features."""
    made = folded(model)
    trunk = made.trunk
    assert isinstance(trunk, Adapted) and isinstance(images.images, Tensor)
    size = batch_size(images.images.shape[-1], device)
    x = made.normalised(images.images[:1].expand(size, -1, -1, -1).float().to(device) / 255)
    passes = [x] * (1 if device.type != "cpu" else torch.get_num_threads())

    def pooled(x: Tensor) -> Tensor:
        with torch.no_grad():
            return trunk.pooled(x)

    seconds = _seconds(lambda: list(side_by_side(pooled, passes, device)), device)
    return seconds / (size * len(passes)), trunk.n_pooled


def _stage(model: Model, stage: Stage, images: ImageSet, device: torch.device) -> float:
    """Return the seconds of all epochs of a stage."""
    torch.set_num_threads(stage.settings.threads or DEFAULT_THREADS)
    stage.prepare(model)
    model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    model.train()
    sampler = stage.sampler(images)
    if not sampler.steps_per_epoch:
        return 0.0
    assert isinstance(images.images, Tensor)
    if isinstance(stage, Sharpen):
        _fill_memory(stage, images, device)
    step = Step(model, stage, _Blank(images, device), optimisers.make(stage.settings, model.parameters()), 1)
    row = sampler.epoch(0)[0].to(device)
    u = draws.uniform(1, torch.zeros(1, dtype=torch.int64, device=device), row[None], stage.n_draws)[0]
    seconds = _seconds(lambda: step(row, u, 0, 0.0), device)
    return seconds * sampler.steps_per_epoch * stage.settings.epochs


def _fill_memory(stage: Sharpen, images: ImageSet, device: torch.device) -> None:
    """Give DTC some targets: true ones would take a pass over all images."""
    stage.memory["row"] = (images.unlabelled.cumsum(0) - 1).to(device)
    for name in ("target", "past", "latest"):
        even = torch.full((int(images.unlabelled.sum()), stage.n_clusters), 1 / stage.n_clusters)
        stage.memory[name] = even.to(device)


class _Blank(Resident):
    """Gathers from the one image, without laying n of them out."""

    def __init__(self, images: ImageSet, device: torch.device) -> None:
        assert isinstance(images.images, Tensor)
        self.images = images.images[:1].to(device).expand(len(images), *images.images.shape[1:])
        self.y, self.truth, self.ranks = images.y.to(device), None, ALONE


def _seconds(work: object, device: torch.device) -> float:
    """Return the time of the fastest of a few calls, after a first one that warms up."""
    assert callable(work)
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    times = []
    for _ in range(STEPS):
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times)  # what else the machine does for a moment is left out
