"""The run folder: whole after any failure, locked while in use, never deleted by mistake."""

import contextlib
import errno
import json
import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autonovel import choosing
from autonovel.errors import AutonovelError, RunFolderError, UsageError
from autonovel.network_file import kept_config
from autonovel.settings import Network
from autonovel.storage import run_folder, writing
from autonovel.storage.documents import read_json, replace_file, write_json
from autonovel.storage.folder_lock import LOCK, check_still_there
from autonovel.storage.journal import Journal
from autonovel.storage.run_folder import FORMAT, RunFolder, check_format
from autonovel.studies.parts import spent
from autonovel.training.loop import _seconds_of_finished

POSIX = pytest.mark.skipif(os.name == "nt", reason="signals and users of a POSIX system")


def content(folder: Path) -> dict[str, bytes]:
    """Return every file under ``folder`` but the lock."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != LOCK]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def a_run(path: Path, version: Any = FORMAT) -> Path:
    """Make a run folder with something in it and give up its lock."""
    with RunFolder.create(path):
        write_json(path / "run.json", {"format": version, "seed": 3})
        replace_file(path / "stages" / "1-rotation" / "model.safetensors", b"weights")
        replace_file(path / "report.html", b"<html>")
    return path


def full_disk(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# ---------------------------------------------------------------------------------------------------
# documents


def test_a_file_is_written_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.bin"
    replace_file(path, b"one")
    replace_file(path, b"two")
    assert content(tmp_path) == {"a/b/c.bin": b"two"}  # and nothing is left beside it


@pytest.mark.parametrize("call", ["replace", "fsync"])
@pytest.mark.parametrize("old", [b"old", None])
def test_a_failure_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, old: bytes | None
) -> None:
    path = tmp_path / "document.json"
    if old is not None:
        replace_file(path, old)
    with monkeypatch.context() as patch:
        patch.setattr(writing.os, call, full_disk)
        with pytest.raises(RunFolderError) as error:
            replace_file(path, b"new")
    assert str(path) in str(error.value)
    assert "No space left" in str(error.value) and "--out" in str(error.value)
    assert (path.read_bytes() if path.exists() else None) == old
    replace_file(path, b"new")  # once there is space again
    assert content(tmp_path) == {"document.json": b"new"}


def test_a_write_that_breaks_off_leaves_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    replace_file(path, b"old")

    def break_off(when: str, act: writing.Act) -> None:
        if (when, act.kind, act.content) == (writing.BEFORE, "write", b"w-content"):  # its beginning is on disk
            full_disk()

    writing.watch(break_off)
    try:
        with pytest.raises(RunFolderError):
            replace_file(path, b"beginning" + b"w-content")
    finally:
        writing.watch(None)
    assert path.read_bytes() == b"old"


def test_what_is_written_is_synced_before_it_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(writing.os, "fsync", lambda handle: (calls.append("fsync"), fsync(handle)))
    monkeypatch.setattr(writing.os, "replace", lambda a, b: (calls.append("replace"), replace(a, b)))
    replace_file(tmp_path / "x", b"1")
    assert calls == ["fsync", "replace"] if os.name == "nt" else calls == ["fsync", "replace", "fsync"]


WRITER = """
import sys
from pathlib import Path
from autonovel.storage.documents import replace_file
path, number = Path(sys.argv[1]), 0
while True:
    replace_file(path, bytes([number % 251]) * 300_000)
    number += 1
    if number == 1:
        print("writing", flush=True)
