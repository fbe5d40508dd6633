"""Residual networks with parameter-free shortcuts: the paper's ResNet-18 and a small one for a CPU."""

from collections import OrderedDict
from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

from autonovel.networks.trunk import Trunk


class BasicBlock(nn.Module):
    """Two 3×3 convolutions and a shortcut without weights.

    Where the block halves the image the shortcut averages 2×2 pixels, and where it widens it appends
    channels of zeros; a 1×1 convolution there would be another network than the published one.
    """

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.stride = stride
        self.new_channels = width - width_in

    def forward(self, x: Tensor) -> Tensor:
        """Return relu(F(x) + shortcut(x))."""
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(out)) + self._shortcut(x))

    def _shortcut(self, x: Tensor) -> Tensor:
        if self.stride != 1:  # ceil_mode: an odd side halves upwards, as the strided convolution does
            x = F.avg_pool2d(x, self.stride, ceil_mode=True, count_include_pad=False)
        if self.new_channels:
            x = F.pad(x, (0, 0, 0, 0, 0, self.new_channels))
        return x


def _resnet(channels: int, widths: Sequence[int], depth: int) -> Trunk:
    blocks: OrderedDict[str, nn.Module] = OrderedDict()
    blocks["stem"] = nn.Sequential(
        nn.Conv2d(channels, widths[0], 3, 1, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()
    )
    width_in = widths[0]
    for number, width in enumerate(widths, start=1):
        stride = 1 if number == 1 else 2
        layers = [BasicBlock(width_in, width, stride)]
        layers += [BasicBlock(width, width, 1) for _ in range(depth - 1)]
        blocks[f"block{number}"] = nn.Sequential(*layers)
        width_in = width
    return Trunk(blocks, n_features=width_in)


def resnet18(channels: int) -> Trunk:
    """Return the paper's ResNet-18 for small images: 3×3 stem, no max-pool, 512 features."""
    return _resnet(channels, (64, 128, 256, 512), depth=2)


def small(channels: int) -> Trunk:
    """Return a residual network of three blocks and 64 features, trainable on a CPU in a minute."""
    return _resnet(channels, (16, 32, 64), depth=1)
