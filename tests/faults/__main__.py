"""``make faults``: try everything and print what became of it."""

import argparse
import json
import math
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from . import judge, power, trial
from .judge import Bench
from .scenes import SCENES, Scene
from .server import downloads
from .tables import Task, Verdict, markdown

POWER = ("run", "refine", "rename", "merge", "undo", "count", "export csv", "predict", "report --folder")
LOCKED = {"run": 6, "discover (files, streamed, trials, report)": 2, "refine": 4, "count": 4, "rename": 2}
DELETED = {"run": 12, "refine": 12, "count": 12, "rename": 8}
RANDOM = {
    "run": 25, "discover (files, streamed, trials, report)": 15, "refine": 10, "reproduce --sweep-k": 10,
    "demo --compare": 5, "count": 5, "report --folder": 5, "export folders --overwrite": 10, "predict": 5, "figures": 5,
    "data fetch": 5,
}  # fmt: skip
SMALL = ("run", "discover (files, streamed, trials, report)", "refine", "report --folder", "export folders", "predict")
EDITING = 30  # kills of a process that makes one edit after another
# commands whose acts are for the most part those of ``run``: every so many are tried, unless all are asked for
STRIDES = {
    "kill": {"run --overwrite": 4, "demo --compare": 8, "discover (files, streamed, trials, report)": 3,
             "reproduce --sweep-k": 4},
    "full disk": {"run": 2, "run --overwrite": 8, "demo --compare": 24, "reproduce --sweep-k": 12, "refine": 2,
                  "discover (files, streamed, trials, report)": 8, "export onnx": 3},
}  # fmt: skip
RESULTS = "faults.json"
LAST = 24  # boundaries at the end of each command that are tried in any case


