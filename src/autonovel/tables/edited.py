"""Recipes of one's own that were edited between runs: what runs of one name say otherwise counts as changed.

What a recipe of the package said at another time is known from what it says today (``as_today``).  Of other recipes
there is no today; so runs of one name are held against each other.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from autonovel import recipe
from autonovel.layers import INHERITED
from autonovel.tables.as_today import in_parts, matters
from autonovel.tables.naming import Results


def told_apart(results: Sequence[Results]) -> list[Results]:
    """Return ``results``, of recipes outside the package with what others of their name have otherwise as ``changed``.

    So unlike runs are never averaged.  Split into parts where systems differ in it.
    """
    out: list[Results] = []
    others = versions((r["recipe"], r["settings"], r.get("changed") or {}) for r in results if r.get("settings"))
    for one in results:
        held, of_recipe = one.get("settings"), others.get(one["recipe"], [])
        if not held:
            out.append(one)
            continue
        given = beyond_the_recipe(held, one.get("changed") or {}, of_recipe)
        differs = {system: said_otherwise(held, given, of_recipe, [system]) for system in one["systems"]}
        parts = in_parts(one | {"changed": given}, differs)
        out += [part | ({"changed": given | own, "given": given} if own else {}) for own, part in parts] or [one]
    return out


Version = tuple[Mapping[str, Any], Mapping[str, Any]]  # settings as a run has them, and those its caller changed


def versions(runs: Iterable[tuple[str, Mapping[str, Any], Mapping[str, Any]]]) -> dict[str, list[Version]]:
    """Return the versions of each recipe outside the package: of ``runs`` their recipe, settings and changes."""
    packaged = set(recipe.names())
    found: dict[str, dict[str, Version]] = {}
    for name, held, changed in runs:
        if name not in packaged:
            found.setdefault(name, {})[json.dumps([held, changed], sort_keys=True, default=str)] = held, changed
    return {name: [*of_recipe.values()] for name, of_recipe in found.items()}


def beyond_the_recipe(held: Mapping[str, Any], changed: Mapping[str, Any], others: Sequence[Version]) -> dict[str, Any]:
    """Return the settings that a caller changed, but for those that the recipe says itself.

    These are told by the ``others``: all in which nobody said them have them so, and with them what follows from them.
    """
    if "preset" in changed:  # from which all follows
        return dict(changed)
    return {key: value for key, value in changed.items() if not _said_by_the_recipe(key, held, changed, others)}


def _said_by_the_recipe(
    key: str, held: Mapping[str, Any], changed: Mapping[str, Any], others: Sequence[Version]
) -> bool:
    decided = {k: v for k, v in held.items() if _named([key], k) and (k == key or k not in changed)}
    untold = [
        {k: other[k] for k in decided if k in other}
        for other, there in others
        if "preset" not in there and not any(_named(there, k) for k in decided)
    ]
    told = [one for one in untold if one]
    return told != [] and all(one.items() <= decided.items() for one in told)


def said_otherwise(
    held: Mapping[str, Any], changed: Mapping[str, Any], others: Iterable[Version], systems: Collection[str]
) -> dict[str, Any]:
    """Return the settings on which results of ``systems`` depend and which other versions of the recipe have otherwise.

    What a caller has changed, here or there, and what follows from it, is no difference of the recipe.
    """
    return {
        key: value
        for other, changed_there in others
        if "preset" not in {*changed, *changed_there}  # from which all follows
        for key, value in held.items()
        if key in other and other[key] != value
        if not _named({*changed, *changed_there}, key) and any(matters(key, system, held) for system in systems)
    }


def _named(changed: Collection[str], key: str) -> bool:
    """Tell whether a setting was changed, or one that it is as where nobody says it."""
    twins = [key.replace(section, other, 1) for section, other, _ in INHERITED if key.startswith(section)]
    return any(name in changed for name in (key, *twins))
