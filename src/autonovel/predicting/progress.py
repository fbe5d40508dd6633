"""How far a pass over image files is whose number is not known at the start."""

import contextlib
import threading
import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from autonovel.errors import AutonovelError

SECONDS_BETWEEN_LINES = 10.0


class FilesProgress:
    """How many files are done, how fast and, once somebody has counted them, how long the rest takes.

    Args:
        console: on standard error.
        count: counts the files, beside the work; None where they cannot be counted.
    """

    def __init__(self, console: Console, count: Callable[[], int] | None) -> None:
        self.console, self.total = console, None if count is None else -1
        self.start = self.told = time.monotonic()
        self.bar: Progress | None = None
        if count is not None:
            threading.Thread(target=self._counted, args=(count,), daemon=True).start()

    def _counted(self, count: Callable[[], int]) -> None:
        with contextlib.suppress(AutonovelError, OSError):  # the work itself will say what is wrong
            self.total = count()

    def __enter__(self) -> "FilesProgress":
        if self.console.is_terminal:
            columns = TextColumn("{task.description}"), BarColumn(bar_width=16), TextColumn("{task.fields[text]}")
            self.bar = Progress(*columns, console=self.console, transient=True)
            self.bar.add_task("predicting", total=None, text="")
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def update(self, done: int) -> None:
        """Show that ``done`` files are behind us."""
        now = time.monotonic()
        rate = done / max(now - self.start, 1e-9)
        total = self.total if self.total is not None and self.total >= 0 else None
        of = "" if total is None else f" of {total:,}"
        left = "" if total is None else f", {max(total - done, 0) / max(rate, 1e-9):,.0f} s left"
        text = f"{done:,}{of} files, {rate:,.0f} images/s{left}"
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=done, total=total, text=text)
        elif now - self.told >= SECONDS_BETWEEN_LINES:
            self.told = now
            self.console.print(f"predicting: {text}", highlight=False, markup=False, soft_wrap=True)
