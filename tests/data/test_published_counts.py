"""Benchmarks have as many images as their authors say, or they are refused."""

import json

import pytest
import torch

from autonovel import recipe
from autonovel.data import ImageSet, sources
from autonovel.data.catalogue import DATASETS
from autonovel.data.splits import LabelledImages
from autonovel.errors import InputError, UsageError
from autonovel.settings import Data

NAMES = {
    "cifar10": ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    "cifar100": tuple(map(str, range(100))),
    "svhn": tuple(map(str, range(10))),
}


def published(source: str, split: str, lacking: int = 0) -> LabelledImages:
    """Return images of one pixel, as many as the authors say, but for some of the first class."""
    sizes = torch.tensor(next(one.per_class for one in DATASETS[source].splits if one.name == split))
    labels = torch.arange(len(sizes)).repeat_interleave(sizes)[lacking:]
    return LabelledImages(torch.zeros(len(labels), 1, 1, 1, dtype=torch.uint8), labels, NAMES[source])


def loaded(
    monkeypatch: pytest.MonkeyPatch, name: str, lacking: dict[str, int], *sets: str
) -> tuple[ImageSet, ImageSet]:
    def read(data: Data) -> sources.Splits:
        parts = [published(data.source, split, lacking.get(split, 0)) for split in ("train", "test")]
        return parts[0], parts[1]

    monkeypatch.setitem(sources.SOURCES, name, read)
    train, test, _ = sources.load(recipe.load(name, ["data.path=somewhere", *sets]).recipe, 0)
    assert test is not None
    return train, test


@pytest.mark.parametrize(
    ("name", "labelled", "unlabelled"),
    [("cifar10", 25_000, 25_000), ("cifar100", 40_000, 10_000), ("svhn", 45_349, 27_908)],
)
def test_splits_have_the_paper_s_counts(
    name: str, labelled: int, unlabelled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, _ = loaded(monkeypatch, name, {})
    assert (int((~train.unlabelled).sum()), int(train.unlabelled.sum())) == (labelled, unlabelled)


def test_a_quick_trial_has_few_test_images_too(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = loaded(monkeypatch, "svhn", {}, "data.per_class=3")
    assert len(train) == len(test) == 30


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_benchmark_of_which_a_part_is_missing_is_refused(
    name: str, split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError) as caught:
        loaded(monkeypatch, name, {split: 7}, "data.per_class=3")
    wanted = next(one.per_class for one in DATASETS[name].splits if one.name == split)[0]
    said = str(caught.value)
    assert f"somewhere does not hold the published {split} images of {DATASETS[name].title}" in said
    assert f"of class {NAMES[name][0]} there are {wanted - 7:,}, published are {wanted:,}" in said
    assert f"autonovel data check {name} somewhere" in said and "data.per_class" in said


def test_a_benchmark_without_known_classes_says_how_to_name_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError) as caught:
        loaded(monkeypatch, "svhn", {}, "data.known=[]")
    said = str(caught.value)
    assert "no class of svhn is known" in said and "The classes are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9." in said
    for advice, known in (('data.known=["0", "1"]', "01"), ("data.first_known=N", "01234")):
        assert f"--set {advice}" in said.replace("'", "")
        followed = advice.replace("=N", "=5")
        assert loaded(monkeypatch, "svhn", {}, "data.known=[]", followed)[0].class_names == tuple(known)


def test_naming_every_class_new_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    every = f"data.new={json.dumps(NAMES['svhn'])}"
    with pytest.raises(UsageError, match=r"data\.new names every class"):
        loaded(monkeypatch, "svhn", {}, "data.known=[]", every)


def test_of_many_classes_an_error_names_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"The classes are 0, 1, .*, 9 and 90 more\.$"):
        loaded(monkeypatch, "cifar100", {}, "data.first_known=0")
