"""Later images judged by several processes: each takes every n-th batch of files, and the first one gets all rows."""

import hashlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from autonovel.passes import batch_size
from autonovel.training.ranks import Ranks

if TYPE_CHECKING:
    from autonovel.predicting.prediction import Predictor, Row


@dataclass
class Batches:
    """All files in batches, of which this process takes every n-th; ``seen`` is a checksum of all names."""

    paths: Iterator[str]
    size: int
    ranks: Ranks
    seen: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))

    def own(self) -> Iterator[str]:
        """Return the files of this process's batches, one after another."""
        for number in itertools.count():
            some = list(itertools.islice(self.paths, self.size))
            if not some:
                return
            for path in some:
                self.seen.update(os.fsencode(path) + b"\0")
            if number % self.ranks.world == self.ranks.rank:
                yield from some


def rows_of_all(predictor: "Predictor", paths: Iterator[str], batch: int, ranks: Ranks) -> Iterator[list["Row"]]:
    """Yield the rows of all files in the order of ``paths``, in the first process; in the others, nothing.

    Every process goes through all names itself, and takes its batches of them.  They are the batches that one process
    would make, so that answers are the same to the last digit.
    """
    size = batch or batch_size(predictor.pixels.side, predictor.device)
    batches = Batches(paths, size, ranks)
    mine = predictor.rows(batches.own(), size)
    while True:
        rows = next(mine, [])
        if not ranks.lead(lambda rows=rows: bool(rows)):  # type: ignore[misc]  # the first has as many batches as any
            break
        yield list(itertools.chain.from_iterable(ranks.collect(rows)))
    left = len(rows) + sum(len(some) for some in mine)
    ranks.check_same(
        (batches.seen.hexdigest(), left),
        "the processes did not find the same files: some came or went meanwhile, or machines see different folders. "
        "Put the paths into a list that all can read (--from FILE), and run the command again.",
    )
