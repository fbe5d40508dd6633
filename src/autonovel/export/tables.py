"""CSV: a row per input file, as in ``discovery.csv``, with all edits made."""

from pathlib import Path

from autonovel.export.job import Export
from autonovel.spreadsheet import harmless_line, line


def write(job: Export, path: Path) -> str:
    """Write the table to ``path``."""
    with path.open("w", newline="", encoding="utf-8") as file:
        columns = list(job.rows[0])
        file.write(line(columns))
        file.writelines(harmless_line(columns, row) for row in job.rows)
    return f"{len(job.rows):,} rows."
