"""FiftyOne's ``FiftyOneImageClassificationDataset``: images under ``data/``, their classes in ``labels.json``.

``fiftyone.Dataset.from_dir(DEST, fiftyone.types.FiftyOneImageClassificationDataset)`` reads it.  Images are named by
their file name without its ending; a label is a position in ``classes``, with the model's confidence unless a person
chose the class; junk has no label.
"""

import json
import os
from pathlib import Path
from typing import Any

from autonovel.export.job import Export, FreeNames
from autonovel.storage import writing
from autonovel.words import of_images


def write(job: Export, path: Path) -> str:
    """Write the dataset under ``path``."""
    job.check_images()
    writing.make_folder(path / "data")
    numbers = {name: number for number, name in enumerate(job.class_names)}
    names, labels = FreeNames(by_stem=True), {}
    for row, line in job.watched(enumerate(job.rows)):
        if job.unreadable(row):
            continue
        file = job.put(row, path / "data", names)
        labels[os.path.splitext(file)[0]] = _label(numbers, line)
    document = {"classes": job.class_names, "labels": labels}
    writing.write_file(path / "labels.json", json.dumps(document, ensure_ascii=False).encode())
    return f"{of_images(len(labels))} for fiftyone.Dataset.from_dir, type FiftyOneImageClassificationDataset."


def _label(numbers: dict[str, int], line: dict[str, str]) -> dict[str, Any] | None:
    if not line["class_name"]:
        return None
    about = {key: line[key] for key in ("id", "given_label", "found_class") if line[key]}
    label: dict[str, Any] = {"label": numbers[line["class_name"]], "attributes": about}
    return label if line["by_hand"] else label | {"confidence": float(line["confidence"])}
