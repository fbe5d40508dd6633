"""Where a run's images lie is found again from wherever it is called."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from autonovel import places, recipe
from autonovel.errors import UsageError
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


def test_images_to_be_read_that_are_gone_are_asked_for(here: Path) -> None:
    noted = facts(Path("../runs/one"), "../pictures")
    assert places.images_now(Path("../runs/one"), noted, None).data.path == os.path.join("..", "pictures")
    (here / "pictures").rename(here / "moved")
    with pytest.raises(UsageError, match=r"are not at \.\./pictures\. Say where they are with --data DIR"):
        places.images_now(Path("../runs/one"), noted, None)
    assert places.images_now(Path("../runs/one"), noted, here / "moved").data.path == str(here / "moved")


def test_what_a_person_says_comes_first(here: Path) -> None:
    noted = facts(Path("../runs/one"), "../pictures")
    assert path_now(here / "runs" / "one", noted, here / "elsewhere") == here / "elsewhere"


def test_the_true_classes_are_found_again_too(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "truth.csv").write_text("path,label\n")
    noted = facts(Path("../runs/one"), "../pictures", **{"data.truth": "../truth.csv"})
    monkeypatch.chdir(here / "elsewhere" / "deep")
    found = places.settings_now(here / "runs" / "one", noted)
    assert Path(found.data.truth).resolve() == here / "truth.csv"


def test_true_classes_that_moved_with_the_images_are_looked_for_beside_them(here: Path) -> None:
    (here / "pictures" / "truth.csv").write_text("path,label\n")
    os.chdir(here / "pictures")
    noted = facts(Path("../runs/one"), ".", **{"data.truth": "truth.csv"})
    assert "data.truth" in noted["places"]
    (here / "pictures").rename(here / "pics")
    os.chdir(here / "work")
    now = places.settings_now(here / "runs" / "one", noted, here / "pics")
    assert Path(now.data.truth).resolve() == here / "pics" / "truth.csv", "which the folder of the images has"


def test_true_classes_named_by_the_folder_of_the_images_move_with_it(here: Path) -> None:
    (here / "pictures" / "truth.csv").write_text("path,label\n")
    told = {"data.truth": "../pictures/truth.csv"}
    noted = facts(Path("../runs/one"), "../pictures", **told)
    (here / "pictures").rename(here / "pics")
    now = places.settings_now(here / "runs" / "one", noted, Path("../pics"))
    assert now.data.truth == os.path.join("..", "pics", "truth.csv")
    moved = facts(Path("../runs/one"), "../pics", **{"data.truth": "../pics/truth.csv"})
    assert places.same(noted["places"], moved["places"]) == {"data.truth"}
    (here / "pics" / "other.csv").write_text("path,label\n")
    others = facts(Path("../runs/one"), "../pics", **{"data.truth": "../pics/other.csv"})
    assert places.same(noted["places"], others["places"]) == set()
    assert places.same({}, {}) == set()


@pytest.mark.parametrize("truth", ["", "../answers.csv"])
def test_a_table_that_was_moved_is_not_its_own_truth(here: Path, truth: str) -> None:
    (here / "pictures" / "table.csv").write_text("path,label\n")
    (here / "answers.csv").write_text("path,label\n")
    told = {"data.source": "table"} | ({"data.truth": truth} if truth else {})
    noted = facts(Path("../runs/one"), "../pictures/table.csv", **told)
    (here / "pictures").rename(here / "pics")
    now = places.settings_now(here / "runs" / "one", noted, here / "pics" / "table.csv")
    assert (now.data.path, now.data.truth) == (str(here / "pics" / "table.csv"), truth)


def test_weights_and_networks_from_elsewhere_are_found_again(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "work" / "trunk.safetensors").write_text("")
    (here / "work" / "network").mkdir()
    told = {"pretrain.weights": "trunk.safetensors", "network.model": "network", "network.name": "hf"}
    noted = facts(Path("../runs/one"), "../pictures", **told)
    monkeypatch.chdir(here / "elsewhere" / "deep")
    now = places.settings_now(here / "runs" / "one", noted)
    assert Path(now.pretrain.weights).resolve() == here / "work" / "trunk.safetensors"
    assert Path(now.network.model).resolve() == here / "work" / "network"
    assert places.same(noted["places"], places.as_seen_from(here / "runs" / "one", now)) == {*noted["places"]}
    hub = facts(here / "runs" / "one", str(here), **{"network.model": "some/name", "network.name": "hf"})
    assert "network.model" not in hub["places"], "which is a name on the hub"


def test_a_folder_of_that_name_is_not_the_true_classes(here: Path) -> None:
    (here / "work" / "truth").mkdir()
    assert "data.truth" not in facts(Path("../runs/one"), "../pictures", **{"data.truth": "truth"})["places"]


def test_images_on_a_disk_that_is_gone_are_named_as_they_were_told(here: Path) -> None:
    noted = facts(Path("../runs/one"), str(here / "pictures"))
    (here / "pictures").rmdir()
    moved = (here / "runs" / "one").rename(here / "elsewhere" / "deep" / "one")
    assert places.settings_now(moved, noted).data.path == str(here / "pictures")


def test_a_folder_may_be_called_auto(here: Path) -> None:
    (here / "work" / "auto").mkdir()
    noted = facts(Path("../runs/one"), "auto")
    assert noted["places"] == {"data.path": os.path.join("..", "..", "work", "auto")}, (
        "and a cache of that name is none"
    )


@pytest.mark.skipif(os.name == "nt", reason="names of files are text there")
def test_a_folder_whose_name_is_no_text_is_not_noted(here: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    try:
        (here / odd / "in").mkdir(parents=True)
    except OSError:
        pytest.skip("this file system has no such names")
    os.chdir(here / odd / "in")
    assert facts(here / "runs" / "one", ".")["places"] == {}
    with pytest.raises(UsageError, match=r"data.path is '.*caf.udce9', whose bytes are no text"):
        facts(here / "runs" / "one", str(here / odd))


def test_runs_that_noted_nothing_go_by_what_they_were_told(here: Path) -> None:
    noted = facts(Path("../runs/one"), "../pictures")
    del noted["places"]
    assert path_now(here / "runs" / "one", noted) == here / "pictures"


def test_what_is_no_file_is_not_noted(here: Path) -> None:
    assert facts(Path("../runs/one"), "https://images.example/{00..09}.tar")["places"] == {}


def test_what_a_table_names_lies_beside_the_link_to_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "tables").mkdir()
    (here / "tables" / "list.csv").write_text("path,label\n")
    (here / "list.csv").symlink_to(Path("tables") / "list.csv")
    noted = facts(Path("../runs/one"), "../list.csv", **{"data.source": "table"})
    assert noted["places"]["data.path"] == os.path.join("..", "..", "list.csv")
    monkeypatch.chdir(here / "elsewhere")
    assert places.settings_now(here / "runs" / "one", noted).data.path == os.path.join("..", "list.csv")


def test_a_link_that_points_elsewhere_by_now_is_followed(here: Path) -> None:
    (here / "link").symlink_to("pictures")
    noted = facts(Path("../runs/one"), "../link")
    (here / "link").unlink()
    (here / "link").symlink_to("elsewhere")
    assert path_now(here / "runs" / "one", noted) == here / "elsewhere"


def test_a_run_folder_may_be_called_by_a_link(here: Path) -> None:
    noted = facts(Path("../runs/one"), "../pictures")
    (here / "elsewhere" / "deep" / "run").symlink_to(here / "runs" / "one")
    assert path_now(here / "elsewhere" / "deep" / "run", noted) == here / "pictures"


def test_a_cache_of_shards_is_found_again(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "cache").mkdir()
    noted = facts(Path("../runs/one"), "https://images.example/{00..09}.tar", **{"data.cache": "../cache"})
    monkeypatch.chdir(here / "elsewhere" / "deep")
    assert Path(places.settings_now(here / "runs" / "one", noted).data.cache).resolve() == here / "cache"


@pytest.mark.slow
def test_a_run_goes_on_and_is_looked_at_from_anywhere(tmp_path: Path) -> None:
    write_digits(tmp_path / "pictures", per_class=20)
    (tmp_path / "pictures" / "truth.csv").rename(tmp_path / "truth.csv")
    sets = ["--device", "cpu", "--set", "data.size=8", "--set", "count.new_classes=5", "--set", "run.parallel=true",
            "--set", "pretrain.epochs=1", "--set", "dtc.epochs=2", "--method", "rankstats", "--method", "dtc",
            *SETS]  # fmt: skip
    begun = autonovel("run", "folder", "--data", "pictures", "--set", "data.truth=truth.csv", "--out", "one",
                      *sets, "--stages", "1", cwd=tmp_path)  # fmt: skip
    assert begun.returncode == 0, begun.stderr
    (tmp_path / "other" / "pictures").mkdir(parents=True)  # of the same name, with nothing in it
    (tmp_path / "pictures").rename(tmp_path / "moved")
    done = autonovel("run", "folder", "--data", "../moved", "--set", "data.truth=../truth.csv", "--out", "../one",
                     "--resume", *sets, cwd=tmp_path / "other")  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "one" / "results.json").read_text())
    assert not results.get("failed") and results["systems"]["dtc"]["acc"] > 0
    seen = autonovel("evaluate", "one", "--json", "--device", "cpu", cwd=tmp_path)
    assert seen.returncode == 0, seen.stderr
    assert json.loads(seen.stdout)["systems"]["rankstats"] == pytest.approx(results["systems"]["rankstats"])
    refined = autonovel("refine", tmp_path / "one", "--confirm", "new-1", "--out", tmp_path / "two", "--device", "cpu",
                        *SETS, cwd=tmp_path / "other")  # fmt: skip
    assert refined.returncode == 0, refined.stderr
    page = (tmp_path / "two" / "run.json").read_text()
    weights = json.loads(page)["places"].pop("pretrain.weights")
    assert (tmp_path / "two" / weights).is_file()
    assert json.loads(page)["places"] == {
        "data.path": "../moved", "data.truth": "../truth.csv", "pretrain.weights": weights,
    }  # fmt: skip
    others = autonovel("evaluate", "one", "--data", "other", "--device", "cpu", cwd=tmp_path)
    assert others.returncode == 2
    hurt = tmp_path / "moved" / "unlabelled"
    sorted(hurt.iterdir())[0].write_bytes(b"no picture")
    fewer = autonovel("evaluate", "one", "--device", "cpu", cwd=tmp_path)
    assert fewer.returncode == 2 and "(1 more cannot be read), and the run had" in fewer.stderr, fewer.stderr


@pytest.mark.slow
def test_a_resumed_run_and_its_companions_read_images_as_they_are_told_to_now(tmp_path: Path) -> None:
    write_digits(tmp_path / "pictures", per_class=20)
    sets = ["--device", "cpu", "--set", "data.size=8", "--set", "count.new_classes=5", "--set", "run.parallel=true",
            "--set", "pretrain.epochs=1", "--set", "dtc.epochs=2", "--method", "rankstats", "--method", "dtc",
            *SETS]  # fmt: skip
    run = ["run", "folder", "--data", "pictures", "--out", "one", *sets]
    cached = ["--set", "data.cache=kept", "--set", "data.loader=streaming"]
    begun = autonovel(*run, *cached, "--stages", "1,2", cwd=tmp_path)
    assert begun.returncode == 0, begun.stderr
    shutil.rmtree(tmp_path / "kept")
    (tmp_path / "kept").write_text("a file, in which nothing can be kept")
    done = autonovel(*run, "--set", "data.cache=off", "--resume", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads((tmp_path / "one" / "run.json").read_text())["recipe"]
    assert (said["data.cache"], said["data.loader"]) == ("off", "auto")
    assert not json.loads((tmp_path / "one" / "results.json").read_text()).get("failed")


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
