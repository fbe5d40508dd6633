"""``autonovel predict``: rows for later image files, written as they come."""

import contextlib
import io
import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console

from autonovel import stopping
from autonovel.data.decode import WHAT_IS_READ
from autonovel.data.paths import images_at, listed
from autonovel.discovery import UNREADABLE
from autonovel.editing.found import COLUMNS
from autonovel.editing.sorting import JUNK_NAME
from autonovel.errors import AutonovelError, InputError, RunFolderError, UsageError
from autonovel.file_names import check_file
from autonovel.launch import launch
from autonovel.outcome import say
from autonovel.predicting.progress import FilesProgress
from autonovel.spreadsheet import harmless_line, line
from autonovel.storage import writing

if TYPE_CHECKING:
    from autonovel.training.ranks import Ranks

STANDARD = "-"
FORMATS = {  # what they are called, and how the names of their files end
    "csv": ("CSV", (".csv",)),
    "tsv": ("a table with tabs", (".tsv",)),
    "jsonl": ("JSON lines", (".jsonl", ".ndjson")),
}


class StoppedError(AutonovelError):
    """Somebody pressed Ctrl-C."""

    exit_code = 130


def predict_files(
    run: Path,
    paths: list[str],
    listing: str | None,
    to: str,
    form: str | None,
    device: str,
    batch: int,
    overwrite: bool,
) -> None:
    """Write a row for each image file in the columns of ``discovery.csv``.

    Args:
        run: folder of a finished run.
        paths: files and folders; ``-`` stands for a list on standard input.
        listing: file with a list of further paths; ``-`` is standard input.
        to: file to write; ``-`` is standard output.
        form: one of ``FORMATS``; None goes by the name of ``to``.
        device: that computes.
        batch: images at once; 0 chooses.
        overwrite: replace the file ``to``.
    """
    form = form or next((name for name, (_, ends) in FORMATS.items() if to.lower().endswith(ends)), "csv")
    asked, together = Asked(tuple(paths), listing), launch().world > 1

    def check() -> None:
        if form not in FORMATS:
            raise UsageError(f"--format is {form!r}; choose one of {', '.join(FORMATS)}.")
        if to != STANDARD:
            check_file(Path(to), *FORMATS[form])
        if to != STANDARD and Path(to).is_dir():
            raise UsageError(f"--to is {to}, which is a folder; give the name of a file in it.")
        if to != STANDARD and Path(to).exists() and not overwrite:
            raise UsageError(f"{to} already exists. Choose another --to, or replace it with --overwrite.")
        if together and STANDARD in (*paths, listing):
            raise UsageError(
                "several processes cannot read one standard input; write the list to a file (--from FILE)."
            )

    try:
        if together:
            _predict_together(run, asked, to, form, device, batch, check)
        else:
            check()
            _predict(run, asked, to, form, device, batch)
    except KeyboardInterrupt:
        raise StoppedError("interrupted.") from None


def _predict_together(
    run: Path, asked: "Asked", to: str, form: str, device: str, batch: int, check: Callable[[], None]
) -> None:
    from autonovel import device as devices
    from autonovel.training.ranks import join

    ranks = join(devices.pick(device))
    ranks.alone(check)
    _predict(run, asked, to, form, device, batch, ranks)
    ranks.leave()


def _predict(
    run: Path, asked: "Asked", to: str, form: str, device: str, batch: int, together: "Ranks | None" = None
) -> None:
    files = asked.checked()

    from autonovel.predicting.prediction import Predictor
    from autonovel.predicting.together import rows_of_all
    from autonovel.training.ranks import ALONE

    ranks = together or ALONE
    predictor = Predictor(run, device)
    console = Console(stderr=True, quiet=not ranks.first)
    if not predictor.joint:
        say(console, "This run has no classifier for known and new classes together: every image is answered with "
             "a new class; nearest_known says which known class would be the nearest.")  # fmt: skip
    found = Counter[str]()
    start = time.monotonic()
    count = asked.count if asked.countable and ranks.first else None
    with _writer(to, form) if ranks.first else _nowhere() as write, FilesProgress(console, count) as progress:
        coming = predictor.rows(files, batch) if ranks.world == 1 else rows_of_all(predictor, files, batch, ranks)
        for rows in coming:
            write(rows)
            found.update(row["status"].partition(":")[0] for row in rows)
            progress.update(found.total())
    say(console, _told(found, time.monotonic() - start, to))


