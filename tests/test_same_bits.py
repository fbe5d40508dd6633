"""One seed, one machine, one number of threads: the same bits, whatever loads the images, however often it is run."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from safetensors.torch import load_file

from autonovel.commands.training import run_recipe
from autonovel.manner import Manner
from autonovel.training import checkpoint
from image_files import write_digits
from runs import TINY, journal

QUICK = ["run.report=false", "run.parallel=false", "pretrain.epochs=2", "supervised.epochs=2", "joint.epochs=2"]
QUICK += ["run.systems=rankstats-incremental", "data.source=folder", "data.per_class=0", "count.new_classes=5"]


def digest(tensors: dict[str, Any]) -> str:
    sums = hashlib.blake2b(digest_size=16)
    for name in sorted(tensors):
        sums.update(name.encode() + tensors[name].contiguous().view(-1).numpy().tobytes())
    return sums.hexdigest()


@pytest.fixture
def checkpoints(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by the checksum of every checkpoint that is written, without its clock."""
    kept: list[str] = []
    save = checkpoint.save

    def keeping(path: Path, *rest: Any) -> None:
        save(path, *rest)
        kept.append(digest(load_file(path)))

    monkeypatch.setattr(checkpoint, "save", keeping)
    return kept


def run(folder: Path, images: Path, loader: str, workers: int, cache: str, *more: str, resume: bool = False) -> None:
    sets = [*QUICK, f"data.path={images}", f"data.loader={loader}", f"data.workers={workers}", f"data.cache={cache}"]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "said.txt").open("a") as said:
        console = Console(file=said, width=200)
        run_recipe(str(TINY), folder, 0, [*sets, *more], Manner("cpu", resume), console=console)


def found(folder: Path) -> dict[str, Any]:
    return {
        "model": (folder / "model.safetensors").read_bytes(),
        "embedding": (folder / "embedding.safetensors").read_bytes(),
        "stages": {path.parent.name: path.read_bytes() for path in folder.glob("stages/*/model.safetensors")},
        "discovery": (folder / "discovery.csv").read_bytes(),
        "classes": json.loads((folder / "classes.json").read_text()),
        "metrics": journal(folder / "metrics.jsonl"),
    }


def test_loaders_workers_and_caches_leave_every_bit_alone(tmp_path: Path, checkpoints: list[str]) -> None:
    images, shared = write_digits(tmp_path / "digits", 12), str(tmp_path / "shared")
    ways = [("resident", 1, "off"), ("resident", 2, "off"), ("streaming", 1, "off"), ("streaming", 0, shared),
            ("streaming", 2, shared)]  # fmt: skip
    seen = []
    for number, way in enumerate(ways):
        checkpoints.clear()
        run(tmp_path / f"run-{number}", images, *way)
        seen.append((found(tmp_path / f"run-{number}"), tuple(checkpoints)))
    assert len(seen[0][1]) == 3  # after the first of two epochs, in three stages
    assert all(one == seen[0] for one in seen[1:])
    assert len(list(Path(shared).glob("decoded-*"))) == 1  # the second run with it found the first one's


class Interrupted(Exception):  # noqa: N818 - stands for a kill
    """Ends a run at once."""


def test_a_run_goes_on_through_another_loader_to_the_same_bits(
    tmp_path: Path, checkpoints: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    images = write_digits(tmp_path / "digits", 12)
    run(tmp_path / "plain", images, "resident", 1, "off")
    undisturbed = list(checkpoints)
    checkpoints.clear()
    save = checkpoint.save

    def interrupting(path: Path, *rest: Any) -> None:
        save(path, *rest)
        raise Interrupted

    monkeypatch.setattr(checkpoint, "save", interrupting)
    ways = [("streaming", 2, "off"), ("resident", 1, "off"), ("streaming", 1, "auto")]
    for part, way in enumerate(ways):
        with pytest.raises(Interrupted):  # in each stage, after its first epoch
            run(tmp_path / "run", images, *way, resume=part > 0)
    monkeypatch.setattr(checkpoint, "save", save)
    run(tmp_path / "run", images, "streaming", 0, "off", resume=True)
    assert found(tmp_path / "run") == found(tmp_path / "plain")
    assert checkpoints == undisturbed
