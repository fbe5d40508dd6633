"""autonovel refine: confirmed classes become known, and training goes on from the run's model."""

import csv
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from autonovel import Discoverer, open_run, recipe
from autonovel.commands.refine import next_name, refine
from autonovel.commands.training import run_recipe
from autonovel.data import sources
from autonovel.data.given_labels import GivenLabels
from autonovel.editing import edits
from autonovel.editing.edited import EditedRun
from autonovel.editing.refining import named_by_a_person
from autonovel.errors import AutonovelError, RunFolderError, UsageError
from autonovel.first_model import new_model
from autonovel.manner import Manner
from autonovel.report import gather, subject
from autonovel.storage.documents import write_json
from autonovel.storage.run_folder import RunFolder
from finished import rows_of
from image_files import write_digits
from runs import TINY, autonovel, command, environment, numbers

QUICK = ["supervised.epochs=1", "joint.epochs=2", "joint.keep_embeddings_at=[]", "joint.watch=0"]


@pytest.fixture(autouse=True)
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the report out, which would take most of the time; one test draws it."""
    monkeypatch.setattr("autonovel.report.write_report", lambda *_: None)


def go_on(run: Path, *confirm: str, **options: Any) -> Path:
    return refine(run, list(confirm), **({"sets": QUICK, "device": "cpu", "keep_going": True} | options))


def snapshot(folder: Path) -> dict[str, Any]:
    """Return all files of a run with their content and times."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def given_labels(run: Path) -> dict[str, str]:
    return {name: row["given_label"] for name, row in rows_of(run / "discovery.csv").items()}


@pytest.fixture
def corrected(finished: Path) -> Path:
    """Return a run in which a person named a class, moved an image of the pile and a labelled one, and found junk."""
    run = open_run(finished)
    members = {entry["name"]: ids(run, entry["id"]) for entry in run.classes()}
    run.rename("new-1", "seven")
    run.move([members["new-2"][0]], "3")
    run.move([members["4"][0]], "new-3")
    run.junk([members["new-4"][0], members["0"][0]])
    return finished


def ids(run: EditedRun, number: int) -> list[str]:
    return [run.sorting.ids[row] for row in run.sorting.members(number)]


# ---------------------------------------------------------------------------------------------------
# what is confirmed


def test_a_name_by_a_person_confirms_a_class(finished: Path) -> None:
    run = open_run(finished)

    def named() -> set[str]:
        return {run.sorting.names[number] for number in named_by_a_person(run.found, run.made())}

    run.rename("new-1", "seven")
    run.rename("new-2", "eight")
    assert named() == {"seven", "eight"}
    run.undo()
    assert named() == {"seven"}
    run.split("new-3")  # gets a free name, which nobody gave it
    run.split("new-4", to="nine")
    run.split("0", to="ring")
    assert named() == {"seven", "nine", "ring"}
    run.merge("new-5", "seven")  # its name goes with it
    assert named() == {"nine", "ring"}
    run.junk_class("nine")
    assert named() == {"ring"}


def test_nothing_confirmed_is_an_error_that_says_how(finished: Path) -> None:
    with pytest.raises(
        UsageError, match=r"autonovel rename .* new-1 NAME.*--confirm CLASS.*--all.*new-5 \(40 images\)"
    ):
        go_on(finished)
    assert not finished.with_name("run-refined").exists()


