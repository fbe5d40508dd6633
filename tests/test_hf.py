"""Pretrained models of transformers: found, read, checked, and whole runs on them.  All are tiny and random."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from autonovel import hub, networks, planning, recipe
from autonovel.data import ImageSet
from autonovel.data.checks import check_problem
from autonovel.delivered import load_model
from autonovel.embedding import Embedding, embed
from autonovel.errors import RunFolderError, UsageError
from autonovel.job import Job
from autonovel.network_file import keep_network
from autonovel.networks import Model, hf
from autonovel.networks.hf import quiet
from autonovel.planning import Wish
from autonovel.settings import Network, Recipe
from autonovel.training.display import Silent
from runs import autonovel
from test_photos import decoded, write_photos
from test_planning import PILE

MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]
SMALL: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}


def _vit() -> Any:
    from transformers import ViTConfig

    return ViTConfig(**SMALL, intermediate_size=64, image_size=32, patch_size=8)


def _dinov2() -> Any:
    from transformers import Dinov2Config

    return Dinov2Config(**SMALL, mlp_ratio=2, image_size=56, patch_size=14)


def _resnet() -> Any:
    from transformers import ResNetConfig

    return ResNetConfig(embedding_size=8, hidden_sizes=[8, 32], depths=[1, 1], layer_type="basic")


def _convnext() -> Any:
    from transformers import ConvNextConfig

    return ConvNextConfig(hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1])


KINDS: dict[str, Callable[[], Any]] = {"vit": _vit, "dinov2": _dinov2, "resnet": _resnet, "convnext": _convnext}
SIDES = {"vit": 40, "dinov2": 42, "resnet": 40, "convnext": 40}  # not those of the configs


def saved(folder: Path, config: Any, seed: int = 0) -> Path:
    """Write a random model as ``save_pretrained`` does, its image processor's settings beside it."""
    from transformers import AutoModel

    with torch.random.fork_rng(), quiet():
        torch.manual_seed(seed)
        model = AutoModel.from_config(config)
        for name, parameter in model.named_parameters():  # so that the class token and positions tell images apart
            if "layernorm" not in name:
                parameter.data += 0.1 * torch.randn_like(parameter)
        model.save_pretrained(folder)
    processor = {"do_normalize": True, "image_mean": MEAN, "image_std": STD, "rescale_factor": 1 / 255}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {name: saved(root / name, make()) for name, make in KINDS.items()}


def settings(folder: Path | str, **changes: Any) -> Recipe:
    batches = {"supervised.batch_size": 2, "joint.batch_size": 4, "centres.batch_size": 4}
    given = {"network.name": "hf", "network.model": str(folder), "data.size": 40} | batches | changes
    return recipe.load("photos", given).recipe


def pretrained(folder: Path | str, adapter: int = 0) -> Model:
    return networks.pretrained(Network(name="hf", model=str(folder), adapter=adapter), seed=0).eval()


def pictures(side: int = 40, channels: int = 3) -> ImageSet:
    pixels = torch.randint(0, 256, (6, channels, side, side), generator=torch.Generator().manual_seed(3))
    return ImageSet(pixels.byte(), torch.tensor([0, 1, 0, 1, -1, -1]), tuple("abcdef"), ("x", "y"))


# ---------------------------------------------------------------------------------------------------
# features


@pytest.mark.parametrize("kind", KINDS)
def test_features_are_those_of_transformers_itself(folders: dict[str, Path], kind: str) -> None:
    from transformers import AutoModel

    x = torch.rand(3, 3, SIDES[kind], SIDES[kind], generator=torch.Generator().manual_seed(1))
    with torch.no_grad(), quiet():
        direct = AutoModel.from_pretrained(folders[kind]).eval()
        normalised = (x - torch.tensor(MEAN).view(1, 3, 1, 1)) / torch.tensor(STD).view(1, 3, 1, 1)
        out = direct(normalised, interpolate_pos_encoding=True) if kind == "vit" else direct(normalised)
        wanted = out.last_hidden_state[:, 0] if kind in ("vit", "dinov2") else out.pooler_output.flatten(1)
        found = pretrained(folders[kind]).features(x)
    assert found.shape == (3, 32)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    assert float((found[0] - found[1]).abs().max()) > 1e-3  # images differ
    assert kind == "resnet" or bool((found < 0).any())  # which is why an adapter, or magnitudes, are asked for


