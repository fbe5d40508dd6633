"""Random numbers as a function of what they are for, not of how many were drawn before.

A draw is a hash of (seed, stage, step, image, number): the same after a resume, with any number of loader
workers or processes, on a CPU or a GPU.  Generators with hidden state could promise none of that.
"""

import torch
from torch import Tensor

_MASK = 0xFFFFFFFF


def _mix(x: Tensor) -> Tensor:
    """Return a well-scrambled 32-bit value for each 32-bit value (Wellons' low-bias integer hash)."""
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & _MASK
    x = x ^ (x >> 15)
    x = (x * 0x846CA68B) & _MASK  # overflow wraps in int64; the low 32 bits stay right
    return x ^ (x >> 16)


def stream(seed: int, *parts: int) -> int:
    """Return a 32-bit key for one purpose, such as (seed, stage), to draw independent numbers from."""
    key = torch.tensor(seed & _MASK, dtype=torch.int64)
    for part in (seed >> 32, *parts):
        key = _mix(key ^ _mix(torch.tensor((part + 0x9E3779B9) & _MASK, dtype=torch.int64)))
    return int(key)


def uniform(key: int, step: Tensor, image: Tensor, count: int) -> Tensor:
    """Return ``count`` numbers in [0, 1) for every image of every step, as float32.

    Args:
        key: stream of one purpose.
        step: step numbers, s of them.
        image: s×n image numbers on the same device.
        count: numbers per image; the first ones do not depend on how many are asked for.

    Returns:
        s×n×count numbers.
    """
    base = _mix(_mix((step & _MASK) ^ key))
    rows = _mix((image.long() & _MASK) ^ base[:, None])
    columns = torch.arange(1, count + 1, device=image.device) * 0x9E3779B9
    bits = _mix((rows[..., None] + columns) & _MASK)
    return (bits >> 8).float() / (1 << 24)


def generator(seed: int, *parts: int) -> torch.Generator:
    """Return a CPU generator for one purpose, for shuffles and initial weights."""
    return torch.Generator().manual_seed(stream(seed, *parts))
