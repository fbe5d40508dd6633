"""A folder of image files: sub-folders are known classes, everything else is to be discovered.

DIR/cat/*.jpg, DIR/dog/*.jpg    known classes
DIR/*.jpg, DIR/unlabelled/*.jpg to be discovered
DIR/test/cat/*.jpg, …           optional: for the test scores
DIR/truth.csv                   optional: path,label of images to be discovered, for scoring
"""

import os
from collections.abc import Iterator
from pathlib import Path

from autonovel.data.decode import is_image
from autonovel.data.files import WHOLE, Entry
from autonovel.data.listing import Listing
from autonovel.errors import InputError, UsageError

UNLABELLED = ("unlabelled", "unlabeled")
TEST = "test"


def load(root: Path) -> tuple[Listing, Listing | None]:
    """Return the files for training and those for testing (None if there are none), sorted by relative path."""
    if root.is_file():
        raise UsageError(
            f"{root} is not a folder but a file; give the folder of the images with --data DIR, or, for a table of "
            "paths and labels, add --set data.source=table."
        )
    if not root.is_dir():
        raise UsageError(f"{root} is not a folder; give the folder of the images with --data DIR.")
    if (root / TEST).is_dir() and any(path.is_file() for path in (root / TEST).iterdir() if is_image(path.name)):
        raise InputError(f"{root / TEST} has images outside of class folders; test images need a class each.")
    train = _listing(root, [entry for entry in _images(root) if not entry.id.startswith(TEST + "/")], 0)
    test = _listing(root, list(_images(root / TEST, root)), 1) if (root / TEST).is_dir() else None
    return train, test if test is not None and test.entries else None


def everything(root: Path) -> Listing:
    """Return all images in a folder, none of them with a class."""
    found = _listing(root, list(_images(root)), 0)
    return Listing(root, found.entries, [None] * len(found.entries), found.unreadable)


def _listing(root: Path, entries: list[Entry], depth: int) -> Listing:
    named = sorted((entry for entry in entries if _is_text(entry.id)), key=lambda entry: entry.id)
    odd = {
        entry.id.encode(errors="surrogateescape").decode(errors="backslashreplace"): "its name is not valid UTF-8"
        for entry in entries
        if not _is_text(entry.id)
    }
    return Listing(root, named, [_class(entry.id, depth) for entry in named], odd)


def _class(name: str, depth: int) -> str | None:
    """Return the class folder in a relative path, None for images to be discovered."""
    parts = name.split("/")
    return parts[depth] if len(parts) > depth + 1 and (depth or parts[0] not in UNLABELLED) else None


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes that are no UTF-8, as Python smuggles them through
        return False
    return True


def _images(top: Path, root: Path | None = None) -> Iterator[Entry]:
    """Return the image files under ``top``; links are followed, but never in a circle."""
    seen = set()
    for folder, folders, files in os.walk(top, followlinks=True):
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inside = os.path.relpath(folder, root or top)
        for name in files:
            if is_image(name):
                relative = name if inside == "." else f"{inside}/{name}".replace(os.sep, "/")
                try:
                    status = os.stat(os.path.join(folder, name))
                except OSError:  # a dangling link: reading it will say so
                    yield Entry(relative, relative, WHOLE, 0, 0)
                    continue
                yield Entry(relative, relative, WHOLE, status.st_size, status.st_mtime_ns)
