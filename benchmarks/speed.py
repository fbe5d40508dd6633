"""Images per second of a training step, in the shape of the published loop and ours, both in one run.

`python benchmarks/speed.py` uses whatever device is there; content does not change the time, so images are random.
Per stage: the published shape (per-image transforms in two loader workers, eager float32, one pass per view, pairs
enumerated) beside ours: the recipe `cifar10-fast` (images resident on the device, batched transforms, and on a GPU
recorded, here and there compiled steps and bf16). Both make the same random views, in joint training new ones in every
step; the last row is the recipe's own joint training, on views that were drawn beforehand, which frozen blocks have
seen once. The set-up is what ours takes before its first step is done: recording, compiling in stage 1 and with new
views, and in the last row those blocks for all images.
"""

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import published_loop
import torch
from torch import nn
from torch.nn import functional as F

from autonovel import device as devices
from autonovel import draws, networks, recipe, settings
from autonovel.data import ImageSet, Resident, channel_statistics
from autonovel.methods.rankstats import Joint
from autonovel.methods.rotnet import Rotation
from autonovel.methods.supervised import Supervised
from autonovel.training import optimisers
from autonovel.training.display import Silent
from autonovel.training.stage import Stage
from autonovel.training.steps import step_kind

BATCH, KNOWN, NEW = 128, 5, 5
FROZEN = settings.FROZEN
# what is trained, and settings of the recipe to change for it
ROWS: dict[str, tuple[str, list[str]]] = {
    "rotation": ("rotation", []),
    "supervised": ("supervised", []),
    "joint": ("joint", ["joint.fixed_views=0", "joint.frozen_batchnorm=train", "joint.compile=true"]),
    "joint, 8 fixed views": ("joint", ["joint.fixed_views=8"]),
}


def random_images(n: int) -> tuple[Any, Any, ImageSet]:
    """Return n random images as the published loop and as ours takes them, half of them of known classes."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
    y = np.arange(n) % (KNOWN + NEW)
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
    labels = torch.from_numpy(np.where(y < KNOWN, y, -1))
    return images, y, ImageSet(pixels, labels, tuple(map(str, range(n))), tuple(map(str, range(KNOWN))))


def timed(step: Callable[[], int], device: torch.device, steps: int, warm_up: int) -> tuple[float, float]:
    """Return images per second over ``steps`` calls, which return their images, and the seconds of the first call."""

    def now() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    begun = now()
    step()
    first = now() - begun
    for _ in range(warm_up - 1):
        step()
    start = now()
    images = sum(step() for _ in range(steps))
    return images / (now() - start), first


def published(stage: str, n: int, device: torch.device) -> Callable[[], int]:
    """Return one step of the published loop's shape, on n images."""
    images, y, _ = random_images(n)
    trunk = networks.NETWORKS["resnet18"](3).to(device)
    trunk.freeze(() if stage == "rotation" else FROZEN)
    heads = tuple(nn.Linear(512, n).to(device) for n in ((4, 1) if stage == "rotation" else (KNOWN, NEW)))
    parameters = [p for p in [*trunk.parameters(), *heads[0].parameters(), *heads[1].parameters()] if p.requires_grad]
    optimiser = torch.optim.SGD(parameters, 0.01, momentum=0.9, weight_decay=1e-4)
    chosen = y < KNOWN if stage == "supervised" else np.ones(len(y), bool)
    loader = published_loop.loader(images[chosen], y[chosen], BATCH, stage)

    def batches() -> Iterator[Any]:
        while True:
            yield from loader

    endless = batches()

    def step() -> int:
        views, labels = next(endless)
        views, labels = views.to(device), labels.to(device)
        optimiser.zero_grad()
        if stage == "rotation":
            turns = torch.arange(4, device=device).repeat(len(views))
            loss = F.cross_entropy(heads[0](trunk(views.flatten(0, 1))), turns)
        elif stage == "supervised":
            loss = F.cross_entropy(heads[0](trunk(views[:, 0])), labels)
        else:
            loss = published_loop.joint_loss(trunk, heads, views, labels, KNOWN)
        loss.backward()
        optimiser.step()
        return len(views)

    return step


def ours(stage: str, changes: list[str], n: int, device: torch.device) -> Callable[[], int]:
    """Return one step of ours, on n images."""
    _, _, images = random_images(n)
    of = recipe.load("cifar10-fast", changes).recipe
    makers: dict[str, Callable[[], Stage]] = {
        "rotation": lambda: Rotation(of.pretrain, KNOWN, 0),
        "supervised": lambda: Supervised(of.supervised, KNOWN, 0),
        "joint": lambda: Joint(of.joint, KNOWN, NEW, 0),
    }
    made = makers[stage]()
    model = networks.build(of.network, 3, *channel_statistics(images.images), seed=0)
    model.precision = devices.precision("auto", device)
    made.prepare(model)
    model.to(device, memory_format=torch.channels_last).train()
    sampler = made.sampler(images)
    optimiser = optimisers.make(made.settings, model.parameters())
    take = step_kind(device)(model, made, Resident(images, device), optimiser, sampler.steps_per_epoch)
    rows = sampler.epoch(0).to(device)
    u = draws.uniform(1, torch.arange(len(rows), device=device), rows, made.n_draws)
    count, computed = 0, contextlib.ExitStack()

    def step() -> int:
        nonlocal count
        if count == 0 and isinstance(made, Joint) and made.fixed:
            computed.enter_context(made.foresee(model, images, Silent()))
            assert made.fixed.maps is not None, "there is no room for the frozen blocks' output"
        row = count % len(rows)
        count += 1
        take(rows[row], u[row], count, 0.01)
        return len(rows[row])

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--steps", type=int, default=0, help="timed steps (default: 50 on a GPU, 3 on a CPU)")
    arguments = parser.parse_args()
    device = devices.pick(arguments.device)
    steps = arguments.steps or (50 if device.type == "cuda" else 3)
    warm_up = 10 if device.type == "cuda" else 1
    # an epoch, also of the half that is labelled, outlasts the measurement: the loader never starts anew inside it
    n = 2 * (warm_up + steps + 1) * BATCH
    torch.backends.cudnn.benchmark = True
    print(f"ResNet-18, {n:,} images of 32×32 in batches of {BATCH}, {steps} steps on {devices.describe(device)}, "
          f"torch {torch.__version__}, {torch.get_num_threads()} threads\n")  # fmt: skip
    print("| stage | published shape, images/s | ours, images/s | ratio | set-up of ours |\n|---|---|---|---|---|")
    slower: dict[str, float] = {}
    of = recipe.load("cifar10-fast").recipe
    assert {part.batch_size for part in (of.pretrain, of.supervised, of.joint)} == {BATCH}, (
        "both sides have such batches"
    )
    for row, (stage, changes) in ROWS.items():
        if stage not in slower:
            slower[stage], _ = timed(published(stage, n, device), device, steps, warm_up)
        slow = slower[stage]
        fast, set_up = timed(ours(stage, changes, n, device), device, steps, warm_up)
        print(f"| {row} | {slow:,.0f} | {fast:,.0f} | {fast / slow:.1f} × | {set_up:.1f} s |", flush=True)


if __name__ == "__main__":
    main()
