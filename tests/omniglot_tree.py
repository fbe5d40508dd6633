"""A small Omniglot in the authors' layout: each character is a shape of its own, each drawing shifts it a little."""

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from autonovel.data import layouts

SIDE = 105
BACKGROUND = {"Latin": 6, "Greek": 6, "Korean": 6, "Cyrillic": 6}
EVALUATION = {"Angelic": 3, "Keble": 4}
DRAWINGS = 6


def drawing(character: int, number: int) -> bytes:
    """Return a PNG of one bit: black strokes whose place tells the character, moved by a pixel or two."""
    paper = np.ones((SIDE, SIDE), dtype=bool)
    rng = np.random.default_rng(character)
    for _ in range(3):
        top, left = rng.integers(10, 80, size=2) + number % 3
        height, width = rng.permutation([6, 30])
        paper[top : top + height, left : left + width] = False
    out = io.BytesIO()
    Image.fromarray(paper).save(out, "png")
    return out.getvalue()


def write(folder: Path, zipped: bool = False) -> Path:
    """Write the alphabets under ``folder``, unpacked or as the two zip files."""
    character = 0
    for split, alphabets in (("background", BACKGROUND), ("evaluation", EVALUATION)):
        files = {}
        for alphabet, count in alphabets.items():
            for place in range(1, count + 1):
                for number in range(1, DRAWINGS + 1):
                    name = f"images_{split}/{alphabet}/character{place:02d}/{character + 1:04d}_{number:02d}.png"
                    files[name] = drawing(character, number)
                character += 1
        folder.mkdir(parents=True, exist_ok=True)
        if zipped:
            with zipfile.ZipFile(folder / f"images_{split}.zip", "w") as archive:
                for name, content in files.items():
                    archive.writestr(name, content)
            continue
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    return folder


def write_published(folder: Path) -> Path:
    """Write zip files with as many characters and drawings as are published."""
    from autonovel.data.layouts import OMNIGLOT

    groups = -(-OMNIGLOT.background // 50)
    background = {f"Group{number:02d}": 50 for number in range(1, groups)}
    background = {"Latin": OMNIGLOT.background - sum(background.values())} | background
    folder.mkdir(parents=True)
    character = 0
    for split, alphabets in (("background", background), ("evaluation", OMNIGLOT.evaluation)):
        with zipfile.ZipFile(folder / f"images_{split}.zip", "w") as archive:
            for alphabet, count in alphabets.items():
                for place in range(1, count + 1):
                    variants = [drawing(character, number) for number in range(3)]
                    for number in range(OMNIGLOT.drawings):
                        name = (
                            f"images_{split}/{alphabet}/character{place:02d}/{character + 1:04d}_{number + 1:02d}.png"
                        )
                        archive.writestr(name, variants[number % 3])
                    character += 1
    return folder


@dataclass(frozen=True)
class _Small:
    drawings: int = DRAWINGS
    background: int = sum(BACKGROUND.values())

    @property
    def evaluation(self) -> dict[str, int]:
        return EVALUATION


def publish(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the published counts be those of the small tree."""
    from autonovel.data import omniglot

    monkeypatch.setattr(layouts, "OMNIGLOT", _Small())
    monkeypatch.setattr(omniglot, "OMNIGLOT", _Small())


SETTINGS = [
    "data.first_known=24", "pretrain.held_out=Latin", "pretrain.epochs=2", "pretrain.batch_size=24",
    "pretrain.classes_per_batch=6", "pretrain.support=2", "joint.epochs=2", "joint.batch_size=16", "joint.watch=0",
    "joint.labelled_per_batch=8", "similarity.epochs=1", "similarity.batch_size=12", "similarity.classes_per_batch=4",
    "similarity.hidden=32", "kcl.epochs=2", "kcl.batch_size=12", "dtc.epochs=2", "dtc.start_epochs=1",
    "dtc.batch_size=12", "network.head_width=16", "run.report=false", "pretrain.threads=1", "joint.threads=1",
]  # fmt: skip
