"""Before training: which loader, which files cannot be read, and the same answers however images are held."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from autonovel import recipe, sameness
from autonovel.data import ImageSet, channel_statistics, memory, sources
from autonovel.data.memory import available_bytes, choose, gigabytes
from autonovel.data.prepare import discard_cache, prepare
from autonovel.data.streamed import FilePixels, HostPixels
from autonovel.data.survey import survey
from autonovel.errors import InputError, UsageError
from autonovel.settings import Data
from autonovel.training.display import Silent

CPU = torch.device("cpu")


class Listening(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.moves: list[tuple[str, int]] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def begin(self, stage: str, total: int, done: int, of: str = "steps") -> None:
        self.moves.append((stage, total))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder of two known classes, unlabelled images, and two files that are no images."""
    rng = np.random.default_rng(0)
    for number in range(30):
        folder = tmp_path / "photos" / ("cat", "dog", "unlabelled")[number % 3]
        folder.mkdir(parents=True, exist_ok=True)
        picture = rng.integers(0, 256, (9, 7, 3), dtype=np.uint8)
        Image.fromarray(picture).save(folder / f"{number:02d}.png")
    (tmp_path / "photos" / "cat" / "05 broken.jpg").write_bytes(b"no image")
    (tmp_path / "photos" / "unlabelled" / "zz.heic").write_bytes(b"ftypheic")
    return tmp_path / "photos"


def settings(root: Path, **more: object) -> Data:
    values = {"source": "folder", "path": str(root), "size": 5, "workers": 1} | more
    return recipe.load("demo", {f"data.{key}": value for key, value in values.items()}).recipe.data


def loaded(data: Data) -> ImageSet:
    made = recipe.load("demo", {f"data.{key}": list(v) if isinstance(v, tuple) else v for key, v in vars(data).items()})
    return sources.load(made.recipe, 0)[0]


def test_both_loaders_see_the_same(root: Path, tmp_path: Path) -> None:
    found = {}
    for kind in ("resident", "streaming"):
        data, told = settings(root, loader=kind), Listening()
        found[kind] = prepare(loaded(data), data, tmp_path / kind, CPU, told)
        assert told.moves == [("reading images", 32)]
        assert kind in told.said[0]
        assert "2 of 32 files cannot be read" in told.said[1]
        assert "cat/05 broken.jpg (not a JPEG" in told.said[1] and "unlabelled/zz.heic" in told.said[1]
    one, other = found["resident"], found["streaming"]
    assert isinstance(one.images, Tensor) and isinstance(other.images, FilePixels)
    assert torch.equal(one.images, torch.cat(list(other.images.split(7))))
    assert torch.equal(one.y, other.y) and one.ids == other.ids and len(one) == len(one.ids) == 30
    assert one.unreadable == other.unreadable and list(one.unreadable) == ["cat/05 broken.jpg", "unlabelled/zz.heic"]
    assert sameness.digest_of(one) == sameness.digest_of(other)
    for a, b in zip(channel_statistics(one.images), channel_statistics(other.images), strict=True):
        assert torch.equal(a, b)
    counts = other.images.counts
    assert counts is not None and counts.sum() == 30 * 3 * 25, "what cannot be read is not counted"


def test_the_checksum_follows_the_pixels(root: Path, tmp_path: Path) -> None:
    data = settings(root, loader="streaming")
    before = prepare(loaded(data), data, tmp_path / "one", CPU, Silent()).fingerprint
    for file in root.rglob("*.png"):
        os.utime(file, ns=(5, 5))
    assert prepare(loaded(data), data, tmp_path / "one", CPU, Silent()).fingerprint == before
    Image.new("RGB", (7, 9), "red").save(root / "dog" / "01.png")
    assert prepare(loaded(data), data, tmp_path / "one", CPU, Silent()).fingerprint != before


