"""Networks by name, and the model built around them."""

from collections.abc import Callable

from torch import Tensor

from autonovel import draws
from autonovel.networks import heads, resnet
from autonovel.networks.model import Model
from autonovel.networks.trunk import Trunk

NETWORKS: dict[str, Callable[[int], Trunk]] = {
    "resnet18": resnet.resnet18,
    "small": resnet.small,
}


def build(name: str, channels: int, mean: Tensor, std: Tensor, seed: int) -> Model:
    """Return a fresh model without heads; its weights are a function of ``seed`` alone."""
    model = Model(NETWORKS[name](channels), mean, std)
    heads.initialise(model.trunk, draws.generator(seed, 1))
    return model


__all__ = ["NETWORKS", "Model", "Trunk", "build", "heads"]
