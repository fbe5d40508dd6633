"""Where a recipe's images come from, by name."""

import json
import shlex
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from autonovel.data import cifar, folder, imagenet, omniglot, sample, shards, svhn, table
from autonovel.data.catalogue import DATASETS, how_to_get
from autonovel.data.given_labels import GivenLabels
from autonovel.data.imageset import ImageSet
from autonovel.data.listing import Listing, problem
from autonovel.data.splits import LabelledImages, choose_classes, first_of_each_class, hold_out, known_and_new
from autonovel.errors import InputError, UsageError
from autonovel.settings import Data, Recipe
from autonovel.words import listed

Splits = tuple[LabelledImages, LabelledImages | None]


def _sample(data: Data) -> Splits:
    return sample.load(), None


def _cifar(data: Data) -> Splits:
    return _both(lambda split: cifar.load(Path(data.path), data.source, split))


def _svhn(data: Data) -> Splits:
    return _both(lambda split: svhn.load(Path(data.path), split))


def _both(read: Callable[[str], LabelledImages]) -> Splits:
    """Return the two splits, read at the same time: while zlib unpacks one, Python is free for the other."""
    with ThreadPoolExecutor(2) as readers:
        train, test = readers.map(read, ("train", "test"))
    return train, test


def _omniglot(data: Data) -> Splits:
    return omniglot.load(Path(data.path), data.alphabet, data.size), None


SOURCES: dict[str, Callable[[Data], Splits]] = {
    "sample": _sample,
    "cifar10": _cifar,
    "cifar100": _cifar,
    "svhn": _svhn,
    "omniglot": _omniglot,
}

SHOWN = 10  # names of classes that an error lists
COUNTED = ("cifar10", "cifar100", "svhn")  # others count while they list their files

# sources of image files, which are decoded later, at their final size
LISTINGS: dict[str, Callable[[Data], tuple[Listing, Listing | None]]] = {
    "folder": lambda data: folder.load(Path(data.path)),
    "table": lambda data: table.load(Path(data.path)),
    "shards": lambda data: shards.load(data.path, data.cache),
    "imagenet": imagenet.load,
}


def load(
    settings: Recipe, seed: int, folder: Path | None = None, labels: GivenLabels | None = None
) -> tuple[ImageSet, ImageSet | None, int]:
    """Return the training set, the test set (or None) and the number of new classes (0: nobody knows).

    The test set is the benchmark's own, or images held out by ``data.test_fraction``.

    Args:
        settings: of the run.
        seed: of the run.
        folder: of the run, where ``data.labels`` lies.
        labels: what ``data.labels`` will hold, before it is written.
    """
    train, test, n_new = _of_source(settings, seed)
    if labels is None and settings.data.labels:
        labels = GivenLabels.read((folder or Path()) / settings.data.labels)
    return labels.over(train, test, n_new) if labels is not None else (train, test, n_new)


def check_counts(data: Data, train: LabelledImages, test: LabelledImages | None) -> None:
    """Refuse a benchmark of which a part is missing: its numbers could not stand beside anybody's."""
    if data.source not in COUNTED:
        return
    dataset = DATASETS[data.source]
    for split, images in (("train", train), ("test", test)):
        assert images is not None
        published = next(one.per_class for one in dataset.splits if one.name == split)
        found = images.labels.bincount(minlength=len(images.names)).tolist()
        wrong = [(name, n, m) for name, n, m in zip(images.names, found, published, strict=True) if n != m]
        if wrong:
            name, there, wanted = wrong[0]
            raise InputError(
                f"{data.path} does not hold the published {split} images of {dataset.title}: of class {name} there are "
                f"{there:,}, published are {wanted:,}. See `autonovel data check {data.source} "
                f"{shlex.quote(data.path)}`. "
                f"{how_to_get(data.source, Path(data.path))} For a trial on fewer images, set data.per_class."
            )


def _of_source(settings: Recipe, seed: int) -> tuple[ImageSet, ImageSet | None, int]:
    data = settings.data
    if data.source not in SOURCES and data.source not in LISTINGS:
        raise UsageError(
            f"recipe {settings.name} has no source of images of its own (data.source = {data.source}). "
            "Use it from Python with Discoverer(...).fit(images, y), or choose a recipe with a source, such as demo."
        )
    if data.source != "sample" and not data.path:
        own = {"table": "a table of images", "folder": "a folder of images", "shards": "a folder of tar files"}
        wanted = own.get(data.source, f"the folder of {data.source}")
        place = "FILE" if data.source == "table" else "DIR"
        get = f" {how_to_get(data.source, Path(place))}" if data.source not in own else ""
        raise UsageError(f"recipe {settings.name} needs {wanted}: give it with --data {place}.{get}")
    if data.source in LISTINGS:
        return problem(*LISTINGS[data.source](data), data, seed)
    if data.truth:
        raise UsageError(f"data.truth is for image files; {data.source} has labels of its own. Leave it empty.")
    train, test = SOURCES[data.source](data)
    check_counts(data, train, test)
    train = first_of_each_class(train, data.per_class)
    test = first_of_each_class(test, data.per_class) if test is not None else None
    if test is None:
        train, test = hold_out(train, data.test_fraction, seed)
    elif data.test_fraction:
        raise UsageError(f"{data.source} has test images of its own; leave data.test_fraction at 0.")
    known, new = choose_classes(train.names, data)
    if not known:
        raise UsageError(_none_known(settings, train.names))
    held = known_and_new(test, known, new) if test is not None else None
    return known_and_new(train, known, new), held, len(new)


def _none_known(settings: Recipe, names: tuple[str, ...]) -> str:
    """Return what is wrong where no class of a source is known."""
    if settings.data.new:
        return "data.new names every class, so none is left to learn from. Leave at least two out."
    return (
        f"no class of {settings.data.source} is known: recipe {settings.name} does not say which are. Name them, as in "
        f"--set 'data.known={json.dumps(names[:2])}', or take the first N with --set data.first_known=N. The classes "
        f"are {listed(names, most=SHOWN)}."
    )
