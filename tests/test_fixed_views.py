"""Views drawn beforehand: which they are, that frozen blocks see each once, and that nothing else changes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from autonovel import draws, networks
from autonovel.augment import Augmentation
from autonovel.data import Batch, ImageSet
from autonovel.data.streamed import HostPixels
from autonovel.errors import UsageError
from autonovel.methods import fixed_views
from autonovel.methods.fixed_views import FixedViews
from autonovel.methods.rankstats import Joint
from autonovel.methods.views import two_views
from autonovel.networks import Adapted, Model
from autonovel.settings import Augment
from autonovel.settings import Joint as Settings
from autonovel.training import batch_statistics
from autonovel.training.loop import run_stage
from every_stage import Told, context_in, ready, some_images

SHIFT: dict[str, Any] = {"augment.shift": 1.0, "augment.rotate": 0.3}


def joint(**changes: Any) -> tuple[Model, Joint]:
    model, stage = ready("fixed views", **SHIFT, **changes)
    assert isinstance(stage, Joint)
    stage.prepare(model)
    return model.train(), stage


def batch_of(images: ImageSet, index: list[int], seed: int = 3) -> Batch:
    rows = torch.tensor(index)
    u = torch.rand(len(rows), 2, generator=torch.Generator().manual_seed(seed))
    assert isinstance(images.images, Tensor)
    y = images.y[rows]
    return Batch(images.images[rows], y, (y >= 0).float(), None, u, rows)


@contextmanager
def calls_of(block: torch.nn.Module) -> Iterator[list[int]]:
    """Count the images that go through ``block``."""
    seen: list[int] = []
    handle = block.register_forward_hook(lambda module, inputs, out: seen.append(len(inputs[0])))
    yield seen
    handle.remove()


def test_a_view_is_a_function_of_image_and_number_alone() -> None:
    images = some_images()
    assert isinstance(images.images, Tensor)
    views = FixedViews(Augmentation(shift=1.0, rotate=0.3), 4, key=11)
    image, view = torch.tensor([5, 2, 5, 9]), torch.tensor([0, 3, 0, 1])
    found = views.pixels(images.images[image], image, view)
    for row, (i, v) in enumerate(zip(image.tolist(), view.tolist(), strict=True)):
        u = draws.uniform(11, torch.tensor([v]), torch.tensor([[i]]), views.augmentation.n_draws)[0]
        assert torch.equal(found[row], views.augmentation.view(images.images[i : i + 1], u)[0])
    assert torch.equal(found[0], found[2])
    other = views.pixels(images.images[image], image, (view + 1) % 4)
    assert all(not torch.equal(one, two) for one, two in zip(found, other, strict=True))


@pytest.mark.parametrize("count", [2, 3, 8])
def test_two_different_views_are_picked_each_pair_as_often(count: int) -> None:
    u = torch.rand(40_000, 2, generator=torch.Generator().manual_seed(0))
    first, second = FixedViews(Augmentation(), count, 0).pick(u)
    table = torch.zeros(count, count)
    for one, two in zip(first.tolist(), second.tolist(), strict=True):
        table[one, two] += 1
    pairs = count * (count - 1)
    assert table.diagonal().sum() == 0
    off = table[~torch.eye(count, dtype=torch.bool)]
    assert torch.allclose(off / len(u), torch.full((pairs,), 1 / pairs), atol=0.01)


def test_the_largest_random_number_picks_a_view_that_there_is() -> None:
    most = torch.full((1, 2), 1 - 2**-24)
    first, second = FixedViews(Augmentation(), 3, 0).pick(most)
    assert (int(first), int(second)) == (2, 1)


@pytest.mark.parametrize("views", ["joint", "separate"])
def test_features_are_those_of_the_views_themselves(views: str, monkeypatch: pytest.MonkeyPatch) -> None:
    images, index = some_images(), [3, 20, 8, 0, 23, 8]
    batch = batch_of(images, index)
    model, stage = joint(views=views)
    assert stage.fixed is not None
    afresh = two_views(stage.settings, model, batch, stage.fixed)
    monkeypatch.setattr(fixed_views, "CHUNK", 7)
    told = Told()
    with stage.foresee(model, images, told):
        looked_up = two_views(stage.settings, model, batch, stage.fixed)
    assert "computed once, of 3 views an image" in told.said[0]
    for one, other in zip(afresh, looked_up, strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    assert not torch.allclose(*looked_up, atol=1e-3)


def test_other_views_come_into_use_after_some_epochs() -> None:
    images = some_images()
    assert isinstance(images.images, Tensor)
    image, number = torch.arange(24), torch.zeros(24, dtype=torch.int64)
    model, stage = joint(renew_views=2)
    assert stage.fixed is not None
    seen = {}
    with stage.foresee(model, images, told := Told()):
        assert stage.fixed.maps is not None
        address = stage.fixed.maps.data_ptr(), stage.fixed.first.data_ptr()
        for epoch in (0, 1, 2, 3, 5):  # 5 as after a resume
            stage.before_epoch(model, images, epoch)
            model.train()
            seen[epoch] = stage.fixed.pixels(images.images, image, number + 1)
            assert torch.allclose(stage.fixed.maps[:, 1].movedim(-1, 1), model.settled_maps(seen[epoch]), atol=1e-5)
            assert (stage.fixed.maps.data_ptr(), stage.fixed.first.data_ptr()) == address  # where a recorded step looks
    assert "computed every 2 epochs, of 3 views an image" in told.said[0]
    for epoch, round_ in ((0, 0), (1, 0), (2, 1), (3, 1), (5, 2)):
        u = draws.uniform(stage.fixed.key, number + 3 * round_ + 1, image[:, None], stage.fixed.augmentation.n_draws)
        assert torch.equal(seen[epoch], stage.fixed.augmentation.view(images.images, u[:, 0]))
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[0], seen[2])
    assert not torch.equal(seen[2], seen[5])


def test_a_resumed_stage_computes_the_views_of_its_epoch_alone() -> None:
    images = some_images()
    model, stage = joint(renew_views=2)
    assert stage.fixed is not None
    with calls_of(model.trunk.blocks["block1"]) as seen, stage.foresee(model, images, Told(), epoch=5):
        stage.before_epoch(model, images, 5)
        assert sum(seen) == 1 + 3 * len(images)  # one shows how large a map is
        assert int(stage.fixed.first) == 6


def test_a_step_does_not_go_through_frozen_blocks() -> None:
    images = some_images()
    model, stage = joint()
    assert stage.fixed is not None and model.trunk.settled == ["stem", "block1"]
    with calls_of(model.trunk.blocks["block1"]) as before, calls_of(model.trunk.blocks["block2"]) as trained:
        two_views(stage.settings, model, batch_of(images, [1, 2, 3]), stage.fixed)
    assert before == [6] and trained == [6]
    block1, block2 = model.trunk.blocks["block1"], model.trunk.blocks["block2"]
    with stage.foresee(model, images, Told()), calls_of(block1) as after, calls_of(block2) as trained:
        two_views(stage.settings, model, batch_of(images, [1, 2, 3]), stage.fixed)
    assert after == [] and trained == [6]


def trained(folder: Path, told: Told, images: ImageSet, renew: int = 0) -> dict[str, Tensor]:
    model, stage = ready("fixed views", **SHIFT, epochs=2, renew_views=renew)
    assert isinstance(stage, Joint)
    run_stage(model, stage, images, context_in(folder, told))
    assert stage.fixed is not None and stage.fixed.maps is None  # the memory is free again
    return model.state_dict()


@pytest.mark.parametrize("renew", [0, 1])
def test_training_is_the_same_where_there_is_no_room(
    renew: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roomy, narrow, streamed = Told(), Told(), Told()
    images = some_images()
    assert isinstance(images.images, Tensor)
    kept = trained(tmp_path / "roomy", roomy, images, renew)
    monkeypatch.setattr(fixed_views, "SHARE", 0.0)
    afresh = trained(tmp_path / "narrow", narrow, images, renew)
    by_batch = trained(tmp_path / "streamed", streamed, replace(images, images=HostPixels(images.images)), renew)
    assert ("computed every 1 epoch," if renew else "computed once") in " ".join(roomy.said)
    assert "too large to keep" in " ".join(narrow.said)
    assert "batch by batch" in " ".join(streamed.said)
    for key, value in kept.items():
        assert torch.allclose(value.float(), afresh[key].float(), atol=1e-4), key
        assert torch.allclose(value.float(), by_batch[key].float(), atol=1e-4), key


def test_blocks_frozen_behind_trained_ones_are_not_looked_up() -> None:
    model, stage = joint(frozen=("block1",))
    assert stage.fixed is not None and model.trunk.settled == []
    told = Told()
    with stage.foresee(model, some_images(), told):
        assert stage.fixed.maps is None
    assert "no frozen block comes first" in told.said[0]


def test_a_program_that_was_quicker_has_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    model, stage = joint()
    told = Told()

    def none_left(*shape: int, **options: Any) -> Tensor:
        raise torch.OutOfMemoryError("another program has it")

    monkeypatch.setattr(torch, "empty", none_left)
    with stage.foresee(model, some_images(), told):
        assert stage.fixed is not None and stage.fixed.maps is None
    assert "too large to keep" in told.said[0]


def test_processes_that_share_a_memory_share_the_room_in_it() -> None:
    model, stage = joint()
    crowd = replace(model.ranks.launch, local_world=10**9)
    model.ranks = SimpleNamespace(launch=crowd)  # type: ignore[assignment]
    told = Told()
    with stage.foresee(model, some_images(), told):
        assert stage.fixed is not None and stage.fixed.maps is None
    assert "too large to keep" in told.said[0]


def test_processes_do_not_average_statistics_that_are_fixed() -> None:
    model, _ = joint()
    averaged: list[Tensor] = []
    model.ranks = SimpleNamespace(world=3, average=averaged.extend)  # type: ignore[assignment]
    batch_statistics.average(model)
    statistics = {name: value for name, value in model.trunk.named_buffers() if name.endswith(("mean", "var"))}
    taken = {name for name, value in statistics.items() if any(value is one for one in averaged)}
    assert taken == {name for name in statistics if not name.startswith(("blocks.stem", "blocks.block1"))} != set()


def test_memory_is_free_after_an_error() -> None:
    model, stage = joint()
    assert stage.fixed is not None
    with pytest.raises(ZeroDivisionError), stage.foresee(model, some_images(), Told()):
        assert stage.fixed.maps is not None
        raise ZeroDivisionError
    assert stage.fixed.maps is None


@pytest.mark.parametrize("frozen", [("pretrained",), ("pretrained", "adapter")])
def test_an_adapter_comes_after_the_average(frozen: tuple[str, ...]) -> None:
    torch.manual_seed(0)
    trunk = Adapted(networks.NETWORKS["small"](1), 8, unit_length=True)
    model = Model(trunk, torch.tensor([0.4]), torch.tensor([0.2]))
    trunk.freeze(frozen, "eval")
    x = torch.rand(3, 1, 8, 8)
    assert trunk.settled == ["stem", "block1", "block2", "block3"]
    assert torch.allclose(model.features(x), model.features_of_maps(model.settled_maps(x)), atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"fixed_views": 1, "frozen_batchnorm": "eval"}, "two views"),
        ({"fixed_views": 4}, "frozen_batchnorm=eval"),
        ({"renew_views": 4}, "no views are drawn beforehand"),
        ({"fixed_views": 4, "frozen_batchnorm": "eval", "frozen": ()}, "name blocks in frozen"),
        ({"fixed_views": 4, "frozen_batchnorm": "eval", "augment": Augment(cached=True)}, "augment.cached"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Settings(**settings)
