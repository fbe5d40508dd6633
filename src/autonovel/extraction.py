"""Images as training sees them, and the stages that all systems share: they end with the feature extractor."""

from dataclasses import replace

import torch

from autonovel.cached_views import FEATURES, with_cached_views
from autonovel.device import precision
from autonovel.first_model import new_model
from autonovel.job import Job
from autonovel.methods.prototypical import Prototypical
from autonovel.methods.rotnet import Rotation
from autonovel.methods.supervised import supervised_stage
from autonovel.networks import Model
from autonovel.training.loop import run_stage
from autonovel.training.stage import Stage


def as_seen(job: Job) -> Job:
    """Return the job with its images as training sees them: at their size, or as features computed once."""
    side = job.recipe.data.size
    seen = replace(job, train=job.train.resized(side), test=job.test.resized(side) if job.test else None)
    return _with_features(seen) if job.recipe.network.cached_views else seen


def _with_features(job: Job) -> Job:
    model = _untrained(job)
    model.to(job.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    given = (model, job.recipe, job.seed, job.folder / FEATURES, job.display)
    train = with_cached_views(job.train, *given, job.recipe.network.cached_views, "images")
    return replace(job, train=train, test=with_cached_views(job.test, *given, 1, "test images") if job.test else None)


def extractor(job: Job) -> tuple[Model, dict[str, float]]:
    """Return the model after the stages all systems share, and the seconds each took."""
    model = _untrained(job)
    seconds = {}
    context = job.context(job.folder)
    for name, stage in shared_stages(job).items():
        if stage.number <= max(job.stages):
            seconds[name] = run_stage(model, stage, job.train, context)
    return model.to(job.device), seconds


def _untrained(job: Job) -> Model:
    model = new_model(job.recipe, job.train, job.seed)
    model.precision, model.ranks = precision(job.recipe.network.precision, job.device), job.ranks
    return model


def shared_stages(job: Job) -> dict[str, Stage]:
    """Return stages 1 and 2 by name, as far as the recipe has them."""
    r = job.recipe
    stages: dict[str, Stage] = {}
    if r.pretrain.kind == "rotation":
        stages["rotation"] = Rotation(r.pretrain, job.train.n_known, job.seed)
    if r.pretrain.kind == "prototypical":
        stages["prototypical"] = Prototypical(r.pretrain, job.seed)
    if r.supervised.epochs:
        stages["supervised"] = supervised_stage(r, job.train.n_known, job.seed)
    return stages
