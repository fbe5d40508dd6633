"""Trunks, shortcuts, freezing and heads."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from autonovel import draws, networks
from autonovel.errors import UsageError
from autonovel.networks import NETWORKS, Model, heads
from autonovel.networks.resnet import BasicBlock

BLOCKS = {"small": ["stem", "block1", "block2", "block3"], "resnet18": ["stem", "block1", "block2", "block3", "block4"]}
WIDTHS = {"small": (16, 32, 64), "resnet18": (64, 128, 256, 512)}
DEPTH = {"small": 1, "resnet18": 2}


def model(name: str = "small", channels: int = 1, seed: int = 0) -> Model:
    return networks.build(name, channels, torch.full((channels,), 0.4), torch.full((channels,), 0.3), seed)


def images(n: int = 4, channels: int = 1, height: int = 8, width: int = 8, seed: int = 0) -> Tensor:
    return torch.rand(n, channels, height, width, generator=torch.Generator().manual_seed(seed))


def running(module: nn.Module) -> list[Tensor]:
    return [b.clone() for name, b in module.named_buffers() if "running" in name]


# ---------------------------------------------------------------------------------------------------
# size and shape


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("channels", [1, 3])
def test_number_of_parameters_by_formula(name: str, channels: int) -> None:
    """3×3 convolutions without biases, two numbers per BatchNorm channel, nothing in the shortcuts."""
    widths, depth = WIDTHS[name], DEPTH[name]
    convolutions = [(channels, widths[0])]
    before = widths[0]
    for width in widths:
        convolutions += [(before, width), (width, width)] + [(width, width)] * 2 * (depth - 1)
        before = width
    wanted = sum(9 * a * b + 2 * b for a, b in convolutions)
    found = NETWORKS[name](channels)
    assert sum(p.numel() for p in found.parameters()) == wanted
    assert found.n_features == widths[-1]


def test_resnet18_has_the_size_of_the_published_one() -> None:
    trunk = NETWORKS["resnet18"](3)
    # 9 × (3·64 + 4·64² + 64·128 + 3·128² + 128·256 + 3·256² + 256·512 + 3·512²) + 2 × (5·64 + 4·128 + 4·256 + 4·512)
    assert sum(p.numel() for p in trunk.parameters()) == 10_987_200 + 7_808
    trunk.freeze(("stem", "block1", "block2", "block3"))
    trained = sum(p.numel() for p in trunk.parameters() if p.requires_grad)
    assert trained + 2 * (512 * 5 + 5) == pytest.approx(8.26e6, rel=0.002)  # last block and two heads of 5


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_are_named_in_order(name: str) -> None:
    assert list(NETWORKS[name](1).blocks) == BLOCKS[name]


@pytest.mark.parametrize(("height", "width"), [(1, 1), (2, 3), (5, 5), (7, 8), (9, 15), (14, 14), (28, 32), (33, 17)])
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_features_of_images_of_any_size(channels: int, height: int, width: int) -> None:
    z = model(channels=channels).eval().features(images(2, channels, height, width))
    assert z.shape == (2, 64)
    assert z.dtype == torch.float32
    assert (z >= 0).all() and (z > 0).any()


@pytest.mark.parametrize(("height", "width"), [(32, 32), (13, 9), (1, 2)])
def test_features_of_resnet18(height: int, width: int) -> None:
    z = model("resnet18", 3).eval().features(images(2, 3, height, width))
    assert z.shape == (2, 512)
    assert (z >= 0).all()


@pytest.mark.parametrize(
    ("block", "side"), [("stem", 32), ("block1", 32), ("block2", 16), ("block3", 8), ("block4", 4)]
)
def test_resnet18_halves_the_image_three_times(block: str, side: int) -> None:
    trunk, seen = NETWORKS["resnet18"](3).eval(), {}
    for name, module in trunk.blocks.items():
        module.register_forward_hook(lambda _m, _x, out, name=name: seen.update({name: out.shape}))
    trunk(images(1, 3, 32, 32))
    assert seen[block][2:] == (side, side)


def test_features_are_the_mean_over_the_image() -> None:
    m = model().eval()
    x = images(3)
    maps = (x - m.mean) / m.std
    for block in m.trunk.blocks.values():
        maps = block(maps)
    assert torch.allclose(m.features(x), maps.mean(dim=(2, 3)), atol=1e-5)


def test_the_model_normalises_its_images() -> None:
    mean, std = torch.tensor([0.1, 0.5]), torch.tensor([0.2, 0.7])
    m = networks.build("small", 2, mean, std, 0).eval()
    x = images(3, 2)
    by_hand = torch.stack([(x[:, 0] - 0.1) / 0.2, (x[:, 1] - 0.5) / 0.7], dim=1)
    assert torch.allclose(m.features(x), m.trunk(by_hand), atol=1e-5)


def test_forward_is_features_then_one_head() -> None:
    m = model().eval()
    m.heads["known"] = heads.linear_head(64, 3, draws.generator(0))
    m.heads["new"] = heads.linear_head(64, 4, draws.generator(1))
    x = images()
    z = m.features(x)
    for name, head in m.heads.items():
        wanted = z @ head.weight.T + head.bias
        assert torch.allclose(m(x, name), wanted, atol=1e-5)
        assert torch.allclose(m.logits(z, name), wanted, atol=1e-5)


def test_bf16_runs_on_a_cpu_and_returns_float32() -> None:
    m = model(channels=3).eval()
    x = images(8, 3)
    exact = m.features(x)
    m.precision = "bf16"
    seen = []
    m.trunk.blocks["block3"].register_forward_hook(lambda _m, _x, out: seen.append(out.dtype))
    rough = m.features(x)
    assert seen == [torch.bfloat16]
    assert rough.dtype == torch.float32
    assert not torch.equal(rough, exact)
    assert torch.allclose(rough, exact, rtol=0.1, atol=0.02)


# ---------------------------------------------------------------------------------------------------
# shortcut


def naive_shortcut(x: np.ndarray, width: int, stride: int) -> np.ndarray:
    """Average the pixels of every 2×2 window that exist, and append channels of zeros."""
    n, c, h, w = x.shape
    out = np.zeros((n, width, -(-h // stride), -(-w // stride)))
    for row in range(out.shape[2]):
        for column in range(out.shape[3]):
            window = x[:, :, stride * row : stride * (row + 1), stride * column : stride * (column + 1)]
            out[:, :c, row, column] = window.mean(axis=(2, 3))
    return out


@pytest.mark.parametrize(("width_in", "width", "stride"), [(3, 3, 1), (3, 6, 2), (4, 4, 2), (2, 5, 1)])
@pytest.mark.parametrize(("height", "width_px"), [(4, 4), (5, 7), (1, 1), (2, 9)])
def test_shortcut_equals_a_loop(width_in: int, width: int, stride: int, height: int, width_px: int) -> None:
    x = images(2, width_in, height, width_px)
    block = BasicBlock(width_in, width, stride)
    assert np.allclose(block._shortcut(x).numpy(), naive_shortcut(x.numpy(), width, stride), atol=1e-6)


def test_a_block_whose_convolutions_are_silent_is_its_shortcut() -> None:
    block = BasicBlock(2, 5, 2).eval()
    nn.init.zeros_(block.bn2.weight)
    x = images(2, 2, 5, 7) - 0.5
    assert np.allclose(block(x).detach().numpy(), naive_shortcut(x.numpy(), 5, 2).clip(min=0), atol=1e-6)


def test_a_block_by_hand() -> None:
    block = BasicBlock(2, 2, 1).eval()
    x = images(1, 2, 6, 6) - 0.5
    inner = torch.relu(block.bn1(block.conv1(x)))
    assert torch.allclose(block(x), torch.relu(block.bn2(block.conv2(inner)) + x), atol=1e-6)


# ---------------------------------------------------------------------------------------------------
# freezing


@pytest.mark.parametrize("frozen", [(), ("stem",), ("stem", "block1"), ("block2",), ("stem", "block1", "block2")])
def test_frozen_blocks_get_no_gradient_and_others_do(frozen: tuple[str, ...]) -> None:
    m = model()
    m.trunk.freeze(frozen)
    m.features(images(6)).sum().backward()
    for name, block in m.trunk.blocks.items():
        for parameter in block.parameters():
            assert parameter.requires_grad == (name not in frozen)
            assert (parameter.grad is None) == (name in frozen)


def test_all_blocks_frozen_leave_features_without_a_graph() -> None:
    m = model()
    m.trunk.freeze(tuple(BLOCKS["small"]))
    assert not m.features(images(6)).requires_grad


def test_leading_frozen_blocks_build_no_graph_at_all() -> None:
    m = model()
    m.trunk.freeze(("stem", "block1"))
    x = images(6).requires_grad_()
    m.features(x).sum().backward()
    assert x.grad is None


def test_a_frozen_block_behind_a_trained_one_lets_gradients_through() -> None:
    m = model()
    m.trunk.freeze(("block3",))
    m.features(images(6)).sum().backward()
    stem = m.trunk.blocks["stem"].get_submodule("0").weight
    assert stem.grad is not None and float(stem.grad.abs().sum()) > 0


def test_freezing_anew_forgets_the_old_choice() -> None:
    trunk = model().trunk
    trunk.freeze(("stem", "block1"), "eval")
    trunk.freeze(("block2",), "train")
    trained = {name for name, block in trunk.blocks.items() if all(p.requires_grad for p in block.parameters())}
    assert trained == {"stem", "block1", "block3"}
    assert all(module.training for module in trunk.modules())


@pytest.mark.parametrize(("batchnorm", "moves"), [("train", True), ("eval", False)])
def test_statistics_of_frozen_batchnorm(batchnorm: str, moves: bool) -> None:
    m = model()
    m.train()
    m.trunk.freeze(("stem", "block1"), batchnorm)
    before = {name: running(block) for name, block in m.trunk.blocks.items()}
    m.train()  # as the loop does before every epoch
    m.features(images(6))
    for name, block in m.trunk.blocks.items():
        moved = [not torch.equal(a, b) for a, b in zip(before[name], running(block), strict=True)]
        assert all(moved) if moves or name not in ("stem", "block1") else not any(moved)


@pytest.mark.parametrize("batchnorm", ["train", "eval"])
def test_nothing_moves_in_eval_mode(batchnorm: str) -> None:
    m = model()
    m.trunk.freeze(("stem",), batchnorm)
    m.eval()
    before = running(m)
    m.features(images(6))
    assert all(torch.equal(a, b) for a, b in zip(before, running(m), strict=True))


def test_frozen_batchnorm_in_train_mode_normalises_by_the_batch() -> None:
    m = model()
    m.trunk.freeze(("stem",), "train")
    m.train()
    out = m.trunk.blocks["stem"].get_submodule("1")(images(50, 16))
    assert torch.allclose(out.mean(dim=(0, 2, 3)), torch.zeros(16), atol=1e-5)


@pytest.mark.parametrize("names", [("block9",), ("stem", "layer4"), ("",)])
def test_an_unknown_block_is_refused_by_name(names: tuple[str, ...]) -> None:
    trunk = model().trunk
    with pytest.raises(UsageError) as error:
        trunk.freeze(names)
    assert names[-1] in str(error.value)
    assert "stem, block1, block2, block3" in str(error.value)
    assert trunk.frozen == ()
    assert all(p.requires_grad for p in trunk.parameters())


# ---------------------------------------------------------------------------------------------------
# building


@pytest.mark.parametrize("name", BLOCKS)
def test_weights_are_a_function_of_the_seed(name: str) -> None:
    torch.manual_seed(1)
    first = model(name, seed=7).state_dict()
    torch.manual_seed(2)
    again, other = model(name, seed=7).state_dict(), model(name, seed=8).state_dict()
    assert all(torch.equal(first[key], again[key]) for key in first)
    convolutions = [key for key in first if "conv" in key or key.endswith("stem.0.weight")]
    assert len(convolutions) == 1 + 2 * DEPTH[name] * len(WIDTHS[name])
    assert not any(torch.equal(first[key], other[key]) for key in convolutions)


def test_convolutions_start_in_the_default_distribution() -> None:
    weight = model("resnet18", 3).state_dict()["trunk.blocks.block1.0.conv1.weight"]
    bound = (64 * 9) ** -0.5
    assert float(weight.abs().max()) <= bound
    assert float(weight.abs().max()) > 0.99 * bound
    assert float(weight.std()) == pytest.approx(bound / 3**0.5, rel=0.02)


# ---------------------------------------------------------------------------------------------------
# heads


def test_a_linear_head_starts_in_the_default_distribution() -> None:
    head = heads.linear_head(400, 50, draws.generator(0))
    assert head.weight.shape == (50, 400) and head.bias.shape == (50,)
    for parameter in (head.weight, head.bias):
        assert 0.9 / 20 < float(parameter.detach().abs().max()) <= 1 / 20
    assert torch.equal(head.weight, heads.linear_head(400, 50, draws.generator(0)).weight)
    assert not torch.equal(head.weight, heads.linear_head(400, 50, draws.generator(1)).weight)


@pytest.mark.parametrize("new_bias", ["below", "random"])
def test_a_grown_head_keeps_its_old_rows(new_bias: str) -> None:
    old = heads.linear_head(6, 3, draws.generator(0))
    with torch.no_grad():
        old.bias.copy_(torch.tensor([0.5, -2.0, 1.0]))
    grown = heads.grown_head(old, 4, draws.generator(1), new_bias)
    assert grown.weight.shape == (7, 6)
    assert torch.equal(grown.weight[:3], old.weight) and torch.equal(grown.bias[:3], old.bias)
    new = grown.weight[3:].detach()
    assert len(new.unique()) == 24 and float(new.abs().max()) <= 6**-0.5
    if new_bias == "below":
        assert grown.bias[3:].tolist() == [-3.0] * 4
    else:
        assert len(grown.bias[3:].unique()) == 4 and float(grown.bias[3:].detach().abs().max()) <= 6**-0.5
    assert grown.weight.requires_grad and grown.bias.requires_grad


def test_a_grown_head_is_no_part_of_the_old_one() -> None:
    old = heads.linear_head(6, 3, draws.generator(0))
    before = old.weight.detach().clone()
    grown = heads.grown_head(old, 1, draws.generator(1))
    with torch.no_grad():
        grown.weight.zero_()
    assert torch.equal(old.weight, before)


@given(st.permutations(range(5)))
def test_reorder_permutes_the_outputs(order: list[int]) -> None:
    head = heads.linear_head(4, 5, draws.generator(0))
    z = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    before, weight, bias = (x.detach().clone() for x in (head(z), head.weight, head.bias))
    heads.reorder(head, torch.tensor(order))
    assert torch.equal(head.weight, weight[order]) and torch.equal(head.bias, bias[order])
    assert torch.allclose(head(z), before[:, order], atol=1e-6)


@pytest.mark.parametrize(("n", "d"), [(2, 1), (5, 3), (9, 20)])
def test_the_nearest_point_head_answers_the_nearest_point(n: int, d: int) -> None:
    rng = torch.Generator().manual_seed(n)
    points, z = torch.randn(n, d, generator=rng), torch.randn(100, d, generator=rng)
    head = heads.nearest_point_head(points)
    wanted = [min(range(n), key=lambda c, row=row: float((row - points[c]).square().sum())) for row in z]
    assert head(z).argmax(dim=1).tolist() == wanted
    assert len(set(wanted)) > 1


def test_heads_of_different_purposes_differ() -> None:
    made = [heads.linear_head(8, 4, draws.generator(0, purpose)).weight for purpose in (10, 20, 30, 31)]
    for a, b in itertools.combinations(made, 2):
        assert not torch.equal(a, b)


def test_images_of_a_set_pass_through_the_model(make_images: Callable[..., object]) -> None:
    x = make_images(channels=3, height=9, width=11).images.float() / 255  # type: ignore[attr-defined]
    assert model(channels=3).eval().features(x).shape == (24, 64)
