"""The one writer: what is written is whole or not there, and what cannot be written leaves nothing behind."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autonovel.editing import edited
from autonovel.editing.edited import EditedRun
from autonovel.errors import RunFolderError
from autonovel.storage import run_folder, writing
from autonovel.storage.documents import read_json, replace_file, write_json
from autonovel.storage.journal import Journal
from autonovel.storage.run_folder import RunFolder
from autonovel.storage.writing import AFTER, BEFORE, Act
from faults.content import NotWholeError, check_whole, differences
from faults.power import Disk
from faults.watchers import recorded


@pytest.fixture
def watched() -> Iterator[Callable[[writing.Watcher], None]]:
    """Return what sets a watcher for this test alone."""
    yield writing.watch
    writing.watch(None)


def full(kind: str, name: str = "") -> writing.Watcher:
    """Return a watcher under which every act of ``kind`` at ``name`` meets a full disk."""

    def watch(when: str, act: Act) -> None:
        if when == BEFORE and act.kind == kind and name in act.path.name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return watch


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_every_act_is_told_before_and_after(tmp_path: Path, watched: Callable[[writing.Watcher], None]) -> None:
    told: list[tuple[str, str]] = []
    watched(lambda when, act: told.append((when, act.kind)))
    writing.replace_file(tmp_path / "new" / "document", b"content")
    acts = ["folder", "sync-folder", "open", "write", "write", "sync", "rename", "sync-folder"]
    assert told == [(when, act) for act in acts for when in (BEFORE, AFTER)]
    assert (tmp_path / "new" / "document").read_bytes() == b"content"


@pytest.mark.parametrize("kind", ["open", "write", "sync", "rename"])
def test_a_document_that_cannot_be_finished_leaves_nothing_beside_it(
    tmp_path: Path, watched: Callable[[writing.Watcher], None], kind: str
) -> None:
    writing.replace_file(tmp_path / "document", b"old")
    watched(full(kind))
    with pytest.raises(OSError):
        writing.replace_file(tmp_path / "document", b"new")
    with pytest.raises(OSError), writing.replacing(tmp_path / "document") as file:
        file.write(b"new")
    assert names(tmp_path) == ["document"] and (tmp_path / "document").read_bytes() == b"old"


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_a_line_that_does_not_fit_is_cut_off_again(
    tmp_path: Path, watched: Callable[[writing.Watcher], None], kind: str
) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.append({"line": 1})
    seen = 0

    def second_piece(when: str, act: Act) -> None:
        nonlocal seen
        if when == BEFORE and act.kind == kind:
            seen += 1
            if kind == "sync" or seen == 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    watched(second_piece)
    with pytest.raises(RunFolderError, match="No space left"):
        journal.append({"line": 2})
    writing.watch(None)
    journal.append({"line": 3})
    assert Journal(tmp_path / "journal.jsonl").lines == journal.lines == [{"line": 1}, {"line": 3}]


def test_a_stream_is_in_its_place_only_when_it_is_whole(tmp_path: Path) -> None:
    content = bytes(range(256)) * 2000
    with writing.replacing(tmp_path / "rows") as file:
        for start in range(0, len(content), 1000):
            file.write(content[start : start + 1000])
        assert not (tmp_path / "rows").exists()
    assert names(tmp_path) == ["rows"] and (tmp_path / "rows").read_bytes() == content


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    for content in ("first", "second"):
        with writing.replacing_folder(tmp_path / "folder") as beside:
            writing.write_file(beside / content, b"")
    assert names(tmp_path) == ["folder", "folder/second"]
    with pytest.raises(ZeroDivisionError), writing.replacing_folder(tmp_path / "folder") as beside:
        writing.write_file(beside / "third", b"")
        raise ZeroDivisionError
    assert names(tmp_path) == ["folder", "folder/second"]


def test_a_folder_stays_where_the_new_one_cannot_take_its_place(
    tmp_path: Path, watched: Callable[[writing.Watcher], None]
) -> None:
    with writing.replacing_folder(tmp_path / "folder") as beside:
        writing.write_file(beside / "first", b"")
    watched(lambda when, act: full("rename", "partial")(when, act))
    with pytest.raises(OSError), writing.replacing_folder(tmp_path / "folder") as beside:
        writing.write_file(beside / "second", b"")
    assert names(tmp_path) == ["folder", "folder/first"]


def test_a_tree_is_copied_without_what_is_left_out(tmp_path: Path) -> None:
    for name in ("a/b/one", "a/.lock", "two"):
        writing.make_folder((tmp_path / "from" / name).parent)
        writing.write_file(tmp_path / "from" / name, name.encode(), sync=False)
    writing.copy_tree(tmp_path / "from", tmp_path / "to", ".lock".__eq__)
    assert names(tmp_path / "to") == ["a", "a/b", "a/b/one", "two"]
    writing.remove(tmp_path / "to")
    writing.remove(tmp_path / "to")
    assert names(tmp_path) == ["from", "from/a", "from/a/.lock", "from/a/b", "from/a/b/one", "from/two"]


def test_a_deleted_run_folder_is_not_made_anew(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path / "run"):
        write_json(tmp_path / "run" / "run.json", {"format": run_folder.FORMAT})
        writing.remove(tmp_path / "run")
        for write in (
            lambda: replace_file(tmp_path / "run" / "stages" / "model", b""),
            lambda: Journal(tmp_path / "run" / "metrics.jsonl").append({}),
            lambda: run_folder.subfolder_lock(tmp_path / "run" / "systems" / "kmeans"),
        ):
            with pytest.raises(RunFolderError, match="was deleted"):
                write()
        replace_file(tmp_path / "elsewhere", b"")
    assert names(tmp_path) == ["elsewhere"]


def test_resuming_sweeps_what_was_being_written(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with RunFolder.create(path):
        write_json(path / "run.json", {"format": run_folder.FORMAT})
    for name in ("stages/1/checkpoint.partial", "report.html.partial", "cache/x.partial", "systems/a/x.partial"):
        writing.make_folder((path / name).parent)
        (path / name).touch()
    RunFolder.resume(path).close()
    assert [name for name in names(path) if name.endswith("partial")] == ["cache/x.partial", "systems/a/x.partial"]
    write_json(path / "run.json", {"format": run_folder.FORMAT, "finished": "now"})
    (path / "report.html.partial").touch()
    RunFolder.resume(path).close()
    assert (path / "report.html.partial").exists()  # somebody may be writing it


def test_an_edit_stands_where_the_derived_document_cannot_be_written(
    finished: Path, watched: Callable[[writing.Watcher], None]
) -> None:
    run = EditedRun(finished)
    before = (finished / edited.CLASSES).read_bytes()
    watched(full("open", edited.CLASSES))
    run.rename("new-1", "seven")
    assert "No space left" in run.behind and (finished / edited.CLASSES).read_bytes() == before
    writing.watch(None)
    other = EditedRun(finished)
    assert "seven" in [entry["name"] for entry in other.classes()]
    with pytest.raises(edited.EditError):
        other.edit(edited.edits.Rename(5, "seven"), based_on=0)  # refused, and yet it has caught up
    assert read_json(finished / edited.CLASSES)["edits"] == 1


# ---------------------------------------------------------------------------------------------------
# the tools of the trials find what they are made to find


def disks(tmp_path: Path, write: Callable[[Path], None]) -> Disk:
    """Return the disk after ``write`` has written the document ``x`` in an empty folder."""
    acts: list[Act] = []
    disk = Disk.of(tmp_path)
    writing.watch(recorded(acts))
    try:
        write(tmp_path / "x")
    finally:
        writing.watch(None)
    for act in acts:
        disk.do(act, tmp_path)
    return disk


def careless(path: Path) -> None:
    writing.write_file(path.with_name("y"), b"content", sync=False)
    writing.rename(path.with_name("y"), path)


def test_a_power_cut_spares_what_was_synced_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"old")
    safe = disks(tmp_path / "a", lambda path: writing.replace_file(path, b"content"))
    assert all(safe.after_a_cut(kind) == {"x": b"content"} for kind in ("nothing", "names", "torn"))
    unsafe = disks(tmp_path / "b", careless)
    assert unsafe.after_a_cut("nothing") == {}
    assert unsafe.after_a_cut("names") == {"x": b""}
    assert unsafe.after_a_cut("torn") == {"x": b"con\0\0\0\0"}


def test_a_part_of_a_document_is_noticed(tmp_path: Path) -> None:
    for name, content in {
        "a.json": b'{"a": ',
        "b.csv": b"id,x\n1,2\n3",
        "c.safetensors": b"\x09",
        "d.html": b"<p>",
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(NotWholeError, match=name):
            check_whole(tmp_path)
        (tmp_path / name).rename(tmp_path / f"{name}.partial")  # which says so by its name
        check_whole(tmp_path)


def test_differences_are_told() -> None:
    found, wanted = {"a": 1, "b": 2, "left": 0}, {"a": 1, "b": 3, "gone": 0, "map": 0}
    assert differences(found, wanted, set(), ("map",)) == ["left is left over", "gone is missing", "b differs"]
    assert differences(found, wanted, {"b"}, ()) == ["left is left over", "gone is missing", "map is missing"]
