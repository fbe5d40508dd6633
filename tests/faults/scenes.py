"""Every command that writes, on something tiny: what it finds, what is typed, and what is typed after a crash."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .trial import Command, import_as_after, run

RECIPE = str(Path(__file__).with_name("tiny.toml"))
RUN, IMAGES = "run", "images"
IMAGE = "000003"  # the id of an image of the sample
AFTERWARDS = ("rename", RUN, "new-3", "renamed afterwards")  # an edit after an edit: it must find all in order


@dataclass(frozen=True)
class Scene:
    """A command and its surroundings.

    Attributes:
        name: what the table calls it.
        command: what is typed, in the folder that ``start`` has filled.
        start: names of the templates that are there before.
        again: what is typed after a crash, given the folder; by default the command itself.
        after: what is typed at the end in any case.
        optional: files that the command may do without where the disk is full.
        locked: the folder that the command locks.
    """

    name: str
    command: Command
    start: tuple[str, ...] = ()
    again: Callable[[Path], Sequence[Command]] | None = None
    after: tuple[Command, ...] = ()
    optional: tuple[str, ...] = ()
    locked: str = ""
    tags: frozenset[str] = field(default=frozenset())

    def prepare(self, place: Path, templates: Path) -> Path:
        """Fill the empty folder ``place`` with what the command finds."""
        place.mkdir(parents=True, exist_ok=True)
        for name in self.start:
            source, _, target = name.partition(":")
            shutil.copytree(templates / source, place / (target or source), symlinks=True)
        return place

    def go_on(self, place: Path) -> list[Command]:
        """Return what a person types after a crash."""
        return [*(self.again(place) if self.again else [self.command]), *self.after]


def _training(*arguments: str, out: str = RUN) -> dict[str, object]:
    """Return command and sequel of a run, which goes on with --resume."""
    command = (*arguments, "--out", out, "--device", "cpu")
    return {"command": command, "again": lambda _: [(*command, "--resume")], "locked": out}


def _edit(*arguments: str) -> dict[str, object]:
    """Return command and sequel of an edit: typed again unless it is in the journal by now."""

    def again(place: Path) -> list[Command]:
        path = place / RUN / "edits.jsonl"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        before = 1 if arguments[0] == "undo" else 0
        return [arguments] if len(lines) <= before else []

    start = ("edited:run",) if arguments[0] == "undo" else (RUN,)
    return {"command": arguments, "again": again, "after": (AFTERWARDS,), "start": start, "locked": RUN}


def _unless_there(path: str, command: Command) -> Callable[[Path], list[Command]]:
    """Type the command again unless what it writes is there: it is put there whole."""
    return lambda place: [] if (place / path).exists() else [command]


def _counting(place: Path) -> list[Command]:
    begun = (place / RUN / "run.json").exists()
    return [("count", RUN) if begun else COUNT]


def _posted() -> int:
    """Make an edit through the review page's address, without a browser."""
    from starlette.testclient import TestClient

    from autonovel.editing.edited import EditedRun
    from autonovel.review.app import make_app
    from autonovel.review.view import View

    app = make_app(View(EditedRun(RUN), None), 80, "token")
    wish = {"edit": {"edit": "rename", "number": 5, "name": "first"}, "based_on": 0}
    client = TestClient(app, base_url="http://127.0.0.1:80", headers={"Authorization": "Bearer token"})
    answer = client.post("/api/edit", json=wish, headers={"Host": "127.0.0.1:80"})
    if answer.status_code != 200:
        print(f"error: {answer.json()['error']}")
    return 0 if answer.status_code == 200 else 4


def _saved() -> int:
    """Save an estimator from Python."""
    from autonovel import Discoverer
    from autonovel.errors import AutonovelError

    try:
        Discoverer.load(RUN).save("saved")
    except AutonovelError as error:
        print(f"error: {error}")
        return error.exit_code
    return 0


COUNT = ("count", RECIPE, "--out", RUN, "--device", "cpu")
DISCOVER = (
    "discover", IMAGES, "--recipe", RECIPE, "--set", "run.trials=1", "--set", "run.report=true",
    "--set", "data.size=8", "--set", "data.loader=streaming",
)  # fmt: skip
PREDICT = ("predict", RUN, IMAGES, "--to", "answers.csv", "--device", "cpu")
STAGES = ("pretrain", "supervised", "joint", "incremental", "similarity", "kcl", "mcl", "dtc", "linear")
SMALL_DEMO = [
    "data.per_class=6", "data.size=8", *(f"{stage}.epochs=1" for stage in STAGES), "dtc.start_epochs=1",
    *(f"{stage}.batch_size={15 if stage == 'supervised' else 20}" for stage in STAGES), "joint.group=10",
    "incremental.group=10", "run.parallel=false", "run.report=false", "run.checkpoint_seconds=0",
]  # fmt: skip
DEMO = ("demo", *(part for one in SMALL_DEMO for part in ("--set", one)))


