"""A command in a process of its own, forked from one that has imported everything: it costs what the command does."""

import contextlib
import gc
import importlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autonovel.storage import writing

from .watchers import Make

NOBODY = 65534
UNEXPECTED = 70  # exit code of an exception that is none of ours
LONGEST = 120.0  # seconds

Command = Sequence[str] | Callable[[], Any]  # arguments of the command line, or something to call


@dataclass(frozen=True)
class Ended:
    """How a process ended: exit code (negative: the signal), and what it said."""

    code: int
    said: str

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def plain(self) -> bool:
        """Return whether the command failed as it should: a sentence of our own and a code of our own."""
        return self.code in (1, 2, 4) and "error: " in self.said and "Traceback" not in self.said


class Trial:
    """A command under way in the folder ``place``."""

    def __init__(self, command: Command, place: Path, watcher: Make | None = None, as_nobody: bool = False) -> None:
        self.said = place.with_name(place.name + ".said")
        self.said.touch()  # also where it is killed before it can say anything
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            _live(command, place, self.said, watcher, as_nobody)

    def kill(self) -> None:
        """Kill the process and what it has started."""
        for end in (os.kill, os.killpg):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end(self.pid, signal.SIGKILL)

    def wait(self, longest: float = LONGEST) -> Ended:
        """Wait for the end, for ``longest`` seconds at most; processes it has started end with it."""
        status = self._poll(longest, os.WNOHANG)
        if status is None:
            self.kill()
            os.waitpid(self.pid, 0)
            return Ended(-signal.SIGALRM, f"took longer than {longest} s")
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        return Ended(os.waitstatus_to_exitcode(status), self.said.read_text(errors="replace"))

    def wait_until_it_stands(self, longest: float = LONGEST) -> bool:
        """Wait until the process stands still; False if it ended instead, or goes on."""
        status = self._poll(longest, os.WNOHANG | os.WUNTRACED)
        return status is not None and os.WIFSTOPPED(status)

    def _poll(self, longest: float, options: int) -> int | None:
        until, pause = time.monotonic() + longest, 0.001
        while time.monotonic() < until:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                return status
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        return None


def _live(command: Command, place: Path, said: Path, watcher: Make | None, as_nobody: bool) -> None:
    """Do the command; never returns."""
    code = UNEXPECTED
    try:
        os.setpgid(0, 0)
        handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        os.chdir(place)
        if as_nobody and not os.getuid():
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        writing.watch(watcher() if watcher else None)
        code = code_of(command)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code)


def code_of(command: Command) -> int:
    if callable(command):
        return int(command() or 0)
    from autonovel.cli import app

    sys.argv = ["autonovel", *command]
    try:
        app(args=list(command))
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def run(command: Command, place: Path, watcher: Make | None = None, as_nobody: bool = False) -> Ended:
    """Do the command and return how it ended."""
    return Trial(command, place, watcher, as_nobody).wait()


def warm_up() -> None:
    """Import what commands import first, and read the sample once; no thread may be running when trials fork."""
    import matplotlib
    import torch

    torch.set_num_threads(1)
    matplotlib.use("Agg")
    importlib.import_module("autonovel.commands.training")
    sample = importlib.import_module("autonovel.data.sample")
    kept = sample.load()
    sample.load = lambda: kept


def import_as_after(command: Command, place: Path, watcher: Make | None = None) -> Ended:
    """Do ``command``, and import all that it imports.

    It runs in a process of its own, since one that has trained a step cannot be forked any more.
    """

    def told() -> int:
        code = code_of(command)
        Path("modules").write_text("\n".join(sorted(sys.modules)))
        return code

    ended = run(told, place, watcher)
    for name in (place / "modules").read_text().splitlines() if (place / "modules").exists() else ():
        if name.partition(".")[0] != "__main__":
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    (place / "modules").unlink(missing_ok=True)
    with contextlib.suppress(ImportError):
        parallel = importlib.import_module("sklearn.utils.parallel")
        parallel._get_threadpool_controller()  # looks at all libraries, once
    gc.freeze()  # what is there now is shared with all trials, and need not be looked at in each
    return ended
