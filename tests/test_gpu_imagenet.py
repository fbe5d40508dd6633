"""Batches of large images on their way to a CUDA device, and a recorded step on them."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import imagenet_tree
from autonovel import networks, recipe
from autonovel.data import ImageSet, Merged, loader
from autonovel.data.files import FileTable
from autonovel.data.folder import everything
from autonovel.data.streamed import FilePixels, HostPixels
from autonovel.methods.rankstats import Joint
from autonovel.training import optimisers
from autonovel.training.cuda_graph import GraphStep

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
N, SIDE = 24, 16


@pytest.fixture
def files(tmp_path: Path) -> FilePixels:
    for number in range(N):
        imagenet_tree.picture("n01000001", number).save(tmp_path / f"{number:02d}.JPEG", "jpeg")
    return FilePixels(FileTable.of(str(tmp_path), everything(tmp_path).entries), SIDE, 3, 2, pinned=True)


def image_set(pixels: object) -> ImageSet:
    number = torch.arange(N)
    y = torch.where(number % 2 == 0, number % 4 // 2, -1)
    return ImageSet(pixels, y, tuple(map(str, range(N))), ("a", "b"), truth=torch.where(y < 0, 2 + number % 3, y))  # type: ignore[arg-type]


def test_every_loader_brings_the_same_batches(files: FilePixels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autonovel.data.streamed.BYTES_AT_ONCE", 3 * 3 * SIDE * SIDE)  # batches come in parts of three
    pixels, device = files[list(range(N))], torch.device("cuda")
    sampler = Merged(torch.arange(N), 8, 0, 1)
    sources = [loader(image_set(one), device) for one in (pixels, HostPixels(pixels, pinned=True), files)]
    for source in sources:
        source.start(sampler, range(3))
    for epoch in range(3):
        for index in sampler.epoch(epoch):
            for source in sources:
                source.advance()
            found = [source.batch(index.to(device), torch.zeros(8, 1)).images.cpu() for source in sources]
            assert all(torch.equal(one, pixels[index]) for one in found)


def test_a_recorded_step_trains_on_streamed_images(files: FilePixels) -> None:
    sets = ["network.crop=12", "joint.augment.side=12", "joint.batch_size=8", "joint.labelled_per_batch=4"]
    made = recipe.load("imagenet", sets).recipe
    stage, images, device = Joint(made.joint, 2, 3, 0), image_set(files), torch.device("cuda")
    model = networks.build(replace(made.network, name="small"), 3, torch.zeros(3), torch.ones(3), 0)
    stage = replace(stage, settings=replace(made.joint, frozen=("stem",)))
    stage.prepare(model)
    model.to(device, memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    source, sampler = loader(images, device), stage.sampler(images)
    source.start(sampler, range(4))
    step = GraphStep(model, stage, source, optimisers.make(stage.settings, model.parameters()), sampler.steps_per_epoch)
    before = model.trunk.state_dict()["blocks.block3.0.conv1.weight"].clone()
    rows = sampler.epoch(0).to(device)
    for number, index in enumerate(rows):
        source.advance()
        step(index, torch.rand(8, stage.n_draws, device=device), number, 0.01)
    assert all(torch.isfinite(value) for value in step.end_of_epoch().values() if value.ndim == 0)
    assert not torch.equal(model.trunk.state_dict()["blocks.block3.0.conv1.weight"], before)
