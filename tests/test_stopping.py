"""Ctrl-C and SIGTERM end a run within seconds, whatever works beside it, and it goes on where it was."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from autonovel import stopping
from autonovel.data import crew
from autonovel.errors import AutonovelError
from autonovel.studies import side_by_side
from runs import BESIDE, TINY, autonovel, numbers
from stopped_runs import in_journal, stop_when

ALONE = ['run.systems=["rankstats"]', "run.report=false"]


@pytest.fixture
def in_the_foreground() -> Iterator[None]:
    """Tests may run as a shell's background job, where SIGINT is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_signal_is_an_interruption_with_an_exit_code_of_its_own(in_the_foreground: None) -> None:
    for number, code, word in ((signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")):
        before = signal.getsignal(number)
        with stopping.heeded():
            assert stopping.asked() is None
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), number)
            assert stopping.asked() == number and stopping.exit_code() == code and word in stopping.in_words([])
            os.kill(os.getpid(), number)  # sent twice, as `timeout` does: the first is being heeded
            with pytest.raises(stopping.Stopped):
                stopping.check()
            said = [stopping.in_words([verb, "--out", "here"]) for verb in ("run", "reproduce", "evaluate")]
            assert ["--resume" in one for one in said] == [True, False, False]
            assert ["the same command" in one for one in said] == [True, True, False]
            assert stopping.going_on(["run"], "a.b=1") == "the same command with --resume --set a.b=1"
            again = stopping.going_on(["reproduce"], "a.b=1", 4)
            assert again == "the same command with --first-seed 4 --seeds 1 --set a.b=1"
        assert signal.getsignal(number) is before and stopping.asked() is None
        stopping.check()


def test_what_a_stop_brings_about_in_destructors_and_at_the_exit_is_not_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A signal to all processes ends the workers too, and torch's news of it may find this process in a destructor."""

    class Raises:
        def __init__(self, error: BaseException) -> None:
            self.error = error

        def __del__(self) -> None:
            raise self.error

    death = RuntimeError("DataLoader worker (pid 7) is killed by signal: Terminated. ")
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    with stopping.heeded():
        Raises(death)
        assert "killed by signal" in capsys.readouterr().err  # before a stop was asked for, it is
        with pytest.raises(stopping.Stopped):
            os.kill(os.getpid(), signal.SIGTERM)
    for error in (death, stopping.Stopped()):
        Raises(error)
        sys.excepthook(type(error), error, None)  # as finalizers at the exit do
        assert not capsys.readouterr().err
    Raises(RuntimeError("something else"))
    assert "something else" in capsys.readouterr().err
    sys.excepthook(OSError, OSError("a third"), None)
    assert "a third" in capsys.readouterr().err


def test_a_worker_whose_batch_nobody_takes_is_quiet_about_that_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    crew._hang_up_quietly(0)
    for error in (EOFError(), ConnectionResetError()):
        sys.excepthook(type(error), error, None)
        assert not capsys.readouterr().err
    sys.excepthook(OSError, OSError("another"), None)
    assert "another" in capsys.readouterr().err


def test_a_stop_is_not_taken_for_a_failure_of_one_run(monkeypatch: pytest.MonkeyPatch, in_the_foreground: None) -> None:
    """A child that was stopped too may die first, and its error come before the signal's."""
    made: list[object] = []

    def dies(order: object, *_: object, **__: object) -> None:
        made.append(order)
        with pytest.raises(stopping.Stopped):
            os.kill(os.getpid(), signal.SIGINT)
        raise AutonovelError("a worker has died")

    monkeypatch.setattr(side_by_side, "_make", dies)
    with stopping.heeded(), pytest.raises(stopping.Stopped):
        side_by_side.carry_out(["one", "two"], 1, Console())  # type: ignore[list-item]
    assert made == ["one"]


def test_other_threads_leave_signals_alone() -> None:
    found: list[object] = []

    def work() -> None:
        with stopping.heeded():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGTERM)]


