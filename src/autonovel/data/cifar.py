"""CIFAR-10 and CIFAR-100 in their authors' python format, unpacked or straight from the archive.

The files are pickles, and an ordinary unpickler runs whatever code a pickle asks for.  Ours knows a handful
of opcodes and five names; each name stands for a harmless function of this file, never for numpy's own.
"""

import io
import pickle
import pickletools
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autonovel.data.catalogue import explained, how_to_get
from autonovel.data.layouts import CIFAR_LAYOUTS, CifarLayout
from autonovel.data.splits import LabelledImages
from autonovel.errors import InputError, UsageError

PIXELS = 3 * 32 * 32
LARGEST = 2**29  # bytes; the largest official file has 155 million


def load(folder: Path, variant: str, split: str) -> LabelledImages:
    """Return the images of a split, n×3×32×32, with their (fine) labels.

    Args:
        folder: holds the authors' folder or their archive, or is the authors' folder.
        variant: ``cifar10`` or ``cifar100``.
        split: ``train`` or ``test``.

    Raises:
        InputError: if a file is missing, damaged, or not what the authors publish.
    """
    place, layout = locate(folder, variant, split), CIFAR_LAYOUTS[variant]
    hint = f"Delete {place}, or move it away. {how_to_get(variant, folder)}"
    parts = layout.splits[split]
    with explained(place, hint):
        contents = _read(place, layout, (*parts, layout.meta))
    with explained(place / layout.meta, hint):
        names = _names(_decode(contents.pop(layout.meta)), layout)
    pixels, labels = [], []
    for part in parts:
        with explained(place / part, hint):
            document = _decode(contents.pop(part))
            pixels.append(_pixels(_entry(document, "data")))
            labels.append(_labels(_entry(document, layout.labels), len(pixels[-1]), layout.classes))
    return LabelledImages(
        images=torch.from_numpy(np.concatenate(pixels)).view(-1, 3, 32, 32),
        labels=torch.from_numpy(np.concatenate(labels)),
        names=names,
    )


def locate(folder: Path, variant: str, split: str) -> Path:
    """Return the folder or archive from which ``load`` reads; an unpacked folder goes first if it is complete."""
    if variant not in CIFAR_LAYOUTS or split not in CIFAR_LAYOUTS[variant].splits:
        raise UsageError(f"there is no {variant} {split}; choose cifar10 or cifar100, and train or test.")
    layout = CIFAR_LAYOUTS[variant]
    wanted = (*layout.splits[split], layout.meta)
    for place in (folder / layout.folder, folder):
        if all((place / name).is_file() for name in wanted):
            return place
    if (folder / layout.archive).is_file():
        return folder / layout.archive
    missing = [name for name in wanted if not (folder / layout.folder / name).is_file()]
    raise InputError(
        f"{folder} {'holds' if folder.is_dir() else 'is no folder, so it holds'} neither {layout.archive} nor all "
        f"files of {layout.folder}; missing: {', '.join(missing)}. {how_to_get(variant, folder)}"
    )


def _read(place: Path, layout: CifarLayout, names: tuple[str, ...]) -> dict[str, bytes]:
    """Return the wanted files by name; an archive is read in one pass, and nothing of it is extracted."""
    contents: dict[str, bytes] = {}
    if place.is_dir():
        for name in names:
            _check_size(name, (place / name).stat().st_size)
            contents[name] = (place / name).read_bytes()
        return contents
    wanted = {f"{layout.folder}/{name}": name for name in names}
    with tarfile.open(place, "r|gz") as archive:
        for member in archive:
            if member.name in wanted and member.isreg():
                _check_size(member.name, member.size)
                file = archive.extractfile(member)
                contents[wanted[member.name]] = file.read() if file else b""
            if len(contents) == len(wanted):
                return contents
    missing = [path for path, name in wanted.items() if name not in contents]
    raise InputError(f"is not the authors' archive: it lacks {', '.join(missing)}.")


def _check_size(name: str, size: int) -> None:
    if size > LARGEST:
        raise InputError(f"is not a CIFAR file: {name} has {size:,} bytes, and no official file exceeds {LARGEST:,}.")


def _entry(document: dict[str, Any], key: str) -> Any:
    if key not in document:
        raise InputError(f"is not the CIFAR file it should be: it needs an entry {key!r} and has {sorted(document)}.")
    return document[key]


def _names(document: dict[str, Any], layout: CifarLayout) -> tuple[str, ...]:
    names = tuple(_text(name) for name in _entry(document, layout.names))
    if len(set(names)) != layout.classes or len(names) != layout.classes:
        raise InputError(f"holds {len(names)} class names; {layout.classes} different ones are needed.")
    return names


