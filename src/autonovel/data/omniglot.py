"""Omniglot in its authors' layout, unpacked or straight from their zip files.

``images_background/ALPHABET/CHARACTER/DRAWING.png`` holds the known classes, ``images_evaluation`` twenty further
alphabets, each of which is a set of new classes of its own.  A class is a character, called ``ALPHABET/CHARACTER``.
Drawings are black on white paper; here ink is 255 and paper 0, so that whatever a random view brings in from outside
the drawing is paper too.
"""

import contextlib
import functools
import io
import itertools
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import numpy as np
import torch
from PIL import Image

from autonovel.data.catalogue import explained, how_to_get
from autonovel.data.layouts import OMNIGLOT
from autonovel.data.splits import LabelledImages
from autonovel.errors import InputError, UsageError

SIDE = 105  # pixels of a drawing as published
LARGEST_DRAWING = 2**20  # bytes, unpacked; as published they have a few hundred

Drawing = tuple[PurePosixPath, Callable[[], bytes]]


def load(folder: Path, alphabet: str, side: int = 0) -> LabelledImages:
    """Return all background characters, then those of one evaluation alphabet, n×1×side×side.

    Args:
        folder: holds ``images_background`` and ``images_evaluation``, or the zip files of these names.
        alphabet: an evaluation alphabet.
        side: to which drawings are scaled while they are read (0: as published).

    Raises:
        UsageError: if there is no such alphabet.
        InputError: if drawings are missing, damaged, or not as many as published.
    """
    if alphabet not in OMNIGLOT.evaluation:
        said = f"is {alphabet!r}, which is none of them" if alphabet else "names none"
        raise UsageError(
            f"data.alphabet {said}. Choose the evaluation alphabet to discover (--set data.alphabet=NAME): "
            f"{', '.join(OMNIGLOT.evaluation)}. `autonovel reproduce` runs all of them."
        )
    known = background(folder, side)
    new = characters(folder, "evaluation", alphabet, OMNIGLOT.evaluation[alphabet], side)
    return LabelledImages(
        images=torch.cat([known.images, new.images]),
        labels=torch.cat([known.labels, new.labels + len(known.names)]),
        names=known.names + new.names,
    )


@functools.lru_cache(maxsize=1)
def background(folder: Path, side: int = 0) -> LabelledImages:
    """Return the background characters; read once for all the alphabets that a process works on."""
    return characters(folder, "background", "", OMNIGLOT.background, side)


def characters(folder: Path, split: str, alphabet: str, count: int, side: int = 0) -> LabelledImages:
    """Return the drawings of the characters of one alphabet (empty: of all) of a split, which are ``count``."""
    place = locate(folder, split)
    hint = f"Delete {place}, or move it away. {how_to_get('omniglot', folder)}"
    by_name: dict[str, list[Drawing]] = {}
    pixels: list[np.ndarray] = []
    with contextlib.ExitStack() as opened:
        with explained(place, hint):
            for name, read in sorted(opened.enter_context(_drawings(place)), key=lambda drawing: drawing[0]):
                _, own, character, _ = name.parts
                if alphabet in ("", own):
                    by_name.setdefault(f"{own}/{character}", []).append((name, read))
            _check_counts(by_name, alphabet, count)
        for name, read in itertools.chain.from_iterable(by_name.values()):
            with explained(place / Path(*name.parts[1:]), hint):
                pixels.append(_ink(read(), side))
    labels = torch.arange(count).repeat_interleave(OMNIGLOT.drawings)
    return LabelledImages(torch.from_numpy(np.stack(pixels))[:, None], labels, tuple(by_name))


def locate(folder: Path, split: str) -> Path:
    """Return the folder or zip file from which a split is read; an unpacked folder goes first."""
    unpacked = folder / f"images_{split}"
    archive = folder / f"images_{split}.zip"
    place = unpacked if unpacked.is_dir() else archive
    if not place.exists():
        raise InputError(f"{folder} holds neither {unpacked.name} nor {archive.name}. {how_to_get('omniglot', folder)}")
    return place


@contextlib.contextmanager
def _drawings(place: Path) -> Iterator[list[Drawing]]:
    """Give the name and a reader of every file that lies as deep as a drawing does."""
    if place.is_dir():
        files = list(place.glob("*/*/*.png"))
        yield [(PurePosixPath(path.relative_to(place.parent).as_posix()), path.read_bytes) for path in files]
        return
    with zipfile.ZipFile(place) as archive:
        found = [(PurePosixPath(entry.filename), entry) for entry in archive.infolist()]
        drawings = [(name, entry) for name, entry in found if len(name.parts) == 4 and name.suffix == ".png"]
        for name, entry in drawings:
            if entry.file_size > LARGEST_DRAWING:
                raise InputError(f"states {entry.file_size:,} bytes for {name}, too many for a drawing of 105×105.")
        yield [(name, functools.partial(archive.read, entry)) for name, entry in drawings]


def _check_counts(by_name: dict[str, list[Drawing]], alphabet: str, count: int) -> None:
    where = f" of {alphabet}" if alphabet else ""
    if len(by_name) != count:
        raise InputError(f"holds {len(by_name)} characters{where}; {count} are published.")
    for name, drawings in by_name.items():
        if len(drawings) != OMNIGLOT.drawings:
            raise InputError(f"holds {len(drawings)} drawings of {name}; {OMNIGLOT.drawings} are published.")


def _ink(content: bytes, side: int) -> np.ndarray:
    """Return a drawing as side×side pixels, ink 255 on paper 0, averaged where it shrinks."""
    with Image.open(io.BytesIO(content), formats=("PNG",)) as opened:
        if opened.size != (SIDE, SIDE):
            raise InputError(f"has {opened.width}×{opened.height} pixels; {SIDE}×{SIDE} are published.")
        grey = opened.convert("L")
    if side:
        grey = grey.resize((side, side), Image.Resampling.BILINEAR)
    return np.uint8(255) - np.asarray(grey)
