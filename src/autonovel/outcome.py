"""What a person is told at the end of a run on their own pictures: classes with their sizes, and what to do next."""

import shlex
from pathlib import Path

from rich.console import Console

from autonovel.visible import visible


def next_steps(folder: Path, *others: str) -> list[str]:
    """Return the commands that go on from the run in ``folder``, ``others`` after the review."""
    run = shlex.quote(str(folder))
    return [
        f"Next: autonovel review {run}   (look, rename, merge, split, move, undo)",
        *others,
        f"      autonovel export {run} --to csv classes.csv   (or folders, fiftyone, labelstudio, onnx)",
        f"      autonovel predict {run} LATER_IMAGES",
    ]


def say(console: Console, *lines: str) -> None:
    """Print lines as they are: names of files and classes are no markup."""
    console.print(visible("\n".join(lines)), highlight=False, markup=False, soft_wrap=True)
