"""What was tried and what became of it, as a table."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .judge import Undisturbed


@dataclass(frozen=True)
class Task:
    """Something to try: what happens, to which command, at which point."""

    kind: str
    scene: str
    number: int


@dataclass(frozen=True)
class Verdict:
    """What became of it: nothing ``wrong``, or what was."""

    kind: str
    scene: str
    number: int
    wrong: list[str] = field(default_factory=list)

    @property
    def task(self) -> Task:
        return Task(self.kind, self.scene, self.number)


COLUMNS = {
    "kill": "kills at boundaries",
    "random": "random kills",
    "kill among edits": "kills among edits",
    "power cut": "power cuts",
    "full disk": "full disk from an act on",
    "small disk": "small file system",
    "read-only": "read-only",
    "deleted": "deleted meanwhile",
    "second process": "second process",
}


def markdown(found: Sequence[Verdict], plain: Mapping[str, Undisturbed], seconds: float) -> str:
    """Return a row per command: how many acts it makes, how many trials of each kind, and how many of them lost."""
    kinds = [kind for kind in COLUMNS if any(one.kind == kind for one in found)]
    lines = [
        f"| command | acts | {' | '.join(COLUMNS[kind] for kind in kinds)} | lost |",
        f"|---|---|{'---|' * (len(kinds) + 1)}",
    ]
    for scene, undisturbed in plain.items():
        counts = [_cell(found, scene, kind) for kind in kinds]
        lost = sum(bool(one.wrong) for one in found if one.scene == scene)
        lines.append(f"| {scene} | {undisturbed.acts} | {' | '.join(counts)} | {lost} |")
    totals = [str(sum(one.kind == kind for one in found)) for kind in kinds]
    lost = sum(bool(one.wrong) for one in found)
    acts = sum(undisturbed.acts for undisturbed in plain.values())
    lines.append(f"| all | {acts} | {' | '.join(totals)} | {lost} |")
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return "\n".join(lines) + f"\n\n{len(found):,} trials in {seconds / 60:.0f} minutes; {machine}.\n"


def _cell(found: Sequence[Verdict], scene: str, kind: str) -> str:
    n = sum((one.scene, one.kind) == (scene, kind) for one in found)
    return str(n) if n else "–"
