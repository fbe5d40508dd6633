"""The network for characters and its two-layer heads."""

from pathlib import Path

import pytest
import torch
from torch import nn

from autonovel import draws, networks
from autonovel.networks import heads
from autonovel.networks.vgg import vgg
from autonovel.settings import Network


def test_features_are_the_last_map_pixel_by_pixel() -> None:
    trunk = vgg(1).eval()
    x = torch.rand(3, 1, 32, 32)
    z = trunk(x)
    y = x
    for block in trunk.blocks.values():
        y = block(y)
    assert y.shape == (3, 256, 2, 2)
    assert z.shape == (3, trunk.n_features) == (3, 1024)
    torch.testing.assert_close(z, y.reshape(3, -1))
    assert (z >= 0).all()  # so that ranking by value and by magnitude agree
    assert list(trunk.blocks) == ["block1", "block2", "block3", "block4"]
    convolutions = [layer for layer in trunk.modules() if isinstance(layer, nn.Conv2d)]
    assert [layer.out_channels for layer in convolutions] == [64, 128, 256, 256]


@pytest.mark.parametrize("side", [16, 28, 48])
def test_other_sizes_give_as_many_features(side: int) -> None:
    assert vgg(3).eval()(torch.rand(2, 3, side, side)).shape == (2, 1024)


def test_channels_last_keeps_the_order_of_the_features() -> None:
    trunk = vgg(1).eval()
    x = torch.rand(2, 1, 32, 32)
    plain = trunk(x)
    trunk.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    torch.testing.assert_close(trunk(x.contiguous(memory_format=torch.channels_last)), plain, rtol=1e-4, atol=1e-5)


def model() -> networks.Model:
    return networks.build(Network(name="vgg", head_width=8), 1, torch.tensor([0.1]), torch.tensor([0.3]), seed=3)


def test_heads_have_two_layers_where_the_network_says_so() -> None:
    head = model().new_head(5, draws.generator(0, 1))
    assert isinstance(head, heads.TwoLayerHead)
    assert (head.in_features, head.out_features) == (1024, 5)
    z = torch.rand(7, 1024)
    inner = torch.relu(head.norm(z @ head.first.weight.T))
    torch.testing.assert_close(head.train()(z), inner @ head.last.weight.T + head.last.bias)
    again = model().new_head(5, draws.generator(0, 1))
    assert all(torch.equal(a, b) for a, b in zip(head.parameters(), again.parameters(), strict=True))
    plain = networks.build("vgg", 1, torch.tensor([0.1]), torch.tensor([0.3]), 0).new_head(5, draws.generator(0, 1))
    assert isinstance(plain, nn.Linear)


def test_a_two_layer_head_grows_and_is_put_into_another_order() -> None:
    head = model().new_head(3, draws.generator(0, 1)).eval()
    z = torch.rand(4, 1024)
    before = head(z)
    grown = heads.grown_head(head, 2, draws.generator(0, 2)).eval()
    assert grown.out_features == 5
    torch.testing.assert_close(grown(z)[:, :3], before)
    assert (heads.last_layer(grown).bias[3:] == heads.last_layer(head).bias.min() - 1).all()
    heads.reorder(head, torch.tensor([2, 0, 1]))
    torch.testing.assert_close(head(z), before[:, [2, 0, 1]])


def test_a_two_layer_head_is_read_back_from_its_weights(tmp_path: Path) -> None:
    head = model().new_head(3, draws.generator(0, 1)).eval()
    tensors = {f"heads.new.{name}": value for name, value in head.state_dict().items()}
    empty = heads.empty_head(tensors, "heads.new")
    empty.load_state_dict(head.state_dict())
    z = torch.rand(4, 1024)
    assert torch.equal(empty.eval()(z), head(z))
