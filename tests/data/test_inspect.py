"""The inventory of a dataset: official or not, complete or not, and what is missing."""

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from test_cifar import archive, files, python2
from test_cifar import write as write_cifar
from test_svhn import column, images
from test_svhn import write as write_svhn

from autonovel.data.catalogue import Dataset, Split, find, how_to_get
from autonovel.data.inspect import check, describe
from autonovel.errors import InputError

COUNTS = {"train": (0, 4, 4, 4, 4, 4, 0, 0, 0, 0), "test": (4, 0, 0, 0, 0, 0, 0, 0, 0, 0)}


def small(name: str, **counts: tuple[int, ...]) -> Dataset:
    """Return a dataset of the catalogue with other published counts."""
    return replace(find(name), splits=tuple(Split(split, per_class) for split, per_class in counts.items()))


def test_unpacked_files_with_the_right_counts_are_complete(tmp_path: Path) -> None:
    write_cifar(tmp_path / "cifar-10-batches-py", files("cifar10"))
    report = check(small("cifar10", **COUNTS), tmp_path)
    assert report.complete and [file.found for file in report.files] == [None]
    assert [split.count for split in report.splits] == [20, 4]
    assert report.splits[0].per_class["class 3"] == 4 and report.splits[0].per_class["class 9"] == 0
    text = "\n".join(describe(report))
    assert "cifar-10-python.tar.gz: not there" in text
    assert "train: 20 images of 10 classes, 0 to 4 of a class, as published; read from" in text
    assert "cifar-10-batches-py (not the official archive)" in text
    assert "Complete" in text and "Missing" not in text and "Krizhevsky" in text and "No explicit licence" in text


def test_an_official_archive_is_told_from_another(tmp_path: Path) -> None:
    path = tmp_path / "cifar-10-python.tar.gz"
    archive(path, {f"cifar-10-batches-py/{name}": python2(content) for name, content in files("cifar10").items()})
    dataset = small("cifar10", **COUNTS)
    found = hashlib.md5(path.read_bytes()).hexdigest()
    other = check(dataset, tmp_path)
    assert other.complete and not other.files[0].official and other.files[0].found == found
    assert f"not the official archive (MD5 {found}; official {dataset.files[0].md5})" in "\n".join(describe(other))
    official = check(replace(dataset, files=(replace(dataset.files[0], md5=found),)), tmp_path)
    text = "\n".join(describe(official))
    assert official.files[0].official and f"the official archive (MD5 {found})" in text
    assert "not the official archive" not in text


def test_wrong_counts_are_named_class_by_class(tmp_path: Path) -> None:
    write_cifar(tmp_path / "cifar-10-batches-py", files("cifar10"))
    report = check("cifar10", tmp_path)
    assert not report.complete and not any(split.complete for split in report.splits)
    text = "\n".join(describe(report))
    assert "train: 20 images of 10 classes; published are 50,000 of 10, 5,000 of each class" in text
    assert "class 0 0 instead of 5,000, class 1 4 instead of 5,000" in text and "and 5 more classes" in text
    assert f"Missing or different: train, test. {how_to_get('cifar10', tmp_path)}" in text


def test_what_is_missing_or_damaged_is_said_for_each_split(tmp_path: Path) -> None:
    write_svhn(tmp_path, "train", X=images(3), y=column(1, 1, 10))
    dataset = small("svhn", train=(1, 2, *[0] * 8), test=(1,) * 10)
    report = check(dataset, tmp_path)
    assert [split.complete for split in report.splits] == [True, False]
    assert "test_32x32.mat is missing" in (report.splits[1].problem or "")
    assert "Missing or different: test." in "\n".join(describe(report))
    (tmp_path / "test_32x32.mat").write_bytes(b"damaged")
    report = check(dataset, tmp_path)
    assert "is damaged, or no MATLAB file" in (report.splits[1].problem or "") and report.files[1].found
    assert "non-commercial" in "\n".join(describe(report))


@pytest.mark.parametrize("packed", [False, True])
def test_omniglot_is_counted_by_its_names(tmp_path: Path, packed: bool) -> None:
    drawings = [f"images_background/Greek/character{c:02d}/{c:04d}_{d:02d}.png" for c in (1, 2) for d in (1, 2, 3)]
    if packed:
        with zipfile.ZipFile(tmp_path / "images_background.zip", "w") as file:
            for name in ("images_background/Greek/", *drawings, "images_background/cover.png"):
                file.writestr(name, b"")
        (tmp_path / "images_evaluation.zip").write_bytes(b"no zip")
    else:
        for name in drawings:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
    report = check(small("omniglot", background=(3, 3), evaluation=(3,)), tmp_path)
    assert report.splits[0].complete and not report.splits[1].complete
    assert report.splits[0].per_class == {"Greek/character01": 3, "Greek/character02": 3}
    more = check(small("omniglot", background=(3, 3, 3)), tmp_path)
    assert "6 images of 2 classes; published are 9 of 3, 3 of each class; read from" in "\n".join(describe(more))
    assert ("damaged" if packed else "neither images_evaluation nor") in (report.splits[1].problem or "")


def test_an_empty_and_a_missing_folder(tmp_path: Path) -> None:
    report = check("cifar100", tmp_path)
    assert not report.complete and all("missing" in (split.problem or "") for split in report.splits)
    with pytest.raises(InputError, match=r"nowhere is not a folder\. .*autonovel data fetch svhn --to"):
        check("svhn", tmp_path / "nowhere")
