"""Whether images, and views of them, have a size that the network takes, before any training."""

import torch

from autonovel import hub
from autonovel.errors import UsageError
from autonovel.networks import PRETRAINED, Trunk, efficientnet, hf
from autonovel.networks.model import size_taken
from autonovel.settings import Network, Recipe


def check_sizes(recipe: Recipe, trunk: Trunk, channels: int, height: int, width: int) -> None:
    """Raise an error unless the network takes images of this size, as it shrinks and cuts them."""
    network = recipe.network
    if network.side > min(height, width):
        raise UsageError(
            f"network.side is {network.side}, but images have {min(height, width)} pixels a side, and it only shrinks "
            "larger ones. Set network.side=0, or keep more pixels with data.size."
        )
    seen = size_taken(height, width, network.side, network.crop)
    if "dtc" in recipe.run.systems and recipe.dtc.first_view == "plain":
        _check_first_view(network, recipe.dtc.augment.side, seen)
    by = "network.crop" if network.crop in seen else "network.side" if network.side in seen else "data.size"
    if network.name == hf.NAME:
        hf.check_size(network.model, hub.find(network.model).config, *seen, by)
        return
    colours = efficientnet.COLOURS if network.name in PRETRAINED else channels
    try:
        with torch.no_grad():
            trunk.eval()(torch.empty(1, colours, *seen, device="meta"))
    except RuntimeError as error:
        raise UsageError(
            f"{by} leaves images of {seen[1]}×{seen[0]} pixels, too few for network {network.name} ({error}). Choose "
            f"more (--set {by}=…), or another network (--set network.name=small)."
        ) from error


def _check_first_view(network: Network, side: int, plain: tuple[int, int]) -> None:
    """Raise an error unless views of ``side`` pixels (0: the image's) can be in one batch with plain images."""
    if side and size_taken(side, side, network.side, network.crop) != plain:
        raise UsageError(
            f"dtc.augment.side is {side}, but plain images, which are DTC's first view, have {plain[1]}×{plain[0]} "
            f"pixels for the network. Set dtc.augment.side={min(plain)}, or dtc.first_view=random."
        )