@pytest.mark.parametrize(
    ("confirm", "options", "told"),
    [
        (["0"], {}, "known class already"),
        (["nobody"], {}, "there is no class 'nobody'"),
        (["new-11"], {}, r"there is no class 'new-11'\. Did you mean 'new-1'\? The classes are new-1"),
        (["new-1", "new-2", "new-3", "new-4"], {}, r"only new-5 \(40 images\) is not confirmed.*--new-classes 2"),
        ([], {"every": True, "asked": "3"}, "nothing is left to discover"),
        (["new-1"], {"asked": "1"}, "give a whole number from 2 on, or auto"),
        (["new-1"], {"asked": "400"}, "only 160 unlabelled images"),
        (["new-1"], {"sets": ["data.size=20"]}, "data.size cannot be changed"),
        (["new-1"], {"sets": ["data.path=x"]}, "with --data"),
        (["new-1"], {"sets": ["network.name=resnet18"]}, "network.name cannot be changed"),
        (["new-1"], {"sets": ["joint.nothing=1"]}, "unknown setting 'joint.nothing'"),
        (["new-1"], {"resume": True, "overwrite": True}, "give one of them"),
        ([], {"every": True, "sets": ["supervised.epochs=0"]}, "supervised.epochs=10"),
    ],
)
def test_wishes_that_cannot_be_met_are_refused(
    finished: Path, confirm: list[str], options: dict[str, Any], told: str
) -> None:
    with pytest.raises(AutonovelError, match=told):
        go_on(finished, *confirm, **options)
    assert not finished.with_name("run-refined").exists()


def test_an_empty_class_cannot_be_confirmed(finished: Path) -> None:
    run = open_run(finished)
    run.move(ids(run, run.number("new-1")), "new-2")
    with pytest.raises(UsageError, match="has no image"):
        go_on(finished, "new-1")


def test_the_run_itself_is_never_the_target(corrected: Path) -> None:
    with pytest.raises(UsageError, match="stays as it is"):
        go_on(corrected, out=corrected, overwrite=True)
    with pytest.raises(RunFolderError, match="no run folder"):
        go_on(corrected.with_name("nowhere"))


def test_what_a_run_lacks_is_said(corrected: Path) -> None:
    facts = json.loads((corrected / "run.json").read_text())
    write_json(corrected / "run.json", facts | {"recipe": facts["recipe"] | {"data.source": "arrays"}})
    with pytest.raises(UsageError, match="came from Python"):
        go_on(corrected)
    write_json(corrected / "run.json", facts | {"recipe": facts["recipe"] | {"data.test_fraction": 0.2}})
    with pytest.raises(UsageError, match="held out by its seed, 0"):
        go_on(corrected, seed=1)
    write_json(corrected / "run.json", {key: value for key, value in facts.items() if key != "finished"})
    with pytest.raises(RunFolderError, match="not finished"):
        go_on(corrected)


def test_the_next_folder_lies_beside_the_run_wherever_one_stands(
    corrected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corrected)
    beside = corrected.parent / next_name(corrected.name)
    beside.mkdir()
    (beside / "run.json").write_text("{}")
    with pytest.raises(AutonovelError, match="--overwrite"):  # it stands in the way
        refine(Path(), device="cpu")
    assert not [path for path in corrected.iterdir() if "refined" in path.name]


def test_the_next_folder_has_the_next_name() -> None:
    names = ["demo-seed0"]
    for _ in range(3):
        names.append(next_name(names[-1]))
    assert names == ["demo-seed0", "demo-seed0-refined", "demo-seed0-refined-2", "demo-seed0-refined-3"]


# ---------------------------------------------------------------------------------------------------
# the run that follows


