"""CSV: a row per input file, as in ``discovery.csv``, with all edits made."""

import csv
from pathlib import Path

from autonovel.export.job import Export
from autonovel.spreadsheet import harmless_row


def write(job: Export, path: Path) -> str:
    """Write the table to ``path``."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(job.rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(harmless_row, job.rows))
    return f"{len(job.rows):,} rows."
