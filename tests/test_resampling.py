"""Parts of images as other numbers of pixels, beside Pillow, whose arithmetic the published views have."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from autonovel import networks, settings
from autonovel.augment import Augmentation
from autonovel.resampling import fitting, parts, shrunk


def by_pillow(x: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """Return one channel of an image, resized to width and height ``size``."""
    return torch.from_numpy(np.asarray(Image.fromarray(x.numpy()).resize(size, Image.Resampling.BILINEAR)).copy())


@given(st.integers(0, 12), st.integers(0, 16), st.integers(1, 13), st.integers(1, 17), st.integers(1, 24))
def test_a_part_is_as_pillow_cuts_and_resizes_it(left: int, top: int, width: int, height: int, side: int) -> None:
    x = torch.rand(2, 3, 17, 13, generator=torch.Generator().manual_seed(0))
    width, height = min(width, 13 - left), min(height, 17 - top)
    found = parts(x, *(torch.tensor([number, 0]) for number in (left, top)),
                  torch.tensor([width, 13]), torch.tensor([height, 17]), side)  # fmt: skip
    cut = x[0, 1, top : top + height, left : left + width]
    torch.testing.assert_close(found[0, 1], by_pillow(cut, (side, side)), atol=1e-5, rtol=0)
    torch.testing.assert_close(found[1, 2], by_pillow(x[1, 2], (side, side)), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("shape", "side", "wanted"), [
    ((105, 105), 32, (32, 32)), ((20, 30), 10, (10, 15)), ((31, 20), 10, (16, 10)), ((9, 9), 9, (9, 9)),
    ((8, 30), 10, (8, 30)), ((40, 50), 0, (40, 50)),
])  # fmt: skip
def test_larger_images_shrink(shape: tuple[int, int], side: int, wanted: tuple[int, int]) -> None:
    x = torch.rand(2, 3, *shape, generator=torch.Generator().manual_seed(0))
    found = shrunk(x, side)
    assert fitting(*shape, side) == tuple(found.shape[2:]) == wanted
    if wanted == shape:
        assert found is x
    else:
        torch.testing.assert_close(found[1, 2], by_pillow(x[1, 2], wanted[::-1]), atol=1e-5, rtol=0)


def test_a_network_takes_images_as_small_as_the_parts_it_learns_from() -> None:
    network = settings.Network(name="vgg", side=32, crop=30)
    model = networks.build(network, 1, torch.zeros(1), torch.ones(1), 0).eval()
    images = torch.randint(0, 256, (3, 1, 105, 105), dtype=torch.uint8)
    whole = Augmentation(side=32).view(images, torch.rand(3, 3))  # nothing random: all of it, as small as a view
    torch.testing.assert_close(whole, shrunk(images.float() / 255, 32))
    seen: list[torch.Tensor] = []
    model.trunk.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    with torch.no_grad():
        wanted = model.features(whole)
        torch.testing.assert_close(model.clean_features(images), wanted)
    assert [tuple(x.shape) for x in seen] == [(3, 1, 30, 30)] * 2
    torch.testing.assert_close(seen[0], whole[:, :, 1:31, 1:31])


def test_views_of_larger_images_are_not_aliased() -> None:
    stripes = (torch.arange(96) % 2).expand(1, 1, 96, 96).to(torch.uint8) * 255
    view = Augmentation(resized_crop=0.85, side=32).view(stripes, torch.tensor([[0.5, 0.3, 0.7]]))
    assert (view - 0.5).abs().max() < 0.12  # each pixel of three; taken one by one they would be black and white
