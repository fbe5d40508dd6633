"""Say what is there of a dataset: which files, whether they are the official ones, how many images of each class.

Contents with the published counts are good whatever file they came in, so that a file of another checksum is
called "not the official archive" and is no error.
"""

import zipfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from autonovel.data.catalogue import Dataset, LargeSplit, RemoteFile, Split, explained, find, how_to_get, md5
from autonovel.data.layouts import IMAGENET
from autonovel.errors import InputError
from autonovel.words import counted, of_images

FEW = 5  # classes named one by one; the others are counted


@dataclass(frozen=True)
class FileReport:
    """An official file: ``found`` is the MD5 of what is there under its name, None if nothing is."""

    file: RemoteFile
    found: str | None

    @property
    def official(self) -> bool:
        """Return whether the file is the one its authors publish."""
        return self.found == self.file.md5


@dataclass(frozen=True)
class SplitReport:
    """The images of a split.

    Attributes:
        split: what is published.
        source: the file or folder the images were read from, None if there is none.
        per_class: number of images of each class that has any, by name.
        problem: why the split cannot be read, None if it can.
        note: what else there is to say of its classes.
    """

    split: Split | LargeSplit
    source: Path | None
    per_class: dict[str, int]
    problem: str | None = None
    note: str = ""

    @property
    def count(self) -> int:
        """Return the number of images found."""
        return sum(self.per_class.values())

    @property
    def complete(self) -> bool:
        """Return whether every class has its published number of images."""
        return self.problem is None and self.split.matches(tuple(self.per_class.values()))


@dataclass(frozen=True)
class Report:
    """What is there of a dataset."""

    dataset: Dataset
    folder: Path
    files: tuple[FileReport, ...]
    splits: tuple[SplitReport, ...]

    @property
    def complete(self) -> bool:
        """Return whether every split can be read and has the published counts."""
        return all(split.complete for split in self.splits)


def check(dataset: str | Dataset, folder: Path) -> Report:
    """Return what is there of a dataset in ``folder``.

    Args:
        dataset: a name of the catalogue, or an entry of one's own.
        folder: where the official files, or their unpacked contents, should be.
    """
    entry = find(dataset) if isinstance(dataset, str) else dataset
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder. {how_to_get(entry.name, folder)}")
    return Report(
        dataset=entry,
        folder=folder,
        files=tuple(FileReport(file, _md5(folder / file.name)) for file in entry.files),
        splits=tuple(_check_split(entry.name, folder, split) for split in entry.splits),
    )


def _md5(path: Path) -> str | None:
    return md5(path) if path.is_file() else None


def _check_split(name: str, folder: Path, split: Split | LargeSplit) -> SplitReport:
    count = {"omniglot": _omniglot, "imagenet": _imagenet}.get(name, _loaded)
    try:
        source, per_class = count(name, folder, split)
    except InputError as error:
        return SplitReport(split, None, {}, str(error))
    return SplitReport(split, source, per_class, note=_subsets(per_class) if name == "imagenet" else "")


def _imagenet(name: str, folder: Path, split: Split | LargeSplit) -> tuple[Path, dict[str, int]]:
    """Count the files of each class by their names alone: they are more than a million."""
    from autonovel.data.imagenet import class_folders, images_in

    place = folder / split.name
    return place, {wnid: len(images_in(place / own)) for wnid, own in class_folders(folder, split.name).items()}


def _subsets(found: Iterable[str]) -> str:
    """Say how many of the classes that a run needs are there, labelled ones and those of each subset."""
    there = set(found)
    labelled = len(there - IMAGENET.unlabelled)
    new = ", ".join(f"{name} {len(there & set(own))} of {len(own)}" for name, own in IMAGENET.subsets.items())
    return f"; labelled classes {labelled} of {IMAGENET.labelled}, new ones of subset {new}"


