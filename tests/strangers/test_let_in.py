"""Names by strangers: harmless in spreadsheets and terminals, and the same again when read back."""

import csv
import io
import json
import subprocess
from pathlib import Path

import pytest
from bad_images import IMAGES
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from typer.testing import CliRunner

from autonovel import open_run
from autonovel.cli import app
from autonovel.data.decode import UnreadableError, decode
from autonovel.data.given_labels import GivenLabels
from autonovel.editing.found import COLUMNS
from autonovel.errors import RunFolderError
from autonovel.spreadsheet import harmless, harmless_line, line, plain, plain_rows
from autonovel.visible import visible
from odd_files import bomb
from runs import command, environment

SIGNS = "=+-@\t\r\n"
nasty = st.text(alphabet=st.sampled_from([*"'=+-@\t\r\n,\"a ü"]), max_size=6) | st.text(max_size=8)


@given(nasty)
def test_no_cell_is_a_formula_and_every_cell_reads_back(text: str) -> None:
    assert not harmless(text).startswith(tuple(SIGNS))
    assert plain(harmless(text)) == text


@given(st.lists(st.tuples(nasty, nasty), max_size=5))
def test_tables_read_back_whatever_names_hold(rows: list[tuple[str, str]]) -> None:
    written = [{"id": name, "class_name": label, "margin": "-0.5000"} for name, label in rows]
    columns = ("id", "class_name", "margin")
    text = line(columns) + "".join(harmless_line(columns, row) for row in written)
    try:
        encoded = text.encode()
    except UnicodeEncodeError:  # half a character, which no name of ours has
        return
    assert plain_rows(csv.DictReader(io.StringIO(encoded.decode(), newline=""))) == written


@given(st.dictionaries(nasty.filter(bool), nasty, min_size=1, max_size=5))
def test_labels_read_back(tmp_path_factory: pytest.TempPathFactory, labels: dict[str, str]) -> None:
    path = tmp_path_factory.mktemp("labels") / "labels.csv"
    given = GivenLabels({name: label or None for name, label in labels.items()})
    try:
        path.write_bytes(given.content())
    except UnicodeEncodeError:
        return
    assert GivenLabels.read(path).labels == given.labels


def test_a_run_of_an_earlier_version_reads_as_it_did(finished_with_files: Path) -> None:
    """Until now discovery.csv was written without apostrophes: names in it are what they are."""
    run = open_run(finished_with_files)
    assert any("/=img" in row["path"] for row in run.table)
    path = finished_with_files / "discovery.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    rows[0]["id"] = "=1+1.png"
    path.write_text(line(COLUMNS) + "".join(line(row[name] for name in COLUMNS) for row in rows))
    assert open_run(finished_with_files).found.ids[0] == "=1+1.png"
    path.write_text(line(COLUMNS) + "".join(harmless_line(COLUMNS, row) for row in rows))
    assert path.read_text().splitlines()[1].startswith("'=1+1.png,")
    again = open_run(finished_with_files)
    assert again.found.ids[0] == "=1+1.png"
    again.move(["=1+1.png"], "new-2")


def test_a_name_cannot_steer_the_terminal(finished: Path, tmp_path: Path) -> None:
    assert visible("a\x1b]0;title\x07\nb\tc\u202e\udcff") == "a\\x1b]0;title\\x07\nb\tc\\u202e\\udcff"
    done = CliRunner().invoke(app, ["move", str(finished), "\x1b[2J\x1b[31mred", "--to", "new-1"])
    assert done.exit_code == 2 and "\x1b" not in done.stderr and "\\x1b[2J" in done.stderr
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "\x1b[31mred.jpg").write_bytes(b"words")
    told = CliRunner().invoke(app, ["data", "check", "folder", str(tmp_path)])
    assert "\\x1b[31mred.jpg" in told.stdout and "\x1b[31m" not in told.stdout


def test_the_limit_of_pixels_holds_when_somebody_switches_off_pillows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    with pytest.raises(UnreadableError, match="1,600,000,000 pixels, and at most 178,956,970 are decoded"):
        decode(bomb(), 8, 3)


def test_bombs_are_refused_by_their_headers_without_taking_memory(tmp_path: Path) -> None:
    """Measured in a process of its own, since the memory of this one depends on the tests before."""
    for kind in IMAGES:
        if "bomb" in kind.name:
            kind.write(tmp_path / kind.name)
    program = (
        "import resource, sys, pathlib\n"
        "from autonovel.data.decode import UnreadableError, decode, quiet\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for path in pathlib.Path(sys.argv[1]).iterdir():\n"
        "    with quiet():\n"
        "        try: decode(path.read_bytes(), 32, 3)\n"
        "        except UnreadableError as error: print(path.name, error)\n"
        "print('grown', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    told = subprocess.run([*command()[:1], "-c", program, str(tmp_path)], capture_output=True, text=True, check=True,
                          env=environment()).stdout  # fmt: skip
    *refused, grown = told.splitlines()
    assert len(refused) == sum("bomb" in kind.name for kind in IMAGES) >= 8
    assert int(grown.split()[1]) < 200_000, "kilobytes: the smallest of them would take 700,000 when decoded"


def test_a_run_folder_of_another_version_says_so(finished: Path) -> None:
    path = finished / "run.json"
    facts = json.loads(path.read_text())
    path.write_text(json.dumps(facts | {"format": 7, "versions": {"autonovel": "3.1"}}))
    with pytest.raises(
        RunFolderError, match=r"run-folder format 7 \(written by autonovel 3.1\); this version, .* reads"
    ):
        open_run(finished)
