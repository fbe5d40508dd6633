"""Label Studio: ``tasks.json`` to import, the classes as predictions, and ``config.xml``, the labelling interface.

Images lie under ``images/`` and are named by Label Studio's local-file address, relative to DEST's parent folder.
"""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from autonovel import __version__
from autonovel.export.job import Export, FreeNames
from autonovel.storage import writing

CONTROL, SUBJECT = "class", "image"


def write(job: Export, path: Path) -> str:
    """Write the tasks, the interface and the images under ``path``."""
    job.check_images()
    writing.make_folder(path / "images")
    names, tasks = FreeNames(), []
    for row, line in job.watched(enumerate(job.rows)):
        if not job.unreadable(row):
            file = job.put(row, path / "images", names)
            tasks.append(_task(line, f"{job.dest.name}/images/{file}"))
    writing.write_file(path / "tasks.json", json.dumps(tasks, ensure_ascii=False, indent=1).encode())
    writing.write_file(path / "config.xml", _interface(job.class_names).encode())
    return (
        f"{len(tasks):,} tasks. In Label Studio, take config.xml as labelling interface and import tasks.json; "
        "start it with LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true and "
        f"LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={job.dest.resolve().parent}, and add {job.dest.name}/images as local "
        "storage."
    )


def _task(line: dict[str, str], place: str) -> dict[str, Any]:
    about = {"id": line["id"], "given_label": line["given_label"], "found_class": line["found_class"]}
    task: dict[str, Any] = {"data": {SUBJECT: f"/data/local-files/?d={quote(place)}", **about}, "predictions": []}
    if line["class_name"]:
        choice = {
            "from_name": CONTROL,
            "to_name": SUBJECT,
            "type": "choices",
            "value": {"choices": [line["class_name"]]},
        }
        score = {} if line["by_hand"] else {"score": float(line["confidence"])}
        task["predictions"] = [{"model_version": f"autonovel {__version__}", "result": [choice], **score}]
    return task


def _interface(names: list[str]) -> str:
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in names)
    return (
        f'<View>\n  <Image name="{SUBJECT}" value="${SUBJECT}"/>\n'
        f'  <Choices name="{CONTROL}" toName="{SUBJECT}" choice="single">\n{choices}\n  </Choices>\n</View>\n'
    )