def _loaded(name: str, folder: Path, split: Split | LargeSplit) -> tuple[Path, dict[str, int]]:
    """Read the images as a run would, and count them."""
    from autonovel.data import cifar, svhn

    if name == "svhn":
        source, images = svhn.locate(folder, split.name), svhn.load(folder, split.name)
    else:
        source, images = cifar.locate(folder, name, split.name), cifar.load(folder, name, split.name)
    counts = images.labels.bincount(minlength=len(images.names)).tolist()
    return source, dict(zip(images.names, counts, strict=True))


def _omniglot(name: str, folder: Path, split: Split | LargeSplit) -> tuple[Path, dict[str, int]]:
    """Count the drawings of each character by their names, ``images_SPLIT/ALPHABET/CHARACTER/DRAWING.png``."""
    unpacked = folder / f"images_{split.name}"
    archive = folder / f"images_{split.name}.zip"
    if unpacked.is_dir():
        return unpacked, _characters(path.relative_to(folder).as_posix() for path in unpacked.glob("*/*/*.png"))
    if not archive.is_file():
        raise InputError(f"{folder} holds neither {unpacked.name} nor {archive.name}. {how_to_get(name, folder)}")
    hint = f"Delete {archive}, or move it away. {how_to_get(name, folder)}"
    with explained(archive, hint), zipfile.ZipFile(archive) as file:
        return archive, _characters(file.namelist())


def _characters(names: Iterable[str]) -> dict[str, int]:
    paths = (PurePosixPath(name) for name in names)
    counts = Counter("/".join(path.parts[1:3]) for path in paths if len(path.parts) == 4 and path.suffix == ".png")
    return dict(sorted(counts.items()))


def describe(report: Report) -> list[str]:
    """Return the report as lines for a terminal."""
    dataset = report.dataset
    lines = [f"{dataset.title} in {report.folder}"]
    lines += [f"  {_describe_file(file)}" for file in report.files]
    official = {report.folder / file.file.name for file in report.files if file.official}
    lines += [f"  {_describe_split(s, s.source in official or not dataset.files)}" for s in report.splits]
    missing = [split.split.name for split in report.splits if not split.complete]
    if missing:
        lines.append(f"Missing or different: {', '.join(missing)}. {how_to_get(dataset.name, report.folder)}")
    else:
        totals = any(isinstance(split, LargeSplit) for split in dataset.splits)
        lines.append(
            "Complete: as many images and classes as published."
            if totals
            else "Complete: every class has its published number of images."
        )
    return [*lines, f"Terms of use: {dataset.terms} ({dataset.page})", f"Cite: {dataset.citation}."]


def _describe_file(report: FileReport) -> str:
    if report.found is None:
        return f"{report.file.name}: not there"
    if report.official:
        return f"{report.file.name}: the official archive (MD5 {report.found})"
    return f"{report.file.name}: not the official archive (MD5 {report.found}; official {report.file.md5})"


def _describe_split(report: SplitReport, official: bool) -> str:
    name, published = report.split.name, report.split
    if report.problem is not None:
        return f"{name}: {report.problem}"
    source = f"read from {report.source}{'' if official else ' (not the official archive)'}"
    source += report.note
    text = f"{name}: {of_images(report.count)} of {counted(len(report.per_class), 'class', 'classes')}"
    if report.complete:
        return f"{text}, {_spread(published)}, as published; {source}"
    return (
        f"{text}; published are {published.count:,} of {published.classes}, {_spread(published)}"
        f"{_deviations(report)}; {source}"
    )


def _spread(split: Split | LargeSplit) -> str:
    low, high = split.spread
    return f"{low:,} of each class" if low == high else f"{low:,} to {high:,} of a class"


def _deviations(report: SplitReport) -> str:
    """Name the classes whose number is not the published one, where classes can be told apart."""
    if len(report.per_class) != len(report.split.per_class):
        return ""
    found = zip(report.per_class.items(), report.split.per_class, strict=True)
    wrong = [f"{name} {count:,} instead of {wanted:,}" for (name, count), wanted in found if count != wanted]
    more = f" and {len(wrong) - FEW} more classes" if len(wrong) > FEW else ""
    return f" ({', '.join(wrong[:FEW])}{more})"