def test_a_person_is_followed_and_the_run_stays_as_it_is(corrected: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, was = snapshot(corrected), open_run(corrected)
    sorting = was.sorting
    assert go_on(corrected, "new-5") == corrected.with_name("run-refined")
    after, labels = corrected.with_name("run-refined"), given_labels(corrected.with_name("run-refined"))
    assert snapshot(corrected) == before

    facts = json.loads((after / "run.json").read_text())
    assert facts["class_names"] == ["0", "1", "2", "3", "4", "new-5", "seven"] and facts["n_new"] == 3
    assert facts["recipe"]["run.systems"] == ["rankstats-incremental"] and facts["recipe"]["joint.epochs"] == 2
    assert facts["recipe"]["incremental.epochs"] == 2  # as joint, which was changed
    assert set(labels) == set(sorting.ids)  # every image keeps its row
    for name, number in zip(sorting.ids, sorting.class_of.tolist(), strict=True):
        known = number >= 0 and sorting.names[number] in facts["class_names"]
        assert labels[name] == (sorting.names[number] if known else ""), name
    rows = rows_of(after / "discovery.csv")
    junk = {name for name, row in rows.items() if row["status"] == "junk"}
    assert junk == {sorting.ids[row] for row in sorting.members(-1)} and len(junk) == 2
    assert all(rows[name]["class_id"] == "" for name in junk)
    about, _ = subject.corrected(open_run(after))
    head = gather.headline(about, json.loads((after / "results.json").read_text()))
    assert head.details == "2 further images, marked as junk before, were left out."
    assert head.n_labelled + head.n_unlabelled + head.left_out == len(rows)
    assert {row["class_name"] for row in rows.values() if not row["given_label"]} <= {"", "new-1", "new-2", "new-3"}

    told = capsys.readouterr().out
    for part in (
        "Confirmed in", "seven (40), new-5 (40)", "moved: 2", "Junk: 2 images", "Takes about", f"Writes {after}",
        "3 new classes among the 119 images of new-2 (39), new-3 (41), new-4 (39)", "Nobody has named new-5;",
        "model.safetensors; stage 1 is not repeated", f"Next: autonovel review {after}",
    ):  # fmt: skip
        assert part in told, part


def test_training_starts_from_the_trunk_of_the_run(corrected: Path) -> None:
    after = go_on(corrected)
    assert not list((after / "stages").glob("1-*")) and (after / "stages" / "2-supervised" / "stage.json").exists()
    settings = recipe.restore(json.loads((after / "run.json").read_text())["recipe"])
    images, _, _ = sources.load(settings, 0, after)
    started = new_model(settings, images, 0).trunk.state_dict()
    trunk = {name: value for name, value in load_file(corrected / "model.safetensors").items() if "trunk." in name}
    assert trunk and all(torch.equal(started[name.removeprefix("trunk.")], value) for name, value in trunk.items())


def test_the_scores_are_those_of_the_classes_that_are_left(corrected: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each digit is confirmed for what it is, so that the truth can be followed."""
    run, true = open_run(corrected), {}
    train, _, _ = sources.load(recipe.load(str(TINY)).recipe, 0)
    assert train.truth is not None
    for name, number in zip(train.ids, train.truth.tolist(), strict=True):
        true.setdefault(number, []).append(name)
    run.move(
        [name for name in true[7] if run.sorting.class_of[run.sorting.index[name]] != run.number("seven")], "seven"
    )
    others = [name for name in ids(run, run.number("seven")) if name not in true[7]]
    run.move(others, "new-2")
    after = go_on(corrected)
    capsys.readouterr()
    results = json.loads((after / "results.json").read_text())
    assert results["systems"]["rankstats-incremental"]["acc"] > 0.24 and results["incremental"]
    seen, _, n_new = sources.load(recipe.restore(json.loads((after / "run.json").read_text())["recipe"]), 0, after)
    assert seen.new_names == ("5", "6", "8", "9") and n_new == 4
    assert seen.truth is not None and set(seen.truth[seen.unlabelled].tolist()) == {
        4,
        6,
        7,
        8,
        9,
    }  # one 4 is where a person put it
    again = autonovel("evaluate", after, "--json", "--device", "cpu")
    assert json.loads(again.stdout)["systems"] == results["systems"], again.stderr


def test_batches_shrink_to_the_images_that_are_left(finished: Path) -> None:
    run = open_run(finished)
    for name in ("new-4", "new-5"):
        run.junk(ids(run, run.number(name))[8:])
    after = go_on(finished, "new-1", "new-2", "new-3")
    settings = json.loads((after / "run.json").read_text())["recipe"]
    assert (settings["incremental.batch_size"], settings["incremental.labelled_per_batch"]) == (36, 20)
    assert settings["supervised.batch_size"] == 40


def test_a_refined_run_is_refined_again_and_junk_can_come_back(corrected: Path) -> None:
    second = open_run(go_on(corrected))
    junk = ids(second, -1)
    assert len(junk) == 2
    second.move([junk[0]], "seven")
    assert {row["id"]: row["status"] for row in second.rows() if row["id"] in junk} == {junk[0]: "ok", junk[1]: "junk"}
    second.split("seven", to="seven with a bar")  # the features of what was junk are not there, and not asked for
    second.rename("seven", "sept")
    third = second.refine("new-1", new_classes=2, device="cpu", sets=QUICK, keep_going=True)
    assert third.folder.name == "run-refined-2"
    labels = given_labels(third.folder)
    assert labels[junk[0]] == "sept" and labels[junk[1]] == "" and ids(third, -1) == [junk[1]]
    assert {"sept", "seven with a bar", "new-1"} <= set(labels.values()) and "seven" not in labels.values()
    for name in ("sept", "seven with a bar", "new-1"):  # made known by the first refinement and by the second
        third.rename(name, f"{name} once more")
    with pytest.raises(UsageError, match="'4' is a known class: it comes from your labels"):
        third.rename("4", "four")
    assert "new-1" not in {entry["name"] for entry in third.classes() if entry["kind"] == "new"}


def test_when_all_are_confirmed_a_classifier_remains(corrected: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # with the report
    after = go_on(corrected, every=True, sets=[*QUICK, "run.map_points=40"])
    facts = json.loads((after / "run.json").read_text())
    assert facts["primary"] == "known-only" and facts["n_new"] == 0 and len(facts["class_names"]) == 10
    rows = rows_of(after / "discovery.csv").values()
    assert all(row["given_label"] == row["class_name"] for row in rows)
    assert sum(row["status"] == "junk" for row in rows) == 2
    assert "nothing to discover" in (after / "report.html").read_text()
    loaded = Discoverer.load(after)
    images, _, _ = sources.load(recipe.restore(facts["recipe"]), 0, after)
    assert isinstance(images.images, torch.Tensor)
    p = loaded.predict_proba(images.images[:20, 0].numpy())
    assert p.shape == (20, 10) and p.sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert autonovel("evaluate", after, "--device", "cpu").returncode == 0
    exported = autonovel("export", after, "--to", "onnx", after.parent / "model.onnx")
    assert exported.returncode == 0 and "10 classes" in exported.stdout, exported.stderr
    refused = autonovel("count", after, "--device", "cpu")
    assert refused.returncode == 2 and "discovers nothing" in refused.stderr


def test_one_class_that_is_left_can_be_searched_for_more(finished: Path) -> None:
    after = go_on(finished, "new-1", "new-2", "new-3", "new-4", asked="2", out=finished.with_name("more"))
    assert json.loads((after / "run.json").read_text())["n_new"] == 2


# ---------------------------------------------------------------------------------------------------
# going on after a kill


def test_another_wish_or_another_run_does_not_resume(corrected: Path, finished: Path, tmp_path: Path) -> None:
    after = go_on(corrected)
    with pytest.raises(UsageError, match="holds a run already"):
        go_on(corrected)
    with pytest.raises(UsageError, match="begun with other settings"):
        go_on(corrected, "new-2", resume=True)
    other = Path(shutil.copytree(corrected, tmp_path / "other"))
    write_json(other / "run.json", json.loads((other / "run.json").read_text()) | {"digest": "another"})
    with pytest.raises(UsageError, match="goes on from"):
        go_on(other, out=after, resume=True)
    replaced = go_on(corrected, "new-2", overwrite=True)
    assert "new-2" in json.loads((replaced / "run.json").read_text())["class_names"]


def test_later_edits_are_not_for_a_run_that_was_begun(corrected: Path, capsys: pytest.CaptureFixture[str]) -> None:
    after = go_on(corrected)
    before = snapshot(after)
    open_run(corrected).rename("new-2", "eight")
    assert go_on(corrected, resume=True) == after
    told = " ".join(capsys.readouterr().out.split())
    assert "begun after 4 edits; 1 edit of" in told and "is finished; nothing was left to do" in told
    assert snapshot(after) == before


def test_a_folder_killed_before_its_first_stage_is_begun_anew(corrected: Path) -> None:
    after = corrected.with_name("run-refined")
    with RunFolder.create(after):
        (after / "labels.csv").write_text("id,label,status\n")
        (after / "refined.json.partial").write_text("{")
    go_on(corrected, resume=True)
    assert "seven" in json.loads((after / "run.json").read_text())["class_names"]


def test_a_table_of_somebody_else_is_no_begun_run(corrected: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "labels.csv").write_text("precious")
    with pytest.raises(UsageError, match="is no run folder and holds other things"):
        go_on(corrected, out=tmp_path / "mine")
    assert (tmp_path / "mine" / "labels.csv").read_text() == "precious"


@pytest.mark.slow
def test_a_killed_refinement_ends_with_the_same_numbers(corrected: Path) -> None:
    after, other = corrected.with_name("run-refined"), corrected.with_name("undisturbed")
    words = ("refine", corrected, "--device", "cpu", "--keep-going", "--set", "run.map_points=40")
    assert autonovel(*words, "--out", other).returncode == 0
    process = subprocess.Popen(command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        log = after / "metrics.jsonl"
        if log.exists() and '"stage": "3-joint", "epoch": 1' in log.read_text():
            break
        time.sleep(0.005)
    assert process.poll() is None, "the run ended before it could be killed"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    open_run(corrected).rename("new-2", "eight")  # not for this run any more
    resumed = autonovel(*words, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    for run in (after, other):
        (run / "systems" / "rankstats").mkdir(parents=True, exist_ok=True)
        (run / "systems" / "rankstats" / "metrics.jsonl").touch()
    assert numbers(after) == numbers(other)


# ---------------------------------------------------------------------------------------------------
# image files


@pytest.fixture(scope="module")
def run_on_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a place with ``run``, and ``digits``, the folder of its images, of which one cannot be read."""
    place = tmp_path_factory.mktemp("files")
    images = write_digits(place / "digits", per_class=12)
    (images / "unlabelled" / "torn.png").write_bytes(b"\x89PNG")
    (images / "truth.csv").unlink()
    sets = [*QUICK, f"data.path={images}", "data.source=folder", "pretrain.epochs=1", 'run.systems=["rankstats"]',
            "data.workers=1", "count.new_classes=5", "joint.batch_size=20", "supervised.batch_size=20"]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("autonovel.report.write_report", lambda *_: None)
        run_recipe(str(TINY), place / "run", 0, sets, Manner("cpu", keep_going=True))
    yield place


def test_files_that_were_moved_are_refined(run_on_files: Path, tmp_path: Path) -> None:
    run = open_run(shutil.copytree(run_on_files / "run", tmp_path / "run"))
    images = Path(shutil.copytree(run_on_files / "digits", tmp_path / "elsewhere"))
    pile = [row["id"] for row in run.rows() if not row["given_label"] and row["status"] == "ok"]
    run.split(run.rows()[run.sorting.index[pile[0]]]["class_name"], [pile[0]], 'new, and "odd"')
    run.move(pile[1:30], 'new, and "odd"')
    run.junk(pile[30:32])
    run.move(["3/3-0001.png"], "4")
    (images / "unlabelled" / "late.png").write_bytes((images / "0" / "0-0000.png").read_bytes())
    (images / "1" / "1-0003.png").unlink()
    shutil.move(tmp_path / "run", tmp_path / "kept")
    after = go_on(tmp_path / "kept", data=images, asked="2")
    rows = rows_of(after / "discovery.csv")
    assert set(rows) == {str(path.relative_to(images)) for path in images.rglob("*.png")}  # a row for every input file
    assert rows["unlabelled/torn.png"]["status"].startswith("unreadable")
    assert [rows[name]["status"] for name in pile[30:32]] == ["junk", "junk"] and rows[pile[30]]["path"] == pile[30]
    assert {rows[name]["given_label"] for name in pile[:30]} == {'new, and "odd"'}
    assert rows["3/3-0001.png"]["given_label"] == "4" and rows["unlabelled/late.png"]["given_label"] == ""
    with (after / "labels.csv").open(newline="") as file:
        assert sum(row["status"] == "junk" for row in csv.DictReader(file)) == 2


def test_a_file_that_cannot_be_read_does_not_keep_a_run_from_having_a_label_for_every_image(
    run_on_files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(run_on_files / "run", tmp_path / "run"))
    after = go_on(run, every=True, data=run_on_files / "digits")
    assert "are not in" not in capsys.readouterr().out
    assert json.loads((after / "run.json").read_text())["primary"] == "known-only"
    assert rows_of(after / "discovery.csv")["unlabelled/torn.png"]["status"].startswith("unreadable: ")
    labels = GivenLabels.read(after / "labels.csv")
    assert labels.unreadable == {"unlabelled/torn.png"} and "unlabelled/torn.png" not in labels.labels
    assert labels.content() == (after / "labels.csv").read_bytes()


def test_the_command_refines_files_and_its_folder_can_be_moved(run_on_files: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(run_on_files / "run", tmp_path / "run"))
    sets = [word for change in QUICK for word in ("--set", change)]
    done = autonovel("refine", run, "--confirm", "new-1", "--new-classes", "2", "--out", tmp_path / "a", "--device",
                     "cpu", "--keep-going", "--set", "run.map_points=40", *sets)  # fmt: skip
    assert done.returncode == 0, done.stderr
    moved = (tmp_path / "a").rename(tmp_path / "b")
    again = autonovel("evaluate", moved, "--json", "--device", "cpu")
    assert again.returncode == 0, again.stderr


@pytest.mark.slow
def test_features_of_a_pretrained_network_are_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                         capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    from autonovel import cached_views
    from test_photos import SHORT, write_photos

    photos = write_photos(tmp_path / "photos")
    sets = [*SHORT, f"data.path={photos}", 'run.systems=["rankstats-incremental"]', "data.workers=1",
            "count.new_classes=2"]  # fmt: skip
    run_recipe("photos", tmp_path / "run", 0, sets, Manner("cpu", keep_going=True))
    run = open_run(tmp_path / "run")
    pile = [row["id"] for row in run.rows() if not row["given_label"]]
    run.split("red", ["red/red0.png"], "sky")
    run.move([name for name in pile if "blue" in name], "sky")
    run.junk([pile[-1], "red/red3.png"])

    def never(*_: object) -> None:
        raise AssertionError("features were computed anew")

    monkeypatch.setattr(cached_views, "_views", never)
    after = refine(tmp_path / "run", asked="2", device="cpu", sets=["joint.batch_size=12"], keep_going=True)
    assert f"Features of 46 of 46 images are taken over from {tmp_path / 'run'}." in capsys.readouterr().out
    old = cached_views.load_views(tmp_path / "run" / cached_views.FEATURES, "images")
    new = cached_views.load_views(after / cached_views.FEATURES, "images")
    assert old is not None and new is not None
    before = [row["id"] for row in run.table]
    for place, row in enumerate(row for row in open_run(after).table if row["status"] == "ok"):
        assert torch.equal(new[place], old[before.index(row["id"])])
    settings = recipe.restore(json.loads((after / "run.json").read_text())["recipe"])
    assert settings.pretrain.kind == "imagenet"
    started = new_model(settings, sources.load(settings, 0, after)[0], 0).state_dict()
    adapter = "trunk.blocks.adapter.0.weight"
    assert torch.equal(started[adapter], load_file(tmp_path / "run" / "model.safetensors")[adapter])

    (photos / "green" / "green0.png").write_bytes((photos / "green" / "green1.png").read_bytes())  # another picture
    with pytest.raises(AssertionError, match="computed anew"):
        refine(tmp_path / "run", asked="2", out=tmp_path / "changed", device="cpu", sets=["joint.batch_size=12"])
    assert "not quite those of" in capsys.readouterr().out


def test_edits_are_kept_in_their_order(finished: Path) -> None:
    run = open_run(finished)
    run.rename("new-1", "a")
    run.undo()
    run.rename("new-1", "b")
    assert [edit.kind for edit in run.made()] == ["rename", "undo", "rename"]
    assert edits.replay(run.found, run.made(1)).names[5] == "a" and run.sorting.names[5] == "b"
