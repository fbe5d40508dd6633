"""Arrays of numbers from a MATLAB file of version 5, the form in which SVHN is published.

SciPy's reader crashes the whole process on some damaged files.  This one knows little more than SVHN needs: real arrays
of numbers, compressed or not.  All sizes that a file states are held against what is there.
"""

import zlib
from collections.abc import Collection
from dataclasses import dataclass
from math import prod

import numpy as np

from autonovel.errors import InputError

HEADER, TAG = 128, 8  # bytes
ORDERS = {b"IM": "<", b"MI": ">"}  # how the two letters look in a file of each byte order
MATRIX, COMPRESSED = 14, 15
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}  # types of data
OF_NUMBERS = range(6, 16)  # classes of arrays, from double to uint64; others are of text, cells and the like
COMPLEX = 0x800
LARGEST = 2**28  # bytes of an array: the largest published one that we read has 225 million


@dataclass(frozen=True)
class Element:
    """A piece of a file: its type and its bytes."""

    kind: int
    data: memoryview

    def numbers(self, order: str) -> np.ndarray:
        """Return the numbers that it holds."""
        if self.kind not in NUMBERS:
            raise InputError(f"is damaged: it holds data of type {self.kind} where numbers are needed.")
        dtype = np.dtype(order + NUMBERS[self.kind])
        if len(self.data) % dtype.itemsize:
            raise InputError(f"is damaged: {len(self.data)} bytes are no whole numbers of {dtype.itemsize} bytes each.")
        return np.frombuffer(self.data, dtype)


def read_arrays(content: bytes, names: Collection[str]) -> dict[str, np.ndarray]:
    """Return the arrays of numbers in the MATLAB file ``content`` that have one of ``names``, as they are stored.

    Raises:
        InputError: if it is no such file, or damaged.
    """
    order = ORDERS.get(content[126:HEADER])
    if order is None:
        raise InputError("is damaged, or no MATLAB file of version 5 (which MATLAB writes with -v6 or -v7).")
    found: dict[str, np.ndarray] = {}
    rest = memoryview(content)[HEADER:]
    while rest:
        piece, rest = _next(rest, order)
        piece = _inflated(piece.data, order) if piece.kind == COMPRESSED else piece
        if piece.kind == MATRIX:
            found |= _array(piece.data, order, names)
    return found


def _next(data: memoryview, order: str) -> tuple[Element, memoryview]:
    """Return the first piece of ``data``, and what comes after it."""
    if len(data) < TAG:
        raise InputError(f"is damaged: {len(data)} bytes are left where a piece should begin.")
    kind, size = _tag(data, order)
    if kind >> 16:  # a small piece: its size, its type and at most four bytes, all in eight
        kind, size, begin, end = kind & 0xFFFF, kind >> 16, TAG // 2, TAG
    else:
        begin, end = TAG, TAG + size + (0 if kind == COMPRESSED else -size % 8)
    if begin + size > min(end, len(data)):
        raise InputError(f"is damaged: a piece of {size:,} bytes is stated, {len(data) - begin:,} are there.")
    return Element(kind, data[begin : begin + size]), data[end:]


def _tag(data: memoryview, order: str) -> tuple[int, int]:
    kind, size = np.frombuffer(data[:TAG], f"{order}u4")
    return int(kind), int(size)


def _inflated(data: memoryview, order: str) -> Element:
    """Return the one piece that is compressed in ``data``; of more than it states nothing is unpacked."""
    try:
        head = zlib.decompressobj().decompress(data, TAG)
        size = _tag(memoryview(head), order)[1] if len(head) == TAG else 0
        if size > LARGEST:
            raise InputError(f"states an array of {size:,} bytes, larger than any of the published files.")
        return _next(memoryview(zlib.decompressobj().decompress(data, TAG + size)), order)[0]
    except zlib.error as error:
        raise InputError(f"is damaged: a piece cannot be unpacked ({error}).") from error


def _array(data: memoryview, order: str, names: Collection[str]) -> dict[str, np.ndarray]:
    """Return the array of a matrix by its name; nothing if that is not one of ``names``."""
    flags, data = _next(data, order)
    sizes, data = _next(data, order)
    label, data = _next(data, order)
    name = bytes(label.data).decode("latin-1")
    if name not in names:
        return {}
    told, shape = [int(flag) for flag in flags.numbers(order)], [int(size) for size in sizes.numbers(order)]
    if not told or told[0] & 0xFF not in OF_NUMBERS or told[0] & COMPLEX:
        raise InputError(f"holds {name}, but not as an array of real numbers.")
    numbers = _next(data, order)[0].numbers(order).copy()  # so that they may be written to, as torch wants it
    if min(shape, default=-1) < 0 or prod(shape) != len(numbers):
        raise InputError(f"is damaged: {name} holds {len(numbers):,} numbers, and its size is stated as {shape}.")
    return {name: numbers.reshape(shape, order="F")}