def _export(to: str, *more: str) -> dict[str, object]:
    dest = {"csv": "table.csv", "onnx": "model.onnx"}.get(to, "exported")
    command = ("export", RUN, dest, "--to", to, *more)
    return {"command": command, "again": _unless_there(dest, command), "start": ("filed:run", IMAGES)}


REPLACE = ("export", RUN, "exported", "--to", "folders", "--overwrite")
MAP = ("run/map.safetensors", "run/cache/survey-*", "run/count.png", "run/systems.*")
SCENES = (
    Scene("run", **_training("run", RECIPE)),
    Scene("run --overwrite", ("run", RECIPE, "--out", RUN, "--device", "cpu", "--overwrite"), (RUN,), locked=RUN),
    Scene("demo --compare", **_training(*DEMO, "--compare"), optional=MAP, tags=frozenset({"long"})),
    Scene("discover (files, streamed, trials, report)", **_training(*DISCOVER), start=(IMAGES,), optional=MAP,
          tags=frozenset({"long"})),
    Scene("reproduce --sweep-k", ("reproduce", RECIPE, "--sweep-k", "3", "--out", "runs", "--device", "cpu"),
          locked="runs/tiny-seed0", tags=frozenset({"long"})),
    Scene("count", COUNT, again=_counting, optional=MAP, locked=RUN),
    Scene("refine", **_training("refine", RUN, out="refined"), start=("edited:run",)),
    Scene("rename", **_edit("rename", RUN, "new-1", "first")),
    Scene("merge", **_edit("merge", RUN, "new-1", "new-2")),
    Scene("split", **_edit("split", RUN, "new-1")),
    Scene("move", **_edit("move", RUN, IMAGE, "--to", "new-2")),
    Scene("junk", **_edit("junk", RUN, "--class", "new-2")),
    Scene("undo", **_edit("undo", RUN)),
    Scene("review (an edit on the page)", **(_edit("rename", RUN, "new-1", "first") | {"command": _posted})),
    Scene("report", ("report", RUN), (RUN,), optional=MAP),
    Scene("report --folder", ("report", RUN, "--folder"), (RUN,), optional=MAP),
    Scene("figures", ("figures", RUN, "--to", "drawn"), (RUN,)),
    Scene("export csv", **_export("csv")),
    Scene("export folders", **_export("folders")),
    Scene("export folders --overwrite", REPLACE, ("filed:run", IMAGES, "exported"), again=lambda _: [REPLACE]),
    Scene("export fiftyone", **_export("fiftyone")),
    Scene("export labelstudio", **_export("labelstudio")),
    Scene("export onnx", **_export("onnx"), tags=frozenset({"long"})),
    Scene("predict", PREDICT, (RUN, IMAGES), again=_unless_there("answers.csv", PREDICT)),
    Scene("data fetch", ("data", "fetch", "small", "--to", "fetched")),
    Scene("Discoverer.save", _saved, (RUN,), again=_unless_there("saved", _saved)),
)  # fmt: skip


def make_templates(folder: Path, scenes: Sequence[Scene]) -> None:
    """Make what ``scenes`` start from: pictures, a finished run, the same with an edit, one with files, an export."""
    wanted = {name.partition(":")[0] for scene in scenes for name in scene.start}
    folder.mkdir(parents=True)
    _write_pictures(folder / IMAGES)
    import_as_after(("run", RECIPE, "--out", RUN, "--device", "cpu"), folder)
    if "edited" in wanted:
        shutil.copytree(folder / RUN, folder / "edited")
        _do(folder, ("rename", "edited", "new-1", "named before"))
    if wanted & {"filed", "exported"}:
        more = ("--out", "filed", "--device", "cpu", "--set", "run.trials=0", "--set", "run.report=false")
        _do(folder, (*DISCOVER, *more))
        _do(folder, ("export", "filed", "exported", "--to", "folders"))
    for path in folder.rglob(".lock"):
        path.unlink()


def _do(folder: Path, command: Command) -> None:
    ended = run(command, folder)
    if ended.code:
        raise RuntimeError(f"{command} ended with {ended.code}: {ended.said}")


def _write_pictures(root: Path) -> None:
    """Write 6 digits of each class as PNGs of 8 pixels: 0 to 4 in folders of their own, the others unsorted."""
    from PIL import Image

    from autonovel.data import sample

    source = sample.load()
    for digit in range(10):
        folder = root / (str(digit) if digit < 5 else "unlabelled")
        folder.mkdir(parents=True, exist_ok=True)
        for number, row in enumerate((source.labels == digit).nonzero()[:6, 0].tolist()):
            picture = Image.fromarray(source.images[row, 0].numpy()).resize((8, 8))
            picture.save(folder / f"{digit}-{number}.png")


def acknowledged(said: str) -> bool:
    """Tell whether a command has told a person that an edit was made."""
    return "Edit " in said and "error:" not in said


def journal_length(place: Path) -> int:
    """Return how many whole edits the journal of the run has."""
    path = place / RUN / "edits.jsonl"
    return (
        sum(isinstance(json.loads(line), dict) for line in path.read_bytes().split(b"\n")[:-1]) if path.exists() else 0
    )
