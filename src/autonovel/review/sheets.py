"""Thumbnails, many in one picture, so that a page of hundreds of images asks for a handful of files."""

import io
from collections.abc import Sequence

from PIL import Image

CELL = 96
COLUMNS = 8
MOST = 48  # thumbnails on a sheet
LARGE = 1200


def sheet(pictures: Sequence[Image.Image | None]) -> bytes:
    """Return the pictures as a WebP of square cells, ``COLUMNS`` in a row; the cell of a missing one is empty."""
    thumbnails = [thumbnail(picture) if picture else None for picture in pictures]
    cell = max((max(t.size) for t in thumbnails if t), default=CELL)
    canvas = Image.new("RGBA", (COLUMNS * cell, -(-len(thumbnails) // COLUMNS) * cell))
    for position, tile in enumerate(thumbnails):
        if tile:
            row, column = divmod(position, COLUMNS)
            canvas.paste(tile, (column * cell + (cell - tile.width) // 2, row * cell + (cell - tile.height) // 2))
    crisp = all(max(picture.size) <= CELL // 2 for picture in pictures if picture)  # magnified pixels stay pixels
    return encoded(canvas, crisp)


def thumbnail(picture: Image.Image) -> Image.Image:
    """Return the picture at about ``CELL`` pixels: tiny ones grow by whole pixels, large ones shrink smoothly."""
    longest = max(picture.size)
    if longest <= CELL:
        factor = CELL // longest
        return picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)
    small = picture.copy()
    small.thumbnail((CELL, CELL), Image.Resampling.LANCZOS, reducing_gap=2.0)
    return small


def large(picture: Image.Image) -> bytes:
    """Return one picture for a close look: tiny ones magnified by whole pixels, huge ones made smaller."""
    longest = max(picture.size)
    if longest < 320:
        factor = 320 // longest
        size = (picture.width * factor, picture.height * factor)
        return encoded(picture.resize(size, Image.Resampling.NEAREST), lossless=True)
    if longest > LARGE:
        picture = picture.copy()
        picture.thumbnail((LARGE, LARGE), Image.Resampling.LANCZOS, reducing_gap=2.0)
    return encoded(picture, lossless=False)


def encoded(picture: Image.Image, lossless: bool) -> bytes:
    """Return the picture as WebP."""
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", lossless=lossless, quality=60 if lossless else 82, method=2)
    return buffer.getvalue()
