"""The coefficient that lets consistency and pseudo-labels in slowly."""

import torch
from torch import Tensor


def ramp(t: Tensor, length: float) -> Tensor:
    """Return exp(−5 (1 − min(t, T) / T)²), the sigmoid-shaped ramp ω(t) / λ; 1 when T is 0."""
    if length < 1e-6:  # no ramp; smaller lengths would underflow in float32
        return torch.ones_like(t)
    return torch.exp(-5 * (1 - t.clamp(0, length) / length).square())
