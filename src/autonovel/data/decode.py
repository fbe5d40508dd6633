"""From the bytes of an image file to a square of uint8 pixels, by Pillow alone: workers need nothing else."""

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

Pixels = NDArray[np.uint8]

EXTENSIONS = (
    ".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".webp", ".bmp", ".dib", ".tif", ".tiff", ".gif",
)  # fmt: skip
WHAT_IS_READ = f"files ending in {' '.join(EXTENSIONS)} are read"
FOREIGN = (  # told of, not read
    ".heic", ".heif", ".avif", ".jp2", ".jxl", ".psd", ".svg", ".dng", ".cr2", ".nef", ".arw",
)  # fmt: skip
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF")  # nothing that runs programs, as EPS does
GREY_MODES = ("1", "L", "LA", "La", "I", "F", "I;16", "I;16B", "I;16L", "I;16N")
ORIENTATION = 0x0112  # of EXIF
MOST_PIXELS = 178_956_970  # that are decoded, half a gigabyte of RGB; a file says how many it has in its first bytes
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def is_image(name: str) -> bool:
    """Tell by its name whether a file should be an image, in a format that can be read or not."""
    return name.lower().endswith(EXTENSIONS + FOREIGN) and not name.startswith(".")


class UnreadableError(Exception):
    """A file that is no image, or a damaged one; the message says why."""


def open_picture(file: Any) -> Image.Image:
    """Return the picture in ``file`` as far as its header goes, if it is of a kind and size that are decoded at all.

    Pillow has the same limit, but any library in the process may switch it off for all.
    """
    picture = Image.open(file, formats=FORMATS)
    width, height = picture.size
    if width * height > MOST_PIXELS:
        picture.close()
        raise UnreadableError(too_many_pixels(width * height))
    return picture


def too_many_pixels(number: int) -> str:
    """Return in words why a picture of ``number`` pixels is not decoded."""
    return f"{number:,} pixels, and at most {MOST_PIXELS:,} are decoded: a decompression bomb, or to be made smaller"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep Pillow's remarks on odd metadata to itself; around many images, since it costs as much as reading one."""
    log = logging.getLogger("PIL")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)  # it tells of damaged TIFFs there, besides raising an error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def is_grey(file: BinaryIO) -> bool:
    """Tell from its header whether an image has no colours."""
    try:
        with open_picture(file) as picture:
            return picture.mode in GREY_MODES
    except Exception as error:
        raise UnreadableError(reason_of(error)) from error


def decode(content: bytes, side: int, channels: int, white: int = 0) -> Pixels:
    """Return the first picture in ``content`` upright, its central square scaled to side×side pixels.

    A JPEG is decoded at the smallest of its built-in scales that is large enough.

    Args:
        content: a whole image file.
        side: pixels along each side of the result.
        channels: 1 for grey, 3 for RGB.  Transparency is laid on white, 16-bit values keep their upper half.
        white: of grey of more than 8 bits, the value that is white, with all above it (0: as its kind has it).

    Returns:
        channels×side×side.
    """
    try:
        with open_picture(io.BytesIO(content)) as picture:
            return _square(picture, side, channels, white)
    except Exception as error:  # Pillow's readers raise nearly everything on damaged files
        raise UnreadableError(reason_of(error)) from error


def _square(picture: Image.Image, side: int, channels: int, white: int) -> Pixels:
    picture.draft(None, (side, side))
    picture.load()
    # after loading, when Pillow has turned a TIFF already and has read what stands behind the pixels of a PNG
    turn = TURNS.get(picture.getexif().get(ORIENTATION, 1)) if "exif" in picture.info else None
    flat = _flat(picture, white)
    width, height = flat.size
    if width != height:
        shorter = min(width, height)
        left, top = (width - shorter) // 2, (height - shorter) // 2
        flat = flat.crop((left, top, left + shorter, top + shorter))
    if flat.width != side:
        flat = flat.resize((side, side), Image.Resampling.BILINEAR, reducing_gap=2.0)
    if turn is not None:  # of a square, so that it may as well come last
        flat = flat.transpose(turn)
    mode = "L" if channels == 1 else "RGB"
    pixels = np.asarray(flat if flat.mode == mode else flat.convert(mode))
    return pixels[None] if channels == 1 else pixels.transpose(2, 0, 1)


def _flat(picture: Image.Image, white: int) -> Image.Image:
    """Return the picture as 8-bit grey or RGB without transparency."""
    if picture.mode in ("L", "RGB") and "transparency" not in picture.info:
        return picture
    if picture.mode in ("1", "L"):
        return picture.convert("L")
    if picture.mode in GREY_MODES and picture.mode not in ("LA", "La"):
        return Image.fromarray(_eight_bits(np.asarray(picture), white))
    if picture.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        ground = Image.new("RGBA", layer.size, "white")
        return Image.alpha_composite(ground, layer).convert("L" if picture.mode in ("LA", "La") else "RGB")
    return picture.convert("RGB")


def _eight_bits(values: NDArray[np.generic], white: float) -> Pixels:
    """Return deeper grey as uint8, from 0 to ``white``.

    Where that is 0, nothing is cut off at the top: of 16-bit values the upper half is kept, floats up to 1, 255 or
    65,535 are taken to fill that range, and beyond 16 bits the largest value becomes white.
    """
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("pixels that are not finite numbers")
    top = float(values.max(initial=0))
    if not white and values.dtype.kind != "f" and top <= 65535:
        return (np.maximum(values.astype(np.int64), 0) >> 8).astype(np.uint8)
    white = white or next((limit for limit in (1.0, 255.0, 65535.0) if top <= limit), top)
    return np.rint(np.clip(values.astype(np.float64), 0, white) * (255 / white)).astype(np.uint8)


def reason_of(error: Exception) -> str:
    """Return in one line why a file cannot be read."""
    if isinstance(error, UnidentifiedImageError):
        return "not a JPEG, PNG, WebP, BMP, TIFF or GIF image"
    if isinstance(error, Image.DecompressionBombError):  # Pillow's sentence says how many there are first
        found = re.search(r"\d+", str(error))
        return too_many_pixels(int(found[0])) if found else str(error)
    if isinstance(error, OSError) and error.strerror:  # without the number and the path, which are said elsewhere
        return error.strerror
    return str(error).splitlines()[0] if str(error) else type(error).__name__
