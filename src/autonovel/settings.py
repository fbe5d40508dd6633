"""Every setting of a run, typed, with its meaning and where its default comes from.

Defaults are the published code's for CIFAR-10 unless a source says otherwise.  ``autonovel show`` prints
this page for a recipe; ``recipe.py`` reads and checks values for it.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from autonovel.errors import UsageError
from autonovel.labels import LABELS

T = TypeVar("T")

CODE = "published code"
OURS = "ours"
L2C = "published code of KCL and MCL, OmniGlot"
DTC = "published code of DTC"


def setting(
    default: T,
    doc: str,
    source: str = OURS,
    *,
    choices: Collection[Any] = (),
    low: float | None = None,
    high: float | None = None,
) -> T:
    """Return a dataclass field that knows its meaning, its source and its bounds."""
    made: Any = field(
        default=default, metadata={"doc": doc, "source": source, "choices": choices, "low": low, "high": high}
    )
    return made  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A group of settings; checks choices and bounds when made."""

    def __post_init__(self) -> None:
        for f in fields(self):
            value, meta = getattr(self, f.name), f.metadata
            where = f.name
            given = value if isinstance(value, tuple) else (value,)
            if meta.get("choices") and any(v not in meta["choices"] for v in given):
                raise UsageError(f"{where} is {value!r}; it must be one of {', '.join(map(str, meta['choices']))}.")
            if meta.get("low") is not None and any(v < meta["low"] for v in given):
                raise UsageError(f"{where} is {value!r}; it must be at least {meta['low']}.")
            if meta.get("high") is not None and any(v > meta["high"] for v in given):
                raise UsageError(f"{where} is {value!r}; it must be at most {meta['high']}.")


@dataclass(frozen=True, kw_only=True)
class Run(Section):
    """What is run and reported."""

    systems: tuple[str, ...] = setting(
        ("rankstats",),
        "systems to run and compare; the first is the one whose classes are delivered",
        choices=LABELS,
    )
    parallel: bool = setting(False, "train the systems' last stages as processes beside each other (CPU only)")
    checkpoint_seconds: float = setting(20.0, "seconds between checkpoints inside a stage", low=0)
    cuda_graphs: bool = setting(True, "on a CUDA device, record each step as a graph and replay it")
    map_points: int = setting(2000, "images on the report's t-SNE map", low=10)


@dataclass(frozen=True, kw_only=True)
class Data(Section):
    """Which images."""

    source: str = setting("arrays", "where images come from: a benchmark, the embedded sample, a folder of images, "
                          "tar shards, or the caller's arrays",
                          choices=("arrays", "sample", "cifar10", "cifar100", "svhn", "folder", "shards"))  # fmt: skip
    path: str = setting("", "folder of the benchmark's files (--data)")
    known: tuple[str, ...] = setting((), "names of the known classes")
    first_known: int = setting(0, "instead of naming them, take this many classes of the source as known", low=0)
    new: tuple[str, ...] = setting((), "names of the new classes, all others being left out (none named: all others)")
    first_new: int = setting(0, "instead of naming them, take this many classes after the known ones as new", low=0)
    per_class: int = setting(0, "keep only this many images of each class, for a quick trial (0: all)", low=0)
    size: int = setting(0, "side to which images are resized (0: left as they are); of image files, the central square "
                        "is", low=0)  # fmt: skip
    truth: str = setting("", "CSV of path and label of unlabelled image files, for scoring alone (default: truth.csv "
                         "in their folder, if there is one)")  # fmt: skip
    loader: str = setting("auto", "resident: all images decoded, on the device; streaming: batch by batch; auto: "
                          "resident where they fit", choices=("auto", "resident", "streaming"))  # fmt: skip
    workers: int = setting(0, "processes that decode image files (0: one per core)", low=0, high=256)
    cache: str = setting("auto", "folder that keeps decoded images while streaming; auto: in the run folder where they "
                         "fit, until the run is done; off: none")  # fmt: skip
    test_fraction: float = setting(0.0, "share of each class held out from training for the test scores",
                                   low=0.0, high=0.9)  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        for one, other in (("known", "first_known"), ("new", "first_new")):
            if getattr(self, one) and getattr(self, other):
                raise UsageError(f"{one} and {other} are both set; choose one of them (the other empty or 0).")


# where images lie and how they come to the device: nothing of it changes a result
PLACES = ("data.path", "data.loader", "data.workers", "data.cache")


