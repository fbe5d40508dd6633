"""The list of commands behind docs/results.md, and the script that carries it out."""

import importlib.util
import json
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from autonovel import recipe
from runs import autonovel

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "benchmarks" / "paper.py"


@pytest.fixture(scope="module")
def paper() -> ModuleType:
    found = importlib.util.spec_from_file_location("paper_list", SCRIPT)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["paper_list"] = module  # its dataclasses look themselves up
    found.loader.exec_module(module)
    return module


JOBS = """
[words]
look = "open('{out}/first')"
a = "'{out}/a'"
b = "'{out}/b'"

[[job]]
name = "first"
gpu = "alone"
run = '''python -c "open('{out}/first', 'x')"'''

[[job]]
name = "{set}-second"
sets = ["a", "b"]
needs = ["first"]
run = '''python -c "{look}; open({{set}}, 'x')"'''

[[job]]
name = "fails"
run = '''python -c "open('{data}/there')"'''

[[job]]
name = "waits"
needs = ["fails", "a-second"]
run = '''python -c "open('{out}/waits', 'x')"'''
"""


def written(folder: Path, text: str = JOBS) -> Path:
    path = folder / "jobs.toml"
    path.write_text(text)
    return path


def test_jobs_wait_for_what_they_need_and_what_is_done_is_not_done_again(paper: ModuleType, tmp_path: Path) -> None:
    jobs = paper.read_jobs(written(tmp_path))
    assert [job.name for job in jobs] == ["first", "a-second", "b-second", "fails", "waits"]
    out = tmp_path / "out"
    campaign = paper.Campaign(jobs, tmp_path, out, beside=2)
    campaign.carry_out()
    assert campaign.failed == ["fails"] and [job.name for job in campaign.left] == ["waits"]
    assert {path.name for path in out.iterdir()} == {"campaign", "first", "a", "b"}
    (tmp_path / "there").touch()
    again = paper.Campaign(jobs, tmp_path, out, beside=2)
    assert [job.name for job in again.left] == ["fails", "waits"]
    again.carry_out()
    assert not again.failed and not again.left and (out / "waits").exists()


SLOW = """
[[job]]
name = "slow"
run = '''python -c "import time; open('{out}/begun', 'x'); time.sleep(120)"'''

[[job]]
name = "after"
needs = ["slow"]
run = "python -c pass"
"""


def test_a_machine_that_is_lent_is_given_back_in_time(tmp_path: Path) -> None:
    command = [sys.executable, SCRIPT, written(tmp_path, SLOW), "--out", tmp_path, "--minutes", "0.05"]
    in_the_background = ["bash", "-c", '"$@" & wait $!', "bash", *command]  # where shells have SIGINT ignored
    stopped = subprocess.run(in_the_background, capture_output=True, text=True, timeout=100)
    assert (tmp_path / "begun").exists() and "time is up: slow is stopped" in stopped.stdout
    assert stopped.returncode == 1 and stopped.stderr.strip() == "stopped: slow; not begun: after"
    listed = subprocess.run([*command, "--list"], capture_output=True, text=True, timeout=100)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["left", "left"]


def test_some_jobs_bring_what_they_need_in_the_order_they_are_named(paper: ModuleType, tmp_path: Path) -> None:
    jobs = paper.read_jobs(written(tmp_path))
    assert [job.name for job in paper.wanted(jobs, ["b-*"])] == ["first", "b-second"]
    assert [job.name for job in paper.wanted(jobs, ["waits"])] == ["fails", "first", "a-second", "waits"]
    assert [job.name for job in paper.wanted(jobs, ["fails", "b-*", "*"])] == [
        "fails", "first", "b-second", "a-second", "waits",
    ]  # fmt: skip
    assert paper.wanted(jobs, []) == jobs
    with pytest.raises(SystemExit, match=r"no job of the list is called third\*"):
        paper.wanted(jobs, ["first", "third*"])


TRAININGS = """
[[job]]
name = "{set}-{seed}"
sets = ["svhn", "cifar10"]
seeds = [3, 4]
run = "autonovel reproduce {set}-fast --data {data}/{set} --first-seed {seed}"

[[job]]
name = "{set}-count"
sets = ["svhn"]
needs = ["{set}-4"]
run = "autonovel count {out}/{set}"
"""


def test_a_job_is_made_for_every_set_and_seed(paper: ModuleType, tmp_path: Path) -> None:
    jobs = paper.read_jobs(written(tmp_path, TRAININGS))
    assert [job.name for job in jobs] == ["svhn-3", "cifar10-3", "svhn-4", "cifar10-4", "svhn-count"]
    assert jobs[2].run == "autonovel reproduce svhn-fast --data {data}/svhn --first-seed 4"
    assert jobs[4].needs == ("svhn-4",)
    assert [job.dataset for job in jobs] == ["svhn", "cifar10", "svhn", "cifar10", None]


