"""Networks by name, and the model built around them."""

from collections.abc import Callable

import torch
from torch import Tensor

from autonovel import draws
from autonovel.networks import efficientnet, heads, resnet
from autonovel.networks.adapted import Adapted
from autonovel.networks.model import Model
from autonovel.networks.trunk import Trunk
from autonovel.networks.vgg import vgg
from autonovel.settings import Network

NETWORKS: dict[str, Callable[[int], Trunk]] = {
    "resnet18": resnet.resnet18,
    "small": resnet.small,
    "vgg": vgg,
    "efficientnet-lite0": efficientnet.efficientnet_lite0,
}
PRETRAINED = {"efficientnet-lite0": efficientnet}


def make_trunk(network: Network, channels: int) -> Trunk:
    """Return the feature extractor of a recipe, with whatever weights its layers begin with."""
    trunk = NETWORKS[network.name](channels)
    return Adapted(trunk, network.adapter, network.unit_length) if network.name in PRETRAINED else trunk


def build(network: Network | str, channels: int, mean: Tensor, std: Tensor, seed: int) -> Model:
    """Return a fresh model without heads; its weights are a function of ``seed`` alone.

    A name stands for the network without further settings.
    """
    settings = Network(name=network) if isinstance(network, str) else network
    if settings.name in PRETRAINED:
        mean, std = (values.expand(efficientnet.COLOURS) for values in (mean, std))
    model = Model(make_trunk(settings, channels), mean, std, settings.head_width)
    heads.initialise(model.trunk, draws.generator(seed, 1))
    return model


def pretrained(network: Network, seed: int) -> Model:
    """Return a model with the weights, and the normalisation, that come with the network's package."""
    package = PRETRAINED[network.name]
    model = build(network, 3, torch.tensor(package.MEAN), torch.tensor(package.STD), seed)
    package.load_pretrained(model.trunk)
    return model


__all__ = ["NETWORKS", "PRETRAINED", "Adapted", "Model", "Trunk", "build", "heads", "make_trunk", "pretrained"]
