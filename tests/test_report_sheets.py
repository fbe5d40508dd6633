"""Thumbnails on sheets, the order of images, and the files beside a page."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from autonovel.editing.sorting import JUNK
from autonovel.errors import RunFolderError, UsageError
from autonovel.report import beside, sheets
from autonovel.report.facts import without_place
from autonovel.report.places import BY_HAND, LABELLED, page_data, places
from autonovel.report.sheets import Cell, OfImages
from autonovel.report.subject import Subject, as_found
from test_report import found_in, image_set


def decoded(sheet: sheets.Sheet) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(sheet.content)).convert("RGB"), dtype=int)


def test_small_grey_pictures_stand_pixel_by_pixel_in_their_cells() -> None:
    images = image_set(11).images
    source = OfImages(images)
    (made,) = sheets.make_sheets(source, [np.arange(11)[::-1].copy()], 64, [4], lambda _: None)
    assert (made.cell, made.columns, made.rows) == (Cell(10, 10, True), 4, 3)
    shown = decoded(made)
    assert shown.shape == (30, 40, 3)
    for position, row in enumerate(reversed(range(11))):
        top, left = 10 * (position // 4), 10 * (position % 4)
        assert (shown[top : top + 10, left : left + 10, 0] == images[row, 0].numpy()).all()


@pytest.mark.parametrize("channels", [2, 3, 4])
def test_pictures_of_any_channels_are_close_to_themselves(channels: int) -> None:
    colours = torch.tensor([[200, 40, 90, 255], [10, 220, 120, 255]], dtype=torch.uint8)[:, :channels]
    images = colours[:, :, None, None].expand(2, channels, 24, 24).contiguous()
    (made,) = sheets.make_sheets(OfImages(images), [np.array([1, 0])], 64, [16], lambda _: None)
    shown = decoded(made)
    for position, row in enumerate((1, 0)):
        wanted = colours[row, :3].int().tolist() if channels > 2 else [int(colours[row, 0])] * 3
        assert np.abs(shown[12, 24 * position + 12] - wanted).max() <= 12


def test_large_and_oblong_images_keep_their_shape() -> None:
    source = OfImages(torch.zeros(3, 3, 100, 200, dtype=torch.uint8))
    assert source.cell(64) == Cell(64, 32, False)
    (made,) = sheets.make_sheets(source, [np.arange(3)], 64, [8], lambda _: None)
    assert Image.open(io.BytesIO(made.content)).size == (192, 32)


def test_a_picture_that_is_gone_leaves_its_cell_empty() -> None:
    made = sheets.sheet([Image.new("RGB", (40, 20), "red"), None], Cell(64, 64, False), 8)
    shown = np.asarray(Image.open(io.BytesIO(made.content)).convert("RGBA"))
    assert shown.shape == (64, 128, 4)
    assert shown[32, 32, 3] == 255 and shown[32, 32, 0] > 200  # in the middle of its cell, at its size
    assert shown[5, 32, 3] == 0 and not shown[:, 64:, 3].any()


def test_progress_counts_every_image() -> None:
    told: list[int] = []
    batches = [np.arange(5), np.arange(7), np.arange(48)]
    made = list(sheets.make_sheets(OfImages(image_set().images), batches, 64, [8, 8, 16], told.append))
    assert told == [5, 12, 60] and [sheet.rows for sheet in made] == [1, 1, 3]


def edited(subject: Subject) -> Subject:
    """Return the subject with an image of a new class marked as junk and a labelled one put into a new class."""
    class_of = subject.class_of.copy()
    class_of[2], class_of[0] = JUNK, 3
    by_hand = np.zeros(len(subject), dtype=bool)
    by_hand[[0, 2]] = True
    return replace(subject, class_of=class_of, by_hand=by_hand)


def test_places_go_class_by_class_the_surest_first() -> None:
    images = image_set()
    subject = edited(as_found(images, found_in(images)))
    order = places(subject)
    assert sorted(order.rows) == list(range(48)) and list(order.spans) == [2, 3, 0, 1, JUNK]
    for number, (start, end) in order.spans.items():
        rows = order.rows[start:end]
        assert (subject.class_of[rows] == number).all() and (np.diff(subject.confidence[rows]) <= 0).all()
    assert (order.rows[order.of_row] == np.arange(48)).all()
    data = page_data(subject, order, dict.fromkeys((0, 1, 2, 3, JUNK), "red"))
    assert [one["kind"] for one in data["classes"]] == ["new", "new", "known", "known", "junk"]
    assert sum(one["end"] - one["start"] for one in data["classes"]) == 48
    assert data["flags"][order.of_row[0]] == LABELLED + BY_HAND and data["flags"][order.of_row[2]] == BY_HAND


@given(st.integers(1, 3000))
def test_sheets_hold_every_place_once(n: int) -> None:
    from autonovel.report.places import Places

    parts = Places(np.arange(n)[::-1], {}).sheets
    assert np.concatenate(parts).tolist() == list(range(n))[::-1]
    assert all(len(part) == sheets.PER_SHEET for part in parts[:-1]) and 0 < len(parts[-1]) <= sheets.PER_SHEET


def test_files_beside_a_page_are_replaced_as_a_whole(tmp_path: Path) -> None:
    page = tmp_path / "my report.html"
    first = beside.FilesBeside(page)
    first.add("a.webp", b"one")
    address = first.finish()
    first.close()
    assert address.startswith("my%20report/") and (tmp_path / "my report" / address[-12:] / "a.webp").exists()
    second = beside.FilesBeside(page)
    second.add("a.webp", b"two")
    other = second.finish()
    assert (tmp_path / "my report" / address[-12:]).exists(), "the old page still has its files"
    beside.remove_others(page, other)
    second.close()
    assert (
        [path.name for path in (tmp_path / "my report").iterdir() if path.is_dir()] == [other[-12:]] != [address[-12:]]
    )
    beside.remove_others(page, None)
    assert not (tmp_path / "my report").exists()


def test_a_broken_off_report_leaves_the_old_one(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    files = beside.FilesBeside(page)
    files.add("a.webp", b"one")
    files.close()
    assert not (tmp_path / "report" / beside.MAKING).exists()


def test_two_reports_are_not_written_into_each_other(tmp_path: Path) -> None:
    files = beside.FilesBeside(tmp_path / "report.html")
    with pytest.raises(RunFolderError, match="in use"):
        beside.FilesBeside(tmp_path / "report.html")
    files.close()


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "holiday").mkdir()
    (tmp_path / "holiday" / "photo.jpg").write_bytes(b"mine")
    with pytest.raises(UsageError, match="something other than files of a report"):
        beside.FilesBeside(tmp_path / "holiday.html")
    beside.remove_others(tmp_path / "holiday.html", None)
    assert (tmp_path / "holiday" / "photo.jpg").exists()
    (tmp_path / "empty").mkdir()
    beside.remove_others(tmp_path / "empty.html", None)
    assert (tmp_path / "empty").exists()


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("run", "run"),
        ("photos/mine", "photos/mine"),
        ("/home/me/photos", "…"),
        ("--out=/home/me/my photos", "--out=…"),
        ('data.path="/home/me"', 'data.path="…'),
        ('x=["/home/me"]', 'x=["…'),
        ("~/photos", "…"),
        ("../me/photos", "…"),
        ('data.truth="../../me/t.csv"', 'data.truth="…'),
        ("./../me/photos", "…"),
        ("pics/../../me", "…"),
        ("--data=./../me", "--data=…"),
        (r"..\me", "…"),
        ("..", "…"),
        ("..hidden/a..b/c..", "..hidden/a..b/c.."),
        (r"C:\Users\me", "…"),
        (r"\\server\share", "…"),
        ("data.path=https://me:secret@host/x", "data.path=…"),
        ("joint.epochs=3", "joint.epochs=3"),
    ],
)
def test_commands_show_no_place_of_the_machine(word: str, shown: str) -> None:
    assert without_place(word) == shown
