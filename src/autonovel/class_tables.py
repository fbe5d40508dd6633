"""How every true class fares with the delivered model, and what its images are taken for."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from autonovel import evaluation, scoring
from autonovel.data import ImageSet
from autonovel.embedding import Embedding
from autonovel.errors import UsageError
from autonovel.visible import visible
from autonovel.words import count, listed, per_cent

NO_CLASS = "no class"  # an output that no true class is matched to
SHOWN = 3  # classes that others are taken for, of a row

Rows = list[dict[str, Any]]


def of_run(
    run: Path, train: ImageSet, on_train: Embedding, test: ImageSet | None, on_test: Embedding | None
) -> dict[str, Rows]:
    """Return the rows of every head that has something to say, by what is judged on which images."""
    out: dict[str, Rows] = {}
    if train.truth is not None and on_train.p_new.shape[1]:
        truth = train.truth[train.unlabelled].numpy()
        found = on_train.p_new[train.unlabelled].argmax(dim=1).numpy()
        rows = evaluation.by_class(truth, found, evaluation.matching(truth, found))
        out["head of the new classes, on the unlabelled images"] = _named(rows, train)
    images, embedding, split = scoring.judges_of_joint(train, on_train, test, on_test)
    if images.truth is not None and embedding.is_grown(images.n_known):
        truth, found = images.truth.numpy(), embedding.p_known.argmax(dim=1).numpy()
        mapping = evaluation.plain_and_matched(truth, found, images.n_known)
        out[f"joint classifier, on {split}"] = _named(evaluation.by_class(truth, found, mapping), images)
    if not out and not on_train.p_new.shape[1]:
        raise UsageError(f"--classes is about new classes, and {run} has none: all its images are labelled.")
    if not out:
        raise UsageError(
            f"--classes compares with true classes, and nobody has told those of the images of {run}. For pictures of "
            "your own, `autonovel discover DIR --truth FILE` takes them from a table of path and label."
        )
    return out


def _named(rows: list[evaluation.OfClass], images: ImageSet) -> Rows:
    names = images.true_names
    return [
        {
            "class": names[row.number],
            "images": row.images,
            "right": row.right,
            "taken_for": {NO_CLASS if n is None else names[n]: number for n, number in row.taken_for.items()},
        }
        for row in rows
    ]


def print_class_tables(console: Console, tables: dict[str, Rows]) -> None:
    """Print a table for each head, a line for each class."""
    for title, rows in tables.items():
        table = Table("class", "images", "right %", "others are taken for", title=f"Every class by the {title}")
        for column in table.columns[1:3]:
            column.justify = "right"
        for row in rows:
            cells = (row["class"], count(row["images"]), per_cent(row["right"]), _others(row))
            table.add_row(*(Text(visible(cell)) for cell in cells))
        console.print(table)


def _others(row: dict[str, Any]) -> str:
    """Return ``6 (3.1 %), 9 (1.0 %)``, the most frequent ones first."""
    taken = row["taken_for"].items()
    return listed([f"{name} ({per_cent(number / row['images'])} %)" for name, number in taken], most=SHOWN)
