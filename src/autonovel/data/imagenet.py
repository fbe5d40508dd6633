"""ImageNet (ILSVRC 2012) in its usual tree: ``train/WNID/*.JPEG`` and ``val/WNID/*.JPEG``.

A class is a WordNet number, such as ``n01440764``.  118 of the 1,000 classes are kept from the labelled ones; 30 of
them, one of three subsets, are the new classes of a run, the other 88 are left out.  Known classes come first, so that
their images have the same places whichever subset is new, and runs on different subsets can share what is learned from
them alone.
"""

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from autonovel.data.catalogue import how_to_get
from autonovel.data.decode import is_image
from autonovel.data.files import WHOLE, Entry
from autonovel.data.layouts import IMAGENET
from autonovel.data.listing import Listing
from autonovel.errors import InputError, UsageError
from autonovel.settings import Data

TRAIN, VAL = "train", "val"
WNID = re.compile(r"n\d{8}")  # at the beginning of a folder's name; some people add words behind it
FOLDERS_AT_ONCE = 16  # threads wait for a slow disk beside each other
FEW = 3


def load(data: Data) -> tuple[Listing, Listing | None]:
    """Return the training files of the known classes and of the subset, and the validation files of both, if any.

    Raises:
        UsageError: if no subset is chosen, or settings name classes that are not known.
        InputError: if classes are missing or have other numbers of images than published.
    """
    root = Path(data.path)
    if data.subset not in IMAGENET.subsets:
        raise UsageError(
            f"data.subset names none of the subsets to discover: choose one with --set data.subset=A "
            f"({', '.join(IMAGENET.subsets)}). `autonovel reproduce` runs all of them."
        )
    try:
        folders = class_folders(root, TRAIN)
    except InputError as error:
        raise InputError(f"{error} {how_to_get('imagenet', root)}") from error
    new = IMAGENET.subsets[data.subset]
    known = _known(folders, data)
    classes = (*known, *new)
    files = _listed(root, TRAIN, _present(folders, classes, root))
    _check_counts(files, root)
    train = replace(_listing(root, files, classes), known=known)
    return _with_test(train, root, classes)


def class_folders(root: Path, split: str) -> dict[str, str]:
    """Return the folder of each class of a split by its WordNet number, in order."""
    place = root / split
    if not place.is_dir():
        raise InputError(f"{root} has no folder {split}.")
    found: dict[str, str] = {}
    with os.scandir(place) as inside:
        for entry in inside:
            match = WNID.match(entry.name)
            if match is None or not entry.is_dir():
                continue
            if match[0] in found:
                raise InputError(f"{place} has two folders of the class {match[0]}: {found[match[0]]}, {entry.name}.")
            found[match[0]] = entry.name
    if not found:
        raise InputError(
            f"{place} has no class folders such as n01440764 in it. Sort the images into one folder per class."
        )
    return dict(sorted(found.items()))


def images_in(folder: Path) -> list[os.DirEntry[str]]:
    """Return the image files of a class folder by their names."""
    with os.scandir(folder) as inside:
        return sorted((entry for entry in inside if is_image(entry.name)), key=lambda entry: entry.name)


def _known(folders: dict[str, str], data: Data) -> tuple[str, ...]:
    """Return the known classes: all but the 118, or those of them that the settings choose."""
    labelled = tuple(wnid for wnid in folders if wnid not in IMAGENET.unlabelled)
    strange = [wnid for wnid in data.known if wnid not in labelled]
    if strange:
        raise UsageError(
            f"data.known names {', '.join(strange[:FEW])}; the known classes of imagenet are those of the "
            f"{IMAGENET.labelled} labelled ones whose folders are there, such as {', '.join(labelled[:FEW])}."
        )
    if data.known:
        return tuple(wnid for wnid in labelled if wnid in data.known)
    if data.first_known:
        return labelled[: data.first_known]
    if len(labelled) != IMAGENET.labelled:
        raise InputError(
            f"{Path(data.path) / TRAIN} holds {len(labelled)} of the {IMAGENET.labelled} labelled classes. "
            f"{how_to_get('imagenet', Path(data.path))} A trial on those that are there: --set "
            f"data.first_known={len(labelled)}."
        )
    return labelled


def _present(folders: dict[str, str], classes: Sequence[str], root: Path) -> dict[str, str]:
    missing = [wnid for wnid in classes if wnid not in folders]
    if missing:
        raise InputError(
            f"{root / TRAIN} lacks {len(missing)} of the classes to be discovered, such as "
            f"{', '.join(missing[:FEW])}. {how_to_get('imagenet', root)}"
        )
    return {wnid: folders[wnid] for wnid in classes}


def _listed(root: Path, split: str, folders: dict[str, str]) -> dict[str, list[Entry]]:
    """Return the files of every class, with size and time of change."""

    def files(name: str) -> list[Entry]:
        out = []
        for entry in images_in(root / split / name):
            place = f"{split}/{name}/{entry.name}"
            try:
                status = entry.stat()
            except OSError:  # a dangling link: reading it will say so
                out.append(Entry(place, place, WHOLE, 0, 0))
            else:
                out.append(Entry(place, place, WHOLE, status.st_size, status.st_mtime_ns))
        return out

    with ThreadPoolExecutor(FOLDERS_AT_ONCE) as pool:
        return dict(zip(folders, pool.map(files, folders.values()), strict=True))


def _check_counts(files: dict[str, list[Entry]], root: Path) -> None:
    low, high = IMAGENET.fewest, IMAGENET.most
    wrong = {wnid: len(entries) for wnid, entries in files.items() if not low <= len(entries) <= high}
    if wrong:
        wnid, count = next(iter(wrong.items()))
        more = f" and {len(wrong) - 1} more such classes" if len(wrong) > 1 else ""
        raise InputError(
            f"{root / TRAIN} has {count:,} images of {wnid}{more}; {low:,} to {high:,} of a class are published. "
            f"{how_to_get('imagenet', root)}"
        )


def _listing(root: Path, files: dict[str, list[Entry]], classes: Sequence[str]) -> Listing:
    labels: list[str | None] = [wnid for wnid in classes for _ in files[wnid]]
    return Listing(root, [entry for wnid in classes for entry in files[wnid]], labels)


def _with_test(train: Listing, root: Path, classes: Sequence[str]) -> tuple[Listing, Listing | None]:
    """Return the training files, with a note where there are no validation files, and those."""
    try:
        folders = class_folders(root, VAL)
    except InputError as error:
        return replace(train, notes=(f"there are no images for the test scores: {error}".rstrip("."),)), None
    files = _listed(root, VAL, {wnid: folders[wnid] for wnid in classes if wnid in folders})
    test = _listing(root, files, list(files))
    return train, test if test.entries else None
