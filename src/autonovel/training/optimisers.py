"""Optimisers by name."""

from collections.abc import Iterable

import torch
from torch import nn
from torch.optim import Optimizer

from autonovel.settings import Stage


def make(s: Stage, parameters: Iterable[nn.Parameter]) -> Optimizer:
    """Return the optimiser of a stage for the parameters that are not frozen."""
    trained = [p for p in parameters if p.requires_grad]
    if s.optimiser == "adam":
        # capturable: its step counter lives on the device, where a recorded step can see it
        on_gpu = any(p.is_cuda for p in trained)
        return torch.optim.Adam(trained, lr=s.lr, weight_decay=s.weight_decay, fused=True, capturable=on_gpu)
    return torch.optim.SGD(
        trained,
        lr=s.lr,
        momentum=s.momentum,
        nesterov=s.nesterov and s.momentum > 0,
        weight_decay=s.weight_decay,
        fused=True,
    )


def set_rate(optimiser: Optimizer, rate: float) -> None:
    """Set the learning rate of the next step."""
    for group in optimiser.param_groups:
        group["lr"] = rate
