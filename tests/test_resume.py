"""A run stopped at any stage goes on with --resume and ends with the numbers of an undisturbed run."""

import json
import signal
from pathlib import Path

import pytest

from runs import BESIDE, TINY, autonovel, journal, numbers
from stopped_runs import in_journal, stop_when


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    done = autonovel("run", TINY, *BESIDE, "--out", folder, "--device", "cpu")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "stage", "epoch", "number", "group"),
    [
        ("metrics.jsonl", "1-rotation", 1, signal.SIGINT, True),
        pytest.param("metrics.jsonl", "2-supervised", 2, signal.SIGKILL, False, marks=pytest.mark.full),
        ("metrics.jsonl", "3-joint", 2, signal.SIGKILL, False),
        ("systems/rankstats/metrics.jsonl", "3-joint", 1, signal.SIGTERM, False),
    ],
)
def test_a_stopped_run_resumes_to_the_same_numbers(
    tmp_path: Path, undisturbed: Path, file: str, stage: str, epoch: int, number: signal.Signals, group: bool
) -> None:
    folder = tmp_path / "run"
    common = ("run", TINY, *BESIDE, "--out", folder, "--device", "cpu")
    stop_when(in_journal(folder / file, stage, epoch), number, group, *common)
    assert not (folder / "results.json").exists()
    resumed = autonovel(*common, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert numbers(folder) == numbers(undisturbed)
    assert len(json.loads((folder / "run.json").read_text())["parts"]) == 2


def test_no_step_is_lost_or_repeated(undisturbed: Path) -> None:
    steps = [(line["stage"], line["epoch"]) for line in journal(undisturbed / "metrics.jsonl")]
    expected = {"1-rotation": 4, "2-supervised": 4, "3-joint": 6}
    assert steps == [(stage, epoch) for stage, epochs in expected.items() for epoch in range(epochs)]


def test_resuming_a_finished_run_changes_nothing(undisturbed: Path) -> None:
    before = numbers(undisturbed)
    again = autonovel("run", TINY, *BESIDE, "--out", undisturbed, "--device", "cpu", "--resume")
    assert again.returncode == 0, again.stderr
    assert numbers(undisturbed) == before


def test_an_existing_folder_is_not_touched(undisturbed: Path) -> None:
    before = numbers(undisturbed)
    refused = autonovel("run", TINY, "--out", undisturbed, "--device", "cpu")
    assert refused.returncode == 2
    assert "--resume" in refused.stderr and "--overwrite" in refused.stderr
    assert numbers(undisturbed) == before


def test_resuming_with_other_settings_is_refused(undisturbed: Path) -> None:
    other = autonovel("run", TINY, *BESIDE, "--out", undisturbed, "--resume", "--seed", "3")
    assert other.returncode == 2
    assert "seed: 0 there, 3 now" in other.stderr


def test_evaluate_repeats_the_scores_of_the_run(undisturbed: Path) -> None:
    done = autonovel("evaluate", undisturbed, "--json")
    assert done.returncode == 0, done.stderr
    again, stored = json.loads(done.stdout), json.loads((undisturbed / "results.json").read_text())
    assert again["systems"] == stored["systems"]
    assert again["incremental"] == stored["incremental"]
    assert "classes" not in again


def test_evaluate_tells_how_every_class_fares(undisturbed: Path) -> None:
    done = autonovel("evaluate", undisturbed, "--classes", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    new, joint = told["classes"].values()
    assert [row["class"] for row in new] == list("56789") and [row["class"] for row in joint] == list("0123456789")
    acc = sum(row["right"] * row["images"] for row in new) / sum(row["images"] for row in new)
    assert acc == pytest.approx(told["systems"][told["primary"]]["acc"])
    plain = told["incremental"]["protocols"]["plain on old, matched on new"]
    assert sum(row["right"] * row["images"] for row in joint[:5]) == pytest.approx(
        plain["old"] * sum(row["images"] for row in joint[:5])
    )
    shown = autonovel("evaluate", undisturbed, "--classes")
    assert shown.returncode == 0 and "Every class by the head of the new classes" in shown.stdout


@pytest.mark.slow
def test_a_run_done_stage_by_stage_ends_with_the_same_numbers(tmp_path: Path, undisturbed: Path) -> None:
    folder = tmp_path / "run"
    common = ("run", TINY, *BESIDE, "--out", folder, "--device", "cpu")
    first = autonovel(*common, "--stages", "1")
    assert first.returncode == 0 and "Stage 1 is done" in first.stdout, first.stderr
    assert (folder / "stages/1-rotation/stage.json").exists() and not (folder / "stages/2-supervised").exists()
    skipping = autonovel(*common, "--resume", "--stages", "3")
    assert skipping.returncode == 2
    assert "2-supervised is not finished" in skipping.stderr and "--stages leaves it out" in skipping.stderr
    for stages in ("2", "3"):
        done = autonovel(*common, "--resume", "--stages", stages)
        assert done.returncode == 0, done.stderr
        assert (folder / "results.json").exists() == (stages == "3")
    assert numbers(folder) == numbers(undisturbed)


@pytest.mark.slow
def test_a_failed_comparison_leaves_a_run_that_can_be_used(tmp_path: Path) -> None:
    run = tmp_path / "run"
    systems = ("--set", 'run.systems=["kmeans", "dtc"]', "--set", "dtc.start_lr=1e30")
    failed = autonovel("run", TINY, *systems, "--out", run, "--device", "cpu")
    assert failed.returncode != 0 and "dtc" in failed.stderr.lower() and f"Wrote {run}" in failed.stdout
    assert list(json.loads((run / "results.json").read_text())["failed"]) == ["dtc"]
    assert autonovel("rename", run, "new-1", "seven").returncode == 0
    again = autonovel("run", TINY, *systems, "--out", run, "--device", "cpu", "--resume")
    assert again.returncode == failed.returncode and "nothing was left to do" not in again.stdout
    assert "seven" in (run / "classes.json").read_text() and "seven" in (run / "report.html").read_text()
    assert autonovel("evaluate", run).returncode == 0
