"""Images from files come in the right order, from the right place, and with the right words when they do not."""

import gc
import multiprocessing
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from autonovel.data import Fixed, ImageSet, Merged, Resident, Sampler, channel_statistics, loader
from autonovel.data.crew import deaths_explained
from autonovel.data.files import FileTable
from autonovel.data.folder import load
from autonovel.data.pixel_cache import PixelCache
from autonovel.data.streamed import FilePixels, HostPixels
from autonovel.errors import AutonovelError, InputError
from autonovel.methods import kmeans

CPU = torch.device("cpu")
N, SIDE = 24, 6


@pytest.fixture
def pictures(tmp_path: Path) -> tuple[Path, torch.Tensor]:
    """Return a folder of colour PNGs and the tensor of their pixels."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (N, SIDE, SIDE, 3), dtype=np.uint8)
    for number, picture in enumerate(pixels):
        folder = tmp_path / "images" / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / f"{number:03d}.png")
    order = [*range(0, N, 2), *range(1, N, 2)]
    return tmp_path / "images", torch.from_numpy(pixels[order]).permute(0, 3, 1, 2)


def streamed(root: Path, cache: Path | None = None, workers: int = 1) -> FilePixels:
    table = FileTable.of(str(root), load(root)[0].entries)
    return FilePixels(table, SIDE, 3, workers, PixelCache(cache, len(table), 3 * SIDE * SIDE) if cache else None)


def test_all_ways_to_the_pixels_agree(pictures: tuple[Path, torch.Tensor]) -> None:
    root, wanted = pictures
    for pixels in (streamed(root), HostPixels(wanted)):
        assert pixels.shape == wanted.shape and len(pixels) == N
        assert torch.equal(pixels[[3, 1, 3]], wanted[[3, 1, 3]])
        mask = torch.arange(N) % 3 == 0
        assert torch.equal(pixels[mask], wanted[mask])
        assert [len(chunk) for chunk in pixels.split(10)] == [10, 10, 4]
        assert torch.equal(torch.cat(list(pixels.split(10))), wanted)
        for one, other in zip(channel_statistics(pixels), channel_statistics(wanted), strict=True):
            assert torch.equal(one, other)


def test_batches_keep_their_order_however_many_workers(pictures: tuple[Path, torch.Tensor]) -> None:
    root, wanted = pictures
    order = torch.randint(0, N, (40, 5), generator=torch.Generator().manual_seed(1))
    for workers in (1, 2):
        found = list(streamed(root, workers=workers).in_order(iter(order)))
        assert torch.equal(torch.stack(found), wanted[order])


def image_set(pixels: object, n: int = N) -> ImageSet:
    y = torch.where(torch.arange(n) < n // 2, torch.arange(n) % 2, -1)
    return ImageSet(pixels, y, tuple(map(str, range(n))), ("a", "b"), truth=torch.arange(n) % 4)


def test_large_batches_come_in_parts(pictures: tuple[Path, torch.Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    root, wanted = pictures
    monkeypatch.setattr("autonovel.data.streamed.BYTES_AT_ONCE", 3 * 3 * SIDE * SIDE)  # three images
    found = list(streamed(root, workers=2).in_order(iter(torch.arange(N).split(7))))
    assert [len(batch) for batch in found] == [7, 7, 7, 3] and torch.equal(torch.cat(found), wanted)
    (root / "a" / "010.png").write_bytes(b"")
    whole = list(streamed(root).decoded(iter(torch.arange(N).split(7)), summed=True))
    assert [row for batch in whole for row, _ in batch.broken] == [5]
    assert [len(batch.sums) for batch in whole] == [56, 56, 56, 24]


@pytest.mark.parametrize(
    "sampler",
    [
        Merged(torch.arange(N), 7, 0, 1),
        Fixed(torch.arange(N // 2), torch.arange(N // 2, N), 3, 4, 0, 3),
        Merged(torch.arange(N), 8, 0, 1, rank=1, world=2),
    ],
)
def test_both_loaders_give_the_same_batches(pictures: tuple[Path, torch.Tensor], sampler: Sampler) -> None:
    root, wanted = pictures
    epochs = range(2, 5)  # as after a resume
    resident = Resident(image_set(wanted), CPU)
    for pixels in (streamed(root), HostPixels(wanted)):
        source = loader(image_set(pixels), CPU)
        source.start(sampler, epochs)
        for epoch in epochs:
            for index in sampler.epoch(epoch):
                u = torch.rand(len(index), 2)
                source.advance()
                one, other = source.batch(index, u), resident.batch(index, u)
                assert all(torch.equal(getattr(one, name), getattr(other, name)) for name in vars(one))
        source.close()


def test_workers_stay_for_the_next_pass_and_end_with_the_images(pictures: tuple[Path, torch.Tensor]) -> None:
    root, wanted = pictures
    pixels = streamed(root)
    source = loader(image_set(pixels), CPU)
    source.start(Merged(torch.arange(N), 4, 0, 1), range(1000))
    source.advance()
    crew = multiprocessing.active_children()
    assert len(crew) == 1
    source.close()  # in the middle of a pass
    assert torch.equal(torch.cat(list(pixels.subset(torch.tensor([7, 3, 5])).split(2))), wanted[[7, 3, 5]])
    assert multiprocessing.active_children() == crew
    del source, pixels
    gc.collect()
    assert not multiprocessing.active_children()


def test_a_pass_inside_a_pass_has_workers_of_its_own(pictures: tuple[Path, torch.Tensor]) -> None:
    root, wanted = pictures
    pixels = streamed(root)
    outer = pixels.split(4)
    first = next(outer)
    assert torch.equal(torch.cat(list(pixels.split(5))), wanted)
    assert torch.equal(torch.cat([first, *outer]), wanted)


def test_other_work_does_not_go_to_the_same_workers(pictures: tuple[Path, torch.Tensor]) -> None:
    root, wanted = pictures
    pixels = streamed(root)
    assert torch.equal(torch.cat(list(pixels.split(5))), wanted)
    shapes = [chunk.shape for chunk in replace(pixels, side=3).split(12)]
    assert shapes == [(12, 3, 3, 3)] * 2


@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_a_file_lost_on_the_way_is_named(pictures: tuple[Path, torch.Tensor], how: str) -> None:
    root, _ = pictures
    pixels = streamed(root)
    victim = root / "a" / "004.png"
    victim.unlink() if how == "gone" else victim.write_bytes(victim.read_bytes()[:60])
    with pytest.raises(InputError, match=r"a/004\.png cannot be read any more .*--resume"):
        list(pixels.split(8))
    with pytest.raises(InputError, match=r"a/004\.png"):
        pixels[[2]]


# torch may speak of the dead worker once more while it clears up
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_killed_worker_is_told_of(pictures: tuple[Path, torch.Tensor]) -> None:
    coming = streamed(pictures[0]).in_order(iter(torch.zeros(5000, 4, dtype=torch.int64)))
    next(coming)
    with (
        pytest.raises(AutonovelError, match=r"a process that decodes images has ended .*data\.workers"),
        deaths_explained(),  # torch may interrupt this very line
    ):
        os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)
        list(coming)


def test_a_second_pass_comes_from_the_cache(pictures: tuple[Path, torch.Tensor], tmp_path: Path) -> None:
    root, wanted = pictures
    pixels = streamed(root, tmp_path / "cache.u8")
    assert torch.equal(torch.cat(list(pixels.split(5))), wanted)
    for file in root.rglob("*.png"):
        file.write_bytes(b"")
    assert torch.equal(torch.cat(list(pixels.split(7))), wanted)
    assert torch.equal(pixels.subset(torch.tensor([5, 2]))[[0, 1]], wanted[[5, 2]])


def test_a_changed_file_is_decoded_again(pictures: tuple[Path, torch.Tensor], tmp_path: Path) -> None:
    root, wanted = pictures
    list(streamed(root, tmp_path / "cache.u8").split(5))
    Image.new("RGB", (SIDE, SIDE), "red").save(root / "a" / "000.png")
    os.utime(root / "a" / "000.png", ns=(1, 1))
    found = streamed(root, tmp_path / "cache.u8")
    assert found[[0]][0, :, 0, 0].tolist() == [255, 0, 0]
    assert torch.equal(found[[1]], wanted[[1]])


def test_a_damaged_cache_changes_nothing(pictures: tuple[Path, torch.Tensor], tmp_path: Path) -> None:
    root, wanted = pictures
    pixels = streamed(root, tmp_path / "cache.u8")
    list(pixels.split(5))
    content = bytearray((tmp_path / "cache.u8").read_bytes())
    content[50::97] = bytes(len(content[50::97]))
    (tmp_path / "cache.u8").write_bytes(content)
    assert torch.equal(torch.cat(list(pixels.split(5))), wanted)


def test_another_size_is_decoded_anew(pictures: tuple[Path, torch.Tensor], tmp_path: Path) -> None:
    pixels = streamed(pictures[0], tmp_path / "cache.u8")
    assert pixels.resized(0) is pixels and pixels.resized(SIDE) is pixels
    smaller = pixels.resized(3)
    assert smaller.shape == (N, 3, 3, 3) and smaller.cache is None and smaller[[0]].shape == (1, 3, 3, 3)
    assert HostPixels(pictures[1]).resized(3).shape == (N, 3, 3, 3)


def test_pixels_are_clustered_alike_through_both_loaders(
    pictures: tuple[Path, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, wanted = pictures
    whole = kmeans.pixel_clusters(image_set(wanted), 3, 0)
    assert torch.equal(kmeans.pixel_clusters(image_set(streamed(root)), 3, 0), whole)
    assert len(whole) == N // 2
    monkeypatch.setattr(kmeans, "MOST_VALUES", 6 * 3 * SIDE * SIDE)  # room for six images
    sampled = kmeans.pixel_clusters(image_set(wanted), 3, 0)
    assert torch.equal(kmeans.pixel_clusters(image_set(streamed(root)), 3, 0), sampled)
    assert len(sampled) == N // 2 and set(sampled.tolist()) <= {0, 1, 2}
