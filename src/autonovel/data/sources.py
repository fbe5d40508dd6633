"""Where a recipe's images come from, by name."""

from collections.abc import Callable

from autonovel.data import sample
from autonovel.data.imageset import ImageSet
from autonovel.data.splits import LabelledImages, known_and_new
from autonovel.errors import UsageError
from autonovel.settings import Data, Recipe


def _sample(data: Data) -> LabelledImages:
    return sample.load()


SOURCES: dict[str, Callable[[Data], LabelledImages]] = {"sample": _sample}


def load(settings: Recipe, seed: int) -> tuple[ImageSet, ImageSet | None, int]:
    """Return the training set, the held-out test set (or None) and the number of new classes."""
    data = settings.data
    if data.source not in SOURCES:
        raise UsageError(
            f"recipe {settings.name} has no source of images of its own (data.source = {data.source}). "
            "Use it from Python with Discoverer(...).fit(images, y), or choose a recipe with a source, such as demo."
        )
    train, test = known_and_new(SOURCES[data.source](data), data.known, data.test_fraction, seed)
    return train, test, len(train.new_names)
