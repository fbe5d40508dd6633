"""Thumbnails of all images on sheets: many in one picture, so that a page asks for what it shows and nothing more."""

import io
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import torch
from PIL import Image
from torch import Tensor

from autonovel.cores import usable_cores
from autonovel.data.streamed import Streamed, in_batches
from autonovel.errors import InputError
from autonovel.report.pictures import picture_of
from autonovel.report.subject import Ints
from autonovel.run_images import RunImages

PER_SHEET = 256
COLUMNS = 16
SAMPLED = 64  # files that are looked at to find the size of thumbnails
MAGNIFIED = 32  # pictures up to this side are shown with their pixels as squares

Pictures = Sequence[Image.Image | None]


@dataclass(frozen=True)
class Cell:
    """The room of one thumbnail: its size on the sheet, and whether to magnify it by whole pixels."""

    width: int
    height: int
    pixelated: bool


@dataclass(frozen=True)
class Sheet:
    """A WebP that holds thumbnails in cells of one size, row by row."""

    content: bytes
    cell: Cell
    columns: int
    rows: int


class Source(Protocol):
    """Where the pictures of a run come from."""

    def cell(self, largest: int) -> Cell:
        """Return the cell into which all pictures fit, none with a side above ``largest``."""

    def batches(self, rows: Sequence[Ints], largest: int) -> Iterator[Pictures]:
        """Return the pictures of each batch of rows, in order; None stands for one that is not there."""


class OfImages:
    """The pictures of a run that has just ended: its images as they were learned from."""

    def __init__(self, images: Tensor | Streamed) -> None:
        self.images = images

    def cell(self, largest: int) -> Cell:
        """Return a cell of the images' own shape."""
        height, width = self.images.shape[2:]
        longest = max(height, width, 1)
        scale = min(1.0, largest / longest)
        return Cell(max(1, round(width * scale)), max(1, round(height * scale)), longest <= MAGNIFIED)

    def batches(self, rows: Sequence[Ints], largest: int) -> Iterator[Pictures]:
        """Return the pictures; those of files are decoded by the workers of the run."""
        pixels = in_batches(self.images, (torch.from_numpy(batch) for batch in rows))
        return (_pictures_of(batch) for batch in pixels)


def _pictures_of(batch: Tensor) -> Pictures:
    """Return a picture of each image, cut from one of all below each other: made one by one they take twice as long."""
    n, channels, height, width = batch.shape
    strip = picture_of(batch.transpose(0, 1).reshape(channels, n * height, width))
    return [strip.crop((0, top, width, top + height)) for top in range(0, n * height, height)]


class OfRun:
    """The pictures of a finished run, from its files or its source.

    Args:
        images: of the run.
        rows: of ``discovery.csv``, one for each image that the report is about.
        shape: channels, height and width of the images as the run knows them.
    """

    def __init__(self, images: RunImages, rows: Ints, shape: tuple[int, ...]) -> None:
        self.images, self.rows, self.shape = images, rows, shape
        self.files = images.folder is not None

    def cell(self, largest: int) -> Cell:
        """Return a cell of the images' own shape; for files, which may differ, one that a sample of them fits into."""
        if not self.files:
            return OfImages(torch.empty(0, *self.shape)).cell(largest)
        sample = range(0, len(self.rows), max(1, len(self.rows) // SAMPLED))
        sizes = [picture.size for row in sample if (picture := self._picture(row, largest))]
        width, height = (max((size[side] for size in sizes), default=largest) for side in (0, 1))
        return Cell(width, height, max(width, height) <= MAGNIFIED)

    def batches(self, rows: Sequence[Ints], largest: int) -> Iterator[Pictures]:
        """Return the pictures, files decoded by threads: Pillow decodes and scales outside the interpreter's lock."""
        with ThreadPoolExecutor(usable_cores()) as pool:
            for batch in rows:
                yield list(pool.map(lambda row: self._picture(int(row), largest), batch))

    def _picture(self, row: int, largest: int) -> Image.Image | None:
        try:
            picture = self.images.picture(int(self.rows[row]), largest)
        except InputError:  # a file that is gone by now leaves an empty cell
            return None
        picture.thumbnail((largest, largest), Image.Resampling.LANCZOS, reducing_gap=2.0)
        return picture


def make_sheets(
    source: Source, batches: Sequence[Ints], largest: int, columns: Sequence[int], tick: Callable[[int], None]
) -> Iterator[Sheet]:
    """Return a sheet for each batch of rows, in order; ``tick`` is told how many images are done.

    Args:
        source: of the pictures.
        batches: rows of the images on each sheet.
        largest: longest side of a thumbnail.
        columns: thumbnails beside each other on each sheet.
        tick: called after each sheet.
    """
    cell, cores, done = source.cell(largest), usable_cores(), 0
    waiting: deque[tuple[int, Future[Sheet]]] = deque()
    with ThreadPoolExecutor(cores) as pool:  # WebP is encoded outside the interpreter's lock
        for pictures, side, rows in zip(source.batches(batches, largest), columns, batches, strict=True):
            waiting.append((len(rows), pool.submit(sheet, pictures, cell, side)))
            while len(waiting) > 2 * cores or (waiting and waiting[0][1].done()):
                made, future = waiting.popleft()
                done += made
                tick(done)
                yield future.result()
        for made, future in waiting:
            done += made
            tick(done)
            yield future.result()


def sheet(pictures: Pictures, cell: Cell, columns: int) -> Sheet:
    """Return thumbnails of ``pictures`` in cells, ``columns`` in a row; smaller ones stand in the middle of theirs."""
    columns, rows = min(columns, max(len(pictures), 1)), -(-len(pictures) // columns)
    thumbnails = [fitted(picture, cell) if picture else None for picture in pictures]
    filled = all(one is not None and one.size == (cell.width, cell.height) for one in thumbnails)
    grey = all(one is None or one.mode == "L" for one in thumbnails)
    canvas = Image.new(("L" if grey else "RGB") if filled else "RGBA", (columns * cell.width, rows * cell.height))
    for position, tile in enumerate(thumbnails):
        if tile:
            row, column = divmod(position, columns)
            left = column * cell.width + (cell.width - tile.width) // 2
            canvas.paste(tile, (left, row * cell.height + (cell.height - tile.height) // 2))
    return Sheet(_webp(canvas, lossless=grey and cell.pixelated), cell, columns, rows)


def fitted(picture: Image.Image, cell: Cell) -> Image.Image:
    """Return the picture made smaller where it does not fit the cell."""
    if picture.width <= cell.width and picture.height <= cell.height:
        return picture
    small = picture.copy()
    small.thumbnail((cell.width, cell.height), Image.Resampling.LANCZOS, reducing_gap=2.0)
    return small


def _webp(picture: Image.Image, lossless: bool) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", lossless=lossless, quality=50 if lossless else 85, method=2)
    return buffer.getvalue()
