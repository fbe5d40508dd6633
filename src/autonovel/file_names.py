"""Names of what is written: an ending says what is in a file, and other programs go by it."""

from collections.abc import Sequence
from pathlib import Path

from autonovel.errors import UsageError

OF_FILES = (  # of one kind each; no folder is called so
    ".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".xlsx", ".xls", ".ods", ".parquet", ".feather", ".npy",
    ".onnx", ".html", ".md", ".pdf", ".zip", ".gz", ".tar",
)  # fmt: skip


def check_file(place: Path, what: str, endings: Sequence[str]) -> None:
    """Say so if a file is called like one of another kind than ``what``, whose names have one of ``endings``."""
    if place.suffix.lower() in OF_FILES and place.suffix.lower() not in endings:
        raise UsageError(
            f"{place} is to be {what}, but its name ends in {place.suffix}. Choose one that ends in "
            f"{' or '.join(endings)}."
        )


def check_folder(place: Path, what: str) -> None:
    """Say so if a folder, which ``what`` is, is called like a file."""
    if place.suffix.lower() in OF_FILES and not place.is_dir():
        raise UsageError(f"{what} is a folder, but {place} ends like the name of a file. Leave {place.suffix} out.")
