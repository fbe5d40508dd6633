"""Corrections of a run on disk: through Python and the command line, after kills, and by several people at once."""

import csv
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from autonovel import Discoverer, open_run
from autonovel.commands.corrections import Correction
from autonovel.data import sources
from autonovel.editing import edits
from autonovel.editing.edited import EditConflictError, EditedRun
from autonovel.editing.found import found_classes
from autonovel.editing.refining import refinement
from autonovel.editing.sorting import JUNK, EditError
from autonovel.errors import RunFolderError, UsageError
from autonovel.export import export_run
from autonovel.recipe import restore
from autonovel.report.subject import corrected
from autonovel.review.view import View
from autonovel.storage.documents import write_json
from autonovel.storage.run_folder import RunFolder
from runs import autonovel


@pytest.fixture
def run(finished: Path) -> EditedRun:
    return open_run(finished)


def lines(run: EditedRun) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run.folder / "edits.jsonl").read_text().splitlines()]


def test_an_edit_is_on_disk_when_it_returns_and_others_see_it(run: EditedRun) -> None:
    other = open_run(run.folder)
    before = (run.folder / "discovery.csv").read_bytes()
    run.rename("new-1", "seven")
    told = {"time": "", "told": "renamed new-1 to seven"}
    assert lines(run)[0] | {"time": ""} == {"edit": "rename", "number": 5, "name": "seven", **told}
    assert other.sorting.names[5] == "seven"
    other.merge("seven", "new-2")
    assert run.sorting.names == other.sorting.names
    assert 6 not in run.sorting.names
    assert (run.folder / "discovery.csv").read_bytes() == before, "what was found stays"


def test_classes_json_follows_the_edits_and_remembers_what_was_found(run: EditedRun) -> None:
    found = found_classes(run.folder)
    run.rename("new-1", "seven")
    run.merge("seven", "new-2")
    run.split("new-3", [run.found.ids[row] for row in run.found.members(7)[:3]], "odd")
    run.junk_class("new-5")
    document = json.loads((run.folder / "classes.json").read_text())
    assert [entry["name"] for entry in document["classes"]] == [
        "0",
        "1",
        "2",
        "3",
        "4",
        "seven",
        "new-3",
        "new-4",
        "odd",
    ]
    assert document["classes"][5]["size"] == len(run.found.members(5)) + len(run.found.members(6))
    assert {entry["found_as"]: entry["answers"] for entry in document["gone"]} == {"new-2": "seven", "new-5": "junk"}
    assert document["edits"] == 4 and document["junk"] == len(run.found.members(9))
    assert found_classes(run.folder) == found
    assert EditedRun(run.folder).sorting.names == run.sorting.names


def test_rows_carry_the_edits_and_what_was_found(run: EditedRun) -> None:
    moved, junk = run.found.ids[run.found.members(5)[0]], run.found.ids[run.found.members(5)[1]]
    run.move([moved], "3")
    run.junk([junk])
    run.merge("new-3", "new-2")
    rows = {row["id"]: row for row in run.rows()}
    assert (rows[moved]["class_id"], rows[moved]["class_name"], rows[moved]["found_class"]) == ("3", "3", "new-1")
    assert (rows[junk]["status"], rows[junk]["class_name"], rows[junk]["class_id"]) == ("junk", "", "")
    for row, before in zip(run.rows(), run.table, strict=True):
        assert row["second_class"] != "new-2", "a merged class is nobody's second choice"
        assert row["second_class"] == "" or row["second_class"] != row["class_name"]
        assert row["confidence"] == before["confidence"]


def test_a_single_image_is_named_by_its_id_alone(run: EditedRun) -> None:
    first, second, third = (run.found.ids[row] for row in run.found.members(5)[:3])
    run.move(first, "3")
    run.junk(Path(second))
    run.split("new-1", third, "odd")
    assert [run.sorting.class_of[run.sorting.rows([name])[0]] for name in (first, second, third)] == [3, JUNK, 10]
    with pytest.raises(EditError, match=r"no image butterfly\.jpg\. Images"):
        run.move("butterfly.jpg", "3")


