"""How kinds of bad input are made: what is written where, and the command that meets it."""

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odd_files import colour, encoded
from runs import TINY

USAGE, FOLDER = 2, 4  # exit codes


@dataclass(frozen=True)
class BadInput:
    """A kind of input.

    Attributes:
        name: of the kind.
        given: what it is, in words.
        command: the command, in words.
        prepare: writes it into a folder, given a finished run to spoil, and returns the command's arguments.
        code: with which the command ends.
        says: what it says.
    """

    name: str
    given: str
    command: str
    prepare: Callable[[Path, Path], list[object]]
    code: int
    says: str


def table(name: str, given: str, content: bytes, says: str, file: str = "table.csv") -> BadInput:
    """Return a kind of table of images."""

    def prepare(place: Path, run: Path) -> list[object]:
        for image in ("a.png", "b.png", "c.png"):
            (place / image).write_bytes(encoded(colour(len(image)), "PNG"))
        (place / file).write_bytes(content)
        return ["run", TINY, "--data", place / file, "--set", "data.source=table", "--out", place / "out", "--set",
                "data.per_class=0", "--new-classes", 2]  # fmt: skip

    return BadInput(f"table: {name}", given, "run --data table.csv", prepare, USAGE, says)


def folder(name: str, given: str, write: Callable[[Path], object], says: str, *more: str) -> BadInput:
    """Return a kind of folder of images."""

    def prepare(place: Path, run: Path) -> list[object]:
        (place / "photos").mkdir()
        write(place / "photos")
        return ["run", TINY, "--data", place / "photos", "--set", "data.source=folder", "--out", place / "out", "--set",
                "data.per_class=0", "--new-classes", 2, *more]  # fmt: skip

    return BadInput(f"folder: {name}", given, "run --data DIR", prepare, USAGE, says)


def recipe(name: str, given: str, content: bytes, says: str) -> BadInput:
    """Return a kind of recipe."""

    def prepare(place: Path, run: Path) -> list[object]:
        (place / "mine.toml").write_bytes(content)
        return ["show", place / "mine.toml"]

    return BadInput(f"recipe: {name}", given, "show mine.toml", prepare, USAGE, says)


def setting(given: str, text: str, says: str) -> BadInput:
    """Return a kind of ``--set``."""
    words = f"--set {text}" if len(text) < 40 else f"--set {text[:20]}…"
    return BadInput(words, given, "show demo --set", lambda place, run: ["show", "demo", "--set", text], USAGE, says)


def document(file: str, given: str, change: Callable[[bytes], bytes | None], says: str, *command: str) -> BadInput:
    """Return a kind of damage of a document in a run folder."""
    words = list(command) or ["edits"]

    def prepare(place: Path, run: Path) -> list[object]:
        path = run / file
        content = change(path.read_bytes() if path.exists() else b"")
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        return [words[0], run, *(place / word if word.startswith("out") else word for word in words[1:])]

    return BadInput(f"{file}: {given}", f"{file} of a run folder: {given}", f"{words[0]} RUN", prepare, FOLDER, says)


def changed(**values: Any) -> Callable[[bytes], bytes]:
    """Return a change of some values of a JSON document; ``...`` takes a key away."""

    def change(content: bytes) -> bytes:
        found = json.loads(content) | values
        return json.dumps({key: value for key, value in found.items() if value is not ...}).encode()

    return change


def dataset(name: str, given: str, recipe_name: str, write: Callable[[Path], object], says: str) -> BadInput:
    """Return a kind of benchmark files."""

    def prepare(place: Path, run: Path) -> list[object]:
        write(place)
        alphabet = ["--set", "data.alphabet=Angelic"] if name == "omniglot" else []
        return ["run", recipe_name, "--data", place, "--out", place / "out", *alphabet]

    return BadInput(f"{name}: {given}", given, f"run {recipe_name} --data DIR", prepare, USAGE, says)


def cifar(content: bytes) -> Callable[[Path], object]:
    def write(place: Path) -> None:
        inside = place / "cifar-10-batches-py"
        inside.mkdir()
        for name in (*(f"data_batch_{n}" for n in range(1, 6)), "test_batch", "batches.meta"):
            (inside / name).write_bytes(content)

    return write


def png(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(colour(len(str(path.name))), "PNG"))


def photos(place: Path, make: Callable[[Path], object] = png) -> None:
    """Write two known classes and a pile."""
    for name in ("cat", "dog", "unlabelled"):
        for number in range(30):
            (place / name).mkdir(parents=True, exist_ok=True)
            make(place / name / f"{number}.png")


def no_utf8() -> bytes:
    """Return a Parquet table whose paths are said to be texts and are not."""
    import pyarrow
    from pyarrow import parquet

    content = pyarrow.array([b"\xe1.png", b"\xff.png"]).buffers()
    paths = pyarrow.Array.from_buffers(pyarrow.string(), 2, content)
    file = io.BytesIO()
    parquet.write_table(pyarrow.table({"path": paths, "label": ["cat", ""]}), file)
    return file.getvalue()


def shard(place: Path) -> None:
    (place / "a.tar").write_bytes(b"no tar file at all" * 100)


def model_of_pickles(place: Path, run: Path) -> list[object]:
    photos(place / "photos")
    (place / "model").mkdir()
    (place / "model" / "config.json").write_text('{"model_type": "vit"}')
    (place / "model" / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    return ["discover", place / "photos", "--backbone", f"hf:{place / 'model'}", "--out", place / "out"]


def weights(place: Path, run: Path) -> list[object]:
    (place / "weights.pt").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    return ["run", TINY, "--out", place / "out", "--set", "pretrain.kind=weights", "--set",
            f"pretrain.weights={place / 'weights.pt'}"]  # fmt: skip


def stolen(place: Path, run: Path) -> list[object]:
    """Let a run folder name a file of the machine as one of its images."""
    (place / "secret.key").write_text("PRIVATE KEY")
    lines = (run / "discovery.csv").read_text().splitlines(keepends=True)
    path = lines[2].split(",")[1]
    lines[2] = lines[2].replace(path, str(place / "secret.key"))
    (run / "discovery.csv").write_text("".join(lines))
    return ["export", run, place / "out", "--to", "folders"]


def listed_in(content: bytes) -> Callable[[Path, Path], list[object]]:
    def prepare(place: Path, run: Path) -> list[object]:
        (place / "list").write_bytes(content)
        return ["predict", run, "--from", place / "list", "--to", place / "out.csv"]

    return prepare


def make_broken(path: Path) -> None:
    path.write_bytes(b"words")


def recipe_with(run: Path, key: str) -> None:
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(facts | {"recipe": facts["recipe"] | {key: 1}}))


def copied(run: Path, to: Path) -> Path:
    """Return a run of the test's own."""
    return Path(shutil.copytree(run, to))
