"""Run by torchrun: every stage, trained by all processes together and by the first one alone, must be the same.

On a CPU the networks have fixed BatchNorm statistics (``frozen_batchnorm = "everywhere"``), calibrated on the images,
so that nothing depends on which images share a forward pass; on a GPU, those of the whole batch.  Prints one JSON line,
of the largest differences.

Which of several processes sums up what is rounding, which does no harm unless something is decided by yes or no: which
of two nearly equal features is stronger, or on which side of its bend a ReLU is.  That happens on few images, and a
defect on all of them; so a stage that is not the same is looked at on others.
"""

import copy
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from autonovel import settings
from autonovel.data import ImageSet
from autonovel.data.streamed import HostPixels
from autonovel.embedding import embed, features
from autonovel.launch import end_at_once
from autonovel.methods.dtc import Sharpen, Start
from autonovel.methods.kmeans import KMeans
from autonovel.methods.linear import LinearClassifier
from autonovel.methods.method import Problem
from autonovel.methods.pair_clustering import Cluster
from autonovel.methods.prototypical import Prototypical
from autonovel.methods.rankstats import Joint
from autonovel.methods.rotnet import Rotation
from autonovel.methods.similarity import LearnSimilarity
from autonovel.methods.supervised import Supervised
from autonovel.networks import Model, build
from autonovel.objectives import kcl, mcl
from autonovel.settings import Augment
from autonovel.storage.journal import Journal
from autonovel.training.display import Silent
from autonovel.training.loop import Context, run_stage
from autonovel.training.ranks import ALONE, Ranks, join
from autonovel.training.stage import Stage

DEVICE = torch.device(sys.argv[1] if len(sys.argv) > 1 else "cpu")
STATISTICS = "everywhere" if DEVICE.type == "cpu" else "train"
N_KNOWN, N_NEW, EPOCHS = 3, 3, 2
COMMON: dict[str, Any] = {
    "batch_size": 12, "lr": 0.003, "optimiser": "sgd", "frozen": ("stem",), "frozen_batchnorm": STATISTICS,
    "augment": Augment(shift=1, rotate=0.2),
}  # fmt: skip


CLOSE, TRIES = 1e-5, 3
Logged = list[dict[str, Any]]
Stages = Callable[[], list[Stage]]


def images(seed: int = 0) -> ImageSet:
    """Return noisy patterns, six classes of them, three of which are known."""
    rng = torch.Generator().manual_seed(seed)
    truth = torch.arange(66) % (N_KNOWN + N_NEW)
    patterns = torch.rand(N_KNOWN + N_NEW, 1, 8, 8, generator=rng)
    pixels = 200 * patterns[truth] + 55 * torch.rand(66, 1, 8, 8, generator=rng)
    y = torch.where(truth < N_KNOWN, truth, -1)
    return ImageSet(pixels.byte(), y, tuple(map(str, range(66))), ("a", "b", "c"), truth, ("d", "e", "f"))


def calibrated(data: ImageSet) -> Model:
    """Return an untrained network whose BatchNorm knows the statistics of the images."""
    model = build("small", 1, torch.tensor([0.5]), torch.tensor([0.3]), 0)
    for layer in model.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.momentum = 1.0
    model.train()
    with torch.no_grad():
        model.features(data.images[torch.arange(len(data))].float() / 255)
    return model


def stages(n: int) -> dict[str, Stages]:
    """Return makers of the stages to compare, by name."""
    joint = settings.Joint(epochs=n, ramp_epochs=1, k=2, watch=0, **COMMON)
    supervised = Supervised(settings.Supervised(epochs=n, **COMMON), N_KNOWN, 0)
    similar = settings.Similarity(epochs=n, **COMMON)
    pairs = settings.PairClustering(epochs=n, **COMMON)
    dtc = settings.Dtc(epochs=n, start_epochs=1, update_every=1, restarts=2, ramp_epochs=0, start_lr=0.003, **COMMON)
    plain = replace(dtc, first_view="plain", statistics="anew")
    linear = LinearClassifier(settings.Linear(epochs=n, batch_size=12, lr=0.01), N_KNOWN, 0)
    cluster = (N_NEW, "batch", 0)
    pretrain = settings.Pretrain(epochs=n, **COMMON)
    settled: dict[str, Any] = {
        "frozen": ("stem", "block1"),
        "frozen_batchnorm": "everywhere" if DEVICE.type == "cpu" else "eval",
    }
    episodes = replace(pretrain, classes_per_batch=3, support=2, lr=1e-5)
    return {
        "rotation, four": lambda: [Rotation(pretrain, N_KNOWN, 0)],
        "rotation, one": lambda: [Rotation(replace(pretrain, rotations="one"), N_KNOWN, 0)],
        "rotation, labels": lambda: [Rotation(replace(pretrain, label_weight=1, label_turns="upright"), N_KNOWN, 0)],
        "prototypical": lambda: [Prototypical(episodes, 0)],
        "prototypical, turned": lambda: [Prototypical(replace(episodes, turned=True), 0)],
        "supervised": lambda: [supervised],
        "joint": lambda: [supervised, Joint(joint, N_KNOWN, N_NEW, 0)],
        "joint, starts": lambda: [Joint(replace(joint, starts=3, starts_until=0.5), N_KNOWN, N_NEW, 0)],
        "joint, fixed views": lambda: [supervised, Joint(replace(joint, fixed_views=3, **settled), N_KNOWN, N_NEW, 0)],
        "joint, own": lambda: [Joint(replace(joint, consistency_on="own"), N_KNOWN, N_NEW, 0)],
        "joint, merged": lambda: [Joint(replace(joint, batch="merged", views="separate"), N_KNOWN, N_NEW, 0)],
        "joint, incremental, groups": lambda: [
            Joint(replace(joint, group=3, rebalance=True), N_KNOWN, N_NEW, 0, incremental=True)
        ],
        "kcl": lambda: [
            LearnSimilarity(similar, N_KNOWN, N_NEW, 0), Cluster(pairs, *cluster, kcl, "kcl"), linear
        ],
        "mcl": lambda: [
            LearnSimilarity(replace(similar, batch="merged", balance="even"), N_KNOWN, N_NEW, 0),
            Cluster(pairs, *cluster, mcl, "mcl"),
        ],
        **{
            f"dtc, {variant}": lambda variant=variant: [  # type: ignore[misc]
                Start(replace(dtc, epochs=1, variant="baseline"), N_NEW, 0),
                Sharpen(replace(dtc, variant=variant), N_NEW, 0),
            ]
            for variant in ("pi", "te", "tep")
        },
        "dtc, plain": lambda: [
            Start(replace(plain, epochs=1, variant="baseline"), N_NEW, 0), Sharpen(plain, N_NEW, 0)
        ],
    }  # fmt: skip


