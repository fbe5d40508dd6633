"""The result of a run, on an embedding small enough to check by eye."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autonovel import discovery
from autonovel.data import ImageSet
from autonovel.discovery import COLUMNS, Discovery, discover
from autonovel.embedding import Embedding
from autonovel.errors import RunFolderError

IDS = ("a.png", "b.png", "c.png", "d.png", "e.png", "f, g.png", 'h "i".png')


def images(y: list[int], class_names: tuple[str, ...] = ("cat", "dog")) -> ImageSet:
    return ImageSet(
        images=torch.zeros(len(y), 1, 2, 2, dtype=torch.uint8),
        y=torch.tensor(y),
        ids=IDS[: len(y)],
        class_names=class_names,
    )


SET = images([0, 1, -1, -1, -1, -1, -1])
P_NEW = torch.tensor(
    [
        [0.5, 0.5],
        [0.5, 0.5],
        [0.9, 0.1],  # c: first new class
        [0.6, 0.4],  # d: first
        [0.2, 0.8],  # e: second
        [0.7, 0.3],  # f: first
        [0.7, 0.3],  # h: first
    ]
)
P_JOINT = torch.tensor(
    [
        [0.70, 0.20, 0.10, 0.00],  # a: given cat
        [0.60, 0.30, 0.05, 0.05],  # b: given dog, though the head says cat
        [0.10, 0.20, 0.60, 0.10],
        [0.45, 0.35, 0.15, 0.05],  # d: looks known
        [0.05, 0.01, 0.04, 0.90],
        [0.00, 0.10, 0.50, 0.40],
        [0.20, 0.10, 0.60, 0.10],
    ]
)
# c, d, f, h lie on a line with mean 3: distances 1, 2, 0, 3 − the farthest is h
Z = torch.tensor([[9.0, 9.0], [8.0, 8.0], [4.0, 0.0], [5.0, 0.0], [7.0, 7.0], [3.0, 0.0], [0.0, 0.0]])
GROWN = Embedding(Z, P_NEW, P_JOINT)
PLAIN = Embedding(
    Z, P_NEW, torch.tensor([[0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.9, 0.1], [0.5, 0.5], [0.1, 0.9], [1, 0]])
)


@pytest.fixture(params=[GROWN, PLAIN], ids=["grown head", "two heads"])
def found(request: pytest.FixtureRequest) -> Discovery:
    return discover(SET, request.param)


# ---------------------------------------------------------------------------------------------------
# the columns one by one


def test_known_classes_come_first_and_labelled_images_keep_theirs(found: Discovery) -> None:
    assert found.class_id.tolist() == [0, 1, 2, 2, 3, 2, 2]
    assert found.names == ("cat", "dog", "new-1", "new-2")
    assert found.given.tolist() == [0, 1, -1, -1, -1, -1, -1]
    assert found.ids == IDS and found.n_known == 2


def test_confidence_second_and_margin_with_a_grown_head() -> None:
    found = discover(SET, GROWN)
    # labelled images by the joint head, unlabelled ones by the head of the new classes
    assert found.confidence.tolist() == pytest.approx([0.7, 0.3, 0.9, 0.6, 0.8, 0.7, 0.7])
    assert found.second.tolist() == [1, 0, 3, 3, 2, 3, 3]
    assert found.margin.tolist() == pytest.approx([0.5, -0.3, 0.8, 0.2, 0.6, 0.4, 0.4])


def test_confidence_second_and_margin_with_two_heads() -> None:
    found = discover(SET, PLAIN)
    assert found.confidence.tolist() == pytest.approx([0.8, 0.4, 0.9, 0.6, 0.8, 0.7, 0.7])
    assert found.second.tolist() == [1, 0, 3, 3, 2, 3, 3]
    assert found.margin.tolist() == pytest.approx([0.6, -0.2, 0.8, 0.2, 0.6, 0.4, 0.4])


def test_nearest_known_is_the_most_probable_known_class() -> None:
    assert discover(SET, GROWN).nearest_known.tolist() == [0, 0, 1, 0, 0, 1, 0]
    assert discover(SET, PLAIN).nearest_known.tolist() == [0, 0, 1, 0, 0, 1, 0]


def test_looks_known_is_the_mass_of_the_joint_head_on_known_classes() -> None:
    looks_known = discover(SET, GROWN).looks_known
    assert looks_known is not None
    assert looks_known.tolist() == pytest.approx([0.9, 0.9, 0.3, 0.8, 0.06, 0.1, 0.3])
    assert discover(SET, PLAIN).looks_known is None


def test_outlier_is_the_rank_of_the_distance_in_its_class(found: Discovery) -> None:
    # a, b and e are alone in their classes
    assert found.outlier.tolist() == pytest.approx([0, 0, 1 / 3, 2 / 3, 0, 0, 1])


def test_certain_probabilities_leave_the_second_class_among_the_new_ones() -> None:
    sure = Embedding(torch.zeros(3, 1), torch.tensor([[0.5, 0.5, 0.0]] * 2 + [[0.6, 0.0, 0.4]]), torch.ones(3, 2) / 2)
    assert discover(images([0, 1, -1]), sure).second[2] == 4


def test_a_probability_of_one_leaves_the_second_class_among_the_new_ones() -> None:
    sure = Embedding(torch.zeros(3, 1), torch.tensor([[0.5, 0.5]] * 2 + [[1.0, 0.0]]), torch.ones(3, 2) / 2)
    assert discover(images([0, 1, -1]), sure).second[2] == 3


def test_class_probabilities_are_those_behind_the_assignments() -> None:
    p = discovery.class_probabilities(SET, GROWN)
    assert p.shape == (7, 4)
    assert torch.allclose(p.sum(dim=1), torch.ones(7))
    assert torch.equal(p[:2], P_JOINT[:2])
    assert torch.equal(p[2:, 2:], P_NEW[2:]) and not p[2:, :2].any()
    plain = discovery.class_probabilities(SET, PLAIN)
    assert torch.equal(plain[:2, :2], PLAIN.p_known[:2]) and not plain[:2, 2:].any()


# ---------------------------------------------------------------------------------------------------
# order by size


@pytest.mark.parametrize(
    ("winners", "wanted"),
    [
        ([0, 0, 1, 1, 1, 2], [1, 0, 2]),
        ([2, 2, 2, 2, 0, 1], [2, 0, 1]),  # ties keep their order
        ([1, 1, 1, 1, 1, 1], [1, 0, 2]),  # empty classes come last
        ([0, 1, 2, 0, 1, 2], [0, 1, 2]),
    ],
)
def test_new_classes_are_ordered_by_their_unlabelled_images(winners: list[int], wanted: list[int]) -> None:
    p_new = torch.eye(3)[[2, *winners]]  # the labelled image, of the last class, does not count
    assert discovery.by_size(images([0, *[-1] * 6]), p_new).tolist() == wanted


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_ordered_classes_never_grow(winners: list[int]) -> None:
    data = images([-1] * len(winners))
    p_new = torch.eye(4)[winners]
    order = discovery.by_size(data, p_new)
    assert sorted(order.tolist()) == [0, 1, 2, 3]
    sizes = torch.bincount(p_new[:, order].argmax(dim=1), minlength=4).tolist()
    assert sizes == sorted(sizes, reverse=True)


# ---------------------------------------------------------------------------------------------------
# rows, classes and files


def test_one_row_per_image_under_the_promised_columns(found: Discovery) -> None:
    assert COLUMNS == (
        "id", "path", "status", "given_label", "class_id", "class_name", "confidence",
        "second_class", "margin", "nearest_known", "looks_known", "outlier",
    )  # fmt: skip
    rows = found.rows()
    assert [row["id"] for row in rows] == list(IDS)
    assert all(tuple(row) == COLUMNS for row in rows)


def test_rows_by_hand() -> None:
    rows = discover(SET, GROWN).rows()
    assert rows[1] == {
        "id": "b.png", "path": "", "status": "ok", "given_label": "dog", "class_id": 1, "class_name": "dog",
        "confidence": "0.3000", "second_class": "cat", "margin": "-0.3000", "nearest_known": "cat",
        "looks_known": "0.9000", "outlier": "0.0000",
    }  # fmt: skip
    assert rows[3] == {
        "id": "d.png", "path": "", "status": "ok", "given_label": "", "class_id": 2, "class_name": "new-1",
        "confidence": "0.6000", "second_class": "new-2", "margin": "0.2000", "nearest_known": "cat",
        "looks_known": "0.8000", "outlier": "0.6667",
    }  # fmt: skip
    assert {row["looks_known"] for row in discover(SET, PLAIN).rows()} == {""}


def test_classes_by_hand() -> None:
    assert discover(SET, GROWN).classes() == [
        {"id": 0, "name": "cat", "kind": "known", "size": 1, "confidence": 0.7},
        {"id": 1, "name": "dog", "kind": "known", "size": 1, "confidence": 0.3},
        {"id": 2, "name": "new-1", "kind": "new", "size": 4, "confidence": 0.725},
        {"id": 3, "name": "new-2", "kind": "new", "size": 1, "confidence": 0.8},
    ]


@given(st.integers(2, 7), st.integers(1, 3), st.integers(2, 5), st.integers(0, 10**6))
def test_totals_add_up(n: int, n_known: int, n_new: int, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    y = torch.randint(-1, n_known, (n,), generator=rng)
    data = images(y.tolist(), tuple(f"known {number}" for number in range(n_known)))
    embedding = Embedding(
        torch.randn(n, 3, generator=rng),
        torch.randn(n, n_new, generator=rng).softmax(dim=1),
        torch.randn(n, n_known, generator=rng).softmax(dim=1),
    )
    found = discover(data, embedding)
    entries = found.classes()
    assert [entry["id"] for entry in entries] == list(range(n_known + n_new))
    assert sum(entry["size"] for entry in entries) == n
    assert [entry["kind"] for entry in entries] == ["known"] * n_known + ["new"] * n_new
    assert all((entry["confidence"] is None) == (entry["size"] == 0) for entry in entries)
    assert torch.equal(found.class_id[y >= 0], y[y >= 0])
    assert (found.class_id[y < 0] >= n_known).all()
    assert (found.second != found.class_id).all()
    assert (found.margin[y < 0] >= 0).all()
    assert ((found.outlier >= 0) & (found.outlier <= 1)).all()


def test_the_table_comes_back_from_its_file(tmp_path: Path, found: Discovery) -> None:
    found.save(tmp_path)
    text = (tmp_path / "discovery.csv").read_bytes()
    assert b"\r" not in text and text.count(b"\n") == 8
    with (tmp_path / "discovery.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert rows == [{key: str(value) for key, value in row.items()} for row in found.rows()]


def test_the_classes_come_back_from_their_file(tmp_path: Path, found: Discovery) -> None:
    found.save(tmp_path)
    assert json.loads((tmp_path / "classes.json").read_text(encoding="utf-8")) == {"classes": found.classes()}


@pytest.mark.parametrize("name", ["a,b", 'say "x"', "two\nlines", "größe", " spaced "])
def test_any_class_name_survives(tmp_path: Path, name: str) -> None:
    discover(images([0, 1, -1, -1, -1, -1, -1], (name, "dog")), GROWN).save(tmp_path)
    with (tmp_path / "discovery.csv").open(encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file))
    assert row["given_label"] == row["class_name"] == name


def test_an_empty_class_has_no_confidence(tmp_path: Path) -> None:
    lonely = Embedding(Z, torch.eye(3)[[0] * 7], PLAIN.p_known)
    found = discover(SET, lonely)
    assert found.classes()[-1] == {"id": 4, "name": "new-3", "kind": "new", "size": 0, "confidence": None}
    found.save(tmp_path)  # None is JSON, NaN would not be
    assert json.loads((tmp_path / "classes.json").read_text())["classes"][-1]["confidence"] is None


def test_files_that_cannot_be_read_keep_a_row(tmp_path: Path) -> None:
    found = discover(replace(SET, unreadable={"x, y.jpg": "truncated"}, ids_are_paths=True), PLAIN)
    found.save(tmp_path)
    with (tmp_path / "discovery.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [*SET.ids, "x, y.jpg"] == [row["path"] for row in rows]
    assert rows[-1]["status"] == "unreadable: truncated" and rows[-1]["class_name"] == ""
    assert {row["status"] for row in rows[:-1]} == {"ok"}
    again, _ = discovery.read(tmp_path)
    assert again.ids == SET.ids and torch.equal(again.y, SET.y)


# ---------------------------------------------------------------------------------------------------
# the embedding


def test_an_embedding_comes_back_from_its_file(tmp_path: Path) -> None:
    GROWN.save(tmp_path / "embedding.safetensors")
    again = Embedding.load(tmp_path / "embedding.safetensors")
    assert torch.equal(again.z, Z) and torch.equal(again.p_new, P_NEW) and torch.equal(again.p_known, P_JOINT)


@pytest.mark.parametrize("kept", [0, 10, 300])
def test_a_damaged_embedding_is_explained(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "embedding.safetensors"
    GROWN.save(path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(RunFolderError) as error:
        Embedding.load(path)
    assert str(path) in str(error.value) and "--resume" in str(error.value)
    with pytest.raises(RunFolderError):
        Embedding.load(tmp_path / "none.safetensors")