@pytest.mark.parametrize(
    "about", [{"confirmed": ["1", "4"], "made_known": ["0", "1"]}, {"confirmed": ["1"]}], ids=["now", "earlier"]
)
def test_a_class_that_a_review_made_known_can_be_renamed(
    finished_with_files: Path, about: dict[str, list[str]]
) -> None:
    write_json(finished_with_files / "refined.json", about)
    run, before = open_run(finished_with_files), open_run(finished_with_files).rows()
    with pytest.raises(EditError, match="'4' is a known class: it comes from your labels"):
        run.rename("4", "four")
    with pytest.raises(EditError, match="'1' is a known class since this run was refined: it can be renamed, but not"):
        run.merge("new-1", "1")
    run.rename("1", "un")
    named = {"class_name", "second_class", "given_label", "nearest_known"}
    for row, was in zip(run.rows(), before, strict=True):
        assert row == {column: "un" if value == "1" and column in named else value for column, value in was.items()}
    assert {row["nearest_known"] for row in run.rows()} >= {"un"}
    classes = json.loads((run.folder / "classes.json").read_text())["classes"]
    assert (classes[1]["name"], classes[1]["found_as"], classes[1]["kind"]) == ("un", "1", "known")
    shown = View(run).state()["classes"]
    assert [one["renamable"] for one in shown[:5]] == ["made_known" in about, True, False, False, False]
    assert corrected(run)[0].names[1] == "un"
    loaded = Discoverer.load(run.folder)
    assert loaded.classes_[1] == "un" and (loaded.labels_ == open_run(run.folder).found.class_of).all()
    after = refinement(run, ["new-1"], every=False)
    label = after.labels().labels
    assert {label[row["id"]] for row in before if row["class_name"] == "1"} == {"un"}
    assert after.made_known == [*(["0"] if "made_known" in about else []), "un", "new-1"]
    run.undo()
    assert run.rows() == before


def test_splitting_by_itself_finds_two_clusters(run: EditedRun) -> None:
    from autonovel.embedding import Embedding

    path = run.folder / "embedding.safetensors"
    found = Embedding.load(path)
    rows = run.found.members(6)
    apart = rows[:7]
    found.z[apart.tolist()] += 100
    found.save(path)
    run.split("new-2")
    assert run.sorting.members(10).tolist() == apart.tolist(), "the smaller part leaves"
    assert run.sorting.names[10] == "new-6", "a name that no class had"
    assert run.sorting.answers[6] == 6


def test_a_class_of_one_image_cannot_be_split(run: EditedRun) -> None:
    run.move([run.found.ids[row] for row in run.found.members(9)[1:]], "new-1")
    with pytest.raises(EditError, match="needs two"):
        run.split("new-5")


def test_a_refused_edit_leaves_no_trace(run: EditedRun) -> None:
    for refused in (lambda: run.rename("0", "zero"), lambda: run.merge("new-1", "new-1"), run.undo):
        with pytest.raises(EditError):
            refused()
    assert not (run.folder / "edits.jsonl").exists()


def test_an_edit_based_on_an_older_state_is_a_conflict(run: EditedRun) -> None:
    run.edit(edits.Rename(5, "a"), based_on=0)
    with pytest.raises(EditConflictError, match="based on 0"):
        open_run(run.folder).edit(edits.Rename(6, "b"), based_on=0)
    assert len(lines(run)) == 1
    run.edit(edits.Rename(6, "b"), based_on=1)


def test_many_editors_lose_nothing(run: EditedRun) -> None:
    ids = run.found.ids[:12]

    def junk(name: str) -> None:
        open_run(run.folder).junk([name])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(junk, ids))
    assert sorted(line["images"][0] for line in lines(run)) == sorted(ids)  # type: ignore[index]
    assert len(run.sorting.members(JUNK)) == 12


def test_a_line_torn_by_a_kill_is_cut_off_by_the_next_edit(run: EditedRun) -> None:
    run.rename("new-1", "seven")
    with (run.folder / "edits.jsonl").open("ab") as file:
        file.write(b'{"edit": "rename", "num')
    again = open_run(run.folder)
    assert again.sorting.names[5] == "seven" and again.n_edits == 1
    again.rename("new-2", "six")
    assert [line["name"] for line in lines(run)] == ["seven", "six"]


def test_classes_json_lost_to_a_kill_is_made_again_by_the_next_edit(run: EditedRun) -> None:
    before = (run.folder / "classes.json").read_bytes()
    run.rename("new-1", "seven")
    (run.folder / "classes.json").write_bytes(before)  # as if killed between the two writes
    assert open_run(run.folder).sorting.names[5] == "seven"
    open_run(run.folder).rename("new-2", "six")
    assert {"seven", "six"} <= {e["name"] for e in json.loads((run.folder / "classes.json").read_text())["classes"]}


def test_a_damaged_journal_is_told_of(run: EditedRun) -> None:
    (run.folder / "edits.jsonl").write_text('{"edit": "rename", "number": 77, "name": "x"}\n')
    with pytest.raises(RunFolderError, match="does not fit"):
        open_run(run.folder)


