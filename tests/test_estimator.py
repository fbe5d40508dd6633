"""Discoverer: the scikit-learn contract on small images."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from autonovel import Discoverer, open_run
from autonovel.embedding import embed
from autonovel.errors import GuardError, InputError, RunFolderError, UsageError

QUICK: dict[str, Any] = {
    "pretrain.epochs": 2, "supervised.epochs": 8, "joint.epochs": 12, "pretrain.batch_size": 30,
    "supervised.batch_size": 20, "joint.batch_size": 20, "joint.group": 0, "joint.group_per_class": 0,
    "pretrain.threads": 1, "supervised.threads": 1, "data.size": 0,
}  # fmt: skip


def stripes(per_class: int = 30, channels: int = 1) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return four classes of noisy bright bands at four places; the last two are unlabelled."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 60, (4 * per_class, 12, 12, channels))
    for number in range(4):
        images[number * per_class : (number + 1) * per_class, 3 * number : 3 * number + 3] += 180
    y = np.repeat([0, 1, -1, -1], per_class)
    return images.astype(np.uint8), y


@pytest.fixture(scope="module")
def fitted() -> Discoverer:
    images, y = stripes()
    return Discoverer(n_new=2, settings=QUICK, device="cpu", verbose=False, seed=1).fit(images, y)


def test_results_are_aligned_with_the_input(fitted: Discoverer) -> None:
    _, y = stripes()
    assert fitted.labels_.shape == (120,)
    assert (fitted.labels_[y >= 0] == y[y >= 0]).all()
    assert set(fitted.labels_[y < 0]) <= {2, 3}
    assert fitted.probabilities_.shape == (120, 4)
    np.testing.assert_allclose(fitted.probabilities_.sum(axis=1), 1, atol=1e-2)
    np.testing.assert_array_equal(fitted.probabilities_[y < 0].argmax(axis=1), fitted.labels_[y < 0])
    assert fitted.embedding_.shape == (120, 64)
    assert list(fitted.classes_) == ["0", "1", "new-1", "new-2"]
    assert fitted.n_new_ == 2


def test_new_classes_are_numbered_by_size(fitted: Discoverer) -> None:
    sizes = np.bincount(fitted.labels_, minlength=4)
    assert sizes[2] >= sizes[3] and sizes.sum() == 120


def test_predict_uses_the_joint_head(fitted: Discoverer) -> None:
    images, _ = stripes()
    proba = fitted.predict_proba(images)
    assert proba.shape == (120, 4)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(fitted.predict(images), proba.argmax(axis=1))
    assert (fitted.predict(images[:60]) == np.repeat([0, 1], 30)).mean() > 0.9
    np.testing.assert_allclose(fitted.transform(images), fitted.embedding_, atol=1e-5)


def test_save_and_load_predict_alike(fitted: Discoverer, tmp_path: Path) -> None:
    images, _ = stripes()
    fitted.save(tmp_path / "kept")
    loaded = Discoverer.load(tmp_path / "kept")
    np.testing.assert_array_equal(loaded.predict_proba(images), fitted.predict_proba(images))
    assert list(loaded.classes_) == list(fitted.classes_) and loaded.n_new_ == 2
    np.testing.assert_array_equal(loaded.labels_, fitted.labels_)
    np.testing.assert_array_equal(loaded.probabilities_, fitted.probabilities_)
    assert loaded.discovery_.rows() == fitted.discovery_.rows()
    with pytest.raises(UsageError, match="already exists"):
        fitted.save(tmp_path / "kept")


def test_the_same_seed_gives_the_same_bits(fitted: Discoverer) -> None:
    images, y = stripes()
    again = clone(fitted).fit(images, y)
    np.testing.assert_array_equal(again.labels_, fitted.labels_)
    np.testing.assert_array_equal(again.embedding_, fitted.embedding_)


@pytest.mark.parametrize("method", ["rankstats", "kmeans"])
def test_without_a_joint_head_predict_says_so(method: str) -> None:
    images, y = stripes()
    made = Discoverer(n_new=2, method=method, settings=QUICK, device="cpu", verbose=False).fit(images, y)
    with pytest.warns(UserWarning, match="new ones only"):
        proba = made.predict_proba(images)
    assert proba.shape == (120, 4) and (proba[:, :2] == 0).all()


def test_colour_images_and_names_as_labels() -> None:
    images, y = stripes(channels=3)
    names = [("crane", "gull", "")[number] for number in y]
    made = Discoverer(n_new=2, settings=QUICK, device="cpu", verbose=False).fit(images, names)
    assert list(made.classes_) == ["crane", "gull", "new-1", "new-2"]
    with pytest.raises(UsageError, match=r"1 channel; this model was fitted on 3\. .*image\[None\]"):
        made.predict(images[0])


def test_a_model_fitted_on_pictures_that_are_not_square_takes_none_of_another_size(fitted: Discoverer) -> None:
    wide = copy.copy(fitted)
    n, channels, side, _ = wide._shape
    wide._shape = [n, channels, side, side + 4]
    with pytest.raises(UsageError, match=f"{side}×{side} pixels; this model was fitted on {side + 4}×{side} "):
        wide.predict(np.zeros((2, side, side), dtype=np.uint8))


@pytest.mark.parametrize(
    "settings",
    [
        {"preset": "paper"},
        {"preset": "code"},
        {"pretrain.kind": "none", "supervised.epochs": 0},
        {"pretrain.kind": "supervised", "supervised.frozen": ["stem"]},
        {"joint.optimiser": "adam", "joint.lr": 0.01, "joint.frozen": ["stem"], "joint.frozen_batchnorm": "eval"},
        {"joint.ce": False},
        {"joint.consistency": False},
        {"joint.views": "separate", "joint.batch": "merged", "joint.bce_views": "one"},
        {"network.name": "resnet18", "pretrain.epochs": 1, "supervised.epochs": 1, "joint.epochs": 1},
    ],
    ids=lambda s: " ".join(f"{k}={v}" for k, v in s.items())[:60],
)
def test_every_switch_runs_to_the_end(settings: dict[str, Any]) -> None:
    images, y = stripes(per_class=20)
    merged = QUICK | {"pretrain.batch_size": 20, "joint.batch_size": 20} | settings
    merged |= {f"{stage}.epochs": 1 for stage in ("pretrain", "joint")}
    made = Discoverer(n_new=2, settings=merged, device="cpu", verbose=False, keep_going=True).fit(images, y)
    assert len(made.labels_) == 80 and np.isfinite(made.embedding_).all()


def test_weights_of_another_run_start_the_trunk(fitted: Discoverer, tmp_path: Path) -> None:
    images, y = stripes()
    fitted.save(tmp_path / "first")
    start = {"pretrain.kind": "weights", "pretrain.weights": str(tmp_path / "first" / "model.safetensors")}
    still = {"supervised.epochs": 0, "joint.epochs": 0}
    made = Discoverer(n_new=2, settings=QUICK | start | still, device="cpu", verbose=False).fit(images, y)
    np.testing.assert_allclose(made.embedding_, fitted.embedding_, atol=1e-5)
    wrong = QUICK | {"pretrain.kind": "weights", "pretrain.weights": "nowhere.safetensors"}
    with pytest.raises(UsageError, match="not a file"):
        Discoverer(n_new=2, settings=wrong, device="cpu", verbose=False).fit(images, y)


def test_bad_input_is_refused_before_training(tmp_path: Path) -> None:
    images, y = stripes()
    out = tmp_path / "run"
    for bad_images, bad_y, n_new, words in [
        (images[:0], y[:0], 2, "empty"),
        (images, np.where(y == 1, -1, y), 2, "1 known class"),
        (images, np.abs(y), 2, "nothing to discover"),
        (images, y, 61, "only 60 unlabelled"),
        (images, y - 5, 2, "neither a class"),
        (images, y[:-1], 2, "119 labels"),
        (np.where(images > 200, np.nan, images / 255.0), y, 2, "NaN"),
        (["a.png"] * len(y), y, 2, "autonovel discover FOLDER"),
        ([Path("a.png")] * len(y), y, 2, "autonovel discover FOLDER"),
        ([None] * len(y), y, 2, "of type object; give integers"),
    ]:
        with pytest.raises(InputError, match=words):
            Discoverer(n_new=n_new, settings=QUICK, out=out, verbose=False).fit(bad_images, bad_y)
    with pytest.raises(UsageError, match="n_new"):
        Discoverer(n_new=2.5, settings=QUICK, out=out, verbose=False).fit(images, y)  # type: ignore[arg-type]
    assert not out.exists()


def test_unfitted_and_unfinished_are_said(tmp_path: Path) -> None:
    images, y = stripes()
    with pytest.raises(NotFittedError):
        Discoverer(n_new=2).predict(images)
    with pytest.raises(NotFittedError):
        Discoverer(n_new=2).save(tmp_path / "x")
    ruin = QUICK | {"joint.lr": 1e30, "joint.schedule": "constant"}
    with pytest.raises(GuardError, match="finite"):
        Discoverer(n_new=2, settings=ruin, out=tmp_path / "run", verbose=False, device="cpu").fit(images, y)
    with pytest.raises(RunFolderError, match="not finished"):
        Discoverer.load(tmp_path / "run")


def test_fit_predict_and_what_fit_leaves_of_torch() -> None:
    images, y = stripes(per_class=20)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    quick = QUICK | {"pretrain.epochs": 1, "supervised.epochs": 1, "joint.epochs": 1}
    made = Discoverer(n_new=2, settings=quick, device="cpu", verbose=False, seed=np.int64(3), keep_going=True)
    labels = made.fit_predict(torch.from_numpy(images), torch.from_numpy(y))
    np.testing.assert_array_equal(labels, made.labels_)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(threads)


def test_a_run_is_not_resumed_with_other_images(tmp_path: Path) -> None:
    images, y = stripes(per_class=20)
    quick = QUICK | {"pretrain.epochs": 1, "supervised.epochs": 1, "joint.epochs": 1}
    first = Discoverer(n_new=2, settings=quick, device="cpu", verbose=False, out=tmp_path / "run", keep_going=True)
    first.fit(images, y)
    again = clone(first).set_params(resume=True)
    np.testing.assert_array_equal(again.fit(images, y).labels_, first.labels_)
    for other_images, other_y, n_new in [(255 - images, y, 2), (images, np.where(y == 0, 1, np.where(y == 1, 0, y)), 2),
                                         (images, y, 3)]:  # fmt: skip
        with pytest.raises(UsageError, match=r"other images|n_new"):
            clone(again).set_params(n_new=n_new).fit(other_images, other_y)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"settings": "joint.epochs=1"}, "give a dict"),
        ({"settings": {"data.per_class": 5}}, "data.per_class"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"seed": 2**63}, "less than 2 to the 63rd"),
        ({"resume": True}, "give out="),
        ({"resume": True, "overwrite": True, "out": "x"}, "give one"),
        ({"recipe": Path("nowhere.toml")}, "no recipe file"),
        ({"method": "magic"}, "magic"),
        ({"device": "tpu"}, "no device"),
    ],
)
def test_wrong_parameters_are_explained(parameters: dict[str, Any], words: str) -> None:
    images, y = stripes()
    with pytest.raises(UsageError, match=words):
        Discoverer(**({"n_new": 2, "settings": QUICK, "verbose": False} | parameters)).fit(images, y)


def test_a_finished_run_is_looked_at_again_with_its_corrections(tmp_path: Path) -> None:
    images, y = stripes(per_class=20)
    quick = QUICK | {"pretrain.epochs": 1, "supervised.epochs": 1, "joint.epochs": 1}
    folder = tmp_path / "run"
    first = Discoverer(n_new=2, settings=quick, device="cpu", verbose=False, out=folder, keep_going=True).fit(images, y)
    open_run(folder).rename("new-1", "seven")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    again = clone(first).set_params(resume=True).fit(images, y)
    assert list(again.classes_) == ["0", "1", "seven", "new-2"]
    np.testing.assert_array_equal(again.labels_, first.labels_)
    np.testing.assert_array_equal(again.predict(images), first.predict(images))
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("asked", ["predict", "predict_proba", "transform"])
def test_answers_are_computed_in_the_arithmetic_of_training(
    fitted: Discoverer, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    seen: list[bool] = []

    def embedded(*given: Any) -> Any:
        seen.append(torch.backends.cudnn.allow_tf32)
        return embed(*given)

    monkeypatch.setattr("autonovel.predicting.judging.embed", embedded)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    getattr(fitted, asked)(stripes(per_class=2)[0])
    assert seen == [False] and torch.backends.cudnn.allow_tf32