def train(make: Stages, data: ImageSet, ranks: Ranks) -> tuple[Logged, Model]:
    """Return what was logged, and the model."""
    model = copy.deepcopy(calibrated(data))
    with tempfile.TemporaryDirectory() as place:
        journal = Journal(Path(place) / "metrics.jsonl")
        for stage in make():
            context = Context(Path(place), journal, 0, DEVICE, Silent(), True, cuda_graphs=False, ranks=ranks)
            run_stage(model, stage, data, context)
    return journal.lines, model


def largest(one: Logged, many: Logged) -> float:
    """Return the largest difference of any logged number but times."""
    assert len(one) == len(many) > 0
    found = 0.0
    for line, other in zip(one, many, strict=True):
        assert line.keys() == other.keys()
        for key in line.keys() - {"stage", "seconds", "images_per_second"}:
            found = max(found, float((torch.tensor(line[key]) - torch.tensor(other[key])).abs().max()))
    return found


class Counted(HostPixels):
    """Pixels that are streamed, and count how many images were asked for."""

    asked = 0

    def parts_in_order(self, batches: Iterator[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
        for rows in batches:
            Counted.asked += len(rows)
            yield [self.images[rows]]


def whole_stage(make: Stages, data: ImageSet, ranks: Ranks) -> dict[str, float]:
    """Return, in the first process, how far what all make of some stages is from what it makes of them alone."""
    logged, model = train(make, data, ranks)
    assert bool(logged) == ranks.first  # one process writes
    together = embed(model, data.images) if "new" in model.heads and "known" in model.heads else None
    weights = torch.cat([value.double().flatten().cpu() for value in model.state_dict().values()])
    everywhere = ranks.collect(weights)
    if not ranks.first:
        return {}
    assert all(torch.equal(weights, other) for other in everywhere), "models differ"
    alone, single = train(make, data, ALONE)
    expected = torch.cat([value.double().flatten().cpu() for value in single.state_dict().values()])
    apart = {"losses": largest(alone, logged), "weights": float((weights - expected).abs().max())}
    if together is not None:
        same = embed(single, data.images).p_new.argmax(1) == together.p_new.argmax(1)
        apart["predictions"] = float((~same).sum())
    return apart


def streamed(make: Stages, data: ImageSet, ranks: Ranks) -> dict[str, float]:
    """Return the same of stages whose images each process streams, beside a single process that holds them."""
    assert isinstance(data.images, torch.Tensor)
    host = replace(data, images=Counted(data.images))
    Counted.asked = 0
    logged, model = train(make, host, ranks)
    steps = sum(stage.sampler(data).steps_per_epoch * EPOCHS for stage in make())
    assert Counted.asked == steps * COMMON["batch_size"] // ranks.world, "each process reads its shares alone"
    found = features(model, host.images)
    if not ranks.first:
        return {}
    alone, single = train(make, data, ALONE)
    apart = float((features(single, data.images) - found).abs().max())
    return {"losses": largest(alone, logged), "features": apart}


def least(
    compare: Callable[[Stages, ImageSet, Ranks], dict[str, float]], make: Stages, ranks: Ranks
) -> dict[str, float]:
    """Return the differences on the first of a few sets of images on which there are none, or on the last."""
    for seed in range(TRIES):
        apart = compare(make, images(seed), ranks)
        if ranks.lead(lambda apart=apart: max(apart.values()) < CLOSE):
            break
    return apart


def main() -> None:
    """Compare all stages."""
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False
    ranks, data = join(DEVICE), images()
    found = {name: least(whole_stage, make, ranks) for name, make in stages(EPOCHS).items()}
    found["joint, streamed"] = least(streamed, stages(EPOCHS)["joint"], ranks)
    model = calibrated(data).to(DEVICE)
    model.ranks = ranks
    KMeans().finish(model, data, Problem(N_KNOWN, N_NEW, 0))
    clusters = ranks.collect(embed(model, data.images).p_new)
    logged, _ = train(lambda: [Joint(settings.Joint(epochs=1, pairs="local", watch=0, **COMMON), 3, 3, 0)], data, ranks)
    if ranks.first:
        assert all(torch.equal(clusters[0], other) for other in clusters), "k-means: answers differ"
        whole, _ = train(lambda: [Joint(settings.Joint(epochs=1, watch=0, **COMMON), 3, 3, 0)], data, ALONE)
        found["local pairs"] = {"bce apart": abs(logged[0]["loss/bce"] - whole[0]["loss/bce"])}
        print(json.dumps(found), flush=True)
    ranks.leave()


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    end_at_once(0)