@dataclass(frozen=True, kw_only=True)
class Network(Section):
    """Which feature extractor."""

    name: str = setting("resnet18", "feature extractor", "paper, section 3.1",
                        choices=("resnet18", "small", "efficientnet-lite0"))  # fmt: skip
    adapter: int = setting(0, "width of the trainable layer on top of a pretrained network (0: none)", low=0)
    unit_length: bool = setting(False, "scale the features of a pretrained network to unit length")
    cached_views: int = setting(0, "compute a pretrained network's features once, of each image and of random views "
                                "(pretrain.augment), so many in all (0: anew in every step)", low=0)  # fmt: skip
    precision: str = setting("auto", "trunk arithmetic; auto: bf16 on a GPU that has it, else float32",
                             choices=("auto", "float32", "bf16"))  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Augment(Section):
    """What a random view of an image is."""

    crop: int = setting(0, "random crop after padding by this many black pixels", low=0)
    reflect_shift: int = setting(0, "random shift by up to this many pixels, border mirrored", low=0)
    flip: bool = setting(False, "mirror left to right with probability 1/2")
    rotate: float = setting(0.0, "largest random rotation in radians", low=0)
    shear: float = setting(0.0, "largest random shear in radians", low=0, high=1.5)
    scale: float = setting(0.0, "largest random relative change of size", low=0, high=0.9)
    shift: float = setting(0.0, "largest random shift in pixels, black outside", low=0)
    resized_crop: float = setting(1.0, "smallest share of the image in a random crop, resized to its size", low=0.01,
                                  high=1.0)  # fmt: skip
    brightness: float = setting(0.0, "largest random relative change of brightness", low=0, high=1)
    cached: bool = setting(False, "pick one of the cached views (network.cached_views)")


@dataclass(frozen=True, kw_only=True)
class Stage(Section):
    """What all training stages have in common."""

    epochs: int = setting(200, "passes over the stage's images", low=0)
    batch_size: int = setting(128, "images per step", CODE, low=1)
    optimiser: str = setting("sgd", "optimiser", CODE, choices=("sgd", "adam"))
    lr: float = setting(0.1, "peak learning rate", CODE, low=0)
    momentum: float = setting(0.9, "momentum of SGD", CODE, low=0, high=1)
    nesterov: bool = setting(False, "Nesterov momentum", CODE)
    weight_decay: float = setting(1e-4, "L2 penalty", CODE, low=0)
    schedule: str = setting("step", "shape of the learning rate over the epochs", CODE,
                            choices=("constant", "step", "multistep", "one-cycle", "tail"))  # fmt: skip
    decay_every: int = setting(170, "epochs between decays (step)", CODE, low=1)
    decay_at: tuple[int, ...] = setting((), "epochs of decay (multistep)", CODE)
    decay_factor: float = setting(0.1, "factor of each decay (step, multistep)", CODE, low=0)
    schedule_ahead: int = setting(0, "epochs by which the schedule runs early (the published code: 1)", low=0)
    peak_at: float = setting(0.3, "share of the steps before the peak (one-cycle)", low=0, high=1)
    tail: float = setting(0.2, "last share of the steps, over which the rate falls to 0 (tail)", low=0, high=1)
    warmup_epochs: float = setting(0.0, "epochs over which the rate first rises from 0", low=0)
    frozen: tuple[str, ...] = setting((), "blocks of the network held fixed")
    frozen_batchnorm: str = setting("train", "BatchNorm of frozen blocks: batch or fixed statistics", CODE,
                                    choices=("train", "eval"))  # fmt: skip
    compile: bool = setting(False, "on a CUDA device, compile the trunk before recording the step")
    threads: int = setting(
        0, "CPU threads (0: torch's own choice); part of the recipe, for equal bits", low=0, high=256
    )
    augment: Augment = field(default_factory=Augment, metadata={"doc": "random views"})


FROZEN = ("stem", "block1", "block2", "block3")


@dataclass(frozen=True, kw_only=True)
class Pretrain(Stage):
    """Stage 1: learn features without labels, on all images."""

    kind: str = setting("rotation", "rotation; supervised: stage 2 trains the whole network from scratch; "
                        "none: stage 2 starts from random weights; weights: start from a file; imagenet: start from "
                        "the weights of the network's package", "paper, section 2.1",
                        choices=("rotation", "supervised", "none", "weights", "imagenet"))  # fmt: skip
    weights: str = setting("", "safetensors file of a trunk (kind = weights)")
    rotations: str = setting("four", "four: every image in all rotations; one: in one random rotation", CODE,
                             choices=("four", "one"))  # fmt: skip
    nesterov: bool = setting(True, "Nesterov momentum", CODE)
    weight_decay: float = setting(5e-4, "L2 penalty", CODE, low=0)
    schedule: str = setting("multistep", "shape of the learning rate over the epochs", CODE,
                            choices=("constant", "step", "multistep", "one-cycle", "tail"))  # fmt: skip
    decay_at: tuple[int, ...] = setting((60, 120, 160, 200), "epochs of decay (multistep)", CODE)
    decay_factor: float = setting(0.2, "factor of each decay (step, multistep)", CODE, low=0)