def _pixels(value: Any) -> np.ndarray:
    if not isinstance(value, _Array):
        raise InputError(f"holds images as {type(value).__name__}; an array is needed.")
    pixels = value.array
    if pixels.dtype != np.uint8 or pixels.ndim != 2 or pixels.shape[1] != PIXELS or len(pixels) == 0:
        raise InputError(f"holds images of shape {pixels.shape}, {pixels.dtype}; (n, {PIXELS}), uint8 is needed.")
    return pixels


def _labels(value: Any, n: int, classes: int) -> np.ndarray:
    if isinstance(value, _Array):
        value = value.array.tolist()
    if not isinstance(value, list) or not all(type(label) is int for label in value):
        raise InputError("holds labels that are not a list of whole numbers, which is needed.")
    if len(value) != n:
        raise InputError(f"holds {n} images but {len(value)} labels; one label for each image is needed.")
    if min(value) < 0 or max(value) >= classes:
        raise InputError(f"holds labels from {min(value)} to {max(value)}; 0 to {classes - 1} are possible.")
    return np.array(value, dtype=np.int64)


# ---- the restricted unpickler

OPCODES = (
    "PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 STRING BINSTRING "
    "SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINBYTES SHORT_BINBYTES EMPTY_LIST LIST APPEND APPENDS "
    "EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT SETITEM SETITEMS GET BINGET LONG_BINGET "
    "PUT BINPUT LONG_BINPUT MEMOIZE GLOBAL STACK_GLOBAL REDUCE BUILD"
)


def _decode(content: bytes) -> dict[str, Any]:
    _check_opcodes(content)
    document = _RestrictedUnpickler(io.BytesIO(content), encoding="bytes").load()
    if not isinstance(document, dict):
        raise InputError(f"is not a CIFAR file: it holds a {type(document).__name__}, not a dict.")
    return {_text(key): value for key, value in document.items()}


def _check_opcodes(content: bytes) -> None:
    """Refuse what arrays, strings, lists and dicts do not need, and what would fill the memory."""
    end, allowed = 0, frozenset(OPCODES.split())
    for number, (opcode, argument, position) in enumerate(pickletools.genops(content)):
        if opcode.name not in allowed:
            raise _refusal(f"the pickle opcode {opcode.name}")
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and not 0 <= int(argument or 0) <= number:
            raise _refusal(f"place {argument} of a memo that cannot be that long")  # the unpickler would reserve it
        end = (position or 0) + 1
    if end != len(content):
        raise InputError(f"is not a CIFAR file: {len(content) - end} bytes follow its end.")


def _refusal(what: str) -> InputError:
    return InputError(
        f"is not a CIFAR file and was refused: it asks for {what}, and a CIFAR file needs nothing but arrays, "
        "strings, lists and dicts. Nothing in it was run."
    )


class _RestrictedUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str, /) -> "_Name":
        if (module, name) not in _NAMES:
            raise _refusal(repr(f"{module}.{name}"))
        return _NAMES[module, name]


class _Name:
    """A name a CIFAR file may use.  Not a type, and deaf to BUILD, so that a pickle can only call it."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __call__(self, *arguments: Any) -> Any:
        return self._make(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise _refusal("a change of a function")


class _Dtype:
    """Stands for ``numpy.dtype``: whole numbers only, so that no array can hold objects."""

    __slots__ = ("dtype",)

    def __init__(self, code: Any, *_: Any) -> None:
        if not re.fullmatch("[iu][1248]", _text(code)):
            raise _refusal(f"an array of type {_text(code)!r}")
        self.dtype = np.dtype(_text(code))

    def __setstate__(self, state: Any) -> None:
        self.dtype = self.dtype.newbyteorder({"<": "<", ">": ">", "|": "|"}[_text(state[1])])  # type: ignore[arg-type]


class _Array:
    """Stands for ``numpy.ndarray``: empty until the pickle delivers shape, type and bytes."""

    __slots__ = ("array",)

    def __init__(self, *_: Any) -> None:
        self.array: np.ndarray = np.zeros(0, np.uint8)

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, by_columns, raw = state
        self.array = np.frombuffer(raw, dtype.dtype).reshape(shape, order="F" if by_columns else "C")


def _encode(text: Any, encoding: Any) -> bytes:
    """Return the bytes that Python 3 writes as text for the sake of Python 2."""
    if not isinstance(text, str) or encoding != "latin1":
        raise _refusal("another encoding than that of bytes")
    return text.encode("latin-1")


def _text(value: Any) -> str:
    if not isinstance(value, bytes | str):
        raise InputError(f"is not a CIFAR file: it has {type(value).__name__} where a text is needed.")
    return value.decode("latin-1") if isinstance(value, bytes) else value


_NAMES = {
    ("numpy.core.multiarray", "_reconstruct"): _Name(_Array),
    ("numpy._core.multiarray", "_reconstruct"): _Name(_Array),
    ("numpy", "ndarray"): _Name(_Array),
    ("numpy", "dtype"): _Name(_Dtype),
    ("_codecs", "encode"): _Name(_encode),
}
