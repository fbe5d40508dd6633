"""BatchNorm where several processes see a share of each batch.

On GPUs the layers of a trunk take the statistics of the whole batch (torch's SyncBatchNorm).  It has no such layer for
CPUs: there each process uses the statistics of its share while it trains, and what they keep for later is averaged.
Heads see the features of whole batches, so that their layers need nothing of this.
"""

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from autonovel.networks import Model
from autonovel.networks.trunk import Trunk


def share(model: Model) -> None:
    """Let the trunks of ``model`` use the statistics of whole batches, where it lies on GPUs of several processes."""
    if model.ranks.world > 1 and model.mean.device.type == "cuda":
        synchronise(model)


def synchronise(model: Model) -> None:
    """Replace the BatchNorm layers of all trunks, also of those inside heads, by layers that look at whole batches."""
    for trunk in [module for module in model.modules() if isinstance(module, Trunk)]:
        for name, block in trunk.blocks.items():
            trunk.blocks[name] = nn.SyncBatchNorm.convert_sync_batchnorm(block)


def average(model: Model) -> None:
    """Make the kept statistics of all processes equal, before anybody uses or saves them."""
    if model.ranks.world > 1:
        # of fixed statistics, which are equal, an average of three would be another number by a rounding
        layers = [layer for layer in model.modules() if isinstance(layer, _BatchNorm) and layer.training]
        kept = [value for layer in layers for value in (layer.running_mean, layer.running_var)]
        model.ranks.average([value for value in kept if isinstance(value, Tensor)])