"""


@POSIX
def test_a_reader_never_sees_a_part_also_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "document"
    seen = set()
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None and writer.stdout.readline() == "writing\n"
        until = time.monotonic() + 0.15
        while time.monotonic() < until:
            seen.add(path.read_bytes())
        writer.kill()
        writer.wait()
        writer.stdout.close()
        seen.add(path.read_bytes())
    assert len(seen) > 1
    assert all(len(found) == 300_000 and len(set(found)) == 1 for found in seen)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    )
)
def test_json_comes_back_as_it_was(document: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        write_json(path, document)
        assert read_json(path) == document


def test_json_is_readable_text(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"name": "é", "list": [1]})
    assert (tmp_path / "x.json").read_text(encoding="utf-8") == '{\n  "name": "é",\n  "list": [\n    1\n  ]\n}\n'


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_json_has_no_nan(tmp_path: Path, bad: float) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"acc": 0.5})
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"acc": bad})
    assert read_json(path) == {"acc": 0.5}
    journal = Journal(tmp_path / "metrics.jsonl")
    journal.append({"loss": 1.0})
    with pytest.raises(ValueError, match="JSON"):
        journal.append({"loss": bad})
    assert Journal(journal.path).lines == [{"loss": 1.0}]


@pytest.mark.parametrize("damage", [b"", b'{"a": ', b"\xff\xfe", b"{'a': 1}"])
def test_damaged_json_is_explained(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "x.json").write_bytes(damage)
    with pytest.raises(RunFolderError) as error:
        read_json(tmp_path / "x.json")
    assert "x.json cannot be read" in str(error.value) and "--overwrite" in str(error.value)


def test_missing_json_is_explained(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError) as error:
        read_json(tmp_path / "x.json")
    assert "x.json is missing" in str(error.value) and str(tmp_path) in str(error.value)


# ---------------------------------------------------------------------------------------------------
# journals

LINES = [{"stage": "1-rotation", "epoch": 0, "loss": 0.5}, {"stage": "1-rotation", "epoch": 1, "name": "ä"}, {"a": []}]


def journal_with(path: Path, lines: list[dict[str, Any]]) -> Journal:
    journal = Journal(path)
    for line in lines:
        journal.append(line)
    return journal


def test_a_journal_grows_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "metrics.jsonl"
    journal = journal_with(path, LINES)
    assert journal.lines == LINES
    assert [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] == LINES
    before = path.read_bytes()
    assert Journal(path).lines == LINES
    Journal(path).append({"last": 1})
    assert path.read_bytes() == before + b'{"last": 1}\n'


def test_opening_a_journal_writes_nothing(tmp_path: Path) -> None:
    assert Journal(tmp_path / "metrics.jsonl").lines == []
    assert content(tmp_path) == {}


def test_a_last_line_torn_anywhere_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    whole = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in LINES)
    last = whole.rindex(b"\n", 0, -1) + 1
    middle = whole.index(b"\n") + 1
    for cut in range(middle, len(whole)):
        path.write_bytes(whole[:cut])
        kept = [line for line, end in zip(LINES, (middle - 1, last - 1, len(whole) - 1), strict=True) if cut >= end]
        assert Journal(path).lines == kept
        Journal(path).append({"next": 1})
        assert [json.loads(line) for line in path.read_bytes().splitlines()] == [*kept, {"next": 1}]


@pytest.mark.parametrize("rest", [b"\x00\x00\x00", b"\xff", b"{", b"nonsense", b'{"a": 1} trailing'])
def test_rubbish_behind_the_last_line_is_dropped(tmp_path: Path, rest: bytes) -> None:
    journal = journal_with(tmp_path / "metrics.jsonl", LINES)
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole + rest)
    again = Journal(journal.path)
    assert again.lines == LINES
    assert journal.path.read_bytes() == whole + rest  # who only reads never writes
    again.append({"last": 1})
    assert journal.path.read_bytes() == whole + b'{"last": 1}\n'


@pytest.mark.parametrize("damage", [b"{", b"\xff\xff", b'{"a": 1'])
def test_a_damaged_line_in_the_middle_is_an_error_and_nothing_is_lost(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "metrics.jsonl"
    text = b'{"a": 1}\n' + damage + b'\n{"b": 2}\n'
    path.write_bytes(text)
    with pytest.raises(RunFolderError) as error:
        Journal(path)
    assert "line 2" in str(error.value) and str(path) in str(error.value)
    assert path.read_bytes() == text


def test_rewinding_forgets_a_stage_from_an_epoch_on(tmp_path: Path) -> None:
    lines = [{"stage": stage, "epoch": epoch} for stage in ("1-rotation", "2-supervised") for epoch in range(4)]
    journal = journal_with(tmp_path / "metrics.jsonl", [*lines, {"note": "kept"}])
    journal.rewind("2-supervised", 2)
    wanted = [*lines[:6], {"note": "kept"}]
    assert journal.lines == wanted == Journal(journal.path).lines
    journal.append({"stage": "2-supervised", "epoch": 2})
    assert Journal(journal.path).lines == [*wanted, {"stage": "2-supervised", "epoch": 2}]
    journal.rewind("1-rotation", 0)
    assert [line.get("stage") for line in Journal(journal.path).lines] == ["2-supervised"] * 2 + [None] + [
        "2-supervised"
    ]


def test_rewinding_to_the_end_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = journal_with(tmp_path / "metrics.jsonl", LINES)
    monkeypatch.setattr(writing.os, "replace", full_disk)
    journal.rewind("1-rotation", 2)
    journal.rewind("3-joint", 0)
    assert journal.lines == LINES


def test_a_line_that_cannot_be_written_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = journal_with(tmp_path / "metrics.jsonl", LINES)
    monkeypatch.setattr(writing.os, "fsync", full_disk)
    with pytest.raises(RunFolderError) as error:
        journal.append({"more": 1})
    assert "No space left" in str(error.value)
    assert journal.lines == LINES


# ---------------------------------------------------------------------------------------------------
# create, resume, overwrite


def test_a_new_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "demo-seed0"
    with RunFolder.create(path) as folder:
        assert folder.path == path
        assert path.is_dir() and content(path) == {}


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    RunFolder.create(tmp_path).close()
    RunFolder.create(tmp_path).close()  # with nothing but its lock


def test_an_existing_run_is_never_overwritten_silently(tmp_path: Path) -> None:
    path = a_run(tmp_path / "run")
    before = content(path)
    with pytest.raises(UsageError) as error:
        RunFolder.create(path)
    assert error.value.exit_code == 2
    for word in (str(path), "already exists", "--resume", "--overwrite", "--out"):
        assert word in str(error.value)
    assert content(path) == before


@pytest.mark.parametrize("version", [FORMAT, FORMAT + 1, None])
def test_overwriting_a_run_empties_its_folder(tmp_path: Path, version: Any) -> None:
    path = a_run(tmp_path / "run", version)
    RunFolder.create(path, overwrite=True).close()
    assert [entry.name for entry in path.iterdir()] == [LOCK]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_that_is_no_run_is_never_touched(tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_bytes(b"cat")
    (tmp_path / "thesis.tex").write_bytes(b"text")
    before = content(tmp_path)
    with pytest.raises(UsageError) as error:
        RunFolder.create(tmp_path, overwrite=overwrite)
    assert str(tmp_path) in str(error.value) and "--out" in str(error.value)
    assert content(tmp_path) == before


def test_a_folder_with_a_run_file_of_somebody_else_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"scripts": {"start": "node ."}}')
    (tmp_path / "thesis.tex").write_bytes(b"text")
    before = content(tmp_path)
    with contextlib.suppress(AutonovelError):
        RunFolder.create(tmp_path, overwrite=True).close()
    assert content(tmp_path) == before


OVERWRITE = """
import os, signal, sys
from pathlib import Path
from autonovel.storage import writing
from autonovel.storage.run_folder import RunFolder
if "kill" in sys.argv:
    writing.watch(lambda when, act: os.kill(os.getpid(), signal.SIGKILL) if act.path.name == "stages" else None)
