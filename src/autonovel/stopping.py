"""SIGTERM ends a command as Ctrl-C does: what runs beside it ends too, what was finished is kept, and it is said.

A signal raises ``Stopped`` in the main thread.  Where that is lost (Python drops what is raised in a destructor), or
what a dying child process raises comes first, ``asked`` still knows.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType, TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
RESUMED, REPEATED = ("demo", "run", "discover", "refine"), ("reproduce",)
WORKER_ENDED = "DataLoader worker"  # begins what torch says of one
IMPATIENT = 3.0  # seconds after which a second signal ends the process without further ado

_asked: tuple[int, float] | None = None  # signal and time


class Stopped(KeyboardInterrupt):
    """Somebody asked this process to end; whoever heeds Ctrl-C heeds it too."""


def asked() -> int | None:
    """Return the signal that asked this process to end, if one did."""
    return _asked[0] if _asked else None


def check() -> None:
    """End the work if that was asked for, and got lost."""
    if _asked:
        raise Stopped


def exit_code() -> int:
    """Return the exit code of a process that was asked to end, as shells have it: 130 by Ctrl-C, 143 by SIGTERM."""
    return 128 + (asked() or signal.SIGINT)


def in_words(command: Sequence[str]) -> str:
    """Return what a person is told who gave this ``command``, and how it goes on."""
    if _verb(command) in (*RESUMED, *REPEATED):
        return f"{how()}; {going_on(command)} goes on from the last checkpoint."
    return f"{how()}."


def how() -> str:
    """Return the word for the signal that asked this process to end."""
    return "terminated" if asked() == signal.SIGTERM else "interrupted"


def going_on(command: Sequence[str], setting: str = "", seed: int = 0) -> str:
    """Return what goes on with the work of a ``command``, with another ``setting``; not every one has ``--resume``.

    Of several seeds only this ``seed`` takes the setting: finished ones keep their own.
    """
    verb = _verb(command)
    if verb in RESUMED:
        return "the same command with --resume" + (f" --set {setting}" if setting else "")
    if verb in REPEATED:
        return "the same command" + (f" with --first-seed {seed} --seeds 1 --set {setting}" if setting else "")
    return "the same call" + (f" with {setting}" if setting else "")  # of a Discoverer, say


def _verb(command: Sequence[str]) -> str:
    return next((word for word in command if not word.startswith("-")), "")


@contextlib.contextmanager
def heeded() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into ``Stopped`` while a command runs; only the main thread may."""
    global _asked
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # SIGINT is left ignored where it is: a shell's background job
    mine = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _heed) for number in mine}
    try:
        yield
    finally:
        _asked = None
        for number, handler in before.items():
            signal.signal(number, handler)


def _heed(number: int, frame: FrameType | None) -> None:
    """Stop once; the same signal is often sent twice, to a process and to its group, so a repetition means nothing."""
    global _asked
    if _asked is None:
        _asked = (number, time.monotonic())
        _expect_deaths()
        raise Stopped
    if time.monotonic() - _asked[1] > IMPATIENT:
        os._exit(128 + number)


def _expect_deaths() -> None:
    """Let nothing be printed of what a stop brings about in destructors and at the exit, which Python does otherwise.

    A signal to all processes ends those that decode images too, and torch raises the news wherever this one is by then.
    """
    if hasattr(signal, "SIGCHLD"):  # of those who die from now on nobody is told, not even the hook below
        signal.signal(signal.SIGCHLD, lambda *_: None)  # SIG_DFL makes Python complain of a signal already under way
    others = sys.unraisablehook

    def hook(raised: "sys.UnraisableHookArgs") -> None:
        if not _of_the_stop(raised.exc_value):
            others(raised)

    sys.unraisablehook = hook  # for good: a process ends with its destructors
    leave_unprinted(_of_the_stop)


def _of_the_stop(error: BaseException | None) -> bool:
    return isinstance(error, Stopped) or WORKER_ENDED in str(error)


def leave_unprinted(expected: Callable[[BaseException], bool]) -> None:
    """Let this process print nothing of ``expected`` errors that nobody catches; of others, what it did before."""
    others = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not expected(error):
            others(kind, error, trace)

    sys.excepthook = hook
