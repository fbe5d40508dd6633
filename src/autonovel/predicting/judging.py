"""Image files through a delivered model, one batch after the other, as many as may come."""

import os
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from autonovel.data import image_tensor, resize
from autonovel.data.crew import Decoded
from autonovel.data.listing import workers
from autonovel.data.paths import PathPixels
from autonovel.embedding import Embedding, embed
from autonovel.errors import UsageError
from autonovel.networks import Model
from autonovel.networks.folded import folded
from autonovel.passes import batch_size, side_by_side
from autonovel.settings import Data
from autonovel.words import counted


class Judged(NamedTuple):
    """A batch of files.

    Attributes:
        paths: of the files.
        unreadable: place in ``paths`` and reason of each file that cannot be read.
        readable: places of the others.
        found: what the model says of those.
    """

    paths: list[str]
    unreadable: dict[int, str]
    readable: list[int]
    found: Embedding


def judge_files(model: Model, paths: Iterator[str], pixels: PathPixels, batch: int = 0) -> Iterator[Judged]:
    """Yield what ``model`` says of the files at ``paths``, in this order.

    Args:
        model: in eval mode, on its device.
        paths: asked for as they are needed, a few batches ahead.
        pixels: how files become the model's input.
        batch: images at once; 0 chooses.
    """
    size = batch or batch_size(pixels.side, model.mean.device)
    arrived = pixels.decoded(paths, size)
    yield from side_by_side(lambda batch: _judged(model, *batch), arrived, model.mean.device)


def _judged(model: Model, names: list[str], done: Decoded) -> Judged:
    unreadable = dict(done.broken)
    readable = [place for place in range(len(names)) if place not in unreadable]
    images = done.pixels[readable] if unreadable else done.pixels
    return Judged(names, unreadable, readable, embed(model, images))


def paths_of(images: Any) -> list[str] | None:
    """Return the paths of files where images are given so, one or a list of them, and None where they are pixels."""
    if isinstance(images, str | os.PathLike):
        path = os.fspath(images)
        if os.path.isdir(path):
            raise UsageError(
                f"{path} is a folder, and answers have no names of files. Give a list of its files, such as "
                f"sorted(glob({os.path.join(path, '*.jpg')!r})), or call `autonovel predict RUN {shlex.quote(path)} "
                "--to new.csv`, which writes a row with the name of each."
            )
        return [path]
    if isinstance(images, Sequence) and images and all(isinstance(one, str | os.PathLike) for one in images):
        return [os.fspath(one) for one in images]
    return None


def judge_all(
    model: Model, paths: Sequence[str], data: Data, shape: Sequence[int]
) -> tuple[Embedding, NDArray[np.int64]]:
    """Return what a model on the CPU says of all files that can be read, and which of ``paths`` these are.

    Args:
        model: as it was delivered.
        paths: image files.
        data: settings of the run.
        shape: of the images it was trained on.
    """
    pixels = pixels_of(data, shape, torch.device("cpu"))
    parts, rows, done = [], [], 0
    for judged in judge_files(folded(model), iter(paths), pixels):
        parts.append(judged.found)
        rows += [done + place for place in judged.readable]
        done += len(judged.paths)
    whole = [torch.cat([getattr(part, name) for part in parts]) for name in ("z", "p_new", "p_known")]
    return Embedding(*whole), np.array(rows, dtype=np.int64)


def judge_arrays(model: Model, images: Any, data: Data, shape: Sequence[int]) -> Embedding:
    """Return what a model says of images that are given as arrays, cut and scaled as files are.

    Args:
        model: in eval mode.
        images: an array as for a fit.
        data: settings of the images it was trained on.
        shape: of the images it was trained on.
    """
    _, channels, height, width = shape
    pixels = image_tensor(images)
    if pixels.shape[1] != channels:
        one = " A single image is given as a batch of one, image[None]." if np.ndim(images) == 3 else ""
        have = counted(pixels.shape[1], "channel", "channels")
        raise UsageError(f"the images have {have}; this model was fitted on {channels}.{one}")
    side = data.size or (height if height == width else 0)
    if not side and pixels.shape[2:] != (height, width):
        given = f"{pixels.shape[3]}×{pixels.shape[2]}"
        raise UsageError(f"the images have {given} pixels; this model was fitted on {width}×{height} and not cut.")
    return embed(model, resize(pixels, side))


def pixels_of(data: Data, shape: Sequence[int], device: torch.device) -> PathPixels:
    """Return how files become what a model was trained on: images of ``shape``, resized as ``data`` says."""
    _, channels, height, width = shape
    if not data.size and height != width:
        raise UsageError(
            f"this run was trained on images of {width}×{height} pixels, and files are cut to squares. "
            "Use Discoverer.load(RUN).predict(images) with arrays of that size."
        )
    return PathPixels(data.size or height, channels, workers(data), device.type == "cuda", data.white)
