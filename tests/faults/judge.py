"""One trial each: let something happen to a command, go on, and say what is not as if nothing had happened."""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import watchers
from .content import NotWholeError, check_whole, content, differences
from .scenes import RUN, SCENES, Scene, acknowledged, journal_length, make_templates
from .trial import Command, Ended, Trial, import_as_after, run

SIZES = 12  # of small file systems
DONE, REFUSED = 0, "is in use by another autonovel process"


@dataclass
class Undisturbed:
    """A scene without any disturbance: what is there at the end, and which steps at the file system led to it.

    Attributes:
        wanted: content of all files.
        loose: files that differ between two undisturbed runs, since times are drawn in them.
        steps: when and kind of every step.
        seconds: that the command took.
        size: of all files, in bytes.
    """

    wanted: dict[str, Any]
    loose: set[str]
    steps: list[str]
    seconds: float
    size: int

    @property
    def acts(self) -> int:
        return sum(step.startswith("before") for step in self.steps)

    @property
    def boundaries(self) -> list[int]:
        """Return the steps that leave different disks: before every act, and after the last."""
        return [n for n, step in enumerate(self.steps) if step.startswith("before")] + [len(self.steps) - 1]


@dataclass
class Bench:
    """Where trials take place: templates, and the undisturbed runs of scenes."""

    root: Path
    scenes: Sequence[Scene] = SCENES
    known: dict[str, Undisturbed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.templates = self.root / "templates"
        if not self.templates.exists():
            make_templates(self.templates, self.scenes)

    @contextmanager
    def place(self, scene: Scene) -> Iterator[Path]:
        """Give a folder as the command of ``scene`` finds it; gone afterwards."""
        place = self.root / place_name(os.getpid())
        self._clear(place)
        scene.prepare(place, self.templates)
        try:
            yield place
        finally:
            self._clear(place)

    @staticmethod
    def _clear(place: Path) -> None:
        shutil.rmtree(place, ignore_errors=True)
        place.with_name(place.name + ".said").unlink(missing_ok=True)

    def undisturbed(self, scene: Scene) -> Undisturbed:
        """Return the scene without disturbance, after doing it twice."""
        if scene.name not in self.known:
            found, note = [], self.root / f"steps-{os.getpid()}"
            for _ in range(2):
                note.unlink(missing_ok=True)
                with self.place(scene) as place:
                    begun = time.monotonic()
                    for command in (scene.command, *scene.after):
                        first = command is scene.command
                        ended = (import_as_after if first and not found else run)(
                            command, place, watchers.counted(note) if first else None
                        )
                        if ended.code:
                            raise RuntimeError(f"{scene.name} fails undisturbed ({ended.code}): {ended.said[-2000:]}")
                    found.append(content(place))
                    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
            one, other = found
            if one.keys() != other.keys():
                raise RuntimeError(f"{scene.name} writes other files the second time: {one.keys() ^ other.keys()}")
            loose = {name for name in one if one[name] != other[name]}
            steps = note.read_text().splitlines()
            self.known[scene.name] = Undisturbed(one, loose, steps, time.monotonic() - begun, size)
        return self.known[scene.name]

    def finish(self, scene: Scene, place: Path, commands: list[Command], optional: tuple[str, ...] = ()) -> list[str]:
        """Type ``commands`` and return how the end differs from the undisturbed one."""
        for command in commands:
            ended = run(command, place)
            if ended.code:
                return [f"going on ended with {ended.code}: {ended.said.strip()[-400:]}"]
        plain = self.undisturbed(scene)
        try:
            return differences(content(place), plain.wanted, plain.loose, optional)
        except NotWholeError as error:
            return [f"not whole at the end: {error}"]


def _after_a_kill(bench: Bench, scene: Scene, place: Path, ended: Ended) -> list[str]:
    """Return what is wrong right after a kill, and after going on."""
    try:
        check_whole(place)
    except NotWholeError as error:
        return [f"not whole after the kill: {error}"]
    if scene.after and acknowledged(ended.said) and not journal_length(place):
        return ["an acknowledged edit is lost"]
    return bench.finish(scene, place, scene.go_on(place))


def kill(bench: Bench, scene: Scene, step: int) -> list[str]:
    """Kill the command at a step."""
    bench.undisturbed(scene)
    with bench.place(scene) as place:
        ended = run(scene.command, place, watchers.killed_at(step))
        if not ended.killed:
            return [f"was not killed but ended with {ended.code}: {ended.said.strip()[-400:]}"]
        return _after_a_kill(bench, scene, place, ended)


def random_kill(bench: Bench, scene: Scene, seed: int) -> list[str]:
    """Kill the command at a random moment, in one case of three also what follows, and go on."""
    rng = random.Random(f"{scene.name} {seed}")
    plain = bench.undisturbed(scene)
    with bench.place(scene) as place:
        commands: list[Command] = [scene.command]
        for _ in range(1 + (rng.random() < 1 / 3)):
            if not commands:
                break
            trial = Trial(commands[0], place)
            time.sleep(rng.uniform(0, 1.1 * plain.seconds))
            trial.kill()
            ended = trial.wait()
            if ended.code not in (0, -signal.SIGKILL):
                return [f"ended with {ended.code} before it was killed: {ended.said.strip()[-400:]}"]
            if ended.code == 0:  # done before it could be killed
                return bench.finish(scene, place, list(scene.after) if len(commands) == 1 else commands[1:])
            commands = scene.go_on(place)
        return _after_a_kill(bench, scene, place, ended)


def full_disk(bench: Bench, scene: Scene, act: int) -> list[str]:
    """Let the disk be full from an act on; then there is space again, and the same command goes on."""
    bench.undisturbed(scene)
    with bench.place(scene) as place:
        ended = run(scene.command, place, watchers.full_from(act))
        if ended.code == DONE:  # what could not be kept was not needed
            return bench.finish(scene, place, list(scene.after), scene.optional)
        if not ended.plain:
            return [f"ended with {ended.code} and no sentence of ours: {ended.said.strip()[-600:]}"]
        try:
            check_whole(place)
        except NotWholeError as error:
            return [f"not whole on the full disk: {error}"]
        return bench.finish(scene, place, scene.go_on(place))


def small_disk(bench: Bench, scene: Scene, number: int) -> list[str]:
    """Do the command on a file system that has room for a part of what it writes; then it grows, and we go on."""
    plain = bench.undisturbed(scene)
    with bench.place(scene) as place:
        before = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
        needed = max(plain.size - before, 1 << 16)
        size = before + (len(list(place.rglob("*"))) + 2) * 4096 + needed * (number + 1) // (SIZES + 1)
        shutil.rmtree(place)
        place.mkdir()
        _mount(place, f"size={size}")
        try:
            scene.prepare(place, bench.templates)
            ended = run(scene.command, place)
            if ended.code != DONE and not ended.plain:
                return [f"ended with {ended.code} and no sentence of ours: {ended.said.strip()[-600:]}"]
            check_whole(place)
            _mount(place, "remount,size=256M")
            return bench.finish(scene, place, scene.go_on(place) if ended.code else list(scene.after), scene.optional)
        except NotWholeError as error:
            return [f"not whole on the full disk: {error}"]
        finally:
            subprocess.run(["umount", str(place)], check=True)


def _mount(place: Path, options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True, capture_output=True)


def may_mount() -> bool:
    """Tell whether small file systems can be made here."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            _mount(Path(folder), "size=64k")
        except (OSError, subprocess.CalledProcessError):
            return False
        subprocess.run(["umount", folder], check=True)
    return True


def deleted(bench: Bench, scene: Scene, step: int) -> list[str]:
    """Delete the run folder under the command at a step; what it says must be ours, and starting again must do."""
    bench.undisturbed(scene)
    with bench.place(scene) as place:
        folder = place / scene.locked
        ended = run(scene.command, place, watchers.deleted_at(step, folder))
        last = step >= len(bench.undisturbed(scene).steps) - 6  # nothing was left to write
        if not ended.plain and not (last and ended.code == DONE):
            return [f"ended with {ended.code} and no sentence of ours: {ended.said.strip()[-600:]}"]
    with bench.place(scene) as place:
        return bench.finish(scene, place, [scene.command, *scene.after])


def second_process(bench: Bench, scene: Scene, step: int) -> list[str]:
    """Let a second process meet a first one that stands still at a step, then one that was killed there."""
    bench.undisturbed(scene)
    with bench.place(scene) as place:
        first = Trial(scene.command, place, watchers.stopped_at(step))
        try:
            if not first.wait_until_it_stands():
                return ["the first process did not stand still"]
            before = content_or_nothing(place)
            commands = scene.go_on(place)
            ended = run(commands[0], place)
            if not (ended.code == 4 and REFUSED in ended.said):
                return [f"the second process was not refused: {ended.code}, {ended.said.strip()[-400:]}"]
            if content_or_nothing(place) != before:
                return ["the second process changed something"]
        finally:
            first.kill()
            first.wait()
        return _after_a_kill(bench, scene, place, Ended(-signal.SIGKILL, ""))


def place_name(pid: int) -> str:
    """Return what the folder of a process is called; all names are of one length, since paths are in documents."""
    return f"trial-{pid:08d}"


def content_or_nothing(place: Path) -> dict[str, bytes]:
    """Return all files as they are."""
    return {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def read_only(bench: Bench, scene: Scene, _: int) -> list[str]:
    """Let an ordinary user do the command where nothing may be written."""
    bench.undisturbed(scene)
    with bench.place(scene) as place:
        place.with_name(place.name + ".said").touch(0o666)
        os.chmod(place.with_name(place.name + ".said"), 0o666)
        paths = [place, *place.rglob("*")]
        for path in paths:
            if not path.is_symlink():
                path.chmod(0o555 if path.is_dir() else 0o444)
        before = content_or_nothing(place)
        ended = run(scene.command, place, as_nobody=True)
        for path in paths:
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else 0o644)
        if not ended.plain:
            return [f"ended with {ended.code} and no sentence of ours: {ended.said.strip()[-600:]}"]
        if content_or_nothing(place) != before:
            return ["something changed"]
        return bench.finish(scene, place, [scene.command, *scene.after])


def kill_among_edits(bench: Bench, scene: Scene, seed: int) -> list[str]:
    """Kill a process that makes edit after edit; what it has acknowledged must be there, and one more at most."""
    rng = random.Random(f"edits {seed}")
    with bench.place(scene) as place:

        def edit_on() -> None:
            from autonovel.editing.edited import EditedRun

            edited, note = EditedRun(RUN), os.open("acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            for number in range(1000):
                edited.rename(5, f"name {number}")
                os.write(note, b".")

        trial = Trial(edit_on, place)
        time.sleep(rng.uniform(0.02, 0.6))
        trial.kill()
        if not trial.wait().killed:
            return ["was not killed"]
        note = place / "acknowledged"
        told, kept = note.stat().st_size if note.exists() else 0, journal_length(place)
        if not told <= kept <= told + 1:
            return [f"{told} edits were acknowledged, and {kept} are there"]
        for command in (("rename", RUN, "5", "at last"), ("edits", RUN, "--json")):
            ended = run(command, place)
            if ended.code:
                return [f"{command[0]} after the kill ended with {ended.code}: {ended.said[-400:]}"]
        document = json.loads((place / RUN / "classes.json").read_text())
        right = document["edits"] == kept + 1 and any(one["name"] == "at last" for one in document["classes"])
        return [] if right else ["classes.json does not follow the edits"]


def scene_named(name: str) -> Scene:
    return next(scene for scene in SCENES if scene.name == name)
