"""Two thousand files with every kind of oddity go through a run, and each is accounted for."""

import csv
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from absolute_paths import paths_in
from autonovel.data.inventory import inventory_of
from autonovel.spreadsheet import plain_rows
from odd_files import BAD, GOOD, OK, write_odd_files
from runs import TINY, autonovel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and such names are not there")

COUNT = 2000
QUICK = ("pretrain.epochs=1", "supervised.epochs=1", "joint.epochs=1", "joint.warmup_epochs=0", "run.map_points=100",
         "run.systems=rankstats-incremental", "data.source=folder", "data.per_class=0")  # fmt: skip


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    root = tmp_path_factory.mktemp("odd") / "photos"
    return root, write_odd_files(root, COUNT)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return plain_rows(csv.DictReader(file))


def fits(status: str, wanted: str) -> bool:
    return status == OK if wanted == OK else status.startswith("unreadable: ") and wanted in status


@pytest.mark.slow
def test_a_run_accounts_for_every_file(odd: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    root, wanted = odd
    assert len(wanted) == COUNT
    sets = [word for one in QUICK for word in ("--set", one)]
    run = tmp_path / "run"
    done = autonovel("run", TINY, "--data", root, "--out", run, "--new-classes", 3, "--keep-going", *sets)
    assert done.returncode == 0, done.stderr
    rows = rows_of(run / "discovery.csv")
    assert Counter(row["id"] for row in rows) == Counter(wanted.keys())
    for row in rows:
        assert fits(row["status"], wanted[row["id"]]), row
        known = row["id"].split("/")[0] if row["id"].startswith(("cat/", "dog/")) else ""
        assert row["given_label"] == (known if row["status"] == OK else ""), row
        assert bool(row["class_name"]) == (row["status"] == OK) and row["path"] == row["id"]
    bad = sum(status != OK for status in wanted.values())
    assert f"{bad} of {COUNT} files cannot be read" in done.stdout and "notes.txt" in done.stdout

    told = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()
            and paths_in(path.read_bytes(), tmp_path.parent)}  # fmt: skip
    assert told == {"run.json"}, "it notes the command and where the images are, by which a run is resumed and reviewed"

    later = autonovel("predict", run, root, "--to", tmp_path / "p.csv")
    assert later.returncode == 0, later.stderr
    predicted = {os.path.relpath(row["path"], root): row["status"] for row in rows_of(tmp_path / "p.csv")}
    assert set(predicted) == set(wanted) and len(rows_of(tmp_path / "p.csv")) == COUNT
    for name, status in predicted.items():  # names that are no UTF-8 can be read here
        assert fits(status, OK if "\\xff" in name else wanted[name]), (name, status)


def test_the_inventory_counts_them(odd: tuple[Path, dict[str, str]]) -> None:
    root, wanted = odd
    found = inventory_of(root)
    assert found.files == COUNT and set(found.unreadable) <= {name for name, status in wanted.items() if status != OK}
    assert found.images + len(found.unreadable) == COUNT
    whole_headers = {name for name, (_, reason) in BAD.items() if "truncated" in name}  # only decoding finds these
    unseen = {Path(name).name for name, status in wanted.items() if status != OK} - {
        Path(name).name for name in found.unreadable
    }
    assert unseen <= whole_headers
    assert found.turned == 3 * 7 and found.animated >= 3 * len([name for name in GOOD if "animated" in name])
    assert found.kinds["CMYK"] == 3 * 3 and found.kinds["black and white"] == 3
    assert any("notes.txt" in note for note in found.notes)