def tasks(
    bench: Bench, scenes: list[Scene], every: int, kinds: set[str], strides: dict[str, dict[str, int]]
) -> list[Task]:
    """Return all that is to be tried."""
    found: list[Task] = []
    for scene in scenes:
        plain = bench.undisturbed(scene)
        kills, full = (every * strides.get(kind, {}).get(scene.name, 1) for kind in ("kill", "full disk"))
        steps = plain.boundaries[::kills] + ([] if every > 1 else plain.boundaries[-LAST:])
        found += [Task("kill", scene.name, step) for step in sorted(set(steps))]
        found += [Task("full disk", scene.name, act) for act in range(0, plain.acts, full)]
        if scene.name in SMALL and judge.may_mount():
            found += [Task("small disk", scene.name, number) for number in range(0, judge.SIZES, every)]
        found.append(Task("read-only", scene.name, 0))
        found += [Task("random", scene.name, seed) for seed in range(RANDOM.get(scene.name, 0) // every)]
        spread = plain.boundaries
        for kind, counts, first, last in (("second process", LOCKED, 0.3, 0.85), ("deleted", DELETED, 0.1, 0.95)):
            n = -(-counts.get(scene.name, 0) // every)
            places = [int(len(spread) * (first + (last - first) * k / max(n, 1))) for k in range(n)]
            found += [Task(kind, scene.name, spread[place]) for place in places]
        if scene.name == "rename":
            found += [Task("kill among edits", scene.name, seed) for seed in range(EDITING // every)]
        if scene.name in POWER and "power cut" in kinds:
            disks = power.cuts(bench, scene)
            DISKS[scene.name] = disks
            found += [Task("power cut", scene.name, number) for number in range(0, len(disks), every)]
    return [task for task in found if task.kind in kinds]


RECORDED_AT = judge.place_name(os.getpid())
DISKS: dict[str, list[tuple[int, str, power.State, bool]]] = {}


def _cut(bench: Bench, scene: Scene, number: int) -> list[str]:
    _, _, state, told = DISKS[scene.name][number]
    return power.judge(bench, scene, state, told, RECORDED_AT)


JUDGES: dict[str, Callable[[Bench, Scene, int], list[str]]] = {
    "kill": judge.kill,
    "random": judge.random_kill,
    "kill among edits": judge.kill_among_edits,
    "power cut": _cut,
    "full disk": judge.full_disk,
    "small disk": judge.small_disk,
    "read-only": judge.read_only,
    "deleted": judge.deleted,
    "second process": judge.second_process,
}


def carry_out(bench: Bench, wanted: list[Task], processes: int, until: float) -> list[Verdict]:
    """Try all, or as many as there is time for, in several processes, and tell how far they are."""
    notes = [bench.root / f"verdicts-{number}" for number in range(processes)]
    workers = [_worker(bench, wanted[number::processes], note, until) for number, note in enumerate(notes)]
    begun, told = time.monotonic(), 0.0
    while workers:
        workers = [pid for pid in workers if os.waitpid(pid, os.WNOHANG)[0] == 0]
        done = sum(note.read_bytes().count(b"\n") for note in notes if note.exists())
        now = time.monotonic()
        if done and now - told > 10:
            told = now
            left = (now - begun) / done * (len(wanted) - done)
            print(f"{done:,} of {len(wanted):,} trials, about {left / 60:.0f} minutes left", flush=True)
        time.sleep(0.2)
    return [Verdict(**json.loads(line)) for note in notes if note.exists() for line in note.read_text().splitlines()]


def _worker(bench: Bench, wanted: list[Task], note: Path, until: float) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        with note.open("w", buffering=1) as file:
            for task in wanted:
                if time.monotonic() > until:
                    break
                try:
                    wrong = JUDGES[task.kind](bench, judge.scene_named(task.scene), task.number)
                except Exception as error:
                    wrong = [f"the trial itself failed: {error!r}"]
                file.write(
                    json.dumps({"kind": task.kind, "scene": task.scene, "number": task.number, "wrong": wrong}) + "\n"
                )
    finally:
        os._exit(0)


def _tried_before(folder: Path | None, wanted: list[Task]) -> tuple[list[Verdict], set[Task], float]:
    """Return what of ``wanted`` an earlier call has tried, with success and without, and the seconds that took."""
    if folder is None or not (folder / RESULTS).exists():
        return [], set(), 0.0
    content, asked = json.loads((folder / RESULTS).read_text()), set(wanted)
    tried = [one for one in (Verdict(**each) for each in content["verdicts"]) if one.task in asked]
    return [one for one in tried if not one.wrong], {one.task for one in tried if one.wrong}, content["seconds"]


def main() -> int:
    """Try everything, print the table, and tell by the exit code whether anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="Try every so many points only.")
    parser.add_argument("--all", action="store_true", help="Every point of every command: hours.")
    parser.add_argument("--only", action="append", choices=[scene.name for scene in SCENES], help="Repeatable.")
    parser.add_argument("--kind", action="append", choices=list(JUDGES), default=[], help="Repeatable.")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--minutes", type=float, default=math.inf, help="Stop after so many; what was tried counts.")
    parser.add_argument("--to", type=Path, help="Folder for faults.md and faults.json; goes on with what is there.")
    asked = parser.parse_args()
    begun = time.monotonic()
    memory = Path("/dev/shm")
    root = Path(tempfile.mkdtemp(prefix="faults-", dir=memory if os.access(memory, os.W_OK) else None))
    root.chmod(0o755)
    scenes = [scene for scene in SCENES if not asked.only or scene.name in asked.only]
    try:
        trial.warm_up()
        with downloads():
            bench = Bench(root, scenes)
            wanted = tasks(bench, scenes, asked.every, set(asked.kind or JUDGES), {} if asked.all else STRIDES)
            print(f"{len(wanted):,} trials of {len(scenes)} commands in {asked.processes} processes.", flush=True)
            before, failed, seconds = _tried_before(asked.to, wanted)
            done = {one.task for one in before}
            wanted = [task for task in wanted if task not in done]
            if before:
                print(f"{len(before):,} of them were tried before; {len(wanted):,} are left.", flush=True)
            random.Random(0).shuffle(wanted)  # so that a part, where the time is limited, is a part of everything
            wanted.sort(key=lambda task: task not in failed)  # what failed before comes first
            found = before + carry_out(bench, wanted, asked.processes, time.monotonic() + 60 * asked.minutes)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    seconds += time.monotonic() - begun
    report = markdown(found, {scene.name: bench.undisturbed(scene) for scene in scenes}, seconds)
    print(report)
    wrong = [verdict for verdict in found if verdict.wrong]
    for verdict in wrong[:40]:
        print(f"{verdict.kind}, {verdict.scene}, {verdict.number}: {'; '.join(verdict.wrong)}")
    if asked.to:
        asked.to.mkdir(parents=True, exist_ok=True)
        (asked.to / "faults.md").write_text(report)
        content = {"seconds": seconds, "verdicts": [vars(verdict) for verdict in found]}
        (asked.to / RESULTS).write_text(json.dumps(content, indent=0) + "\n")
    missing = len(wanted) + len(before) - len(found)
    if missing:
        print(f"{missing:,} of {len(found) + missing:,} points were not tried; the same command goes on with them.")
    return int(bool(wrong) or (missing > 0 and math.isinf(asked.minutes)))


if __name__ == "__main__":
    sys.exit(main())
