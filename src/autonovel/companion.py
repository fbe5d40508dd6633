"""Systems trained in processes beside this one, so that two cores do two runs in the time of one."""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from autonovel.cores import usable_cores
from autonovel.errors import AutonovelError, GuardError
from autonovel.training.display import Display

COMMAND = "train-system"
GRACE = 2.0  # seconds that a process gets to end by itself


class Companion:
    """Trains system ``name`` of the run at ``folder``; its progress shows on ``display``.

    The process reads from a pipe that ends when its parent does, killed or not, and then stops too.
    """

    def __init__(self, folder: Path, name: str, display: Display, keep_going: bool) -> None:
        self.name, self.display = name, display
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop()
        command = [sys.executable, "-m", "autonovel", COMMAND, str(folder), name]
        self.process = subprocess.Popen(
            command + (["--keep-going"] if keep_going else []),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )
        self.failure: tuple[str, int] | None = None
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                event: dict[str, Any] = json.loads(line)
                kind = event.pop("event")
            except (ValueError, KeyError, AttributeError):
                continue  # a library's stray output: not ours to show, and the pipe must be emptied
            if kind == "error":
                self.failure = (event["message"], event["exit_code"])
            else:
                getattr(self.display, kind)(**event)

    def wait(self) -> None:
        """Wait for the end; raise what the process raised."""
        code = self.process.wait()
        self.reader.join()
        if self.failure:
            message, number = self.failure
            raise (GuardError if number == GuardError.exit_code else AutonovelError)(f"{self.name}: {message}")
        if code:
            self.errors.seek(0)
            last = self.errors.read().decode(errors="replace").strip().splitlines()[-1:]
            raise AutonovelError(f"the process training {self.name} ended with exit code {code}. {' '.join(last)}")

    def stop(self) -> None:
        """End the process if it still runs: it goes, with processes of its own, when the pipe it reads closes."""
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                self.process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for pipe in (self.process.stdin, self.errors):
            if pipe is not None:
                pipe.close()


class Companions:
    """Trains several systems beside this process, as many at a time as there are cores to spare."""

    def __init__(self, folder: Path, names: Sequence[str], display: Display, keep_going: bool) -> None:
        self.folder, self.display, self.keep_going = folder, display, keep_going
        self.pool = ThreadPoolExecutor(max(1, usable_cores() - 1))
        self.lock, self.stopped = threading.Lock(), False
        self.running: list[Companion] = []
        self.begun = {name: self.pool.submit(self._train, name) for name in names}

    def _train(self, name: str) -> None:
        with self.lock:
            if self.stopped:
                return
            companion = Companion(self.folder, name, self.display, self.keep_going)
            self.running.append(companion)
        try:
            companion.wait()
        finally:
            companion.stop()

    def take_back(self, name: str) -> bool:
        """Tell whether the system has not been begun; it then never is, and the caller trains it."""
        return name not in self.begun or self.begun[name].cancel()

    def wait(self, name: str) -> None:
        """Wait for the end of a system that was not taken back; raise what its process raised."""
        self.begun[name].result()

    def stop(self) -> None:
        """End what still runs, and begin nothing more."""
        with self.lock:
            self.stopped = True
            for companion in self.running:
                companion.stop()
        self.pool.shutdown(cancel_futures=True)


class EventDisplay:
    """The other end: sends progress as JSON lines on standard output."""

    def _send(self, event: str, **content: Any) -> None:
        print(json.dumps({"event": event} | content), flush=True)

    def say(self, text: str) -> None:
        """Send a line of text."""
        self._send("say", text=text)

    def begin(self, stage: str, total: int, done: int, of: str = "steps") -> None:
        """Send the begin of a stage."""
        self._send("begin", stage=stage, total=total, done=done, of=of)

    def update(self, stage: str, done: int, terms: dict[str, float], images_per_second: float) -> None:
        """Send how far a stage is."""
        self._send("update", stage=stage, done=done, terms=terms, images_per_second=images_per_second)

    def end(self, stage: str) -> None:
        """Send the end of a stage."""
        self._send("end", stage=stage)

    def error(self, message: str, exit_code: int) -> None:
        """Send why the process gives up."""
        self._send("error", message=message, exit_code=exit_code)


def die_with_parent() -> None:
    """End this process, and those that decode images for it, when the parent's end of standard input closes."""

    def watch() -> None:
        # the bare descriptor: a thread inside sys.stdin's buffer would abort the interpreter's shutdown
        while os.read(0, 1):
            pass
        for child in multiprocessing.active_children():
            child.kill()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
