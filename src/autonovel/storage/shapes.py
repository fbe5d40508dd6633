"""What the documents of a run folder look like, checked where they are read: they may come from somebody else.

A shape is a type, a list of one shape for a list of any length, a dict of shapes by key (``...`` stands for every other
key), or a tuple of shapes of which one must fit; ``None`` is the shape of nothing.  A key that is missing is left to
whoever needs it.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import EllipsisType
from typing import Any

from autonovel.errors import RunFolderError
from autonovel.storage.documents import read_json
from autonovel.storage.run_folder import check_format

Shape = type | None | list[Any] | tuple[Any, ...] | Mapping[str | EllipsisType, Any]

ANY_DICT: Shape = {...: object}
SCORES: Shape = ({...: float}, None)
OLD_NEW_ALL: Shape = {"old": float, "new": float, "all": float}
GROWN: Shape = {"acc": float, "taken_for_known": float}
JOINT: Shape = ({"split": str, "protocols": {...: OLD_NEW_ALL}, "unlabelled": GROWN}, None)
RUN: Shape = {
    "recipe": {"name": str, ...: object},
    "seed": int,
    "primary": str,
    "images": [int],
    "class_names": [str],
    "n_new": (int, None),
    "changed": ANY_DICT,
    "places": {...: str},
    "threads": ANY_DICT,
    "versions": ANY_DICT,
    "parts": [ANY_DICT],
    "finished": str,
    "digest": str,
    "source_digest": (str, None),
}
RESULTS: Shape = {
    "recipe": str,
    "preset": (str, None),
    "seed": int,
    "primary": (str, None),
    "systems": {...: SCORES},
    "incremental": JOINT,
    "joint_classifiers": ({...: JOINT}, None),
    "seconds": {...: float},
    "wall_seconds": float,
    "departures": ([str], None),
    "changed": (ANY_DICT, None),
    "settings": (ANY_DICT, None),
    "source_digest": (str, None),
    "each": (ANY_DICT, None),
    "failed": ({...: str}, None),
    "known_again": ({...: str}, None),
}
COUNT: Shape = {"estimate": int, "settings": ANY_DICT, "seed": int, "seconds": float}
STAGE: Shape = {"seconds": float}
CHOICE: Shape = {"chosen": str, "why": str, "seconds": float}
NETWORK: Shape = {"weights": str, "config": ANY_DICT}
REFINED_FROM: Shape = {"run": str, "digest": str, "edits": int, "confirmed": [str], "made_known": [str]}
CLASSES: Shape = {
    "classes": [{"id": int, "name": (str, None), "kind": str, "size": int, "found_as": (str, None)}],
    "gone": [{"id": int, "found_as": str}],
}
FINISHED = ("recipe", "seed", "primary", "images", "class_names", "changed", "parts")  # what a finished run has told


def misfit(value: Any, shape: Shape, where: str = "") -> str:
    """Return what of ``value`` is not as ``shape`` says, in words; nothing if all of it is."""
    if isinstance(shape, tuple):
        found = [misfit(value, one, where) for one in shape]
        return "" if "" in found else found[0]
    if shape is None:
        return "" if value is None else _told(where, value, "nothing")
    if isinstance(shape, list):
        if not isinstance(value, list):
            return _told(where, value, "a list")
        return next(filter(None, (misfit(one, shape[0], f"{where}[{n}]") for n, one in enumerate(value))), "")
    if isinstance(shape, Mapping):
        if not isinstance(value, dict):
            return _told(where, value, "an object")
        named = ((key, one, shape.get(key, shape.get(..., object))) for key, one in value.items())
        return next(filter(None, (misfit(one, inner, f"{where}.{key}".lstrip(".")) for key, one, inner in named)), "")
    return "" if _is(value, shape) else _told(where, value, _WORDS.get(shape, shape.__name__))


_WORDS = {int: "a whole number", float: "a finite number", str: "a text"}


def _is(value: Any, kind: type) -> bool:
    if kind is float:
        return type(value) in (int, float) and abs(value) < 1e300 and math.isfinite(value)
    if kind is int:
        return type(value) is int and abs(value) < 2**63
    return isinstance(value, kind)


def _told(where: str, value: Any, needed: str) -> str:
    return f"{where or 'it'} is {str(value)[:40]!r} where {needed} is needed"


def checked(path: Path, content: Any, shape: Shape, needed: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the document ``content`` of ``path`` if it is as ``shape`` says and has the keys ``needed``."""
    wrong = misfit(content, shape)
    missing = [key for key in needed if not wrong and key not in content]
    if wrong or missing:
        what = wrong or f"it lacks {', '.join(missing)}"
        raise RunFolderError(f"{path} is damaged, or was not written by autonovel: {what}. Restore it, or run anew.")
    return dict(content)


def read_shaped(path: Path, shape: Shape, needed: tuple[str, ...]) -> dict[str, Any]:
    """Return the document at ``path``, which must be as ``shape`` says and have the keys ``needed``."""
    return checked(path, read_json(path), shape, needed)


@contextlib.contextmanager
def interpreting(what: object) -> Iterator[None]:
    """Say of whatever a document's contents lead to that the document is damaged; its outer shape was checked before.

    Args:
        what: the document.
    """
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise RunFolderError(
            f"{what} is damaged, or was written by another version of autonovel ({type(error).__name__}: {error}). "
            "Restore it, or finish the run anew with --resume."
        ) from error


def run_facts(folder: Path, needed: tuple[str, ...] = FINISHED) -> dict[str, Any]:
    """Return ``run.json`` of the run at ``folder``, which has all that is ``needed``."""
    facts = checked(folder / "run.json", check_format(folder), RUN, needed)
    if "images" in needed and len(facts["images"]) != 4:
        raise RunFolderError(f"{folder / 'run.json'} is damaged: images has {len(facts['images'])} numbers, not four.")
    if "recipe" in needed and "name" not in facts["recipe"]:
        raise RunFolderError(f"{folder / 'run.json'} is damaged: its recipe has no name. Restore it, or run anew.")
    return facts


def kept_results(folder: Path) -> list[Path]:
    """Return the results in ``folder`` that were kept without their runs, its own or those of folders in it."""
    return sorted([*folder.glob("seed-*.json"), *folder.glob("*/seed-*.json")])


def read_results(path: Path) -> dict[str, Any]:
    """Return the ``results.json`` at ``path``."""
    needed = ("recipe", "systems", "seconds", "seed")
    content = read_json(path)
    missing = [key for key in needed if not isinstance(content, dict) or key not in content]
    if missing:
        raise RunFolderError(f"{path} is not the results of a run: it does not say {', '.join(missing)}.")
    results = checked(path, content, RESULTS)
    if "total" not in results["seconds"]:
        raise RunFolderError(f"{path} does not say how long the run took in all (seconds.total). Run anew.")
    return results
