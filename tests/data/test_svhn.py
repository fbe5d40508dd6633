"""SVHN's files: read exactly; damaged or wrong ones are named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import savemat

from autonovel.data import svhn
from autonovel.errors import InputError, UsageError


def images(n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(0, 256, (32, 32, 3, n), dtype=np.uint8)


def column(*labels: int) -> np.ndarray:
    return np.array(labels, dtype=np.uint8)[:, np.newaxis]


def write(folder: Path, split: str = "test", **entries: Any) -> Path:
    path = folder / f"{split}_32x32.mat"
    savemat(path, entries, do_compression=True)
    return path


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        svhn.load(folder, "test")
    message = str(caught.value)
    assert str(folder / "test_32x32.mat") in message and f"autonovel data fetch svhn --to {folder}" in message
    return message


def test_images_and_digits_are_read(tmp_path: Path) -> None:
    write(tmp_path, "train", X=images(4), y=column(1, 10, 9, 5))
    write(tmp_path, "test", X=images(2), y=column(10, 2))
    train = svhn.load(tmp_path, "train")
    assert train.labels.tolist() == [1, 0, 9, 5] and train.labels.dtype == torch.int64
    assert train.images.shape == (4, 3, 32, 32) and train.images.dtype == torch.uint8
    assert train.images[2, 1, 5, 7] == images(4)[5, 7, 1, 2]
    assert np.array_equal(train.images.permute(2, 3, 1, 0).numpy(), images(4))
    assert train.names == tuple("0123456789")
    assert svhn.load(tmp_path, "test").labels.tolist() == [0, 2]


def test_one_image_and_labels_as_matlab_numbers(tmp_path: Path) -> None:
    write(tmp_path, X=images(1)[..., 0], y=np.array([[10.0]]))
    read = svhn.load(tmp_path, "test")
    assert read.images.shape == (1, 3, 32, 32) and read.labels.tolist() == [0]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"X": images(2)}, "lacks y"),
        ({"y": column(1, 2)}, "lacks X"),
        ({"X": images(2)[:28], "y": column(1, 2)}, "(28, 32, 3, 2), uint8; (32, 32, 3, n), uint8 is needed"),
        ({"X": images(2).astype(float), "y": column(1, 2)}, "float64"),
        ({"X": images(2).transpose(3, 0, 1, 2), "y": column(1, 2)}, "(2, 32, 32, 3)"),
        ({"X": images(2), "y": column(1, 2, 3)}, "2 images and labels y of shape (3, 1)"),
        ({"X": images(2), "y": column(0, 2)}, "labels from 0 to 2; whole numbers 1 to 10 are needed"),
        ({"X": images(2), "y": column(1, 11)}, "labels from 1 to 11"),
        ({"X": images(2), "y": np.array([[1.5], [2.0]])}, "labels from 1.5 to 2.0"),
        ({"X": images(2), "y": np.array([["a"], ["b"]])}, "holds y, but not as an array of real numbers"),
        ({"X": images(2), "y": np.array([[{}], [1]], dtype=object)}, "holds y, but not as an array of real numbers"),
        ({"X": images(2), "y": np.array([[1j], [2]])}, "holds y, but not as an array of real numbers"),
    ],
)
def test_wrong_entries_are_named(tmp_path: Path, entries: dict[str, Any], message: str) -> None:
    write(tmp_path, **entries)
    assert message in refused(tmp_path)


@pytest.mark.parametrize("kept", [0, 3, 127, 200, 4000, -1])
def test_truncated_files_are_named(tmp_path: Path, kept: int) -> None:
    path = write(tmp_path, X=images(2), y=column(1, 2))
    content = path.read_bytes()
    assert len(content) > 4000
    path.write_bytes(content[:kept])
    refused(tmp_path)


@settings(max_examples=100)
@given(content=st.binary(max_size=300))
def test_random_bytes_are_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "test_32x32.mat").write_bytes(content)
    refused(folder)


def test_missing_files_and_splits_are_named(tmp_path: Path) -> None:
    assert "test_32x32.mat is missing" in refused(tmp_path)
    with pytest.raises(UsageError, match="no split 'extra' here; choose train or test"):
        svhn.load(tmp_path, "extra")
