"""ResNet-18 at ImageNet's size, the central square it sees, and random parts of images."""

import math
import random

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from autonovel import networks, settings
from autonovel.augment import Augmentation, resized_crop
from autonovel.networks import NETWORKS
from autonovel.networks.imagenet_resnet import renamed
from autonovel.networks.model import central
from autonovel.settings import FROZEN

NAME = "resnet18-imagenet"


def normalised(x: Tensor, w: dict[str, Tensor], name: str) -> Tensor:
    return F.batch_norm(x, w[f"{name}.running_mean"], w[f"{name}.running_var"], w[f"{name}.weight"], w[f"{name}.bias"])


def by_hand(x: Tensor, w: dict[str, Tensor]) -> Tensor:
    """Return the features of a ResNet-18 whose weights have PyTorch's usual names, layer by layer."""
    x = F.max_pool2d(F.relu(normalised(F.conv2d(x, w["conv1.weight"], stride=2, padding=3), w, "bn1")), 3, 2, 1)
    for layer in range(1, 5):
        for place in range(2):
            here, stride = f"layer{layer}.{place}", 2 if layer > 1 and place == 0 else 1
            out = F.relu(normalised(F.conv2d(x, w[f"{here}.conv1.weight"], None, stride, 1), w, f"{here}.bn1"))
            out = normalised(F.conv2d(out, w[f"{here}.conv2.weight"], None, 1, 1), w, f"{here}.bn2")
            if f"{here}.downsample.0.weight" in w:
                x = normalised(F.conv2d(x, w[f"{here}.downsample.0.weight"], None, stride), w, f"{here}.downsample.1")
            x = F.relu(out + x)
    return x.mean(dim=(2, 3))


def test_it_is_the_usual_resnet18() -> None:
    torch.manual_seed(0)
    trunk = NETWORKS[NAME](3).eval()
    for module in trunk.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)  # type: ignore[operator, union-attr]
            module.running_var.uniform_(0.5, 1.5)  # type: ignore[operator, union-attr]
    assert sum(p.numel() for p in trunk.parameters()) == 11_689_512 - 513_000  # as is known, without its classifier
    assert list(trunk.blocks) == [*FROZEN, "block4"] and trunk.n_features == 512
    names = {"blocks.stem.0": "conv1", "blocks.stem.1": "bn1", "blocks.block": "layer"}
    usual = {
        names[place] + key.removeprefix(place): value
        for key, value in trunk.state_dict().items()
        for place in names
        if key.startswith(place)
    }
    x = torch.randn(2, 3, 65, 50)
    with torch.no_grad():
        z = trunk(x)
        torch.testing.assert_close(z, by_hand(x, usual))
    assert (z >= 0).all()
    back = {key.removeprefix("trunk."): value for key, value in renamed(usual).items()}
    trunk.load_state_dict(back)
    assert renamed(trunk.state_dict()).keys() == trunk.state_dict().keys()  # our own names are left alone


@pytest.mark.parametrize(("height", "width", "top", "left"), [(9, 9, 2, 2), (8, 9, 1, 2), (4, 9, 0, 2)])
def test_the_central_square(height: int, width: int, top: int, left: int) -> None:
    x = torch.rand(2, 3, height, width)
    assert torch.equal(central(x, 5), x[:, :, top : top + 5, left : left + 5])
    assert central(x, 0) is x and central(x, 9) is x


def test_a_model_sees_the_centre_of_larger_images_and_all_of_a_view() -> None:
    network = settings.Network(name="small", crop=10)
    model = networks.build(network, 3, torch.zeros(3), torch.ones(3), 0).eval()
    images = torch.randint(0, 256, (3, 3, 14, 14), dtype=torch.uint8)
    with torch.no_grad():
        wanted = model.features(images[:, :, 2:12, 2:12].float() / 255)
        assert torch.equal(model.clean_features(images), wanted)
        small = torch.rand(3, 3, 8, 8)
        assert torch.equal(model.features(small), model.trunk(small.contiguous(memory_format=torch.channels_last)))