RunFolder.create(Path(sys.argv[1]), overwrite=True).close()
"""


def overwrite_elsewhere(path: Path, *arguments: str) -> int:
    """Let another process overwrite ``path``; return its exit code."""
    return subprocess.run([sys.executable, "-c", OVERWRITE, str(path), *arguments], capture_output=True).returncode


@pytest.mark.parametrize("links", [["file"], ["file", "folder"]])
def test_overwriting_removes_links_and_not_what_they_name(tmp_path: Path, links: list[str]) -> None:
    path, elsewhere = a_run(tmp_path / "run"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "thesis.tex").write_bytes(b"text")
    for link in links:
        (path / link).symlink_to(elsewhere / "thesis.tex" if link == "file" else elsewhere)
    code = overwrite_elsewhere(path)
    assert content(elsewhere) == {"thesis.tex": b"text"}
    assert code == 0
    assert [entry.name for entry in path.iterdir()] == [LOCK]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "run").write_bytes(b"precious")
    with pytest.raises(UsageError) as error:
        RunFolder.create(tmp_path / "run", overwrite)
    assert "is a file" in str(error.value) and "--out" in str(error.value)
    assert (tmp_path / "run").read_bytes() == b"precious"
    with pytest.raises(RunFolderError):
        RunFolder.create(tmp_path / "run" / "below")


def test_resume_keeps_everything(tmp_path: Path) -> None:
    path = a_run(tmp_path / "run")
    before = content(path)
    with RunFolder.resume(path) as folder:
        assert folder.path == path
    assert content(path) == before


def test_resuming_what_is_not_there_is_explained(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError) as error:
        RunFolder.resume(tmp_path / "none")
    assert "no run folder" in str(error.value) and "was started" in str(error.value)
    assert error.value.exit_code == 4
    assert not (tmp_path / "none").exists()
    (tmp_path / "stranger.txt").write_text("not a run")
    with pytest.raises(RunFolderError, match=r"run\.json is missing"):
        RunFolder.resume(tmp_path)
    assert content(tmp_path) == {"stranger.txt": b"not a run"}


@pytest.mark.parametrize("document", [{"format": FORMAT + 1}, {"format": 0}, {"format": str(FORMAT)}, {}, [], 7, None])
def test_another_format_is_refused(tmp_path: Path, document: Any) -> None:
    write_json(tmp_path / "run.json", document)
    for use in (RunFolder.resume, check_format):
        with pytest.raises(RunFolderError) as error:
            use(tmp_path)
        found = document.get("format") if isinstance(document, dict) else None
        assert f"format {found}" in str(error.value) and f"reads format {FORMAT}" in str(error.value)
        assert "--overwrite" in str(error.value)


def test_the_right_format_returns_the_facts(tmp_path: Path) -> None:
    assert check_format(a_run(tmp_path / "run")) == {"format": FORMAT, "seed": 3}


@POSIX
def test_a_kill_while_overwriting_leaves_a_folder_that_can_be_overwritten(tmp_path: Path) -> None:
    path = a_run(tmp_path / "run")
    assert overwrite_elsewhere(path, "kill") == -signal.SIGKILL
    assert overwrite_elsewhere(path) == 0
    assert content(path) == {}


def test_a_kill_before_the_first_document_leaves_a_usable_folder(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run").close()
    (tmp_path / "run" / "run.json.partial").write_bytes(b'{"form')
    RunFolder.create(tmp_path / "run", overwrite=True).close()


# ---------------------------------------------------------------------------------------------------
# the lock

HOLDER = """
import sys, time
from pathlib import Path
from autonovel.storage.documents import write_json
from autonovel.storage.run_folder import RunFolder
with RunFolder.create(Path(sys.argv[1])):
    write_json(Path(sys.argv[1]) / "run.json", {"format": int(sys.argv[2])})
    print("held", flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def held_elsewhere(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Let another process hold the lock of ``path``."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path), str(FORMAT)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        yield holder
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()  # type: ignore[union-attr]


def test_a_second_user_in_one_process_is_refused(tmp_path: Path) -> None:
    path = a_run(tmp_path / "run")
    before = content(path)
    with RunFolder.resume(path):
        for use in (RunFolder.resume, lambda p: RunFolder.create(p, overwrite=True)):
            with pytest.raises(RunFolderError) as error:
                use(path)
            assert "in use by another" in str(error.value) and str(path) in str(error.value)
        assert content(path) == before
    RunFolder.resume(path).close()


@POSIX
def test_a_lock_is_refused_while_its_owner_lives_and_free_when_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with held_elsewhere(path) as holder:
        with pytest.raises(RunFolderError, match="in use by another"):
            RunFolder.resume(path)
        with pytest.raises(RunFolderError, match="in use by another"):
            RunFolder.create(path, overwrite=True)
        assert read_json(path / "run.json") == {"format": FORMAT}
        holder.send_signal(signal.SIGKILL)
        assert holder.wait() == -signal.SIGKILL
        RunFolder.resume(path).close()


@POSIX
def test_a_finished_run_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run"
    with held_elsewhere(path) as holder:
        write_json(path / "run.json", {"format": FORMAT, "finished": "now"})
        monkeypatch.setattr(run_folder, "MOMENT", 0.2)
        with pytest.raises(RunFolderError, match="in use by another"):
            RunFolder.resume(path)
        monkeypatch.setattr(run_folder, "MOMENT", 60.0)
        threading.Timer(0.3, holder.kill).start()  # as another variant does that found it finished
        RunFolder.resume(path).close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_worker_holds_no_lock(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    write_json(tmp_path / "run" / "run.json", {"format": FORMAT})
    forked = multiprocessing.get_context("fork")
    alive = forked.Event()
    worker = forked.Process(target=lambda: alive.set() or time.sleep(60))
    worker.start()
    try:
        assert alive.wait(60)  # until then it has the lock of its parent
        with pytest.raises(RunFolderError, match="in use"):
            RunFolder.resume(tmp_path / "run")  # its owner lives
        folder.close()
        RunFolder.resume(tmp_path / "run").close()  # while the worker still lives
    finally:
        worker.kill()
        worker.join()


def test_a_kill_before_the_first_document_leaves_the_cache(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run").close()
    replace_file(tmp_path / "run" / "cache" / "decoded", b"pixels")
    RunFolder.resume(tmp_path / "run").close()
    assert (tmp_path / "run" / "cache" / "decoded").read_bytes() == b"pixels"
    write_json(tmp_path / "run" / "run.json", {"format": FORMAT})
    RunFolder.create(tmp_path / "run", overwrite=True).close()
    assert content(tmp_path / "run") == {}


@POSIX
def test_a_subfolder_lock_waits_for_a_dying_owner(tmp_path: Path) -> None:
    path = tmp_path / "systems" / "rankstats"
    with held_elsewhere(path) as holder:
        start = time.monotonic()
        with pytest.raises(RunFolderError, match="in use by another"):
            run_folder.subfolder_lock(path, patience=0.2)
        assert time.monotonic() - start >= 0.2
        timer = threading.Timer(0.3, holder.kill)
        timer.start()
        run_folder.subfolder_lock(path, patience=30).close()
        timer.join()
        assert holder.wait() == -signal.SIGKILL


def test_a_subfolder_lock_makes_its_folder(tmp_path: Path) -> None:
    with run_folder.subfolder_lock(tmp_path / "systems" / "kmeans") as folder:
        assert folder.path.is_dir()


@POSIX
@pytest.mark.parametrize("reused", [False, True], ids=["number nobody's", "number another file's"])
def test_a_lock_let_go_while_it_is_looked_at_is_no_deleted_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reused: bool
) -> None:
    """Two threads of one process edit the same run: one closes its lock between the other's two looks at it."""
    held = RunFolder.create(tmp_path / "run")
    look, looked_at = os.fstat, []

    def look_too_late(number: int) -> os.stat_result:
        held.close()
        looked_at.append(number)
        if reused:
            os.dup2(nameless.fileno(), number)
        return look(number)

    with tempfile.TemporaryFile() as nameless, monkeypatch.context() as patch:
        patch.setattr("autonovel.storage.folder_lock.os.fstat", look_too_late)
        check_still_there(tmp_path / "run" / "results.json")
    assert len(looked_at) == 1
    if reused:
        os.close(looked_at[0])


# ---------------------------------------------------------------------------------------------------
# where nothing may be written

AS_ORDINARY_USER = """
import fcntl, os, sys
from pathlib import Path
from autonovel.storage.documents import replace_file, write_json
from autonovel.storage.journal import Journal
from autonovel.storage.run_folder import RunFolder, subfolder_lock
if os.getuid() == 0:  # to root a read-only folder is writable
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
folder = Path(sys.argv[1])
try:
    eval(sys.argv[2])
    print("written")
except Exception as error:
    print(type(error).__name__, error)
sys.stdout.flush()
os._exit(0)
"""


@pytest.fixture
def read_only() -> Iterator[Path]:
    """Return a run folder in which an ordinary user may read and not write."""
    outer = Path(tempfile.mkdtemp(prefix="autonovel-test-"))
    outer.chmod(0o755)
    path = a_run(outer / "run")
    Journal(path / "metrics.jsonl").append({"loss": 1})
    paths = [path, *path.rglob("*")]
    for entry in paths:
        entry.chmod(0o555 if entry.is_dir() else 0o444)
    yield path
    for entry in paths:
        entry.chmod(0o755)
    shutil.rmtree(outer)


@POSIX
@pytest.mark.parametrize(
    "action",
    [
        "RunFolder.create(folder / 'new')",
        "RunFolder.create(folder / 'new' / 'deeper')",
        "RunFolder.create(folder, overwrite=True)",
        "RunFolder.resume(folder)",
        "replace_file(folder / 'report.html', b'new')",
        "write_json(folder / 'run.json', {})",
        "write_json(folder / 'results.json', {})",
        "Journal(folder / 'metrics.jsonl').append({'loss': 2})",
        "Journal(folder / 'other.jsonl').append({'loss': 2})",
        "write_json(folder / 'new' / 'results.json', {})",
        "Journal(folder / 'new' / 'metrics.jsonl').append({'loss': 2})",
        "subfolder_lock(folder / 'systems' / 'kmeans')",
    ],
)
def test_a_read_only_folder_is_explained(read_only: Path, action: str) -> None:
    before = content(read_only)
    done = subprocess.run(
        [sys.executable, "-c", AS_ORDINARY_USER, str(read_only), action], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("RunFolderError cannot write "), done.stdout + done.stderr
    assert "Permission denied" in done.stdout and "--out" in done.stdout
    assert content(read_only) == before


@pytest.mark.parametrize("content", ["{}", "[]", '{"seconds": "long", "chosen": 3, "weights": 1, "edits": "x"}'])
def test_documents_without_what_is_needed_are_named(tmp_path: Path, content: str) -> None:
    job: Any = SimpleNamespace(folder=tmp_path)
    readers: dict[str, Callable[[], object]] = {
        "stage.json": lambda: _seconds_of_finished(tmp_path),
        "choice.json": lambda: choosing.seconds_spent(job),
        "spent.json": lambda: spent(tmp_path),
        "network.json": lambda: kept_config(tmp_path, Network(name="hf", model="someone/something")),
    }
    for name, read in readers.items():
        (tmp_path / name).write_text(content)
        with pytest.raises(RunFolderError, match=rf"{name} is damaged, or was not written by autonovel"):
            read()
