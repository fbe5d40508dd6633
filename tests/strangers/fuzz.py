"""Throws changed documents at every reader of outside data and counts what it was not ready for.

    PYTHONPATH=tests python tests/strangers/fuzz.py [MINUTES] [--only WORD] [--seed N] [--keep FOLDER]

The minutes, ten unless said otherwise, are shared out evenly.  A crash is an error that is not of our own type, or an
example that takes longer than ``PATIENCE``; the document that did it is kept, and the command ends with 1.
"""

import argparse
import contextlib
import hashlib
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from mutations import documents_like
from outside import Parser, parsers

from autonovel.errors import AutonovelError

MINUTES = 10.0
AT_ONCE = 100  # examples between two looks at the clock
PATIENCE = 20.0  # seconds that one document may take
MEMORY = 8 << 30  # bytes: a document that asks for more is a crash of its own


@dataclass
class Tried:
    """What came of one parser."""

    parser: str
    examples: int = 0
    read: int = 0  # without any complaint
    refused: int = 0  # with an error of our own
    crashes: dict[str, tuple[str, bytes]] = field(
        default_factory=dict
    )  # what was raised where: its words, the document
    seconds: float = 0.0


def attempt(parser: Parser, content: bytes, tried: Tried) -> None:
    """Let ``parser`` read ``content`` and note what became of it."""
    begun = time.monotonic()
    tried.examples += 1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parser.read(content)
        tried.read += 1
    except AutonovelError as error:
        tried.refused += 1
        if not str(error).strip():
            tried.crashes["an error without a word"] = ("", content)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
        tried.crashes.setdefault(where, (str(error), content))
    if time.monotonic() - begun > PATIENCE:
        tried.crashes["too slow"] = (f"{time.monotonic() - begun:.0f} s", content)


def hunt(parser: Parser, seconds: float, first: int) -> Tried:
    """Return what became of as many documents as ``parser`` reads in ``seconds``."""
    tried = Tried(parser.name)
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        examine(parser, AT_ONCE, first, tried)
        first += 1
    tried.seconds = time.monotonic() - start
    return tried


def examine(parser: Parser, examples: int, number: int, tried: Tried) -> None:
    """Let ``parser`` read ``examples`` documents, the same ones for the same ``number``."""

    @seed(number)
    @settings(
        max_examples=examples, database=None, deadline=None, phases=[Phase.generate], derandomize=False,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(content=documents_like(parser.seeds, parser.kind))
    def one(content: bytes) -> None:
        attempt(parser, content, tried)

    one()


def table(results: list[Tried]) -> str:
    """Return what came of all parsers as Markdown."""
    lines = ["| parser | examples | read | refused | crashes |", "|---|---:|---:|---:|---:|"]
    for r in results:
        lines.append(f"| {r.parser} | {r.examples:,} | {r.read:,} | {r.refused:,} | {len(r.crashes)} |")
    total = [
        sum(values) for values in zip(*((r.examples, r.read, r.refused, len(r.crashes)) for r in results), strict=True)
    ]
    return "\n".join([*lines, "| all | " + " | ".join(f"{number:,}" for number in total) + " |"])


def main() -> int:
    """Run the command."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("minutes", nargs="?", type=float, default=MINUTES)
    options.add_argument("--only", default="", help="parsers whose name has this word")
    options.add_argument("--seed", type=int, default=int(time.time()))
    options.add_argument("--keep", type=Path, default=Path("fuzz-crashes"), help="where documents that crash are kept")
    given = options.parse_args()
    with contextlib.suppress(ImportError):  # not on every system
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    with tempfile.TemporaryDirectory() as place:
        chosen = [parser for parser in parsers(Path(place)) if given.only in parser.name]
        share = 60 * given.minutes / max(len(chosen), 1)
        print(f"{len(chosen)} parsers, {share:.0f} s each, seed {given.seed}", flush=True)
        results = []
        for number, parser in enumerate(chosen, 1):
            results.append(hunt(parser, share, given.seed))
            left = (len(chosen) - number) * share
            found = f"{results[-1].examples:,} examples, {len(results[-1].crashes)} crashes"
            print(f"{parser.name}: {found}; {left / 60:.1f} min left", file=sys.stderr, flush=True)
    print(table(results))
    for result in results:
        for where, (words, content) in result.crashes.items():
            given.keep.mkdir(parents=True, exist_ok=True)
            file = given.keep / hashlib.blake2b(content, digest_size=6).hexdigest()
            file.write_bytes(content)
            print(f"{result.parser}: {where}: {words[:200]}\n  {file}")
    return int(any(result.crashes for result in results))


if __name__ == "__main__":
    sys.exit(main())