def test_a_grey_image_is_one_of_three_channels_alike(folders: dict[str, Path]) -> None:
    grey = torch.rand(2, 1, 40, 40, generator=torch.Generator().manual_seed(0))
    model = pretrained(folders["vit"], adapter=8)
    with torch.no_grad():
        torch.testing.assert_close(model.features(grey), model.features(grey.expand(2, 3, 40, 40)))
    assert bool((model.features(grey) >= 0).all()) and model.trunk.n_features == 8
    with pytest.raises(UsageError, match="4 channels"):
        networks.make_trunk(Network(name="hf", model=str(folders["vit"])), 4)


def test_weights_kept_in_half_precision_become_float32(folders: dict[str, Path], tmp_path: Path) -> None:
    from transformers import AutoModel

    with quiet():
        AutoModel.from_pretrained(folders["dinov2"]).half().save_pretrained(tmp_path / "half")
    model = pretrained(tmp_path / "half")
    assert {value.dtype for value in model.trunk.parameters()} == {torch.float32}


@pytest.mark.parametrize(
    ("said", "mean", "std", "noted"),
    [
        ({"image_mean": MEAN, "image_std": STD}, MEAN, STD, False),
        ({"image_mean": 0.5, "image_std": [0.25]}, [0.5] * 3, [0.25] * 3, False),
        ({"do_normalize": False}, [0] * 3, [1] * 3, False),
        # pixels to [−1, 1] by 1/127.5 and a mean of 1, or by 1/255 and a mean of ½
        ({"image_mean": [1.0] * 3, "image_std": [1.0] * 3, "rescale_factor": 1 / 127.5}, [0.5] * 3, [0.5] * 3, False),
        ({}, hub.IMAGENET[0], hub.IMAGENET[1], True),
        (None, hub.IMAGENET[0], hub.IMAGENET[1], True),
    ],
)
def test_normalisation_is_the_models_own(
    folders: dict[str, Path], tmp_path: Path, said: Any, mean: Any, std: Any, noted: bool
) -> None:
    folder = shutil.copytree(folders["resnet"], tmp_path / "model")
    (folder / "preprocessor_config.json").unlink()
    if said is not None:
        (folder / "preprocessor_config.json").write_text(json.dumps(said))
    found = hub.find(str(folder)).normalisation()
    assert found[0] == pytest.approx(mean) and found[1] == pytest.approx(std) and ("ImageNet" in found[2]) == noted
    model = pretrained(folder)
    torch.testing.assert_close(model.mean.flatten(), torch.tensor(mean, dtype=torch.float32))


# ---------------------------------------------------------------------------------------------------
# what cannot be


def test_sizes_that_do_not_fit_the_patches_are_refused_with_those_that_do(folders: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match=r"data.size is 40, .*patches of 14×14 pixels\. Choose 28 or 42"):
        check_problem(pictures(), 2, settings(folders["dinov2"]))
    for changes in ({"network.side": 30}, {"network.crop": 30}, {"network.side": 35, "network.crop": 30}):
        with pytest.raises(UsageError, match=rf"{[*changes][-1]} is 30, .* Choose 28 or 42 .*--set network"):
            check_problem(pictures(), 2, settings(folders["dinov2"], **changes))
    with pytest.raises(UsageError, match="Choose 14 "):
        hub.check_side("model", hub.find(str(folders["dinov2"])).config, 9)
    with pytest.raises(UsageError, match="Choose 154 or 168"):
        planning.plan(PILE, Wish(backbone=f"hf:{folders['dinov2']}", size=160))
    hf.check_size("model", hub.find(str(folders["convnext"])).config, 41, 43)  # convolutions take any size


