"""Recipes of one's own that were edited between runs: what runs of one name say otherwise counts as changed.

What a recipe of the package said at another time is known from what it says today (``as_today``).  Of other recipes
there is no today; so runs of one name are held against each other.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from autonovel import recipe
from autonovel.tables.as_today import in_parts, matters
from autonovel.tables.naming import Results, name_of


def told_apart(results: Sequence[Results]) -> list[Results]:
    """Return ``results``, of recipes outside the package with what others of their name have otherwise as ``changed``.

    So unlike runs are never averaged.  Split into parts where systems differ in it.
    """
    out: list[Results] = []
    packaged = set(recipe.names())
    for one in results:
        others = [r for r in results if r.get("settings") and name_of(r) == name_of(one)]
        if one["recipe"] in packaged or not one.get("settings") or len(others) < 2:
            out.append(one)
            continue
        differs = {
            system: said_otherwise(one["settings"], [r["settings"] for r in others if system in r["systems"]], [system])
            for system in one["systems"]
        }
        given = one.get("changed") or {}
        parts = in_parts(one, differs)
        out += [part | ({"changed": given | own, "given": given} if own else {}) for own, part in parts]
    return out


def said_otherwise(
    held: Mapping[str, Any], others: Iterable[Mapping[str, Any]], systems: Collection[str]
) -> dict[str, Any]:
    """Return the settings on which results of ``systems`` depend and which others of the same name have otherwise."""
    return {
        key: value
        for other in others
        for key, value in held.items()
        if key in other and other[key] != value and any(matters(key, system, held) for system in systems)
    }