def test_a_survey_is_taken_once(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = settings(root, loader="streaming")
    first = prepare(loaded(data), data, tmp_path, CPU, Silent())

    def never(*_: object, **__: object) -> Iterator[None]:
        raise AssertionError("looked again")

    monkeypatch.setattr(FilePixels, "decoded", never)
    again = prepare(loaded(data), data, tmp_path, CPU, Silent())
    assert again.fingerprint == first.fingerprint and again.ids == first.ids and again.unreadable == first.unreadable


@pytest.mark.parametrize("damage", [b"", b"{", b'{"format": 99}', b"[1]", b'{"format": 2, "broken": 3}'])
def test_a_damaged_survey_is_taken_anew(root: Path, tmp_path: Path, damage: bytes) -> None:
    pixels = loaded(settings(root)).images
    assert isinstance(pixels, FilePixels)
    first = survey(pixels, tmp_path, Silent())
    (file,) = tmp_path.glob("survey-*.json")
    whole = file.read_bytes()
    file.write_bytes(damage)
    again = survey(pixels, tmp_path, Silent())
    assert again.broken == first.broken and torch.equal(again.counts, first.counts)
    assert file.read_bytes() == whole and json.loads(whole)["format"] == 2


def test_a_class_without_a_readable_file_is_an_error(root: Path, tmp_path: Path) -> None:
    for file in (root / "dog").iterdir():
        file.write_bytes(b"nothing")
    data = settings(root)
    with pytest.raises(InputError, match="no file of the known class dog can be read"):
        prepare(loaded(data), data, tmp_path, CPU, Silent())


def test_decoded_images_are_kept_where_told(root: Path, tmp_path: Path) -> None:
    for cache, folder in (("auto", tmp_path / "run" / "cache"), (str(tmp_path / "mine"), tmp_path / "mine")):
        data = settings(root, loader="streaming", cache=cache)
        made = prepare(loaded(data), data, tmp_path / "run", CPU, Silent())
        assert isinstance(made.images, FilePixels) and made.images.cache is not None
        assert [path.parent for path in folder.glob("decoded-*.u8")] == [folder]
    discard_cache(tmp_path / "run")
    assert [path.name[:7] for path in (tmp_path / "run" / "cache").iterdir()] == ["survey-"]
    assert list((tmp_path / "mine").glob("decoded-*.u8")), "a folder of the user's own is left alone"
    data, told = settings(root, loader="streaming", cache="off"), Listening()
    made = prepare(loaded(data), data, tmp_path / "other", CPU, told)
    assert isinstance(made.images, FilePixels) and made.images.cache is None and "no cache" in told.said[0]


def test_a_cache_that_does_not_fit_is_left_out(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autonovel.data.pixel_cache.SHARE_OF_FREE", 0.0)
    data, told = settings(root, loader="streaming"), Listening()
    made = prepare(loaded(data), data, tmp_path, CPU, told)
    assert isinstance(made.images, FilePixels) and made.images.cache is None
    assert "does not fit on the disk" in told.said[0]


def test_a_cache_folder_that_cannot_be_made_is_a_usage_error(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    data = settings(root, loader="streaming", cache=str(tmp_path / "file" / "cache"))
    with pytest.raises(UsageError, match=r"data\.cache"):
        prepare(loaded(data), data, tmp_path, CPU, Silent())


def test_auto_goes_by_size(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 32 * 3 * 25
    for free, kind in ((4 * size, "resident"), (4 * size - 1, "streaming")):
        monkeypatch.setattr(memory, "available_bytes", lambda free=free: free)
        data, told = settings(root), Listening()
        made = prepare(loaded(data), data, tmp_path, CPU, told)
        assert isinstance(made.images, Tensor) == (kind == "resident")
        assert f"2.4 kB decoded; {kind}" in told.said[0] and "9.6 kB of memory" in told.said[0]


def test_arrays_stay_or_are_streamed_from_memory(tmp_path: Path) -> None:
    images = ImageSet(
        torch.zeros(4, 1, 8, 8, dtype=torch.uint8), torch.tensor([0, 1, -1, -1]), tuple("abcd"), ("x", "y")
    )
    told = Listening()
    assert prepare(images, Data(), tmp_path, CPU, told).images is images.images
    assert "resident (they are in memory already)" in told.said[0]
    made = prepare(images, Data(loader="streaming"), tmp_path, CPU, told)
    assert isinstance(made.images, HostPixels) and prepare(made, Data(), tmp_path, CPU, told) is made
    assert sameness.digest_of(made) == sameness.digest_of(images)


def test_memory_in_words_and_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert [gigabytes(n) for n in (999, 1500, 25_000, 3_200_000, 7.25e9, 2e12)] == [
        "999 bytes", "1.5 kB", "25 kB", "3.2 MB", "7.2 GB", "2000.0 GB",
    ]  # fmt: skip
    assert choose("streaming", 1, True, CPU)[0] == "streaming"
    there = available_bytes()
    assert there > 1 << 20
    for name, text in (("memory.max", "5000000"), ("memory.current", "4000000"), ("memory.stat", "inactive_file 500")):
        (tmp_path / name).write_text(text + "\n")
    monkeypatch.setattr(memory, "GROUP", tmp_path)
    assert available_bytes() == 1_000_500
    (tmp_path / "memory.max").write_text("max\n")
    assert available_bytes() > 1 << 20
