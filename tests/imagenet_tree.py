"""A small ImageNet in its usual tree: every class has colours and stripes of its own, pictures have several shapes."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from autonovel.data import layouts
from autonovel.data.layouts import ImagenetLayout

KNOWN = tuple(f"n0100000{number}" for number in range(8))
UNLABELLED = tuple(f"n0200000{number}" for number in range(5))
SUBSETS = {"A": UNLABELLED[:3], "B": UNLABELLED[2:]}  # one class in common, as the real ones have some
TRAIN, VAL = 12, 2
SHAPES = ((44, 40), (40, 52), (64, 48))


def picture(wnid: str, number: int) -> Image.Image:
    """Return an oblong picture: stripes whose colours and width tell the class, moved and with noise."""
    rng = np.random.default_rng(int(wnid[1:]))
    colours, period = rng.integers(0, 256, (2, 3)), int(rng.integers(3, 12))
    width, height = SHAPES[number % len(SHAPES)]
    own = np.random.default_rng([int(wnid[1:]), number])
    stripe = ((np.arange(width) + own.integers(period)) // period) % 2
    pixels = colours[stripe][None].repeat(height, axis=0) + own.integers(-20, 21, (height, width, 3))
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def write(root: Path) -> Path:
    """Write all classes under ``root``, one of the files in grey."""
    for split, count in (("train", TRAIN), ("val", VAL)):
        for wnid in (*KNOWN, *UNLABELLED):
            folder = root / split / wnid
            folder.mkdir(parents=True)
            for number in range(count):
                shown = picture(wnid, number + 100 * (split == "val"))
                odd = wnid == KNOWN[-1] and number == 1
                (shown.convert("L") if odd else shown).save(folder / f"{wnid}_{number}.JPEG", "jpeg", quality=90)
    return root


def publish(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the published classes and counts be those of the small tree."""
    from autonovel.data import imagenet, inspect

    small = ImagenetLayout(frozenset(UNLABELLED), SUBSETS, len(KNOWN), TRAIN, TRAIN)
    for module in (layouts, imagenet, inspect):
        monkeypatch.setattr(module, "IMAGENET", small)


VIEWS = [f"{stage}.augment.side=32" for stage in ("supervised", "joint", "similarity", "kcl", "dtc")]
SETTINGS = [
    "data.size=36", "network.crop=32", "data.loader=streaming", "data.workers=1", *VIEWS,
    "supervised.epochs=1", "supervised.batch_size=32", "supervised.lr=0.02", "supervised.threads=1",
    "joint.epochs=2", "joint.batch_size=24", "joint.labelled_per_batch=16", "joint.watch=12", "joint.threads=1",
    "joint.lr=0.02", "similarity.epochs=1", "similarity.decay_at=[]", "similarity.batch_size=12",
    "similarity.classes_per_batch=3", "similarity.hidden=32", "similarity.threads=1", "kcl.epochs=1",
    "kcl.batch_size=18", "kcl.threads=1", "dtc.epochs=1", "dtc.start_epochs=1", "dtc.batch_size=18", "dtc.threads=1",
    "dtc.lr=0.01", "dtc.start_lr=0.01",
]  # fmt: skip
