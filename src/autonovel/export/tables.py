"""CSV: a row per input file, as in ``discovery.csv``, with all edits made."""

from pathlib import Path

from autonovel.editing.edited import MADE_BY_EDITS
from autonovel.editing.found import COLUMNS
from autonovel.export.job import Export
from autonovel.spreadsheet import harmless_line, line
from autonovel.storage import writing


def write(job: Export, path: Path) -> str:
    """Write the table to ``path``."""
    columns = [*COLUMNS, *MADE_BY_EDITS]
    rows = "".join(harmless_line(columns, row) for row in job.rows)
    writing.replace_file(path, (line(columns) + rows).encode())
    return f"{len(job.rows):,} rows."
