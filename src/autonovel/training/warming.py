"""What a GPU and its compiler need once in a process, done while images are read."""

import contextlib
import threading
from collections.abc import Iterator

import torch

from autonovel.settings import Recipe


@contextlib.contextmanager
def warming(device: torch.device, compiling: bool) -> Iterator[None]:
    """Make a GPU and, for ``compiling``, torch's compiler ready beside what is done inside.

    A process takes seconds to begin with a GPU, to import the compiler and to start its workers; unpacking files
    leaves Python free for that.  It ends before what comes after, so that no two threads import torch's parts.
    """
    if device.type != "cuda":
        yield
        return
    beside = threading.Thread(target=_warm, args=(device, compiling), name="warming", daemon=True)
    beside.start()
    yield  # an error leaves the thread behind: it is a daemon and holds nothing
    beside.join()


def compiles(settings: Recipe) -> bool:
    """Return whether a stage of the recipe compiles its trunk on a GPU."""
    stages = (settings.pretrain, settings.supervised, settings.joint, settings.incremental)
    return settings.run.cuda_graphs and any(stage.compile for stage in stages)


def _warm(device: torch.device, compiling: bool) -> None:
    """Do it; what fails here fails again, and is told, where it is needed."""
    with contextlib.suppress(Exception):
        torch.zeros(1, device=device)
        if compiling:
            from torch._inductor import compile_fx  # noqa: F401  (imported for later)
            from torch._inductor.async_compile import maybe_warm_pool  # torch's own name, which may go

            maybe_warm_pool()
