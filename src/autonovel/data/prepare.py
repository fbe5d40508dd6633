"""Images made ready for training: resident or streamed, surveyed, with a cache of decoded ones."""

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from autonovel.data.imageset import ImageSet
from autonovel.data.memory import choose, gigabytes
from autonovel.data.pixel_cache import PixelCache
from autonovel.data.streamed import FilePixels, HostPixels
from autonovel.data.survey import Survey, adopt_blocks, survey
from autonovel.errors import InputError, UsageError
from autonovel.settings import Data
from autonovel.storage import writing
from autonovel.storage.run_folder import CACHE
from autonovel.training.display import Display

SHOWN = 5  # unreadable files named on the screen


def prepare(
    images: ImageSet,
    data: Data,
    folder: Path,
    device: torch.device,
    display: Display,
    what: str = "images",
    copies: int = 1,
) -> ImageSet:
    """Return ``images`` as the loader of ``data.loader`` wants them, without files that cannot be read.

    Args:
        images: a source's images.
        data: settings.
        folder: run folder, whose ``cache`` takes what is worth keeping.
        device: that trains.
        display: for progress, and for what was chosen and why.
        what: name of the set in these messages.
        copies: processes on this machine that each hold the images, where they are resident.
    """
    for note in images.notes:
        display.say(f"Note: {note}.")
    pixels = images.images
    side = data.size or None
    n, channels, height, width = pixels.shape
    size = n * channels * (side or height) * (side or width)
    kind, why = choose(data.loader, copies * size, not isinstance(pixels, FilePixels), device)
    told = f"{what.capitalize()}: {n:,}, {gigabytes(size)} decoded; {kind} ({why})"
    if isinstance(pixels, Tensor):
        display.say(told + ".")
        return replace(images, images=HostPixels(pixels, device.type == "cuda")) if kind == "streaming" else images
    if not isinstance(pixels, FilePixels):
        return images
    pixels = replace(pixels, pinned=device.type == "cuda")
    kept = _cache_folder(data, folder)
    if kind == "resident":
        display.say(told + ".")
        table = torch.empty(pixels.shape, dtype=torch.uint8)
        seen = survey(pixels, kept, display, table)
        rows = _readable(n, seen.broken)
        return _without(images, seen, rows, table[: len(rows)], display)
    pixels, about = _with_cache(pixels, data, kept)
    display.say(f"{told}, {about}.")
    seen = survey(pixels, kept, display)
    rows = _readable(n, seen.broken)
    return _without(images, seen, rows, replace(pixels.subset(rows), counts=seen.counts), display)


def prepare_both(
    train: ImageSet,
    test: ImageSet | None,
    data: Data,
    folder: Path,
    device: torch.device,
    display: Display,
    copies: int = 1,
) -> tuple[ImageSet, ImageSet | None]:
    """Return training and test images (or None), both as ``prepare`` makes them."""
    held = prepare(test, data, folder, device, display, "test images", copies) if test else None
    return prepare(train, data, folder, device, display, copies=copies), held


def adopt_surveys(folder: Path, bases: Sequence[Path]) -> None:
    """Take over what other runs saw of their image files, many of which may be this run's too."""
    for base in bases:
        adopt_blocks(folder / CACHE, base / CACHE)


def discard_cache(folder: Path) -> None:
    """Delete the decoded images in the run folder, and what a killed process left; the survey is small and stays."""
    for path in (folder / CACHE).glob("*"):
        if path.name.startswith("decoded-") or path.name.endswith(writing.PARTIAL):
            with contextlib.suppress(OSError):  # the run is finished, and stays so
                writing.remove(path)


def _cache_folder(data: Data, folder: Path) -> Path:
    path = folder / CACHE if data.cache in ("auto", "off", "") else Path(data.cache)
    try:
        writing.make_folder(path)
    except OSError as error:
        raise UsageError(
            f"the cache folder {path} cannot be made ({error.strerror}). Choose another with --set data.cache=DIR, or "
            "none with data.cache=off."
        ) from error
    return path


def _with_cache(pixels: FilePixels, data: Data, folder: Path) -> tuple[FilePixels, str]:
    """Return the pixels with a cache where one is wanted and fits, and what to say of it."""
    workers = f"decoded by {pixels.workers} process{'es' if pixels.workers > 1 else ''}"
    if data.cache == "off":
        return pixels, f"{workers}, no cache"
    _, channels, height, width = pixels.shape
    name = f"decoded-{pixels.files.key_of_all(*pixels.target)}.u8"
    cache = PixelCache(folder / name, pixels.files.total, channels * height * width)
    if not cache.fits():
        return pixels, f"{workers}; a cache of {gigabytes(cache.bytes_needed)} does not fit on the disk of {folder}"
    return replace(pixels, cache=cache), f"{workers}, then kept in {folder} ({gigabytes(cache.bytes_needed)})"


def _readable(n: int, broken: dict[int, str]) -> Tensor:
    return torch.from_numpy(np.setdiff1d(np.arange(n), np.fromiter(broken, np.int64, len(broken))))


def _without(images: ImageSet, seen: Survey, rows: Tensor, pixels: Tensor | FilePixels, display: Display) -> ImageSet:
    """Return the images ``rows``, whose pixels are ``pixels``; the others are told of and stay on record."""
    found = replace(images, images=pixels, fingerprint=seen.fingerprint, sums=seen.sums_by_image)
    lost = {**images.unreadable, **{images.ids[row]: reason for row, reason in seen.broken.items()}}
    if not lost:
        return found
    named = ", ".join(f"{name} ({reason})" for name, reason in list(lost.items())[:SHOWN])
    be = "is" if len(lost) == 1 else "are"
    display.say(
        f"{len(lost)} of {len(images) + len(images.unreadable)} files cannot be read and {be} left out: {named}"
        f"{', …' if len(lost) > SHOWN else ''}. Each keeps a row in discovery.csv."
    )
    y = images.y[rows]
    left = Counter(y.tolist())
    for number, name in enumerate(images.class_names):
        if not left[number] and (images.y == number).any():
            raise InputError(f"no file of the known class {name} can be read. Replace its files, or remove the class.")
    return replace(
        found,
        y=y,
        ids=tuple(images.ids[row] for row in rows.tolist()),
        truth=None if images.truth is None else images.truth[rows],
        unreadable=lost,
    )
