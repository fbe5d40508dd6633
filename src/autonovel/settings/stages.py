"""The three stages of the method.  Defaults are the published code's for CIFAR-10 unless a source says otherwise."""

from dataclasses import dataclass, field

from autonovel.errors import UsageError
from autonovel.settings.images import Augment
from autonovel.settings.section import CODE, DTC, Section, setting


@dataclass(frozen=True, kw_only=True)
class Stage(Section):
    """What all training stages have in common."""

    epochs: int = setting(200, "passes over the stage's images", low=0)
    batch_size: int = setting(128, "images per step, of all processes together", CODE, low=1)
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
    frozen: tuple[str, ...] = setting((), "blocks of the network held fixed; pretrained: all below network.adapter")
    frozen_batchnorm: str = setting("train", "BatchNorm of frozen blocks: statistics of the batch (train) or fixed "
                                    "(eval); everywhere: fixed in trained blocks too, for pretrained networks and "
                                    "small batches", CODE, choices=("train", "eval", "everywhere"))  # fmt: skip
    compile: bool = setting(False, "on a CUDA device, compile the trunk before recording the step")
    threads: int = setting(
        0, "CPU threads (0: torch's own choice); part of the recipe, for equal bits", low=0, high=256
    )
    augment: Augment = field(default_factory=Augment, metadata={"doc": "random views"})


ALL_STAGES = (1, 2, 3)
FROZEN = ("stem", "block1", "block2", "block3")


@dataclass(frozen=True, kw_only=True)
class Pretrain(Stage):
    """Stage 1: learn features, in the paper without labels, on all images."""

    kind: str = setting("rotation", "rotation; prototypical: metric learning on known classes; "
                        "supervised: stage 2 trains the whole network from scratch; "
                        "none: stage 2 starts from random weights; weights: start from a file; imagenet: start from "
                        "the weights that come with the network (ImageNet's; of hf, the model's own)",
                        "paper, section 2.1",
                        choices=("rotation", "prototypical", "supervised", "none", "weights", "imagenet"))  # fmt: skip
    images: str = setting("all", "rotation learns from all images, or from the labelled alone, so that runs with other "
                          "unlabelled images may share it; prototypical always from the labelled",
                          choices=("all", "labelled"))  # fmt: skip
    held_out: tuple[str, ...] = setting((), "groups of known classes (what stands before a / in their names) that "
                                        "prototypical pretraining does not see: the count may use them")  # fmt: skip
    classes_per_batch: int = setting(20, "known classes in a batch, in equal numbers (prototypical)", DTC, low=2)
    support: int = setting(5, "images of each that make its prototype; the others are to be told (prototypical)", DTC,
                           low=1)  # fmt: skip
    turned: bool = setting(False, "a quarter of a batch's classes each is turned by 90°, 180° and 270°, as if they "
                           "were classes of their own (prototypical)")  # fmt: skip
    weights: str = setting("", "safetensors file of a trunk (kind = weights; with imagenet, one to go on from); "
                           "without a stage 2, its classifier of the known classes is taken over too; count and "
                           "trials take it not to have learned these classes")  # fmt: skip
    rotations: str = setting("four", "four: every image in all rotations; one: in one random rotation", CODE,
                             choices=("four", "one"))  # fmt: skip
    label_weight: float = setting(0.0, "weight, beside the rotations, of the cross-entropy of the known classes on "
                                  "labelled images (rotation; 0, as in the paper: no labels)", low=0)  # fmt: skip
    label_turns: str = setting("all", "with label_weight: labelled images are told in all rotations they are shown in, "
                               "or upright ones alone", choices=("all", "upright"))  # fmt: skip
    nesterov: bool = setting(True, "Nesterov momentum", CODE)
    weight_decay: float = setting(5e-4, "L2 penalty", CODE, low=0)
    schedule: str = setting("multistep", "shape of the learning rate over the epochs", CODE,
                            choices=("constant", "step", "multistep", "one-cycle", "tail"))  # fmt: skip
    decay_at: tuple[int, ...] = setting((60, 120, 160, 200), "epochs of decay (multistep)", CODE)
    decay_factor: float = setting(0.2, "factor of each decay (step, multistep)", CODE, low=0)

    @property
    def turns(self) -> bool:
        """Return whether stage 1 turns images by multiples of 90°."""
        return self.kind == "rotation" or (self.kind == "prototypical" and self.turned)

    @property
    def reads_weights(self) -> bool:
        """Return whether training starts from a file of weights."""
        return self.kind == "weights" or (self.kind == "imagenet" and bool(self.weights))

    @property
    def learns_labels(self) -> bool:
        """Return whether stage 1 is told known classes, so that none of those it saw can play a new one afterwards."""
        return self.kind == "prototypical" or (self.kind == "rotation" and self.label_weight > 0)

    @property
    def labelled_only(self) -> bool:
        """Return whether stage 1 sees the labelled images alone, and so does not depend on the others."""
        return self.kind == "prototypical" or self.images == "labelled"


