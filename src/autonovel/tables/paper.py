"""The numbers of the paper (Han et al., ICLR 2020), to stand beside ours; each is of 10 runs."""

from dataclasses import dataclass

from autonovel.errors import UsageError

RUNS = 10
SUBSETS = "3 subsets"


@dataclass(frozen=True)
class Published:
    """A published accuracy in per cent with its standard deviation, where the paper gives one.

    ``of`` says what it is the mean of, where that is not 10 runs.
    """

    mean: float
    std: float | None = None
    of: str = ""

    def __str__(self) -> str:
        number = f"{self.mean:.1f}" if self.std is None else f"{self.mean:.1f} ± {self.std:.1f}"
        return f"{number} ({self.of})" if self.of else number


# Table "Novel category discovery": ACC on the unlabelled training images, with self-supervision.
ACCURACY: dict[tuple[str, str], Published] = {
    ("cifar10", "kmeans"): Published(72.5, 0.0),
    ("cifar10", "kcl"): Published(72.3, 0.2),
    ("cifar10", "mcl"): Published(70.9, 0.1),
    ("cifar10", "dtc"): Published(88.7, 0.3),
    ("cifar10", "rankstats"): Published(90.4, 0.5),
    ("cifar10", "rankstats-incremental"): Published(91.7, 0.9),
    ("cifar100", "kmeans"): Published(56.3, 1.7),
    ("cifar100", "kcl"): Published(42.1, 1.8),
    ("cifar100", "mcl"): Published(21.5, 2.3),
    ("cifar100", "dtc"): Published(67.3, 1.2),
    ("cifar100", "rankstats"): Published(73.2, 2.1),
    ("cifar100", "rankstats-incremental"): Published(75.2, 4.2),
    ("svhn", "kmeans"): Published(46.7, 0.0),
    ("svhn", "kcl"): Published(65.6, 4.9),
    ("svhn", "mcl"): Published(53.1, 0.3),
    ("svhn", "dtc"): Published(75.7, 0.4),
    ("svhn", "rankstats"): Published(95.0, 0.2),
    ("svhn", "rankstats-incremental"): Published(95.2, 0.2),
    # table of OmniGlot and ImageNet: the mean over 20 alphabets
    ("omniglot", "kmeans"): Published(77.2),
    ("omniglot", "kcl"): Published(82.4),
    ("omniglot", "mcl"): Published(83.3),
    ("omniglot", "dtc"): Published(89.0),
    ("omniglot", "rankstats"): Published(89.1),
    # the same table: the mean over three subsets of 30 classes, a run each
    ("imagenet", "kmeans"): Published(71.9, of=SUBSETS),
    ("imagenet", "kcl"): Published(73.8, of=SUBSETS),
    ("imagenet", "mcl"): Published(74.4, of=SUBSETS),
    ("imagenet", "dtc"): Published(78.3, of=SUBSETS),
    ("imagenet", "rankstats"): Published(82.5, of=SUBSETS),
}

# Appendix E: the same with an unknown number of new classes, every row with DTC's estimate of it.
UNKNOWN_NUMBER: dict[tuple[str, str], Published] = {
    ("omniglot", "kcl"): Published(80.3),
    ("omniglot", "mcl"): Published(80.5),
    ("omniglot", "dtc"): Published(87.0),
    ("omniglot", "rankstats"): Published(85.4),
    ("imagenet", "kcl"): Published(71.4, of=SUBSETS),
    ("imagenet", "mcl"): Published(72.9, of=SUBSETS),
    ("imagenet", "dtc"): Published(77.6, of=SUBSETS),
    ("imagenet", "rankstats"): Published(80.5, of=SUBSETS),
}
WITH_STORED_ESTIMATES = "count.new_classes=published"  # as those rows were made
OUR_ESTIMATES = "count.new_classes=auto"
ESTIMATED = (OUR_ESTIMATES, WITH_STORED_ESTIMATES)

# The estimates stored in DTC's published code (of ImageNet: told in its README): source, and alphabet or subset.
STORED_ESTIMATES: dict[tuple[str, str], int] = {
    ("omniglot", "Angelic"): 23,
    ("omniglot", "Atemayar_Qelisayer"): 25,
    ("omniglot", "Atlantean"): 34,
    ("omniglot", "Aurek-Besh"): 34,
    ("omniglot", "Avesta"): 31,
    ("omniglot", "Ge_ez"): 31,
    ("omniglot", "Glagolitic"): 46,
    ("omniglot", "Gurmukhi"): 34,
    ("omniglot", "Kannada"): 40,
    ("omniglot", "Keble"): 25,
    ("omniglot", "Malayalam"): 42,
    ("omniglot", "Manipuri"): 39,
    ("omniglot", "Mongolian"): 33,
    ("omniglot", "Old_Church_Slavonic_(Cyrillic)"): 51,
    ("omniglot", "Oriya"): 33,
    ("omniglot", "Sylheti"): 22,
    ("omniglot", "Syriac_(Serto)"): 26,
    ("omniglot", "Tengwar"): 28,
    ("omniglot", "Tibetan"): 43,
    ("omniglot", "ULOG"): 33,
    ("imagenet", "A"): 34,
    ("imagenet", "B"): 31,
    ("imagenet", "C"): 32,
}

