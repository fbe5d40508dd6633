"""Several processes that train one model together: which of them this is, and what they say to each other.

Each process ("rank") sends its share of a batch through the trunk.  The features of all shares are gathered, with
their gradient, and from there on every process does the same: heads, pairs and losses are those of the whole batch,
as in one process, whatever the method.  Gradients are averaged before the optimiser steps, so that models stay equal.

Alone, everything here is the identity.
"""

import contextlib
import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch import distributed as dist

from autonovel.errors import AutonovelError, InputError, UsageError
from autonovel.launch import PATIENCE, Launch, launch

T = TypeVar("T")
# A process waits for the first one, which may survey a million images.  Dead ones are noticed by torchrun.
LONG = datetime.timedelta(days=30)


class LostError(AutonovelError):
    """Another process has gone, so that this one cannot go on."""


@dataclass(frozen=True)
class Ranks:
    """This process among those that work together.

    Attributes:
        launch: what torchrun said of it.
        objects: the group over which Python objects and tensors in the host's memory go.
    """

    launch: Launch = field(default_factory=Launch)
    objects: Any = None

    def __deepcopy__(self, _: object) -> "Ranks":
        return self  # a copied model belongs to the same processes

    @property
    def rank(self) -> int:
        """Return the number of this process."""
        return self.launch.rank

    @property
    def world(self) -> int:
        """Return how many processes there are."""
        return self.launch.world

    @property
    def first(self) -> bool:
        """Tell whether this is the process that writes and speaks."""
        return self.rank == 0

    def lead(self, work: Callable[[], T]) -> T:
        """Return to all what the first process makes of ``work``; an error of our own is raised in all."""
        if self.world == 1:
            return work()
        told: list[Any] = [None, None]
        if self.first:
            try:
                told = [work(), None]
            except AutonovelError as error:
                told = [None, error]
        with _explained():
            dist.broadcast_object_list(told, src=0, group=self.objects, device=torch.device("cpu"))
        found, wrong = told
        if wrong is not None:
            raise wrong
        return found  # type: ignore[no-any-return]

    def alone(self, work: Callable[[], T]) -> T | None:
        """Let the first process do ``work`` while the others wait; what it makes stays with it."""
        made: list[T] = []
        self.lead(lambda: made.append(work()))
        return made[0] if made else None

    def share(self, batch: Tensor) -> Tensor:
        """Return this process's share of a batch (or of many, one per row)."""
        return batch[..., self.rank :: self.world]

    def whole(self, x: Tensor, rows: int) -> Tensor:
        """Return the whole batch from the shares of all processes, in the batch's order, with gradient.

        Args:
            x: what this process made of its share: as many rows as images, or several such blocks, as of two views.
            rows: images in a share.
        """
        if self.world == 1:
            return x
        blocks = x.reshape(-1, rows, *x.shape[1:])
        shares: Tensor = _Gather.apply(blocks, self)  # type: ignore[no-untyped-call]  # world×blocks×rows×…
        return shares.permute(1, 2, 0, *range(3, shares.ndim)).reshape(-1, *x.shape[1:])

    def one_share(self, rows: int, device: torch.device) -> Tensor:
        """Return a rows×rows 0/1 matrix of the pairs of a whole batch whose images went to one process."""
        process = torch.arange(rows, device=device) % self.world
        return (process[:, None] == process[None, :]).float()

    @torch.no_grad()
    def average(self, tensors: Sequence[Tensor]) -> None:
        """Replace each of ``tensors`` by its mean over all processes."""
        if self.world == 1 or not tensors:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        with _explained():
            dist.all_reduce(flat)
        for tensor, mean in zip(tensors, (flat / self.world).split([t.numel() for t in tensors]), strict=True):
            tensor.copy_(mean.view_as(tensor))

    @torch.no_grad()
    def equalise(self, tensors: Iterable[Tensor]) -> None:
        """Replace ``tensors`` by those of the first process."""
        if self.world == 1:
            return
        with _explained():
            for tensor in tensors:
                same = tensor.contiguous()
                dist.broadcast(same, src=0)
                tensor.copy_(same)

    def part_of(self, n: int, chunk: int) -> range:
        """Return this process's part of ``n`` rows, in whole chunks of which all processes have about as many."""
        each = -(-n // (chunk * self.world)) * chunk
        return range(min(self.rank * each, n), min((self.rank + 1) * each, n))

    def join_parts(self, part: Tensor, n: int, chunk: int) -> Tensor:
        """Return all ``n`` rows, in the host's memory, of which each process brings what ``part_of`` gave it."""
        if self.world == 1:
            return part
        each = -(-n // (chunk * self.world)) * chunk
        padded = torch.zeros(each, *part.shape[1:], dtype=part.dtype)
        padded[: len(part)] = part
        parts = [torch.empty_like(padded) for _ in range(self.world)]
        with _explained():
            dist.all_gather(parts, padded, group=self.objects)
        return torch.cat(parts)[:n]

    def collect(self, thing: T) -> list[T]:
        """Return, in the first process, what each process brings, in the order of their numbers; elsewhere nothing."""
        if self.world == 1:
            return [thing]
        found: list[Any] | None = [None] * self.world if self.first else None
        with _explained():
            dist.gather_object(thing, found, dst=0, group=self.objects)
        return found or []

    def check_same(self, thing: object, otherwise: str) -> None:
        """Raise an error that says ``otherwise`` if not all processes bring an equal ``thing``."""
        brought = self.collect(thing)

        def compare() -> None:
            if any(other != brought[0] for other in brought):
                raise InputError(otherwise)

        self.alone(compare)

    def leave(self) -> None:
        """Close the connections, once the first process is done."""
        self.lead(lambda: None)
        if self.world > 1:
            dist.destroy_process_group()


ALONE = Ranks()


class _Gather(torch.autograd.Function):
    """The tensors of all processes, one after another; the gradient of each is the sum of what all make of it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, ranks: Ranks) -> Tensor:
        ctx.rank = ranks.rank
        x = x.contiguous()
        parts = [torch.empty_like(x) for _ in range(ranks.world)]
        with _explained():
            dist.all_gather(parts, x)
        return torch.stack(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        # All processes take part in one sum of losses, of which each has the whole batch's: the sum is world times
        # what one process alone would have, and the average of the parameters' gradients divides by world again.
        gradient = gradients[0].contiguous()
        with _explained():
            dist.all_reduce(gradient)
        return gradient[ctx.rank], None


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Turn torch's word of a broken connection into an error of our own."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise LostError(
            "another process of this run has ended, or cannot be reached; torchrun says which one. The same command "
            f"with --resume goes on from the last checkpoint. ({str(error).splitlines()[0]})"
        ) from error


def join(device: torch.device) -> Ranks:
    """Return this process among those that torchrun started, connected with them and, on GPUs, with one of its own.

    GPUs talk by NCCL, CPUs by Gloo.  Processes that have to share a GPU, which NCCL does not allow, talk by Gloo too.
    """
    here = launch()
    if here.world == 1:
        return Ranks(here)
    from torch.distributed.distributed_c10d import PrefixStore  # not in every build of torch
    from torch.distributed.rendezvous import rendezvous

    from autonovel.training.meeting import name_of_start

    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"several processes cannot train together on {device.type}; choose --device cpu or cuda.")
    if device.type == "cuda":
        torch.cuda.set_device(here.local_rank % torch.cuda.device_count())
    own = device.type == "cuda" and here.local_world <= torch.cuda.device_count()
    store, rank, world = next(rendezvous("env://", timeout=LONG))
    fresh = PrefixStore(name_of_start(store, rank, world), store)
    dist.init_process_group("nccl" if own else "gloo", store=fresh, rank=rank, world_size=world, timeout=LONG)
    return Ranks(here, dist.new_group(backend="gloo", timeout=LONG) if own else None)


def tell_once(error: AutonovelError, tell: Callable[[AutonovelError], None]) -> None:
    """Let one process tell of an error that several have met, and return in all once it is told.

    That another process has gone is told only where nobody has told why.
    """
    if not dist.is_initialized():
        tell(error)
        return
    kind = "lost" if isinstance(error, LostError) else str(error)
    try:
        store = dist.distributed_c10d._get_default_store()
        first = store.add(kind, 1) == 1
        before = store.add("any", 1) > 1
        if first and not (before and kind == "lost"):
            tell(error)
            store.set(f"told {kind}", "")
        elif not first:
            store.wait([f"told {kind}"], datetime.timedelta(seconds=PATIENCE))
    except (RuntimeError, ValueError):  # torchrun itself has gone
        tell(error)
