"""The whole paper from one list of commands: `python benchmarks/paper.py --data DIR` makes the runs of docs/results.md.

The list is `paper.toml` beside this file, or another one of that form; a word of its `[words]` stands in commands for
what it says. A job begins when those it needs are done; one that says so has the GPU to itself, the others share it,
`--beside` at a time. What is done is not done again, and what was stopped goes on, so the same command may be given as
often as it takes. `--only 'svhn*'` makes some of the jobs and what they need (given several times, the first pattern's
jobs come first); `--list` says what is left. DIR holds a folder for each dataset, as `autonovel data fetch NAME --to
DIR/NAME` leaves it.

On a machine that is lent for a while `--minutes 25` stops in time, and what was begun goes on another day; with
`--wait-for-data` jobs whose dataset has no folder yet begin when it appears (one that is filled slowly should get its
name when it is whole). `--set STAGE.KEY=VALUE` goes to every `autonovel reproduce`: with `--set data.per_class=30` and
few epochs a whole list can be rehearsed on a CPU first.

`--collect benchmarks/results` copies the results there, as `autonovel table` and docs/results.md take them.

Where several processes share an NVIDIA GPU, `nvidia-cuda-mps-control -d` lets them work at the same time.
"""

import argparse
import fnmatch
import itertools
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from autonovel.cores import usable_cores
from autonovel.words import listed

SHARES = ("alone", "most", "part")  # of the GPU
REPOSITORY = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Job:
    """A command, the jobs that must be done before it, and how much of a GPU it takes."""

    name: str
    run: str
    needs: tuple[str, ...] = ()
    gpu: str = "part"

    @property
    def dataset(self) -> str | None:
        """Return the name of the dataset it reads, which is that of a folder."""
        found = re.search(r"--data \{data\}/([\w-]+)", self.run)
        return found and found[1]

    def command(self, data: Path, out: Path, changes: Sequence[str] = ()) -> str:
        """Return the command for the shell, by this Python; training with settings changed."""
        program, _, rest = self.run.partition(" ")
        python = shlex.quote(sys.executable)
        start = {"autonovel": f"{python} -m autonovel", "python": python}[program]
        sets = [f" --set {shlex.quote(change)}" for change in changes if rest.startswith("reproduce ")]
        return f"exec {start} {rest.format(data=shlex.quote(str(data)), out=shlex.quote(str(out)))}{''.join(sets)}"


def read_jobs(path: Path) -> list[Job]:
    """Return the jobs of a list, each for all its sets and seeds; words of the list stand for what they say."""
    table = tomllib.loads(path.read_text())
    jobs = []
    for entry in table["job"]:
        for seed, one in itertools.product(entry.pop("seeds", [""]), entry.pop("sets", [""])):
            filled = json.loads(json.dumps(entry).replace("{set}", one).replace("{seed}", str(seed)))
            for word, text in table.get("words", {}).items():
                filled["run"] = filled["run"].replace(f"{{{word}}}", text)
            jobs.append(Job(**filled | {"needs": tuple(filled.get("needs", ()))}))
    names = [job.name for job in jobs]
    for job in jobs:
        unknown = sorted({*job.needs} - {*names})
        if unknown:
            sys.exit(f"{path}: {job.name} needs {', '.join(unknown)}, which the list does not have.")
        if names.count(job.name) > 1:
            sys.exit(f"{path}: {job.name} stands there more than once.")
        try:
            job.command(Path(), Path())
        except KeyError as word:
            sys.exit(f"{path}: {job.name} names {word}, which is no word of the list.")
        if job.gpu not in SHARES:
            sys.exit(f"{path}: {job.name} has gpu = {job.gpu!r}; choose one of {', '.join(SHARES)}.")
    return jobs


def wanted(jobs: Sequence[Job], patterns: Sequence[str]) -> list[Job]:
    """Return the jobs whose names match, by the order of the patterns, each behind what it needs; without any, all."""
    by_name = {job.name: job for job in jobs}
    chosen: dict[str, Job] = {}

    def take(name: str) -> None:
        if name not in chosen:
            for other in by_name[name].needs:
                take(other)
            chosen[name] = by_name[name]

    for pattern in patterns or ["*"]:
        found = fnmatch.filter(by_name, pattern)
        if not found:
            sys.exit(f"no job of the list is called {pattern}; --list names them all.")
        for name in found:
            take(name)
    return list(chosen.values())


def may_start(job: Job, running: Iterable[Job], beside: int) -> bool:
    """Tell whether there is room for ``job`` on the GPU."""
    others = list(running)
    if job.gpu == "alone" or any(other.gpu == "alone" for other in others):
        return not others
    if job.gpu == "most":
        return all(other.gpu != "most" for other in others)
    return sum(other.gpu == "part" for other in others) < beside