@dataclass(frozen=True, kw_only=True)
class Supervised(Stage):
    """Stage 2: classify the known classes."""

    epochs: int = setting(100, "passes over the labelled images (0: no stage 2)", CODE, low=0)
    decay_every: int = setting(10, "epochs between decays (step)", CODE, low=1)
    decay_factor: float = setting(0.5, "factor of each decay (step, multistep)", CODE, low=0)
    frozen: tuple[str, ...] = setting(FROZEN, "blocks of the network held fixed", "paper, section 2.1")


@dataclass(frozen=True, kw_only=True)
class Joint(Stage):
    """Stage 3: known and new classes together, by ranking statistics."""

    frozen: tuple[str, ...] = setting(FROZEN, "blocks of the network held fixed", "paper, section 2.3")
    batch: str = setting("fixed", "fixed: the same number of labelled images in every batch; merged: one shuffle "
                         "of all images", choices=("fixed", "merged"))  # fmt: skip
    labelled_per_batch: int = setting(0, "labelled images in a fixed batch (0: half)", low=0)
    views: str = setting("joint", "joint: both views in one forward pass; separate: a pass and BatchNorm statistics "
                         "each", choices=("joint", "separate"))  # fmt: skip
    ce: bool = setting(True, "cross-entropy on the labelled images", "paper, eq. 1")
    bce: bool = setting(True, "pairwise binary cross-entropy on the unlabelled images", "paper, eq. 3")
    consistency: bool = setting(True, "agreement of two views", "paper, eq. 4")
    k: int = setting(5, "size of the compared top-ranked sets", "paper, section 2.2", low=1)
    rank_by: str = setting("value", "order features by value or by magnitude", CODE, choices=("value", "magnitude"))
    group: int = setting(0, "compare pairs only inside groups of this many unlabelled images (0: all)", low=0)
    bce_views: str = setting("two", "two: view 1 against view 2; one: view 1 against itself", CODE,
                             choices=("two", "one"))  # fmt: skip
    consistency_on: str = setting("all", "all: both heads on all images; own: each head on its own", CODE,
                                  choices=("all", "own"))  # fmt: skip
    consistency_over_classes: str = setting("mean", "mean or sum over the classes", CODE, choices=("mean", "sum"))
    weight: float = setting(5.0, "λ, final weight of the consistency", CODE, low=0)
    ramp_epochs: float = setting(50.0, "T, epochs until ramped terms have full weight", CODE, low=0)
    ramp_by: str = setting("step", "the ramp moves every step, or every epoch (published code)",
                           choices=("step", "epoch"))  # fmt: skip
    pseudo_weight: float = setting(0.05, "final weight of the pseudo-labels (incremental)", CODE, low=0)
    new_bias: str = setting("below", "initial biases of new classes in the grown head: min(old) − 1, or random", CODE,
                            choices=("below", "random"))  # fmt: skip

    watch: int = setting(512, "unlabelled images on which flips of pair labels are counted each epoch (0: none)", low=0)
    keep_embeddings_at: tuple[int, ...] = setting(
        (), "epochs (0: the start) at which the features of the unlabelled images are kept for figures", low=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.ce or self.bce or self.consistency):
            raise UsageError("ce, bce and consistency are all off; nothing is left to learn from.")


