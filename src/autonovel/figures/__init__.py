"""The figures of the paper, drawn from run folders: pictures, captions and the numbers behind them.

Each figure is one file: ``evolution`` (features during training), ``old_and_new`` (with and without incremental
learning), ``sweeps`` (accuracy against k and groups), ``curves`` (losses, pairs, moving target) and ``comparison``
(systems).  A figure that the given runs do not allow says what is missing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from autonovel.figures import comparison, curves, evolution, old_and_new, sweeps
from autonovel.figures.figure import CannotDrawError, Drawn, Tick
from autonovel.figures.runs import collect, studies
from autonovel.storage.documents import write_json


@dataclass(frozen=True)
class Written:
    """What became of the figures: files and captions of those drawn, and why others were left out."""

    files: dict[str, list[str]]
    captions: dict[str, str]
    left_out: dict[str, str]

    def why_left_out(self) -> dict[str, list[str]]:
        """Return the figures that each reason kept from being drawn: of many recipes most share one."""
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.left_out.items():
            by_reason.setdefault(reason, []).append(name)
        return by_reason


def write_figures(paths: Sequence[Path], folder: Path, tick: Tick, pair: tuple[str, str] | None = None) -> Written:
    """Draw what the runs at ``paths`` allow into ``folder``, with ``figures.json`` beside the pictures."""
    drawn, left_out = draw_figures(paths, tick, pair)
    files = {name: figure.save(folder) for name, figure in drawn.items()}
    content = {
        "figures": {
            name: {"files": files[name], "caption": figure.caption, "numbers": figure.numbers}
            for name, figure in drawn.items()
        },
        "left_out": left_out,
    }
    write_json(folder / "figures.json", content)
    return Written(files, {name: figure.caption for name, figure in drawn.items()}, left_out)


def draw_figures(
    paths: Sequence[Path], tick: Tick, pair: tuple[str, str] | None = None
) -> tuple[dict[str, Drawn], dict[str, str]]:
    """Return the figures by name, and the reasons of those left out; names tell recipes apart if there are several."""
    found = studies(collect(paths))
    if pair:
        old_and_new.check_pair(pair, found)
    wanted: dict[str, Callable[[], Drawn]] = {}
    for study in found:
        suffix = f"-{_file_name(study.label)}" if len(found) > 1 else ""
        wanted[evolution.NAME + suffix] = partial(evolution.draw, study, tick)
        wanted[old_and_new.NAME + suffix] = partial(old_and_new.draw, study, tick, pair)
        wanted[curves.NAME + suffix] = partial(curves.draw, study)
        wanted[comparison.NAME + suffix] = partial(comparison.draw, study)
    wanted |= {sweep.name: partial(sweeps.draw, found, sweep) for sweep in sweeps.SWEEPS}
    drawn: dict[str, Drawn] = {}
    left_out: dict[str, str] = {}
    for name, draw in wanted.items():
        try:
            drawn[name] = draw().named(name)
        except CannotDrawError as reason:
            left_out[name] = str(reason)
    return drawn, left_out


def _file_name(label: str) -> str:
    return "".join(c if c.isalnum() or c in "-._=" else "-" for c in label)
