"""Which images make up each batch."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from autonovel.data import Fixed, ImageSet, Merged, Resident
from autonovel.data.samplers import Sampler, Stream


def merged(n: int = 10, batch_size: int = 4, seed: int = 0, rank: int = 0, world: int = 1) -> Merged:
    return Merged(torch.arange(100, 100 + n), batch_size, seed, 3, rank, world)


def fixed(
    labelled: int = 7, unlabelled: int = 11, a: int = 2, b: int = 3, seed: int = 0, rank: int = 0, world: int = 1
) -> Fixed:
    members = torch.arange(labelled), torch.arange(100, 100 + unlabelled)
    return Fixed(*members, a, b, seed, 3, rank, world)


def laps(numbers: Tensor, n: int) -> list[list[int]]:
    """Return the passes over ``n`` members in a row of image numbers, the last perhaps not whole."""
    return [part.tolist() for part in numbers.split(n)]


def epochs(sampler: Sampler, count: int) -> Tensor:
    return torch.cat([sampler.epoch(number) for number in range(count)])


# ---------------------------------------------------------------------------------------------------
# streams


@given(st.integers(1, 9), st.integers(0, 40), st.integers(1, 30))
def test_a_stream_may_be_cut_anywhere(n: int, start: int, count: int) -> None:
    stream = Stream(torch.arange(n) * 10, 5, 2)
    assert stream.take(start, count).tolist() == stream.take(0, start + count)[start:].tolist()


# ---------------------------------------------------------------------------------------------------
# merged


@given(st.integers(1, 30), st.integers(1, 12), st.integers(0, 2**40))
def test_merged_takes_every_image_once_per_pass(n: int, batch_size: int, seed: int) -> None:
    sampler = merged(n, batch_size, seed)
    row = epochs(sampler, 4).flatten()
    for lap in laps(row, n)[: len(row) // n]:
        assert sorted(lap) == list(range(100, 100 + n))
    rest = laps(row, n)[-1]
    assert len(set(rest)) == len(rest)


@pytest.mark.parametrize(("n", "batch_size", "steps"), [(10, 4, 3), (12, 4, 3), (3, 8, 1), (391, 1, 391)])
def test_merged_batches_have_one_shape(n: int, batch_size: int, steps: int) -> None:
    sampler = merged(n, batch_size)
    assert sampler.steps_per_epoch == steps
    assert all(sampler.epoch(number).shape == (steps, batch_size) for number in range(3))


def test_merged_fills_the_last_batch_from_the_next_shuffle() -> None:
    sampler = merged(10, 4)
    first, second = sampler.epoch(0).flatten().tolist(), sampler.epoch(1).flatten().tolist()
    assert sorted(first[:10]) == list(range(100, 110))
    assert sorted(first[10:] + second[:8]) == list(range(100, 110))  # the remainder is carried over


def test_an_epoch_that_divides_evenly_is_one_pass_in_an_order_of_its_own() -> None:
    passes = [merged(12, 4).epoch(number).flatten().tolist() for number in range(5)]
    assert all(sorted(one) == list(range(100, 112)) for one in passes)
    assert len({tuple(one) for one in passes}) == 5


def test_both_parts_of_a_fixed_batch_are_shuffled_anew_in_each_pass() -> None:
    sampler = fixed(12, 12, 4, 4)
    for part in (slice(0, 4), slice(4, 8)):
        assert len({tuple(sampler.epoch(number)[:, part].flatten().tolist()) for number in range(5)}) == 5


# ---------------------------------------------------------------------------------------------------
# fixed


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 5), st.integers(1, 5))
def test_fixed_keeps_its_make_up_and_takes_every_image_once_per_pass(
    labelled: int, unlabelled: int, a: int, b: int
) -> None:
    sampler = fixed(labelled, unlabelled, a, b)
    rows = epochs(sampler, 5)
    assert rows.shape == (5 * sampler.steps_per_epoch, a + b)
    for part, n, low in ((rows[:, :a], labelled, 0), (rows[:, a:], unlabelled, 100)):
        row = part.flatten()
        for lap in laps(row, n)[: len(row) // n]:
            assert sorted(lap) == list(range(low, low + n))


@pytest.mark.parametrize(
    ("labelled", "unlabelled", "a", "b", "steps"), [(7, 11, 2, 3, 4), (10, 10, 2, 2, 5), (100, 1, 1, 1, 51)]
)
def test_a_fixed_epoch_sees_as_many_images_as_there_are(
    labelled: int, unlabelled: int, a: int, b: int, steps: int
) -> None:
    assert fixed(labelled, unlabelled, a, b).steps_per_epoch == steps


def test_fixed_takes_images_equally_often_over_many_epochs() -> None:
    rows = epochs(fixed(), 20)
    for part in (rows[:, :2], rows[:, 2:]):
        counts = Counter(part.flatten().tolist()).values()
        assert max(counts) - min(counts) <= 1


def test_fixed_shuffles_its_two_streams_apart() -> None:
    rows = epochs(fixed(10, 10, 5, 5), 2)
    assert [n % 100 for n in rows[:, :5].flatten().tolist()] != [n % 100 for n in rows[:, 5:].flatten().tolist()]


# ---------------------------------------------------------------------------------------------------
# both

MAKERS: list[Callable[..., Sampler]] = [merged, fixed]


@pytest.mark.parametrize("make", MAKERS)
def test_an_epoch_is_a_function_of_seed_and_number(make: Callable[..., Sampler]) -> None:
    sampler = make(seed=3)
    last = sampler.epoch(7)
    torch.manual_seed(0)
    sampler.epoch(2)
    assert torch.equal(make(seed=3).epoch(7), last)  # also when no epoch went before
    assert not torch.equal(make(seed=4).epoch(7), last)


@pytest.mark.parametrize("make", MAKERS)
def test_epochs_differ(make: Callable[..., Sampler]) -> None:
    sampler = make()
    drawn = [sampler.epoch(number) for number in range(6)]
    assert all(not torch.equal(a, b) for a, b in pairwise(drawn))


def test_stages_are_shuffled_apart() -> None:
    members = torch.arange(50)
    first, second = (Merged(members, 50, 0, purpose).epoch(0) for purpose in (1, 2))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("world", [1, 2, 3])
def test_shares_of_all_ranks_make_up_the_global_batch(make: Callable[..., Sampler], world: int) -> None:
    whole = make().epoch(2)
    shares = [make(rank=rank, world=world).epoch(2) for rank in range(world)]
    for step, batch in enumerate(whole):
        together = [number for share in shares for number in share[step].tolist()]
        assert sorted(together) == sorted(batch.tolist())
    assert all(make(rank=rank, world=world).steps_per_epoch == len(whole) for rank in range(world))


def test_ranks_share_labelled_and_unlabelled_images_evenly() -> None:
    for rank in range(2):
        share = fixed(20, 20, 4, 6, rank=rank, world=2).epoch(0)
        assert share.shape[1] == 5
        assert (share < 100).sum(dim=1).tolist() == [2] * len(share)


# ---------------------------------------------------------------------------------------------------
# resident loader


def test_a_batch_holds_the_images_asked_for(make_images: Callable[..., ImageSet]) -> None:
    images = make_images(labelled=5, unlabelled=4, channels=3, height=4, width=6)
    index, u = torch.tensor([8, 0, 5, 1, 0]), torch.rand(5, 3)
    batch = Resident(images, torch.device("cpu")).batch(index, u)
    for row, number in enumerate(index.tolist()):
        assert torch.equal(batch.images[row], images.images[number])
    assert batch.images.dtype == torch.uint8
    assert batch.y.tolist() == [-1, 0, -1, 1, 0]
    assert batch.labelled.tolist() == [0.0, 1.0, 0.0, 1.0, 1.0]
    assert batch.truth is not None and images.truth is not None
    assert batch.truth.tolist() == images.truth[index].tolist()
    assert torch.equal(batch.u, u)


def test_a_batch_without_truth(make_images: Callable[..., ImageSet]) -> None:
    resident = Resident(make_images(truth=False), torch.device("cpu"))
    assert resident.batch(torch.tensor([1]), torch.zeros(1, 0)).truth is None


@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 6))
def test_an_epoch_may_pass_over_the_labelled_images_alone(labelled: int, a: int, b: int) -> None:
    sampler = Fixed(torch.arange(labelled), torch.arange(100, 103), a, b, 0, 3, epoch_of="labelled")
    assert sampler.steps_per_epoch == max(labelled // a, 1)  # what is left of a pass begins the next epoch
    rows = epochs(sampler, 3)
    assert rows.shape == (3 * sampler.steps_per_epoch, a + b)
    assert (rows[:, :a] < 100).all() and (rows[:, a:] >= 100).all()
    if labelled % a == 0:
        assert sampler.epoch(1)[:, :a].flatten().sort().values.tolist() == list(range(labelled))
