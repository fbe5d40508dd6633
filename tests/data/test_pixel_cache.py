"""The cache of decoded images gives back what was put in, or nothing."""

import os
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from autonovel.data import pixel_cache
from autonovel.data.files import WHOLE, Entry, FileTable
from autonovel.data.pixel_cache import CHECK, KEY, PixelCache
from autonovel.storage import writing

A, B = b"a" * KEY, b"b" * KEY
PIXELS = np.arange(12, dtype=np.uint8)


@pytest.fixture
def cache(tmp_path: Path) -> PixelCache:
    return PixelCache(tmp_path / "cache.u8", 5, 12)


def test_what_is_put_in_comes_back(cache: PixelCache) -> None:
    assert cache.get(3, A) is None
    cache.put(3, A, PIXELS)
    cache.release()
    found = cache.get(3, A)
    assert found is not None and np.array_equal(found, PIXELS)
    assert cache.get(2, A) is None and cache.get(4, A) is None
    again = PixelCache(cache.path, 5, 12).get(3, A)
    assert again is not None and np.array_equal(again, PIXELS)
    assert cache.path.stat().st_size == cache.bytes_needed == 5 * (12 + KEY + CHECK)


def test_another_key_finds_nothing_and_replaces(cache: PixelCache) -> None:
    cache.put(0, A, PIXELS)
    assert cache.get(0, B) is None
    cache.put(0, B, PIXELS + 1)
    assert cache.get(0, A) is None
    found = cache.get(0, B)
    assert found is not None and np.array_equal(found, PIXELS + 1)


@pytest.mark.parametrize("kept", range(12 + KEY + CHECK))
def test_a_torn_record_is_no_record(cache: PixelCache, kept: int) -> None:
    """A write that stopped after any number of bytes, over what an earlier file left in the slot."""
    cache.put(1, B, PIXELS + 7)
    with cache.path.open("r+b") as file:
        file.seek(cache.record)
        old = file.read(cache.record)
    cache.put(1, A, PIXELS)
    with cache.path.open("r+b") as file:
        file.seek(cache.record)
        new = file.read(cache.record)
        file.seek(cache.record)
        file.write(new[:kept] + old[kept:])
    assert cache.get(1, A) is None
    assert (cache.get(1, B) is None) == (kept > 0)


def test_a_full_disk_is_no_error(cache: PixelCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    cache.put(0, A, PIXELS)
    monkeypatch.setattr(os, "pwrite", full)
    cache.put(1, A, PIXELS)
    monkeypatch.undo()
    cache.put(2, A, PIXELS)
    assert cache.get(0, A) is not None
    assert cache.get(1, A) is None and cache.get(2, A) is None


def test_it_leaves_half_of_the_disk_free(cache: PixelCache, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(pixel_cache.shutil, "disk_usage", lambda _: usage(0, 0, 2 * cache.bytes_needed))
    assert cache.fits()
    monkeypatch.setattr(pixel_cache.shutil, "disk_usage", lambda _: usage(0, 0, 2 * cache.bytes_needed - 1))
    assert not cache.fits()
    cache.put(0, A, PIXELS)
    assert cache.fits(), "it is there already"


def test_a_table_packs_and_unpacks() -> None:
    entries = [
        Entry("a/1.png", "a/1.png", WHOLE, 10, 111),
        Entry("ü/2.png", "ü/2.png", WHOLE, 20, 222),
        Entry("s.tar/x.jpg", "s.tar", 512, 30, 333),
        Entry("t.tar/y.jpg", "t.tar", 1024, 40, 444),
    ]
    table = FileTable.of("/root", entries)
    assert [table.entry(row) for row in range(4)] == entries
    some = table.subset(np.array([3, 1]))
    assert [some.entry(0), some.entry(1)] == [entries[3], entries[1]] and len(some) == 2
    assert some.slots.tolist() == [3, 1] and some.total == 4
    assert FileTable.of("/root", []).key_of_all() != table.key_of_all()


@pytest.mark.parametrize("change", [{"id": "b"}, {"length": 11}, {"changed": 112}, {"offset": 3}, {"path": "c"}])
def test_a_key_changes_with_its_file(change: dict[str, object]) -> None:
    entry = Entry("a", "a", WHOLE, 10, 111)
    one, other = (FileTable.of("/r", [e]) for e in (entry, entry._replace(**change)))
    assert one.key(0, 32, 3) != other.key(0, 32, 3)
    assert one.key_of_all(32, 3) != other.key_of_all(32, 3)
    assert one.key(0, 32, 3) != one.key(0, 64, 3) and one.key_of_all(32, 3) != one.key_of_all(64, 3)
    assert one.key(0, 32, 3) == FileTable.of("/elsewhere", [entry]).key(0, 32, 3)


def test_a_cache_that_cannot_be_opened_is_left_out(cache: PixelCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(writing.os, "open", refused)
    assert cache.get(3, A) is None
    cache.put(3, A, PIXELS)
    assert cache.get(3, A) is None
    cache.release()
