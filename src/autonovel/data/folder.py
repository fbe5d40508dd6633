"""A folder of image files: sub-folders are known classes, everything else is to be discovered.

DIR/cat/*.jpg, DIR/dog/*.jpg    known classes
DIR/*.jpg, DIR/unlabelled/*.jpg to be discovered
DIR/test/cat/*.jpg, …           optional: for the test scores
DIR/truth.csv                   optional: path,label of images to be discovered, for scoring
"""

import os
from dataclasses import replace
from pathlib import Path

from autonovel.data import class_notes
from autonovel.data.decode import is_image
from autonovel.data.files import WHOLE, Entry, printable
from autonovel.data.listing import TRUTH, Listing
from autonovel.errors import InputError, UsageError
from autonovel.visible import is_text

UNLABELLED = ("unlabelled", "unlabeled")
TEST = "test"
COMPANIONS = (TRUTH, "metadata.csv", "metadata.parquet")  # tables beside the images
FEW = 3  # named one by one


def load(root: Path) -> tuple[Listing, Listing | None]:
    """Return the files for training and those for testing (None if there are none), sorted by relative path."""
    if root.is_file():
        raise UsageError(
            f"{root} is not a folder but a file; give the folder of the images with --data DIR, or, for a table of "
            "paths and labels, add --set data.source=table."
        )
    if not root.is_dir():
        raise UsageError(f"{root} is not a folder; give the folder of the images.")
    if (root / TEST).is_dir() and any(path.is_file() for path in (root / TEST).iterdir() if is_image(path.name)):
        raise InputError(f"{root / TEST} has images outside of class folders; test images need a class each.")
    found = _Found(root)
    train = found.listing([entry for entry in found.entries if not entry.id.startswith(TEST + "/")], 0)
    test = found.listing([entry for entry in found.entries if entry.id.startswith(TEST + "/")], 1)
    train = replace(train, unreadable=train.unreadable | found.closed, notes=found.notes() + _class_notes(found, train))
    return train, test if test.entries else None


def has_pile(root: Path) -> bool:
    """Tell whether a folder has one for images to be discovered in it."""
    return any(path.name.lower() in UNLABELLED and path.is_dir() for path in root.iterdir()) if root.is_dir() else False


def everything(root: Path) -> Listing:
    """Return all images in a folder, none of them with a class."""
    found = _Found(root)
    listed = found.listing(found.entries, 0)
    labels: list[str | None] = [None] * len(listed.entries)
    return replace(listed, labels=labels, unreadable=listed.unreadable | found.closed, notes=found.notes())


def _class_notes(found: "_Found", train: Listing) -> tuple[str, ...]:
    """Return what to say of class folders, as they are and as they are called."""
    ids = (entry.id for entry, label in zip(train.entries, train.labels, strict=True) if label is not None)
    put = f"put these images loose into the folder, or into {UNLABELLED[0]}/ inside it"
    return class_notes.on_folders(ids, found.class_folders()) + class_notes.on_names(train.labels, put)


def _class(name: str, depth: int) -> str | None:
    """Return the class folder in a relative path, None for images to be discovered."""
    parts = name.split("/")
    return parts[depth] if len(parts) > depth + 1 and (depth or parts[0].lower() not in UNLABELLED) else None


class _Found:
    """What lies in a folder and below it; links are followed, but never in a circle.

    Attributes:
        entries: the image files, in no order.
        closed: folders that cannot be looked into: why, by their path in the folder.
        others: files that are no images by their names.
        folders: that lie in it.
        with_runs: those of them in which runs of ours lie.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.entries: list[Entry] = []
        self.closed: dict[str, str] = {}
        self.others: list[str] = []
        self.folders: list[str] = []
        self.with_runs: set[str] = set()
        seen = set()
        for folder, folders, files in os.walk(root, followlinks=True, onerror=self._closed):
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in seen:
                folders.clear()
                continue
            seen.add((status.st_dev, status.st_ino))
            if folder != str(root) and "run.json" in files:  # a run of ours, whose pictures are none of the person's
                folders.clear()
                self.with_runs.add(self._inside(folder).split("/")[0])
                continue
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            inside = self._inside(folder)
            if inside == ".":
                self.folders = list(folders)
            for name in files:
                self._add(os.path.join(folder, name), name if inside == "." else f"{inside}/{name}")

    def _closed(self, error: OSError) -> None:
        self.closed[printable(self._inside(str(error.filename)))] = f"a folder: {error.strerror}"

    def _inside(self, path: str) -> str:
        return os.path.relpath(path, self.root).replace(os.sep, "/")

    def _add(self, path: str, inside: str) -> None:
        name = os.path.basename(path)
        if not is_image(name):
            if not name.startswith(".") and inside not in COMPANIONS:
                self.others.append(inside)
            return
        try:
            status = os.stat(path)
        except OSError:  # a dangling link: reading it will say so
            self.entries.append(Entry(inside, inside, WHOLE, 0, 0))
        else:
            self.entries.append(Entry(inside, inside, WHOLE, status.st_size, status.st_mtime_ns))

    def listing(self, entries: list[Entry], depth: int) -> Listing:
        """Return ``entries`` by their names, with the classes whose folders stand at ``depth`` in these."""
        named = sorted((entry for entry in entries if is_text(entry.id)), key=lambda entry: entry.id)
        odd = {printable(entry.id): "its name is not valid UTF-8" for entry in entries if not is_text(entry.id)}
        return Listing(self.root, named, [_class(entry.id, depth) for entry in named], odd)

    def class_folders(self) -> list[str]:
        """Return the folders that should be classes."""
        names = {*map(printable, self.folders)} - {TEST, *self.with_runs, *self.closed}
        return [name for name in names if name.lower() not in UNLABELLED]

    def notes(self) -> tuple[str, ...]:
        """Return what to say of files that are not looked at."""
        if not self.others:
            return ()
        named = ", ".join(map(printable, sorted(self.others)[:FEW])) + (", …" if len(self.others) > FEW else "")
        many = f"{len(self.others):,} files are no images by the endings of their names and were"
        some = "1 file is no image by the ending of its name and was" if len(self.others) == 1 else many
        return (f"{some} left alone: {named}",)
