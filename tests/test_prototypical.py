"""Prototypical pretraining: the loss against loops, episodes, and what it does not depend on."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autonovel import objectives, selftest
from autonovel.data import Batch, ImageSet
from autonovel.data.checks import check_problem
from autonovel.data.groups import groups, labels_without
from autonovel.errors import InputError, UsageError
from autonovel.first_model import new_model
from autonovel.methods.prototypical import Prototypical
from autonovel.methods.views import augmentation
from autonovel.recipe import load
from autonovel.settings import Pretrain
from autonovel.storage.journal import Journal
from autonovel.training.display import Silent
from autonovel.training.loop import Context, run_stage
from autonovel.training.stage import Progress


@given(
    n_classes=st.integers(2, 5), support=st.integers(1, 3), queries=st.integers(1, 3), width=st.integers(1, 6),
    seed=st.integers(0, 999),
)  # fmt: skip
def test_loss_agrees_with_loops(n_classes: int, support: int, queries: int, width: int, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    z = torch.randn(n_classes * (support + queries), width, generator=rng)
    distances = objectives.prototype_distances(z, n_classes, support)
    wanted, loss = selftest.prototypical(z.tolist(), n_classes, support)
    torch.testing.assert_close(distances, torch.tensor(wanted), rtol=1e-4, atol=1e-4)
    assert float(objectives.prototypical(distances)) == pytest.approx(loss, rel=1e-4, abs=1e-4)


def test_loss_by_hand() -> None:
    z = torch.tensor([[0.0], [2.0], [1.0], [10.0], [12.0], [11.0]])  # prototypes 1 and 11; queries on them
    distances = objectives.prototype_distances(z, 2, 2)
    assert distances.tolist() == [[0.0, 100.0], [100.0, 0.0]]
    assert float(objectives.prototypical(distances)) == pytest.approx(0.0, abs=1e-6)


def characters(make_images: Callable[..., ImageSet], unlabelled: int = 8, seed: int = 0) -> ImageSet:
    """Return 8 known classes in 4 groups, 6 images of each, and unlabelled images behind them."""
    made = make_images(48, unlabelled, 8, 2, height=16, width=16, seed=seed)
    names = tuple(f"{group}/c{number}" for group in "abcd" for number in range(2))
    return replace(made, class_names=names)


def test_groups_are_what_stands_before_the_slash(make_images: Callable[..., ImageSet]) -> None:
    images = characters(make_images)
    assert groups(images.class_names, ("b", "d")) == {"b": (2, 3), "d": (6, 7)}
    left = labels_without(images, ("b",))
    assert set(left.tolist()) == {-1, 0, 1, 4, 5, 6, 7}
    assert torch.equal(left[left >= 0], images.y[left >= 0])


SETTINGS = Pretrain(
    kind="prototypical", epochs=3, batch_size=16, classes_per_batch=4, support=2, optimiser="adam", lr=1e-3,
    schedule="constant", held_out=("b",), threads=1,
)  # fmt: skip


def test_episodes_have_equal_numbers_and_nothing_held_out(make_images: Callable[..., ImageSet]) -> None:
    images = characters(make_images)
    rows = Prototypical(SETTINGS, 0).sampler(images).epoch(1)
    assert rows.shape == (3, 16)  # 36 images of 6 classes, 16 a batch
    for row in rows:
        chosen = images.y[row].view(4, 4)
        assert (chosen == chosen[:, :1]).all()
        assert len(chosen[:, 0].unique()) == 4
        assert not torch.isin(chosen, torch.tensor([-1, 2, 3])).any()
        assert len(row.unique()) == 16


@pytest.mark.parametrize("turned", [False, True])
def test_turned_classes_agree_with_loops(make_images: Callable[..., ImageSet], turned: bool) -> None:
    """Of four classes one stays upright, and all images of another are turned alike."""
    images = characters(make_images)
    assert isinstance(images.images, torch.Tensor)
    stage = Prototypical(replace(SETTINGS, turned=turned), 0)
    row = stage.sampler(images).epoch(0)[0]
    model = new_model(load("omniglot").recipe, images, 0).eval()
    stage.prepare(model)
    pixels, u = images.images[row], torch.zeros(16, stage.n_draws)
    batch = Batch(pixels, images.y[row], torch.ones(16), None, u, row)
    loss = stage.step(model, batch, Progress(torch.tensor(0), 1))["prototypical"]
    upright = augmentation(stage.settings).view(pixels, u)
    seen = torch.stack([torch.rot90(one, (number // 4) * turned, (1, 2)) for number, one in enumerate(upright)])
    _, wanted = selftest.prototypical(model.features(seen).tolist(), 4, 2)
    assert loss.item() == pytest.approx(wanted, rel=1e-4)


def test_only_squares_are_turned(make_images: Callable[..., ImageSet]) -> None:
    made = make_images(48, 8, 8, 2, height=16, width=24)
    wide = replace(made, class_names=characters(make_images).class_names)
    small = ["data.size=0", "network.side=0", "joint.batch_size=8", "joint.labelled_per_batch=4"]
    recipe = replace(load("omniglot", small).recipe, pretrain=SETTINGS)
    check_problem(wide, 2, recipe)
    with pytest.raises(InputError, match=r"24×16 pixels cannot be turned .* data\.size=16"):
        check_problem(wide, 2, replace(recipe, pretrain=replace(SETTINGS, turned=True)))


def trained(images: ImageSet, folder: Path) -> tuple[dict[str, torch.Tensor], list[float]]:
    recipe = replace(load("omniglot").recipe, pretrain=SETTINGS)
    model = new_model(recipe, images, 0)
    journal = Journal(folder / "metrics.jsonl")
    run_stage(model, Prototypical(SETTINGS, 0), images, Context(folder, journal, 0, torch.device("cpu"), Silent()))
    return model.state_dict(), [line["loss/prototypical"] for line in journal.lines]


def test_training_lowers_the_loss_and_does_not_see_unlabelled_images(
    make_images: Callable[..., ImageSet], tmp_path: Path
) -> None:
    images = characters(make_images)
    assert isinstance(images.images, torch.Tensor)
    pixels = images.images.clone()
    other = replace(images, images=torch.cat([pixels[:48], 255 - pixels[48:52]]), y=images.y[:52], truth=None)
    one, losses = trained(images, tmp_path / "one")
    two, _ = trained(other, tmp_path / "two")
    assert losses[-1] < losses[0]
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)  # normalisation included


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"held_out": ("e",)}, r"held_out names e, but no known class"),
        ({"classes_per_batch": 7}, r"only 6 known classes can teach"),
        ({"support": 4}, r"4 images of each, of which pretrain\.support takes 4"),
    ],
)
def test_impossible_episodes_are_refused(
    make_images: Callable[..., ImageSet], changed: dict[str, object], message: str
) -> None:
    pretrain = replace(SETTINGS, **changed)  # type: ignore[arg-type]
    recipe = replace(load("omniglot").recipe, pretrain=pretrain)
    with pytest.raises((InputError, UsageError), match=message):
        check_problem(characters(make_images), 2, recipe)
