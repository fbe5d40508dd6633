"""The systems the paper compares with."""

from dataclasses import dataclass, replace

from autonovel.errors import UsageError
from autonovel.settings.images import Augment
from autonovel.settings.section import DTC, L2C, setting
from autonovel.settings.stages import FROZEN, Stage


@dataclass(frozen=True, kw_only=True)
class PairStage(Stage):
    """What both stages of KCL and MCL have in common."""

    batch_size: int = setting(128, "images per step, of all processes together",
                              "published code of AutoNovel; that of KCL and MCL has 100", low=1)  # fmt: skip
    optimiser: str = setting("adam", "optimiser", L2C, choices=("sgd", "adam"))
    lr: float = setting(1e-3, "peak learning rate", L2C, low=0)
    weight_decay: float = setting(0.0, "L2 penalty", L2C, low=0)
    schedule: str = setting("multistep", "shape of the learning rate over the epochs", L2C,
                            choices=("constant", "step", "multistep", "one-cycle", "tail"))  # fmt: skip
    frozen: tuple[str, ...] = setting(FROZEN, "blocks of the network held fixed", "as stages 2 and 3")


@dataclass(frozen=True, kw_only=True)
class Similarity(PairStage):
    """The similarity network of KCL and MCL: do two images of known classes show the same class?"""

    epochs: int = setting(50, "passes over the labelled images", L2C, low=1)
    decay_at: tuple[int, ...] = setting((30, 40), "epochs of decay (multistep)", L2C)
    batch: str = setting("classes", "classes: a few known classes in equal numbers in every batch; merged: one shuffle "
                         "of the labelled images", L2C, choices=("classes", "merged"))  # fmt: skip
    classes_per_batch: int = setting(0, "known classes in a batch (0: as many as there are new ones, so that pairs "
                                     "of one class are as frequent as they will be there)", low=0)  # fmt: skip
    start: str = setting("supervised", "where its trunk starts: supervised, from stage 2; pretrained, from stage 1, "
                         "which knows no classes yet (where there is none, from stage 2)",
                         choices=("supervised", "pretrained"))  # fmt: skip
    balance: str = setting("none", "none: every pair counts alike; even: pairs of one class and pairs of two weigh "
                           "the same in total", L2C, choices=("none", "even"))  # fmt: skip
    hidden: int = setting(0, "width of the hidden layer on a pair of features (0: four times the features)", L2C, low=0)
    statistics: str = setting("batch", "BatchNorm when it judges unlabelled images: statistics of the batch at hand, "
                              "or those kept from the known classes", L2C, choices=("batch", "known"))  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PairClustering(PairStage):
    """KCL and MCL: cluster the unlabelled images so that the decisions of the similarity network hold."""

    epochs: int = setting(150, "passes over the unlabelled images", L2C, low=1)
    decay_at: tuple[int, ...] = setting((100,), "epochs of decay (multistep)", L2C)
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
    first_view: str = setting("random", "what learns the target: a random view of the image, or the plain image; then "
                              "only the second view of pi has a use for augment",
                              choices=("random", "plain"))  # fmt: skip
    statistics: str = setting("running", "BatchNorm's statistics where all images are assigned: running, averages of "
                              "the last steps; anew: those of the unlabelled images, for a network that has changed "
                              "much since", choices=("running", "anew"))  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Centres(Stage):
    """k-means on a pretrained network's own features: the classifier of labels and clusters on top of them."""

    epochs: int = setting(30, "passes over all images", low=1)
    lr: float = setting(3.0, "peak learning rate; features of unit length want a large one", low=0)
    weight_decay: float = setting(0.0, "L2 penalty", low=0)
    schedule: str = setting("tail", "shape of the learning rate over the epochs",
                            choices=("constant", "step", "multistep", "one-cycle", "tail"))  # fmt: skip
    tail: float = setting(1.0, "last share of the steps, over which the rate falls to 0 (tail)", low=0, high=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_for_frozen(self)
        if replace(self.augment, cached=False) != Augment():
            raise UsageError(
                "augment has no effect on this classifier, whose images are features computed once: of the views of "
                "pretrain.augment where network.cached_views asks for such, else of the plain images. Leave it out."
            )


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
        _refuse_for_frozen(self)
        if self.augment != Augment():
            raise UsageError("augment has no effect on a linear classifier of plain images' features; leave it out.")


def _refuse_for_frozen(stage: Stage) -> None:
    """Refuse what has no effect on a classifier of features that are frozen and computed once."""
    if stage.frozen or stage.compile or stage.frozen_batchnorm != Stage().frozen_batchnorm:
        raise UsageError(
            "frozen, frozen_batchnorm and compile have no effect on a classifier of features that are frozen and "
            "computed once; leave them out."
        )
