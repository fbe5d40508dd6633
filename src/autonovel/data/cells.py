"""The rows of a table in a file, CSV, TSV or Parquet, as text under the names of its columns."""

import csv
import io
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from autonovel.errors import InputError, UsageError
from autonovel.extras import installing

ENDINGS = (".csv", ".tsv", ".parquet")
MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))  # with which editors begin
DELIMITERS = (",", ";", "\t")
CELL = 1 << 20  # characters that a cell may have
NAME = 1000  # and the name of a column, which messages repeat


class Cells(NamedTuple):
    """A table.

    Attributes:
        columns: their names in small letters.
        rows: where each row stands (``line 7``), and its cells by column.
        notes: what a person should know of how it was read.
    """

    columns: list[str]
    rows: Iterator[tuple[str, dict[str, str]]]
    notes: list[str]


def read_cells(path: Path) -> Cells:
    """Return the table in the file ``path``."""
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"{path} is no table that can be read; its name must end in {', '.join(ENDINGS)}.")
    try:
        content = path.read_bytes() if path.suffix.lower() != ".parquet" else b""
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    return _parquet(path) if path.suffix.lower() == ".parquet" else _text(path, content)


def _text(path: Path, content: bytes) -> Cells:
    notes = []
    encoding = next((name for mark, name in MARKS if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = content.decode("latin-1")
        notes.append(f"{path} is not UTF-8 and was read as Latin-1; save it as UTF-8 if names look wrong")
    if "\0" in text:
        raise InputError(f"{path} is no text: it has NUL characters. Save the table as CSV in UTF-8.")
    header = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(DELIMITERS, key=header.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        columns = _columns(next((row for row in reader if row), []))
    except csv.Error as error:
        raise InputError(f"the first line of {path} cannot be read: {error}.") from error
    longest = max(map(len, columns), default=0)
    if longest > NAME:
        raise InputError(f"the first line of {path} cannot be read: a column's name has {longest:,} characters.")
    return Cells(columns, _lines(path, reader, columns), notes)


def _lines(path: Path, reader: Any, columns: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    before = csv.field_size_limit(CELL)
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            where = f"line {reader.line_num}"
            if len(cells) > len(columns):
                raise InputError(
                    f"{where} of {path} has {len(cells)} cells for {len(columns)} columns. Put a cell that has the "
                    'delimiter in it between double quotes: "a, b.jpg".'
                )
            filled = cells + [""] * (len(columns) - len(cells))
            yield where, dict(zip(columns, (cell.strip() for cell in filled), strict=True))
    except csv.Error as error:
        raise InputError(f"line {reader.line_num} of {path} cannot be read: {error}.") from error
    finally:
        csv.field_size_limit(before)


def _columns(names: Iterable[Any]) -> list[str]:
    return [str(name).strip().lower() for name in names]


def _parquet(path: Path) -> Cells:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise UsageError(
            f"{path} needs the package pyarrow ({error}). Install it with: {installing('parquet')}, or save the table "
            "as CSV."
        ) from error
    try:
        file = ParquetFile(path)
        names = list(file.schema_arrow.names)
    except (OSError, ArrowException, ValueError) as error:  # ValueError: texts that are no UTF-8
        raise InputError(f"{path} cannot be read as Parquet: {error}.") from error

    def rows() -> Iterator[tuple[str, dict[str, str]]]:
        number = 0
        try:
            for batch in file.iter_batches(columns=[name for name in names if name.strip().lower() in WANTED]):
                columns = _columns(batch.schema.names)
                for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    number += 1
                    yield f"row {number}", dict(zip(columns, map(_as_text, cells), strict=True))
        except (OSError, ArrowException, ValueError) as error:  # ValueError: texts that are no UTF-8
            raise InputError(f"{path} cannot be read as Parquet: {error}.") from error

    return Cells(_columns(names), rows(), [])


WANTED = ("path", "file_name", "label", "split")  # of the columns of a Parquet file, which may hold whole images


def _as_text(value: Any) -> str:
    """Return a cell as text; what is missing is blank, and 3.0, as a column with missing whole numbers has, is 3."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
