"""A folder of image files: what is known, what is to be discovered, and what is refused with which words."""

import os
from pathlib import Path

import pytest
import torch
from PIL import Image

from autonovel import recipe
from autonovel.data import ImageSet, sample, sources
from autonovel.data.splits import first_of_each_class, known_and_new
from autonovel.errors import InputError, UsageError
from image_files import write_digits


def write(root: Path, *names: str, mode: str = "RGB") -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new(mode, (4, 4)).save(root / name)
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(
        tmp_path / "photos", "dog/1.png", "dog/more/2.JPG", "cat/1.png", "cat/0.webp", "loose.bmp",
        "unlabelled/a/x.gif", "unlabelled/y.tiff", ".hidden/3.png", "cat/.4.png",
    )  # fmt: skip


def load(root: Path, **more: object) -> tuple[ImageSet, ImageSet | None, int]:
    values = {"source": "folder", "path": str(root), "size": 8} | more
    return sources.load(recipe.load("demo", {f"data.{key}": value for key, value in values.items()}).recipe, 0)


def test_folders_are_classes_and_the_rest_is_to_be_discovered(root: Path) -> None:
    (root / "notes.txt").write_text("not an image")
    train, test, n_new = load(root)
    assert train.ids == (
        "cat/0.webp", "cat/1.png", "dog/1.png", "dog/more/2.JPG", "loose.bmp",
        "unlabelled/a/x.gif", "unlabelled/y.tiff",
    )  # fmt: skip
    assert train.class_names == ("cat", "dog") and train.y.tolist() == [0, 0, 1, 1, -1, -1, -1]
    assert train.truth is None and test is None and n_new == 0 and train.ids_are_paths
    assert train.images.shape == (7, 3, 8, 8)


def test_a_recipes_own_classes_are_left_behind_with_its_source(root: Path) -> None:
    made = recipe.load("demo", {"data.source": "folder"})
    assert made.recipe.data.known == () and recipe.load("demo", {}).recipe.data.known == tuple("01234")
    assert recipe.load("demo", {"data.source": "sample"}).recipe.data.known == tuple("01234")
    assert recipe.load("demo", {"data.source": "folder", "data.known": ["cat"]}).recipe.data.known == ("cat",)


def test_truth_numbers_known_classes_first(root: Path) -> None:
    (root / "truth.csv").write_text("path,label\nloose.bmp,zebra\nunlabelled/a/x.gif,ant\nunlabelled/y.tiff,cat\n")
    train, _, n_new = load(root)
    assert train.new_names == ("ant", "zebra") and n_new == 0, "what is for scoring alone says no number"
    assert train.truth is not None and train.truth.tolist() == [0, 0, 1, 1, 3, 2, 0]
    assert train.y.tolist() == [0, 0, 1, 1, -1, -1, -1]
    (root / "truth.csv").rename(root / "labels.csv")
    for place in ("labels.csv", str(root / "labels.csv")):
        train, _, n_new = load(root, truth=place)
        assert train.new_names == ("ant", "zebra") and n_new == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("file,class\nloose.bmp,ant\n", ["['file', 'class']", "path and label"]),
        ("path,label\nloose.bmp,ant\n", ["no label for 2", "unlabelled/a/x.gif", "remove it"]),
        ("path,label\nx.gif,ant\n", ["not among the images", "x.gif", "cat/0.webp"]),
        (
            "path,label\nloose.bmp,a\nunlabelled/a/x.gif,a\nunlabelled/y.tiff,b\ncat/0.webp,dog\n",
            ["calls cat/0.webp dog", "folder of cat"],
        ),
    ],
)
def test_a_wrong_truth_is_an_error(root: Path, text: str, words: list[str]) -> None:
    (root / "truth.csv").write_text(text)
    with pytest.raises(InputError) as error:
        load(root)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_truth_is_not_asked_of_files_that_cannot_be_read(root: Path) -> None:
    (root / "unlabelled" / "broken.png").write_bytes(b"no picture")
    (root / "truth.csv").write_text("path,label\nloose.bmp,zebra\nunlabelled/a/x.gif,ant\nunlabelled/y.tiff,cat\n")
    train, _, n_new = load(root)
    assert train.ids[-2] == "unlabelled/broken.png" and train.new_names == ("ant", "zebra") and n_new == 0


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"size": 0}, ["data.size=64"]),
        ({"first_new": 2}, ["data.first_new", "no class folder"]),
        ({"truth": "nowhere.csv"}, ["nowhere.csv", "not a file"]),
        ({"known": ["cow"]}, ["cow", "cat, dog"]),
        ({"per_class": 3}, ["data.per_class", "truth.csv"]),
        ({"test_fraction": 0.5}, ["data.test_fraction", "truth.csv"]),
        ({"path": "/nowhere"}, ["/nowhere is not a folder"]),
        ({"path": ""}, ["--data"]),
    ],
)
def test_what_is_missing_is_said(root: Path, values: dict[str, object], words: list[str]) -> None:
    with pytest.raises(UsageError) as error:
        load(root, **values)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no images"):
        load(tmp_path)


