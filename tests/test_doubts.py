"""What a person is told of pictures in which there is next to nothing to see."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from autonovel import doubts, recipe
from autonovel.data import sources
from autonovel.data.prepare import prepare_both
from autonovel.job import Job
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
