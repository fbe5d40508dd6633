"""The demo reaches its accuracy.  One seed in the ordinary tests, all five in the full ones."""

import json
import statistics
from pathlib import Path

import pytest

from runs import autonovel


def accuracies(folder: Path, seed: int) -> dict[str, float]:
    done = autonovel("demo", "--seed", seed, "--out", folder, "--set", 'run.systems=["rankstats", "kmeans"]')
    assert done.returncode == 0, done.stderr
    systems = json.loads((folder / "results.json").read_text())["systems"]
    return {name: scores["acc"] for name, scores in systems.items()}


@pytest.mark.full  # .ci/run has a demo of its own, with the same floor
def test_one_seed_finds_the_new_digits(tmp_path: Path) -> None:
    found = accuracies(tmp_path / "run", seed=2)
    assert found["rankstats"] >= 0.93
    assert found["rankstats"] > found["kmeans"] + 0.1


@pytest.mark.full
def test_five_seeds_reach_the_bar(tmp_path: Path) -> None:
    runs = [accuracies(tmp_path / str(seed), seed) for seed in range(5)]
    reached = [run["rankstats"] for run in runs]
    assert statistics.mean(reached) >= 0.955
    assert min(reached) >= 0.93
    assert all(run["rankstats"] > run["kmeans"] for run in runs)
