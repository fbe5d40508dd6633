"""Images and labels at the border: what is accepted, and what is refused with which words."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autonovel import recipe
from autonovel.data import (
    ImageSet,
    LabelledImages,
    channel_statistics,
    image_set,
    image_tensor,
    imageset,
    known_and_new,
    resize,
)
from autonovel.data.arrays import label_numbers
from autonovel.data.checks import check_problem
from autonovel.data.given_labels import GivenLabels
from autonovel.data.splits import choose_classes, first_of_each_class, hold_out
from autonovel.errors import InputError, UsageError
from autonovel.settings import Data, Recipe

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (3, 5, 6), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (3, 5, 6, 3), dtype=np.uint8)
OPAQUE = np.concatenate([COLOUR, COLOUR[..., :1]], axis=3)

Maker = Callable[..., ImageSet]


def message(error: pytest.ExceptionInfo[BaseException]) -> str:
    return str(error.value)


# ---------------------------------------------------------------------------------------------------
# images: what is accepted


@pytest.mark.parametrize(
    ("given_", "wanted"),
    [
        (GREY, GREY[:, None]),
        (GREY[:, None], GREY[:, None]),
        (GREY[..., None], GREY[:, None]),
        (COLOUR, COLOUR.transpose(0, 3, 1, 2)),
        (COLOUR.transpose(0, 3, 1, 2), COLOUR.transpose(0, 3, 1, 2)),
        (OPAQUE, OPAQUE.transpose(0, 3, 1, 2)),
        (GREY.tolist(), GREY[:, None]),
        (list(GREY), GREY[:, None]),
        (torch.from_numpy(COLOUR), COLOUR.transpose(0, 3, 1, 2)),
    ],
    ids=["n×h×w", "n×1×h×w", "n×h×w×1", "n×h×w×3", "n×3×h×w", "n×h×w×4", "lists", "list of arrays", "tensor"],
)  # fmt: skip
def test_shapes(given_: Any, wanted: np.ndarray) -> None:
    found = image_tensor(given_)
    assert found.dtype == torch.uint8
    assert found.is_contiguous()
    assert np.array_equal(found.numpy(), wanted)


def test_channels_first_wins_where_both_readings_fit() -> None:
    x = RNG.integers(0, 256, (2, 3, 7, 3), dtype=np.uint8)
    assert np.array_equal(image_tensor(x).numpy(), x)


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64, bool]
)
def test_every_number_type_keeps_black_and_white(dtype: type) -> None:
    top = 255 if np.issubdtype(dtype, np.integer) else 1
    top = min(top, 127) if dtype is np.int8 else top
    x = np.zeros((2, 3, 3), dtype=dtype)
    x[1] = top
    found = image_tensor(x)
    assert found[0].unique().tolist() == [0]
    assert found[1].unique().tolist() == [127 if dtype is np.int8 else 255]


@pytest.mark.parametrize(
    ("value", "wanted"), [(0.0, 0), (0.5, 128), (1.0, 255), (0.2, 51), (1 / 255, 1), (0.9999, 255)]
)
def test_floats_are_rounded_to_the_nearest_level(value: float, wanted: int) -> None:
    assert image_tensor(np.full((1, 2, 2), value)).unique().tolist() == [wanted]


@given(st.integers(0, 255))
def test_levels_survive_as_floats(level: int) -> None:
    for dtype in (np.float32, np.float64):
        assert int(image_tensor(np.full((1, 1, 1), level, dtype=dtype) / 255)) == level


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64])
def test_unsigned_integers_of_any_width(dtype: type) -> None:
    x = np.full((2, 3, 3), 200, dtype=dtype)
    assert image_tensor(x).unique().tolist() == [200]


@pytest.mark.parametrize(
    ("given_", "wanted"),
    [(GREY[:, :, ::-1], GREY[:, None, :, ::-1]), ((GREY / 255).astype(">f4"), GREY[:, None])],
    ids=["mirrored view", "other byte order"],
)
def test_arrays_as_numpy_hands_them_out(given_: np.ndarray, wanted: np.ndarray) -> None:
    assert np.array_equal(image_tensor(given_).numpy(), wanted)


def test_an_array_that_must_not_be_written_to() -> None:
    x = GREY.copy()
    x.flags.writeable = False
    found = image_tensor(x)
    found += 1
    assert np.array_equal(x, GREY)


# ---------------------------------------------------------------------------------------------------
# images: what is refused


@pytest.mark.parametrize("shape", [(0,), (0, 5, 5), (3, 0, 5), (3, 5, 5, 0)])
def test_empty_arrays_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError) as error:
        image_tensor(np.zeros(shape, dtype=np.uint8))
    assert "empty" in message(error) and str(shape) in message(error)
    assert "at least one image" in message(error)


@pytest.mark.parametrize("shape", [(), (5,), (5, 5), (2, 3, 4, 5, 6)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError) as error:
        image_tensor(np.zeros(shape, dtype=np.uint8))
    assert str(shape) in message(error)
    assert "n×height×width" in message(error)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("channels", [0, 3])
def test_pixels_that_are_not_finite_are_refused(bad: float, channels: int) -> None:
    x = np.zeros((4, 5, 5, channels) if channels else (4, 5, 5))
    x[2, 1, 1] = bad
    x[3, 0, 0] = bad
    with pytest.raises(InputError) as error:
        image_tensor(x)
    assert f"{2 * max(channels, 1)} pixels are NaN or infinite" in message(error)
    assert "first in image 2" in message(error)
    assert "Remove or repair" in message(error)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.01), (-0.5, 1.0), (0.0, 255.0)])
def test_floats_outside_the_unit_interval_are_refused(low: float, high: float) -> None:
    x = np.full((2, 3, 3), 0.5)
    x[0, 0, 0], x[1, 1, 1] = low, high
    with pytest.raises(InputError) as error:
        image_tensor(x)
    assert f"from {low:g} to {high:g}" in message(error)
    assert "[0, 1]" in message(error) and "Divide by the largest possible value, or pass uint8" in message(error)


@pytest.mark.parametrize(("low", "high"), [(0, 256), (-1, 5), (0, 65535)])
def test_integers_outside_a_byte_are_refused(low: int, high: int) -> None:
    x = np.full((2, 3, 3), 3, dtype=np.int64)
    x[0, 0, 0], x[1, 1, 1] = low, high
    with pytest.raises(InputError) as error:
        image_tensor(x)
    assert "0–255" in message(error) and f"from {low} to {high}" in message(error)


@pytest.mark.parametrize(
    "images",
    [None, "photos", [[[1, 2]], [[1]]], np.array([["a"]]), np.ones((2, 3, 3), dtype=complex), [None]],
    ids=["None", "a string", "images of two sizes", "text", "complex", "a list of None"],
)
def test_what_is_no_array_of_images_is_refused_in_our_words(images: Any) -> None:
    with pytest.raises(InputError):
        image_tensor(images)


# ---------------------------------------------------------------------------------------------------
# labels


@pytest.mark.parametrize(
    ("y", "numbers", "names"),
    [
        ([0, 1, -1], [0, 1, -1], ("0", "1")),
        ([7, -1, 3], [1, -1, 0], ("3", "7")),  # numbers in their order, however far apart
        ([10, 9, -1], [1, 0, -1], ("9", "10")),  # numeric, not alphabetical
        (["b", "a", ""], [1, 0, -1], ("a", "b")),
        (["cat", None, "ant"], [1, -1, 0], ("ant", "cat")),
        (np.array([2, -1, 2]), [0, -1, 0], ("2",)),
        (np.array([2.0, -1.0, 0.0]), [1, -1, 0], ("0", "2")),
        (np.array(["x", "", "y"]), [0, -1, 1], ("x", "y")),
        (np.array(["x", None, "y"], dtype=object), [0, -1, 1], ("x", "y")),
        (torch.tensor([1, -1, 0]), [1, -1, 0], ("0", "1")),
        ((np.int16(4), np.float32(-1), np.uint8(5)), [0, -1, 1], ("4", "5")),
        ([-1, None, ""], [-1, -1, -1], ()),
        (iter([0, -1, 0]), [0, -1, 0], ("0",)),
    ],
)
def test_labels(y: Any, numbers: list[int], names: tuple[str, ...]) -> None:
    found, found_names = label_numbers(y, 3)
    assert found.dtype == torch.int64
    assert found.tolist() == numbers
    assert found_names == names


@pytest.mark.parametrize(
    ("y", "row"),
    [
        ([0, -2, 1], 1),
        ([0, 1, 1.5], 2),
        ([math.nan, 0, 1], 0),
        ([math.inf, 0, 1], 0),
        ([True, 0, 1], 0),
        ([0, [1], 1], 1),
        ([0, 1, {"a": 1}], 2),
        (np.array([[0], [1], [2]]), 0),
        (np.array([True, False, True]), 0),
    ],
)
def test_labels_that_are_no_class_are_refused(y: Any, row: int) -> None:
    with pytest.raises(InputError) as error:
        label_numbers(y, 3)
    assert f"of image {row}" in message(error)
    assert "neither a class" in message(error) and "-1 for unlabelled" in message(error)


@pytest.mark.parametrize("count", [0, 2, 4])
def test_one_label_per_image(count: int) -> None:
    with pytest.raises(InputError) as error:
        label_numbers([0] * count, 3)
    assert f"3 images but {count} labels" in message(error) and "one label per image" in message(error)


def test_numbers_and_names_do_not_mix() -> None:
    with pytest.raises(InputError) as error:
        label_numbers([0, "a", -1], 3)
    assert "mix numbers and names" in message(error) and "use one or the other" in message(error)


def test_numpy_strings_are_names_as_others() -> None:
    assert label_numbers(["a", np.str_("b"), None], 3)[1] == ("a", "b")


@given(st.lists(st.integers(-1, 6), min_size=1, max_size=12))
def test_class_numbers_keep_who_is_with_whom(y: list[int]) -> None:
    found, names = label_numbers(y, len(y))
    for a, number in zip(y, found.tolist(), strict=True):
        assert (number == -1) == (a == -1)
        assert a == -1 or names[number] == str(a)
    assert sorted(set(found.tolist()) - {-1}) == list(range(len(names)))


def test_an_image_set_of_arrays() -> None:
    found = image_set(COLOUR, ["b", "", "a"])
    assert found.images.shape == (3, 3, 5, 6)
    assert found.y.tolist() == [1, -1, 0]
    assert found.class_names == ("a", "b") and found.n_known == 2
    assert found.unlabelled.tolist() == [False, True, False]
    assert found.ids == ("000000", "000001", "000002")
    assert found.truth is None and len(found) == 3
    assert image_set(COLOUR, [0, 1, -1], ids=["x", "y", "z"]).ids == ("x", "y", "z")


# ---------------------------------------------------------------------------------------------------
# splits

NAMES = ("ant", "bee", "cat", "dog")


def labelled_images(per_class: int = 10, classes: int = 4) -> LabelledImages:
    labels = torch.arange(per_class * classes) % classes
    images = torch.arange(per_class * classes, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 1, 2, 2)
    return LabelledImages(images, labels, NAMES[:classes])


def numbers(part: LabelledImages | ImageSet) -> list[int]:
    """Return which images of the source these are."""
    return [int(x[0, 0, 0]) for x in part.images]


def test_known_and_new_classes() -> None:
    found = known_and_new(labelled_images(), *choose_classes(NAMES, Data(known=("dog", "bee"))))
    assert found.class_names == ("bee", "dog")  # in the order of the source
    assert found.new_names == ("ant", "cat")
    assert found.truth is not None
    # images come as ant, bee, cat, dog: known are numbered first
    assert found.truth[:4].tolist() == [2, 0, 3, 1]
    assert found.y[:4].tolist() == [-1, 0, -1, 1]
    assert len(found) == 40 and int(found.unlabelled.sum()) == 20
    assert numbers(found) == list(range(40)) and len(set(found.ids)) == 40


@pytest.mark.parametrize(("fraction", "held"), [(0.1, 1), (0.25, 2), (0.5, 5), (0.9, 9)])
def test_a_share_of_every_class_is_held_out(fraction: float, held: int) -> None:
    train, test = hold_out(labelled_images(), fraction, seed=1)
    assert test is not None
    assert torch.bincount(test.labels).tolist() == [held] * 4
    assert torch.bincount(train.labels).tolist() == [10 - held] * 4
    assert sorted(numbers(train) + numbers(test)) == list(range(40))
    for part in (train, test):
        assert numbers(part) == sorted(numbers(part))  # in the order of the source
        assert part.labels.tolist() == [number % 4 for number in numbers(part)]  # rows stay together
        assert part.names == NAMES


def test_ids_are_places_in_the_whole_source() -> None:
    train, test = hold_out(first_of_each_class(labelled_images(), 6), 0.3, seed=1)
    assert test is not None
    for part in (train, test):
        found = known_and_new(part, ("bee",), ("cat", "dog"))
        assert [int(name) for name in found.ids] == numbers(found)
        assert found.rows(torch.tensor([2, 1])).ids == (found.ids[2], found.ids[1])


def test_images_are_found_by_the_ids_that_earlier_runs_numbered_anew() -> None:
    part, _ = hold_out(labelled_images(), 0.3, seed=1)
    found = known_and_new(part, ("bee",), ("dog",))
    former = tuple(f"{row:06d}" for row, label in enumerate(part.labels.tolist()) if label in (1, 3))
    assert former != found.ids == found.as_named_in(found.ids).ids == found.as_named_in(former[1:]).ids
    assert found.as_named_in(former).ids == former
    whole = known_and_new(labelled_images(), ("bee",), ("dog",))
    assert whole.as_named_in(former) is whole
    labels = {name: "dog" if part.labels[int(name)] == 3 else "bee" for name in former}
    named, _, _ = GivenLabels(labels).over(found, None, 1)
    assert named.ids == former and named.class_names == ("bee", "dog") and named.notes == ()
    assert [NAMES[number] for number in part.labels[[int(name) for name in former]]] == [
        named.class_names[y] for y in named.y.tolist()
    ]


def test_a_share_of_nothing_holds_nothing_out() -> None:
    train, test = hold_out(labelled_images(), 0.0, seed=1)
    assert test is None and numbers(train) == list(range(40))


def test_the_smallest_share_holds_out_one_of_each_class() -> None:
    source = labelled_images()
    _, test = hold_out(source, 0.0005, seed=1)
    assert test is not None and len(test.labels) == len(source.names)


def test_held_out_images_are_a_function_of_the_seed() -> None:
    held = [hold_out(labelled_images(), 0.3, seed)[1] for seed in (1, 1, 2)]
    assert held[0] is not None and held[1] is not None and held[2] is not None
    assert numbers(held[0]) == numbers(held[1])
    assert numbers(held[0]) != numbers(held[2])
    classes = [{number // 4 for number in numbers(held[0]) if number % 4 == c} for c in range(4)]
    assert len({frozenset(chosen) for chosen in classes}) > 1  # each class is drawn apart


def test_a_known_class_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError) as error:
        choose_classes(NAMES, Data(known=("ant", "wolf")))
    assert "wolf" in message(error) and "ant, bee, cat, dog" in message(error)
    assert "data.known" in message(error)


def test_knowing_every_class_is_refused() -> None:
    with pytest.raises(UsageError) as error:
        choose_classes(NAMES, Data(known=NAMES))
    assert "every class" in message(error) and "Leave some out" in message(error)


@pytest.mark.parametrize(
    ("data", "known", "new"),
    [
        (Data(first_known=2), ("ant", "bee"), ("cat", "dog")),
        (Data(first_known=2, first_new=1), ("ant", "bee"), ("cat",)),
        (Data(known=("dog",), first_new=2), ("dog",), ("ant", "bee")),
        (Data(known=("cat", "ant"), new=("dog",)), ("ant", "cat"), ("dog",)),
        (Data(new=("cat", "ant")), ("bee", "dog"), ("ant", "cat")),  # of known ones nothing is said: all others
    ],
)
def test_classes_are_chosen(data: Data, known: tuple[str, ...], new: tuple[str, ...]) -> None:
    assert choose_classes(NAMES, data) == (known, new)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (Data(known=("ant",), new=("wolf",)), ["data.new", "wolf", "ant, bee, cat, dog"]),
        (Data(known=("ant", "bee"), new=("bee", "cat")), ["data.new", "bee", "one or the other"]),
        (Data(first_known=2, new=("bee",)), ["data.new", "bee", "data.first_known=0"]),
        (Data(first_known=3, first_new=2), ["data.first_new is 2", "only 1"]),
    ],
)
def test_impossible_choices_of_classes_are_refused(data: Data, words: list[str]) -> None:
    with pytest.raises(UsageError) as error:
        choose_classes(NAMES, data)
    assert all(word in message(error) for word in words)


def test_images_of_classes_neither_known_nor_new_are_left_out() -> None:
    found = known_and_new(labelled_images(), ("dog",), ("bee",))
    assert numbers(found) == [number for number in range(40) if number % 4 in (1, 3)]
    assert found.ids[:3] == ("000001", "000003", "000005")  # their places in the source
    assert found.truth is not None and found.truth[:2].tolist() == [1, 0]
    assert found.y[:2].tolist() == [-1, 0] and found.new_names == ("bee",)


@pytest.mark.parametrize(("count", "wanted"), [(0, 40), (1, 4), (3, 12), (50, 40)])
def test_the_first_images_of_each_class(count: int, wanted: int) -> None:
    found = first_of_each_class(labelled_images(), count)
    assert len(found.labels) == wanted
    assert [int(x[0, 0, 0]) for x in found.images] == list(range(wanted))  # the classes take turns in the source
    assert found.labels.tolist() == [number % 4 for number in range(wanted)]


# ---------------------------------------------------------------------------------------------------
# size and statistics


def naive_resize(image: np.ndarray, side: int) -> np.ndarray:
    """Weigh pixels by a triangle as wide as the step between new pixels, one axis after the other."""
    for axis in (0, 1):
        n = image.shape[axis]
        step = n / side
        support = max(step, 1.0)
        rows = []
        for new in range(side):
            centre = (new + 0.5) * step
            weights = np.array([max(0.0, 1 - abs(old + 0.5 - centre) / support) for old in range(n)])
            rows.append(np.tensordot(weights / weights.sum(), image, axes=(0, axis)))
        image = np.stack(rows, axis=axis)
    return image


@pytest.mark.parametrize(("height", "width", "side"), [(28, 28, 14), (8, 8, 5), (6, 9, 4), (5, 5, 8), (4, 3, 7)])
def test_resize_equals_a_loop(height: int, width: int, side: int) -> None:
    images = torch.randint(0, 256, (3, 2, height, width), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    found = resize(images, side)
    assert found.shape == (3, 2, side, side) and found.dtype == torch.uint8
    for i in range(3):
        for channel in range(2):
            square, (top, left) = min(height, width), ((height - width) // 2, (width - height) // 2)
            seen = images[i, channel, max(top, 0) :, max(left, 0) :][:square, :square]  # what files are cut to
            wanted = naive_resize(seen.double().numpy(), side)
            assert np.abs(found[i, channel].numpy() - wanted).max() <= 0.51  # rounded to a level


def test_resize_in_chunks_is_resize_of_each() -> None:
    images = torch.randint(0, 256, (1030, 1, 4, 4), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    found = resize(images, 3)
    assert len(found) == 1030
    assert torch.equal(found[1020:], resize(images[1020:], 3))


@pytest.mark.parametrize("level", [0, 7, 255])
def test_resize_keeps_flat_images_flat(level: int) -> None:
    images = torch.full((2, 1, 9, 7), level, dtype=torch.uint8)
    assert resize(images, 5).unique().tolist() == [level]


@pytest.mark.parametrize("side", [0, 8])
def test_images_of_the_right_size_are_left_alone(side: int, make_images: Maker) -> None:
    images = make_images()
    assert torch.equal(images.resized(side).images, images.images)


def test_a_resized_set_keeps_the_rest(make_images: Maker) -> None:
    images = make_images(height=9, width=6)
    found = images.resized(4)
    assert found.images.shape == (24, 1, 4, 4)
    assert found.ids == images.ids and torch.equal(found.y, images.y) and found.class_names == images.class_names


@pytest.mark.parametrize("rows", [None, [5, 0, 3, 6, 2]])
@pytest.mark.parametrize("channels", [1, 3])
def test_channel_statistics_equal_numpy(channels: int, rows: list[int] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imageset, "AT_ONCE", 3)  # several chunks, the last one smaller
    images = torch.randint(0, 256, (7, channels, 5, 6), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    images[:, 0] //= 3
    mean, std = channel_statistics(images, None if rows is None else torch.tensor(rows))
    x = images.numpy()[slice(None) if rows is None else rows] / 255
    assert mean.shape == std.shape == (channels,)
    assert np.allclose(mean.numpy(), x.mean(axis=(0, 2, 3)), atol=1e-6)
    assert np.allclose(std.numpy(), x.std(axis=(0, 2, 3)), atol=1e-6)


def test_a_constant_channel_can_still_be_divided_by() -> None:
    mean, std = channel_statistics(torch.full((3, 1, 4, 4), 51, dtype=torch.uint8))
    assert mean.tolist() == pytest.approx([0.2])
    assert std.tolist() == pytest.approx([0.001])


# ---------------------------------------------------------------------------------------------------
# the problem as a whole

SMALL: dict[str, Any] = {
    "network.name": "small",
    "pretrain.batch_size": 8,
    "supervised.batch_size": 8,
    "joint.batch_size": 8,
    "supervised.frozen": ["stem"],
    "joint.frozen": ["stem"],
}


@pytest.fixture(scope="module")
def recipe_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a recipe that sets nothing: the defaults."""
    path = tmp_path_factory.mktemp("recipe") / "plain.toml"
    path.write_text("")
    return str(path)


