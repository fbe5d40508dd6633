"""The first look at all image files: which can be read, how bright they are, and a checksum of them.

Whatever streams needs this pass once, for the channel statistics; its result is kept as a small file, so
that a resumed run and a process beside this one need not look again.
"""

import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from autonovel.data.streamed import FilePixels
from autonovel.training.display import Display

FORMAT = 1
BYTES_AT_ONCE = 1 << 23
SECONDS_BETWEEN_UPDATES = 0.25


@dataclass(frozen=True)
class Survey:
    """What was seen.

    Attributes:
        broken: row and reason of every file that cannot be read.
        counts: c×256, how often each value occurs in the others.
        fingerprint: checksum of the others' pixels, in order.
    """

    broken: dict[int, str]
    counts: Tensor
    fingerprint: str


def survey(pixels: FilePixels, folder: Path, display: Display, into: Tensor | None = None) -> Survey:
    """Return what can be said of ``pixels``, as kept in ``folder`` or by decoding all of them.

    Args:
        pixels: the images.
        folder: where the result is kept.
        display: for progress.
        into: a tensor for all images, where they are to stay; those that can be read fill it from the front.
    """
    path, known = _place(pixels, folder), kept_survey(pixels, folder)
    if known is not None and into is None:
        return known
    made = _look(pixels, display, into)
    if known is None:
        _save(path, made)
    return made


def kept_survey(pixels: FilePixels, folder: Path) -> Survey | None:
    """Return what is kept in ``folder`` of an earlier look at these very files; None if nothing is."""
    return _load(_place(pixels, folder))


def _place(pixels: FilePixels, folder: Path) -> Path:
    return folder / f"survey-{pixels.files.key_of_all(pixels.side, pixels.channels)}.json"


def _look(pixels: FilePixels, display: Display, into: Tensor | None) -> Survey:
    from autonovel.data.imageset import value_counts

    n, *shape = pixels.shape
    area, size = shape[1] * shape[2], torch.Size(shape).numel()
    broken: dict[int, str] = {}
    counts = torch.zeros(shape[0], 256, dtype=torch.int64)
    sums = hashlib.blake2b(digest_size=16)
    title, done, good = "reading images", 0, 0
    start = told = time.monotonic()
    display.begin(title, n, 0)
    rows = torch.arange(n).split(min(max(BYTES_AT_ONCE // size, 16), 512))
    for batch in pixels.decoded(iter(rows), summed=True):
        bad = {row - done: reason for row, reason in batch.broken}
        whole = torch.tensor([place not in bad for place in range(len(batch.pixels))])
        counts += value_counts(batch.pixels)
        counts[:, 0] -= area * len(bad)  # what cannot be read came as zeros
        sums.update(b"".join(batch.sums[8 * place : 8 * place + 8] for place in whole.nonzero()[:, 0].tolist()))
        if into is not None:
            into[good : good + int(whole.sum())] = batch.pixels[whole]
        broken |= {done + place: reason for place, reason in bad.items()}
        done, good = done + len(whole), good + int(whole.sum())
        if time.monotonic() - told >= SECONDS_BETWEEN_UPDATES:
            told = time.monotonic()
            display.update(title, done, {}, done / (told - start))
    display.end(title)
    return Survey(broken, counts, sums.hexdigest())


def _load(path: Path) -> Survey | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            return None
        broken = {int(row): str(reason) for row, reason in content["broken"].items()}
        return Survey(broken, torch.tensor(content["counts"], dtype=torch.int64), str(content["fingerprint"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, RecursionError):
        return None  # not there, or not whole: look anew


def _save(path: Path, made: Survey) -> None:
    """Keep ``made`` if the folder can be written; several processes may do so at once."""
    content = {"format": FORMAT, "broken": made.broken, "counts": made.counts.tolist(), "fingerprint": made.fingerprint}
    try:
        beside = path.with_name(f"{path.name}.{os.getpid()}.partial")
        with beside.open("w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        return
