"""What the correcting commands print: the edit in words, and the classes it touched."""

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

from autonovel.editing.edited import EditedRun, open_run
from autonovel.editing.sorting import JUNK
from autonovel.errors import UsageError
from autonovel.visible import visible
from autonovel.words import counted, of_images


class Correction:
    """A run to correct inside a ``with`` block; on leaving it, the edit is told in words."""

    def __init__(self, folder: Path) -> None:
        self.run = open_run(folder)

    def __enter__(self) -> EditedRun:
        self.before = self.run.n_edits
        return self.run

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            for edit in self.run.edits()[self.before :]:
                hint = f" (autonovel undo {shlex.quote(str(self.run.folder))} takes it back)" if edit.in_force else ""
                print(f"Edit {edit.number}: {visible(edit.told)}.{hint}")
            if self.run.behind:
                print(self.run.behind, file=sys.stderr)


def one_of(images: list[str] | None, name: str | None) -> None:
    """Say so unless either images or a class are named."""
    if bool(images) == (name is not None):
        raise UsageError("name images, or a whole class with --class CLASS; one of the two.")


def list_edits(folder: Path, as_json: bool) -> None:
    """Print all edits of a run, and its classes as they are now."""
    run = open_run(folder)
    edits, classes, junk = run.edits(), run.classes(), len(run.sorting.members(JUNK))
    if as_json:
        document = {"edits": [asdict(edit) for edit in edits], "classes": classes, "junk": junk}
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return
    for edit in edits:
        undone = "" if edit.in_force or edit.kind == "undo" else "  (undone)"
        print(f"{edit.number:>4}  {edit.time}  {visible(edit.told)}{undone}")
    print(f"{counted(len(edits), 'edit', 'edits')}, {sum(edit.in_force for edit in edits)} in force. Classes now:")
    for entry in classes:
        known = "known" if entry["kind"] == "known" else "new"
        print(f"{entry['id']:>4}  {visible(entry['name'])}  ({known}, {of_images(entry['size'])})")
    if junk:
        print(f"   –  {of_images(junk)} marked as junk")
