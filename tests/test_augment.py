"""Random views against per-image loops in NumPy."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageEnhance
from scipy import stats
from torch import Tensor

from autonovel import augment, draws, settings
from autonovel.augment import Augmentation
from autonovel.data import Batch
from autonovel.methods.views import augmentation, two_views

SHAPES = [(5, 1, 8, 8), (4, 3, 6, 9), (3, 2, 11, 5), (1, 4, 7, 7)]
KEY = draws.stream(3, 101)


def batch(shape: tuple[int, ...], seed: int = 0, draws_each: int = 5) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=rng), torch.rand(shape[0], draws_each, generator=rng)


def pixels(n: int = 6, channels: int = 3, height: int = 8, width: int = 8) -> Tensor:
    rng = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (n, channels, height, width), generator=rng, dtype=torch.uint8)


def view(a: Augmentation, images: Tensor, index: Tensor | None = None, step: int = 0, number: int = 1) -> Tensor:
    """Return view ``number`` (1 or 2) of the images, drawn as the numbers ``index`` of a set."""
    u = numbers(len(images), 2 * a.n_draws, index, step).chunk(2, dim=1)[number - 1]
    return a.view(images, u)


def numbers(n: int, count: int, index: Tensor | None = None, step: int = 0) -> Tensor:
    index = torch.arange(n) if index is None else index
    return draws.uniform(KEY, torch.tensor([step]), index[None], count)[0]


# ---------------------------------------------------------------------------------------------------
# crop and shift


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pad", [1, 2, 4])
@pytest.mark.parametrize(("transform", "mode"), [(augment.crop, "constant"), (augment.reflect_shift, "reflect")])
def test_crop_and_shift_equal_padding_and_cutting(
    transform: Callable[..., Tensor], mode: str, pad: int, shape: tuple[int, ...]
) -> None:
    x, u = batch(shape)
    h, w = shape[2:]
    found = transform(x, u, pad)
    for i, image in enumerate(x.numpy()):
        padded = np.pad(image, ((0, 0), (pad, pad), (pad, pad)), mode=mode)  # type: ignore[call-overload]
        top, left = (int(v * (2 * pad + 1)) for v in u[i, :2].double())
        assert np.array_equal(found[i].numpy(), padded[:, top : top + h, left : left + w])


@pytest.mark.parametrize("transform", [augment.crop, augment.reflect_shift])
def test_the_middle_draw_leaves_the_image_as_it_is(transform: Callable[..., Tensor]) -> None:
    x, _ = batch((4, 3, 6, 9))
    assert torch.equal(transform(x, torch.full((4, 2), 0.5), 3), x)


def test_crop_by_hand() -> None:
    x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]).repeat(3, 1, 1, 1)
    u = torch.tensor([[0.0, 0.0], [0.999, 0.999], [0.5, 0.999]])
    black = 0.0
    assert augment.crop(x, u, 1)[:, 0].tolist() == [
        [[black, black], [black, 1.0]],
        [[4.0, black], [black, black]],
        [[2.0, black], [4.0, black]],
    ]


def test_reflect_shift_mirrors_without_the_edge_pixel() -> None:
    x = torch.tensor([[[[1.0, 2.0, 3.0]] * 3]]).repeat(2, 1, 1, 1)
    u = torch.tensor([[0.5, 0.0], [0.5, 0.999]])
    found = augment.reflect_shift(x, u, 2)
    assert found[0, 0, 0].tolist() == [3.0, 2.0, 1.0]
    assert found[1, 0, 0].tolist() == [3.0, 2.0, 1.0]
    assert augment.reflect_shift(x, u, 1)[:, 0, 0].tolist() == [[2.0, 1.0, 2.0], [2.0, 3.0, 2.0]]


def test_every_offset_of_a_crop_is_as_likely() -> None:
    marked = torch.zeros(9000, 1, 5, 5, dtype=torch.uint8)
    marked[:, :, 2, 2] = 255
    where = view(Augmentation(crop=1), marked)[:, 0].flatten(1).argmax(dim=1)
    counts = torch.bincount(where, minlength=25).view(5, 5)[1:4, 1:4]
    assert counts.sum() == 9000
    assert ((counts - 1000).abs() < 150).all()


# ---------------------------------------------------------------------------------------------------
# colours


@pytest.mark.parametrize(
    ("change", "enhance"), [("contrast", ImageEnhance.Contrast), ("saturation", ImageEnhance.Color)]
)
def test_contrast_and_colours_change_as_a_picture_editor_changes_them(change: str, enhance: type[Any]) -> None:
    images, u = pixels(), torch.linspace(0, 1, 6)[:, None]
    found = Augmentation(**{change: 0.5}).view(images, u) * 255
    for image, draw, made in zip(images, u[:, 0].tolist(), found, strict=True):
        picture = enhance(Image.fromarray(image.permute(1, 2, 0).numpy())).enhance(0.5 + draw)
        assert np.abs(np.asarray(picture, dtype=float) - made.permute(1, 2, 0).numpy()).max() <= 2  # it rounds


def test_a_share_of_the_views_has_no_colour() -> None:
    images, u = pixels(), torch.tensor([0.0, 0.1, 0.29, 0.3, 0.5, 0.99])[:, None]
    found = Augmentation(grey=0.3).view(images, u)
    spread = found.amax(dim=1) - found.amin(dim=1)
    assert (spread[:3] < 1e-6).all()
    assert torch.equal(found[3:], images[3:].float() / 255)
    greys = [np.asarray(Image.fromarray(i.permute(1, 2, 0).numpy()).convert("L"), dtype=float) for i in images[:3]]
    assert np.abs(np.stack(greys) - found[:3, 0].numpy() * 255).max() <= 1


@pytest.mark.parametrize("change", ["saturation", "grey"])
def test_what_has_no_colours_cannot_lose_them(change: str) -> None:
    images = pixels(channels=1)
    assert torch.allclose(view(Augmentation(**{change: 1.0}), images), images.float() / 255)


# ---------------------------------------------------------------------------------------------------
# flip and quarter turns


@pytest.mark.parametrize("shape", SHAPES)
def test_flip_mirrors_each_image_by_its_own_draw(shape: tuple[int, ...]) -> None:
    x, u = batch(shape, seed=4)
    u[0, 0] = 0.5  # not below 1/2
    found = augment.flip(x, u)
    for i, image in enumerate(x.numpy()):
        wanted = np.flip(image, axis=2) if u[i, 0] < 0.5 else image
        assert np.array_equal(found[i].numpy(), wanted)


def test_half_of_the_images_are_mirrored() -> None:
    x = torch.zeros(4000, 1, 1, 2, dtype=torch.uint8)
    x[:, :, :, 0] = 255
    assert 1850 < int(view(Augmentation(flip=True), x)[:, 0, 0, 1].sum()) < 2150


@pytest.mark.parametrize("channels", [1, 3])
def test_rotate90_turns_each_image_by_its_own_number(channels: int) -> None:
    x, _ = batch((8, channels, 5, 5))
    turns = torch.tensor([0, 1, 2, 3, 3, 2, 1, 0])
    found = augment.rotate90(x, turns)
    for i, image in enumerate(x.numpy()):
        assert np.array_equal(found[i].numpy(), np.rot90(image, int(turns[i]), axes=(1, 2)))


def test_four_rotations_come_image_by_image() -> None:
    x, _ = batch((3, 2, 4, 4))
    turned, labels = augment.four_rotations(x)
    assert turned.shape == (12, 2, 4, 4)
    assert labels.tolist() == [0, 1, 2, 3] * 3
    for i, image in enumerate(x.numpy()):
        for turns in range(4):
            assert np.array_equal(turned[4 * i + turns].numpy(), np.rot90(image, turns, axes=(1, 2)))


def test_rotations_are_those_of_the_published_code() -> None:
    image = np.arange(9).reshape(3, 3)
    turned, _ = augment.four_rotations(torch.tensor(image)[None, None].float())
    wanted = [
        image,
        np.flipud(image.T),
        np.fliplr(np.flipud(image)),
        np.flipud(image).T,
    ]
    for found, by_hand in zip(turned[:, 0].numpy(), wanted, strict=True):
        assert np.array_equal(found, by_hand)


# ---------------------------------------------------------------------------------------------------
# affine maps


def naive_affine(
    image: np.ndarray, u: np.ndarray, rotate: float, shear: float, scale: float, shift: float
) -> np.ndarray:
    """Look every pixel up in the input, at the place the inverse map sends it to, between four pixels."""
    h, w = image.shape[1:]
    r = 2 * u.astype(float) - 1
    angle, skew, size = rotate * r[0], math.tan(shear * r[1]), 1 + scale * r[2]
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    inverse = turn @ np.array([[1.0, skew], [0.0, 1.0]]) / size
    out = np.zeros(image.shape)
    for row in range(h):
        for column in range(w):
            x, y = inverse @ [column - (w - 1) / 2, row - (h - 1) / 2] + shift * r[3:5] + [(w - 1) / 2, (h - 1) / 2]
            for i in (math.floor(y), math.floor(y) + 1):
                for j in (math.floor(x), math.floor(x) + 1):
                    if 0 <= i < h and 0 <= j < w:
                        out[:, row, column] += image[:, i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
    return out


@given(
    st.integers(0, 2**31),
    st.sampled_from([0.0, 0.2, 1.5]),
    st.sampled_from([0.0, 0.2]),
    st.sampled_from([0.0, 0.15, 0.5]),
    st.sampled_from([0.0, 1.0, 2.5]),
)
def test_affine_equals_a_loop_over_pixels(seed: int, rotate: float, shear: float, scale: float, shift: float) -> None:
    x, u = batch((2, 2, 6, 6), seed)
    found = augment.affine(x, u, rotate, shear, scale, shift)
    for i, image in enumerate(x.numpy()):
        wanted = naive_affine(image, u[i].numpy(), rotate, shear, scale, shift)
        assert np.allclose(found[i].numpy(), wanted, atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_middle_draw_of_an_affine_map_is_the_identity(shape: tuple[int, ...]) -> None:
    x, _ = batch(shape)
    found = augment.affine(x, torch.full((shape[0], 5), 0.5), rotate=1.0, shear=0.5, scale=0.5, shift=3.0)
    assert torch.allclose(found, x, atol=1e-5)


def test_a_quarter_turn_of_an_affine_map_is_rotate90() -> None:
    x, _ = batch((2, 3, 7, 7))
    u = torch.tensor([[1.0, 0.5, 0.5, 0.5, 0.5], [0.0, 0.5, 0.5, 0.5, 0.5]])
    found = augment.affine(x, u, rotate=math.pi / 2, shear=0.0, scale=0.0, shift=0.0)
    assert torch.allclose(found, augment.rotate90(x, torch.tensor([1, 3])), atol=1e-5)


def dot(height: int, width: int, row: int, column: int) -> Tensor:
    x = torch.zeros(1, 1, height, width)
    x[0, 0, row, column] = 1
    return x


def brightest(x: Tensor) -> tuple[int, int]:
    place = int(x[0, 0].flatten().argmax())
    return place // x.shape[3], place % x.shape[3]


@pytest.mark.parametrize(("height", "width"), [(41, 41), (21, 41), (41, 21)])
def test_an_affine_shift_is_in_pixels(height: int, width: int) -> None:
    x = dot(height, width, height // 2, width // 2)
    for draw, step in ((0.0, 3), (1.0, -3)):
        u = torch.tensor([[0.5, 0.5, 0.5, draw, 0.5]])
        moved = augment.affine(x, u, 0.0, 0.0, 0.0, shift=3.0)
        assert brightest(moved) == (height // 2, width // 2 + step)
        assert float(moved.max()) == pytest.approx(1.0, abs=1e-4)
        moved = augment.affine(x, u.roll(1, dims=1), 0.0, 0.0, 0.0, shift=3.0)
        assert brightest(moved) == (height // 2 + step, width // 2)


@pytest.mark.parametrize(("draw", "wanted"), [(1.0, 20 + 15), (0.5, 20 + 10), (0.0, 20 + 5)])
def test_an_affine_scale_is_relative_to_the_size(draw: float, wanted: int) -> None:
    u = torch.tensor([[0.5, 0.5, draw, 0.5, 0.5]])
    found = augment.affine(dot(41, 41, 20, 30), u, 0.0, 0.0, scale=0.5, shift=0.0)
    assert brightest(found) == (20, wanted)


@pytest.mark.parametrize(("height", "width"), [(21, 41), (41, 21)])
def test_a_rotation_keeps_distances_in_an_image_that_is_not_square(height: int, width: int) -> None:
    x = dot(height, width, height // 2, width // 2 + 8)
    u = torch.tensor([[1.0, 0.5, 0.5, 0.5, 0.5]])
    assert brightest(augment.affine(x, u, math.pi / 2, 0.0, 0.0, 0.0)) == (height // 2 - 8, width // 2)


def test_outside_is_black() -> None:
    u = torch.tensor([[0.5, 0.5, 0.5, 1.0, 0.5]])
    found = augment.affine(torch.ones(1, 1, 6, 6), u, 0.0, 0.0, 0.0, shift=2.0)
    assert found[0, 0].tolist() == pytest.approx(np.array([[1, 1, 1, 1, 0, 0]] * 6), abs=1e-5)


# ---------------------------------------------------------------------------------------------------
# Augmentation

EVERYTHING = Augmentation(crop=2, reflect_shift=1, flip=True, rotate=0.3, shear=0.2, scale=0.1, shift=1.5)
ONE_EACH = [
    Augmentation(crop=2),
    Augmentation(reflect_shift=2),
    Augmentation(flip=True),
    Augmentation(rotate=0.5),
    Augmentation(shear=0.5),
    Augmentation(scale=0.5),
    Augmentation(shift=2.0),
    EVERYTHING,
]


@pytest.mark.parametrize("shape", [(5, 1, 8, 8), (2, 3, 5, 9)])
def test_nothing_switched_on_is_the_image(shape: tuple[int, int, int, int]) -> None:
    images = pixels(*shape)
    found = view(Augmentation(), images)
    assert found.dtype == torch.float32
    assert torch.equal(found, images.float() / 255)


@pytest.mark.parametrize("a", ONE_EACH, ids=str)
def test_each_switch_changes_images_and_keeps_their_range_and_shape(a: Augmentation) -> None:
    images = pixels(24, 3, 6, 10)
    found = view(a, images)
    assert found.shape == images.shape
    assert float(found.min()) >= 0 and float(found.max()) <= 1 + 1e-5
    changed = (found - images.float() / 255).abs().flatten(1).amax(dim=1) > 0.01
    assert int(changed.sum()) >= 6  # a flip changes half of them


@pytest.mark.parametrize("a", ONE_EACH, ids=str)
def test_two_views_steps_and_images_are_drawn_apart(a: Augmentation) -> None:
    same = pixels(1).repeat(30, 1, 1, 1)
    first = view(a, same)
    assert len({tuple(x.flatten().tolist()) for x in first}) > 1  # per image
    assert not torch.equal(first, view(a, same, number=2))
    assert not torch.equal(first, view(a, same, step=1))
    assert torch.equal(first, view(a, same))


@pytest.mark.parametrize("a", ONE_EACH, ids=str)
def test_a_view_does_not_depend_on_the_batch(a: Augmentation) -> None:
    images = pixels(8)
    whole = view(a, images, index=torch.arange(100, 108))
    part = view(a, images[[6, 2]], index=torch.tensor([106, 102]))
    assert torch.equal(part, whole[[6, 2]])


def test_each_transform_has_draws_of_its_own() -> None:
    images = pixels(7)
    u = numbers(7, EVERYTHING.n_draws)
    assert u.shape == (7, 10)
    x = augment.affine(images.float() / 255, u[:, :5], 0.3, 0.2, 0.1, 1.5)
    x = augment.crop(x, u[:, 5:7], 2)
    x = augment.reflect_shift(x, u[:, 7:9], 1)
    assert torch.equal(view(EVERYTHING, images), augment.flip(x, u[:, 9:]))
    assert torch.equal(EVERYTHING.view(images, u), augment.flip(x, u[:, 9:]))


@pytest.mark.parametrize(
    ("a", "wanted"),
    [
        (Augmentation(), 0),
        (Augmentation(crop=2), 2),
        (Augmentation(reflect_shift=2), 2),
        (Augmentation(flip=True), 1),
        (Augmentation(rotate=0.5), 5),
        (Augmentation(shear=0.5, shift=1.0), 5),
        (Augmentation(crop=1, flip=True), 3),
        (Augmentation(scale=0.1, reflect_shift=1), 7),
        (EVERYTHING, 10),
    ],
    ids=str,
)
def test_the_number_of_draws_of_a_view(a: Augmentation, wanted: int) -> None:
    assert a.n_draws == wanted


@pytest.mark.parametrize("column", range(10))
def test_every_number_of_a_view_counts(column: int) -> None:
    images = pixels(20)
    u = numbers(20, EVERYTHING.n_draws)
    other = u.clone()
    other[:, column] = 1 - u[:, column] - 2**-24
    found, changed = EVERYTHING.view(images, u), EVERYTHING.view(images, other)
    assert int(((found - changed).abs().flatten(1).amax(dim=1) > 1e-3).sum()) >= 10


# ---------------------------------------------------------------------------------------------------
# two views


class Mirror:
    """A stand-in for a model whose features are the images it is shown."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def features(self, x: Tensor) -> Tensor:
        self.calls.append(len(x))
        return x


