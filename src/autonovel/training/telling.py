"""How far passes over many images are, told to whoever shows progress, however deep in the house they are made."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor

from autonovel import stopping
from autonovel.training.display import Display, Silent

MOMENT = 3.0  # seconds in which nobody asks what is going on

_told: ContextVar[tuple[Display, str] | None] = ContextVar("told", default=None)


@contextmanager
def telling(display: Display, whose: str = "") -> Iterator[None]:
    """Let ``display`` show meanwhile how far passes are; ``whose`` tells those of systems beside each other apart."""
    before = _told.set((display, whose))
    try:
        yield
    finally:
        _told.reset(before)


def watched(chunks: Iterable[Tensor], total: int, title: str) -> Iterator[Tensor]:
    """Return ``chunks`` of ``total`` images; how far they are is shown once they take longer than a moment."""
    display, whose = _told.get() or (Silent(), "")
    title = f"{title} {whose}".strip()
    start, done, shown = time.monotonic(), 0, False
    for chunk in chunks:
        stopping.check()
        yield chunk
        done += len(chunk)
        seconds = time.monotonic() - start
        if not shown and seconds > MOMENT and done < total:
            display.begin(title, total, done, of="images")
            shown = True
        if shown:
            display.update(title, done, {}, done / max(seconds, 1e-9))
    if shown:
        display.end(title)
