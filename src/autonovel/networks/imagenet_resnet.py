"""ResNet-18 as it is usual on ImageNet: 7×7 stem with max-pool, 1×1 convolutions in the shortcuts.

Its blocks have the names of the network for small images, so that what is frozen there is frozen here.
"""

from collections import OrderedDict
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from autonovel.errors import UsageError
from autonovel.networks.resnet import BasicBlock
from autonovel.networks.trunk import Trunk

WIDTHS, DEPTH = (64, 128, 256, 512), 2
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of the channels of ImageNet; the published code's


class ProjectedBlock(BasicBlock):
    """Two 3×3 convolutions and a shortcut, which where size or width changes is a 1×1 convolution with BatchNorm."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__(width_in, width, stride)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or width_in != width:
            convolution = nn.Conv2d(width_in, width, 1, stride, bias=False)
            self.downsample = nn.Sequential(convolution, nn.BatchNorm2d(width))

    def _shortcut(self, x: Tensor) -> Tensor:
        shortcut: Tensor = self.downsample(x)
        return shortcut


def resnet18(channels: int) -> Trunk:
    """Return ResNet-18 for images of about 224×224 pixels: 512 features, none of them negative."""
    blocks: OrderedDict[str, nn.Module] = OrderedDict()
    blocks["stem"] = nn.Sequential(
        nn.Conv2d(channels, WIDTHS[0], 7, 2, 3, bias=False),
        nn.BatchNorm2d(WIDTHS[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    )
    width_in = WIDTHS[0]
    for number, width in enumerate(WIDTHS, start=1):
        layers = [ProjectedBlock(width_in, width, 1 if number == 1 else 2)]
        layers += [ProjectedBlock(width, width, 1) for _ in range(DEPTH - 1)]
        blocks[f"block{number}"] = nn.Sequential(*layers)
        width_in = width
    return Trunk(blocks, n_features=width_in)


def statistics(channels: int) -> tuple[Tensor, Tensor]:
    """Return mean and deviation of the channels of ImageNet."""
    if channels != len(MEAN):
        raise UsageError(
            f"network.normalise is imagenet, whose images have {len(MEAN)} channels; these have {channels}. "
            "Set it to own."
        )
    return torch.tensor(MEAN), torch.tensor(STD)


def renamed(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights under our names, where they have those that are usual for ResNets; others are left as they are.

    ``conv1``, ``bn1``, ``layer1`` … ``layer4`` and ``fc``, perhaps behind ``module.``, are how PyTorch's own models and
    the published code call them; ``fc`` becomes the head of the known classes.
    """
    plain = {name.removeprefix("module."): value for name, value in tensors.items()}
    if not {"conv1.weight", "bn1.weight", "layer4.0.conv1.weight"} <= plain.keys():
        return dict(tensors)
    places = {"conv1": "trunk.blocks.stem.0", "bn1": "trunk.blocks.stem.1", "fc": "heads.known"}
    places |= {f"layer{number}": f"trunk.blocks.block{number}" for number in range(1, len(WIDTHS) + 1)}
    out = {}
    for name, value in plain.items():
        first, _, rest = name.partition(".")
        out[f"{places.get(first, first)}.{rest}"] = value
    return out
