"""The VGG-like network of the paper's experiments on OmniGlot: four convolutions, 1,024 features."""

from collections import OrderedDict

from torch import Tensor, nn
from torch.nn import functional as F

from autonovel.networks.trunk import Trunk

WIDTHS = (64, 128, 256, 256)
MAP = 2  # pixels a side of the last map; an image of 32×32 has them after four halvings


class FlatTrunk(Trunk):
    """A trunk whose features are the last map itself, pixel by pixel, not its average over the image.

    Where in the image a stroke lies tells characters apart.  A map of another size than 2×2, from images that are not
    32×32, is averaged down (or repeated) to that.
    """

    def pool(self, x: Tensor) -> Tensor:
        """Return the n×(c·2·2) values of the map."""
        x = x.float()
        if x.shape[2:] != (MAP, MAP):
            x = F.adaptive_avg_pool2d(x, MAP)
        return x.contiguous().flatten(1)


def vgg(channels: int) -> Trunk:
    """Return four blocks of 3×3 convolution, BatchNorm, ReLU and max-pool, and 1,024 features.

    The published convolutions have a bias, which the BatchNorm behind them takes away again; here they have none.
    """
    blocks: OrderedDict[str, nn.Module] = OrderedDict()
    width_in = channels
    for number, width in enumerate(WIDTHS, start=1):
        convolution = nn.Conv2d(width_in, width, 3, padding=1, bias=False)
        blocks[f"block{number}"] = nn.Sequential(convolution, nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2))
        width_in = width
    return FlatTrunk(blocks, n_features=width_in * MAP * MAP)
