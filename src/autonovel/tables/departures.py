"""Where recipes depart from the paper."""

from collections.abc import Sequence

from autonovel import recipe
from autonovel.tables.naming import Results, commit_of, in_order, name_of


def departures(results: Sequence[Results]) -> list[str]:
    """Return where each recipe departs from the paper, in lines of Markdown.

    Results that hold their settings are named by what differs from the recipe of today, so that it is enough to say
    where that one departs.  Of other results stands there what their runs have said.
    """
    lines = []
    for name in sorted({str(r["recipe"]) for r in results}):
        runs = [r for r in results if r["recipe"] == name]
        if name in recipe.names() and all(r.get("settings") for r in runs):
            told = recipe.load(name).recipe.departures
            lines += ["", f"`{name}` departs from the paper, beside what rows name:", "", *(f"- {one}" for one in told)]
        else:
            lines += _as_said(name, runs)
    return lines


def _as_said(name: str, runs: Sequence[Results]) -> list[str]:
    """Return what runs have said themselves; where they differ, which of them at which commits."""
    said: dict[str, list[Results]] = {}
    for r in runs:
        said.setdefault("; ".join(r.get("departures") or []) or "nowhere that it says", []).append(r)
    lines = []
    for text, of in sorted(said.items()):
        whose = f"`{name}`"
        if len(said) > 1:
            names = ", ".join(f"`{one}`" for one in in_order({name_of(r) for r in of}))
            whose = f"{names} at {', '.join(sorted({commit_of(r) for r in of}))}"
        lines += ["", f"{whose} departs from the paper: {text}."]
    return lines
