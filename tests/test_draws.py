"""Random numbers depend on what they are for, and on nothing else."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from autonovel import draws

KEY = draws.stream(0, 101)


def uniform(images: list[int] | range, step: int = 3, count: int = 4, key: int = KEY) -> torch.Tensor:
    """Return the draws of one step."""
    return draws.uniform(key, torch.tensor([step]), torch.tensor([list(images)]), count)[0]


def over_steps(steps: int, image: int = 7, count: int = 4) -> torch.Tensor:
    """Return the draws of one image in each of many steps."""
    return draws.uniform(KEY, torch.arange(steps), torch.full((steps, 1), image), count)[:, 0]


def chi_square_p(values: np.ndarray, bins: int) -> float:
    counts = np.histogram(values, bins=bins, range=(0, 1))[0]
    return float(stats.chisquare(counts).pvalue)


# ---------------------------------------------------------------------------------------------------
# distribution


@pytest.mark.parametrize("bins", [2, 9, 100])
def test_draws_are_uniform(bins: int) -> None:
    values = uniform(range(20_000), count=5).numpy()
    for column in range(5):
        assert chi_square_p(values[:, column], bins) > 1e-4


@pytest.mark.parametrize("low_bits", [8, 16, 20])
def test_the_low_bits_are_uniform_too(low_bits: int) -> None:
    values = uniform(range(20_000), count=1).double().numpy()[:, 0]
    assert chi_square_p((values * 2 ** (24 - low_bits)) % 1, 16) > 1e-4


def test_draws_lie_in_the_half_open_interval() -> None:
    values = uniform(range(200_000), count=5)
    assert values.dtype == torch.float32
    assert float(values.min()) >= 0 and float(values.max()) < 1
    assert float(values.min()) < 1e-5 and float(values.max()) > 1 - 1e-5


@pytest.mark.parametrize(
    "what", ["image", "step", "step of one image", "number", "number of a second view", "number of one image"]
)
def test_neighbouring_draws_are_independent(what: str) -> None:
    """Two draws that differ in one thing fill the unit square evenly."""
    n = 10_000
    if what == "image":
        both = uniform(range(n), count=1)[:-1, 0], uniform(range(n), count=1)[1:, 0]
    elif what == "step":
        both = uniform(range(n), step=5)[:, 0], uniform(range(n), step=6)[:, 0]
    elif what == "step of one image":
        both = over_steps(n)[:-1, 0], over_steps(n)[1:, 0]
    elif what == "number":
        both = uniform(range(n))[:, 0], uniform(range(n))[:, 1]
    elif what == "number of a second view":
        both = uniform(range(n), count=6)[:, 0], uniform(range(n), count=6)[:, 3]
    else:
        both = over_steps(n)[:, 0], over_steps(n)[:, 1]
    a, b = (x.numpy() for x in both)
    counts = np.histogram2d(a, b, bins=8, range=((0, 1), (0, 1)))[0]
    assert stats.chisquare(counts.ravel()).pvalue > 1e-4
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.05


def test_one_image_draws_uniformly_over_the_steps() -> None:
    values = over_steps(4000).numpy()
    for column in range(4):
        assert chi_square_p(values[:, column], 10) > 1e-4


def test_one_image_draws_uniformly_over_the_numbers() -> None:
    assert chi_square_p(uniform([7], count=4000)[0].numpy(), 10) > 1e-4


# ---------------------------------------------------------------------------------------------------
# what a draw depends on


@pytest.mark.parametrize(("steps", "images", "count"), [(3, 5, 2), (1, 1, 1), (2, 7, 0), (0, 4, 3), (4, 0, 3)])
def test_draws_come_by_step_image_and_number(steps: int, images: int, count: int) -> None:
    found = draws.uniform(KEY, torch.arange(steps), torch.arange(steps * images).view(steps, images), count)
    assert found.shape == (steps, images, count)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=20), st.integers(0, 10**6))
def test_a_draw_does_not_depend_on_its_batch(images: list[int], step: int) -> None:
    together = uniform(images, step)
    for row, image in enumerate(images):
        assert torch.equal(uniform([image], step)[0], together[row])


@given(st.lists(st.tuples(st.integers(0, 2**40), st.lists(st.integers(0, 10**6), min_size=3, max_size=3)), min_size=1))
def test_a_draw_does_not_depend_on_the_steps_beside_it(rows: list[tuple[int, list[int]]]) -> None:
    together = draws.uniform(KEY, torch.tensor([step for step, _ in rows]), torch.tensor([i for _, i in rows]), 4)
    for row, (step, images) in enumerate(rows):
        assert torch.equal(uniform(images, step), together[row])


def test_a_draw_does_not_depend_on_the_order_of_its_batch() -> None:
    order = torch.randperm(50, generator=torch.Generator().manual_seed(0))
    assert torch.equal(uniform(order.tolist()), uniform(range(50))[order])


def test_a_draw_does_not_depend_on_how_many_are_drawn() -> None:
    assert torch.equal(uniform(range(9), count=7)[:, :3], uniform(range(9), count=3))


def test_no_draws_at_all_are_an_empty_block() -> None:
    assert uniform(range(9), count=0).shape == (9, 0)


def test_every_part_of_the_purpose_changes_the_draws() -> None:
    seen = [
        uniform([image], step, key=draws.stream(seed, stage))[0]
        for image, step, seed, stage in itertools.product((0, 1, 5000), (0, 1, 90_000), (0, 1), (101, 102, 103))
    ]
    for a, b in itertools.combinations(seen, 2):
        assert (a != b).all()
    for row in seen:
        assert len(row.unique()) == 4  # the number counts too


def test_image_numbers_of_any_integer_type_are_one_number() -> None:
    images = torch.tensor([[3, 1, 2]], dtype=torch.int32)
    assert torch.equal(draws.uniform(KEY, torch.tensor([0]), images, 2)[0], uniform([3, 1, 2], step=0, count=2))


def lowbias32(x: int) -> int:
    """Return Wellons' hash of a 32-bit number, in plain integers."""
    x ^= x >> 16
    x = x * 0x7FEB352D % 2**32
    x ^= x >> 15
    x = x * 0x846CA68B % 2**32
    return x ^ (x >> 16)


