"""SVHN's cropped digits in their authors' format: one MATLAB file for each split."""

from pathlib import Path

import numpy as np
import torch

from autonovel.data.catalogue import explained, how_to_get
from autonovel.data.mat import read_arrays
from autonovel.data.splits import LabelledImages
from autonovel.errors import InputError, UsageError

FILES = {"train": "train_32x32.mat", "test": "test_32x32.mat"}


def load(folder: Path, split: str) -> LabelledImages:
    """Return the images of a split, n×3×32×32, with their digits.

    Args:
        folder: holds ``train_32x32.mat`` and ``test_32x32.mat``.
        split: ``train`` or ``test``.

    Raises:
        InputError: if the file is missing, damaged, or not what the authors publish.
    """
    path = locate(folder, split)
    with explained(path, f"Delete {path}, or move it away. {how_to_get('svhn', folder)}"):
        entries = _read(path)
        images = _images(entries)
        labels = _digits(entries, len(images))
    return LabelledImages(
        images=images,
        labels=torch.from_numpy(labels),
        names=tuple(str(digit) for digit in range(10)),
    )


def locate(folder: Path, split: str) -> Path:
    """Return the file from which ``load`` reads."""
    if split not in FILES:
        raise UsageError(f"SVHN has no split {split!r} here; choose {' or '.join(FILES)}.")
    path = folder / FILES[split]
    if not path.is_file():
        raise InputError(f"{path} is missing; it is needed for SVHN's {split} split. {how_to_get('svhn', folder)}")
    return path


def _read(path: Path) -> dict[str, np.ndarray]:
    entries = read_arrays(path.read_bytes(), ("X", "y"))
    missing = [key for key in ("X", "y") if key not in entries]
    if missing:
        raise InputError(f"is not the SVHN file it should be: it needs X and y and lacks {' and '.join(missing)}.")
    return entries


def _images(entries: dict[str, np.ndarray]) -> torch.Tensor:
    images = entries["X"]
    if images.ndim == 3:  # MATLAB drops the last axis of a single image
        images = images[..., np.newaxis]
    if images.dtype != np.uint8 or images.shape[:3] != (32, 32, 3) or images.ndim != 4 or images.size == 0:
        raise InputError(f"holds images X of shape {images.shape}, {images.dtype}; (32, 32, 3, n), uint8 is needed.")
    return torch.from_numpy(images).permute(3, 2, 0, 1).contiguous()  # numpy takes three times as long to turn them


def _digits(entries: dict[str, np.ndarray], n: int) -> np.ndarray:
    """Return digits 0 … 9 from labels 1 … 10, of which 10 means the digit 0."""
    labels = entries["y"]
    if labels.dtype.kind not in "iuf" or labels.shape != (n, 1):
        raise InputError(
            f"holds {n} images and labels y of shape {labels.shape}, {labels.dtype}; "
            f"whole numbers of shape ({n}, 1) are needed."
        )
    if not np.isin(labels, np.arange(1, 11)).all():
        raise InputError(f"holds labels from {labels.min()} to {labels.max()}; whole numbers 1 to 10 are needed.")
    return labels[:, 0].astype(np.int64) % 10
