"""Where a run's images lie, and what else it reads, as seen from its folder: so that it is found from anywhere."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autonovel import recipe
from autonovel.data.table import moved
from autonovel.errors import UsageError
from autonovel.settings import Recipe
from autonovel.visible import is_text

PATH, TRUTH, CACHE = "data.path", "data.truth", "data.cache"
WEIGHTS, MODEL = "pretrain.weights", "network.model"
NOTED = (PATH, TRUTH, CACHE, WEIGHTS, MODEL)


def as_seen_from(folder: Path, settings: Recipe) -> dict[str, str]:
    """Return where what a run reads lies as seen from its ``folder``.

    That is its images, their true classes, a cache of theirs, weights to start from and a network from elsewhere.
    """
    said = recipe.flatten(settings)
    there = {key: said[key] for key in NOTED if _is_place(key, said[key])}
    seen = {key: _relative(_by_its_own_name(path), os.path.realpath(folder)) for key, path in there.items()}
    return {key: path for key, path in seen.items() if is_text(path)}


def settings_now(
    folder: Path, facts: Mapping[str, Any], data: Path | None = None, changed: Mapping[str, Any] | None = None
) -> Recipe:
    """Return the settings of a run, its images where they lie now.

    Args:
        folder: of the run.
        facts: its ``run.json``.
        data: where the images lie now, if they were moved since.
        changed: settings to be other ones.
    """
    then = recipe.flatten(recipe.restore({**facts["recipe"], **(changed or {})}))
    places = facts.get("places", {})
    for key in NOTED:
        if key in places:
            then[key] = _found_again(key, then[key], folder, places[key])
    if data:
        then[PATH] = moved(then[PATH], data)
        way = _among_images(places)
        if way and (data / way).is_file():
            then[TRUTH] = str(data / way)
    return recipe.restore(then)


def images_now(
    folder: Path, facts: Mapping[str, Any], data: Path | None, changed: Mapping[str, Any] | None = None
) -> Recipe:
    """Return the settings of a run whose images are to be read, or say that they are not where they were."""
    settings = settings_now(folder, facts, data, changed)
    if PATH in facts.get("places", {}) and not os.path.exists(settings.data.path):
        raise UsageError(f"the images of {folder} are not at {settings.data.path}. Say where they are with --data DIR.")
    return settings


def same(noted: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    """Return the settings that name what they named when it was ``noted``, perhaps by another way there."""
    found = {key for key, place in noted.items() if now.get(key) == place}
    return found | ({TRUTH} if _among_images(noted) == _among_images(now) != "" else set())


def _among_images(places: Mapping[str, str]) -> str:
    """Return where true classes lie as seen from the folder of the images; nothing if they do not lie below it."""
    if not {PATH, TRUTH} <= places.keys():
        return ""
    way = _relative(places[TRUTH], places[PATH])
    return "" if way.startswith(os.pardir) or os.path.isabs(way) else way


def _is_place(key: str, said: str) -> bool:
    """Tell whether what a setting says is a file or a folder here; true classes may be named from where images lie."""
    if key == CACHE and said in ("auto", "off"):
        return False
    if key == MODEL:  # else its name on the hub
        return os.path.isdir(said)
    return os.path.isfile(said) if key in (TRUTH, WEIGHTS) else said != "" and os.path.exists(said)


def _found_again(key: str, said: str, folder: Path, place: str) -> str:
    """Return where something lies that a run was told of as ``said`` and noted as ``place``, seen from its folder."""
    noted = _relative(os.path.normpath(os.path.join(os.path.realpath(folder), place)), os.getcwd())
    ways = (said, noted) if os.path.isabs(said) else (noted, said)  # a run that was moved alone is told of it once more
    gone = said if key == TRUTH else ways[0]  # true classes are looked for beside the images, wherever these are now
    return next((way for way in ways if os.path.exists(way)), gone)


def _by_its_own_name(path: str) -> str:
    """Return the real place of ``path``, but a link by its own name: what a table names lies beside the link to it."""
    parent, name = os.path.split(path.rstrip(os.sep) or path)
    if name in ("", os.curdir, os.pardir):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(parent), name)


def _relative(path: str, start: str) -> str:
    """Return ``path`` as seen from ``start``; as it is where no way leads there, as from one drive to another."""
    try:
        return os.path.relpath(path, start)
    except ValueError:
        return path
