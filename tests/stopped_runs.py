"""Runs that are stopped by a signal once they have come to a certain point, and what is left of them."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from runs import command, environment

EXIT_CODES = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -9}
WORDS = {signal.SIGTERM: "terminated", signal.SIGINT: "interrupted"}


def in_journal(path: Path, stage: str, epoch: int) -> Callable[[], bool]:
    """Return whether ``epoch`` of ``stage`` is in the journal at ``path``."""
    return lambda: path.exists() and f'"stage": "{stage}", "epoch": {epoch}' in path.read_text()


def stop_when(reached: Callable[[], bool], number: signal.Signals, group: bool, *arguments: object) -> None:
    """Start the command, send it a signal once it has ``reached`` a point, and check how it ends.

    Args:
        reached: tells whether it has.
        number: the signal.
        group: send it to all processes at once, as a terminal does; else to the first alone.
        arguments: of the command.
    """
    process = subprocess.Popen(
        command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(),
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # shells ignore it in the background
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None and not reached():
        time.sleep(0.005)
    assert process.poll() is None, "the run ended before it could be stopped"
    (os.killpg if group else os.kill)(process.pid, number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == EXIT_CODES[number], errors
    if number in WORDS:
        told = f"{WORDS[number]}; the same command with --resume goes on from the last checkpoint."
        assert errors.strip() == told, errors
    left = wait_for_the_end_of(process.pid)
    assert not left, left


def wait_for_the_end_of(session: int, patience: float = 10.0) -> list[str]:
    """Return the processes of a session that are still there after a while."""
    deadline = time.monotonic() + patience
    while (left := members(session)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def members(session: int) -> list[str]:
    """Return the command lines of all processes of a session that are alive."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, own = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(own) == session and state != "Z":
                found.append(f"{folder.name}: {(folder / 'cmdline').read_text()}")
        except OSError:  # gone by now
            continue
    return found
