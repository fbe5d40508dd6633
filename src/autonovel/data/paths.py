"""Image files as they are named by a person, one after the other: nothing here grows with their number."""

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from typing import BinaryIO

import numpy as np
import torch

from autonovel.data.crew import Crew, Decoded
from autonovel.data.decode import UnreadableError, decode, is_image, quiet
from autonovel.data.files import read_file
from autonovel.data.memory import trim
from autonovel.errors import InputError

SORTED_AT_ONCE = 10_000  # entries of a folder: smaller folders come in the order of their names
LONGEST = 1 << 20  # bytes of one path in a list
PIECE = 1 << 16  # bytes of a list of paths that are read at once


def images_at(places: Iterable[str]) -> Iterator[str]:
    """Return the files among ``places``, whatever they are called, and all images in the folders among them."""
    seen: set[tuple[int, int]] = set()
    for place in places:
        if os.path.isdir(place):
            yield from _inside(place, seen)
        else:
            yield place


def _inside(folder: str, seen: set[tuple[int, int]]) -> Iterator[str]:
    """Return the images in a folder and those below it; links are followed, but never in a circle."""
    try:
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in seen:
            return
        seen.add((status.st_dev, status.st_ino))
        entries = os.scandir(folder)
    except OSError:
        yield folder  # reading it will say why
        return
    with entries:
        while some := sorted(itertools.islice(entries, SORTED_AT_ONCE), key=lambda entry: entry.name):
            for entry in some:
                if entry.name.startswith("."):
                    continue
                if _is_folder(entry):
                    yield from _inside(entry.path, seen)
                elif is_image(entry.name):
                    yield entry.path


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself: reading it will say so
        return False


def listed(file: BinaryIO) -> Iterator[str]:
    """Return the paths in a list: one a line, or with NUL after each where the list has any, as ``find -print0``."""
    assert isinstance(file, BufferedIOBase)  # both standard input and open files are; others cannot read what is there
    first = b""
    while not (b"\0" in first or b"\n" in first) and len(first) < PIECE and (piece := file.read1(PIECE)):
        first += piece  # as it comes: whoever writes the list may wait for the answers
    end = b"\0" if b"\0" in first else b"\n"
    rest = first.removeprefix(b"\xef\xbb\xbf")
    while True:
        *whole, rest = rest.split(end)
        for name in whole:
            if tidy := name if end == b"\0" else name.rstrip(b"\r"):
                yield os.fsdecode(tidy)
        piece = file.read1(PIECE)
        if not piece:
            break
        if len(rest) > LONGEST:
            raise InputError("the list of paths is no list: a line of it has more than a million bytes.")
        rest += piece
    if tidy := rest.rstrip(b"\r"):
        yield os.fsdecode(tidy)


@dataclass(frozen=True)
class PathPixels:
    """What workers need to decode files they are given by name.

    Attributes:
        side: pixels along each side.
        channels: 1 (grey) or 3.
        workers: processes that decode.
        pinned: whether batches come in pinned memory, for a GPU.
        white: the value that is white in grey of more than 8 bits (0: as its kind has it).
    """

    side: int
    channels: int
    workers: int
    pinned: bool = False
    white: int = 0

    @property
    def kind(self) -> tuple[object, ...]:
        """Return what tells this work from other work."""
        return self.side, self.channels, self.workers, self.pinned, self.white

    def decode(self, paths: Sequence[str]) -> Decoded:
        """Return the images at ``paths``; ``broken`` has their places."""
        out = np.zeros((len(paths), self.channels, self.side, self.side), np.uint8)
        broken = []
        with quiet():
            for place, path in enumerate(paths):
                try:
                    out[place] = decode(read_file(path), self.side, self.channels, self.white)
                except (UnreadableError, OSError, ValueError) as error:  # ValueError: a name with a NUL in it
                    broken.append((place, getattr(error, "strerror", None) or str(error)))
        return Decoded(torch.from_numpy(out), broken, b"")

    def decoded(self, paths: Iterator[str], batch: int) -> Iterator[tuple[list[str], Decoded]]:
        """Return ``batch`` paths at a time with their images; a few batches, and no more, are decoded ahead."""
        sent: list[list[str]] = []

        def orders() -> Iterator[tuple[list[str]]]:
            while some := list(itertools.islice(paths, batch)):
                sent.append(some)
                yield (some,)

        for done in Crew().work(self, orders()):
            trim()
            yield sent.pop(0), done
