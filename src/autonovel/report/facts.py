"""Where a run came from, in lines that may be shown to anybody: no path of the machine it ran on."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autonovel import recipe
from autonovel.errors import UsageError
from autonovel.report.subject import Subject
from autonovel.settings import PLACES
from autonovel.storage.documents import read_json
from autonovel.words import count, counted, duration

# where an absolute path begins, an address, or a way out of the folder in which the command was given
PLACE = re.compile(
    r"""(?:^|(?<=[\s=:;,"'(\[]))(?:~?/|[A-Za-z]:[/\\]|\\\\|\w+://|(?:[^\s=:;,"'(\[/\\]*[/\\])*?\.\.(?:[/\\]|$))"""
)


@dataclass(frozen=True)
class Facts:
    """The last section of the page.

    Attributes:
        about: the recipe in a sentence.
        lines: name and value of each fact.
        departures: where the recipe departs from the paper.
        changed: settings that were given other values than the recipe has.
    """

    about: str
    lines: tuple[tuple[str, str], ...]
    departures: tuple[str, ...]
    changed: tuple[str, ...] = ()


def facts(folder: Path, subject: Subject, results: Mapping[str, Any]) -> Facts:
    """Return the facts of the run in ``folder``."""
    run = read_json(folder / "run.json")
    preset = f", preset {results['preset']}" if results.get("preset") else ""
    changed = beyond_the_recipe(results)
    lines = {
        "Command": _commands(run.get("parts")),
        "Recipe": f"{results['recipe']}{preset}",
        "Seed": str(results["seed"]),
        "Images": f"{count(len(subject))} of {_size(subject)}",
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
        changed=tuple(
            f"{key} = {without_place(json.dumps(value, ensure_ascii=False))}" for key, value in changed.items()
        ),
    )


def beyond_the_recipe(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changed settings, but for places, and for those that have the same value without being given it."""
    changed = {key: value for key, value in (results.get("changed") or {}).items() if key not in PLACES}
    if results["recipe"] not in recipe.names():  # a file of somebody else's, which may be gone
        return changed
    return {key: value for key, value in changed.items() if _without(key, results["recipe"], changed) != value}


def _without(key: str, name: str, changed: Mapping[str, Any]) -> Any:
    """Return the value that a setting has in a recipe where all else was changed; ``...`` where that cannot be."""
    others = {other: value for other, value in changed.items() if other != key}
    try:
        return recipe.flatten(recipe.load(name, others).recipe).get(key, ...)
    except UsageError:
        return ...


def _commands(parts: list[Mapping[str, Any]] | None) -> str:
    """Return the command that began the run."""
    words = (parts or [{}])[0].get("command") or []
    return " ".join(shlex.quote(word) if "…" not in word else word for word in map(without_place, map(str, words)))


def without_place(word: str) -> str:
    """Return a word of a command without the absolute path or the address that it ends with."""
    found = PLACE.search(word)
    return f"{word[: found.start()]}…" if found else word


def _size(subject: Subject) -> str:
    channels, height, width = subject.shape
    return f"{height} × {width} pixels, {counted(channels, 'channel', 'channels')}"


def _listed(values: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name} {value}" for name, value in (values or {}).items())


def _started(parts: list[Mapping[str, Any]] | None) -> str:
    if not parts:
        return ""
    resumed = {0: "", 1: ", resumed once"}.get(len(parts) - 1, f", resumed {len(parts) - 1} times")
    return f"{parts[0].get('started', '')}{resumed}"
