"""Labels given by a person, laid over what a source says of its images."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from autonovel.data import ImageSet
from autonovel.data.folder import everything
from autonovel.data.given_labels import GivenLabels
from autonovel.data.listing import problem
from autonovel.errors import InputError, UsageError
from autonovel.settings import Data

Make = Callable[..., ImageSet]
NAMES = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\0"), min_size=1, max_size=6)


def digits() -> ImageSet:
    """Return two known classes and two new ones, four images of each, in the order a, b, c, d, a, …."""
    truth = torch.arange(16) % 4
    return ImageSet(
        images=torch.arange(16, dtype=torch.uint8).view(16, 1, 1, 1),
        y=torch.where(truth < 2, truth, -1),
        ids=tuple(f"{row:02d}" for row in range(16)),
        class_names=("a", "b"),
        truth=truth,
        new_names=("c", "d"),
    )


def over(
    images: ImageSet,
    test: ImageSet | None = None,
    junk: set[str] | None = None,
    n_new: int = 2,
    **changed: str | None,
):
    """Lay labels over ``images``: as they are, but for ``changed`` ones, by their ids behind an underscore."""
    now = {
        name: images.class_names[y] if y >= 0 else None for name, y in zip(images.ids, images.y.tolist(), strict=True)
    }
    now |= {name.removeprefix("_"): label for name, label in changed.items()}
    return GivenLabels(now, frozenset(junk or ())).over(images, test, n_new)


def test_labels_of_a_person_go_before_those_of_the_source() -> None:
    found, _, _ = over(digits(), junk={"01", "06"}, _02="Zebra", _10="Zebra", _14="Zebra", _03="a", _00=None)
    assert found.class_names == ("Zebra", "a", "b")  # in the order of their names
    assert found.junk == ("01", "06") and len(found) == 14 and "01" not in found.ids
    said = dict(zip(found.ids, found.y.tolist(), strict=True))
    for name, y in said.items():
        source = int(name) % 4
        expected = {"02": 0, "10": 0, "14": 0, "03": 1, "00": -1}.get(name, source + 1 if source < 2 else -1)
        assert y == expected, name
    assert found.images.flatten().tolist() == [int(name) for name in found.ids]  # pixels stay with their names


def test_true_classes_follow_by_majority() -> None:
    """c became Zebra, so its true number is Zebra's, also for the one of its images that a person put elsewhere."""
    found, test, n_new = over(digits(), digits(), _02="Zebra", _10="Zebra", _03="Zebra", _14="a", _06="Zebra")
    assert found.truth is not None and test is not None and test.truth is not None
    assert found.new_names == ("d",) and n_new == 1
    assert found.truth.tolist() == [{0: 1, 1: 2, 2: 0, 3: 3}[int(name) % 4] for name in found.ids]
    assert test.truth.tolist() == found.truth.tolist() and test.class_names == found.class_names
    assert test.y.tolist() == [number if number < 3 else -1 for number in test.truth.tolist()]
    found, _, n_new = over(digits(), n_new=0, _02="Zebra", _10="Zebra")
    assert found.new_names == ("d",) and n_new == 0, "the truth of images whose source says no number is for scores"


def test_a_class_with_the_name_of_a_true_one_is_that_class() -> None:
    found, _, _ = over(digits(), _02="d", _07="d", _10="d")  # most of it is c, but the person says d
    assert found.truth is not None and found.class_names == ("a", "b", "d") and found.new_names == ("c",)
    assert found.truth.tolist() == [{0: 0, 1: 1, 2: 3, 3: 2}[int(name) % 4] for name in found.ids]


def test_where_two_classes_are_truly_one_nothing_is_scored() -> None:
    found, test, n_new = over(digits(), digits(), _02="one", _06="one", _10="two", _14="two")
    assert found.truth is None and found.new_names == () and test is None and n_new == 0
    assert "most images of two and of one are truly of one class, c, so nothing is scored" in found.notes[-1]


