"""The first look at all image files: which can be read, how bright they are, and a checksum of each.

Whatever streams needs this pass once; its result is kept as small files, so that a resumed run and a process beside
this one need not look again.  A large set is looked at block by block, each kept as it is done: a look that was
interrupted goes on, and runs that have files in common take each other's blocks over.
"""

import hashlib
import json
import os
import shutil
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from autonovel import stopping
from autonovel.data.streamed import FilePixels
from autonovel.storage import writing
from autonovel.training.display import Display

FORMAT = 2
BYTES_AT_ONCE = 1 << 23
BLOCK = 8192  # files whose survey is kept as one
SUM = 8  # bytes of an image's checksum
SECONDS_BETWEEN_UPDATES = 0.25
TITLE = "reading images"


@dataclass(frozen=True)
class Survey:
    """What was seen.

    Attributes:
        broken: row and reason of every file that cannot be read.
        counts: c×256, how often each value occurs in the others.
        sums: checksum of the pixels of each of the others, in order, 8 bytes each.
    """

    broken: dict[int, str]
    counts: Tensor
    sums: bytes

    @property
    def fingerprint(self) -> str:
        """Return a checksum of all pixels."""
        return hashlib.blake2b(self.sums, digest_size=16).hexdigest()

    @property
    def sums_by_image(self) -> Tensor:
        """Return the checksums as n×8 uint8."""
        return torch.frombuffer(bytearray(self.sums), dtype=torch.uint8).view(-1, SUM) if self.sums else _NO_SUMS


_NO_SUMS = torch.zeros(0, SUM, dtype=torch.uint8)


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
    made = _look(pixels, folder, display, into)
    if known is None:
        _save(path, made)
    return made


def kept_survey(pixels: FilePixels, folder: Path) -> Survey | None:
    """Return what is kept in ``folder`` of an earlier look at these very files; None if nothing is."""
    return _load(_place(pixels, folder), len(pixels), pixels.shape[1])


def adopt_blocks(folder: Path, base: Path) -> None:
    """Link the blocks kept in ``base`` into ``folder``: those of files that are not there are never asked for."""
    for block in base.glob("survey-*.json"):
        if not (folder / block.name).exists():
            try:
                writing.make_folder(folder)
                writing.place_file(folder / block.name, partial(_link_or_copy, block))
            except OSError:  # the files are looked at again
                return


def _link_or_copy(source: Path, to: Path) -> None:
    try:
        os.link(source, to)
    except OSError:  # another disk, or one without links
        shutil.copyfile(source, to)


def _place(pixels: FilePixels, folder: Path) -> Path:
    return folder / f"survey-{pixels.files.key_of_all(*pixels.target)}.json"


def _look(pixels: FilePixels, folder: Path, display: Display, into: Tensor | None) -> Survey:
    n = len(pixels)
    progress = _Progress(display, n)
    blocks = torch.arange(n).split(BLOCK) if n else ()
    broken: dict[int, str] = {}
    counts = torch.zeros(pixels.shape[1], 256, dtype=torch.int64)
    sums = bytearray()
    for rows in blocks:
        place = folder / f"survey-block-{pixels.files.key_of_rows(rows.numpy(), *pixels.target)}.json"
        known = _load(place, len(rows), pixels.shape[1]) if len(blocks) > 1 else None
        if known is not None and into is None:
            seen = known
            progress.skip(len(rows))
        else:
            good = len(sums) // SUM
            seen = _look_at(pixels, rows, progress, into[good:] if into is not None else None)
            if known is None and len(blocks) > 1:
                _save(place, seen)
        first = int(rows[0])
        broken |= {first + row: reason for row, reason in seen.broken.items()}
        counts += seen.counts
        sums += seen.sums
    display.end(TITLE)
    return Survey(broken, counts, bytes(sums))


def _look_at(pixels: FilePixels, rows: Tensor, progress: "_Progress", into: Tensor | None) -> Survey:
    """Return what is seen of the images ``rows``, numbered from the first of these on."""
    from autonovel.data.imageset import value_counts

    shape = pixels.shape[1:]
    area, first, done = shape[1] * shape[2], int(rows[0]), 0
    broken: dict[int, str] = {}
    counts = torch.zeros(shape[0], 256, dtype=torch.int64)
    sums = bytearray()
    for batch in pixels.decoded(iter(rows.split(min(max(BYTES_AT_ONCE // shape.numel(), 16), 512))), summed=True):
        bad = {row - first - done: reason for row, reason in batch.broken}
        whole = torch.tensor([place not in bad for place in range(len(batch.pixels))])
        counts += value_counts(batch.pixels)
        counts[:, 0] -= area * len(bad)  # what cannot be read came as zeros
        good = len(sums) // SUM
        sums += b"".join(batch.sums[SUM * place : SUM * (place + 1)] for place in whole.nonzero()[:, 0].tolist())
        if into is not None:
            into[good : good + int(whole.sum())] = batch.pixels[whole]
        broken |= {done + place: reason for place, reason in bad.items()}
        done += len(whole)
        progress.more(len(whole))
    return Survey(broken, counts, bytes(sums))


class _Progress:
    """Tells the display how far the look is; blocks kept from before do not count for its pace."""

    def __init__(self, display: Display, n: int) -> None:
        self.display, self.done, self.looked = display, 0, 0
        self.start = self.told = time.monotonic()
        display.begin(TITLE, n, 0, "images")

    def skip(self, count: int) -> None:
        """Count images known from before."""
        self.done += count

    def more(self, count: int) -> None:
        """Count images just looked at; tell now and then."""
        stopping.check()
        self.done, self.looked = self.done + count, self.looked + count
        if time.monotonic() - self.told >= SECONDS_BETWEEN_UPDATES:
            self.told = time.monotonic()
            self.display.update(TITLE, self.done, {}, self.looked / (self.told - self.start))


def _load(path: Path, rows: int, channels: int) -> Survey | None:
    """Return what is kept at ``path`` of a look at so many images; None if nothing is, or nothing that fits them."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            return None
        broken = {int(row): str(reason) for row, reason in content["broken"].items()}
        counts, sums = torch.tensor(content["counts"], dtype=torch.int64), bytes.fromhex(content["sums"])
        whole = counts.shape == (channels, 256) and len(sums) == SUM * (rows - len(broken))
        return Survey(broken, counts, sums) if whole and all(0 <= row < rows for row in broken) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, RecursionError):
        return None  # not there, or not whole: look anew


def _save(path: Path, made: Survey) -> None:
    """Keep ``made`` if the folder can be written; several processes may do so at once."""
    content = {"format": FORMAT, "broken": made.broken, "counts": made.counts.tolist(), "sums": made.sums.hex()}
    try:
        with writing.replacing(path, path.with_name(f"{path.name}.{os.getpid()}{writing.PARTIAL}")) as file:
            file.write(json.dumps(content).encode())
    except OSError:
        return
