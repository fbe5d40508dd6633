"""Looking at a model in training: right numbers, and training that does not notice."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autonovel import networks
from autonovel.data import ImageSet, channel_statistics
from autonovel.embedding import features
from autonovel.errors import RunFolderError
from autonovel.kept import KeptFeatures, kept_features, load_truth, save_truth
from autonovel.methods.rankstats import Joint
from autonovel.networks import Model
from autonovel.objectives import pair_labels
from autonovel.settings import Joint as Settings
from autonovel.storage.journal import Journal
from autonovel.training.loop import Context, run_stage
from autonovel.training.observe import FeatureKeeper, MovingTarget, flips, observers

Images = Callable[..., ImageSet]
CPU = torch.device("cpu")


class Silent:
    def say(self, text: str) -> None: ...
    def begin(self, stage: str, total: int, done: int, of: str = "steps") -> None: ...
    def update(self, stage: str, done: int, terms: dict[str, float], images_per_second: float) -> None: ...
    def end(self, stage: str) -> None: ...


def new_model(images: ImageSet) -> Model:
    return networks.build("small", images.images.shape[1], *channel_statistics(images.images), seed=0)


def trained(images: ImageSet, folder: Path, **changed: object) -> tuple[Model, list[dict[str, object]]]:
    settings = replace(Settings(epochs=3, batch_size=8, frozen=("stem",), threads=1), **changed)
    model, journal = new_model(images), Journal(folder / "metrics.jsonl")
    run_stage(model, Joint(settings, 2, 2, 0), images, Context(folder, journal, 0, CPU, Silent(), keep_going=True))
    return model, journal.lines


@given(st.integers(1, 12), st.integers(0, 2**30))
def test_flips_are_those_of_counting_pairs(n: int, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    before, now = (pair_labels(torch.rand(n, 3, generator=rng), 1) for _ in range(2))
    pairs = list(combinations(range(n), 2))
    flipped = sum(bool(before[i, j]) != bool(now[i, j]) for i, j in pairs)
    either = sum(bool(before[i, j]) or bool(now[i, j]) for i, j in pairs)
    found = flips(before, now)
    assert float(found["pairs/flipped"]) == pytest.approx(flipped / either if either else 0.0)
    assert float(found["all_pairs/flipped"]) == pytest.approx(flipped / len(pairs) if pairs else 0.0)


def test_training_does_not_notice_that_it_is_watched(make_images: Images, tmp_path: Path) -> None:
    images = make_images(labelled=24, unlabelled=24)
    alone, plain = trained(images, tmp_path / "alone", watch=0)
    watched, noted = trained(images, tmp_path / "watched", watch=16, keep_embeddings_at=(0, 1))
    for (name, one), other in zip(alone.state_dict().items(), watched.state_dict().values(), strict=True):
        assert torch.equal(one, other), name
    clock = ("seconds", "images_per_second")
    flipped = ("pairs/flipped", "all_pairs/flipped")
    assert all(key in line and key not in bare for line, bare in zip(noted, plain, strict=True) for key in flipped)
    for line, bare in zip(noted, plain, strict=True):
        without = {k: v for k, v in line.items() if k not in (*clock, *flipped)}
        assert without == {k: v for k, v in bare.items() if k not in clock}


@pytest.mark.parametrize("batchnorm", ["train", "eval"])
def test_a_look_leaves_the_model_as_it_was(make_images: Images, tmp_path: Path, batchnorm: str) -> None:
    images = make_images()
    model = new_model(images)
    model.trunk.freeze(("stem",), batchnorm)
    model.train()
    modes = [module.training for module in model.modules()]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for observer in observers(Settings(watch=8, keep_embeddings_at=(1,)), images, 0, tmp_path):
        observer.look(model, 1)
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_the_first_look_has_nothing_to_compare_and_a_still_model_no_flips(make_images: Images) -> None:
    images = make_images(unlabelled=20)
    model, target = new_model(images), MovingTarget(images, 100, 2, "value", seed=0)
    assert target.look(model, 0) == {}
    assert target.look(model, 1) == {"pairs/flipped": 0.0, "all_pairs/flipped": 0.0}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    assert target.look(model, 2)["pairs/flipped"] > 0


def test_the_sample_is_of_unlabelled_images_and_a_function_of_the_seed(make_images: Images) -> None:
    images = make_images(labelled=12, unlabelled=30)
    one, same, other = (MovingTarget(images, 10, 2, "value", seed).sample for seed in (0, 0, 1))
    assert torch.equal(one, same) and not torch.equal(one, other) and len(one) == 10
    unlabelled = {image.numpy().tobytes() for image in images.images[images.unlabelled]}
    assert all(image.numpy().tobytes() in unlabelled for image in one)


def test_kept_features_are_the_clean_ones_of_the_unlabelled_images(make_images: Images, tmp_path: Path) -> None:
    images = make_images()
    model = new_model(images)
    keeper = FeatureKeeper(images, (0, 5), tmp_path)
    keeper.look(model, 0)
    keeper.look(model, 1)
    (kept,) = kept_features(tmp_path)
    assert kept.epoch == 0 and kept.rows.tolist() == list(range(12, 24))
    torch.testing.assert_close(kept.z, features(model, images.images)[12:], rtol=1e-3, atol=1e-3)


def test_epochs_past_the_end_are_never_reached(make_images: Images, tmp_path: Path) -> None:
    trained(make_images(), tmp_path, keep_embeddings_at=(0, 3, 90))
    assert [kept.epoch for kept in kept_features(tmp_path / "stages" / "3-joint")] == [0, 3]


def test_features_beyond_half_precision_stay_finite(tmp_path: Path) -> None:
    KeptFeatures(torch.tensor([[1e9, 1.0]]), torch.tensor([0]), 7).save(tmp_path)
    assert kept_features(tmp_path)[0].z.isfinite().all()


def test_the_truth_comes_back_and_damage_is_told(make_images: Images, tmp_path: Path) -> None:
    assert load_truth(tmp_path) is None
    save_truth(tmp_path, make_images(truth=False))
    assert load_truth(tmp_path) is None
    images = make_images()
    save_truth(tmp_path, images)
    found = load_truth(tmp_path)
    assert found is not None and torch.equal(found.truth, images.truth.long())
    assert found.names == ("known-0", "known-1", "hidden-0", "hidden-1") and found.n_known == 2
    (tmp_path / "truth.safetensors").write_bytes(b"torn")
    with pytest.raises(RunFolderError, match="cannot be read"):
        load_truth(tmp_path)
    (tmp_path / "embedding-epoch-003.safetensors").write_bytes(b"torn")
    with pytest.raises(RunFolderError, match="cannot be read"):
        kept_features(tmp_path)
