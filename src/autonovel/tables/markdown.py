"""Tables in Markdown."""

from collections.abc import Sequence


def grid(header: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    return [_line(header), "|" + "---|" * len(header), *map(_line, lines)]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
