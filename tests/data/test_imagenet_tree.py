"""ImageNet's tree as a source: which classes, in which order, and what is said of trees that are not whole."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import imagenet_tree
from autonovel import recipe
from autonovel.data import fetch, imagenet, inspect, sources
from autonovel.data.catalogue import DATASETS, LargeSplit
from autonovel.data.layouts import IMAGENET
from autonovel.data.listing import problem
from autonovel.errors import InputError, UsageError
from autonovel.settings import Data
from imagenet_tree import KNOWN, SUBSETS, TRAIN, UNLABELLED, VAL


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    imagenet_tree.publish(monkeypatch)
    return imagenet_tree.write(tmp_path / "tree")


def data(tree: Path, **more: object) -> Data:
    return replace(Data(source="imagenet", path=str(tree), subset="A", size=16, workers=1), **more)  # type: ignore[arg-type]


def test_the_lists_of_classes_are_those_of_the_split() -> None:
    assert len(IMAGENET.unlabelled) == 118 and IMAGENET.labelled == 882
    assert {name: len(set(wnids)) for name, wnids in IMAGENET.subsets.items()} == {"A": 30, "B": 30, "C": 30}
    for wnids in (IMAGENET.unlabelled, *IMAGENET.subsets.values()):
        assert all(imagenet.WNID.fullmatch(wnid) for wnid in wnids) and set(wnids) <= IMAGENET.unlabelled


def test_known_classes_come_first_and_new_ones_have_no_label(tree: Path) -> None:
    train, test, n_new = problem(*imagenet.load(data(tree)), data(tree), 0)
    assert n_new == 3 and train.class_names == KNOWN and train.new_names == SUBSETS["A"]
    n_labelled = TRAIN * len(KNOWN)
    assert train.y[:n_labelled].tolist() == [k for k in range(8) for _ in range(TRAIN)]
    assert train.unlabelled[n_labelled:].all() and len(train) == TRAIN * 11
    assert train.truth is not None and train.truth[n_labelled:].tolist() == [
        8 + k for k in range(3) for _ in range(TRAIN)
    ]
    assert train.ids[0] == f"train/{KNOWN[0]}/{KNOWN[0]}_0.JPEG" and (tree / train.ids[-1]).is_file()
    assert test is not None and len(test) == VAL * 11 and test.ids[0].startswith("val/")
    assert test.truth is not None and set(test.truth.tolist()) == set(range(11))


def test_labelled_images_have_the_same_places_under_every_subset(tree: Path) -> None:
    one, other = (imagenet.load(data(tree, subset=subset))[0] for subset in SUBSETS)
    n_labelled = TRAIN * len(KNOWN)
    assert one.entries[:n_labelled] == other.entries[:n_labelled]
    assert one.entries[n_labelled:] != other.entries[n_labelled:]
    assert {label for label in other.labels if label not in KNOWN} == set(SUBSETS["B"])


def test_folders_may_have_words_behind_their_numbers(tree: Path) -> None:
    (tree / "train" / KNOWN[0]).rename(tree / "train" / f"{KNOWN[0]}_tench")
    train, _ = imagenet.load(data(tree))
    assert train.known == KNOWN and train.entries[0].id == f"train/{KNOWN[0]}_tench/{KNOWN[0]}_0.JPEG"
    (tree / "train" / KNOWN[0]).mkdir()
    with pytest.raises(InputError, match=f"two folders of the class {KNOWN[0]}"):
        imagenet.load(data(tree))


def test_a_trial_takes_fewer_known_classes(tree: Path) -> None:
    train, test = imagenet.load(data(tree, first_known=3))
    assert train.known == KNOWN[:3] and set(train.labels) == {*KNOWN[:3], *SUBSETS["A"]}
    assert test is not None and set(test.labels) == set(train.labels)
    chosen, _ = imagenet.load(data(tree, known=(KNOWN[5], KNOWN[1])))
    assert chosen.known == (KNOWN[1], KNOWN[5])
    few, _, _ = problem(*imagenet.load(data(tree, per_class=4)), data(tree, per_class=4), 0)
    assert len(few) == 4 * 11
    for strange in (UNLABELLED[0], "n99999999"):
        with pytest.raises(UsageError, match=f"data.known names {strange}"):
            imagenet.load(data(tree, known=(strange,)))


def test_without_validation_images_it_goes_without_test_scores(tree: Path) -> None:
    shutil.rmtree(tree / "val")
    train, test = imagenet.load(data(tree))
    assert test is None and "no folder val" in train.notes[0]
    (tree / "val").mkdir()
    (tree / "val" / "ILSVRC2012_val_00000001.JPEG").write_bytes(b"")
    train, test = imagenet.load(data(tree))
    assert test is None and "Sort the images into one folder per class" in train.notes[0]
    (tree / "val" / KNOWN[0]).mkdir()
    assert imagenet.load(data(tree))[1] is None


def test_what_is_missing_is_named(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"data\.subset names none .* `autonovel reproduce` runs all"):
        imagenet.load(data(tree, subset=""))
    with pytest.raises(InputError, match=r"no folder train.*image-net\.org/download"):
        imagenet.load(data(tmp_path))
    (tree / "train" / KNOWN[2] / f"{KNOWN[2]}_0.JPEG").unlink()
    with pytest.raises(InputError, match=f"has 11 images of {KNOWN[2]}; 12 to 12 of a class are published"):
        imagenet.load(data(tree))
    shutil.rmtree(tree / "train" / KNOWN[2])
    with pytest.raises(InputError, match=r"holds 7 of the 8 labelled classes.*data\.first_known=7"):
        imagenet.load(data(tree))
    shutil.rmtree(tree / "train" / UNLABELLED[0])
    with pytest.raises(InputError, match=f"lacks 1 of the classes to be discovered, such as {UNLABELLED[0]}"):
        imagenet.load(data(tree, first_known=7))


def test_it_is_a_source_of_recipes(tree: Path) -> None:
    settings = recipe.load("imagenet", [f"data.path={tree}", "data.subset=B", "data.size=16"]).recipe
    train, _, n_new = sources.load(settings, 0)
    assert n_new == 3 and train.images.shape == torch.Size((132, 3, 16, 16))
    other = recipe.load("imagenet", ["data.source=folder"]).recipe
    assert other.data.subset == ""


def test_check_counts_files_and_classes(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = (LargeSplit("train", 13 * TRAIN, 13, (TRAIN, TRAIN)), LargeSplit("val", 13 * VAL, 13, (VAL, VAL)))
    small = replace(DATASETS["imagenet"], splits=whole)
    monkeypatch.setitem(DATASETS, "imagenet", small)
    report = inspect.check("imagenet", tree)
    told = "\n".join(inspect.describe(report))
    assert report.complete and "156 images of 13 classes, 12 of each class, as published" in told
    assert "labelled classes 8 of 8, new ones of subset A 3 of 3, B 3 of 3" in told
    assert "Complete: as many images and classes as published." in told and "official archive" not in told
    shutil.rmtree(tree / "train" / UNLABELLED[1])
    report = inspect.check("imagenet", tree)
    told = "\n".join(inspect.describe(report))
    assert not report.complete and "published are 156 of 13" in told and "subset A 2 of 3, B 3 of 3" in told
    assert "Missing or different: train. ImageNet cannot be downloaded" in told


def test_it_has_to_be_asked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ask for access at https://www\.image-net\.org.*train/WNID"):
        fetch.fetch("imagenet", tmp_path, lambda *_: None)
    assert "non-commercial" in DATASETS["imagenet"].terms
