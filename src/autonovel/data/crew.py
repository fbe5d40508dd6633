"""Worker processes that decode images, started once and kept for all passes over the same files.

A forked worker holds on to the memory its parent had at that moment.  The first pass, the survey, comes before
there is a network, so that workers that stay are small ones, and later passes need not wait for new ones.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from autonovel.errors import AutonovelError
from autonovel.stopping import WORKER_ENDED, leave_unprinted

AHEAD = 4  # orders that each worker may have done ahead

Order = tuple[Any, ...]  # what ``decode`` of the work is called with: which images, and what is wanted of them


class Decoded(NamedTuple):
    """What a worker makes of one order.

    Attributes:
        pixels: n×c×h×w uint8, zeros where a file cannot be read.
        broken: number and reason of every file that cannot be read.
        sums: 8 bytes of checksum per image, one after the other, where they were asked for.
    """

    pixels: Tensor
    broken: list[tuple[int, str]]
    sums: bytes


class Work(Protocol):
    """What the workers decode from: a ``FilePixels`` or a ``PathPixels``."""

    @property
    def workers(self) -> int:
        """Return how many processes are to work."""

    @property
    def pinned(self) -> bool:
        """Return whether batches are wanted in pinned memory."""

    @property
    def kind(self) -> tuple[object, ...]:
        """Return what tells it from other work."""

    @property
    def decode(self) -> Callable[..., Decoded]:
        """Return what makes images of an order."""


@contextlib.contextmanager
def deaths_explained() -> Iterator[None]:
    """Turn torch's word of a dead worker, which can interrupt this process anywhere, into an error of our own."""
    try:
        yield
    except RuntimeError as error:
        if WORKER_ENDED not in str(error):
            raise
        raise _death(error) from error


def _death(error: Exception) -> AutonovelError:
    return AutonovelError(
        f"a process that decodes images has ended ({(str(error) or type(error).__name__).splitlines()[0]}). If memory "
        "is short, lower data.workers or the batch size; then run the command again (--resume goes on with a run)."
    )


class Crew:
    """The workers for one kind of work; one that is asked for another kind starts anew."""

    def __init__(self) -> None:
        self._loader: DataLoader[Decoded] | None = None
        self._orders = _Orders()
        self._kind: tuple[object, ...] = ()
        self._busy = False

    def __reduce__(self) -> tuple[type["Crew"], tuple[()]]:
        return Crew, ()  # where workers are not forked, they get a copy of the work, not of each other

    def work(self, work: Work, orders: Iterator[Order]) -> Iterator[Decoded]:
        """Return what the workers make of ``orders``, in this order; a second pass beside a first has its own."""
        if self._busy:
            yield from Crew().work(work, orders)
            return
        self._busy, self._orders.coming = True, orders
        try:
            with deaths_explained():
                yield from self._started(work)
        except AutonovelError:
            self._loader = None
            raise
        except (EOFError, OSError) as error:  # killed while it handed a batch over
            self._loader = None
            raise _death(error) from error
        finally:
            self._busy, self._orders.coming = False, iter(())

    def _started(self, work: Work) -> DataLoader[Decoded]:
        if self._loader is None or self._kind != work.kind:
            self._kind = work.kind
            self._loader = DataLoader(
                _Decoding(work),
                batch_sampler=self._orders,
                num_workers=work.workers,
                collate_fn=_as_it_is,
                pin_memory=work.pinned,
                prefetch_factor=AHEAD,
                persistent_workers=True,
                worker_init_fn=_hang_up_quietly,
            )
        return self._loader


class _Decoding(Dataset[Decoded]):
    """What a worker holds; a whole batch is asked of it at once."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def __getitems__(self, order: Order) -> Decoded:
        return self.work.decode(*order)


class _Orders:
    """The batches of the pass that is under way."""

    def __init__(self) -> None:
        self.coming: Iterator[Order] = iter(())

    def __iter__(self) -> Iterator[Any]:
        return self.coming


def _hang_up_quietly(number: int) -> None:
    """Let a worker say nothing when this process, stopped, leaves while a batch is handed over."""
    leave_unprinted(lambda error: isinstance(error, EOFError | ConnectionError))


def _as_it_is(done: Any) -> Any:
    return done