def test_a_model_that_takes_no_single_images_is_refused(tmp_path: Path) -> None:
    from transformers import VideoMAEConfig

    films = saved(tmp_path / "films", VideoMAEConfig(**SMALL, intermediate_size=64, image_size=32, patch_size=8))
    with pytest.raises(UsageError, match=r"does not take images of .* made for 32×32"):
        check_problem(pictures(), 2, settings(films))


def test_a_run_goes_on_with_the_weights_it_began_with_alone(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["vit"], tmp_path / "model")
    (folder / "preprocessor_config.json").unlink()
    said: list[str] = []
    display = Silent()
    display.say = said.append  # type: ignore[method-assign]
    job = Job(settings(folder), pictures(), None, 2, 0, torch.device("cpu"), tmp_path / "run", display)
    (tmp_path / "run").mkdir()
    keep_network(job)
    assert "ImageNet's means" in said[0]  # assumed, so told
    keep_network(job)
    assert len(said) == 1
    saved(folder, KINDS["vit"](), seed=1)
    with pytest.raises(UsageError, match="other weights than when this run began"):
        keep_network(job)


def test_names_and_folders_that_hold_no_such_model_are_told_apart(folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"needs network\.model"):
        hub.find("")
    with pytest.raises(UsageError, match=r"no folder .*/nowhere"):
        hub.find(str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"empty has no config\.json"):
        hub.find(str(tmp_path / "empty"))
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    shutil.copy(folders["vit"] / "config.json", pickled)
    with pytest.raises(UsageError, match=r"no weights in \*\.safetensors\. .*save_pretrained"):
        hub.find(str(pickled))
    torch.save({}, pickled / "pytorch_model.bin")
    with pytest.raises(UsageError, match=r"pytorch_model\.bin could run code"):
        hub.find(str(pickled))
    (pickled / "config.json").write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        hub.find(str(pickled))


def test_a_name_that_cannot_be_fetched_says_what_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    def offline(name: str, allow_patterns: list[str]) -> str:
        raise LocalEntryNotFoundError("Cannot reach the hub.\nMore lines.")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    with pytest.raises(UsageError, match=r"owner/gone is no folder .*Cannot reach the hub\.\).* local folder"):
        hub.find("owner/gone")


def test_a_name_of_the_hub_is_fetched_once_and_without_pickles(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    asked = []

    def fetch(name: str, allow_patterns: list[str]) -> str:
        asked.append((name, tuple(allow_patterns)))
        return str(folders["vit"])

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    x = torch.rand(2, 3, 40, 40)
    with torch.no_grad():
        torch.testing.assert_close(pretrained("owner/tiny-vit").features(x), pretrained(folders["vit"]).features(x))
    assert len(asked) == 1 and not any("bin" in pattern for pattern in asked[0][1])


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"-m pip install 'transformers>="):
        planning.plan(PILE, Wish(backbone="hf:facebook/dinov2-small"))


def test_models_of_other_things_than_images_are_refused(tmp_path: Path) -> None:
    from transformers import BertConfig

    text = saved(tmp_path / "bert", BertConfig(**SMALL, intermediate_size=64, vocab_size=50))
    with pytest.raises(UsageError, match=r"\(bert\) is no model of images alone"):
        check_problem(pictures(), 2, settings(text))
    (text / "config.json").write_text(json.dumps({"model_type": "of-my-own", "auto_map": {"AutoModel": "x.Y"}}))
    with pytest.raises(UsageError, match=r"'of-my-own', which transformers .* does not know"):
        check_problem(pictures(), 2, settings(text))


def test_a_model_that_hides_patches_at_random_is_refused(tmp_path: Path) -> None:
    from transformers import ViTMAEConfig

    folder = saved(tmp_path / "mae", ViTMAEConfig(**SMALL, intermediate_size=64, image_size=32, patch_size=8))
    with pytest.raises(UsageError, match="other features each time"):
        hf.check_repeatable("mae", pretrained(folder).trunk, 32)


