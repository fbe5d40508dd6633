"""What the beginning of an image file tells, without decoding its pixels."""

from typing import Any, BinaryIO, NamedTuple

from PIL import Image

from autonovel.data.decode import GREY_MODES, ORIENTATION, UnreadableError, open_picture, reason_of

COLOUR, GREY = "colour", "grey"


class Header(NamedTuple):
    """One image file.

    Attributes:
        width: in pixels, as the file has them.
        height: likewise.
        format: ``JPEG``, ``PNG``, …
        kind: how pixels are stored, in words.
        turned: whether EXIF says that the picture is to be turned or mirrored.
        animated: whether there are more pictures than the first, which is the one that is taken.
    """

    width: int
    height: int
    format: str
    kind: str
    turned: bool
    animated: bool


def read_header(file: BinaryIO) -> Header:
    """Return what the header of an image says."""
    try:
        with open_picture(file) as picture:
            width, height = picture.size
            turned = picture.getexif().get(ORIENTATION, 1) in range(2, 9)
            return Header(width, height, _format(picture), _kind(picture), turned, _animated(picture))
    except Exception as error:  # Pillow's readers raise nearly everything on damaged files
        raise UnreadableError(reason_of(error)) from error


def _format(picture: Image.Image) -> str:
    return "JPEG" if picture.format == "MPO" else str(picture.format)  # a JPEG with more pictures behind it


def _animated(picture: Any) -> bool:
    try:
        return bool(getattr(picture, "is_animated", False))
    except Exception:  # to know, Pillow looks for the second picture, which may be damaged; the first may be whole
        return False


def _kind(picture: Image.Image) -> str:
    mode = picture.mode
    clear = mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in picture.info
    if mode == "1":
        words = "black and white"
    elif mode in ("P", "PA"):
        words = "palette"
    elif mode == "CMYK":
        words = "CMYK"
    elif mode in ("L", "LA", "La"):
        words = GREY
    elif mode in GREY_MODES:
        words = "grey of more than 8 bits"
    else:
        words = COLOUR
    return words + (", transparent" if clear else "")