class Campaign:
    """Carries out jobs; what is done and what was said is in ``out/campaign``."""

    def __init__(
        self, jobs: Sequence[Job], data: Path, out: Path, beside: int,
        seconds: float = math.inf, changes: Sequence[str] = (), wait_for_data: bool = False,
    ) -> None:  # fmt: skip
        self.data, self.out, self.beside = data.resolve(), out.resolve(), beside
        self.changes, self.wait_for_data = changes, wait_for_data
        self.notes = self.out / "campaign"
        self.left = [job for job in jobs if not self.done(job.name)]
        self.running: dict[Job, tuple[subprocess.Popen[bytes], float]] = {}
        self.failed: list[str] = []
        self.start = time.monotonic()
        self.stop = self.start + seconds

    def done(self, name: str) -> bool:
        """Tell whether a job is done."""
        return (self.notes / f"{name}.done").exists()

    def missing(self) -> dict[str, list[str]]:
        """Return the datasets that are not there, with the names of the jobs left that read them."""
        read: dict[str, list[str]] = {}
        for job in self.left:
            if job.dataset and not (self.data / job.dataset).exists():
                read.setdefault(job.dataset, []).append(job.name)
        return read

    def awaited(self) -> dict[str, list[str]]:
        """Return those of them that are waited for; without, jobs fail in their own words."""
        return self.missing() if self.wait_for_data else {}

    def carry_out(self) -> None:
        """Make all jobs that can be made in the time there is; one that fails stops those alone that need it."""
        self.notes.mkdir(parents=True, exist_ok=True)
        for name in self.awaited():
            self._say(f"{self.data / name} is awaited")
        try:
            while self._begin() or self.running or self.awaited():
                self._end()
                time.sleep(0.2)
                if time.monotonic() > self.stop:
                    self._say(f"time is up: {', '.join(job.name for job in self.running) or 'nothing'} is stopped")
                    break
        finally:
            for process, _ in self.running.values():  # asked to end: each keeps what it has
                process.terminate()  # not by SIGINT, to which a job of a campaign in the background is deaf
            for process, _ in self.running.values():
                process.wait()

    def _begin(self) -> bool:
        """Start what there is room for; tell whether anything was."""
        begun = False
        awaited = self.awaited()
        for job in list(self.left):
            if job.dataset in awaited:
                continue
            if all(self.done(name) for name in job.needs) and may_start(job, self.running, self.beside):
                self.left.remove(job)
                with (self.notes / f"{job.name}.log").open("ab") as log:
                    process = subprocess.Popen(
                        job.command(self.data, self.out, self.changes), shell=True,
                        stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=REPOSITORY, env=self._environment(job),
                    )  # fmt: skip
                self.running[job] = process, time.monotonic()
                self._say(f"{job.name}: begun")
                begun = True
            elif job.gpu == "alone" and all(self.done(name) for name in job.needs):
                break  # others would keep it waiting for ever
        return begun

    def _end(self) -> None:
        for job, (process, start) in list(self.running.items()):
            code = process.poll()
            if code is None:
                continue
            del self.running[job]
            if code == 0:
                (self.notes / f"{job.name}.done").touch()
            else:
                self.failed.append(job.name)
            said = "done" if code == 0 else f"failed with {code}, see {self.notes / job.name}.log"
            self._say(f"{job.name}: {said} after {time.monotonic() - start:.0f} s; {len(self.left)} jobs wait")

    def _environment(self, job: Job) -> dict[str, str]:
        mine = {}
        if job.gpu != "alone":
            mine["OMP_NUM_THREADS"] = str(max(1, usable_cores() // (self.beside + 1)))
        if job.gpu == "part":
            mine["CUDA_MPS_CLIENT_PRIORITY"] = "1"  # the lower of two, so that what takes most of the GPU gets it
        return mine | os.environ

    def _say(self, text: str) -> None:
        print(f"{time.monotonic() - self.start:8.0f} s  {text}", flush=True)


def collect(out: Path, target: Path) -> None:
    """Copy the results of all finished runs, each named after its folder, without what only a resumed run needs."""
    for found in sorted(out.rglob("results.json")):
        name = re.fullmatch(r"(.+)-seed(\d+)", found.parent.name)
        if name is None:  # a part of a benchmark, whose mean stands above it
            continue
        under = found.parent.parent.relative_to(out)
        place = target / "-".join([name[1], *under.parts]) / f"seed-{name[2]}.json"
        content = json.loads(found.read_text())
        content.pop("parts", None)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        print(place)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", type=Path, nargs="?", default=Path(__file__).with_suffix(".toml"))
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the datasets' folders")
    parser.add_argument("--out", type=Path, default=Path("runs/paper"), help="folder of the runs")
    parser.add_argument("--beside", type=int, default=3, help="jobs that share the GPU")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="these jobs; repeatable")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so many")
    parser.add_argument("--wait-for-data", action="store_true", help="begin without datasets that are still to come")
    parser.add_argument("--set", action="append", default=[], metavar="STAGE.KEY=VALUE", help="for trials; repeatable")
    parser.add_argument("--list", action="store_true", help="say what is left to do, and do nothing")
    parser.add_argument("--collect", type=Path, metavar="DIR", help="copy the results to DIR, and do nothing else")
    arguments = parser.parse_args()
    if arguments.collect:
        return collect(arguments.out, arguments.collect)
    jobs = wanted(read_jobs(arguments.jobs), arguments.only)
    campaign = Campaign(
        jobs, arguments.data, arguments.out, arguments.beside,
        60 * arguments.minutes, arguments.set, arguments.wait_for_data,
    )  # fmt: skip
    if arguments.list:
        for job in jobs:
            print(f"{'done' if campaign.done(job.name) else 'left'}  {job.name}: {job.run}")
        return
    if not arguments.wait_for_data:
        for name, readers in campaign.missing().items():
            sys.exit(
                f"{campaign.data / name} is not there, which is read by {listed(readers)}: "
                f"autonovel data fetch {name} --to {campaign.data / name}, or --wait-for-data to begin with the others."
            )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # as Ctrl-C: what runs is ended in order
    campaign.carry_out()
    if campaign.failed or campaign.left or campaign.running:
        stopped, left = ([job.name for job in jobs] for jobs in (campaign.running, campaign.left))
        states = {"failed": campaign.failed, "stopped": stopped, "not begun": left}
        told = [f"{state}: {', '.join(names)}" for state, names in states.items() if names]
        sys.exit("; ".join(told))


if __name__ == "__main__":
    main()
