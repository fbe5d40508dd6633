"""Progress on a terminal: live bars with loss terms by name, or plain lines where there is no terminal."""

import threading
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from autonovel.visible import visible

SECONDS_BETWEEN_LINES = 10.0
BAR = 16  # characters


def _terms(terms: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.3f}" for name, value in terms.items())


class TerminalDisplay:
    """Shows every stage with its terms, images per second and time left."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.tasks: dict[str, TaskID] = {}
        self.totals: dict[str, int] = {}
        self.begun: dict[str, tuple[float, int]] = {}  # time and step of a stage's first news
        self.printed: dict[str, float] = {}
        self.bars: Progress | None = None
        self.lock = threading.Lock()  # systems trained beside each other report from threads of their own

    def say(self, text: str) -> None:
        """Show a line of text."""
        self.console.print(visible(text), highlight=False, markup=False, soft_wrap=not self.console.is_terminal)

    def begin(self, stage: str, total: int, done: int, of: str = "steps") -> None:
        """Open a bar, or print a line."""
        self.totals[stage] = total
        self.begun.pop(stage, None)
        self.printed[stage] = time.monotonic()
        if not self.console.is_terminal:
            self.say(f"{stage}: {total:,} {of}" + (f", of which {done:,} are done" if done else ""))
            return
        with self.lock:
            self._open_bars()
        assert self.bars is not None
        self.tasks[stage] = self.bars.add_task(stage, total=total, completed=done, terms="", left="")

    def _open_bars(self) -> None:
        if self.bars is None:
            self.bars = Progress(
                TextColumn("{task.description}"), BarColumn(bar_width=BAR), TextColumn("{task.percentage:>3.0f} %"),
                TextColumn("{task.fields[left]}"), TextColumn("[dim]{task.fields[terms]}[/]"), console=self.console,
            )  # fmt: skip
            self.bars.start()

    def _fitting(self, terms: dict[str, float], rate: str) -> str:
        """Return as much of rate and terms as the window has room for beside name, bar and time left."""
        room = self.console.width - max(map(len, self.totals)) - BAR - len("100 %") - len("1,000 s left") - 5
        for text in (f"{_terms(terms)}  {rate}", _terms(terms), rate):
            if len(text) <= room:
                return text
        return ""

    def update(self, stage: str, done: int, terms: dict[str, float], images_per_second: float) -> None:
        """Move the bar, or print a line now and then."""
        rate = f"{images_per_second:,.0f} images/s"
        left = self._left(stage, done)
        if self.bars is not None:
            self.bars.update(self.tasks[stage], completed=done, left=left, terms=self._fitting(terms, rate))
        elif time.monotonic() - self.printed[stage] >= SECONDS_BETWEEN_LINES:
            self.printed[stage] = time.monotonic()
            share = 100 * done / max(self.totals[stage], 1)
            self.say(f"{stage}: {share:3.0f} %  {_terms(terms)}  {rate}  {left}")

    def _left(self, stage: str, done: int) -> str:
        """Return the time left at the pace since the first news; what came before, compiling, does not come again."""
        start, already = self.begun.setdefault(stage, (time.monotonic(), done))
        if done == already:
            return ""
        per_step = (time.monotonic() - start) / (done - already)
        return f"{per_step * (self.totals[stage] - done):,.0f} s left"

    def end(self, stage: str) -> None:
        """Close the bar."""
        if self.bars is not None:
            self.bars.update(self.tasks[stage], completed=self.totals[stage], left="done", terms="")
        else:
            self.say(f"{stage}: done")

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self.bars is not None:
            self.bars.stop()
            self.bars = None
