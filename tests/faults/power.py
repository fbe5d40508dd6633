"""Power cuts: the acts of a command are recorded, and replayed on a disk that forgets what was not synced.

The disk of the model keeps what POSIX promises and no more.  A file's content is safe up to its last sync; a name made,
changed or removed is safe once its folder is synced.  Of the rest it may keep all, some or nothing; three disks stand
for that, one for each way in which file systems are known to disappoint:

* ``nothing``: neither names nor content that were not synced,
* ``names``: all names, no content that was not synced (the empty file after a rename),
* ``torn``: all names, half of the content that was not synced, the rest as zeros.
"""

import hashlib
import os
import pickle
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from autonovel.storage import writing
from autonovel.storage.writing import Act

from .content import NotWholeError, check_whole
from .judge import Bench
from .scenes import Scene, journal_length
from .trial import code_of, run
from .watchers import recorded

KINDS = ("nothing", "names", "torn")
State = dict[str, bytes | None]  # files by name; None is a folder


@dataclass
class _File:
    now: bytes = b""
    safe: bytes = b""


@dataclass
class Disk:
    """Names and contents as processes see them, and as they are safe."""

    now: dict[str, "_File | None"] = field(default_factory=dict)
    safe: dict[str, "_File | None"] = field(default_factory=dict)
    waiting: list[tuple[set[str], dict[str, "_File | None"], list[str]]] = field(default_factory=list)

    @classmethod
    def of(cls, place: Path) -> "Disk":
        """Return a disk that holds what is in ``place``, all of it safe."""
        disk = cls()
        for path in sorted(place.rglob("*")):
            data = path.read_bytes() if path.is_file() else b""
            disk.now[str(path.relative_to(place))] = None if path.is_dir() else _File(data, data)
        disk.safe = dict(disk.now)
        return disk

    def do(self, act: Act, place: Path) -> None:
        """Let an act happen."""
        name = _name(act.path, place)
        if act.kind == "folder":
            self._rename({name: None}, [])
        elif act.kind == "open":
            if name not in self.now:
                self._rename({name: _File()}, [])
            elif act.mode == "wb":
                self.now[name].now = b""  # type: ignore[union-attr]
        elif act.kind == "write":
            self.now[name].now += act.content  # type: ignore[union-attr]
        elif act.kind == "sync":
            self.now[name].safe = self.now[name].now  # type: ignore[union-attr]
        elif act.kind == "sync-folder":
            self._settle(name)
        elif act.kind == "remove":
            self._rename({}, [name])
        elif act.kind == "rename":
            assert act.to is not None
            to = _name(act.to, place)
            moved = {to + one[len(name) :]: file for one, file in self.now.items() if _in(one, name)}
            self._rename(moved, [one for one in self.now if _in(one, name)])
        else:
            raise ValueError(f"{act.kind} cannot be replayed")

    def _rename(self, made: dict[str, "_File | None"], gone: list[str]) -> None:
        for name in gone:
            self.now.pop(name, None)
        self.now |= made
        folders = {os.path.dirname(name) for name in (*made, *gone)}
        self.waiting.append((folders, made, gone))

    def _settle(self, folder: str) -> None:
        left = []
        for folders, made, gone in self.waiting:
            if folder in folders:
                for name in gone:
                    self.safe.pop(name, None)
                self.safe |= made
            else:
                left.append((folders, made, gone))
        self.waiting = left

    def after_a_cut(self, kind: str) -> State:
        """Return what is there when power comes back."""
        names = self.safe if kind == "nothing" else self.now
        state: State = {}
        for name, file in sorted(names.items()):
            if all(above in names for above in _above(name)):
                state[name] = None if file is None else _survives(file, kind)
        return state


def _survives(file: _File, kind: str) -> bytes:
    if kind != "torn" or file.now == file.safe:
        return file.safe
    if not file.now.startswith(file.safe):  # written anew
        return file.now[: len(file.now) // 2] + bytes(len(file.now) - len(file.now) // 2)
    more = len(file.now) - len(file.safe)
    return file.safe + file.now[len(file.safe) :][: more // 2] + bytes(more - more // 2)


def _name(path: Path, place: Path) -> str:
    name = str(path.relative_to(place) if path.is_absolute() else path)
    return "" if name == "." else name


def _in(name: str, folder: str) -> bool:
    return name == folder or name.startswith(folder + "/")


def _above(name: str) -> Iterator[str]:
    while name := os.path.dirname(name):
        yield name


def cuts(bench: Bench, scene: Scene) -> list[tuple[int, str, State, bool]]:
    """Return the different disks after a power cut: number of acts done, kind of disk, its state, and whether the
    command had told its end."""
    acts: list[Act] = []
    with bench.place(scene) as place:
        disk = Disk.of(place)
        note = bench.root / f"acts-{os.getpid()}"

        def make() -> writing.Watcher:
            return recorded(acts)

        def command() -> int:
            code = code_of(scene.command)
            note.write_bytes(pickle.dumps(acts))
            return code

        ended = run(command, place, make)
        if ended.code:
            raise RuntimeError(f"{scene.name} cannot be recorded: {ended.said[-500:]}")
        done: list[Act] = pickle.loads(note.read_bytes())
        seen: set[str] = set()
        found = []
        for number in range(len(done) + 1):
            if number:
                disk.do(done[number - 1], place)
            for kind in KINDS:
                state = disk.after_a_cut(kind)
                key, told = _key(state), number == len(done)
                if key not in seen or told:
                    found.append((number, kind, state, told))
                seen.add(key)
    return found


def _key(state: State) -> str:
    sums = hashlib.blake2b(digest_size=16)
    for name, data in state.items():
        sums.update(f"{name} {'folder' if data is None else len(data)} ".encode() + (data or b""))
    return sums.hexdigest()


def judge(bench: Bench, scene: Scene, state: State, told: bool, recorded_at: str) -> list[str]:
    """Put a disk in place and return what is wrong there, and after going on."""
    bench.undisturbed(scene)
    with bench.place(scene) as place:
        shutil.rmtree(place)
        place.mkdir()
        for name, data in state.items():
            if data is None:
                (place / name).mkdir()
            else:
                (place / name).write_bytes(data.replace(recorded_at.encode(), place.name.encode()))
        try:
            check_whole(place)
        except NotWholeError as error:
            return [f"not whole after the power cut: {error}"]
        if told and scene.after and not journal_length(place):
            return ["an acknowledged edit is lost"]
        return bench.finish(scene, place, scene.go_on(place))
