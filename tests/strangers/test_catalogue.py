"""More than a hundred kinds of bad input: each ends in a row, or in a sentence and an exit code of its own."""

import csv
import io
import os
import sys
from pathlib import Path

import pytest
from bad_commands import INPUTS
from bad_images import IMAGES, BadImage
from bad_input import BadInput, copied
from catalogue import count, table
from typer.testing import CliRunner

from autonovel import recipe
from autonovel.cli import app
from autonovel.data import sources
from autonovel.data.inventory import inventory_of
from autonovel.data.prepare import prepare
from autonovel.device import pick
from autonovel.spreadsheet import plain_rows
from autonovel.training.display import Silent
from finished import move_images
from runs import TINY

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and such names are not there")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a file of every kind, in a known class and in the pile."""
    root = tmp_path_factory.mktemp("strangers") / "photos"
    for place in (root / "cat", root / "unlabelled"):
        place.mkdir(parents=True)
        for kind in IMAGES:
            kind.write(place / kind.name)
    return root


@pytest.fixture(scope="module")
def of_run(photos: Path) -> dict[str, str]:
    """Return the status of every file as a run on the folder finds it, by id."""
    settings = recipe.load(str(TINY), ["data.source=folder", f"data.path={photos}", "data.per_class=0"]).recipe
    train, _, _ = sources.load(settings, 0)
    found = prepare(train, settings.data, photos.parent, pick("cpu"), Silent())
    return dict.fromkeys(found.ids, "ok") | {name: f"unreadable: {why}" for name, why in found.unreadable.items()}


@pytest.fixture(scope="module")
def of_predict(photos: Path, _finished_template: Path) -> dict[str, str]:
    """Return the status of every file as ``predict`` writes it, by path in the folder."""
    to = photos.parent / "predicted.csv"
    command = ["predict", str(_finished_template), str(photos), "--to", str(to), "--device", "cpu"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    with to.open(newline="", encoding="utf-8") as file:
        return {os.path.relpath(row["path"], photos): row["status"] for row in plain_rows(csv.DictReader(file))}


@pytest.mark.parametrize("kind", IMAGES, ids=[kind.given for kind in IMAGES])
def test_every_kind_of_file_has_its_row(kind: BadImage, of_run: dict[str, str], of_predict: dict[str, str]) -> None:
    for place in ("cat", "unlabelled"):
        own = f"{place}/{kind.name}"
        if not kind.says:  # a folder: what is in it is told, and nothing is found twice
            inside = {name: status for name, status in of_run.items() if name.startswith(own + "/")}
            assert all("too long" in status for status in inside.values()) and len(inside) <= 1
            continue
        assert of_run[own] == "ok" if kind.says == "ok" else kind.says in of_run[own], of_run[own]
        wanted = kind.to_predict or kind.says
        assert of_predict[own] == "ok" if wanted == "ok" else wanted in of_predict[own], of_predict[own]


def test_no_row_is_lost_and_none_is_made_up(photos: Path, of_run: dict[str, str], of_predict: dict[str, str]) -> None:
    named = {f"{place}/{kind.name}" for place in ("cat", "unlabelled") for kind in IMAGES if kind.says}
    deep = {name for name in of_run if "/deep/" in name}
    assert set(of_run) - deep == named and len(deep) == 2
    assert named <= set(of_predict)
    assert all(name in named or "/deep/" in name for name in of_predict)
    assert inventory_of(photos).files == len(of_run)


@pytest.mark.parametrize("kind", INPUTS, ids=[kind.name for kind in INPUTS])
def test_every_kind_of_input_ends_in_a_sentence(kind: BadInput, _template_with_files: Path, tmp_path: Path) -> None:
    run = move_images(copied(_template_with_files / "run", tmp_path / "run"), _template_with_files / "my images")
    (tmp_path / "place").mkdir()
    done = CliRunner().invoke(app, [str(word) for word in kind.prepare(tmp_path / "place", run)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    said = done.stderr
    assert done.exit_code == kind.code, said
    assert kind.says in said and said.startswith("error: "), said
    assert "Traceback" not in said


def test_there_are_more_than_a_hundred_kinds_and_the_table_names_each() -> None:
    assert count() == len(IMAGES) + len(INPUTS) > 100
    assert len({kind.given for kind in IMAGES}) == len(IMAGES) and len({kind.name for kind in INPUTS}) == len(INPUTS)
    lines = io.StringIO(table()).readlines()
    assert len(lines) == 2 + count()


def test_the_documents_have_the_table_as_it_is() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert table() in page, "docs/reliability.md is stale: paste what tests/strangers/catalogue.py prints"
    assert f"{count()} kinds of bad input" in page