def naive_part(x: Tensor, left: float, top: float, width: float, height: float, side: int) -> Tensor:
    """Return a part of one image (its edges as shares of the image's), resized by bilinear interpolation, by loops."""
    channels, h, w = x.shape
    out = torch.zeros(channels, side, side)
    for i in range(side):
        for j in range(side):
            y = min(max((top + height * (i + 0.5) / side) * h - 0.5, 0), h - 1)
            z = min(max((left + width * (j + 0.5) / side) * w - 0.5, 0), w - 1)
            y0, z0 = int(y), int(z)
            y1, z1 = min(y0 + 1, h - 1), min(z0 + 1, w - 1)
            a, b = y - y0, z - z0
            out[:, i, j] = (1 - a) * ((1 - b) * x[:, y0, z0] + b * x[:, y0, z1])
            out[:, i, j] += a * ((1 - b) * x[:, y1, z0] + b * x[:, y1, z1])
    return out


def naive_cut(x: Tensor, left: int, top: int, width: int, height: int, side: int) -> Tensor:
    """Return a part of whole pixels of one image, each new pixel a mean of those near it in the part, by loops."""
    out = torch.zeros(len(x), side, side)
    reach_y, reach_z = max(1.0, height / side), max(1.0, width / side)
    for i in range(side):
        for j in range(side):
            y, z = top + height * (i + 0.5) / side, left + width * (j + 0.5) / side
            total = 0.0
            for p in range(top, top + height):
                for q in range(left, left + width):
                    weight = max(0.0, 1 - abs(p + 0.5 - y) / reach_y) * max(0.0, 1 - abs(q + 0.5 - z) / reach_z)
                    out[:, i, j] += weight * x[:, p, q]
                    total += weight
            out[:, i, j] /= total
    return out


UNIT = st.floats(0, 0.9990234375, width=32)


def larger(area: float, smallest: float, widest: float) -> float:
    """Return the integral over areas from ``area`` to 1 of how much of the logarithms of ratios fits, by its pieces."""
    bend = max(smallest, math.exp(-widest))
    beyond = 1 - max(area, bend) + max(area, bend) * math.log(max(area, bend))
    return beyond + widest * max(0.0, bend - area)


def fitting_area(u: float, smallest: float, aspect: float) -> float:
    """Return the area that ``u`` stands for, by halving: the larger, the fewer parts are larger still."""
    widest = math.log(aspect)
    total = larger(smallest, smallest, widest)
    whole = (1 - total / (widest * (1 - smallest))) ** 10
    if u < whole:
        return 1.0
    low, high = smallest, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if larger(middle, smallest, widest) / total * (1 - whole) > u - whole else (low, middle)
        )
    return low


def drawn_part(u: list[float], smallest: float, aspect: float) -> tuple[float, float]:
    """Return width and height of the part that ``u`` stands for, as shares of the image's sides."""
    area = fitting_area(u[0], smallest, aspect)
    ratio = math.exp((2 * u[3] - 1) * min(math.log(aspect), -math.log(area)))
    width, height = math.sqrt(area * ratio), math.sqrt(area / ratio)
    assert width <= 1 + 1e-6 and height <= 1 + 1e-6 and 1 / aspect <= ratio <= aspect
    return width, height


DRAWS, SMALLEST, ASPECT = st.lists(UNIT, min_size=4, max_size=4), st.floats(0.05, 0.99), st.floats(1.01, 2.5)


@given(u=DRAWS, smallest=SMALLEST, aspect=ASPECT, side=st.sampled_from([7, 9]))
def test_a_random_part_against_loops(u: list[float], smallest: float, aspect: float, side: int) -> None:
    x = torch.rand(2, 7, 7, generator=torch.Generator().manual_seed(0))
    width, height = drawn_part(u, smallest, aspect)
    found = resized_crop(x[None], torch.tensor([u]), smallest, aspect, side)
    wanted = naive_part(x, (1 - width) * u[1], (1 - height) * u[2], width, height, side)
    torch.testing.assert_close(found[0], wanted, atol=2e-5, rtol=0)