def test_weights_that_do_not_belong_to_the_config_are_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["dinov2"], tmp_path / "mixed")
    shutil.copy(folders["resnet"] / "model.safetensors", folder)
    with pytest.raises(UsageError, match="do not belong together"):
        pretrained(folder)
    (folder / "model.safetensors").write_bytes(b"no such file")
    with pytest.raises(UsageError, match="cannot be read"):
        pretrained(folder)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network.name": "efficientnet-lite0", "supervised.frozen": []}, "network.model is for network.name hf"),
        ({"pretrain.kind": "rotation"}, "pretrain.kind is rotation"),
        ({"network.adapter": 0, "network.cached_views": 0}, "can be negative, but .*rank_by is value"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    folders: dict[str, Path], changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        check_problem(pictures(), 2, settings(folders["vit"], **changes))


# ---------------------------------------------------------------------------------------------------
# plans and whole runs


def test_discover_takes_a_size_that_fits_and_says_which_model(folders: dict[str, Path]) -> None:
    made = planning.plan(PILE, Wish(backbone=f"hf:{folders['dinov2']}"))
    chosen = recipe.load(made.recipe, made.settings).recipe
    assert made.recipe == "photos" and chosen.network.name == "hf" and chosen.data.size == 154
    assert chosen.network.model == str(folders["dinov2"]) and chosen.incremental.frozen == ("pretrained",)
    assert "dinov2" in made.said[0] and "154×154" in made.said[0]
    on_gpu = planning.plan(PILE, Wish(backbone=f"hf:{folders['dinov2']}"), "cuda")
    assert on_gpu.recipe == "photos" and on_gpu.settings["data.size"] == 224  # such a model is held fixed everywhere
    with pytest.raises(UsageError, match="pretrained already"):
        planning.plan(PILE, Wish(backbone="hf:x/y", pretraining="rotation"))


SHORT = ["supervised.epochs=2", "supervised.batch_size=8", "joint.epochs=3", "joint.batch_size=16", "run.trials=0",
         "run.map_points=40"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["dinov2", pytest.param("vit", marks=pytest.mark.full), pytest.param("resnet", marks=pytest.mark.full)]
)
def test_discovery_from_end_to_end_without_the_model_at_the_end(
    folders: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    root, side = write_photos(tmp_path / "photos"), SIDES[kind]
    model = shutil.copytree(folders[kind], tmp_path / "model")
    changes = [word for change in SHORT for word in ("--set", change)]
    command = ("discover", root, "--backbone", f"hf:{model}", "--size", str(side), "--new-classes", "2", "--out",
               tmp_path / "run", "--device", "cpu", *changes)  # fmt: skip
    done = autonovel(*command)
    assert done.returncode == 0, done.stderr
    assert f"model ({kind}), pretrained, on pictures of {side}×{side}" in done.stdout
    kept = json.loads((tmp_path / "run" / "network.json").read_text())
    assert kept["config"]["model_type"] == kind and kept["mean"] == MEAN
    shutil.rmtree(model)  # the run folder holds all that is needed from here on
    delivered = load_model(tmp_path / "run")
    torch.testing.assert_close(delivered.mean.flatten(), torch.tensor(MEAN))
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*.png"))
    again = embed(delivered, torch.stack([decoded(root / name, side) for name in names]))
    found = Embedding.load(tmp_path / "run" / "embedding.safetensors")
    torch.testing.assert_close(again.p_known, found.p_known, rtol=0.05, atol=0.01)  # features were kept in halves
    exported = autonovel("export", tmp_path / "run", "--to", "onnx", tmp_path / "model.onnx")
    assert exported.returncode == 0 and "onnxruntime agrees with torch" in exported.stdout, exported.stderr
    predicted = autonovel("predict", tmp_path / "run", root / "red", "--to", tmp_path / "red.csv")
    assert predicted.returncode == 0, predicted.stderr
    (tmp_path / "run" / "network.json").unlink()
    with pytest.raises(RunFolderError, match=r"network\.json is missing"):
        load_model(tmp_path / "run")
