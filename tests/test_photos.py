"""The pretrained network, its cached views, and whole runs on them."""

import copy
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from autonovel import augment, cached_views, networks, recipe
from autonovel.augment import Augmentation
from autonovel.commands.training import run_recipe
from autonovel.data import ImageSet
from autonovel.data.checks import check_problem
from autonovel.delivered import load_model
from autonovel.embedding import Embedding, embed
from autonovel.errors import GuardError, UsageError
from autonovel.manner import Manner
from autonovel.networks import Adapted, Model
from autonovel.training.display import Silent
from runs import autonovel

PHOTOS = recipe.load("photos").recipe


@pytest.fixture(scope="module")
def model() -> Model:
    return networks.pretrained(PHOTOS.network, seed=0).eval()


def pictures(n: int = 6, side: int = 40) -> ImageSet:
    rng = torch.Generator().manual_seed(3)
    pixels = torch.randint(0, 256, (n, 3, side, side), generator=rng, dtype=torch.uint8)
    y = torch.tensor([0, 1] * (n // 2))
    return ImageSet(pixels, torch.where(torch.arange(n) < n // 2, y, -1), tuple(map(str, range(n))), ("a", "b"))


# ---------------------------------------------------------------------------------------------------
# the network


def test_pretrained_features_are_those_of_the_packages_own_network(model: Model) -> None:
    """The numbers were computed once with the network that the weights were published with."""
    x = (torch.arange(3 * 224 * 224).view(1, 3, 224, 224) % 251) / 125 - 1
    trunk = model.trunk
    assert isinstance(trunk, Adapted)
    with torch.no_grad():
        z = trunk.average(x, [name for name in trunk.blocks if name != "adapter"])[0]
    torch.testing.assert_close(z[:6], torch.tensor([0, 0, 0.5960546, 0, 0, 0]), rtol=1e-4, atol=1e-5)
    assert float(z.sum()) == pytest.approx(163.38565, rel=1e-4) and int(z.argmax()) == 113


@pytest.mark.parametrize("side", [33, 64, 97])
def test_any_size_gives_features_of_unit_length(model: Model, side: int) -> None:
    with torch.no_grad():
        pooled = model.trunk.pooled(model.normalised(torch.rand(2, 3, side, side)))  # type: ignore[operator]
    assert pooled.shape == (2, 1280) and (pooled >= 0).all()
    torch.testing.assert_close(pooled.norm(dim=1), torch.ones(2))


def test_images_and_their_pooled_features_give_the_same(model: Model) -> None:
    x = torch.rand(4, 3, 40, 40, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        pooled = model.trunk.pooled(model.normalised(x))  # type: ignore[operator]
        torch.testing.assert_close(model.features(pooled), model.features(x))
    assert model.features(x).shape == (4, PHOTOS.network.adapter)


def test_the_weights_of_the_adapter_follow_the_seed() -> None:
    one, same, other = (networks.pretrained(PHOTOS.network, seed).state_dict() for seed in (0, 0, 1))
    key = "trunk.blocks.adapter.0.weight"
    assert torch.equal(one[key], same[key]) and not torch.equal(one[key], other[key])
    stem = "trunk.blocks.stem.0.weight"
    assert torch.equal(one[stem], other[stem])


def test_a_grey_image_is_one_of_three_channels_alike(model: Model) -> None:
    grey = torch.rand(2, 1, 40, 40, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(model.features(grey), model.features(grey.expand(2, 3, 40, 40)))
        fresh = networks.build("efficientnet-lite0", 1, torch.full((1,), 0.4), torch.full((1,), 0.3), 0).eval()
        assert fresh.features(grey).shape == (2, 1280)


def test_pretrained_stands_for_all_blocks_below_the_adapter(model: Model) -> None:
    trunk = copy.deepcopy(model.trunk)
    trunk.freeze(("pretrained",), "eval")
    assert [name for name, value in trunk.named_parameters() if value.requires_grad] == [
        name for name, _ in trunk.named_parameters() if name.startswith("blocks.adapter.")
    ]
    with pytest.raises(UsageError, match=r"frozen names all blocks"):
        check_problem(
            pictures(80),
            2,
            recipe.load("photos", {"supervised.frozen": ["pretrained", "adapter"], "centres.batch_size": 8}).recipe,
        )
    with pytest.raises(UsageError, match="cannot freeze pretrained"):
        networks.build("small", 3, torch.zeros(3), torch.ones(3), 0).trunk.freeze(("pretrained",))


def test_other_numbers_of_channels_are_refused() -> None:
    with pytest.raises(UsageError, match="4 channels"):
        networks.NETWORKS["efficientnet-lite0"](4)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network.name": "small"}, ["imagenet", "small comes without weights"]),
        ({"network.cached_views": 0}, ["supervised.augment.cached is true", "Set both"]),
        ({"joint.augment.cached": False}, ["joint.augment.cached is false", "Set both"]),
        ({"dtc.augment.cached": False, "run.systems": ["dtc"]}, ["dtc.augment.cached is false"]),
        ({"network.adapter": 0}, ["network.adapter", "cached_views"]),
    ],
)
def test_settings_that_do_not_go_together_are_refused(changes: dict[str, object], words: list[str]) -> None:
    with pytest.raises(UsageError) as error:
        check_problem(pictures(), 2, recipe.load("photos", changes).recipe)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_settings_of_a_pretrained_network_are_refused_elsewhere() -> None:
    with pytest.raises(UsageError, match=r"network\.adapter"):
        check_problem(pictures(), 2, recipe.load("demo", {"network.adapter": 8}).recipe)


# ---------------------------------------------------------------------------------------------------
# views


def test_a_resized_crop_is_a_part_of_the_image_at_its_size() -> None:
    x = torch.arange(16.0).repeat(16, 1).expand(3, 1, 16, 16) / 16  # brightness tells the column
    whole = augment.resized_crop(x, torch.tensor([[1.0, 0.5, 0.5]] * 3), 0.25)
    torch.testing.assert_close(whole, x)
    left, middle, right = (
        augment.resized_crop(x, torch.tensor([[0.0, u, 0.5]] * 3), 0.25)[0, 0, 8] for u in (0.0, 0.5, 1.0)
    )
    # a quarter of the area is half the width: its middle lies at a quarter, a half, three quarters of the image
    for found, centre in ((left, 4), (middle, 8), (right, 12)):
        assert float(found.mean()) * 16 == pytest.approx(centre - 0.5, abs=0.3)


def test_brightness_scales_each_image_by_its_own_factor() -> None:
    x = torch.full((3, 1, 2, 2), 0.5)
    found = augment.brightness(x, torch.tensor([[0.0], [0.5], [1.0]]), 0.2)[:, 0, 0, 0]
    torch.testing.assert_close(found, torch.tensor([0.4, 0.5, 0.6]))
    assert float(augment.brightness(x + 0.45, torch.ones(3, 1), 0.2).max()) == 1.0


def test_every_cached_view_is_picked_as_often() -> None:
    views = torch.arange(4.0).view(1, 4, 1).expand(4000, 4, 2).half()
    u = torch.rand(4000, 1, generator=torch.Generator().manual_seed(0))
    found = Augmentation(cached=True).view(views, u)
    assert found.shape == (4000, 2) and found.dtype == torch.float32
    counts = torch.bincount(found[:, 0].long(), minlength=4)
    assert (counts > 900).all()
    assert torch.equal(found[:, 0].long(), (4 * u[:, 0]).long())


def cached(images: ImageSet, model: Model, folder: Path, views: int = 3) -> torch.Tensor:
    found = cached_views.with_cached_views(images, model, PHOTOS, 0, folder, Silent(), views, "images").images
    assert isinstance(found, torch.Tensor)
    return found


def test_cached_views_are_the_image_and_random_views(model: Model, tmp_path: Path) -> None:
    images = pictures()
    found = cached(images, model, tmp_path)
    assert found.shape == (6, 3, 1280) and found.dtype == torch.float16
    with torch.no_grad():
        plain = model.trunk.pooled(model.normalised(images.images.float() / 255))  # type: ignore[operator, union-attr]
    torch.testing.assert_close(found[:, 0].float(), plain, rtol=1e-2, atol=1e-3)
    assert not torch.equal(found[:, 1], found[:, 0]) and not torch.equal(found[:, 1], found[:, 2])


def test_features_beyond_half_precision_are_refused(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pooled = type(model.trunk).pooled
    monkeypatch.setattr(type(model.trunk), "pooled", lambda self, x: 1e6 + pooled(self, x))
    with pytest.raises(GuardError, match=r"65,504 at most.*network\.unit_length"):
        cached(pictures(), model, tmp_path)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_cached_views_go_on_where_they_were_killed(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_views, "CHUNK", 2)
    whole = cached(pictures(), model, tmp_path / "a")
    first = pictures()
    cached(replace(first, images=first.images[:4]), model, tmp_path / "b")  # two chunks of three are done
    stamps = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "b").iterdir()}
    assert torch.equal(cached(pictures(), model, tmp_path / "b"), whole)
    assert len(list((tmp_path / "b").iterdir())) == 3
    assert all((tmp_path / "b" / name).stat().st_mtime_ns == stamp for name, stamp in stamps.items())


# ---------------------------------------------------------------------------------------------------
# whole runs


def write_photos(root: Path, per_class: int = 12) -> Path:
    """Write noisy stripes and checks of four colours: two classes known, two in one pile."""
    rng = np.random.default_rng(0)
    lines = ["path,label"]
    for number, (name, colour) in enumerate({"red": 0, "green": 1, "blue": 2, "white": 3}.items()):
        folder = root / (name if number < 2 else "unlabelled")
        folder.mkdir(parents=True, exist_ok=True)
        for i in range(per_class):
            pixels = rng.integers(0, 120, (48, 40, 3))
            band = slice(None, None, 4 + 4 * (number % 2))
            pixels[band] += 130
            pixels[..., [colour] if colour < 3 else [0, 1, 2]] += 60
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"{name}{i}.png")
            if number >= 2:
                lines.append(f"unlabelled/{name}{i}.png,{name}")
    (root / "truth.csv").write_text("\n".join(lines) + "\n")
    return root


SHORT = ["data.size=40", "supervised.epochs=2", "supervised.batch_size=8", "joint.epochs=3", "joint.batch_size=16",
         "centres.batch_size=16", "run.map_points=40"]  # fmt: skip


@pytest.mark.slow
def test_variants_of_a_run_take_its_features_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = write_photos(tmp_path / "photos")
    sets = [*SHORT, f"data.path={photos}", 'run.systems=["rankstats"]', "data.workers=1", "run.report=false",
            "count.new_classes=2"]  # fmt: skip
    run_recipe("photos", tmp_path / "run", 0, sets, Manner("cpu", keep_going=True))
    capsys.readouterr()

    def never(*_: object) -> None:
        raise AssertionError("features were computed anew")

    monkeypatch.setattr(cached_views, "_views", never)
    beside = Manner("cpu", keep_going=True, bases=(tmp_path / "run",))
    run_recipe("photos", tmp_path / "other", 0, [*sets, "joint.k=3"], beside)
    told = capsys.readouterr().out
    assert "Stage 0-features is shared with" in told and "Stage 2-supervised is shared with" in told
    run_recipe("photos", tmp_path / "longer", 0, [*sets, "supervised.epochs=3"], beside)
    told = capsys.readouterr().out
    assert "Stage 0-features is shared with" in told and "2-supervised is shared" not in told
    others = [(0, "data.per_class=10"), (0, "pretrain.augment.brightness=0.1"), (1, "joint.k=3")]
    for place, (seed, change) in enumerate(others):  # other images, other views, other draws
        with pytest.raises(AssertionError, match="features were computed anew"):
            run_recipe("photos", tmp_path / f"anew-{place}", seed, [*sets, change], beside)


@pytest.mark.slow
def test_a_folder_of_photos_from_end_to_end(tmp_path: Path) -> None:
    root = write_photos(tmp_path / "photos")
    changes = [word for change in SHORT for word in ("--set", change)]
    done = autonovel("run", "photos", "--data", root, "--new-classes", 2, "--out", tmp_path / "run", "--device",
                     "cpu", *changes)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "features of images: done" in done.stdout
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert set(results["systems"]) == {"rankstats-incremental", "kmeans-pretrained"}
    choice = json.loads((tmp_path / "run" / "choice.json").read_text())
    assert choice["trials"] == [] and "takes 4 known classes, and there are 2" in choice["why"]
    assert results["primary"] == "kmeans-pretrained"
    # the delivered model needs no cache: pixels in, the same answers out
    model = load_model(tmp_path / "run")
    kept = Embedding.load(tmp_path / "run" / "embedding.safetensors")
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*.png"))
    pixels = torch.stack([decoded(root / name) for name in names])
    again = embed(model, pixels)
    torch.testing.assert_close(again.p_known, kept.p_known, rtol=0.05, atol=0.01)  # features were kept in halves
    assert torch.equal(again.p_new.argmax(dim=1), kept.p_new.argmax(dim=1))


DEEP = ["data.size=40", "supervised.epochs=1", "supervised.batch_size=8", "joint.epochs=2", "joint.batch_size=16",
        "run.map_points=40", "centres.epochs=5", "centres.batch_size=32"]  # fmt: skip


@pytest.mark.slow
def test_the_last_blocks_are_trained_and_the_others_left_alone(tmp_path: Path, model: Model) -> None:
    root = write_photos(tmp_path / "photos")
    changes = [word for change in (*DEEP, "run.trials=0") for word in ("--set", change)]  # so the first delivers
    done = autonovel("run", "photos-deep", "--data", root, "--new-classes", 2, "--out", tmp_path / "run", "--device",
                     "cpu", *changes)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "features of images" not in done.stdout  # nothing was computed beforehand
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert set(results["systems"]) == {"rankstats-incremental", "kmeans-pretrained"}
    before, after = model.trunk.state_dict(), load_model(tmp_path / "run").trunk.state_dict()
    moved = {name.split(".")[1] for name, value in before.items() if not torch.equal(value, after[name])}
    assert moved == {"block6", "block7", "top", "adapter"}  # weights and statistics of all others are as they came


def test_kmeans_without_cached_views_takes_the_network_as_it_was_pretrained(tmp_path: Path, model: Model) -> None:
    from autonovel.extraction import extractor
    from autonovel.job import Job
    from autonovel.systems import run_system

    settings = recipe.load(
        "photos-deep",
        {"supervised.epochs": 1, "supervised.batch_size": 4, "centres.epochs": 2, "centres.batch_size": 8},
    ).recipe
    job = Job(settings, pictures(12), None, 2, 0, torch.device("cpu"), tmp_path, Silent())
    taught, _ = extractor(job)
    stem, last = "blocks.stem.0.weight", "blocks.block7.0.layers.0.weight"
    own = model.trunk.state_dict()
    assert torch.equal(taught.trunk.state_dict()[stem], own[stem])
    assert not torch.equal(taught.trunk.state_dict()[last], own[last])
    found = run_system(job, "kmeans-pretrained", tmp_path / "kmeans").model
    assert all(torch.equal(value, own[name]) for name, value in found.trunk.state_dict().items())
    assert found.trunk.n_features == 1280


def test_views_of_the_classifier_on_features_are_refused() -> None:
    with pytest.raises(UsageError, match="augment has no effect on this classifier"):
        recipe.load("photos-deep", {"centres.augment.flip": True})


def decoded(path: Path, side: int = 40) -> torch.Tensor:
    from autonovel.data.decode import decode

    return torch.from_numpy(decode(path.read_bytes(), side, 3).copy())
