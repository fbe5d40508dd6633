"""ImageNet's recipe from end to end on a small tree of its shape: every system, all subsets, resumed, counted."""

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import imagenet_tree
from autonovel import doubts, recipe
from autonovel.commands.reproduce import reproduce_recipe
from autonovel.counting.counting import wanted
from autonovel.data import ImageSet
from autonovel.errors import UsageError
from autonovel.first_model import new_model, normalisation
from autonovel.job import Job
from autonovel.manner import Manner
from autonovel.methods.rankstats import Joint
from autonovel.networks import NETWORKS
from autonovel.settings import FROZEN
from autonovel.storage.documents import read_json
from autonovel.studies import variants
from autonovel.tables import paper
from autonovel.training import checkpoint
from autonovel.training.display import Silent


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        imagenet_tree.publish(patch)
        yield imagenet_tree.write(tmp_path_factory.mktemp("imagenet") / "tree")


def reproduce(tree: Path, out: Path, *sets: str, **more: Any) -> None:
    changes = [f"data.path={tree}", *imagenet_tree.SETTINGS, *sets]
    reproduce_recipe("imagenet", [0], out, changes, Manner("cpu", keep_going=True), **more)


@pytest.fixture(scope="module")
def runs(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    reproduce(tree, out)
    return out


def stages_trained(run: Path) -> set[str]:
    return {json.loads(line)["stage"] for line in (run / "metrics.jsonl").read_text().splitlines()}


def weights(run: Path, stage: str) -> bytes:
    return (run / "stages" / stage / "model.safetensors").read_bytes()


@pytest.mark.slow
def test_the_result_is_the_mean_over_subsets_which_share_the_classifier(runs: Path) -> None:
    folder = runs / "imagenet-seed0"
    each = {part: read_json(folder / part / "results.json") for part in imagenet_tree.SUBSETS}
    whole = read_json(folder / "results.json")
    for system in ("rankstats", "kmeans"):
        assert whole["systems"][system]["acc"] == pytest.approx(
            statistics.fmean(of["systems"][system]["acc"] for of in each.values())
        )
    assert {part: of["n_new"] for part, of in whole["each"].items()} == {"A": 3, "B": 3}
    assert weights(folder / "A", "2-supervised") == weights(folder / "B", "2-supervised")
    assert stages_trained(folder / "B") == {"3-joint"}
    facts = read_json(folder / "A" / "run.json")
    assert facts["class_names"] == list(imagenet_tree.KNOWN) and facts["images"] == [132, 3, 36, 36]
    rows = (folder / "A" / "discovery.csv").read_text().splitlines()
    assert rows[1].startswith(f"train/{imagenet_tree.KNOWN[0]}/{imagenet_tree.KNOWN[0]}_0.JPEG,train/")


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bits_with_the_other_loader(
    tree: Path, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = ('run.systems=["rankstats"]', "data.subset=A", "run.checkpoint_seconds=0")
    kept = checkpoint.save

    def save_and_die(path: Path, *given: Any) -> None:
        kept(path, *given)
        if "3-joint" in str(path):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", save_and_die)
        with pytest.raises(KeyboardInterrupt):
            reproduce(tree, tmp_path, *only)
    assert (tmp_path / "imagenet-seed0" / "stages" / "3-joint" / "checkpoint.safetensors").exists()
    reproduce(tree, tmp_path, *only, "data.loader=resident")
    alone, among = tmp_path / "imagenet-seed0", runs / "imagenet-seed0" / "A"
    for name in ("model.safetensors", "discovery.csv"):
        assert (alone / name).read_bytes() == (among / name).read_bytes()


@pytest.mark.slow
def test_the_systems_it_is_compared_with_run_by_the_same_command(tree: Path, runs: Path) -> None:
    methods = ["kcl", "mcl", "dtc"]
    reproduce(tree, runs, "data.subset=A", systems=variants.of_systems(methods))
    folder = runs / "imagenet-kcl-mcl-dtc-seed0"
    found = read_json(folder / "results.json")["systems"]
    assert found.keys() == set(methods) and all(0 < scores["acc"] <= 1 for scores in found.values())
    assert weights(folder / "systems" / "mcl", variants.SIMILARITY) == weights(folder, variants.SIMILARITY)
    assert stages_trained(folder / "systems" / "dtc") == {"3-dtc-start", "4-dtc"}


@pytest.mark.slow
def test_new_classes_are_counted_with_a_classifier_that_subsets_share(tree: Path, runs: Path) -> None:
    counted = ("count.new_classes=auto", "count.most=6", "count.probe_share=0.5", "count.halves=0")
    reproduce(tree, runs, *counted, systems=variants.of_systems(["kmeans"]))
    folder = runs / "imagenet-kmeans-seed0"
    for part in imagenet_tree.SUBSETS:
        content = read_json(folder / part / "count.json")
        assert content["true"] == 3 and len(content["probes"]) == 4
        assert read_json(folder / part / "results.json")["n_new"] == max(content["estimate"], 2)
    assert weights(folder / "A" / "count", "2-supervised") == weights(folder / "B" / "count", "2-supervised")
    assert not (folder / "B" / "count" / "metrics.jsonl").exists(), "the second subset trained it again"
    assert weights(folder / "A" / "count", "2-supervised") != weights(folder / "A", "2-supervised")


def images(n_known: int) -> ImageSet:
    return ImageSet(torch.zeros(2, 3, 8, 8, dtype=torch.uint8), torch.tensor([0, -1]), ("a", "b"),
                    tuple(map(str, range(n_known))))  # fmt: skip


class Heard(Silent):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        """Keep a line."""
        self.said.append(text)


def usual_names(n_classes: int) -> dict[str, torch.Tensor]:
    """Return random weights of a ResNet-18 under the names of PyTorch's own."""
    trunk = NETWORKS["resnet18-imagenet"](3)
    places = {"blocks.stem.0": "conv1", "blocks.stem.1": "bn1", "blocks.block": "layer"}
    named = {}
    for name, value in trunk.state_dict().items():
        ours = next(place for place in places if name.startswith(place))
        named[places[ours] + name.removeprefix(ours)] = value
    return named | {"fc.weight": torch.randn(n_classes, 512), "fc.bias": torch.randn(n_classes)}


def test_weights_from_a_file_start_trunk_and_classifier(tmp_path: Path) -> None:
    named, path = usual_names(7), tmp_path / "classifier.safetensors"
    save_file({f"module.{name}": value for name, value in named.items()}, path)
    sets = ["pretrain.kind=weights", f"pretrain.weights={path}"]
    without_stage_2 = recipe.load("imagenet", [*sets, "supervised.epochs=0"]).recipe
    model = new_model(without_stage_2, images(7), 0)
    assert torch.equal(model.trunk.state_dict()["blocks.block4.1.conv2.weight"], named["layer4.1.conv2.weight"])
    assert torch.equal(model.trunk.state_dict()["blocks.stem.1.running_var"], named["bn1.running_var"])
    stage = Joint(without_stage_2.joint, 7, 3, 0)
    stage.prepare(model)
    assert torch.equal(model.heads["known"].weight, named["fc.weight"])
    assert torch.equal(model.heads["known"].bias, named["fc.bias"])
    other = new_model(without_stage_2, images(8), 0)
    assert "known" not in other.heads, "a classifier of seven classes is none of eight"
    for n_known, words in ((7, "of the 7 known classes starts from"), (8, "has no classifier of 8 classes")):
        heard = Heard()
        nowhere = torch.device("cpu")
        job = Job(without_stage_2, images(n_known), None, 3, 0, nowhere, tmp_path, heard)
        doubts.tell_of_the_first_classifier(job)
        assert words in heard.said[0]
    assert "known" not in new_model(recipe.load("imagenet", sets).recipe, images(7), 0).heads


def test_a_classifier_of_another_network_is_refused(tmp_path: Path) -> None:
    save_file({"conv1.weight": torch.zeros(1)}, tmp_path / "odd.safetensors")
    odd = recipe.load("imagenet", ["pretrain.kind=weights", f"pretrain.weights={tmp_path / 'odd.safetensors'}"]).recipe
    with pytest.raises(UsageError, match=r"do not fit network\.name"):
        new_model(odd, images(7), 0)


def test_the_recipe_has_the_published_numbers() -> None:
    r = recipe.load("imagenet").recipe
    j = r.joint
    assert (j.epochs, j.batch_size, j.labelled_per_batch, j.lr, j.decay_every, j.weight, j.ramp_epochs) == (
        90, 512, 384, 0.1, 30, 10, 50,
    )  # fmt: skip
    assert (j.batch, j.epoch, j.views, j.k, j.schedule_ahead) == ("fixed", "labelled", "separate", 5, 1)
    assert (j.augment.resized_crop, j.augment.side, j.augment.flip, r.data.size, r.network.crop) == (
        0.5, 224, True, 256, 224,
    )  # fmt: skip
    assert (r.dtc.variant, r.dtc.epochs, r.dtc.lr, r.dtc.weight_decay, r.dtc.batch_size) == ("tep", 60, 0.05, 1e-5, 128)
    assert round(r.count.probe_share * 882) == 82 and (r.count.anchor_share, r.count.size_ratio) == (0.9, 0.3)
    assert r.joint.frozen == FROZEN and r.pretrain.kind == "supervised"  # the latter trains the whole network
    mean, std = normalisation(r, images(2))
    assert mean.tolist() == pytest.approx([0.485, 0.456, 0.406])
    assert std.tolist() == pytest.approx([0.229, 0.224, 0.225])


def test_published_estimates_and_numbers() -> None:
    for subset, number in {"A": 34, "B": 31, "C": 32}.items():
        asked = recipe.load("imagenet", ["count.new_classes=published", f"data.subset={subset}"]).recipe
        assert wanted(asked, 30) == number
    known = {s: paper.accuracy("imagenet", "", s) for s in ("kmeans", "kcl", "mcl", "dtc", "rankstats")}
    assert [p.mean for p in known.values() if p] == [71.9, 73.8, 74.4, 78.3, 82.5]
    unknown = [paper.accuracy("imagenet", "count.new_classes=auto", s) for s in known]
    assert [p.mean if p else None for p in unknown] == [None, 71.4, 72.9, 77.6, 80.5]
    assert str(known["dtc"]) == "78.3 (3 subsets)"


def test_a_shape_needs_a_crop() -> None:
    with pytest.raises(UsageError, match=r"joint\.augment\.aspect is 1\.33"):
        recipe.load("imagenet", ["joint.augment.resized_crop=1"])


def test_grey_images_are_not_normalised_as_imagenet() -> None:
    grey = ImageSet(torch.zeros(2, 1, 8, 8, dtype=torch.uint8), torch.tensor([0, -1]), ("a", "b"), ("c",))
    with pytest.raises(UsageError, match=r"network\.normalise is imagenet"):
        normalisation(recipe.load("imagenet").recipe, grey)
