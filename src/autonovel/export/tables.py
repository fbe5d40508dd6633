"""CSV: a row per input file, as in ``discovery.csv``, with all edits made."""

import csv
import io
from pathlib import Path

from autonovel import writing
from autonovel.export.job import Export

TEXTS = ("id", "path", "status", "given_label", "class_name", "second_class", "nearest_known", "found_class")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def write(job: Export, path: Path) -> str:
    """Write the table to ``path``."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(job.rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: harmless(value) if key in TEXTS else value for key, value in row.items()} for row in job.rows
    )
    writing.replace_file(path, text.getvalue().encode())
    return f"{len(job.rows):,} rows."


def harmless(text: str) -> str:
    """Return ``text`` with an apostrophe before it if a spreadsheet would take it for a formula."""
    return "'" + text if text.startswith(_FORMULA) else text
