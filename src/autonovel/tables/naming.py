"""What rows of a table are called: the recipe, with the settings that were changed in it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from autonovel.studies.variants import with_effect
from autonovel.words import short_commit

Results = dict[str, Any]


def name_of(results: Results) -> str:
    """Return the recipe with the settings that were changed, so that unlike runs are never averaged."""
    return _with_changes(results, results.get("changed"))


def _with_changes(results: Results, changed: Mapping[str, Any] | None) -> str:
    return f"{results['recipe']} {changes_in_words(with_effect(changed or {}))}".rstrip()


def name_then(runs: Sequence[Results]) -> str:
    """Return what the callers asked for, where the recipe has changed itself since; nothing where it has not."""
    asked = {_with_changes(r, r["given"]) if "given" in r else "" for r in runs}
    return asked.pop() if len(asked) == 1 else ""


def version_of(runs: Sequence[Results]) -> str:
    """Return what the recipe said otherwise when ``runs`` were made, apart from the callers' own changes."""
    said = {
        changes_in_words({k: v for k, v in with_effect(r["changed"]).items() if k not in r["given"]})
        for r in runs
        if "given" in r
    }
    return said.pop() if len(said) == 1 and name_then(runs) else ""


def changes_in_words(changed: Mapping[str, Any]) -> str:
    """Return changed settings as the name of a row has them behind the recipe."""
    return " ".join(f"{key}={value}" for key, value in sorted(changed.items()))


def names_of(results: Sequence[Results]) -> list[str]:
    """Return the names of ``results``, each once, in order."""
    return in_order({name_of(r) for r in results})


def in_order(names: Iterable[str]) -> list[str]:
    """Return names in the order of their words and numbers: k = 2 before k = 10."""
    return sorted(names, key=lambda name: [int(p) if p.isdecimal() else p for p in re.split(r"(\d+)", name)])


def commit_of(results: Results) -> str:
    """Return the commit that ``results`` come from, shortened."""
    return short_commit(results.get("commit"))