@pytest.fixture
def settings(recipe_file: str) -> Callable[[dict[str, Any]], Recipe]:
    return lambda values: recipe.load(recipe_file, SMALL | values).recipe


Settings = Callable[[dict[str, Any]], Recipe]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"joint.batch": "merged", "joint.batch_size": 24},
        {"joint.labelled_per_batch": 7, "joint.batch_size": 19},
        {"supervised.epochs": 0, "supervised.batch_size": 1000},
        {"pretrain.kind": "none", "pretrain.batch_size": 1000},
        {"joint.k": 64},
        {"joint.k": 65, "joint.bce": False},
        {"joint.augment.reflect_shift": 7},
        {"joint.augment.crop": 20},
        {"network.side": 8},
        {
            "run.systems": ["dtc"],
            "dtc.batch_size": 8,
            "linear.batch_size": 8,
            "dtc.first_view": "plain",
            "dtc.augment.side": 4,
            "network.side": 4,
        },
        {"run.systems": ["dtc"], "dtc.batch_size": 8, "linear.batch_size": 8, "dtc.augment.side": 4},
        {"dtc.first_view": "plain", "dtc.augment.side": 4},
    ],
    ids=str,
)
def test_a_sound_problem_passes(values: dict[str, Any], make_images: Maker, settings: Settings) -> None:
    check_problem(make_images(), 2, settings(values))


