"""The review server under load: several people at once, for a minute, on loopback.

    python benchmarks/review_load.py RUN [--seconds 60] [--rate 100]

RUN, a finished run, is copied first.  Readers ask for the state, the images of a class and thumbnails; two editors
rename classes, each on the state it saw last, and try again when the other was faster.  Printed are the requests per
second, the answers by status, how long they took, the server's memory, and whether the journal holds every edit that
was acknowledged, once and in order, and nothing else.
"""

import argparse
import http.client
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

READERS, EDITORS = 16, 2
EDITS = 0.2  # share of requests that are edits
WARM_UP = 0.15  # share of the time after which memory is first measured
CONFLICT = 409


@dataclass
class Load:
    """What came of it."""

    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    acknowledged: list[tuple[int, str]] = field(default_factory=list)  # number of the edit, and the name it gave
    memory: list[int] = field(default_factory=list)  # of the server, in kB, now and then
    lost: list[str] = field(default_factory=list)  # acknowledged and not in the journal, or the other way round
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, status: int, seconds: float) -> None:
        """Keep status and time of an answer."""
        with self.lock:
            self.statuses[status] += 1
            self.times.append(seconds)


class Person:
    """One who asks, over one connection: the standard library's client, which costs little beside the server."""

    def __init__(self, address: str, token: str, load: Load) -> None:
        self.connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.load = load

    def ask(self, path: str, wish: dict[str, Any] | None = None) -> tuple[int, bytes]:
        """Return status and content of an answer, and note both."""
        begun = time.monotonic()
        body = json.dumps(wish) if wish is not None else None
        self.connection.request("POST" if wish is not None else "GET", path, body, self.headers)
        answer = self.connection.getresponse()
        content = answer.read()
        self.load.note(answer.status, time.monotonic() - begun)
        return answer.status, content

    def state(self) -> dict[str, Any]:
        """Return the classes as they are now."""
        return dict(json.loads(self.ask("/api/state")[1]))


def run_load(run: Path, seconds: float, rate: float, seed: int = 0) -> Load:
    """Return what came of ``rate`` requests a second for ``seconds`` to the review of a copy of ``run``."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(shutil.copytree(run, Path(place) / "run"))
        (copy / "edits.jsonl").unlink(missing_ok=True)
        command = [sys.executable, "-m", "autonovel", "review", str(copy), "--no-browser"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            found = next(m for text in server.stdout if (m := re.search(r"(http://\S+)/\?token=(\S+)", text)))
            load = _ask(found[1], found[2], server.pid, seconds, rate, seed)
        finally:
            server.terminate()
            server.wait()
            if server.stdout:
                server.stdout.close()
        load.lost = _lost(copy / "edits.jsonl", load.acknowledged)
    return load


def _ask(address: str, token: str, process: int, seconds: float, rate: float, seed: int) -> Load:
    load, start = Load(), time.monotonic()
    end = start + seconds
    share = {True: EDITS * rate / EDITORS, False: (1 - EDITS) * rate / READERS}

    def person(number: int) -> None:
        edits, rng = number < EDITORS, random.Random(seed + number)
        one = Person(address, token, load)
        state, due = one.state(), time.monotonic()
        while time.monotonic() < end:
            state = _edit(one, state, number) if edits else _look(one, state, rng)
            due += 1 / share[edits]
            time.sleep(max(due - time.monotonic(), 0))
        one.connection.close()

    people = [threading.Thread(target=person, args=(number,)) for number in range(EDITORS + READERS)]
    for one in people:
        one.start()
    while any(one.is_alive() for one in people):
        if time.monotonic() - start > WARM_UP * seconds:
            load.memory.append(_resident(process))
        time.sleep(min(0.5, seconds / 10))
    load.seconds = time.monotonic() - start
    return load


def _edit(one: Person, state: dict[str, Any], person: int) -> dict[str, Any]:
    """Rename a class; return the state to base the next edit on."""
    new = [entry["id"] for entry in state["classes"] if entry["kind"] == "new"]
    name = f"person {person}, edit {state['edits'] + 1}"
    wish = {"edit": "rename", "number": new[state["edits"] % len(new)], "name": name}
    status, content = one.ask("/api/edit", {"edit": wish, "based_on": state["edits"]})
    if status != 200:
        return one.state()
    with one.load.lock:
        one.load.acknowledged.append((state["edits"] + 1, name))
    return dict(json.loads(content)["state"])


def _look(one: Person, state: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    kind = rng.randrange(3)
    if kind == 0:
        return one.state()
    if kind == 1:
        one.ask(f"/api/images/{rng.choice(state['classes'])['id']}")
        return state
    rows = sorted({rng.choice(entry["sample"]) for entry in state["classes"] if entry["sample"]})
    one.ask(f"/sheet/{state['key']}?rows={','.join(map(str, rows))}")
    return state


def _resident(process: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) if found else 0


def _lost(journal: Path, acknowledged: list[tuple[int, str]]) -> list[str]:
    """Return the edits that are acknowledged and not in the journal at their place, or in it and not acknowledged."""
    lines = [json.loads(text)["name"] for text in journal.read_text().splitlines()] if journal.exists() else []
    there = dict(enumerate(lines, 1))
    said = dict(acknowledged)
    return [
        f"{n}: {said.get(n)!r} acknowledged, {there.get(n)!r} there"
        for n in {*there, *said}
        if there.get(n) != said.get(n)
    ]


def described(load: Load) -> str:
    """Return the figures in lines."""
    cuts = statistics.quantiles(load.times, n=100) if len(load.times) > 1 else [load.times[0]] * 99
    answers = ", ".join(f"{status}: {count:,}" for status, count in sorted(load.statuses.items()))
    total = sum(load.statuses.values())
    lines = [
        f"{total:,} requests in {load.seconds:.1f} s, {total / load.seconds:.1f} a second "
        f"({answers}; {CONFLICT} is an edit by the slower of two)",
        f"time to answer: median {1000 * cuts[49]:.1f} ms, 99th percentile {1000 * cuts[98]:.1f} ms",
        f"edits acknowledged: {len(load.acknowledged):,}; lost or made up: {len(load.lost)}",
    ]
    if load.memory:
        n = len(load.memory)
        quarters = [load.memory[n * k // 4 : max(n * (k + 1) // 4, n * k // 4 + 1)] for k in range(4)]
        medians = ", ".join(f"{statistics.median(part) / 1024:.0f}" for part in quarters)
        lines.append(
            f"memory of the server: {load.memory[0] / 1024:.0f} MB after the first moments; medians of the four "
            f"quarters of the time after them: {medians} MB"
        )
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("run", type=Path)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--rate", type=float, default=100.0)
    given = options.parse_args()
    load = run_load(given.run, given.seconds, given.rate)
    print(described(load))
    if load.lost or any(status >= 500 for status in load.statuses):
        sys.exit("\n".join(load.lost[:5]) or "the server failed")


if __name__ == "__main__":
    main()