def test_a_second_signal_after_a_while_ends_at_once() -> None:
    program = """
import os, signal, time
from autonovel import stopping
stopping.IMPATIENT = 0.2
with stopping.heeded():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except KeyboardInterrupt:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=30).returncode == 143


def test_every_command_that_is_resumed_says_so() -> None:
    from typer.main import get_command

    from autonovel.cli import app

    options = {name: {p.name for p in command.params} for name, command in get_command(app).commands.items()}
    assert {name for name, own in options.items() if "resume" in own} == set(stopping.RESUMED)
    assert set(stopping.REPEATED) <= set(options) - set(stopping.RESUMED)


def with_settings(settings: list[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def trials(folder: Path) -> tuple[list[object], Callable[[], bool]]:
    settings = ['run.systems=["rankstats", "kmeans"]', "run.trials=2", "joint.epochs=12"]
    return [*with_settings(settings)], in_journal(folder / "choice/1/systems/rankstats/metrics.jsonl", "3-joint", 1)


def count(folder: Path) -> tuple[list[object], Callable[[], bool]]:
    settings = [*ALONE, 'data.known=["0","1","2","3","4","5"]', "supervised.epochs=12"]
    more: list[object] = [*with_settings(settings), "--new-classes", "auto"]
    return more, in_journal(folder / "count/metrics.jsonl", "2-supervised", 1)


def clustering(folder: Path) -> tuple[list[object], Callable[[], bool]]:
    """The count's k-means, after its stage 2."""
    more, _ = count(folder)
    return more, lambda: (folder / "count/stages/2-supervised/stage.json").exists()


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize(("number", "group"), [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGTERM, True)])
@pytest.mark.parametrize("work", [trials, count, clustering])
def test_a_run_stopped_beside_the_stages_goes_on_to_the_same_numbers(
    tmp_path: Path, work: Callable[[Path], tuple[list[object], Callable[[], bool]]], number: signal.Signals, group: bool
) -> None:
    folder, plain = tmp_path / "run", tmp_path / "plain"
    more, reached = work(folder)
    common: list[object] = ["run", TINY, "--device", "cpu", *more]
    stop_when(reached, number, group, *common, "--out", folder)
    resumed = autonovel(*common, "--out", folder, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    undisturbed = autonovel(*common, "--out", plain)
    assert undisturbed.returncode == 0, undisturbed.stderr
    for file in ("discovery.csv", "model.safetensors", "classes.json"):
        assert (folder / file).read_bytes() == (plain / file).read_bytes()


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize(("number", "group"), [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGTERM, True)])
@pytest.mark.parametrize("stage", ["1-rotation", "2-supervised", "3-joint"])
def test_a_run_stopped_in_a_stage_goes_on_to_the_same_numbers(
    tmp_path: Path, stage: str, number: signal.Signals, group: bool
) -> None:
    folder, plain = tmp_path / "run", tmp_path / "plain"
    common: list[object] = ["run", TINY, *BESIDE, "--device", "cpu"]
    stop_when(in_journal(folder / "metrics.jsonl", stage, 1), number, group, *common, "--out", folder)
    assert autonovel(*common, "--out", folder, "--resume").returncode == 0
    assert autonovel(*common, "--out", plain).returncode == 0
    assert numbers(folder) == numbers(plain)


def test_after_a_stop_nobody_is_told_of_a_child_s_death(
    monkeypatch: pytest.MonkeyPatch, in_the_foreground: None
) -> None:
    """Torch raises that wherever the process is by then, be it in the hook that keeps it from being printed."""
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)

    def tell(*_: object) -> None:
        raise RuntimeError(f"DataLoader {stopping.WORKER_ENDED}")

    before = signal.signal(signal.SIGCHLD, tell)
    try:
        with pytest.raises(RuntimeError, match="DataLoader"):
            signal.raise_signal(signal.SIGCHLD)
        complaints: list[object] = []
        monkeypatch.setattr(sys, "unraisablehook", complaints.append)
        both = {signal.SIGTERM, signal.SIGCHLD}
        with pytest.raises(stopping.Stopped), stopping.heeded():
            signal.pthread_sigmask(signal.SIG_BLOCK, both)
            for number in both:
                signal.raise_signal(number)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, both)  # a death is under way when the stop is heeded
        signal.raise_signal(signal.SIGCHLD)
        assert not complaints
    finally:
        signal.signal(signal.SIGCHLD, before)
