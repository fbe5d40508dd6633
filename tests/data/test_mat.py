"""MATLAB files: as SciPy reads them where they are sound, and refused where SciPy would crash."""

import io
import struct
import tracemalloc
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.io import loadmat, savemat

from autonovel.data.mat import HEADER, read_arrays
from autonovel.errors import InputError

DTYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")


def file(compressed: bool = False, **entries: Any) -> bytes:
    written = io.BytesIO()
    savemat(written, entries, do_compression=compressed)
    return written.getvalue()


def piece(kind: int, data: bytes, order: str = "<") -> bytes:
    return struct.pack(f"{order}II", kind, len(data)) + data + bytes(-len(data) % 8)


def matrix(name: bytes, shape: tuple[int, ...], numbers: bytes, order: str = "<", numeric_class: int = 9) -> bytes:
    flags, sizes = struct.pack(f"{order}II", numeric_class, 0), struct.pack(f"{order}{len(shape)}i", *shape)
    return piece(14, piece(6, flags, order) + piece(5, sizes, order) + piece(1, name, order) + numbers, order)


def header(order: str = "<") -> bytes:
    return bytes(124) + struct.pack(f"{order}H", 0x0100) + (b"IM" if order == "<" else b"MI")


@given(st.data(), st.sampled_from(DTYPES), st.booleans())
def test_arrays_are_read_as_scipy_reads_them(data: st.DataObject, dtype: str, compressed: bool) -> None:
    given_array = data.draw(arrays.arrays(dtype, arrays.array_shapes(min_dims=2, max_dims=4, min_side=0, max_side=5)))
    content = file(compressed, other=np.arange(3), X=given_array, text="abc")
    found, theirs = read_arrays(content, ("X", "y")), loadmat(io.BytesIO(content))["X"]
    assert found.keys() == {"X"} and found["X"].dtype == theirs.dtype
    np.testing.assert_array_equal(found["X"], theirs)
    assert found["X"].flags.writeable


def test_the_other_byte_order_is_read() -> None:
    numbers = piece(4, np.array([1, 2, 515, 4], ">u2").tobytes(), ">")
    found = read_arrays(header(">") + matrix(b"X", (2, 2), numbers, ">", numeric_class=11), ("X",))
    assert found["X"].tolist() == [[1, 515], [2, 4]]


@pytest.mark.parametrize("kind", [0, 8, 10, 99])
def test_numbers_of_a_type_that_does_not_exist_are_refused(kind: int) -> None:
    """On type 0 SciPy's reader ends the process."""
    small = struct.pack("<HH", kind, 4) + bytes(4)
    for numbers in (piece(kind, bytes(8)), small):
        with pytest.raises(InputError, match=f"data of type {kind} where numbers are needed"):
            read_arrays(header() + matrix(b"X", (2, 2), numbers), ("X",))


@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_that_was_cut_is_refused_or_lacks_what_was_cut_off(compressed: bool) -> None:
    content = file(compressed, X=np.arange(300, dtype=np.int32).reshape(20, 15), y=np.ones((3, 1), np.uint8))
    whole = read_arrays(content, ("X", "y"))
    for end in range(len(content)):
        try:
            found = read_arrays(content[:end], ("X", "y"))
        except InputError:
            continue
        assert end >= HEADER and found.keys() <= whole.keys()
        assert all(np.array_equal(found[name], whole[name]) for name in found)


@pytest.mark.parametrize("shape", [(2, 3), (-2, -2), (2**30, 2**30, 2**30), ()])
def test_a_size_that_does_not_fit_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="X holds 4 numbers, and its size is stated as"):
        read_arrays(header() + matrix(b"X", shape, piece(2, bytes(4))), ("X",))


def test_of_a_compressed_piece_no_more_is_unpacked_than_it_states() -> None:
    bomb = zlib.compress(struct.pack("<II", 14, 64) + bytes(300_000_000), 1)
    tracemalloc.start()
    assert not read_arrays(header() + struct.pack("<II", 15, len(bomb)) + bomb, ("X",))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 30_000_000  # the file itself has two million bytes


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (matrix(b"X", (1, 1), piece(4, bytes(3))), "3 bytes are no whole numbers of 2 bytes each"),
        (struct.pack("<II", 15, 4) + b"none", "cannot be unpacked"),
        (struct.pack("<II", 15, 0), "0 bytes are left"),
        (struct.pack("<HH", 2, 9) + bytes(4), "a piece of 9 bytes is stated"),
    ],
)
def test_damage_is_named(damaged: bytes, message: str) -> None:
    with pytest.raises(InputError, match=f"is damaged: .*{message}"):
        read_arrays(header() + damaged, ("X",))


@pytest.mark.parametrize("content", [b"", b"MATLAB 5.0", bytes(200), b"\x89HDF\r\n\x1a\n" + bytes(300)])
def test_what_is_no_such_file_is_refused(content: bytes) -> None:
    with pytest.raises(InputError, match="no MATLAB file of version 5"):
        read_arrays(content, ("X",))


def test_an_array_larger_than_any_published_is_refused_before_it_is_unpacked() -> None:
    bomb = zlib.compress(struct.pack("<II", 14, 2**30) + bytes(1000), 1)
    with pytest.raises(InputError, match="states an array of 1,073,741,824 bytes"):
        read_arrays(header() + struct.pack("<II", 15, len(bomb)) + bomb, ("X",))