# The same table, without self-supervision: the network is trained from scratch on the labelled images.
FROM_SCRATCH = "pretrain.kind=supervised"
ACCURACY_FROM_SCRATCH: dict[tuple[str, str], Published] = {
    ("cifar10", "kmeans"): Published(65.5, 0.0),
    ("cifar10", "kcl"): Published(66.5, 3.9),
    ("cifar10", "mcl"): Published(64.2, 0.1),
    ("cifar10", "dtc"): Published(87.5, 0.3),
    ("cifar100", "kmeans"): Published(56.6, 1.6),
    ("cifar100", "kcl"): Published(14.3, 1.3),
    ("cifar100", "mcl"): Published(21.3, 3.4),
    ("cifar100", "dtc"): Published(56.7, 1.2),
    ("svhn", "kmeans"): Published(42.6, 0.0),
    ("svhn", "kcl"): Published(21.4, 0.6),
    ("svhn", "mcl"): Published(38.6, 10.8),
    ("svhn", "dtc"): Published(60.9, 1.6),
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
# deviations from appendix C.  All systems start with self-supervision.
OldNewAll = tuple[Published, Published, Published]
OLD_NEW_ALL: dict[tuple[str, str], OldNewAll] = {
    ("cifar10", "kcl"): (Published(79.4, 0.6), Published(60.1, 0.6), Published(69.8, 0.1)),
    ("cifar10", "mcl"): (Published(81.4, 0.4), Published(64.8, 0.4), Published(73.1, 0.1)),
    ("cifar10", "dtc"): (Published(58.7, 0.6), Published(78.6, 0.2), Published(68.7, 0.3)),
    ("cifar10", "rankstats-incremental"): (Published(90.6, 0.2), Published(88.8, 0.2), Published(89.7, 0.1)),
    ("cifar100", "kcl"): (Published(23.4, 0.3), Published(29.4, 0.3), Published(24.6, 0.2)),
    ("cifar100", "mcl"): (Published(18.2, 0.3), Published(18.0, 0.1), Published(18.2, 0.2)),
    ("cifar100", "dtc"): (Published(47.6, 0.2), Published(49.1, 0.2), Published(47.9, 0.2)),
    ("cifar100", "rankstats-incremental"): (Published(71.2, 0.1), Published(56.8, 0.3), Published(68.3, 0.1)),
    ("svhn", "kcl"): (Published(90.3, 0.3), Published(65.0, 0.5), Published(81.0, 0.1)),
    ("svhn", "mcl"): (Published(94.0, 0.2), Published(48.6, 0.3), Published(77.2, 0.1)),
    ("svhn", "dtc"): (Published(90.5, 0.3), Published(72.8, 0.2), Published(84.0, 0.1)),
    ("svhn", "rankstats-incremental"): (Published(96.3, 0.1), Published(96.1, 0.0), Published(96.2, 0.1)),
}


# every way in which the paper's tables have a recipe, by the settings changed in it, and these settings
VARIANTS = ("", WITH_STORED_ESTIMATES, *dict.fromkeys(changes for _, changes in ABLATION))
VARIED = tuple(dict.fromkeys(changes.partition("=")[0] for changes in VARIANTS if changes))


def accuracy(recipe: str, changes: str, system: str) -> Published | None:
    """Return the paper's accuracy for a recipe, the settings changed in it, and a system, if it has one."""
    dataset, changes = dataset_of(recipe), _without_preset(changes)
    if not changes:
        return ACCURACY.get((dataset, system))
    if changes in ESTIMATED:
        return UNKNOWN_NUMBER.get((dataset, system))
    if system == "rankstats":
        return ABLATION.get((dataset, changes))
    return ACCURACY_FROM_SCRATCH.get((dataset, system)) if changes == FROM_SCRATCH else None


def stored_estimate(source: str, part: str) -> int:
    """Return the number of new classes that DTC's published code has stored for a part of a benchmark."""
    if (source, part) not in STORED_ESTIMATES:
        raise UsageError(
            f"no published estimate of the number of new classes is known for {source} {part}".rstrip()
            + ". Give a number, or auto."
        )
    return STORED_ESTIMATES[source, part]


def old_new_all(recipe: str, changes: str, system: str) -> OldNewAll | None:
    """Return the paper's accuracies of a joint classifier, if it has them."""
    return None if _without_preset(changes) else OLD_NEW_ALL.get((dataset_of(recipe), system))


def _without_preset(changes: str) -> str:
    """Return the changes but for the preset: the paper's numbers stand beside its formulas and beside its code."""
    return " ".join(change for change in changes.split(" ") if not change.startswith("preset="))


def dataset_of(recipe: str) -> str:
    """Return the dataset a recipe is about: ``cifar10`` for ``cifar10-fast``."""
    return recipe.split("-", 1)[0]
