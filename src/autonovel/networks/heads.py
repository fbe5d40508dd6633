"""Heads: made from a seed, grown by new classes, put into another order, read back from weights."""

import warnings
from collections.abc import Mapping

import torch
from torch import Tensor, nn


def linear_head(n_features: int, n_classes: int, rng: torch.Generator) -> nn.Linear:
    """Return a linear layer with PyTorch's default initial distribution, drawn from ``rng``."""
    head = nn.Linear(n_features, n_classes)
    bound = n_features**-0.5
    with torch.no_grad():
        for parameter in (head.weight, head.bias):
            parameter.uniform_(-bound, bound, generator=rng)
    return head


def last_rows(head: nn.Linear, n_classes: int) -> nn.Linear:
    """Return a head of the last ``n_classes`` classes of ``head`` alone."""
    out = nn.Linear(head.in_features, n_classes, device=head.weight.device)
    with torch.no_grad():
        out.weight.copy_(head.weight[-n_classes:])
        out.bias.copy_(head.bias[-n_classes:])
    return out


def grown_head(old: nn.Linear, n_new: int, rng: torch.Generator, new_bias: str = "below") -> nn.Linear:
    """Return ``old`` extended by ``n_new`` classes for incremental learning.

    Old rows are kept and new weights are random.  New biases are min(old) − 1 (``below``, as the
    published code does, so that no old image starts in a new class) or random (``random``, the paper).
    """
    n_old = old.out_features
    head = linear_head(old.in_features, n_old + n_new, rng)
    with torch.no_grad():
        head.weight[:n_old] = old.weight.cpu()
        head.bias[:n_old] = old.bias.cpu()
        if new_bias == "below":
            head.bias[n_old:] = old.bias.min().cpu() - 1
    return head.to(old.weight.device)


class CentresHead(nn.Module):
    """DTC's head: a linear bottleneck, and in its space a centre for each class.

    Its logits are −log(1 + ‖b(z) − μ_k‖²), so that their softmax is the Student-t soft assignment itself and
    everything downstream treats it as any other head.
    """

    def __init__(self, bottleneck: nn.Linear, n_classes: int) -> None:
        super().__init__()
        self.bottleneck = bottleneck
        self.centres = nn.Parameter(torch.zeros(n_classes, bottleneck.out_features))

    @property
    def out_features(self) -> int:
        """Return the number of classes, as a linear layer calls it."""
        return len(self.centres)

    def forward(self, z: Tensor) -> Tensor:
        """Return the logits of features ``z``."""
        exact = "donot_use_mm_for_euclid_dist"  # products would lose the small distances in float32
        distances = torch.cdist(self.bottleneck(z), self.centres, compute_mode=exact)
        return -torch.log1p(distances.square())


def reorder(head: nn.Module, order: Tensor) -> None:
    """Put the outputs of ``head`` into ``order`` (new output i was output ``order[i]``)."""
    rows = (head.centres,) if isinstance(head, CentresHead) else (head.weight, head.bias)
    with torch.no_grad():
        for parameter in rows:
            assert isinstance(parameter, Tensor)
            parameter.copy_(parameter[order].clone())


def empty_head(tensors: Mapping[str, Tensor], prefix: str) -> nn.Module:
    """Return a head into which the weights under ``prefix`` fit; a KeyError if there are none."""
    if f"{prefix}.centres" in tensors:
        width, n_features = tensors[f"{prefix}.bottleneck.weight"].shape
        return CentresHead(nn.Linear(n_features, width), len(tensors[f"{prefix}.centres"]))
    n_classes, n_features = tensors[f"{prefix}.weight"].shape
    return plain_linear(n_features, n_classes)


def plain_linear(n_features: int, n_classes: int) -> nn.Linear:
    """Return a linear layer of any number of classes; torch need not warn that none is empty."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Initializing zero-element tensors")
        return nn.Linear(n_features, n_classes)


def initialise(module: nn.Module, rng: torch.Generator) -> None:
    """Draw convolutions and linear layers of ``module`` anew from ``rng``, from PyTorch's default distribution."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            fan_in = layer.weight[0].numel()
            with torch.no_grad():
                layer.weight.uniform_(-(fan_in**-0.5), fan_in**-0.5, generator=rng)


def nearest_point_head(points: Tensor) -> nn.Linear:
    """Return a head whose largest output is the nearest of ``points``: 2⟨c, z⟩ − ‖c‖²."""
    head = nn.Linear(points.shape[1], len(points))
    with torch.no_grad():
        head.weight.copy_(2 * points)
        head.bias.copy_(-points.square().sum(dim=1))
    return head