@pytest.mark.parametrize(
    ("images", "n_new", "values", "kind", "words"),
    [
        ({"labelled": 0, "unlabelled": 0}, 2, {}, InputError, ["no images", "at least two known classes"]),
        ({"labelled": 0}, 2, {}, InputError, ["0 known classes", "at least two are needed", "Label images"]),
        ({"n_known": 1}, 2, {}, InputError, ["1 known class ", "at least two are needed", "at least two classes"]),
        ({"unlabelled": 0}, 2, {}, InputError, ["no image is unlabelled", "nothing to discover", "label -1"]),
        ({}, 1, {}, InputError, ["new classes is 1", "at least 2"]),
        ({}, 0, {}, InputError, ["new classes is not known", "the 2 of the true classes are for scoring",
                                      "--new-classes auto"]),
        ({}, -3, {}, InputError, ["new classes is -3", "at least 2"]),
        ({}, 13, {}, InputError, ["13 new classes", "only 12 unlabelled images", "Ask for fewer"]),
        ({}, 2, {"pretrain.batch_size": 25}, InputError,
         ["pretrain.batch_size", "25", "only 24 images", "more images", "--set pretrain.batch_size="]),
        ({}, 2, {"supervised.batch_size": 13}, InputError,
         ["supervised.batch_size", "13", "only 12 labelled images", "--set supervised.batch_size="]),
        ({}, 2, {"joint.batch": "merged", "joint.batch_size": 25}, InputError,
         ["joint.batch_size", "25", "only 24 images", "--set joint.batch_size="]),
        ({"labelled": 9}, 2, {"joint.batch_size": 20}, InputError,
         ["labelled part of joint.batch_size", "10", "only 9 labelled images", "--set joint.batch_size="]),
        ({"unlabelled": 9}, 2, {"joint.batch_size": 20}, InputError,
         ["unlabelled part of joint.batch_size", "10", "only 9 unlabelled images", "--set joint.batch_size="]),
        ({}, 2, {"joint.batch_size": 8, "joint.labelled_per_batch": 8}, UsageError,
         ["joint.labelled_per_batch is 8", "joint.batch_size 8", "labelled and unlabelled images both"]),
        ({}, 2, {"joint.batch_size": 1}, UsageError, ["joint.batch_size 1", "labelled and unlabelled images both"]),
        ({}, 2, {"joint.k": 65}, UsageError, ["joint.k is 65", "small has only 64 features", "smaller k"]),
        ({}, 2, {"joint.k": 513, "network.name": "resnet18"}, UsageError, ["513", "resnet18 has only 512 features"]),
        ({"height": 8, "width": 6}, 2, {}, InputError, ["6×8 pixels", "90°", "--set data.size=6"]),
        ({}, 2, {"joint.frozen": ["block7"]}, UsageError, ["block7", "stem, block1, block2, block3"]),
        ({}, 2, {"pretrain.frozen": ["layer1"]}, UsageError, ["layer1", "stem, block1, block2, block3"]),
        ({}, 2, {"joint.augment.reflect_shift": 8}, UsageError, ["reflect_shift is 8", "8 pixels", "smaller shift"]),
        ({}, 2, {"supervised.augment.reflect_shift": 5, "data.size": 5}, UsageError, ["reflect_shift is 5", "5 pix"]),
        ({}, 2, {"network.side": 9}, UsageError, ["network.side is 9", "8 pixels", "only shrinks", "network.side=0"]),
        ({}, 2, {"network.name": "vgg"}, UsageError, ["data.size leaves", "8×8 pixels", "too few for network vgg"]),
        ({"height": 32, "width": 32}, 2, {"network.name": "vgg", "network.side": 9}, UsageError,
         ["network.side leaves", "9×9 pixels", "--set network.side="]),
        ({"height": 32, "width": 32}, 2, {"network.name": "vgg", "network.side": 20, "network.crop": 10}, UsageError,
         ["network.crop leaves", "10×10 pixels", "--set network.crop="]),
        ({}, 2, {"run.systems": ["dtc"], "dtc.batch_size": 8, "linear.batch_size": 8, "dtc.first_view": "plain",
                 "dtc.augment.side": 4}, UsageError,
         ["dtc.augment.side is 4", "8×8 pixels", "dtc.augment.side=8", "dtc.first_view=random"]),
    ],
    ids=lambda value: str(value) if isinstance(value, dict | int) else "",
)  # fmt: skip
def test_a_hopeless_problem_is_refused_before_any_training(
    images: dict[str, Any],
    n_new: int,
    values: dict[str, Any],
    kind: type[Exception],
    words: list[str],
    make_images: Maker,
    settings: Settings,
) -> None:
    with pytest.raises(kind) as error:
        check_problem(make_images(**images), n_new, settings(values))
    for word in words:
        assert word in message(error)


@pytest.mark.parametrize("values", [{"pretrain.kind": "none"}, {"data.size": 5}])
def test_images_that_are_not_square_pass_where_nothing_turns_them(
    values: dict[str, Any], make_images: Maker, settings: Settings
) -> None:
    check_problem(make_images(height=8, width=6), 2, settings(values))


def test_as_many_new_classes_as_unlabelled_images_pass(make_images: Maker, settings: Settings) -> None:
    check_problem(make_images(), 12, settings({}))


def test_all_refusals_end_a_command_with_code_2(make_images: Maker, settings: Settings) -> None:
    with pytest.raises(UsageError) as error:
        check_problem(make_images(unlabelled=0), 2, settings({}))
    assert error.value.exit_code == 2
