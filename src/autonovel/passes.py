"""Images through a network in eval mode, in passes small enough for the cache of a core.

On a CPU each core takes a batch of its own, instead of all cores one batch: these would wait for each other in every
layer, on a busy machine for most of the time.  So answers do not depend on the number of cores.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

SMALLEST, LARGEST = 8, 512  # images of a batch
PIXELS_AT_ONCE = 200_000  # of a batch on a CPU: larger ones leave its cache, and take up to twice the time
GPU_FACTOR = 64

T = TypeVar("T")
R = TypeVar("R")


def batch_size(side: int, device: torch.device) -> int:
    """Return how many images of ``side`` pixels a side go through a network at once."""
    room = PIXELS_AT_ONCE * (1 if device.type == "cpu" else GPU_FACTOR)
    return min(max(room // (side * side), SMALLEST), LARGEST)


def side_by_side(work: Callable[[T], R], items: Iterable[T], device: torch.device) -> Iterator[R]:
    """Yield what ``work`` makes of each item, in order; on a CPU, an item for each core at a time.

    Items are asked for as they are needed, one more than there are cores.
    """
    if device.type != "cpu":
        yield from map(work, items)
        return
    threads = torch.get_num_threads()
    under_way: deque[Future[R]] = deque()
    with contextlib.ExitStack() as end:
        end.callback(torch.set_num_threads, threads)
        pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
        end.callback(pool.shutdown, cancel_futures=True)
        for item in items:
            under_way.append(pool.submit(work, item))
            if len(under_way) > threads:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
