"""Features for the count of new classes, by stages that were not taught the classes that play new ones.

Stage 1 is the run's own, and was told none of their labels.  Stage 2 is the run's own too where no known class plays a
new one; otherwise it is trained anew without those classes, under ``count/`` in the run folder.
"""

from dataclasses import replace

import torch
from torch import Tensor

from autonovel.data import ImageSet
from autonovel.embedding import features
from autonovel.errors import writes_explained
from autonovel.extraction import extractor, shared_stages
from autonovel.job import Job
from autonovel.methods.pretrained_kmeans import own_features
from autonovel.methods.supervised import Supervised
from autonovel.storage import writing
from autonovel.storage.documents import read_json, write_json
from autonovel.studies.variants import PROBES
from autonovel.training.loop import run_stage


def without(images: ImageSet, classes: tuple[int, ...]) -> ImageSet:
    """Return the images with the labels of ``classes`` hidden and the other known classes numbered anew."""
    kept = [number for number in range(images.n_known) if number not in classes]
    renumbered = torch.full((images.n_known + 1,), -1)  # the last place serves unlabelled images, whose y is −1
    renumbered[kept] = torch.arange(len(kept))
    names = tuple(images.class_names[number] for number in kept)
    return replace(images, y=renumbered[images.y], class_names=names, truth=None, new_names=())


def stage_features(job: Job, taught: ImageSet, hidden: tuple[int, ...]) -> list[Tensor]:
    """Return the features after stage 1, where it taught any, and after stage 2."""
    r = job.recipe
    pretrained = r.pretrain.kind in ("rotation", "prototypical", "weights", "imagenet")
    stage_1 = r.pretrain if pretrained else replace(r.pretrain, kind="none")
    stage_1_alone = replace(r, pretrain=stage_1, supervised=replace(r.supervised, epochs=0))
    model, _ = extractor(replace(job, recipe=stage_1_alone))
    parts = [own_features(model, job.train)] if pretrained else []
    if not r.supervised.epochs or (parts and r.count.features == "pretrained"):
        return parts or [features(model, job.train.images)]
    stage = shared_stages(job)["supervised"]
    folder, label = job.folder, ""
    if hidden:
        assert isinstance(stage, Supervised)
        stage, folder, label = replace(stage, n_known=taught.n_known), job.folder / "count", "without probes"
        job.ranks.alone(lambda: _forget_other_probes(job, hidden))
    run_stage(model, stage, taught, job.context(folder, label))
    return [*parts, features(model, job.train.images)]


def _forget_other_probes(job: Job, hidden: tuple[int, ...]) -> None:
    """Drop a stage 2 that was trained without other classes than these."""
    note = job.folder / "count" / PROBES
    content = {"probes": list(hidden)}
    if not note.exists() or read_json(note) != content:
        with writes_explained(job.folder):
            writing.remove(job.folder / "count")
        write_json(note, content)
