"""OmniGlot's stages on a CUDA device: recorded steps against eager ones, runs beside each other."""

import copy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import omniglot_tree
from autonovel import draws, networks
from autonovel.data import ImageSet, channel_statistics, loader
from autonovel.manner import Manner
from autonovel.methods.prototypical import Prototypical
from autonovel.methods.rankstats import Joint
from autonovel.recipe import load
from autonovel.settings import Network
from autonovel.storage.documents import read_json
from autonovel.training import optimisers
from autonovel.training.cuda_graph import GraphStep
from autonovel.training.stage import Stage
from autonovel.training.steps import Step

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def some_images() -> ImageSet:
    rng = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (160, 1, 105, 105), generator=rng, dtype=torch.uint8)
    truth = torch.arange(160) // 10
    y = torch.where(truth < 12, truth, -1)
    return ImageSet(pixels, y, tuple(map(str, range(160))), tuple(f"a/{n}" for n in range(12)), truth)


def stages() -> list[Stage]:
    recipe = load("omniglot").recipe
    pretrain = replace(recipe.pretrain, batch_size=48, classes_per_batch=8, support=3, held_out=(), turned=True)
    joint = replace(recipe.joint, batch_size=40, labelled_per_batch=24)
    return [Prototypical(pretrain, 0), Joint(joint, 12, 4, 0)]


def train(kind: type[Step]) -> list[dict[str, torch.Tensor]]:
    """Return the means of an epoch of each stage, and the weights after it."""
    images, device, found = some_images(), torch.device("cuda"), []
    assert isinstance(images.images, torch.Tensor)
    network = Network(name="vgg", side=32, head_width=32)
    model = networks.build(network, 1, *channel_statistics(images.images), seed=0)
    for stage in stages():
        stage.prepare(model)
        model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        sampler = stage.sampler(images)
        steps = sampler.steps_per_epoch
        step = kind(model, stage, loader(images, device), optimisers.make(stage.settings, model.parameters()), steps)
        rows = sampler.epoch(0).to(device)
        u = draws.uniform(7, torch.arange(steps, device=device), rows, stage.n_draws)
        model.train()
        for number, index in enumerate(rows):
            step(index, u[number], number, 1e-4)
        found.append(step.end_of_epoch())
        found.append(copy.deepcopy({name: value.float().cpu() for name, value in model.state_dict().items()}))
    return found


def test_recorded_steps_of_prototypes_and_two_layer_heads_train_as_eager_ones() -> None:
    for eager, recorded in zip(train(Step), train(GraphStep), strict=True):
        assert eager.keys() == recorded.keys()
        for name, value in eager.items():
            torch.testing.assert_close(recorded[name], value, rtol=2e-2, atol=2e-3, msg=lambda said: f"{name}: {said}")  # noqa: B023


def test_alphabets_beside_each_other_on_one_gpu(tmp_path: Path) -> None:
    """The processes read the published counts themselves, so this takes a tree of the real size."""
    from autonovel.studies.part_runs import run_parts
    from autonovel.studies.parts import Parts
    from autonovel.studies.side_by_side import RunOrder

    tree = omniglot_tree.write_published(tmp_path / "omniglot")
    small = [s for s in omniglot_tree.SETTINGS if not s.startswith(("data.", "pretrain.held_out"))]
    sets = (f"data.path={tree}", "pretrain.held_out=Latin", "data.per_class=6", *small)
    order = RunOrder("omniglot", tmp_path / "runs" / "omniglot-seed0", 0, sets, Manner("cuda", keep_going=True))
    run_parts(Parts("data.alphabet", {"Angelic": 20, "Keble": 26}), order, 2)
    whole = read_json(order.folder / "results.json")
    assert whole["each"].keys() == {"Angelic", "Keble"}
    assert 0 < whole["systems"]["rankstats"]["acc"] <= 1
