"""Tar shards in WebDataset's layout give the images and classes that are in them."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from autonovel import recipe
from autonovel.data import ImageSet, shards, sources
from autonovel.data.streamed import FilePixels
from autonovel.errors import InputError, UsageError

RNG = np.random.default_rng(0)
PICTURES = RNG.integers(0, 256, (6, 5, 5, 3), dtype=np.uint8)


def png(number: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(PICTURES[number]).save(file, "PNG")
    return file.getvalue()


def write(path: Path, members: dict[str, bytes], mode: str = "w") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "shards"
    write(folder / "00.tar", {"a/1.png": png(0), "a/1.cls": b"cat\n", "a/2.cls": b"dog", "a/2.PNG": png(1)})
    write(folder / "01.tar", {"1.png": png(2), "1.seg.png": png(5), "1.json": b"{}", "2.png": png(3), "3.png": png(4)})
    return folder


def load(root: object, **more: object) -> tuple[ImageSet, ImageSet | None, int]:
    values = {"source": "shards", "path": str(root), "size": 5, "workers": 1} | more
    return sources.load(recipe.load("demo", {f"data.{key}": value for key, value in values.items()}).recipe, 0)


def test_samples_are_images_with_or_without_a_class(root: Path) -> None:
    train, test, n_new = load(root)
    assert train.ids == ("00.tar/a/1.png", "00.tar/a/2.PNG", "01.tar/1.png", "01.tar/2.png", "01.tar/3.png")
    assert train.class_names == ("cat", "dog") and train.y.tolist() == [0, 1, -1, -1, -1]
    assert test is None and n_new == 0 and isinstance(train.images, FilePixels)
    assert torch.equal(torch.cat(list(train.images.split(2))), torch.from_numpy(PICTURES[:5]).permute(0, 3, 1, 2))


def test_images_with_a_second_dot_in_their_names_are_told_of(root: Path) -> None:
    train, _, _ = load(root)
    assert train.unreadable == {}, "a picture beside that of its sample"
    assert "1 image with a second dot was not taken (01.tar/1.seg.png)" in train.notes[0]
    write(root / "02.tar", {f"2024.05.{k}.png": png(k) for k in range(3)})
    train, _, _ = load(root)
    assert len(train) == 5 and set(train.unreadable) == {f"02.tar/2024.05.{k}.png" for k in range(3)}
    assert "4 images with a second dot were not taken" in train.notes[0] and "up to the first dot" in train.notes[0]
    for shard in ("00.tar", "01.tar"):
        (root / shard).unlink()
    with pytest.raises(InputError, match=r"3 images with a second dot .*02\.tar/2024\.05\.0\.png"):
        load(root)


def test_shards_of_test_images(root: Path) -> None:
    write(root / "test" / "0.tar", {"9.png": png(5), "9.cls": b"dog"})
    train, test, _ = load(root)
    assert len(train) == 5 and test is not None and test.truth is not None
    assert test.ids == ("test/0.tar/9.png",) and test.truth.tolist() == [1]
    write(root / "test" / "1.tar", {"8.png": png(5)})
    with pytest.raises(InputError, match=r"test/1\.tar/8\.png has no class"):
        load(root)


def test_what_is_no_shard_is_an_error(root: Path, tmp_path: Path) -> None:
    write(root / "02.tar", {"1.png": png(0)}, "w:gz")
    with pytest.raises(InputError, match=r"02\.tar is not a whole, uncompressed tar"):
        load(root)
    write(root / "02.tar", {"1.png": png(0), "1.jpg": png(1)})
    with pytest.raises(InputError, match="two images in one sample"):
        load(root)
    write(root / "02.tar", {"1.png": png(0), "1.cls": b"\xff\xfe"})
    with pytest.raises(InputError, match="not UTF-8"):
        load(root)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no \.tar files"):
        load(tmp_path / "empty")
    with pytest.raises(UsageError, match="not a folder"):
        load(tmp_path / "nowhere")


def test_a_shard_cut_short_is_told_of(root: Path) -> None:
    content = (root / "01.tar").read_bytes()
    (root / "01.tar").write_bytes(content[:700])
    with pytest.raises(InputError, match=r"01\.tar"):
        load(root)


def test_remote_shards_need_a_folder_for_their_copies() -> None:
    with pytest.raises(UsageError, match=r"data\.cache=DIR"):
        load("https://example.org/{00..01}.tar")


def test_remote_shards_are_copied_once(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("webdataset")
    place, cache = f"pipe:cat {root}/{{00..01}}.tar", tmp_path / "cache"
    copies = shards.fetch(place, str(cache))
    assert [path.read_bytes() for path in sorted(copies.iterdir())] == [
        (root / name).read_bytes() for name in ("00.tar", "01.tar")
    ]
    (root / "00.tar").unlink()
    train, _, _ = load(place, cache=str(cache))
    assert train.y.tolist() == [0, 1, -1, -1, -1]
    with pytest.raises(InputError, match=r"cannot be fetched"):
        shards.fetch(f"pipe:cat {root}/nowhere.tar", str(cache))
    assert not list(cache.rglob("*.partial"))


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "webdataset.gopen", None)
    with pytest.raises(UsageError, match=r"-m pip install .webdataset>="):
        shards.fetch("https://example.org/0.tar", str(tmp_path))


def test_members_that_are_not_there_as_they_are_stated_are_no_images(root: Path) -> None:
    with tarfile.open(root / "02.tar", "w") as tar:
        sparse = tarfile.TarInfo("9.png")
        sparse.type = tarfile.GNUTYPE_SPARSE
        tar.addfile(sparse)
    assert "02.tar/9.png" not in load(root)[0].ids
    write(root / "02.tar", {"9.png": png(0)})
    content = bytearray((root / "02.tar").read_bytes())
    content[124:135], content[148:156] = b"%011o" % 2**32, b" " * 8
    content[148:155] = b"%06o\0" % sum(content[:512])
    (root / "02.tar").write_bytes(content)
    with pytest.raises(InputError, match=r"not a whole, uncompressed tar file \(9\.png goes beyond its end"):
        load(root)