def both_views(
    images: Tensor, how: str = "joint", step: int = 0, model: Mirror | None = None, **switches: float
) -> tuple[Tensor, Tensor]:
    """Return the two views of the images that a step of stage 3 sees."""
    s = settings.Joint(views=how, augment=settings.Augment(**switches))
    u = numbers(len(images), 2 * augmentation(s).n_draws, step=step)
    y = torch.full((len(images),), -1)
    return two_views(s, model or Mirror(), Batch(images, y, (y >= 0).float(), None, u, y))  # type: ignore[arg-type]


SWITCHES: list[dict[str, float]] = [
    {"crop": 2},
    {"reflect_shift": 2},
    {"flip": True},
    {"rotate": 0.5},
    {"shear": 0.5},
    {"scale": 0.5},
    {"shift": 2.0},
    {"crop": 2, "reflect_shift": 1, "flip": True, "rotate": 0.3, "shear": 0.2, "scale": 0.1, "shift": 1.5},
]


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_settings_mean_the_augmentation_of_the_same_name(switches: dict[str, float]) -> None:
    assert augmentation(settings.Joint(augment=settings.Augment(**switches))) == Augmentation(**switches)  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["joint", "separate"])
@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_the_two_views_take_the_two_halves_of_the_numbers(switches: dict[str, float], how: str) -> None:
    images, model = pixels(30), Mirror()
    a = Augmentation(**switches)  # type: ignore[arg-type]
    first, second = both_views(images, how, model=model, **switches)
    u = numbers(30, 2 * a.n_draws)
    assert torch.equal(first, a.view(images, u[:, : a.n_draws]))
    assert torch.equal(second, a.view(images, u[:, a.n_draws :]))
    assert not torch.equal(first, second)
    assert model.calls == ([60] if how == "joint" else [30, 30])


@pytest.mark.parametrize("how", ["joint", "separate"])
def test_two_views_without_augmentation_are_the_image_twice(how: str) -> None:
    images = pixels(5)
    for found in both_views(images, how):
        assert torch.equal(found, images.float() / 255)


@pytest.mark.parametrize("steps", [(0, 0), (0, 1)])
@pytest.mark.parametrize(("switches", "places"), [({"crop": 1}, 9), ({"flip": True}, 2)])
def test_two_views_of_an_image_are_independent(switches: dict[str, float], places: int, steps: tuple[int, int]) -> None:
    """Every pair of places a marked pixel lands on in two views is as likely, in one step and in two."""
    marked = torch.zeros(9000, 1, 5, 5, dtype=torch.uint8)
    marked[:, :, 2, 2 if "crop" in switches else 1] = 255
    first, second = (
        both_views(marked, step=step, **switches)[number][:, 0].flatten(1).argmax(dim=1)
        for number, step in enumerate(steps)
    )
    counts = torch.bincount(25 * first + second, minlength=625)
    assert int((counts > 0).sum()) == places**2
    assert stats.chisquare(counts[counts > 0].numpy()).pvalue > 1e-4
