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


def uniform(images: list[int] | range, step: int = 3, view: int = 1, count: int = 4, key: int = KEY) -> torch.Tensor:
    return draws.uniform(key, torch.tensor(step), torch.tensor(list(images)), view, count)


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


@pytest.mark.parametrize("what", ["image", "step", "view", "number"])
def test_neighbouring_draws_are_independent(what: str) -> None:
    """Two draws that differ in one thing fill the unit square evenly."""
    n = 10_000
    if what == "image":
        both = uniform(range(n), count=1)[:-1, 0], uniform(range(n), count=1)[1:, 0]
    elif what == "step":
        both = uniform(range(n), step=5)[:, 0], uniform(range(n), step=6)[:, 0]
    elif what == "view":
        both = uniform(range(n), view=1)[:, 0], uniform(range(n), view=2)[:, 0]
    else:
        both = uniform(range(n))[:, 0], uniform(range(n))[:, 1]
    a, b = (x.numpy() for x in both)
    counts = np.histogram2d(a, b, bins=8, range=((0, 1), (0, 1)))[0]
    assert stats.chisquare(counts.ravel()).pvalue > 1e-4
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.05


def test_one_image_draws_uniformly_over_the_steps() -> None:
    values = np.array([float(uniform([7], step=step, count=1)) for step in range(4000)])
    assert chi_square_p(values, 10) > 1e-4


# ---------------------------------------------------------------------------------------------------
# what a draw depends on


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=20), st.integers(0, 10**6), st.integers(0, 3))
def test_a_draw_does_not_depend_on_its_batch(images: list[int], step: int, view: int) -> None:
    together = uniform(images, step, view)
    for row, image in enumerate(images):
        assert torch.equal(uniform([image], step, view)[0], together[row])


def test_a_draw_does_not_depend_on_the_order_of_its_batch() -> None:
    order = torch.randperm(50, generator=torch.Generator().manual_seed(0))
    assert torch.equal(uniform(order.tolist()), uniform(range(50))[order])


def test_a_draw_does_not_depend_on_how_many_are_drawn() -> None:
    assert torch.equal(uniform(range(9), count=7)[:, :3], uniform(range(9), count=3))


def test_no_draws_at_all_are_an_empty_block() -> None:
    assert uniform(range(9), count=0).shape == (9, 0)


def test_every_part_of_the_purpose_changes_the_draws() -> None:
    seen = [
        uniform([image], step, view, key=draws.stream(seed, 101))[0]
        for image, step, view, seed in itertools.product((0, 1, 5000), (0, 1, 90_000), (0, 1, 2), (0, 1))
    ]
    for a, b in itertools.combinations(seen, 2):
        assert (a != b).all()


def test_image_numbers_of_any_integer_type_are_one_number() -> None:
    images = torch.tensor([3, 1, 2], dtype=torch.int32)
    assert torch.equal(draws.uniform(KEY, torch.tensor(0), images, 1, 2), uniform([3, 1, 2], step=0, count=2))


def lowbias32(x: int) -> int:
    """Return Wellons' hash of a 32-bit number, in plain integers."""
    x ^= x >> 16
    x = x * 0x7FEB352D % 2**32
    x ^= x >> 15
    x = x * 0x846CA68B % 2**32
    return x ^ (x >> 16)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**40), st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_draws_equal_plain_integer_arithmetic(key: int, step: int, image: int, view: int) -> None:
    golden = 0x9E3779B9
    base = lowbias32((lowbias32(step % 2**32 ^ key) + view * golden) % 2**32)
    row = lowbias32(image ^ base)
    wanted = [(lowbias32((row + number * golden) % 2**32) >> 8) / 2**24 for number in (1, 2, 3)]
    assert uniform([image], step, view, 3, key)[0].tolist() == wanted


def test_draws_are_pinned() -> None:
    """Other numbers here would make every recorded run another run."""
    assert draws.stream(0) == 2926543089
    assert draws.stream(0, 101) == 169004793
    assert draws.stream(2**40 + 17, 3, 4) == 82561113
    assert uniform([0, 1], count=2).tolist() == [
        [0.03384321928024292, 0.0818718671798706],
        [0.6933338642120361, 0.6458168029785156],
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