def test_folders_that_are_not_named_known_are_discovered_and_scored(tmp_path: Path) -> None:
    root = write(tmp_path, *(f"{name}/{n}.png" for name in ("ant", "bee", "cat", "dog") for n in range(4)))
    for chosen in ({"known": ["dog", "bee"]}, {"first_known": 2}):
        train, _, n_new = load(root, **chosen)
        known = ("bee", "dog") if "known" in chosen else ("ant", "bee")
        assert (
            train.class_names == known
            and n_new == 2
            and train.new_names == tuple(sorted({"ant", "bee", "cat", "dog"} - set(known)))
        )
        assert int(train.unlabelled.sum()) == 8 and train.truth is not None
        names = known + train.new_names
        assert [names[t] for t in train.truth.tolist()] == [name.split("/")[0] for name in train.ids]
    train, test, _ = load(root, first_known=2, per_class=3, test_fraction=0.34)
    assert test is not None and len(train) == 8 and len(test) == 4
    assert not set(train.ids) & set(test.ids) and test.truth is not None
    assert sorted(test.truth.tolist()) == [0, 1, 2, 3] and test.images.shape == (4, 3, 8, 8)


def test_test_images_have_classes_of_their_own_folder(root: Path) -> None:
    write(root, "test/dog/9.png", "test/cat/8.png")
    train, test, _ = load(root)
    assert test is not None and test.ids == ("test/cat/8.png", "test/dog/9.png") and len(train) == 7
    assert test.truth is not None and test.truth.tolist() == [0, 1] and test.class_names == ("cat", "dog")
    with pytest.raises(UsageError, match="test images of its own"):
        load(root, test_fraction=0.2)
    (root / "truth.csv").write_text("path,label\nloose.bmp,ant\nunlabelled/a/x.gif,ant\nunlabelled/y.tiff,bee\n")
    write(root, "test/ant/7.png")
    test = load(root)[1]
    assert test is not None and test.truth is not None and test.truth.tolist() == [2, 0, 1]
    write(root, "test/yak/7.png")
    with pytest.raises(InputError, match="no training image has: yak"):
        load(root)
    write(root, "test/loose.png")
    with pytest.raises(InputError, match="outside of class folders"):
        load(root)


def test_grey_folders_are_grey_until_one_image_has_colour(tmp_path: Path) -> None:
    root = write(tmp_path, "a/1.png", "b/1.png", "2.png", mode="L")
    (root / "0.png").write_bytes(b"broken")
    assert load(root)[0].images.shape[1] == 1
    write(root, "3.png")
    assert load(root)[0].images.shape[1] == 3


def test_a_run_inside_the_folder_is_none_of_its_classes(root: Path) -> None:
    before = load(root)[0]
    write(root, "runs/photos-seed0/count.png", "runs/photos-seed0/report/1.webp")
    (root / "runs" / "photos-seed0" / "run.json").write_text("{}")
    after = load(root)[0]
    assert after.ids == before.ids and after.class_names == before.class_names


def test_folders_in_class_folders_and_folders_without_images_are_told_of(root: Path) -> None:
    write(root, "Aves/crow/1.png", "Aves/owl/a/1.png", "unlabelled/b/1.png", "runs/one/1.png")
    (root / "runs" / "one" / "run.json").write_text("{}")
    (root / "empty" / "inside").mkdir(parents=True)
    train, _, _ = load(root)
    assert train.class_names == ("Aves", "cat", "dog") and train.notes == (
        "Aves holds the sub-folders crow, owl; all of it counts as one class",
        "dog holds the sub-folder more; all of it counts as one class",
        "the folder empty holds no images and is no class",
    )


def test_a_class_that_is_called_unknown_is_told_of(root: Path) -> None:
    write(root, "Unknown/1.png", "Unknown/2.png")
    train, _, _ = load(root)
    assert train.class_names == ("Unknown", "cat", "dog")
    assert "'Unknown' is taken for a known class, of 2 images" in train.notes[-1] and "unlabelled/" in train.notes[-1]


def test_the_pile_may_be_spelled_with_capitals(root: Path) -> None:
    (root / "unlabelled").rename(root / "Unlabelled")
    assert load(root)[0].class_names == ("cat", "dog")


def test_links_in_a_circle_end(root: Path) -> None:
    (root / "cat" / "again").symlink_to(root)
    (root / "dog" / "gone.png").symlink_to(root / "nowhere.png")
    train, _, _ = load(root)
    assert sum(name.endswith("loose.bmp") for name in train.ids) == 1
    assert "dog/gone.png" in train.ids, "the survey will tell why it cannot be read"


@pytest.mark.skipif(os.name == "nt", reason="names are always text there")
def test_names_that_are_no_text_are_on_record(root: Path) -> None:
    (root / "cat" / "1.png").rename(os.fsdecode(os.fsencode(root) + b"/cat/\xff.png"))
    train, _, _ = load(root)
    assert train.unreadable == {"cat/\\xff.png": "its name is not valid UTF-8"} and len(train) == 6


def test_digits_written_out_are_the_digits_of_the_sample(tmp_path: Path) -> None:
    train, _, n_new = load(write_digits(tmp_path, 7), size=28)
    wanted = known_and_new(first_of_each_class(sample.load(), 7), tuple("01234"), tuple("56789"))
    assert isinstance(wanted.images, torch.Tensor) and torch.equal(
        torch.cat(list(train.images.split(16))), wanted.images
    )
    assert torch.equal(train.y, wanted.y) and train.truth is not None and wanted.truth is not None
    assert torch.equal(train.truth, wanted.truth) and n_new == 0
    assert train.class_names == wanted.class_names and train.new_names == wanted.new_names
