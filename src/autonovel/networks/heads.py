"""Heads: made from a seed, grown by new classes, put into another order, read back from weights."""

import copy
import warnings
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F


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


class TwoLayerHead(nn.Module):
    """Linear, BatchNorm, ReLU, Linear: the heads of the paper's network for OmniGlot.

    The first layer has no bias, which BatchNorm would take away again.
    """

    def __init__(self, n_features: int, width: int, last: nn.Linear) -> None:
        super().__init__()
        self.first = nn.Linear(n_features, width, bias=False)
        self.norm = nn.BatchNorm1d(width)
        self.last = last

    @property
    def in_features(self) -> int:
        """Return the number of features, as a linear layer calls it."""
        return self.first.in_features

    @property
    def out_features(self) -> int:
        """Return the number of classes, as a linear layer calls it."""
        return self.last.out_features

    def forward(self, z: Tensor) -> Tensor:
        """Return the logits of features ``z``."""
        out: Tensor = self.last(F.relu(self.norm(self.first(z))))
        return out


ClassHead = nn.Linear | TwoLayerHead


def class_head(n_features: int, n_classes: int, width: int, rng: torch.Generator) -> ClassHead:
    """Return a head drawn from ``rng``: of two layers with ``width`` units between them, or (0) of one."""
    if not width:
        return linear_head(n_features, n_classes, rng)
    head = TwoLayerHead(n_features, width, linear_head(width, n_classes, rng))
    initialise(head.first, rng)
    return head


def last_layer(head: nn.Module) -> nn.Linear:
    """Return the layer whose rows are the classes."""
    layer = head.last if isinstance(head, TwoLayerHead) else head
    assert isinstance(layer, nn.Linear)
    return layer


def grown_head(old: ClassHead, n_new: int, rng: torch.Generator, new_bias: str = "below") -> ClassHead:
    """Return ``old`` with its last layer extended by ``n_new`` classes for incremental learning."""
    if isinstance(old, TwoLayerHead):
        grown = copy.deepcopy(old)
        grown.last = grown_layer(old.last, n_new, rng, new_bias)
        return grown
    return grown_layer(old, n_new, rng, new_bias)


def grown_layer(old: nn.Linear, n_new: int, rng: torch.Generator, new_bias: str = "below") -> nn.Linear:
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
    """DTC's head: a bottleneck, of one layer or two, and in its space a centre for each class.

    Its logits are −log(1 + ‖b(z) − μ_k‖²), so that their softmax is the Student-t soft assignment itself and
    everything downstream treats it as any other head.
    """

    def __init__(self, bottleneck: ClassHead, n_classes: int) -> None:
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
    rows = (head.centres,) if isinstance(head, CentresHead) else (last_layer(head).weight, last_layer(head).bias)
    with torch.no_grad():
        for parameter in rows:
            parameter.copy_(parameter[order].clone())


def empty_head(tensors: Mapping[str, Tensor], prefix: str) -> nn.Module:
    """Return a head into which the weights under ``prefix`` fit; a KeyError if there are none."""
    if f"{prefix}.centres" in tensors:
        bottleneck = empty_head(tensors, f"{prefix}.bottleneck")
        assert isinstance(bottleneck, ClassHead)
        return CentresHead(bottleneck, len(tensors[f"{prefix}.centres"]))
    if f"{prefix}.first.weight" in tensors:
        width, n_features = tensors[f"{prefix}.first.weight"].shape
        return TwoLayerHead(n_features, width, nn.Linear(width, len(tensors[f"{prefix}.last.weight"])))
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