@dataclass(frozen=True, kw_only=True)
class Supervised(Stage):
    """Stage 2: classify the known classes."""

    epochs: int = setting(100, "passes over the labelled images (0: no stage 2)", CODE, low=0)
    scratch_epochs: int = setting(0, "passes where the whole network learns from scratch (pretrain.kind = supervised), "
                                  "which takes longer (0: as many as epochs)", low=0)  # fmt: skip
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
    epoch: str = setting("all", "an epoch has batches for as many images as there are (all), or passes over the "
                         "labelled ones once (labelled: fixed batches only)", choices=("all", "labelled"))  # fmt: skip
    views: str = setting("joint", "joint: both views in one forward pass; separate: a pass and BatchNorm statistics "
                         "each", choices=("joint", "separate"))  # fmt: skip
    fixed_views: int = setting(0, "draw so many views of each image beforehand, so that frozen blocks see each only "
                               "once, where memory allows (0: new ones in every step); not with frozen_batchnorm=train",
                               low=0)  # fmt: skip
    renew_views: int = setting(0, "epochs after which other views take the place of those drawn beforehand (0: never)",
                               low=0)  # fmt: skip
    ce: bool = setting(True, "cross-entropy on the labelled images", "paper, eq. 1")
    bce: bool = setting(True, "pairwise binary cross-entropy on the unlabelled images", "paper, eq. 3")
    consistency: bool = setting(True, "agreement of two views", "paper, eq. 4")
    k: int = setting(5, "size of the compared top-ranked sets", "paper, section 2.2", low=1)
    rank_by: str = setting("value", "order features by value or by magnitude", CODE, choices=("value", "magnitude"))
    group: int = setting(0, "compare pairs only inside groups of this many unlabelled images (0: as many as "
                         "group_per_class says)", low=0)  # fmt: skip
    group_per_class: float = setting(0.0, "the same for any number of new classes: about so many images for each "
                                     "(0: all)", low=0)  # fmt: skip
    starts: int = setting(1, "random starts of the head of the new classes, trained at once; the one with the tightest "
                          "classes goes on alone", low=1)  # fmt: skip
    starts_until: float = setting(0.33, "share of the epochs after which it does", low=0, high=1)
    pairs: str = setting("global", "with several processes, global: compare all pairs of the batch, as one process "
                         "does; local: only images of the same process, so that results depend on how many there "
                         "are", choices=("global", "local"))  # fmt: skip
    bce_views: str = setting("two", "two: view 1 against view 2; one: view 1 against itself", CODE,
                             choices=("two", "one"))  # fmt: skip
    consistency_on: str = setting("all", "all: both heads on all images; own: each head on its own", CODE,
                                  choices=("all", "own"))  # fmt: skip
    consistency_over_classes: str = setting("mean", "mean, or sum over the classes: as many times the weight", CODE,
                                            choices=("mean", "sum"))  # fmt: skip
    weight: float = setting(5.0, "λ, final weight of the consistency", CODE, low=0)
    ramp_epochs: float = setting(50.0, "T, epochs until ramped terms have full weight", CODE, low=0)
    ramp_by: str = setting("step", "the ramp moves every step, or every epoch (published code)",
                           choices=("step", "epoch"))  # fmt: skip
    after: str = setting("supervised", "what incremental learning goes on from: stage 2 (supervised), as published, or "
                         "joint training without it (joint), which comes first and whose head of the new classes it "
                         "keeps (incremental)", CODE, choices=("supervised", "joint"))  # fmt: skip
    pseudo_weight: float = setting(0.05, "final weight of the pseudo-labels (incremental)", CODE, low=0)
    new_bias: str = setting("below", "initial biases of new classes in the grown head: min(old) − 1, or random", CODE,
                            choices=("below", "random"))  # fmt: skip
    rebalance: bool = setting(False, "when trained, shift the new classes' biases in the grown head so that least is "
                              "wrong of labelled images taken for new and unlabelled ones taken for known "
                              "(incremental)")  # fmt: skip
    rebalance_by: str = setting("kinds", "half of the weight on each of these two errors, as where known classes may "
                                "hide among the unlabelled images (kinds), or an equal part on each class (classes)",
                                choices=("kinds", "classes"))  # fmt: skip

    watch: int = setting(512, "unlabelled images on which flips of pair labels are counted each epoch (0: none)", low=0)
    keep_embeddings_at: tuple[int, ...] = setting(
        (), "epochs (0: the start) at which the features of the unlabelled images are kept for figures", low=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.ce or self.bce or self.consistency):
            raise UsageError("ce, bce and consistency are all off; nothing is left to learn from.")
        if self.fixed_views == 1:
            raise UsageError("fixed_views is 1, but two views of each image are compared; set at least 2, or 0.")
        if self.renew_views and not self.fixed_views:
            raise UsageError(f"renew_views is {self.renew_views}, but no views are drawn beforehand: every step has "
                             "new ones. Set renew_views=0, or fixed_views to at least 2.")  # fmt: skip
        if self.fixed_views and (self.frozen_batchnorm == "train" or not self.frozen):
            raise UsageError("fixed_views is for frozen blocks whose output never changes; set frozen_batchnorm=eval "
                             "and name blocks in frozen, or set fixed_views=0.")  # fmt: skip
        if self.fixed_views and self.augment.cached:
            raise UsageError("fixed_views and augment.cached both keep views; of a pretrained network's cached views "
                             "nothing is left to compute. Set fixed_views=0.")  # fmt: skip
        if self.epoch == "labelled" and self.batch == "merged":
            raise UsageError("epoch is labelled, which only batches with a fixed share of labelled images have; "
                             "set batch=fixed, or epoch=all.")  # fmt: skip