def test_without_truth_test_images_are_scored_only_by_names() -> None:
    images, test = replace(digits(), truth=None, new_names=()), digits()
    found, scored, _ = over(images, test, _02="c", _06="c")
    assert found.truth is None and scored is not None and scored.truth is not None
    assert scored.truth.tolist() == test.truth.tolist() and scored.y.tolist() == [0, 1, 2, -1] * 4  # type: ignore[union-attr]
    found, scored, _ = over(images, test, _02="sea", _06="sea")
    assert scored is None and "nobody says which true class sea is" in found.notes[-1]


def test_where_every_image_has_a_label_there_is_nothing_to_score() -> None:
    labels = {name: "e" if int(name) % 4 > 1 else "ab"[int(name) % 4] for name in digits().ids}
    found, _, n_new = GivenLabels(labels).over(digits(), None, 2)
    assert not found.unlabelled.any() and found.truth is None and n_new == 0 and found.notes == ()


def test_images_that_are_not_named_stay_and_named_ones_may_be_gone() -> None:
    found, _, _ = GivenLabels({"02": "e", "99": "e", "98": None}).over(digits(), None, 2)
    assert found.class_names == ("a", "b", "e") and found.y.tolist()[:4] == [0, 1, 2, -1]
    assert "2 images in labels.csv are gone and left out: 99, 98" in found.notes
    assert "15 images are not in labels.csv and are taken as their source has them" in found.notes
    with pytest.raises(InputError, match="none of the 1 images"):
        GivenLabels({"99": "e"}).over(digits(), None, 2)


def test_a_file_that_could_not_be_read_is_tried_once_more(tmp_path: Path) -> None:
    for name in ("a.png", "b.png", "c.png"):
        Image.new("L", (4, 4)).save(tmp_path / name)
    (tmp_path / "b.png").write_bytes(b"torn")
    train, _, _ = problem(everything(tmp_path), None, Data(source="folder", size=4, path=str(tmp_path)), 0)
    given = GivenLabels({"a.png": "x"}, unreadable=frozenset({"b.png", "c.png"}))
    found, _, _ = given.over(train, None, 0)
    assert found.ids == ("a.png", "c.png") and found.y.tolist() == [0, -1] and found.notes == ()
    assert found.unreadable == {"b.png": "not a JPEG, PNG, WebP, BMP, TIFF or GIF image"}
    assert len(found.images) == 2


def test_a_known_class_without_images_is_no_class() -> None:
    found, _, _ = over(digits(), junk={"00"}, _04="b", _08=None, _12="b")
    assert found.class_names == ("b",) and found.truth is not None
    assert found.new_names == ("a", "c", "d")


@given(st.dictionaries(NAMES, st.none() | NAMES, min_size=1), st.sets(NAMES))
def test_a_table_is_read_as_it_was_written(labels: dict[str, str | None], others: set[str]) -> None:
    import tempfile

    labels |= dict.fromkeys(others)
    labels = {name: None if name in others else label for name, label in labels.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "labels.csv"
        path.write_bytes(GivenLabels(labels, frozenset(others)).content())
        found = GivenLabels.read(path)
    assert found.labels == labels and found.junk == others


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("path,label\n1,a\n", "has the columns path, label; it needs id and label"),
        ("", "has the columns none"),
        ("id,label,status\n1,a,odd\n", "line 2 .* has the status 'odd'"),
        ("id,label,status\n1,a,\n1,b,\n", "names 1 twice"),
        ("id,label,status\n1,,\n1,,junk\n", "names 1 twice"),
        ("id,label\n\xff,a\n", "cannot be read"),
    ],
)
def test_a_table_that_cannot_be_followed_is_refused(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "labels.csv").write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=told):
        GivenLabels.read(tmp_path / "labels.csv")


def test_a_table_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="looked for in the run folder"):
        GivenLabels.read(tmp_path / "labels.csv")


def test_alike_lines_and_a_missing_status_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("id,label\n1,a\n1,a\n2,\n")
    found = GivenLabels.read(tmp_path / "labels.csv")
    assert found.labels == {"1": "a", "2": None} and not found.junk
