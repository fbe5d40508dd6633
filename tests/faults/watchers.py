"""What a trial lets happen at a chosen step: a kill, a full disk, a deleted folder, a standstill, or just a record."""

import errno
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from autonovel.storage.writing import AFTER, BEFORE, Act, Watcher

Happening = Callable[[], None]
Make = Callable[[], Watcher]  # called in the process that is watched


def at(point: int, happening: Happening) -> Make:
    """Let ``happening`` happen at the ``point``-th step (from 0 on), before or after an act, of the process itself."""

    def make() -> Watcher:
        own, seen = os.getpid(), 0

        def watch(when: str, act: Act) -> None:
            nonlocal seen
            if os.getpid() != own:
                return  # a worker that decodes images
            seen += 1
            if seen == point + 1:
                happening()

        return watch

    return make


def killed_at(point: int) -> Make:
    return at(point, lambda: os.kill(os.getpid(), signal.SIGKILL))


def stopped_at(point: int) -> Make:
    """Let the process stand still, alive and holding its locks."""
    return at(point, lambda: os.kill(os.getpid(), signal.SIGSTOP))


def deleted_at(point: int, folder: Path) -> Make:
    return at(point, lambda: shutil.rmtree(folder, ignore_errors=True))


def full_from(point: int) -> Make:
    """Let the disk be full from the ``point``-th act on: nothing can be made or written, removing is possible."""

    def make() -> Watcher:
        own, seen = os.getpid(), 0

        def watch(when: str, act: Act) -> None:
            nonlocal seen
            if os.getpid() != own or when != BEFORE:
                return
            seen += 1
            if seen > point and act.kind not in ("remove", "sync-folder"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return watch

    return make


def counted(note: Path) -> Make:
    """Write to ``note`` a line for every step of the process itself: when, and the kind of act."""

    def make() -> Watcher:
        own = os.getpid()

        def watch(when: str, act: Act) -> None:
            if os.getpid() == own:
                with note.open("a") as file:
                    file.write(f"{when} {act.kind}\n")

        return watch

    return make


def recorded(acts: list[Act]) -> Watcher:
    """Return a watcher that adds every finished act to ``acts``."""

    def watch(when: str, act: Act) -> None:
        if when == AFTER:
            acts.append(act)

    return watch
