"""One system brought to its end: the one that delivers, or one of a comparison in a folder of its own."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from autonovel import agreement, discovery, scoring, stage_names
from autonovel.data import ImageSet
from autonovel.data.crew import deaths_explained
from autonovel.embedding import Embedding, embed, joint_order
from autonovel.extraction import extractor
from autonovel.job import Job
from autonovel.labels import PIXELS
from autonovel.methods import METHODS, WITHOUT_STAGE_2
from autonovel.methods.kmeans import pixel_clusters
from autonovel.methods.similarity import LearnSimilarity
from autonovel.networks import Model, heads
from autonovel.storage.documents import write_json
from autonovel.storage.run_folder import subfolder_lock, sweep
from autonovel.studies.variants import BY_JOINT, BY_SIMILARITY, adopt_joint, adopt_similarity
from autonovel.training.loop import run_stage
from autonovel.training.stage import Stage


@dataclass(frozen=True)
class Found:
    """What one system found: its model, what the model says of the training images, and the time it took."""

    model: Model
    embedding: Embedding
    seconds: float


def run_system(job: Job, name: str, folder: Path) -> Found:
    """Bring one system to its end, its own stages under ``folder``, new classes ordered by size."""
    model, _ = extractor(_without_stage_2(job) if name in WITHOUT_STAGE_2 else job)
    method, context = METHODS[name], job.context(folder, name)
    start = time.monotonic()
    stages = method.stages(job.recipe, job.problem)
    if name in BY_SIMILARITY:  # the other one of this run may have learned it
        job.ranks.alone(lambda: adopt_similarity(folder, job.folder))
    stages = _from_stage_1(job, stages)
    joint = name in BY_JOINT and job.recipe.incremental.after == "joint"
    if joint and stages and stages[0].name in (stage_names.JOINT, stage_names.JOINT_FIRST):
        job.ranks.alone(lambda: adopt_joint(folder / "stages" / stages[0].name, job.folder))
    seconds = sum(run_stage(model, stage, job.train, context) for stage in stages)
    z = method.finish(model, job.train, job.problem)
    embedding = embed(model, job.train.images, z)
    order = discovery.by_size(job.train, embedding.p_new)
    _order_by_size(model, order, job.train.n_known)
    return Found(model, embedding.reordered(order, job.train.n_known), seconds or time.monotonic() - start)


def _from_stage_1(job: Job, stages: Sequence[Stage]) -> list[Stage]:
    """Return ``stages`` with a similarity network that starts from stage 1, where the recipe wants and has one."""
    wanted = job.recipe.similarity.start == "pretrained" and job.recipe.pretrain.kind not in ("supervised", "none")
    if not wanted or not any(isinstance(stage, LearnSimilarity) for stage in stages):
        return list(stages)
    first, _ = extractor(_without_stage_2(job))
    return [replace(one, trunk=first.trunk) if isinstance(one, LearnSimilarity) else one for one in stages]


def _without_stage_2(job: Job) -> Job:
    return replace(job, recipe=replace(job.recipe, supervised=replace(job.recipe.supervised, epochs=0)))


def _order_by_size(model: Model, order: torch.Tensor, n_known: int) -> None:
    new, known = model.heads["new"], model.heads["known"]
    assert isinstance(known, heads.ClassHead)
    heads.reorder(new, order.to(model.mean.device))
    if known.out_features > n_known:
        heads.reorder(known, joint_order(order, n_known).to(model.mean.device))


def on_test(job: Job, found: Found) -> tuple[ImageSet, Embedding] | tuple[None, None]:
    """Return the held-out images, if any, and what a system's model says of them: they judge a grown head alone."""
    if job.test and found.embedding.is_grown(job.train.n_known):
        return job.test, embed(found.model, job.test.images)
    return None, None


def run_side_system(job: Job, name: str) -> None:
    """Bring a system of the comparison to its end under ``systems/NAME`` and write its scores there."""
    folder, ranks = job.folder / "systems" / name, job.ranks
    with ranks.alone(lambda: subfolder_lock(folder)) or contextlib.nullcontext(), deaths_explained():
        if ranks.lead(lambda: (folder / "results.json").exists()):
            return
        ranks.alone(lambda: sweep(folder))
        if name == PIXELS:
            ranks.alone(lambda: _cluster_pixels(job, folder))
            return
        found = run_system(job, name, folder)
        content = scoring.system_record(found.embedding, found.seconds, job.train, *on_test(job, found))
        if ranks.first:
            if trains(job, name):  # features of its own, which the figures compare
                found.embedding.save(folder / "embedding.safetensors")
            agreement.save_assignments(folder, new_class(job, found.embedding))
            write_json(folder / "results.json", content)


def _cluster_pixels(job: Job, folder: Path) -> None:
    start = time.monotonic()
    clusters = pixel_clusters(job.train, job.problem.n_new, job.seed)
    scores, seconds = scoring.cluster_scores(job.train, clusters), time.monotonic() - start
    agreement.save_assignments(folder, clusters)
    write_json(folder / "results.json", {"scores": scores, "seconds": seconds, "incremental": None})


def new_class(job: Job, embedding: Embedding) -> torch.Tensor:
    """Return the new class, from 0 on, of each unlabelled image."""
    if not embedding.p_new.shape[1]:  # there was nothing to discover
        return torch.zeros(0, dtype=torch.int64)
    return embedding.p_new[job.train.unlabelled].argmax(dim=1)


def trains(job: Job, name: str) -> bool:
    """Tell whether a system has stages of its own, rather than only clustering."""
    return name in METHODS and bool(METHODS[name].stages(job.recipe, job.problem))
