"""Settings as people write them: ``section.key=value`` read, checked against the kind of the setting, and written."""

import difflib
import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from autonovel.errors import UsageError
from autonovel.visible import is_text

AS_LIKE = 0.05  # two settings whose names are so nearly as like a mistyped one are both named


def parse_override(text: str, defaults: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the key and the value of ``section.key=value``; ``defaults`` tell which settings are text."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--set {text!r} is not of the form section.key=value, such as joint.lr=0.05.")
    key, value = key.strip(), value.strip()
    is_text = isinstance(defaults.get(key), str)
    try:
        found = tomllib.loads(f"v = {value}")["v"]
    except tomllib.TOMLDecodeError:
        return key, value  # a bare word: --set preset=paper
    except (ValueError, RecursionError) as error:
        if not is_text:
            raise UsageError(f"the value of --set {key} cannot be read: {error}.") from error
        found = None
    return key, value if is_text and not isinstance(found, str) else found  # 2024-01-01 may be a folder


def as_override(key: str, value: Any) -> str:
    """Return ``section.key=value`` that is read as this very value, whatever it looks like."""
    written = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # which TOML wants escaped
    return f"{key}={written}"


def nearest(key: str, options: Iterable[str]) -> str:
    """Return a question that names what a mistyped ``key`` may have been; nothing where nothing is like it."""
    close = difflib.get_close_matches(key, list(options), n=2, cutoff=0.5)
    if len(close) == 2 and _likeness(key, close[0]) - _likeness(key, close[1]) > AS_LIKE:
        close = close[:1]
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()


def check_name(key: str, known: Iterable[str]) -> None:
    """Say so if there is no setting ``key``."""
    if key not in known:
        raise UsageError(f"unknown setting {key!r}.{nearest(key, known)} `autonovel show demo` lists all settings.")


def checked(key: str, value: Any, known: Mapping[str, Any]) -> Any:
    """Return ``value`` in the type of the setting ``key``, or say what is wrong with it."""
    check_name(key, known)
    default = known[key]
    if isinstance(default, tuple):
        entries = value.split(",") if isinstance(value, str) and value else value
        entries = list(entries) if isinstance(entries, list | tuple) else [entries] if entries not in ("", None) else []
        if key.endswith("_at"):  # epochs; --set pretrain.decay_at=60,120 arrives as words
            entries = [int(e) if isinstance(e, str) and re.fullmatch(r"\s*\d{1,9}\s*", e) else e for e in entries]
            return tuple(_scalar(key, int, entry) for entry in entries)
        return tuple(_scalar(key, str, entry) for entry in entries)
    return _scalar(key, type(default), value)


def _scalar(key: str, kind: type, value: Any) -> Any:
    if kind is str and isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # known = [0, 1] names digits
    if kind is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1e300:
        return float(value)
    if kind is str and isinstance(value, str):
        if not is_text(value):
            raise UsageError(
                f"{key} is {value!r}, whose bytes are no text (UTF-8), so that no document can hold it. Rename that "
                "file or folder, or make a link to it and give that."
            )
        return value.strip()
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{key} is {value}; it must be a finite number.")
        return value
    raise UsageError(f"{key} is {value!r}; it must be of type {kind.__name__}.")
