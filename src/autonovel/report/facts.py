"""Where a run came from, in lines that may be shown to anybody: no commands, no paths."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autonovel.data import ImageSet
from autonovel.report.words import count, counted, duration
from autonovel.run_folder import read_json


@dataclass(frozen=True)
class Facts:
    """The last section of the page.

    Attributes:
        about: the recipe in a sentence.
        lines: name and value of each fact.
        departures: where the recipe departs from the paper.
    """

    about: str
    lines: tuple[tuple[str, str], ...]
    departures: tuple[str, ...]


def facts(folder: Path, images: ImageSet, results: Mapping[str, Any]) -> Facts:
    """Return the facts of the run in ``folder``."""
    run = read_json(folder / "run.json")
    preset = f", preset {results['preset']}" if results.get("preset") else ""
    lines = {
        "Recipe": f"{results['recipe']}{preset}",
        "Seed": str(results["seed"]),
        "Images": f"{count(len(images))} of {_size(images)}",
        "Hardware": run.get("hardware") or run.get("device"),
        "Platform": run.get("platform"),
        "Threads": _listed(run.get("threads")),
        "Versions": _listed(run.get("versions")),
        "Commit": run.get("commit") or "none: not run from a source tree",
        "Started": _started(run.get("parts")),
        "Time": ", ".join(f"{name} {duration(s)}" for name, s in results["seconds"].items() if s),
        "Scored at": f"the {results['epoch']} epoch" if results.get("epoch") else None,
    }
    return Facts(
        about=str(run.get("recipe", {}).get("about") or ""),
        lines=tuple((name, str(value)) for name, value in lines.items() if value),
        departures=tuple(results.get("departures") or ()),
    )


def _size(images: ImageSet) -> str:
    channels, height, width = images.images.shape[1:]
    return f"{height} × {width} pixels, {counted(channels, 'channel', 'channels')}"


def _listed(values: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name} {value}" for name, value in (values or {}).items())


def _started(parts: list[Mapping[str, Any]] | None) -> str:
    if not parts:
        return ""
    resumed = {0: "", 1: ", resumed once"}.get(len(parts) - 1, f", resumed {len(parts) - 1} times")
    return f"{parts[0].get('started', '')}{resumed}"
