"""Many whole runs: one after another, or several beside each other in processes of their own.

A small network leaves most of a GPU idle, and start, images and report keep it waiting; several processes fill it.
Each process goes on to the next run when it is done with one, so that imports and decoded images are paid for once.
"""

import multiprocessing
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing.connection import wait as wait_for
from pathlib import Path

from rich.console import Console

from autonovel import stopping
from autonovel.cores import usable_cores
from autonovel.errors import AutonovelError, GuardError
from autonovel.manner import Manner
from autonovel.storage import writing
from autonovel.studies.variants import FULL_VARIANT, Variant

LOG = ".log"
THREADS = "OMP_NUM_THREADS"
SMALLER = "The same command goes on; try a smaller --beside."
DIED = f"a process ended all at once, killed or out of memory. {SMALLER}"


@dataclass(frozen=True)
class RunOrder:
    """A run to be made, as ``run_recipe`` takes it, or gone on with.

    Its time counts from ``started``, or else from when it begins, whatever its manner says.
    """

    recipe: str
    folder: Path
    seed: int
    sets: tuple[str, ...]
    manner: Manner
    variant: Variant = FULL_VARIANT
    started: float | None = None


def carry_out(orders: Sequence[RunOrder], beside: int, console: Console) -> None:
    """Make all runs, ``beside`` at a time, and raise an error of theirs after the others are done.

    Runs beside each other write their progress to a log beside their folders; here a line tells of each that is done,
    and how long the rest will take.
    """
    failures: list[AutonovelError] = []
    if min(beside, len(orders)) <= 1:
        for place, order in enumerate(orders):
            try:
                _make(order, None, announced=place > 0)
            except AutonovelError as error:
                stopping.check()  # what a dying child raised may have come before the signal's own
                failures.append(error)
                if len(orders) > 1 or isinstance(error, GuardError):  # whose it was; one that ends all is told anyway
                    console.print(f"error: {order.folder.name}: {error}", highlight=False, markup=False)
    else:
        failures = _in_processes(orders, min(beside, len(orders)), console)
    if failures:  # a collapse is one run's alone; anything else comes first
        raise next((error for error in failures if not isinstance(error, GuardError)), failures[0])


def _in_processes(orders: Sequence[RunOrder], beside: int, console: Console) -> list[AutonovelError]:
    start, done, failures = time.monotonic(), 0, list[AutonovelError]()
    told = f"{len(orders)} runs, {beside} at a time; the log of each is {orders[0].folder.parent / ('*' + LOG)}."
    console.print(told, highlight=False, soft_wrap=True)
    with _threads_for(beside):
        # spawned, not forked: a forked process cannot use CUDA
        pool = ProcessPoolExecutor(beside, multiprocessing.get_context("spawn"), _die_with_parent)
        try:
            waiting: dict[Future[None], RunOrder] = {pool.submit(_make_quietly, order): order for order in orders}
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    order, done = waiting.pop(future), done + 1
                    said = _outcome(future, failures)
                    left = (time.monotonic() - start) / done * len(waiting)
                    console.print(
                        f"{order.folder.name}: {said} ({done} of {len(orders)}, about {left:.0f} s left)",
                        highlight=False, markup=False, soft_wrap=True,
                    )  # fmt: skip
        except BaseException:  # asked to end: what runs in the processes would be waited for
            for process in multiprocessing.active_children():
                process.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
    return failures


def _outcome(future: "Future[None]", failures: list[AutonovelError]) -> str:
    try:
        future.result()
    except AutonovelError as error:
        failures.append(error)
    except BrokenProcessPool:  # the others of the pool are lost with it; what they finished is on disk
        failures.append(AutonovelError(DIED))
    else:
        return "done"
    return f"error: {failures[-1]}"


class _threads_for:  # noqa: N801 - used as a context
    """Give each of several processes its share of the cores, unless the user has said otherwise."""

    def __init__(self, processes: int) -> None:
        self.mine = THREADS not in os.environ
        self.share = max(1, usable_cores() // processes)

    def __enter__(self) -> None:
        if self.mine:
            os.environ[THREADS] = str(self.share)

    def __exit__(self, *_: object) -> None:
        if self.mine:
            del os.environ[THREADS]


def _die_with_parent() -> None:
    """End this process when its parent does, killed or not."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait_for([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _make_quietly(order: RunOrder) -> None:
    import torch

    with writing.open_log(order.folder.parent / (order.folder.name + LOG)) as log:
        try:
            _make(order, Console(file=log, width=120), announced=False)
        except torch.OutOfMemoryError as error:  # of the device: the others have their memory
            raise AutonovelError(f"{str(error).splitlines()[0]} {SMALLER}") from error


def _make(order: RunOrder, console: Console | None, announced: bool) -> None:
    from autonovel.commands.training import run_recipe

    o, started = order, time.monotonic() if order.started is None else order.started
    manner = replace(o.manner, resume=True, started=started)
    run_recipe(o.recipe, o.folder, o.seed, list(o.sets), manner, o.variant, console, announced)
