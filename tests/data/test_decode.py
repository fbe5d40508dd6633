"""Image files of every kind become the pixels a person sees, and damaged ones a reason."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from autonovel.data.decode import UnreadableError, decode, is_grey, is_image

RNG = np.random.default_rng(0)
COLOUR = RNG.integers(0, 256, (8, 8, 3), dtype=np.uint8)
GREY = RNG.integers(0, 256, (8, 8), dtype=np.uint8)


def encoded(picture: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "WEBP"])
def test_lossless_formats_keep_every_pixel(kind: str) -> None:
    options = {"lossless": True} if kind == "WEBP" else {}
    content = encoded(Image.fromarray(COLOUR), kind, **options)
    assert np.array_equal(decode(content, 8, 3), COLOUR.transpose(2, 0, 1))
    assert not is_grey(io.BytesIO(content))


def test_grey_stays_grey_or_becomes_three_equal_channels() -> None:
    content = encoded(Image.fromarray(GREY), "PNG")
    assert is_grey(io.BytesIO(content))
    assert np.array_equal(decode(content, 8, 1), GREY[None])
    assert np.array_equal(decode(content, 8, 3), np.stack([GREY] * 3))


def test_transparent_pixels_are_white_whatever_colour_they_hide() -> None:
    alpha = np.where(np.arange(8)[:, None] < 4, 255, 0).astype(np.uint8) * np.ones((1, 8), np.uint8)
    content = encoded(Image.fromarray(np.dstack([COLOUR, alpha])), "PNG")
    wanted = np.where(alpha[..., None] == 255, COLOUR, 255)
    assert np.array_equal(decode(content, 8, 3), wanted.transpose(2, 0, 1))
    grey = encoded(Image.merge("LA", [Image.fromarray(GREY), Image.fromarray(alpha)]), "PNG")
    assert is_grey(io.BytesIO(grey))
    assert np.array_equal(decode(grey, 8, 1)[0], np.where(alpha == 255, GREY, 255))


def test_palettes_are_looked_up() -> None:
    blocks = np.repeat(np.repeat(np.array([[[255, 0, 0], [0, 0, 255]]], np.uint8), 8, 0), 4, 1)
    picture = Image.fromarray(blocks).quantize(4)
    assert np.array_equal(decode(encoded(picture, "PNG"), 8, 3), blocks.transpose(2, 0, 1))
    clear = encoded(picture, "PNG", transparency=picture.getpixel((0, 0)))
    assert (decode(clear, 8, 3)[:, :, 0] == 255).all()


def test_sixteen_bits_keep_their_upper_half() -> None:
    deep = RNG.integers(0, 65536, (8, 8), dtype=np.uint16)
    for kind in ("PNG", "TIFF"):
        content = encoded(Image.fromarray(deep), kind)
        assert is_grey(io.BytesIO(content))
        assert np.array_equal(decode(content, 8, 1)[0], deep >> 8)


def test_floats_and_bits() -> None:
    share = RNG.random((8, 8)).astype(np.float32)
    assert np.array_equal(decode(encoded(Image.fromarray(share), "TIFF"), 8, 1)[0], np.rint(share.astype(float) * 255))
    levels = (share * 255).astype(np.float32)
    assert np.array_equal(decode(encoded(Image.fromarray(levels), "TIFF"), 8, 1)[0], np.rint(levels))
    bits = Image.fromarray(GREY > 127)
    assert np.array_equal(decode(encoded(bits, "PNG"), 8, 1)[0], np.where(GREY > 127, 255, 0))
    share[2, 3] = np.nan
    with pytest.raises(UnreadableError, match="finite"):
        decode(encoded(Image.fromarray(share), "TIFF"), 8, 1)


def test_cmyk_becomes_rgb() -> None:
    red = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    found = decode(encoded(red, "JPEG", quality=95), 8, 3)
    assert found[0].min() > 240 and found[1:].max() < 15


def test_the_first_picture_of_an_animation_counts() -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "lime")]
    content = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert decode(content, 8, 3)[:, 0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_upright(kind: str, orientation: int) -> None:
    blocks = np.kron(np.arange(0, 256, 16, dtype=np.uint8).reshape(4, 4), np.ones((8, 8), np.uint8))
    picture = Image.fromarray(np.dstack([blocks] * 3))
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if kind == "WEBP" else {"quality": 100} if kind == "JPEG" else {}
    content = encoded(picture, kind, exif=exif, **options)
    with Image.open(io.BytesIO(content)) as opened:
        wanted = np.asarray(ImageOps.exif_transpose(opened).convert("RGB")).transpose(2, 0, 1)
    assert np.abs(decode(content, 32, 3).astype(int) - wanted).max() <= 2
    if orientation == 6:  # not by Pillow's word alone: the camera's top is the picture's right-hand side
        assert np.abs(decode(content, 32, 3)[0].astype(int) - np.rot90(blocks, -1)).max() <= 2


@pytest.mark.parametrize("shape", [(16, 40), (40, 16), (17, 40)])
def test_the_central_square_is_scaled(shape: tuple[int, int]) -> None:
    height, width = shape
    pixels = RNG.integers(0, 256, (height, width), dtype=np.uint8)
    side = min(shape)
    top, left = (height - side) // 2, (width - side) // 2
    square = Image.fromarray(pixels[top : top + side, left : left + side])
    wanted = np.asarray(square.resize((8, 8), Image.Resampling.BILINEAR, reducing_gap=2.0))
    assert np.array_equal(decode(encoded(Image.fromarray(pixels), "PNG"), 8, 1)[0], wanted)


def test_a_jpeg_is_decoded_at_a_scale_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    smooth = Image.fromarray(RNG.integers(0, 256, (6, 6, 3), dtype=np.uint8)).resize((512, 512), Image.BICUBIC)
    content = encoded(smooth, "JPEG", quality=95)
    sizes = []
    resize = Image.Image.resize
    monkeypatch.setattr(Image.Image, "resize", lambda self, *a, **k: sizes.append(self.size) or resize(self, *a, **k))
    found = decode(content, 48, 3)
    assert sizes == [(64, 64)], "the smallest eighth of 512 that is no smaller than 48"
    exact = np.asarray(resize(smooth, (48, 48), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    assert np.abs(found.astype(int) - exact).mean() < 2


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP", "BMP"])
def test_a_truncated_file_has_a_reason(kind: str) -> None:
    content = encoded(Image.fromarray(RNG.integers(0, 256, (64, 64, 3), dtype=np.uint8)), kind)
    with pytest.raises(UnreadableError) as error:
        decode(content[: len(content) // 2], 8, 3)
    assert str(error.value)


@pytest.mark.parametrize("content", [b"", b"not an image", b"\x89PNG\r\n\x1a\n" + bytes(20)])
def test_what_is_no_image_has_a_reason(content: bytes) -> None:
    with pytest.raises(UnreadableError):
        decode(content, 8, 3)
    with pytest.raises(UnreadableError):
        is_grey(io.BytesIO(content))


def test_programs_in_disguise_are_not_run() -> None:
    with pytest.raises(UnreadableError, match="not a JPEG"):
        decode(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n", 8, 3)


def test_images_by_name() -> None:
    assert all(is_image(name) for name in ("a.JPG", "b.jpeg", "c.Tiff", "d.webp", "e.heic"))
    assert not any(is_image(name) for name in ("a.txt", "._a.jpg", "truth.csv", "jpg"))


# ---------------------------------------------------------------------------------------------------
# kinds that only some cameras and programs write


def test_sixteen_bit_colours_keep_their_upper_half() -> None:
    from odd_files import sixteen_bit_rgb_png

    deep = np.random.default_rng(4).integers(0, 65536, (16, 16, 3))
    assert np.array_equal(decode(sixteen_bit_rgb_png(4), 16, 3), (deep >> 8).transpose(2, 0, 1))


def test_deeper_grey_is_scaled_and_never_cut_off() -> None:
    whole = GREY.astype(np.int32) * 1000  # 32 bits: up to 255,000
    wanted = np.rint(whole * (255 / whole.max()))
    assert np.array_equal(decode(encoded(Image.fromarray(whole), "TIFF"), 8, 1)[0], wanted)
    large = GREY.astype(np.float32) * 257
    large[0, 0] = 65535
    assert np.array_equal(decode(encoded(Image.fromarray(large), "TIFF"), 8, 1)[0], np.rint(large / 257))
    below = np.full((8, 8), -5, np.int32)
    assert (decode(encoded(Image.fromarray(below), "TIFF"), 8, 1) == 0).all()


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_of_deep_grey_a_caller_says_what_is_white(kind: str) -> None:
    deep = RNG.integers(0, 4096, (8, 8), dtype=np.uint16)
    deep[0, 0] = 60000  # brighter than white
    wanted = np.rint(np.minimum(deep, 4095) * (255 / 4095))
    content = encoded(Image.fromarray(deep), kind)
    assert np.array_equal(decode(content, 8, 1, 4095)[0], wanted)
    assert np.array_equal(decode(content, 8, 3, 4095), np.stack([wanted] * 3))
    assert decode(content, 8, 1)[0, 1:].max() <= 15
    shallow = encoded(Image.fromarray((deep >> 8).astype(np.uint8)), "PNG")
    assert np.array_equal(decode(shallow, 8, 1, 4095), decode(shallow, 8, 1)), "which has 8 bits and a white of its own"


def test_a_caller_says_what_is_white_in_floats() -> None:
    large = GREY.astype(np.float32) * 2
    assert np.array_equal(decode(encoded(Image.fromarray(large), "TIFF"), 8, 1, 510)[0], GREY)


def test_cmyk_of_a_jpeg_is_inverted_as_adobes_programs_write_it() -> None:
    from odd_files import without_adobe_mark

    red = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    assert decode(encoded(red, "TIFF"), 8, 3)[:, 4, 4].tolist() == [255, 0, 0]
    marked = encoded(red, "JPEG", quality=95)
    assert b"Adobe" in marked and b"Adobe" not in without_adobe_mark(0)
    for content in (marked, without_adobe_mark(0, red)):
        found = decode(content, 8, 3)
        assert found[0].min() > 240 and found[1:].max() < 15


@pytest.mark.parametrize("kind", ["MPO", "TIFF", "WEBP", "PNG"])
def test_the_first_of_several_pictures_counts(kind: str) -> None:
    frames = [Image.new("RGB", (16, 16), colour) for colour in ("red", "lime")]
    content = encoded(frames[0], kind, save_all=True, append_images=frames[1:])
    with Image.open(io.BytesIO(content)) as opened:
        assert opened.n_frames == 2  # type: ignore[attr-defined]
    found = decode(content, 8, 3)
    assert found[0].min() > 240 and found[1:].max() < 15


def test_partly_transparent_pixels_are_mixed_with_white() -> None:
    half = Image.new("RGBA", (8, 8), (200, 100, 0, 128))
    found = decode(encoded(half, "PNG"), 8, 3)[:, 0, 0].astype(int)
    assert np.abs(found - [255 - 55 / 2, 255 - 155 / 2, 255 - 255 / 2]).max() <= 1


def test_what_says_it_is_too_large_is_not_unpacked() -> None:
    from odd_files import bomb

    with pytest.raises(UnreadableError, match="decompression bomb"):
        decode(bomb(), 8, 3)
