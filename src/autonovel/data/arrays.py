"""Images and labels from the caller: NumPy arrays, tensors, lists."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from autonovel.data.imageset import ImageSet
from autonovel.errors import InputError


def image_tensor(images: Any) -> Tensor:
    """Return n×c×h×w uint8 for n×h×w, n×h×w×c or n×c×h×w images, integers 0–255 or floats in [0, 1]."""
    x = images.detach().cpu() if isinstance(images, Tensor) else _from_numpy(images)
    if x.is_complex():
        raise InputError(f"the images are of type {x.dtype}; give integers 0–255 or floats in [0, 1].")
    if x.numel() == 0:
        raise InputError(f"the images are an empty array of shape {tuple(x.shape)}; at least one image is needed.")
    if x.ndim == 3:
        x = x[:, None]
    if x.ndim != 4:
        raise InputError(
            f"the images have shape {tuple(x.shape)}; give n×height×width (grey), n×height×width×channels, "
            "or n×channels×height×width."
        )
    if x.shape[1] not in (1, 3, 4) and (x.shape[3] in (1, 3, 4) or x.shape[3] < x.shape[1]):
        x = x.permute(0, 3, 1, 2)  # the channels are the axis of a usual number of them, else the shorter one
    return _as_uint8(x).contiguous()


def _from_numpy(images: Any) -> Tensor:
    """Return a tensor of whatever NumPy can make an array of; large integers are checked on the way."""
    try:
        array = np.asarray(images)
    except ValueError as error:
        raise InputError(f"the images do not form one array ({error}); all must have one size.") from error
    if array.dtype.kind in "UO" and array.size and isinstance(array.flat[0], str | os.PathLike):
        raise InputError(
            "the images are paths of files, and a fit takes arrays. `autonovel discover FOLDER` learns from files; "
            "Discoverer.load(RUN) goes on with what it made, and predicts files too."
        )
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:  # NumPy's long doubles are foreign to torch
        raise InputError(f"the images are of type {array.dtype}; give integers 0–255 or floats in [0, 1].")
    if array.dtype.kind in "iu" and array.size and array.dtype != np.uint8:
        low, high = int(array.min()), int(array.max())
        if low < 0 or high > 255:
            raise InputError(f"integer images must lie in 0–255; these go from {low} to {high}.")
        array = array.astype(np.uint8)
    # a copy in native byte order where the caller's is read-only, reversed or foreign to torch
    native = array.astype(array.dtype.newbyteorder("="), order="C", copy=False)
    return torch.from_numpy(native if native.flags.writeable else native.copy())


def _as_uint8(x: Tensor) -> Tensor:
    if x.dtype == torch.uint8:
        return x
    if x.dtype == torch.bool:
        return x.to(torch.uint8) * 255
    if x.is_floating_point():
        bad = ~torch.isfinite(x)
        if bad.any():
            first = int(bad.flatten(1).any(dim=1).nonzero()[0, 0])
            raise InputError(
                f"{int(bad.sum())} pixels are NaN or infinite (first in image {first}). Remove or repair these images."
            )
        low, high = float(x.min()), float(x.max())
        if low < 0 or high > 1:
            raise InputError(
                f"float images must lie in [0, 1]; these go from {low:g} to {high:g}. "
                "Divide by the largest possible value, or pass uint8."
            )
        return (x * 255).round().to(torch.uint8)
    wide = x.long()  # torch cannot compare its unsigned types
    low, high = int(wide.min()), int(wide.max())
    if low < 0 or high > 255:
        raise InputError(f"integer images must lie in 0–255; these go from {low} to {high}.")
    return x.to(torch.uint8)


def label_numbers(y: Any, n: int) -> tuple[Tensor, tuple[str, ...]]:
    """Return class numbers (−1 = unlabelled) and class names for labels as integers, names, or None.

    Integers keep their numeric order, names their alphabetical one; −1, None and "" mean unlabelled.
    """
    entries = _entries(y)
    if len(entries) != n:
        raise InputError(f"there are {n} images but {len(entries)} labels; give one label per image, -1 for none.")
    given = sorted({e for e in entries if e is not None}, key=lambda e: (isinstance(e, str), e))
    if len({type(e) for e in given}) > 1:
        raise InputError("the labels mix numbers and names; use one or the other (-1, None or '' for unlabelled).")
    number = {e: i for i, e in enumerate(given)}
    numbers = torch.tensor([-1 if e is None else number[e] for e in entries])
    return numbers, tuple(str(e) for e in given)


def _entries(y: Any) -> list[int | str | None]:
    if y is None or isinstance(y, str | int | float):
        raise InputError(f"the labels are {y!r}; give one label per image, -1 for unlabelled.")
    if isinstance(y, Tensor):
        y = y.detach().cpu().numpy()
    raw = np.atleast_1d(y).tolist() if isinstance(y, np.ndarray) else list(y)
    return [_entry(row, value) for row, value in enumerate(raw)]


def _entry(row: int, value: Any) -> int | str | None:
    if value is None or value in ("", "-1", -1):  # an array of names turns -1 into a name
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 0:
        return int(value)
    raise InputError(
        f"label {value!r} of image {row} is neither a class (a name, or an integer from 0) nor -1 for unlabelled."
    )


def image_set(images: Any, y: Any, ids: Sequence[str] | None = None) -> ImageSet:
    """Return an ImageSet of the caller's images and labels."""
    pixels = image_tensor(images)
    numbers, names = label_numbers(y, len(pixels))
    if ids is not None and (len(ids) != len(pixels) or len(set(ids)) != len(ids)):
        raise InputError(f"there are {len(pixels)} images but {len(set(ids))} different ids; give one each.")
    return ImageSet(
        images=pixels,
        y=numbers,
        ids=tuple(ids) if ids is not None else tuple(f"{row:06d}" for row in range(len(pixels))),
        class_names=names,
    )