def _told(found: Counter[str], seconds: float, to: str) -> str:
    n = found.total()
    odd = [f"{found[kind]:,} {kind}" for kind in (JUNK_NAME, UNREADABLE) if found[kind]]
    of_these = f" ({', '.join(odd)})" if odd else ""
    where = "" if to == STANDARD else f"Wrote {to}: "
    return f"{where}{n:,} files{of_these}, {n / max(seconds, 1e-9):,.0f} images/s."


@dataclass(frozen=True)
class Asked:
    """Which files a person asks for.

    Attributes:
        paths: files and folders; ``-`` stands for a list on standard input.
        listing: file with a list of further paths; ``-`` is standard input.
    """

    paths: tuple[str, ...]
    listing: str | None

    def files(self) -> Iterator[str]:
        """Return all files, one after the other."""
        yield from images_at(path for path in self.paths if path != STANDARD)
        if STANDARD in (*self.paths, self.listing):
            yield from images_at(listed(sys.stdin.buffer))
        if self.listing is not None and self.listing != STANDARD:
            try:
                with open(self.listing, "rb") as file:
                    yield from images_at(listed(file))
            except OSError as error:
                raise InputError(f"the list {self.listing} cannot be read: {error.strerror or error}.") from error

    def checked(self) -> Iterator[str]:
        """Return all files, or say at once that there are none."""
        if not self.paths and self.listing is None:
            raise UsageError("name image files or folders of them, or a list of paths with --from FILE (- for a pipe).")
        if (self.listing, *self.paths).count(STANDARD) > 1:
            raise UsageError("standard input is named twice; it can be read once.")
        missing = [path for path in self.paths if path != STANDARD and not os.path.lexists(path)]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise UsageError(
                f"there is no file or folder {missing[0]}{more}. PATHS name image files and folders of them."
            )
        coming = self.files()
        first = next(coming, None)
        if first is None:
            where = ", ".join([*self.paths[:3], *([f"--from {self.listing}"] if self.listing is not None else [])])
            raise InputError(f"there are no images in {where}; in folders, {WHAT_IS_READ}.")
        return itertools.chain([first], coming)

    @property
    def countable(self) -> bool:
        """Return whether the files can be gone through twice, which a pipe cannot."""
        return STANDARD not in self.paths and (self.listing is None or os.path.isfile(self.listing))

    def count(self) -> int:
        """Return how many files there are."""
        return sum(1 for _ in self.files())


@contextlib.contextmanager
def _writer(to: str, form: str) -> Iterator[Callable[[list[dict[str, Any]]], None]]:
    """Give what writes rows: to standard output, or beside the file ``to``, which it becomes at the end."""
    if to == STANDARD:
        with _quiet_pipe():
            text = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="", write_through=True)
            try:
                yield _rows_to(text, form)
                text.flush()
            finally:
                text.detach()
        return
    beside = Path(f"{to}.partial")
    try:
        with writing.replacing(Path(to), beside, keep=True) as file:
            yield _rows_to(_Encoding(file), form)
    except OSError as error:
        raise RunFolderError(f"cannot write {to}: {error.strerror or error}.{_kept(beside)}") from error
    except KeyboardInterrupt:
        raise StoppedError(f"{stopping.how()}.{_kept(beside)}") from None


@contextlib.contextmanager
def _nowhere() -> Iterator[Callable[[list[dict[str, Any]]], None]]:
    """Give what writes nothing, in a process whose rows another one writes."""
    yield lambda rows: None


def _kept(beside: Path) -> str:
    return f" The rows so far are in {beside}." if beside.exists() else ""


@contextlib.contextmanager
def _quiet_pipe() -> Iterator[None]:
    """End without a word where the reader of a pipe has seen enough."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter flushes once more
        raise SystemExit(0) from None
    except KeyboardInterrupt:
        raise StoppedError(f"{stopping.how()}; the rows written so far are whole.") from None


class _Encoding:
    """Takes text where a file takes bytes."""

    def __init__(self, file: writing.Stream) -> None:
        self._file = file

    def write(self, text: str) -> int:
        self._file.write(text.encode())
        return len(text)


class _Text(Protocol):
    def write(self, text: str, /) -> int: ...


def _rows_to(file: _Text, form: str) -> Callable[[list[dict[str, Any]]], None]:
    if form == "jsonl":
        return lambda rows: _write_lines(file, (json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    between = "\t" if form == "tsv" else ","
    file.write(line(COLUMNS, between))
    return lambda rows: _write_lines(file, (harmless_line(COLUMNS, _decimals(row), between) for row in rows))


def _decimals(row: dict[str, Any]) -> dict[str, Any]:
    return {key: f"{value:.4f}" if isinstance(value, float) else value for key, value in row.items()}


def _write_lines(file: _Text, lines: Iterator[str]) -> None:
    file.write("".join(lines))
