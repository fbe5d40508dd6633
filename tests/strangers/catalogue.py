"""The catalogue of bad input as a table: ``PYTHONPATH=tests python tests/strangers/catalogue.py``."""

from bad_commands import INPUTS
from bad_images import IMAGES


def count() -> int:
    """Return the number of kinds."""
    return len(IMAGES) + len(INPUTS)


def table() -> str:
    """Return a line per kind as Markdown: what is given, to which command, and what it says."""
    lines = ["| given | command | answer |", "|---|---|---|"]
    for image in IMAGES:
        answer = {"ok": "a row, `ok`", "": "nothing is found twice, or a row"}.get(image.says, f"a row, “{image.says}”")
        lines.append(f"| {image.given} | `run`, `discover`, `predict` on a folder | {answer} |")
    for kind in INPUTS:
        lines.append(f"| {kind.given} | `{kind.command}` | exit {kind.code}, “{kind.says}” |")
    return "\n".join(line.replace("\n", " ") for line in lines)


if __name__ == "__main__":
    print(f"{count()} kinds\n\n{table()}")
