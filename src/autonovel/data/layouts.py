"""How the benchmarks' authors lay their files out, and which classes the published splits take."""

import json
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class CifarLayout:
    """How CIFAR's authors lay a variant out: where the files are and what their entries are called."""

    folder: str
    archive: str
    splits: dict[str, tuple[str, ...]]
    meta: str
    labels: str
    names: str
    classes: int


CIFAR_LAYOUTS: dict[str, CifarLayout] = {
    "cifar10": CifarLayout(
        folder="cifar-10-batches-py",
        archive="cifar-10-python.tar.gz",
        splits={"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)},
        meta="batches.meta",
        labels="labels",
        names="label_names",
        classes=10,
    ),
    "cifar100": CifarLayout(
        folder="cifar-100-python",
        archive="cifar-100-python.tar.gz",
        splits={"train": ("train",), "test": ("test",)},
        meta="meta",
        labels="fine_labels",
        names="fine_label_names",
        classes=100,
    ),
}


@dataclass(frozen=True)
class OmniglotLayout:
    """How many drawings, background characters, and characters of each evaluation alphabet are published."""

    drawings: int
    background: int
    evaluation: dict[str, int]


OMNIGLOT = OmniglotLayout(
    drawings=20,
    background=964,
    evaluation={
        "Angelic": 20, "Atemayar_Qelisayer": 26, "Atlantean": 26, "Aurek-Besh": 26, "Avesta": 26, "Ge_ez": 26,
        "Glagolitic": 45, "Gurmukhi": 45, "Kannada": 41, "Keble": 26, "Malayalam": 47, "Manipuri": 40, "Mongolian": 30,
        "Old_Church_Slavonic_(Cyrillic)": 45, "Oriya": 46, "Sylheti": 28, "Syriac_(Serto)": 23, "Tengwar": 25,
        "Tibetan": 42, "ULOG": 26,
    },
)  # fmt: skip


@dataclass(frozen=True)
class ImagenetLayout:
    """Which classes of ImageNet are labelled, which are new, and how many images of a class are published.

    Attributes:
        unlabelled: the classes whose labels are never used.
        subsets: those of them that are the new classes of a run, by the name of the subset.
        labelled: number of the other classes.
        fewest, most: training images of the smallest and of the largest class.
    """

    unlabelled: frozenset[str]
    subsets: dict[str, tuple[str, ...]]
    labelled: int
    fewest: int
    most: int


def _imagenet() -> ImagenetLayout:
    """Return the 882/118 split and the three subsets of 30 classes that KCL, MCL, DTC and the paper use."""
    text = (resources.files("autonovel.data") / "imagenet_classes.json").read_text(encoding="utf-8")
    told = json.loads(text)
    subsets = {name: tuple(sorted(wnids)) for name, wnids in told["subsets"].items()}
    return ImagenetLayout(frozenset(told["unlabelled"]), subsets, 1000 - len(told["unlabelled"]), 732, 1300)


IMAGENET = _imagenet()