@given(u=DRAWS, smallest=SMALLEST, aspect=ASPECT, side=st.sampled_from([3, 5]))
def test_a_random_part_of_a_larger_image_against_loops(
    u: list[float], smallest: float, aspect: float, side: int
) -> None:
    x = torch.rand(2, 9, 9, generator=torch.Generator().manual_seed(0))
    sizes = [9 * share for share in drawn_part(u, smallest, aspect)]
    assume(all(abs(size % 1 - 0.5) > 1e-3 for size in sizes))  # which way a half is rounded is nobody's business
    width, height = map(round, sizes)
    places = [u[1] * (10 - width), u[2] * (10 - height)]
    left, top = map(int, places)
    assert left + width <= 9 and top + height <= 9
    found = resized_crop(x[None], torch.tensor([u]), smallest, aspect, side)
    torch.testing.assert_close(found[0], naive_cut(x, left, top, width, height, side), atol=2e-5, rtol=0)


@pytest.mark.parametrize(("smallest", "aspect"), [(0.85, 4 / 3), (0.5, 4 / 3), (0.08, 4 / 3), (0.2, 2.5), (0.97, 1.5)])
def test_parts_are_as_if_drawn_again_until_they_fit(smallest: float, aspect: float) -> None:
    rng, drawn = random.Random(0), []
    for _ in range(20_000):
        for _ in range(10):
            area = rng.uniform(smallest, 1)
            ratio = math.exp(rng.uniform(-math.log(aspect), math.log(aspect)))
            if area * ratio <= 1 and area / ratio <= 1:
                break
        else:
            area = ratio = 1.0
        drawn.append((math.sqrt(area * ratio), math.sqrt(area / ratio)))
    # of an image whose pixels say where they are, the outermost of a part tell its sides
    across = torch.linspace(-1, 1, 21)
    place = torch.stack([across.expand(21, 21), across[:, None].expand(21, 21)])
    u = torch.rand(20_000, 4, generator=torch.Generator().manual_seed(0))
    parts = torch.cat(
        [resized_crop(place.expand(len(some), -1, -1, -1), some, smallest, aspect) for some in u.split(500)]
    )
    width = (parts[:, 0, 0, -1] - parts[:, 0, 0, 0]) / 2
    height = (parts[:, 1, -1, 0] - parts[:, 1, 0, 0]) / 2
    found, wanted = torch.stack([width, height]), torch.tensor(drawn).T
    at = torch.tensor([0.05, 0.25, 0.5, 0.75, 0.95])
    for one, other in [*zip(found, wanted, strict=True), (found.prod(dim=0), wanted.prod(dim=0))]:
        torch.testing.assert_close(one.quantile(at), other.quantile(at), atol=0.015, rtol=0)
    assert abs((found > 0.9999).all(dim=0).float().mean() - (wanted == 1).all(dim=0).float().mean()) < 0.015


def test_squares_take_three_draws_and_their_numbers_are_as_before() -> None:
    x, u = torch.rand(3, 1, 8, 8), torch.rand(3, 4)
    square = Augmentation(resized_crop=0.5)
    assert square.n_draws == 3 and Augmentation(resized_crop=0.5, aspect=1.5).n_draws == 4
    assert torch.equal(resized_crop(x, u, 0.5), resized_crop(x, u, 0.5, 1.0, 8))
    whole = Augmentation(side=4)  # nothing random but the size: all of the image, smaller
    images = torch.full((2, 3, 8, 8), 51, dtype=torch.uint8)
    view = whole.view(images, torch.rand(2, whole.n_draws))
    assert view.shape == (2, 3, 4, 4) and torch.allclose(view, torch.tensor(0.2))
