"""Runs of one recipe on different images of a person's own: told apart by a checksum of these, never averaged."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from autonovel.settings import OWN_SOURCES
from autonovel.tables.naming import Results

CHECKSUM = "source_digest"  # in results; those of benchmarks, and of earlier versions, have none
IMAGES = "images"  # among the changed settings, by which rows are named
DIGITS = 8
LEGEND = f"`{IMAGES}=` stands for other images under the same recipe: the first digits of their checksum ({CHECKSUM})."


def told_apart_by_images(results: Sequence[Results]) -> list[Results]:
    """Return ``results``, with their images as ``changed`` where others of the same recipe were made on other ones."""
    told = images_told([(r["recipe"], r.get("changed") or {}, r.get(CHECKSUM)) for r in results])
    return [_on(one, images) if images else one for one, images in zip(results, told, strict=True)]


def _on(results: Results, images: dict[str, str]) -> Results:
    told = {key: (results[key] or {}) | images for key in ("changed", "given") if key in results}
    return results | {"changed": images} | told


def images_told(runs: Sequence[tuple[str, Mapping[str, Any], str | None]]) -> list[dict[str, str]]:
    """Return for each run what tells its images from those of others; nothing where all are the same or unknown.

    Args:
        runs: the recipe of each, what was changed in it, and the checksum of its images.
    """
    found: dict[str, set[str | None]] = defaultdict(set)
    for name, changed, checksum in runs:
        found[_asked(name, changed)].add(checksum)
    return [
        {IMAGES: checksum[:DIGITS]} if checksum and len(found[_asked(name, changed)]) > 1 else {}
        for name, changed, checksum in runs
    ]


def _asked(name: str, changed: Mapping[str, Any]) -> str:
    """Return which images of its source a run was asked to take: others have another checksum and name anyway."""
    return json.dumps([name, {k: v for k, v in changed.items() if k.startswith("data.")}], sort_keys=True, default=str)


def same_images(results: Sequence[Results]) -> str:
    """Return in words whether results are of the same images of a person's own; nothing where a benchmark has them."""
    if all(r.get(CHECKSUM) for r in results):
        return f" on the same images (checksum {results[0][CHECKSUM][:DIGITS]})"
    own = any((r.get("settings") or {}).get("data.source") in OWN_SOURCES for r in results)
    return ", perhaps on other images (results of earlier versions hold no checksum of them)" if own else ""
