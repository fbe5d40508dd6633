"""Cells of CSV files that a spreadsheet shows instead of computing, and how to read them back.

A name that begins with ``=``, ``+``, ``-``, ``@``, a tab or the end of a line is a formula, or hides one, to a program
that opens the file.  Such a cell gets an apostrophe in front.  So does one that begins with apostrophes before such a
sign: then every cell with an apostrophe before the sign has one too many, and reading takes it away again.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

TEXTS = frozenset(  # the columns that hold words of a person; all others are numbers of ours
    ("id", "path", "status", "given_label", "class_name", "second_class", "nearest_known", "found_class", "label")
)
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_SPECIAL = re.compile(r'[,\t"\r\n]')
_GUARDED = re.compile(r"'+[=+\-@\t\r\n]")


def harmless(text: str) -> str:
    """Return ``text`` with an apostrophe before it if a spreadsheet would take it for a formula.

    Examples:
        >>> harmless("=cmd()"), harmless("'-1"), harmless("it's")
        ("'=cmd()", "''-1", "it's")
    """
    return "'" + text if _FORMULA.match(text) else text


def plain(text: str) -> str:
    """Return what ``harmless`` was given; a cell it never saw is as it was, unless it has apostrophe and sign."""
    return text[1:] if _GUARDED.match(text) else text


def line(cells: Iterable[object], between: str = ",") -> str:
    """Return a line of a CSV file, or one with tabs ``between`` its cells; None is an empty cell.

    Python's own writer, told to end lines with a line feed, leaves a carriage return in a name unquoted, and every
    reader takes it for the end of the row.
    """
    return between.join(map(_quoted, ("" if cell is None else str(cell) for cell in cells))) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _SPECIAL.search(text) else text


def harmless_line(columns: Sequence[str], row: Mapping[str, object], between: str = ",") -> str:
    """Return the line of a row, its words harmless."""
    cells = ((name, row.get(name)) for name in columns)
    words = (harmless(cell) if name in TEXTS and isinstance(cell, str) else cell for name, cell in cells)
    return line(words, between)


def plain_rows(rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Return rows as they were before ``harmless_line``; numbers, which may begin with a minus, are left alone."""
    return [{key: plain(v) if key in TEXTS and isinstance(v, str) else v for key, v in row.items()} for row in rows]
