"""Whole runs on image files: the same bits through both loaders, and after a kill."""

import csv
import json
import signal
from pathlib import Path

import pytest

from image_files import write_digits
from runs import TINY, autonovel, numbers
from stopped_runs import in_journal, stop_when

BROKEN = "unlabelled/5-broken.png"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_digits(tmp_path_factory.mktemp("digits"))
    (root / BROKEN).write_bytes((root / "unlabelled" / "5-0000.png").read_bytes()[:80])
    with (root / "truth.csv").open("a") as file:
        file.write(f"{BROKEN},5\n")
    return root


def arguments(digits: Path, folder: Path, loader: str, *more: str) -> list[object]:
    sets = ["data.source=folder", "count.new_classes=5", f"data.loader={loader}", "data.workers=2"]
    given = [part for text in sets for part in ("--set", text)]
    return ["run", TINY, "--data", digits, "--out", folder, "--device", "cpu", *given, *more]


@pytest.fixture(scope="module")
def streamed(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streamed") / "run"
    done = autonovel(*arguments(digits, folder, "streaming"))
    assert done.returncode == 0, done.stderr
    assert "Images: 401, 58 kB decoded; streaming (data.loader = streaming), decoded by 2 processes" in done.stdout
    assert f"1 of 401 files cannot be read and is left out: {BROKEN} (" in done.stdout
    return folder


@pytest.mark.slow
def test_both_loaders_train_to_the_same_bits(digits: Path, streamed: Path, tmp_path: Path) -> None:
    resident = tmp_path / "run"
    done = autonovel(*arguments(digits, resident, "resident"))
    assert done.returncode == 0, done.stderr
    assert "resident (data.loader = resident)" in done.stdout
    assert numbers(resident) == numbers(streamed)
    pixels = [
        json.loads((run / "systems" / "kmeans-pixels" / "results.json").read_text()) for run in (resident, streamed)
    ]
    assert pixels[0]["scores"] == pixels[1]["scores"]
    assert (resident / "run.json").exists()
    facts = [json.loads((run / "run.json").read_text()) for run in (resident, streamed)]
    assert facts[0]["digest"] == facts[1]["digest"] and facts[0]["images"] == [400, 1, 12, 12]


def test_every_file_has_a_row(streamed: Path) -> None:
    with (streamed / "discovery.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 401 and [row["status"] for row in rows[:-1]] == ["ok"] * 400
    assert rows[0]["id"] == rows[0]["path"] == "0/0-0000.png" and rows[0]["given_label"] == "0"
    assert rows[-1]["id"] == BROKEN and rows[-1]["status"].startswith("unreadable: ") and rows[-1]["class_name"] == ""


def test_decoded_images_are_gone_with_the_end_of_the_run(streamed: Path) -> None:
    assert [path.name[:7] for path in (streamed / "cache").iterdir()] == ["survey-"]


def test_a_finished_run_is_recognised_through_the_other_loader(digits: Path, streamed: Path) -> None:
    before = numbers(streamed)
    again = autonovel(*arguments(digits, streamed, "resident", "--resume"))
    assert again.returncode == 0, again.stderr
    assert "nothing was left to do" in again.stdout and numbers(streamed) == before


def test_evaluate_streams_too(streamed: Path) -> None:
    done = autonovel("evaluate", streamed, "--json")
    assert done.returncode == 0, done.stderr
    again, stored = json.loads(done.stdout), json.loads((streamed / "results.json").read_text())
    assert again["systems"] == stored["systems"] and again["incremental"] == stored["incremental"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "epoch", "number", "group"),
    [
        pytest.param("1-rotation", 1, signal.SIGKILL, False, marks=pytest.mark.full),
        pytest.param("1-rotation", 1, signal.SIGINT, True, marks=pytest.mark.full),
        pytest.param("3-joint", 2, signal.SIGKILL, False, marks=pytest.mark.full),
        ("3-joint", 2, signal.SIGTERM, True),
    ],
)
def test_a_stopped_run_resumes_to_the_same_bits(
    digits: Path, streamed: Path, tmp_path: Path, stage: str, epoch: int, number: signal.Signals, group: bool
) -> None:
    folder = tmp_path / "run"
    reached = in_journal(folder / "metrics.jsonl", stage, epoch)
    stop_when(reached, number, group, *arguments(digits, folder, "streaming"))
    # at once: workers that outlive their parent for a moment must not hold its lock
    resumed = autonovel(*arguments(digits, folder, "streaming", "--resume"))
    assert resumed.returncode == 0, resumed.stderr
    assert numbers(folder) == numbers(streamed)


@pytest.mark.slow
def test_a_run_killed_while_it_reads_can_go_on(digits: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "cache").mkdir(parents=True)
    (folder / ".lock").touch()
    (folder / "cache" / "decoded-part.u8").write_bytes(b"what was decoded before the kill")
    sets = ["--set", 'run.systems=["kmeans"]', "--set", "pretrain.epochs=1", "--set", "supervised.epochs=1"]
    done = autonovel(*arguments(digits, folder, "streaming", "--resume", *sets))
    assert done.returncode == 0, done.stderr
    assert (folder / "results.json").exists()


def test_a_changed_image_is_another_run(digits: Path, streamed: Path, tmp_path: Path) -> None:
    other = write_digits(tmp_path / "other", 40)
    (other / "0" / "0-0000.png").write_bytes((other / "0" / "0-0001.png").read_bytes())
    refused = autonovel(*arguments(other, streamed, "streaming", "--resume"))
    assert refused.returncode == 2 and "other images or labels" in refused.stderr
