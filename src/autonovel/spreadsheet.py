"""Cells of CSV files that a spreadsheet shows instead of computing, and how to read them back.

A name that begins with ``=``, ``+``, ``-``, ``@``, a tab or the end of a line is a formula, or hides one, to a program
that opens the file.  Such a cell gets an apostrophe in front.  So does one that begins with apostrophes before such a
sign: then every cell with an apostrophe before the sign has one too many, and reading takes it away again.
"""

import re
from collections.abc import Iterable, Mapping

TEXTS = frozenset(  # the columns that hold words of a person; all others are numbers of ours
    ("id", "path", "status", "given_label", "class_name", "second_class", "nearest_known", "found_class", "label")
)
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
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


def harmless_row(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row to write, its words harmless."""
    return {key: harmless(v) if key in TEXTS and isinstance(v, str) else v for key, v in row.items()}


def plain_rows(rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Return rows as they were before ``harmless_row``; numbers, which may begin with a minus, are left alone."""
    return [{key: plain(v) if key in TEXTS and isinstance(v, str) else v for key, v in row.items()} for row in rows]
