"""How the training went: loss terms and pair diagnostics by epoch, read from the journals of a run."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autonovel.storage.journal import Journal
from autonovel.storage.shapes import interpreting

LOSSES, PAIRS = "loss/", "pairs/"


@dataclass(frozen=True)
class Series:
    """One line of a chart."""

    name: str
    epochs: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Chart:
    """The lines of one stage that share a scale; ``shares`` go from 0 to 1, losses from 0 up."""

    stage: str
    kind: str
    shares: bool
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Training:
    """All charts of one system."""

    system: str
    charts: tuple[Chart, ...]


def training(folder: Path, primary: str) -> tuple[Training, ...]:
    """Return the charts of the primary system with the shared stages, then those of the other systems."""
    journals = {primary: folder / "metrics.jsonl"}
    journals |= {path.parent.name: path for path in sorted(folder.glob("systems/*/metrics.jsonl"))}
    found = (Training(system, _charts_of(path)) for system, path in journals.items())
    return tuple(one for one in found if one.charts)


def _charts_of(path: Path) -> tuple[Chart, ...]:
    with interpreting(path):
        return _charts(Journal(path).lines)


def _charts(lines: list[dict[str, Any]]) -> tuple[Chart, ...]:
    charts = []
    for stage in dict.fromkeys(line["stage"] for line in lines if "stage" in line):
        own = [line for line in lines if line.get("stage") == stage]
        for prefix, kind, shares in ((LOSSES, "loss terms", False), (PAIRS, "pairs", True)):
            series = tuple(_series(own, prefix))
            if series:
                charts.append(Chart(stage, kind, shares, series))
    return tuple(charts)


def _series(lines: list[dict[str, Any]], prefix: str) -> Iterable[Series]:
    for key in dict.fromkeys(key for line in lines for key in line if key.startswith(prefix)):
        points = [(int(line["epoch"]) + 1, float(line[key])) for line in lines if line.get(key) is not None]
        if points:
            yield Series(key.removeprefix(prefix), *map(tuple, zip(*points, strict=True)))
