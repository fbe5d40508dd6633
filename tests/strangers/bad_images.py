"""Kinds of image files that a stranger may send: what each is, and what becomes of its row."""

import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from odd_files import BAD, NOT_AN_IMAGE, OK, bomb, colour, encoded, turned

TOO_MANY = "are decoded: a decompression bomb"
NO_FILE = "a folder, pipe or device, not a file"


@dataclass(frozen=True)
class BadImage:
    """A kind of file.

    Attributes:
        name: of the file, which tells the kind too.
        given: what it is, in words.
        write: puts it at a path.
        says: what its row says: ``ok``, or words of why it cannot be read.
        to_predict: the same in ``predict``, where that differs.
    """

    name: str
    given: str
    write: Callable[[Path], object]
    says: str
    to_predict: str = ""


def _bytes(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def picture(kind: str, side: int = 24, **options: object) -> bytes:
    """Return a whole image file."""
    return encoded(colour(3, side), kind, **options)


def tiff_bomb() -> bytes:
    """Return a TIFF of few bytes whose header says 60,000 × 60,000 pixels."""
    whole = bytearray(picture("TIFF"))
    start = int.from_bytes(whole[4:8], "little")
    for number in range(int.from_bytes(whole[start : start + 2], "little")):
        entry = start + 2 + 12 * number
        if int.from_bytes(whole[entry : entry + 2], "little") in (256, 257):  # width and height
            whole[entry + 2 : entry + 12] = struct.pack("<HII", 4, 1, 60_000)
    return bytes(whole)


def webp_bomb() -> bytes:
    """Return a WebP of few bytes whose header says 16,384 × 16,384 pixels."""
    whole = bytearray(picture("WEBP", lossless=True))
    place = whole.index(b"VP8L") + 9  # behind the chunk's length and a signature
    whole[place : place + 4] = (16_383 | 16_383 << 14).to_bytes(4, "little")
    return bytes(whole)


def gif_bomb() -> bytes:
    """Return a GIF of few bytes whose screen is 65,535 × 65,535 pixels."""
    whole = bytearray(picture("GIF"))
    whole[6:10] = b"\xff" * 4
    return bytes(whole)


def bmp_bomb() -> bytes:
    """Return a BMP of few bytes whose header says 100,000 × 100,000 pixels."""
    whole = bytearray(picture("BMP"))
    whole[18:26] = struct.pack("<ii", 100_000, 100_000)
    return bytes(whole)


def jpeg_bomb() -> bytes:
    """Return a JPEG of few bytes whose frame is 65,500 × 65,500 pixels."""
    whole = bytearray(picture("JPEG"))
    place = whole.index(b"\xff\xc0")
    whole[place + 5 : place + 9] = struct.pack(">HH", 65_500, 65_500)
    return bytes(whole)


def png_with(name: bytes, content: bytes) -> bytes:
    """Return a PNG with one more chunk before its pixels."""
    whole = picture("PNG")
    chunk = struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    return whole[:33] + chunk + whole[33:]


def inflated(size: int) -> bytes:
    """Return few bytes that a decompressor makes ``size`` of."""
    made = zlib.compressobj(9)
    return b"".join(made.compress(bytes(1 << 20)) for _ in range(size >> 20)) + made.flush()


def frames_after_the_first_are_bombs() -> bytes:
    """Return a GIF whose second picture is broken."""
    whole = encoded(colour(1), "GIF", save_all=True, append_images=[colour(2)])
    return whole[: int(len(whole) * 0.6)]


def many_bits() -> bytes:
    """Return a TIFF of floats that are not finite."""
    import numpy as np

    return encoded(Image.fromarray(np.full((8, 8), np.nan, np.float32)), "TIFF")


def _too_deep(path: Path) -> None:
    """Put an image where its path is longer than the system takes."""
    path.mkdir()
    here = os.open(path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 240, dir_fd=here)
        below = os.open("d" * 240, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    with open(os.open("x.png", os.O_WRONLY | os.O_CREAT, dir_fd=here), "wb") as file:
        file.write(picture("PNG"))
    os.close(here)


def _odd_bytes(path: Path) -> None:
    os.rename(_written(path), os.fsencode(path.parent) + b"/caf\xe9-\xff.png")


def _written(path: Path) -> Path:
    path.write_bytes(picture("PNG"))
    return path


def _cut(kind: str, share: float, **options: object) -> Callable[[Path], object]:
    whole = picture(kind, 64, **options)
    return _bytes(whole[: int(len(whole) * share)])


_ODD = {"empty.jpg": "no bytes at all", "text.jpg": "words under an image's name", "zeros.png": "zero bytes",
        "page.eps.jpg": "PostScript, which a program would run", "phone.heic": "a format that is not read"}  # fmt: skip

IMAGES: tuple[BadImage, ...] = (
    *(BadImage(name, given, _bytes(BAD[name][0](1)), BAD[name][1]) for name, given in _ODD.items()),
    BadImage("one-byte.png", "one byte", _bytes(b"\x89"), NOT_AN_IMAGE),
    BadImage("signature.png", "a PNG's signature alone", _bytes(b"\x89PNG\r\n\x1a\n"), "unreadable: "),
    BadImage(
        "page.html.jpg",
        "a web page, as a failed download leaves it",
        _bytes(b"<!doctype html><title>404"),
        NOT_AN_IMAGE,
    ),
    BadImage(
        "drawing.svg.png", "SVG under another name", _bytes(b"<svg xmlns='http://www.w3.org/2000/svg'/>"), NOT_AN_IMAGE
    ),
    BadImage("archive.png", "a zip file under another name", _bytes(b"PK\x03\x04" + bytes(60)), NOT_AN_IMAGE),
    BadImage("program.jpg", "a program under another name", _bytes(b"\x7fELF" + bytes(60)), NOT_AN_IMAGE),
    BadImage("pickle.jpg", "a pickle that would run code", _bytes(b"cos\nsystem\n(S'true'\ntR."), NOT_AN_IMAGE),
    BadImage("cut.jpg", "a JPEG cut in the middle", _cut("JPEG", 0.5), "truncated"),
    BadImage(
        "cut-progressive.jpg", "a progressive JPEG cut in the middle", _cut("JPEG", 0.4, progressive=True), "truncated"
    ),
    BadImage("cut.png", "a PNG cut in the middle", _cut("PNG", 0.5), "truncated"),
    BadImage("cut.gif", "a GIF cut in the middle", _cut("GIF", 0.5), "unreadable: "),
    BadImage("cut.webp", "a WebP cut in the middle", _cut("WEBP", 0.5), "unreadable: "),
    BadImage("cut.tiff", "a TIFF cut in the middle", _cut("TIFF", 0.2), "unreadable: "),
    BadImage("cut.bmp", "a BMP cut in the middle", _cut("BMP", 0.5), "truncated"),
    BadImage("header-only.jpg", "a JPEG without any picture", _cut("JPEG", 0.03), "unreadable: "),
    BadImage(
        "wrong-sum.png",
        "a PNG whose checksum is wrong",
        _bytes(picture("PNG")[:50] + b"XX" + picture("PNG")[52:]),
        "unreadable: ",
    ),
    BadImage(
        "noise.jpg",
        "a JPEG's beginning, then noise",
        _bytes(b"\xff\xd8\xff\xe0" + bytes(range(256)) * 4),
        "unreadable: ",
    ),
    BadImage("nan.tiff", "a TIFF of floats that are no numbers", _bytes(many_bits()), "not finite"),
    BadImage("bomb.png", "a PNG of 1.6 billion pixels in 100 bytes", _bytes(bomb()), TOO_MANY),
    BadImage("bomb.tiff", "a TIFF of 3.6 billion pixels", _bytes(tiff_bomb()), TOO_MANY),
    BadImage("bomb.webp", "a WebP of 268 million pixels", _bytes(webp_bomb()), TOO_MANY),
    BadImage("bomb.gif", "a GIF of 4.3 billion pixels", _bytes(gif_bomb()), TOO_MANY),
    BadImage("bomb.bmp", "a BMP of 10 billion pixels", _bytes(bmp_bomb()), TOO_MANY),
    BadImage("bomb.jpg", "a JPEG of 4.3 billion pixels", _bytes(jpeg_bomb()), TOO_MANY),
    BadImage(
        "text-bomb.png",
        "a PNG whose comment grows to 64 MB",
        _bytes(png_with(b"zTXt", b"c\0\0" + inflated(64 << 20))),
        "too large",
    ),
    BadImage(
        "profile-bomb.png",
        "a PNG whose colour profile grows to 64 MB",
        _bytes(png_with(b"iCCP", b"c\0\0" + inflated(64 << 20))),
        "too large",
    ),
    BadImage(
        "second-frame.gif", "a GIF broken after its first picture", _bytes(frames_after_the_first_are_bombs()), OK
    ),
    BadImage(
        "odd-exif.jpg", "a JPEG whose EXIF is noise", _bytes(picture("JPEG", exif=b"Exif\0\0" + bytes(range(200)))), OK
    ),
    BadImage("turn-99.jpg", "a JPEG to be turned in a way there is not", _bytes(picture("JPEG", exif=turned(99))), OK),
    BadImage("dangling.jpg", "a link to nothing", lambda path: path.symlink_to("nowhere.jpg"), "No such file"),
    BadImage(
        "loop.jpg", "a link to itself", lambda path: path.symlink_to(path.name), "Too many levels of symbolic links"
    ),
    BadImage(
        "circle", "a folder that is a link to the folder above", lambda path: path.symlink_to(path.parent, True), ""
    ),
    BadImage("pipe.jpg", "a pipe, which would be waited for", lambda path: os.mkfifo(path), NO_FILE),
    BadImage("device.jpg", "a device without an end", lambda path: path.symlink_to("/dev/zero"), NO_FILE),
    BadImage("deep", "a path longer than the system takes", _too_deep, ""),
    BadImage("new\nline.png", "a name of two lines", _written, OK),
    BadImage('say "hi", it\'s.png', "a name with quotes and a comma", _written, OK),
    BadImage("=cmd|'calc'!A0.png", "a name that is a formula", _written, OK),
    BadImage("'=twice.png", "a name like a formula made harmless", _written, OK),
    BadImage("+1.png", "a name that begins with +", _written, OK),
    BadImage("-1.png", "a name that begins with -", _written, OK),
    BadImage("@sum.png", "a name that begins with @", _written, OK),
    BadImage("\ttab.png", "a name that begins with a tab", _written, OK),
    BadImage("\rreturn.png", "a name that begins with a carriage return", _written, OK),
    BadImage("<script>alert(1)<script>.png", "a name of HTML", _written, OK),
    BadImage("\x1b[31mred.png", "a name that colours a terminal", _written, OK),
    BadImage("rtl-\u202egnp.exe.png", "a name that reads backwards", _written, OK),
    BadImage("%s%n{0}.png", "a name of placeholders", _written, OK),
    BadImage("l" * 251 + ".png", "the longest name there can be", _written, OK),
    BadImage("caf\\xe9-\\xff.png", "a name that is no UTF-8", _odd_bytes, "its name is not valid UTF-8", OK),
)