GOLDEN = 0x9E3779B9


def plain_uniform(key: int, step: int, image: int, count: int) -> list[float]:
    row = lowbias32(image ^ lowbias32(lowbias32(step % 2**32 ^ key)))
    return [(lowbias32((row + number * GOLDEN) % 2**32) >> 8) / 2**24 for number in range(1, count + 1)]


def plain_stream(seed: int, *parts: int) -> int:
    key = seed % 2**32
    for part in (seed >> 32, *parts):
        key = lowbias32(key ^ lowbias32((part + GOLDEN) % 2**32))
    return key


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**40), st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_draws_equal_plain_integer_arithmetic(key: int, step: int, image: int, count: int) -> None:
    assert uniform([image], step, count, key)[0].tolist() == plain_uniform(key, step, image, count)


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**31), max_size=3))
def test_streams_equal_plain_integer_arithmetic(seed: int, parts: list[int]) -> None:
    assert draws.stream(seed, *parts) == plain_stream(seed, *parts)


def test_draws_are_pinned() -> None:
    """Other numbers here would make every recorded run another run."""
    assert draws.stream(0) == 2926543089
    assert draws.stream(0, 101) == 169004793
    assert draws.stream(2**40 + 17, 3, 4) == 82561113
    assert draws.uniform(KEY, torch.tensor([3, 4]), torch.tensor([[0, 1], [0, 1]]), 2).tolist() == [
        [[0.6674862504005432, 0.21064555644989014], [0.3333284258842468, 0.5170549154281616]],
        [[0.8577426075935364, 0.8675439357757568], [0.015209555625915527, 0.6432000994682312]],
    ]


# ---------------------------------------------------------------------------------------------------
# streams


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 1000), max_size=3))
def test_a_stream_is_a_32_bit_number(seed: int, parts: list[int]) -> None:
    key = draws.stream(seed, *parts)
    assert 0 <= key < 2**32
    assert key == draws.stream(seed, *parts)


def test_streams_of_different_purposes_differ() -> None:
    purposes = [
        (seed, *parts) for seed in range(20) for n in range(3) for parts in itertools.product(range(9), repeat=n)
    ]
    keys = {draws.stream(*purpose) for purpose in purposes}
    assert len(keys) >= len(purposes) - 1  # by chance two of 1,820 numbers of 32 bits may be one


@pytest.mark.parametrize("bit", [0, 1, 31, 32, 33, 47, 62, 63])
def test_all_64_bits_of_a_seed_count(bit: int) -> None:
    for seed in (0, 12345, 2**40 + 17):
        assert draws.stream(seed, 7) != draws.stream(seed ^ (1 << bit), 7)


def test_the_order_of_the_parts_counts() -> None:
    assert draws.stream(0, 1, 2) != draws.stream(0, 2, 1)
    assert draws.stream(1, 2) != draws.stream(2, 1)


def test_streams_spread_over_all_numbers() -> None:
    keys = np.array([draws.stream(seed, 3) for seed in range(3000)]) / 2**32
    assert chi_square_p(keys, 10) > 1e-4


# ---------------------------------------------------------------------------------------------------
# generators


def test_a_generator_repeats_itself_whatever_was_drawn_elsewhere() -> None:
    first = torch.randperm(30, generator=draws.generator(5, 2, 1))
    torch.manual_seed(99)
    torch.rand(10)
    assert torch.equal(torch.randperm(30, generator=draws.generator(5, 2, 1)), first)


@pytest.mark.parametrize("other", [(6, 2, 1), (5, 3, 1), (5, 2, 2), (5, 2)])
def test_generators_of_other_purposes_differ(other: tuple[int, ...]) -> None:
    first = torch.randperm(30, generator=draws.generator(5, 2, 1))
    assert not torch.equal(torch.randperm(30, generator=draws.generator(*other)), first)
