"""The numbers of the paper (Han et al., ICLR 2020), to stand beside ours; each is of 10 runs."""

from dataclasses import dataclass

RUNS = 10


@dataclass(frozen=True)
class Published:
    """A published accuracy in per cent with its standard deviation."""

    mean: float
    std: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.std:.1f}"


# Table "Novel category discovery": ACC on the unlabelled training images, with self-supervision.
ACCURACY: dict[tuple[str, str], Published] = {
    ("cifar10", "kmeans"): Published(72.5, 0.0),
    ("cifar10", "rankstats"): Published(90.4, 0.5),
    ("cifar10", "rankstats-incremental"): Published(91.7, 0.9),
    ("cifar100", "kmeans"): Published(56.3, 1.7),
    ("cifar100", "rankstats"): Published(73.2, 2.1),
    ("cifar100", "rankstats-incremental"): Published(75.2, 4.2),
    ("svhn", "kmeans"): Published(46.7, 0.0),
    ("svhn", "rankstats"): Published(95.0, 0.2),
    ("svhn", "rankstats-incremental"): Published(95.2, 0.2),
}

# Table "Ablation study": the same, with one part taken away, by the setting that takes it.
ABLATION: dict[tuple[str, str], Published] = {
    ("cifar10", "joint.consistency=False"): Published(82.6, 12.0),
    ("cifar10", "joint.ce=False"): Published(84.7, 4.4),
    ("cifar10", "joint.bce=False"): Published(26.2, 2.0),
    ("cifar10", "pretrain.kind=supervised"): Published(89.4, 1.4),
    ("cifar100", "joint.consistency=False"): Published(61.8, 3.6),
    ("cifar100", "joint.ce=False"): Published(58.4, 2.7),
    ("cifar100", "joint.bce=False"): Published(6.6, 0.7),
    ("cifar100", "pretrain.kind=supervised"): Published(67.4, 2.0),
    ("svhn", "joint.consistency=False"): Published(61.3, 1.9),
    ("svhn", "joint.ce=False"): Published(59.7, 6.6),
    ("svhn", "joint.bce=False"): Published(24.5, 0.5),
    ("svhn", "pretrain.kind=supervised"): Published(72.9, 5.0),
}

# Table "Incremental learning": old / new / all on the test images, each matched on its own; standard
# deviations from appendix C.
OLD_NEW_ALL: dict[str, tuple[Published, Published, Published]] = {
    "cifar10": (Published(90.6, 0.2), Published(88.8, 0.2), Published(89.7, 0.1)),
    "cifar100": (Published(71.2, 0.1), Published(56.8, 0.3), Published(68.3, 0.1)),
    "svhn": (Published(96.3, 0.1), Published(96.1, 0.0), Published(96.2, 0.1)),
}


def accuracy(recipe: str, changes: str, system: str) -> Published | None:
    """Return the paper's accuracy for a recipe, the settings changed in it, and a system, if it has one."""
    dataset = dataset_of(recipe)
    if not changes:
        return ACCURACY.get((dataset, system))
    return ABLATION.get((dataset, changes)) if system == "rankstats" else None


def dataset_of(recipe: str) -> str:
    """Return the dataset a recipe is about: ``cifar10`` for ``cifar10-fast``."""
    return recipe.split("-", 1)[0]
