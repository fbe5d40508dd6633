"""What is in a folder, without times: whole or not, and the same as in another or not."""

import csv
import hashlib
import io
import json
from pathlib import Path
from typing import Any

from safetensors.torch import load as load_tensors

from autonovel.storage.folder_lock import LOCK
from autonovel.storage.writing import PARTIAL, PREVIOUS

TIMES = ("seconds", "started", "finished", "parts", "peak_memory", "command", "time", "images_per_second",
         "commit")  # fmt: skip  # which may be a new one by the end of a long sweep
WHOLE = "whole"


class NotWholeError(Exception):
    """A document that is there in part."""


def content(place: Path) -> dict[str, Any]:
    """Return every file under ``place`` by its name: what it says, but for times and for where it lies."""
    return {
        str(path.relative_to(place)): _meaning(path, place)
        for path in sorted(place.rglob("*"))
        if path.is_file() and path.name != LOCK
    }


def check_whole(place: Path) -> None:
    """Raise an error if some document is there in part, but for what says so by its name."""
    for path in sorted(place.rglob("*")):
        unfinished = any(part.endswith((PARTIAL, PREVIOUS)) for part in path.relative_to(place).parts)
        if path.is_file() and path.name != LOCK and not unfinished and "making" not in path.parts:
            _meaning(path, place, torn=True)


def _meaning(path: Path, place: Path, torn: bool = False) -> Any:
    data = path.read_bytes()
    try:
        if path.suffix == ".json":
            return _timeless(json.loads(_anywhere(data, place)))
        if path.suffix == ".jsonl":
            *lines, last = _anywhere(data, place).split("\n")
            if last and not torn:
                raise ValueError("the last line is torn")
            return [_timeless(json.loads(line)) for line in lines]
        if path.suffix == ".csv":
            rows = list(csv.DictReader(io.StringIO(_anywhere(data, place))))
            if not rows or any(None in row.values() or None in row for row in rows):
                raise ValueError("a row is torn")
            return rows
        if path.suffix == ".safetensors":
            load_tensors(data)
            length = int.from_bytes(data[:8], "little")  # of the table of contents, whose order is not fixed
            return [json.loads(data[8 : 8 + length]), _sum(data[8 + length :])]
        if path.suffix == ".html" and not data.rstrip().endswith(b"</html>"):
            raise ValueError("the page has no end")
        if path.suffix in (".png", ".svg", ".webp", ".js", ".onnx", ".html") and not data:
            raise ValueError("empty")
    except Exception as error:
        raise NotWholeError(f"{path.relative_to(place)}: {error}") from error
    return _sum(data)


def _sum(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def _anywhere(data: bytes, place: Path) -> str:
    return data.decode().replace(str(place), "PLACE")


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(one) for key, one in value.items() if key not in TIMES}
    return [_timeless(one) for one in value] if isinstance(value, list) else value


def differences(found: dict[str, Any], wanted: dict[str, Any], loose: set[str], optional: tuple[str, ...]) -> list[str]:
    """Return in words how ``found`` differs from ``wanted``; of ``loose`` files only that they are there counts."""
    told = [f"{name} is left over" for name in found if name not in wanted]
    told += [f"{name} is missing" for name in wanted if name not in found and not _any(name, optional)]
    return told + [
        f"{name} differs" for name in wanted if name in found and name not in loose and found[name] != wanted[name]
    ]


def _any(name: str, patterns: tuple[str, ...]) -> bool:
    return any(Path(name).match(pattern) for pattern in patterns)
