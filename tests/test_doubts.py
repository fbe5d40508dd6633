"""What a person is told of pictures in which there is next to nothing to see."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from autonovel import doubts, recipe
from autonovel.data import sources
from autonovel.data.prepare import prepare_both
from autonovel.errors import UsageError
from autonovel.job import Job
from autonovel.predicting.judging import pixels_of
from test_choosing import Heard


def told(folder: Path, root: Path, white: int = 0, loader: str = "resident") -> list[str]:
    """Return what is said of the pictures in ``root``."""
    settings = recipe.load("folder", {"data.path": str(root), "data.size": 8, "data.loader": loader}).recipe
    settings = replace(settings, data=replace(settings.data, white=white, workers=1))
    train, test, n_new = sources.load(settings, 0, folder)
    quiet, heard = Heard(), Heard()
    train, test = prepare_both(train, test, settings.data, folder, torch.device("cpu"), quiet)
    doubts.tell_of_dark_pictures(Job(settings, train, test, n_new, 0, torch.device("cpu"), folder, heard))
    return heard.said


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    """Return a folder of pictures as cameras of 12 bits write them."""
    values = np.random.default_rng(0).integers(100, 4000, (3, 8, 8)).astype(np.uint16)
    values[0, 0, 0] = 4000
    for name, deep in zip(("disc/0.tif", "rod/0.tif", "unlabelled/0.tif"), values, strict=True):
        (tmp_path / "cells" / name).parent.mkdir(parents=True)
        Image.fromarray(deep).save(tmp_path / "cells" / name)
    return tmp_path / "cells"


@pytest.mark.parametrize("loader", ["resident", "streaming"])
def test_pictures_of_twelve_bits_are_dark_until_somebody_says_what_is_white(
    tmp_path: Path, cells: Path, loader: str
) -> None:
    (said,) = told(tmp_path / "run", cells, loader=loader)
    assert "no picture is brighter than 15 of 255" in said and "--set data.white=4095 of 12 bits" in said
    assert told(tmp_path / "run", cells, white=4095, loader=loader) == []


def test_bright_pictures_are_in_order(tmp_path: Path, cells: Path) -> None:
    Image.new("L", (8, 8), 64).save(cells / "rod" / "1.png")
    assert told(tmp_path / "run", cells) == []


def test_later_pictures_are_as_white_as_those_of_the_run(cells: Path) -> None:
    data = recipe.load("folder", {"data.path": str(cells), "data.size": 8, "data.white": 4095}).recipe.data
    later = pixels_of(data, (3, 1, 8, 8), torch.device("cpu")).decode([str(cells / "disc" / "0.tif")]).pixels[0]
    assert int(later.max()) == round(4000 * 255 / 4095)


@pytest.mark.parametrize("loader", ["resident", "streaming"])
def test_what_is_white_holds_for_all_pictures_of_a_run(tmp_path: Path, cells: Path, loader: str) -> None:
    for name in ("disc", "rod"):
        shutil.copytree(cells / name, cells / "test" / name)
    found = {}
    for white in (0, 4095):
        said = {"data.path": str(cells), "data.size": 8, "data.loader": loader, "data.white": white, "data.workers": 1}
        data = recipe.load("folder", said).recipe
        train, test, _ = sources.load(data, 0, tmp_path)
        sets = prepare_both(train, test, data.data, tmp_path, torch.device("cpu"), Heard())
        found[white] = [int(one.images[[0]].max()) for one in sets if one is not None]
    assert found == {0: [15, 15], 4095: [249, 249]}, "the brightest, 4000, in training and test"


def test_what_is_white_can_only_be_said_of_files() -> None:
    with pytest.raises(UsageError, match=r"data\.white is 4095, but source is sample"):
        recipe.load("demo", {"data.white": 4095})
