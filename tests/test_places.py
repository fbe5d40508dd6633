"""Where a run's images lie is found again from wherever it is called."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from autonovel import places, recipe
from autonovel.storage.shapes import run_facts
from image_files import write_digits
from runs import autonovel

SETS = ["--set", "supervised.epochs=1", "--set", "joint.epochs=1", "--set", "run.report=false", "--keep-going"]


def facts(folder: Path, path: str, **more: str) -> dict[str, Any]:
    """Return what a run in ``folder`` notes of images at ``path``."""
    settings = recipe.load("folder", {"data.path": path, **more}).recipe
    return {"recipe": recipe.flatten(settings), "places": places.as_seen_from(folder, settings)}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with ``work`` (where one is), ``pictures`` and ``runs/one`` in it."""
    for name in ("work", "pictures", "runs/one", "elsewhere/deep"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def path_now(folder: Path, noted: dict[str, Any], data: Path | None = None) -> Path:
    return Path(os.path.realpath(places.settings_now(folder, noted, data).data.path))


def test_images_are_found_from_any_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = facts(Path("../runs/one"), "../pictures")
    assert noted["places"] == {"data.path": os.path.join("..", "..", "pictures")}
    assert path_now(Path("../runs/one"), noted) == here / "pictures"
    (here / "elsewhere" / "pictures").mkdir()  # which the words of then name from there
    monkeypatch.chdir(here / "elsewhere" / "deep")
    assert path_now(here / "runs" / "one", noted) == here / "pictures"
    assert not os.path.isabs(places.settings_now(here / "runs" / "one", noted).data.path)


def test_run_and_images_may_be_moved_together(here: Path) -> None:
    noted = facts(Path("../runs/one"), "../pictures")
    (here / "new").mkdir()
    for name in ("runs", "pictures"):
        (here / name).rename(here / "new" / name)
    assert path_now(here / "new" / "runs" / "one", noted) == here / "new" / "pictures"


def test_a_run_moved_alone_finds_what_it_was_told_of(here: Path) -> None:
    absolute, relative = facts(Path("../runs/one"), str(here / "pictures")), facts(Path("../runs/one"), "../pictures")
    moved = (here / "runs" / "one").rename(here / "elsewhere" / "deep" / "one")
    for noted in (absolute, relative):
        assert path_now(moved, noted) == here / "pictures"


def test_images_that_are_gone_are_named_by_where_they_were(here: Path) -> None:
    noted = facts(Path("../runs/one"), "../pictures")
    (here / "pictures").rmdir()
    assert path_now(here / "runs" / "one", noted) == here / "pictures"


def test_what_a_person_says_comes_first(here: Path) -> None:
    noted = facts(Path("../runs/one"), "../pictures")
    assert path_now(here / "runs" / "one", noted, here / "elsewhere") == here / "elsewhere"


def test_the_true_classes_are_found_again_too(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "truth.csv").write_text("path,label\n")
    noted = facts(Path("../runs/one"), "../pictures", **{"data.truth": "../truth.csv"})
    monkeypatch.chdir(here / "elsewhere" / "deep")
    found = places.settings_now(here / "runs" / "one", noted)
    assert Path(found.data.truth).resolve() == here / "truth.csv"


def test_runs_that_noted_nothing_go_by_what_they_were_told(here: Path) -> None:
    noted = facts(Path("../runs/one"), "../pictures")
    del noted["places"]
    assert path_now(here / "runs" / "one", noted) == here / "pictures"


def test_what_is_no_file_is_not_noted(here: Path) -> None:
    assert facts(Path("../runs/one"), "https://images.example/{00..09}.tar")["places"] == {}


@pytest.mark.slow
def test_pictures_are_exported_from_anywhere(tmp_path: Path) -> None:
    write_digits(tmp_path / "pictures", per_class=20)
    done = autonovel("run", "folder", "--data", "pictures", "--out", "one", "--device", "cpu",
                     "--set", "data.size=8", "--set", "count.new_classes=5",
                     "--set", "pretrain.epochs=1", *SETS, cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "one" / "run.json").read_text())["recipe"]["data.path"] == "pictures"
    other = tmp_path / "other"
    other.mkdir()
    done = autonovel("export", tmp_path / "one", "--to", "folders", "sorted", cwd=other)
    assert done.returncode == 0, done.stderr
    assert len(list((other / "sorted").rglob("*.png"))) == 200


def test_a_note_that_is_no_path_is_refused(finished: Path) -> None:
    from autonovel.errors import RunFolderError

    path = finished / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"places": {"data.path": 3}}))
    with pytest.raises(RunFolderError, match=r"places\.data\.path"):
        run_facts(finished, ("recipe",))
