"""The datasets ``autonovel data fetch`` and ``autonovel data check`` know: files, layout, counts, terms of use."""

import contextlib
import hashlib
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autonovel.errors import InputError, UsageError


@dataclass(frozen=True)
class RemoteFile:
    """A file as its authors publish it.

    Attributes:
        name: name of the file on disk.
        address: where its authors offer it.
        md5: checksum of the official file.
    """

    name: str
    address: str
    md5: str


@dataclass(frozen=True)
class Split:
    """A part of a dataset, with the published number of images of each class in the order of the classes."""

    name: str
    per_class: tuple[int, ...]

    @property
    def count(self) -> int:
        """Return the published number of images."""
        return sum(self.per_class)

    @property
    def classes(self) -> int:
        """Return the published number of classes."""
        return len(self.per_class)

    @property
    def spread(self) -> tuple[int, int]:
        """Return the numbers of images of the smallest and of the largest class."""
        return min(self.per_class), max(self.per_class)

    def matches(self, found: tuple[int, ...]) -> bool:
        """Tell whether classes of these sizes are the published ones."""
        return found == self.per_class


@dataclass(frozen=True)
class LargeSplit:
    """A part of a dataset of which only totals are noted here: images, classes, the smallest and the largest class."""

    name: str
    count: int
    classes: int
    spread: tuple[int, int]
    per_class: tuple[int, ...] = ()  # not noted, one by one

    def matches(self, found: tuple[int, ...]) -> bool:
        """Tell whether classes of these sizes may be the published ones."""
        sizes = (sum(found), len(found), (min(found, default=0), max(found, default=0)))
        return sizes == (self.count, self.classes, self.spread)


@dataclass(frozen=True)
class Dataset:
    """What is known of a dataset without having it.

    Attributes:
        name: as in ``autonovel data fetch NAME``.
        title: its full name.
        files: the official files.
        splits: its parts with the published counts.
        page: where its authors describe it.
        terms: terms of use, in a sentence.
        citation: what to cite.
        on_request: how to get it, where its files cannot be downloaded without asking its authors.
    """

    name: str
    title: str
    files: tuple[RemoteFile, ...]
    splits: tuple[Split | LargeSplit, ...]
    page: str
    terms: str
    citation: str
    on_request: str = ""


_KRIZHEVSKY = "Alex Krizhevsky, Learning Multiple Layers of Features from Tiny Images, technical report, 2009"
_CIFAR_TERMS = "No explicit licence; the authors ask to cite the technical report when the data is used."

DATASETS: dict[str, Dataset] = {
    "cifar10": Dataset(
        name="cifar10",
        title="CIFAR-10",
        files=(
            RemoteFile(
                name="cifar-10-python.tar.gz",
                address="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
                md5="c58f30108f718f92721af3b95e74349a",
            ),
        ),
        splits=(Split("train", (5000,) * 10), Split("test", (1000,) * 10)),
        page="https://www.cs.toronto.edu/~kriz/cifar.html",
        terms=_CIFAR_TERMS,
        citation=_KRIZHEVSKY,
    ),
    "cifar100": Dataset(
        name="cifar100",
        title="CIFAR-100",
        files=(
            RemoteFile(
                name="cifar-100-python.tar.gz",
                address="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
                md5="eb9058c3a382ffc7106e4002c42a8d85",
            ),
        ),
        splits=(Split("train", (500,) * 100), Split("test", (100,) * 100)),
        page="https://www.cs.toronto.edu/~kriz/cifar.html",
        terms=_CIFAR_TERMS,
        citation=_KRIZHEVSKY,
    ),
    "svhn": Dataset(
        name="svhn",
        title="SVHN (Street View House Numbers), cropped digits",
        files=(
            RemoteFile(
                name="train_32x32.mat",
                address="http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
                md5="e26dedcc434d2e4c54c9b2d4a06d8373",
            ),
            RemoteFile(
                name="test_32x32.mat",
                address="http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
                md5="eb5a983be6a315427106f1b164d9cef3",
            ),
        ),
        splits=(
            Split("train", (4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659)),
            Split("test", (1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595)),
        ),
        page="http://ufldl.stanford.edu/housenumbers/",
        terms="For non-commercial use only, according to its page.",
        citation="Netzer, Wang, Coates, Bissacco, Wu, Ng, Reading Digits in Natural Images with Unsupervised "
        "Feature Learning, NIPS Workshop on Deep Learning and Unsupervised Feature Learning, 2011",
    ),
    "omniglot": Dataset(
        name="omniglot",
        title="Omniglot",
        files=(
            RemoteFile(
                name="images_background.zip",
                address="https://github.com/brendenlake/omniglot/raw/master/python/images_background.zip",
                md5="68d2efa1b9178cc56df9314c21c6e718",
            ),
            RemoteFile(
                name="images_evaluation.zip",
                address="https://github.com/brendenlake/omniglot/raw/master/python/images_evaluation.zip",
                md5="6b91aef0f799c5bb55b94e3f2daec811",
            ),
        ),
        splits=(Split("background", (20,) * 964), Split("evaluation", (20,) * 659)),
        page="https://github.com/brendenlake/omniglot",
        terms="MIT licence.",
        citation="Lake, Salakhutdinov, Tenenbaum, Human-level concept learning through probabilistic program "
        "induction, Science 350(6266), 2015",
    ),
    "imagenet": Dataset(
        name="imagenet",
        title="ImageNet (ILSVRC 2012)",
        files=(),
        splits=(
            LargeSplit("train", 1_281_167, 1000, (732, 1300)),
            LargeSplit("val", 50_000, 1000, (50, 50)),
        ),
        page="https://www.image-net.org/download.php",
        terms="For non-commercial research and education only, granted on request; its authors do not own the images.",
        citation="Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 115(3), 2015",
        on_request="ImageNet cannot be downloaded without its authors' consent: ask for access at "
        "https://www.image-net.org/download.php, accept its terms, and unpack the training and validation images of "
        "ILSVRC 2012 to {folder}/train/WNID/*.JPEG and {folder}/val/WNID/*.JPEG, a folder for each class.",
    ),
}


def find(name: str) -> Dataset:
    """Return the dataset called ``name``, or say which there are."""
    if name not in DATASETS:
        raise UsageError(
            f"no dataset is called {name!r}; those known are {', '.join(DATASETS)}. Your own pictures are looked at by "
            "`autonovel data check folder DIR`."
        )
    return DATASETS[name]


def how_to_get(name: str, folder: Path) -> str:
    """Return the sentence that tells a person how to get the official files of ``name`` into ``folder``."""
    if DATASETS[name].on_request:
        return DATASETS[name].on_request.format(folder=folder)
    return f"Get the official files with: autonovel data fetch {name} --to {shlex.quote(str(folder))}."


@contextlib.contextmanager
def explained(where: Path, hint: str) -> Iterator[None]:
    """Say of every failure which file it was and what to do; a damaged file can fail in any way whatever."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where} {error} {hint}") from error
    except Exception as error:
        raise InputError(f"{where} cannot be read: it is damaged ({type(error).__name__}: {error}). {hint}") from error


def md5(path: Path) -> str:
    """Return the MD5 of a file: it finds damaged downloads, it does not protect from forged ones."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
