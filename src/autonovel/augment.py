"""Random views of a batch of images, on their device, every image with draws of its own.

Each transform takes float images in [0, 1] (n×c×h×w) and an n×k block of uniform numbers, and is a pure
function of both; ``Augmentation`` strings them together and hands each its share of the draws.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from autonovel import resampling

Transform = Callable[[Tensor, Tensor], Tensor]
LUMA = (0.299, 0.587, 0.114)  # of red, green and blue in a grey of the same lightness (ITU-R BT.601)


def _integers(u: Tensor, low: int, high: int) -> Tensor:
    """Return integers in [low, high] for uniform numbers ``u`` in [0, 1)."""
    return low + (u * (high - low + 1)).floor().long()


def _windows(padded: Tensor, top: Tensor, left: Tensor, h: int, w: int) -> Tensor:
    """Return the h×w window of every padded image that starts at its own (top, left)."""
    n, c = padded.shape[:2]
    rows = top[:, None] + torch.arange(h, device=padded.device)
    columns = left[:, None] + torch.arange(w, device=padded.device)
    image = torch.arange(n, device=padded.device)[:, None, None, None]
    channel = torch.arange(c, device=padded.device)[None, :, None, None]
    return padded[image, channel, rows[:, None, :, None], columns[:, None, None, :]]


def crop(x: Tensor, u: Tensor, pad: int) -> Tensor:
    """Return random crops of the images padded by ``pad`` black pixels."""
    h, w = x.shape[2:]
    return _windows(F.pad(x, (pad,) * 4), _integers(u[:, 0], 0, 2 * pad), _integers(u[:, 1], 0, 2 * pad), h, w)


def reflect_shift(x: Tensor, u: Tensor, pad: int) -> Tensor:
    """Return the images shifted by up to ``pad`` pixels, mirrored at the border without its edge pixel."""
    h, w = x.shape[2:]
    padded = F.pad(x, (pad,) * 4, mode="reflect")
    return _windows(padded, _integers(u[:, 0], 0, 2 * pad), _integers(u[:, 1], 0, 2 * pad), h, w)


def flip(x: Tensor, u: Tensor) -> Tensor:
    """Return the images, each mirrored left to right with probability 1/2."""
    return torch.where((u[:, 0] < 0.5)[:, None, None, None], x.flip(3), x)


def rotate90(x: Tensor, turns: Tensor) -> Tensor:
    """Return every (square) image turned anticlockwise by its own number of quarter turns."""
    turned = torch.stack([torch.rot90(x, t, (2, 3)) for t in range(4)])
    return turned[turns, torch.arange(len(x), device=x.device)]


def four_rotations(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return all four rotations of every image (image by image: 0°, 90°, 180°, 270°) and their labels."""
    turned = torch.stack([torch.rot90(x, t, (2, 3)) for t in range(4)], dim=1).flatten(0, 1)
    return turned, torch.arange(4, device=x.device).repeat(len(x))


def affine(x: Tensor, u: Tensor, rotate: float, shear: float, scale: float, shift: float) -> Tensor:
    """Return the images under random affine maps, black outside.

    Args:
        x: images.
        u: n×5 uniform numbers.
        rotate: largest angle in radians.
        shear: largest shear in radians.
        scale: largest relative change of size.
        shift: largest shift in pixels.
    """
    h, w = x.shape[2:]
    r = 2 * u - 1
    angle, skew, size = rotate * r[:, 0], torch.tan(shear * r[:, 1]), 1 + scale * r[:, 2]
    cos, sin = torch.cos(angle) / size, torch.sin(angle) / size
    dx, dy = shift * r[:, 3] * 2 / w, shift * r[:, 4] * 2 / h
    # grids run from −1 to 1 along both sides: off-diagonal terms carry the aspect, or oblong images would shear
    across, down = (skew * cos - sin) * (h / w), sin * (w / h)
    theta = torch.stack([cos, across, dx, down, skew * sin + cos, dy], dim=1).view(-1, 2, 3)
    grid = F.affine_grid(theta, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def resized_crop(x: Tensor, u: Tensor, smallest: float, aspect: float = 1.0, side: int = 0) -> Tensor:
    """Return a random part of each image, between ``smallest`` and all of its area, resized to the whole size.

    Args:
        x: images.
        u: n×3 uniform numbers, n×4 where parts need not be squares.
        smallest: share of the area; below 1 where parts need not be squares.
        aspect: largest ratio of a part's sides (of a square image).  Area, evenly, and ratio, evenly on a logarithmic
            scale between 1/aspect and aspect, are as if both had been drawn again until the part lies inside the image.
        side: pixels a side of the result (0: as the image).  Where the image has more, parts are whole pixels, and
            averaged where they have more themselves, as in torchvision.
    """
    if aspect > 1:
        area = _fitting_area(u[:, 0], smallest, aspect)
        stretch = torch.exp((2 * u[:, 3] - 1) * (-area.log()).clamp(max=math.log(aspect)) / 2)
        width, height = area.sqrt() * stretch, area.sqrt() / stretch
    else:
        area = smallest + (1 - smallest) * u[:, 0]
        width = height = area.sqrt()
    h, w = x.shape[2:]
    if 0 < side < max(h, w):
        across, down = (w * width).round(), (h * height).round()
        first, top = (u[:, 1] * (w - across + 1)).floor(), (u[:, 2] * (h - down + 1)).floor()
        return resampling.parts(x, first, top, across, down, side)
    left, top = (1 - width) * (2 * u[:, 1] - 1), (1 - height) * (2 * u[:, 2] - 1)
    zero = torch.zeros_like(area)
    theta = torch.stack([width, zero, left, zero, height, top], dim=1).view(-1, 2, 3)
    shape = [*x.shape[:2], side, side] if side else list(x.shape)
    grid = F.affine_grid(theta, shape, align_corners=False)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)