@dataclass(frozen=True, kw_only=True)
class Count(Section):
    """How many new classes there are."""

    new_classes: str = setting("", "number of new classes: a number, auto (estimate it), or empty (what the source "
                               "of images says)")  # fmt: skip
    most: int = setting(100, "largest number of new classes considered", DTC, low=2)
    features: str = setting("metric", "metric: features of stages 1 and 2, scaled by how images of one known class "
                            "differ; plain: those of stage 2 as they are", choices=("metric", "plain"))  # fmt: skip
    shrinkage: float = setting(0.1, "share of the covariance inside known classes that is replaced by its mean "
                               "variance (metric)", low=0, high=1)  # fmt: skip
    probe_share: float = setting(0.125, "share of the known classes that play new ones, at least four",
                                 "10 of 80 classes in " + DTC, low=0, high=0.9)  # fmt: skip
    anchor_share: float = setting(0.6, "share of those whose images are held in their clusters", DTC, low=0, high=0.9)
    size_ratio: float = setting(0.01, "a cluster below this share of the largest does not count", DTC, low=0, high=1)
    majority: bool = setting(True, "a cluster counts only if it holds more unlabelled images than images of known "
                             "classes that play new ones (DTC: it counts all the same)")  # fmt: skip
    restarts: int = setting(10, "clusterings to choose from at each candidate", DTC, low=1)
    iterations: int = setting(100, "of each clustering, at most", DTC, low=1)
    tol: float = setting(1e-4, "movement of the centres, relative to the variance, at which a clustering rests", DTC,
                         low=0)  # fmt: skip
    search: str = setting("coarse-to-fine", "coarse-to-fine: only where the curves are high; exhaustive: every count",
                          choices=("coarse-to-fine", "exhaustive"))  # fmt: skip
    few_restarts: int = setting(2, "restarts while the search only looks where the curves are high", low=1)
    sample: int = setting(3000, "images whose silhouette is averaged, each against all others", low=2)
    halves: int = setting(6, "halves of the unlabelled images on which the count is repeated, for its range", low=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        asked = self.new_classes
        if asked not in ("", "auto") and not (asked.isdecimal() and 2 <= int(asked) < 10**6):
            raise UsageError(f"new_classes is {asked!r}; give a whole number from 2 on, or auto.")


@dataclass(frozen=True, kw_only=True)
class Similarity(Stage):
    """The similarity network of KCL and MCL: do two images of known classes show the same class?"""

    epochs: int = setting(50, "passes over the labelled images", L2C, low=1)
    optimiser: str = setting("adam", "optimiser", L2C, choices=("sgd", "adam"))
    lr: float = setting(1e-3, "peak learning rate", L2C, low=0)
    weight_decay: float = setting(0.0, "L2 penalty", L2C, low=0)
    schedule: str = setting("multistep", "shape of the learning rate over the epochs", L2C,
                            choices=("constant", "step", "multistep", "one-cycle", "tail"))  # fmt: skip
    decay_at: tuple[int, ...] = setting((30, 40), "epochs of decay (multistep)", L2C)
    frozen: tuple[str, ...] = setting(FROZEN, "blocks of the network held fixed", "as stages 2 and 3")
    batch: str = setting("classes", "classes: a few known classes in equal numbers in every batch; merged: one shuffle "
                         "of the labelled images", L2C, choices=("classes", "merged"))  # fmt: skip
    classes_per_batch: int = setting(0, "known classes in a batch (0: as many as there are new ones, so that pairs "
                                     "of one class are as frequent as they will be there)", low=0)  # fmt: skip
    balance: str = setting("none", "none: every pair counts alike; even: pairs of one class and pairs of two weigh "
                           "the same in total", L2C, choices=("none", "even"))  # fmt: skip
    hidden: int = setting(0, "width of the hidden layer on a pair of features (0: four times the features)", L2C, low=0)
    statistics: str = setting("batch", "BatchNorm when it judges unlabelled images: statistics of the batch at hand, "
                              "or those kept from the known classes", L2C, choices=("batch", "known"))  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PairClustering(Stage):
    """KCL and MCL: cluster the unlabelled images so that the decisions of the similarity network hold."""

    epochs: int = setting(150, "passes over the unlabelled images", L2C, low=1)
    optimiser: str = setting("adam", "optimiser", L2C, choices=("sgd", "adam"))
    lr: float = setting(1e-3, "peak learning rate", L2C, low=0)
    weight_decay: float = setting(0.0, "L2 penalty", L2C, low=0)
    schedule: str = setting("multistep", "shape of the learning rate over the epochs", L2C,
                            choices=("constant", "step", "multistep", "one-cycle", "tail"))  # fmt: skip
    decay_at: tuple[int, ...] = setting((100,), "epochs of decay (multistep)", L2C)
    frozen: tuple[str, ...] = setting(FROZEN, "blocks of the network held fixed", "as stages 2 and 3")
    out_dim: int = setting(0, "clusters (0: the number of new classes); with more, some may stay empty", L2C, low=0)


@dataclass(frozen=True, kw_only=True)
class Dtc(Stage):
    """Deep transfer clustering: sharpen soft assignments to learned centres."""

    epochs: int = setting(100, "passes over the unlabelled images after the start", DTC, low=1)
    lr: float = setting(0.05, "peak learning rate", DTC, low=0)
    schedule: str = setting("constant", "shape of the learning rate over the epochs", DTC,
                            choices=("constant", "step", "multistep", "one-cycle", "tail"))  # fmt: skip
    decay_factor: float = setting(0.5, "factor of each decay (step, multistep)", DTC, low=0)
    variant: str = setting("pi", "baseline: KL to the sharpened target alone; pi: and two views agree; te: and the "
                           "view agrees with the average of earlier ones; tep: the target comes from such averages",
                           DTC, choices=("baseline", "pi", "te", "tep"))  # fmt: skip
    start_epochs: int = setting(10, "epochs at first, with the targets of k-means held fixed", DTC, low=1)
    start_lr: float = setting(0.1, "learning rate of these epochs", DTC, low=0)
    update_every: int = setting(5, "epochs between updates of the target", DTC, low=1)
    weight: float = setting(10.0, "final weight of the agreement (pi, te)", DTC, low=0)
    ramp_epochs: float = setting(5.0, "epochs until the agreement has full weight", DTC, low=0)
    momentum_of_averages: float = setting(0.6, "share of the past in running averages (te, tep)", DTC, low=0, high=0.99)
    restarts: int = setting(20, "restarts of k-means for the first centres", DTC, low=1)
    out_dim: int = setting(0, "clusters (0: the number of new classes)", low=0)
    views: str = setting("joint", "joint: both views in one forward pass; separate: a pass and BatchNorm statistics "
                         "each", choices=("joint", "separate"))  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Linear(Stage):
    """The paper's incremental comparison: a linear classifier of old and new classes on the frozen features."""

    epochs: int = setting(150, "passes over all images' features (0: no such classifier)", "paper, appendix", low=0)
    weight_decay: float = setting(0.0, "L2 penalty (the paper names none)", low=0)
    schedule: str = setting("multistep", "shape of the learning rate over the epochs", "paper, appendix",
                            choices=("constant", "step", "multistep", "one-cycle", "tail"))  # fmt: skip
    decay_at: tuple[int, ...] = setting((50,), "epochs of decay (multistep)", "paper, appendix")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.frozen or self.augment != Augment() or self.compile:
            raise UsageError(
                "frozen, compile and augment have no effect on a linear classifier of features that are frozen and "
                "computed once, from the plain images; leave them out."
            )


@dataclass(frozen=True, kw_only=True)
class Recipe(Section):
    """A whole run."""

    name: str = field(default="defaults", metadata={"doc": "name of the recipe"})
    preset: str = setting("", "a named set of switches: code (as published), paper (as printed), or none",
                          choices=("", "code", "paper"))  # fmt: skip
    about: str = field(default="", metadata={"doc": "what it is, in a sentence"})
    departures: tuple[str, ...] = field(default=(), metadata={"doc": "where it departs from the paper"})
    minutes: str = field(default="", metadata={"doc": "how long it takes, and on what"})
    run: Run = field(default_factory=Run)
    data: Data = field(default_factory=Data)
    network: Network = field(default_factory=Network)
    pretrain: Pretrain = field(default_factory=Pretrain)
    supervised: Supervised = field(default_factory=Supervised)
    joint: Joint = field(default_factory=Joint)
    count: Count = field(default_factory=Count)
    incremental: Joint = field(default_factory=Joint)  # joint training with incremental learning; as joint unless set
    similarity: Similarity = field(default_factory=Similarity)
    kcl: PairClustering = field(default_factory=PairClustering)
    mcl: PairClustering = field(default_factory=PairClustering)  # as kcl unless set
    dtc: Dtc = field(default_factory=Dtc)
    linear: Linear = field(default_factory=Linear)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pretrain.kind == "supervised" and not self.supervised.epochs:
            raise UsageError("pretrain.kind is supervised, but supervised.epochs is 0: nothing would be pretrained.")
        systems = self.run.systems
        if not systems or systems[0] == "kmeans-pixels":
            raise UsageError(
                f"run.systems is {list(systems)}; its first system delivers the model, so it must be one that has a "
                f"model: {', '.join(name for name in LABELS if name != 'kmeans-pixels')}."
            )
        if len(set(systems)) < len(systems):
            raise UsageError(f"run.systems is {list(systems)}; name each system once.")
