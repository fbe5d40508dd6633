"""A folder with every kind of image file that a person may have, whole and broken, and what is to become of each."""

import io
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

NOT_AN_IMAGE = "not a JPEG, PNG, WebP, BMP, TIFF or GIF image"
OK = "ok"


def pixels(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def encoded(picture: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def colour(seed: int, side: int = 16, mode: str = "RGB") -> Image.Image:
    return Image.fromarray(pixels(seed, side, side, 3)).convert(mode)


def turned(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def sixteen_bit_rgb_png(seed: int) -> bytes:
    """Return an RGB PNG of 16 bits a channel, which Pillow reads but does not write."""
    values = np.random.default_rng(seed).integers(0, 65536, (16, 16, 3)).astype(">u2")
    rows = b"".join(b"\0" + row.tobytes() for row in values)

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", 16, 16, 16, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def bomb() -> bytes:
    """Return a PNG of few bytes that says it has 40,000 × 40,000 pixels."""
    whole = encoded(Image.new("1", (8, 8)), "PNG")
    header = struct.pack(">II", 40_000, 40_000) + whole[24:29]
    return whole[:16] + header + struct.pack(">I", zlib.crc32(b"IHDR" + header)) + whole[33:]


def without_adobe_mark(seed: int, picture: Image.Image | None = None) -> bytes:
    """Return a CMYK JPEG without the marker by which Adobe's programs say that its values are inverted."""
    whole = encoded(picture or colour(seed, mode="CMYK"), "JPEG", quality=95)
    place = whole.index(b"\xff\xee")
    length = int.from_bytes(whole[place + 2 : place + 4], "big")
    return whole[:place] + whole[place + 2 + length :]


GOOD: dict[str, Callable[[int], bytes]] = {
    "plain.jpg": lambda n: encoded(colour(n), "JPEG"),
    "CAPITALS.JPG": lambda n: encoded(colour(n), "JPEG"),
    "progressive.jpeg": lambda n: encoded(colour(n), "JPEG", progressive=True),
    "cmyk-adobe.jpg": lambda n: encoded(colour(n, mode="CMYK"), "JPEG"),
    "cmyk-plain.jpg": without_adobe_mark,
    "grey.jpg": lambda n: encoded(colour(n, mode="L"), "JPEG"),
    "two-pictures.mpo": lambda n: encoded(colour(n), "MPO", save_all=True, append_images=[colour(n + 1)]),
    "two-pictures.jpg": lambda n: encoded(colour(n), "MPO", save_all=True, append_images=[colour(n + 1)]),
    "rgba.png": lambda n: encoded(Image.fromarray(pixels(n, 16, 16, 4)), "PNG"),
    "grey-and-alpha.png": lambda n: encoded(Image.fromarray(pixels(n, 16, 16, 4)).convert("LA"), "PNG"),
    "palette.png": lambda n: encoded(colour(n).quantize(8), "PNG"),
    "palette-clear.png": lambda n: encoded(colour(n).quantize(8), "PNG", transparency=3),
    "one-bit.png": lambda n: encoded(colour(n, mode="1"), "PNG"),
    "sixteen-bit.png": lambda n: encoded(Image.fromarray(pixels(n, 16, 16).astype(np.uint16) * 257), "PNG"),
    "sixteen-bit-rgb.png": sixteen_bit_rgb_png,
    "animated.png": lambda n: encoded(colour(n), "PNG", save_all=True, append_images=[colour(n + 1)]),
    "lossless.webp": lambda n: encoded(colour(n), "WEBP", lossless=True),
    "animated.webp": lambda n: encoded(colour(n), "WEBP", save_all=True, append_images=[colour(n + 1)]),
    "plain.bmp": lambda n: encoded(colour(n), "BMP"),
    "palette.bmp": lambda n: encoded(colour(n).quantize(8), "BMP"),
    "plain.tif": lambda n: encoded(colour(n), "TIFF"),
    "pages.tiff": lambda n: encoded(colour(n), "TIFF", save_all=True, append_images=[colour(n + 1)]),
    "lzw.tiff": lambda n: encoded(colour(n), "TIFF", compression="tiff_lzw"),
    "sixteen-bit.tiff": lambda n: encoded(Image.fromarray(pixels(n, 16, 16).astype(np.uint16) * 257), "TIFF"),
    "floats.tiff": lambda n: encoded(Image.fromarray(pixels(n, 16, 16).astype(np.float32) / 255), "TIFF"),
    "cmyk.tiff": lambda n: encoded(colour(n, mode="CMYK"), "TIFF"),
    "plain.gif": lambda n: encoded(colour(n), "GIF"),
    "animated.gif": lambda n: encoded(colour(n), "GIF", save_all=True, append_images=[colour(n + 1)]),
    "a-png-called.jpg": lambda n: encoded(colour(n), "PNG"),
    "a-gif-called.png": lambda n: encoded(colour(n), "GIF"),
    "wide.png": lambda n: encoded(colour(n).resize((300, 2)), "PNG"),
    "one-pixel.png": lambda n: encoded(colour(n, 1), "PNG"),
    'comma, "quotes" and ünïcödé.png': lambda n: encoded(colour(n), "PNG"),
    "new\nline.png": lambda n: encoded(colour(n), "PNG"),
    "=formula.png": lambda n: encoded(colour(n), "PNG"),
    f"{'long' * 60}.png": lambda n: encoded(colour(n), "PNG"),
    **{
        f"turned-{way}.jpg": lambda n, way=way: encoded(colour(n), "JPEG", exif=turned(way))  # type: ignore[misc]
        for way in range(1, 9)
    },
}

BAD: dict[str, tuple[Callable[[int], bytes], str]] = {
    "empty.jpg": (lambda n: b"", NOT_AN_IMAGE),
    "text.jpg": (lambda n: b"these are words, not pixels", NOT_AN_IMAGE),
    "zeros.png": (lambda n: bytes(500), NOT_AN_IMAGE),
    "truncated.jpg": (lambda n: encoded(colour(n, 64), "JPEG")[:900], "truncated"),
    "truncated.png": (lambda n: encoded(colour(n, 64), "PNG")[:900], "truncated"),
    "truncated.gif": (lambda n: encoded(colour(n, 64), "GIF")[:900], ""),
    "truncated.webp": (lambda n: encoded(colour(n, 64), "WEBP")[:300], ""),
    "truncated.tiff": (lambda n: encoded(colour(n, 64), "TIFF")[:200], ""),
    "bomb.png": (lambda n: bomb(), "decompression bomb"),
    "page.eps.jpg": (lambda n: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n", NOT_AN_IMAGE),
    "phone.heic": (lambda n: b"\0\0\0\x18ftypheic", NOT_AN_IMAGE),
}


def write_odd_files(root: Path, count: int) -> dict[str, str]:
    """Fill ``root`` with ``count`` files: two known classes and a pile, every kind in each of the three.

    Returns:
        For every file by its id, ``ok`` or words of why it cannot be read.
    """
    wanted: dict[str, str] = {}
    for place in ("cat", "dog", "unlabelled/deep"):
        (root / place).mkdir(parents=True)
        for name, make in GOOD.items():
            wanted[f"{place}/{name}"] = OK
            (root / place / name).write_bytes(make(len(wanted)))
        for name, (make, reason) in BAD.items():
            wanted[f"{place}/{name}"] = reason
            (root / place / name).write_bytes(make(len(wanted)))
        wanted |= _write_special(root, place)
    for number in range(count - len(wanted)):
        name = ("cat/{}.png", "dog/{}.png", "loose-{}.png")[number % 3].format(number)
        wanted[name] = OK
        (root / name).write_bytes(encoded(colour(10_000 + number), "PNG"))
    (root / "cat" / "notes.txt").write_text("no image by its name")
    return wanted


def _write_special(root: Path, place: str) -> dict[str, str]:
    """Write what is no plain file."""
    folder = root / place
    (folder / "dangling.jpg").symlink_to(folder / "nowhere.jpg")
    (folder / "loop.jpg").symlink_to(folder / "loop.jpg")
    (folder / "link.png").symlink_to(folder / "rgba.png")
    (folder / "circle").symlink_to(root, target_is_directory=True)
    os.mkfifo(folder / "pipe.jpg")
    (folder / "device.jpg").symlink_to("/dev/zero")
    (folder / "folder.jpg").mkdir()
    (folder / "folder.jpg" / "inside.png").write_bytes(encoded(colour(5), "PNG"))
    secret = folder / "secret.png"
    secret.write_bytes(encoded(colour(6), "PNG"))
    secret.chmod(0)
    (folder / "x.png").write_bytes(encoded(colour(7), "PNG"))
    (folder / "x.png").rename(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe.png"))
    no_file = "a folder, pipe or device, not a file"
    return {
        f"{place}/dangling.jpg": "No such file or directory",
        f"{place}/loop.jpg": "Too many levels of symbolic links",
        f"{place}/link.png": OK,
        f"{place}/pipe.jpg": no_file,
        f"{place}/device.jpg": no_file,
        f"{place}/folder.jpg/inside.png": OK,
        f"{place}/secret.png": OK if os.geteuid() == 0 else "Permission denied",  # root may read everything
        f"{place}/\\xff\\xfe.png": "its name is not valid UTF-8",
    }
