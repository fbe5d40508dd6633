"""Parts of images as other numbers of pixels: bilinear, and averaged where pixels become fewer, as in Pillow.

Torch does so with the same part of all images.  Where each image has a part of its own: a new row is a weighted mean of
old rows, a new column of old columns, so a part is two products with matrices of such weights, W_rows · x · W_columnsᵀ.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def weights(start: Tensor, length: Tensor, pixels: int, wanted: int) -> Tensor:
    """Return n×wanted×pixels weights by which stretches of lines of ``pixels`` become ``wanted`` each.

    A weight falls linearly to 0 with the distance from the new pixel's centre, over one old pixel, or over one new one
    where that is wider.  Pixels beyond the stretch have none.

    Args:
        start: the first pixel of each stretch.
        length: how many it has.
        pixels: those of a line.
        wanted: those it becomes.
    """
    step = (length / wanted)[:, None]
    centres = start[:, None] + step * (torch.arange(wanted, device=start.device) + 0.5)
    place = torch.arange(pixels, device=start.device)
    near = 1 - (place + 0.5 - centres[:, :, None]).abs() / step.clamp(min=1)[:, :, None]
    inside = (place >= start[:, None]) & (place < (start + length)[:, None])
    near = near.clamp(min=0) * inside[:, None]
    return near / near.sum(dim=2, keepdim=True)


def parts(x: Tensor, left: Tensor, top: Tensor, width: Tensor, height: Tensor, side: int) -> Tensor:
    """Return of every image (n×c×h×w) its own part of whole pixels as side×side pixels."""
    rows, columns = weights(top, height, x.shape[2], side), weights(left, width, x.shape[3], side)
    return rows[:, None] @ x @ columns[:, None].mT


def fitting(height: int, width: int, side: int) -> tuple[int, int]:
    """Return the sides of an image whose shorter one is to have ``side`` pixels at most (0: any number)."""
    shorter = min(height, width)
    return (round(height * side / shorter), round(width * side / shorter)) if 0 < side < shorter else (height, width)


def shrunk(x: Tensor, side: int) -> Tensor:
    """Return images whose shorter side has ``side`` pixels; those that have no more, and any with ``side`` 0, as is."""
    h, w = x.shape[2:]
    size = fitting(h, w, side)
    if size == (h, w):
        return x
    return F.interpolate(x, size, mode="bilinear", antialias=True, align_corners=False)