def test_a_locked_run_is_not_edited(run: EditedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autonovel.storage.run_folder.MOMENT", 0.0)  # or it would be tried for ten seconds
    monkeypatch.setattr("autonovel.editing.edited.subfolder_lock", lambda path: RunFolder.resume(path))
    with RunFolder.resume(run.folder), pytest.raises(RunFolderError, match="in use"):
        run.rename("new-1", "x")


def test_unreadable_files_keep_their_rows_and_are_in_no_class(finished: Path) -> None:
    with (finished / "discovery.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row, number in ((rows[0], ""), (rows[250], "-1")):
        row.update(dict.fromkeys(row, ""), id=row["id"], status="unreadable", class_id=number)
    with (finished / "discovery.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    run = open_run(finished)
    run.merge("new-1", "new-2")
    assert len(run.rows()) == 400
    assert [run.rows()[n]["status"] for n in (0, 250)] == ["unreadable"] * 2
    assert sum(entry["size"] for entry in run.classes()) == 398
    with pytest.raises(EditError, match="could not be read"):
        run.move([rows[0]["id"]], "new-1")
    for to, kept in (("csv", 400), ("folders", 398), ("fiftyone", 398), ("labelstudio", 398)):
        export_run(finished, to, finished.parent / to)
        place = finished.parent / to
        files = list(place.rglob("*.png")) if place.is_dir() else place.read_text(encoding="utf-8").splitlines()[1:]
        assert len(files) == kept
    state = View(run).state()
    assert state["unreadable"] == 2 and sum(one["size"] for one in state["classes"]) == 398


def test_only_finished_runs_are_opened(finished: Path, tmp_path: Path) -> None:
    facts = json.loads((finished / "run.json").read_text())
    del facts["finished"]
    (finished / "run.json").write_text(json.dumps(facts))
    with pytest.raises(RunFolderError, match="not finished"):
        open_run(finished)
    with pytest.raises(RunFolderError, match="no run folder"):
        open_run(tmp_path / "nothing")


def test_a_loaded_discoverer_follows_the_edits(run: EditedRun) -> None:
    settings = restore(run.facts["recipe"])
    images = sources.load(settings, 0)[0].images.numpy()
    plain = Discoverer.load(run.folder)
    p, answers = plain.predict_proba(images), plain.predict(images)
    run.rename("new-1", "seven")
    run.merge("seven", "new-2")
    run.junk_class("new-3")
    run.split("new-4", [run.found.ids[row] for row in run.found.members(8)[:2]], "odd")
    edited = Discoverer.load(run.folder)
    assert list(edited.classes_) == ["0", "1", "2", "3", "4", "seven", "", "", "new-4", "new-5", "odd"]
    assert edited.n_new_ == 4
    q = edited.predict_proba(images)
    assert q[:, 5] == pytest.approx(p[:, 5] + p[:, 6], abs=1e-6)
    assert q[:, 6:8].sum() == 0 and q[:, 10].sum() == 0
    assert 1 - q.sum(axis=1) == pytest.approx(p[:, 7], abs=1e-5)
    folded = np.stack([*p[:, :5].T, p[:, 5] + p[:, 6], p[:, 7], *p[:, 8:].T])
    assert edited.predict(images).tolist() == np.array([0, 1, 2, 3, 4, 5, JUNK, 8, 9])[folded.argmax(axis=0)].tolist()
    assert edited.labels_.tolist() == run.sorting.class_of.tolist()
    for _ in range(4):
        run.undo()
    back = Discoverer.load(run.folder)
    assert list(back.classes_) == list(plain.classes_) and back.predict(images).tolist() == answers.tolist()


def test_the_command_that_takes_an_edit_back_can_be_pasted(
    run: EditedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = run.folder.rename(tmp_path / "Meine Käfer 2024")
    with Correction(place) as there:
        there.rename("new-1", "beetle")
    assert f"(autonovel undo '{place}' takes it back)" in capsys.readouterr().out
    with Correction(place) as there:
        there.undo()
    with pytest.raises(UsageError, match=rf"autonovel rename '{place}' new-1 NAME"):
        refinement(there, (), False)


@pytest.mark.slow
def test_the_command_line_does_the_same(run: EditedRun) -> None:
    folder, ids = run.folder, run.found.ids
    done = [
        autonovel("rename", folder, "new-1", "seven"),
        autonovel("merge", folder, "seven", "new-2", "new-3"),
        autonovel("split", folder, "new-4", "--images", ids[run.found.members(8)[0]], "--name", "odd"),
        autonovel("move", folder, ids[0], ids[1], "--to", "odd"),
        autonovel("junk", folder, ids[2]),
        autonovel("undo", folder),
    ]
    assert [one.returncode for one in done] == [0] * 6, [one.stderr for one in done]
    assert "Edit 2: merged new-2, new-3 into seven. (autonovel undo" in done[1].stdout
    assert done[5].stdout == "Edit 6: undid: marked 1 image as junk.\n"
    assert run.sorting.names[10] == "odd" and run.sorting.class_of[:3].tolist() == [10, 10, run.found.class_of[2]]
    listed = json.loads(autonovel("edits", folder, "--json").stdout)
    assert [edit["in_force"] for edit in listed["edits"]] == [True] * 4 + [False] * 2
    told = autonovel("edits", folder).stdout
    assert "6 edits, 4 in force" in told and "marked 1 image as junk  (undone)" in told
    wrong = autonovel("merge", folder, "seven", "0")
    assert wrong.returncode == 2 and "known class" in wrong.stderr
    assert autonovel("junk", folder).returncode == 2
    assert autonovel("undo", folder / "nothing").returncode == 4


def test_correcting_needs_no_torch(run: EditedRun) -> None:
    program = (
        f"import sys, autonovel; r = autonovel.open_run({str(run.folder)!r}); r.rename('new-1', 'x'); r.rows(); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