def test_a_rehearsal_changes_settings_of_trainings_alone(paper: ModuleType, tmp_path: Path) -> None:
    jobs = paper.read_jobs(written(tmp_path, TRAININGS))
    changes = ["data.per_class=30", 'data.new=["a", "b"]']
    trained, counted = (shlex.split(jobs[place].command(Path("d"), Path("o"), changes)) for place in (0, 4))
    assert trained[-4:] == ["--set", changes[0], "--set", changes[1]] and trained[-5] == "3"
    assert counted[-2:] == ["count", "o/svhn"]


def test_a_dataset_that_is_not_there_is_told_before_anything_begins(tmp_path: Path) -> None:
    (tmp_path / "svhn").mkdir()
    command = [sys.executable, SCRIPT, written(tmp_path, TRAININGS), "--data", tmp_path, "--out", tmp_path / "out"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert told.returncode == 1 and not (tmp_path / "out").exists()
    assert f"{tmp_path / 'cifar10'} is not there, which is read by cifar10-3, cifar10-4: " in told.stderr
    assert f"autonovel data fetch cifar10 --to {tmp_path / 'cifar10'}" in told.stderr


AWAITED = """
[[job]]
name = "reads"
run = '''python -c "open('{out}/read', 'x')" --data {data}/late'''

[[job]]
name = "brings"
run = '''python -c "import os; os.mkdir('{data}/late')"'''
"""


def test_jobs_wait_for_data_that_are_still_to_come(paper: ModuleType, tmp_path: Path) -> None:
    jobs = paper.read_jobs(written(tmp_path, AWAITED))
    campaign = paper.Campaign(jobs, tmp_path, tmp_path / "out", beside=2, wait_for_data=True)
    assert campaign.missing() == {"late": ["reads"]}
    campaign.carry_out()
    assert (tmp_path / "out" / "read").exists() and not campaign.failed and not campaign.left


def test_who_shares_the_gpu(paper: ModuleType) -> None:
    alone, most, part = (paper.Job(share, "python x", gpu=share) for share in paper.SHARES)
    assert paper.may_start(alone, [], 3) and not paper.may_start(alone, [part], 3)
    assert not paper.may_start(part, [alone], 3) and not paper.may_start(most, [alone], 3)
    assert paper.may_start(most, [part, part, part], 3) and not paper.may_start(most, [most], 3)
    assert paper.may_start(part, [most, part, part], 3) and not paper.may_start(part, [most, part, part, part], 3)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ('needs = ["nothing"]', "needs nothing, which"),
        ('sets = ["a", "a"]', "more than once"),
        ('gpu = "half"', "choose one of alone, most, part"),
        ('run = "python {unheard}"', "one names 'unheard', which is no word"),
    ],
)
def test_a_wrong_list_is_explained(paper: ModuleType, tmp_path: Path, change: str, said: str) -> None:
    run = "" if change.startswith("run") else 'run = "python x"'
    with pytest.raises(SystemExit, match=said):
        paper.read_jobs(written(tmp_path, f'[[job]]\nname = "one"\n{run}\n{change}\n'))


def test_results_are_collected_under_the_names_of_their_runs(paper: ModuleType, tmp_path: Path) -> None:
    out, target = tmp_path / "out", tmp_path / "results"
    runs = ("cifar10-fast-kcl-mcl-seed3", "omniglot-fast-seed0", "omniglot-fast-seed0/Keble")
    for run in (*runs, "rotation/omniglot-fast-seed1"):
        (out / run).mkdir(parents=True)
        (out / run / "results.json").write_text(json.dumps({"seed": 3, "parts": [1]}))
    paper.collect(out, target)
    found = sorted(str(path.relative_to(target)) for path in target.rglob("*.json"))
    assert found == [
        "cifar10-fast-kcl-mcl/seed-3.json", "omniglot-fast-rotation/seed-1.json", "omniglot-fast/seed-0.json",
    ]  # fmt: skip
    assert json.loads((target / "omniglot-fast" / "seed-0.json").read_text()) == {"seed": 3}


@pytest.mark.parametrize("name", ["paper.toml", "tuning.toml"])
def test_every_command_of_the_lists_exists(paper: ModuleType, name: str) -> None:
    jobs = paper.read_jobs(SCRIPT.with_name(name))
    pages = {name: autonovel(name, "--help").stdout for name in ("reproduce", "count", "figures")}
    for job in jobs:
        program, command, *words = shlex.split(job.run)
        if program == "python":
            assert (ROOT / command).exists(), job.run
            continue
        assert all(option in pages[command] for option in words if option.startswith("--")), job.run
        if command == "reproduce":
            changes = [words[place + 1] for place, word in enumerate(words) if word == "--set"]
            recipe.load(words[0], changes)