def _fitting_area(u: Tensor, smallest: float, aspect: float) -> Tensor:
    """Return the areas of parts that were drawn again until they fit, for uniform numbers ``u``; 0 is all of the image.

    A part of area a fits if its ratio lies between a and 1/a.  So large areas come less often: their density goes with
    min(−log a, log aspect).  As in torchvision, what has not fitted ten times is all of the image.
    """
    widest, bend = math.log(aspect), max(smallest, 1 / aspect)  # of areas above the bend some ratios do not fit
    above_bend = 1 - bend + bend * math.log(bend)  # the integral of that density, as of −log a, from there to 1
    integral = above_bend + widest * (bend - smallest)
    whole = (1 - integral / (widest * (1 - smallest))) ** 10
    wanted = ((u - whole) / (1 - whole)).clamp(min=0) * integral  # the integral from an area to 1, of which it follows
    # above the bend by Newton's steps on 1 − a, from a start that lies beyond it and comes nearer with every one
    aim = wanted.clamp(max=above_bend)
    cut = (2 * aim).sqrt().clamp(max=1 - bend)
    for _ in range(4):
        log_area = torch.log1p(-cut)
        cut = cut + (cut + (1 - cut) * log_area - aim) / log_area.clamp(max=-1e-9)
    return torch.where(wanted < above_bend, 1 - cut, bend - (wanted - above_bend) / widest)


def _factor(u: Tensor, most: float) -> Tensor:
    """Return a number in 1 ± ``most`` for every image."""
    return (1 + most * (2 * u[:, 0] - 1))[:, None, None, None]


def _greys(x: Tensor) -> Tensor:
    """Return the images without their colours, in one channel; images of other than three channels have none."""
    if x.shape[1] != len(LUMA):
        return x
    red, green, blue = LUMA
    return red * x[:, :1] + green * x[:, 1:2] + blue * x[:, 2:]


def brightness(x: Tensor, u: Tensor, most: float) -> Tensor:
    """Return the images, each brighter or darker by its own factor in 1 ± ``most``."""
    return (x * _factor(u, most)).clamp(0, 1)


def contrast(x: Tensor, u: Tensor, most: float) -> Tensor:
    """Return the images, each farther from or nearer to its mean grey by its own factor in 1 ± ``most``."""
    mean = _greys(x).mean(dim=(1, 2, 3), keepdim=True)
    return (mean + (x - mean) * _factor(u, most)).clamp(0, 1)


def saturation(x: Tensor, u: Tensor, most: float) -> Tensor:
    """Return the images, each with stronger or paler colours by its own factor in 1 ± ``most``."""
    grey = _greys(x)
    return (grey + (x - grey) * _factor(u, most)).clamp(0, 1)


def without_colour(x: Tensor, u: Tensor, share: float) -> Tensor:
    """Return the images, each in shades of grey with probability ``share``."""
    return torch.where((u[:, 0] < share)[:, None, None, None], _greys(x), x)


def pick_view(x: Tensor, u: Tensor) -> Tensor:
    """Return one of the cached views of every image (n×views×d → n×d), each as likely."""
    return x[torch.arange(len(x), device=x.device), _integers(u[:, 0], 0, x.shape[1] - 1)].float()


@dataclass(frozen=True)
class Augmentation:
    """What a random view of an image is: the transforms that are switched on, in this order."""

    crop: int = 0
    reflect_shift: int = 0
    flip: bool = False
    rotate: float = 0.0
    shear: float = 0.0
    scale: float = 0.0
    shift: float = 0.0
    resized_crop: float = 1.0
    aspect: float = 1.0
    side: int = 0
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    grey: float = 0.0
    cached: bool = False

    def transforms(self) -> list[tuple[Transform, int]]:
        """Return the transforms with the number of draws each needs."""
        if self.cached:
            return [(pick_view, 1)]
        steps: list[tuple[Transform, int]] = []
        if self.rotate or self.shear or self.scale or self.shift:
            steps.append((lambda x, u: affine(x, u, self.rotate, self.shear, self.scale, self.shift), 5))
        if self.resized_crop < 1 or self.side:
            draws = 4 if self.aspect > 1 else 3
            steps.append((lambda x, u: resized_crop(x, u, self.resized_crop, self.aspect, self.side), draws))
        if self.crop:
            steps.append((lambda x, u: crop(x, u, self.crop), 2))
        if self.reflect_shift:
            steps.append((lambda x, u: reflect_shift(x, u, self.reflect_shift), 2))
        if self.flip:
            steps.append((flip, 1))
        if self.brightness:
            steps.append((lambda x, u: brightness(x, u, self.brightness), 1))
        if self.contrast:
            steps.append((lambda x, u: contrast(x, u, self.contrast), 1))
        if self.saturation:
            steps.append((lambda x, u: saturation(x, u, self.saturation), 1))
        if self.grey:
            steps.append((lambda x, u: without_colour(x, u, self.grey), 1))
        return steps

    @property
    def n_draws(self) -> int:
        """Return how many random numbers a view of an image takes."""
        return sum(count for _, count in self.transforms())

    def view(self, images: Tensor, u: Tensor) -> Tensor:
        """Return one random view, in [0, 1], of uint8 ``images``, made with n×n_draws uniform numbers.

        Of cached views (n×views×d) it is one of these.
        """
        x = images if self.cached else images.float() / 255
        for transform, count in self.transforms():
            x = transform(x, u[:, :count])
            u = u[:, count:]
        return x
