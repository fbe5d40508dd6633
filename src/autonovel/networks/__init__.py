"""Networks by name, and the model built around them."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from autonovel import draws, hub
from autonovel.networks import efficientnet, heads, hf, imagenet_resnet, resnet
from autonovel.networks.adapted import ADAPTER, Adapted
from autonovel.networks.model import Model
from autonovel.networks.trunk import Trunk
from autonovel.networks.vgg import vgg
from autonovel.settings import Network

NETWORKS: dict[str, Callable[[int], Trunk]] = {
    "resnet18": resnet.resnet18,
    "resnet18-imagenet": imagenet_resnet.resnet18,
    "small": resnet.small,
    "vgg": vgg,
    "efficientnet-lite0": efficientnet.efficientnet_lite0,
}
PRETRAINED = {"efficientnet-lite0": efficientnet, hf.NAME: hf}


def make_trunk(network: Network, channels: int, config: Mapping[str, Any] | None = None) -> Trunk:
    """Return the feature extractor of a recipe, with whatever weights its layers begin with.

    The architecture of a network from elsewhere is what ``config`` says, or the files of ``network.model``.
    """
    if network.name == hf.NAME:
        trunk = hf.trunk(network.model, hub.find(network.model).config if config is None else config, channels)
    else:
        trunk = NETWORKS[network.name](channels)
    return Adapted(trunk, network.adapter, network.unit_length) if network.name in PRETRAINED else trunk


def build(network: Network | str, channels: int, mean: Tensor, std: Tensor, seed: int) -> Model:
    """Return a fresh model without heads; its weights are a function of ``seed`` alone.

    A name stands for the network without further settings.
    """
    settings = Network(name=network) if isinstance(network, str) else network
    if settings.name in PRETRAINED:
        mean, std = (values.expand(efficientnet.COLOURS) for values in (mean, std))
    model = Model(make_trunk(settings, channels), mean, std, settings.head_width, settings.crop, settings.side)
    if settings.name != hf.NAME:
        heads.initialise(model.trunk, draws.generator(seed, 1))
    elif settings.adapter:  # its own layers are filled from its files, and may be many
        heads.initialise(model.trunk.blocks[ADAPTER], draws.generator(seed, 1))
    return model


def pretrained(network: Network, seed: int) -> Model:
    """Return a model with the weights, and the normalisation, that come with the network."""
    package = PRETRAINED[network.name]
    mean, std = package.normalisation(network)
    model = build(network, len(mean), torch.tensor(mean), torch.tensor(std), seed)
    package.load_pretrained(model.trunk, network)
    return model


__all__ = ["NETWORKS", "PRETRAINED", "Adapted", "Model", "Trunk", "build", "heads", "make_trunk", "pretrained"]
