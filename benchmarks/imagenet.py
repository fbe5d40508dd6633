"""Stage 3 at 224 pixels: images per second of ours beside a bare torch loop, and what a large run is made of.

`python benchmarks/imagenet.py --out FILE.json` takes whatever device is there, generates its images (content does not
change the time), and needs nothing but autonovel.  On a GPU it takes the recipe `imagenet` as it is: batches of
384 + 128 images of 256×256, views of 224×224, 882 + 30 classes, two passes.  On a CPU sizes are small unless told
otherwise.

Bare loop and ours, with all images on the device, run in turns; the ratio is the median over the turns.  Then ours with
images that come from the host's memory, and from JPEG files decoded by worker processes; and the unit costs from which
benchmarks/scale.py works out what more images would take.
"""

import argparse
import gc
import json
import os
import resource
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import bare_joint
import numpy as np
import torch
from PIL import Image

from autonovel import device as devices
from autonovel import draws, networks, recipe
from autonovel.data import ImageSet, loader
from autonovel.data.crew import Crew
from autonovel.data.files import WHOLE, Entry, FileTable
from autonovel.data.folder import everything
from autonovel.data.listing import workers
from autonovel.data.streamed import FilePixels, HostPixels
from autonovel.embedding import features
from autonovel.methods.rankstats import Joint
from autonovel.methods.supervised import Supervised
from autonovel.networks.imagenet_resnet import statistics as channel_constants
from autonovel.settings import Recipe
from autonovel.training import optimisers
from autonovel.training.stage import Stage
from autonovel.training.steps import step_kind

JPEG = (500, 375)  # pixels of a usual picture of ImageNet
LISTED = 100_000  # names of files whose place in memory is measured


def settings_of(arguments: argparse.Namespace) -> Recipe:
    """Return the recipe at the sizes asked for."""
    a = arguments
    sets = [
        f"data.size={a.side}", f"network.crop={a.crop}", f"joint.batch_size={a.batch}", "data.subset=A",
        f"joint.labelled_per_batch={a.batch * 3 // 4}", f"supervised.batch_size={a.batch // 2}",
        *(f"{stage}.augment.side={a.crop}" for stage in ("supervised", "joint")),
    ]  # fmt: skip
    return recipe.load("imagenet", sets).recipe


def image_set(pixels: Any, known: int, new: int) -> ImageSet:
    """Return images of which three quarters are of known classes."""
    number = torch.arange(len(pixels))
    free = number % 4 == 3
    y = torch.where(free, -1, number % known)
    truth = torch.where(free, known + number % new, y)
    return ImageSet(pixels, y, tuple(map(str, range(len(pixels)))), tuple(map(str, range(known))), truth)


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def rate(step: Callable[[], Any], images: int, steps: int, device: torch.device) -> float:
    """Return images per second over ``steps`` calls."""
    wait(device)
    start = time.perf_counter()
    for _ in range(steps):
        step()
    wait(device)
    return images * steps / (time.perf_counter() - start)


def our_step(stage: Stage, images: ImageSet, made: Recipe, device: torch.device) -> Callable[[], None]:
    """Return the product's own step, with its loader, sampler and random draws."""
    model = networks.build(made.network, 3, *channel_constants(3), seed=0)
    model.precision = devices.precision("auto", device)
    stage.prepare(model)
    model.to(device, memory_format=torch.channels_last).train()
    sampler = stage.sampler(images)
    source = loader(images, device)
    source.start(sampler, range(1_000_000))
    take = step_kind(device)(
        model, stage, source, optimisers.make(stage.settings, model.parameters()), sampler.steps_per_epoch
    )

    def batches() -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
        step = 0
        for epoch in range(1_000_000):
            rows = sampler.epoch(epoch).to(device)
            u = draws.uniform(1, torch.arange(step, step + len(rows), device=device), rows, stage.n_draws)
            for place, index in enumerate(rows):
                yield step + place, index, u[place]
            step += len(rows)

    coming = batches()

    def step() -> None:
        number, index, u = next(coming)
        source.advance()
        take(index, u, number, 0.01)

    return step


def side_by_side(
    bare: Callable[[], Any], ours: Callable[[], Any], images: int, a: argparse.Namespace, device: torch.device
) -> dict[str, Any]:
    """Return the rates of both, in turns, and the median of their ratios."""
    for step in (bare, ours):
        rate(step, images, a.warm_up, device)
    turns = [(rate(bare, images, a.steps, device), rate(ours, images, a.steps, device)) for _ in range(a.repeats)]
    return {
        "bare": statistics.median(one for one, _ in turns),
        "ours": statistics.median(other for _, other in turns),
        "ratio": statistics.median(other / one for one, other in turns),
        "turns": [list(turn) for turn in turns],
    }


def write_jpegs(folder: Path, count: int) -> int:
    """Write ``count`` pictures with smooth and fine structure; return their mean size in bytes."""
    rng = np.random.default_rng(0)
    width, height = JPEG
    noise = rng.integers(-14, 15, (2 * height, 2 * width, 3))
    total = 0
    for number in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (9, 12, 3), dtype=np.uint8)).resize(
            JPEG, Image.Resampling.BICUBIC
        )
        top, left = rng.integers(height), rng.integers(width)
        pixels = np.asarray(coarse) + noise[top : top + height, left : left + width]
        path = folder / f"{number:06d}.jpg"
        Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(path, quality=92)
        total += path.stat().st_size
    return total // count


def decoding(pixels: FilePixels, batch: int, passes: int) -> tuple[float, float]:
    """Return images per second of the workers alone, in random order, and processor milliseconds of an image."""
    order = torch.randperm(len(pixels) * passes, generator=torch.Generator().manual_seed(0)) % len(pixels)
    before, start, done = processor_seconds(), 0.0, 0
    for parts in replace(pixels, crew=Crew()).parts_in_order(iter(order.split(batch))):
        done += sum(map(len, parts)) if start else 0
        start = start or time.perf_counter()  # from the first batch on: workers have started
    clock = time.perf_counter() - start
    gc.collect()  # ends the workers, whose time is counted when they have ended
    return done / clock, 1e3 * (processor_seconds() - before) / len(order)


def processor_seconds() -> float:
    """Return the processor time of this process and of all that it started and that have ended."""
    mine, theirs = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return mine.ru_utime + mine.ru_stime + theirs.ru_utime + theirs.ru_stime


def listing(folder: Path) -> tuple[float, float]:
    """Return files per second that are listed with size and time, and bytes of memory that a listed file takes."""
    start = time.perf_counter()
    count = len(everything(folder).entries)
    listed = count / (time.perf_counter() - start)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    names = [f"train/n{number % 1000:08d}/n{number % 1000:08d}_{number}.JPEG" for number in range(LISTED)]
    table = FileTable.of("root", (Entry(name, name, WHOLE, 110_000, number) for number, name in enumerate(names)))
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(table) == LISTED
    return listed, taken / LISTED


def measure(a: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    """Return all figures."""
    made = settings_of(a)
    cores = a.processes or workers(made.data)
    joint = Joint(made.joint, a.known, a.new, 0)
    out: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        size = write_jpegs(Path(place), a.jpegs)
        listed = everything(Path(place))
        files = FilePixels(FileTable.of(place, listed.entries), a.side, 3, cores, pinned=device.type == "cuda")
        out["jpeg_bytes"] = size
        out["listing_per_s"], out["bytes_per_listed_file"] = listing(Path(place))
        out["decode_per_s"], out["decode_processor_ms"] = decoding(replace(files, pinned=False), a.batch, a.passes)
        out["decode_per_s_and_process"] = out["decode_per_s"] / cores
        print(f"decode and stream: {out['decode_per_s']:,.0f} images/s by {cores} processes, "
              f"{out['decode_processor_ms']:.2f} ms of a processor each", flush=True)  # fmt: skip

        rng = torch.Generator().manual_seed(0)
        pixels = torch.randint(0, 256, (a.images, 3, a.side, a.side), generator=rng, dtype=torch.uint8)
        held = image_set(pixels, a.known, a.new)
        on_device = image_set(pixels.to(device), a.known, a.new)
        precision = devices.precision("auto", device)
        bare = bare_joint.joint_step(on_device.images, on_device.y.to(device), a.known, a.new, made.joint, precision)
        out["joint"] = side_by_side(bare, our_step(joint, on_device, made, device), a.batch, a, device)
        del bare
        print(f"stage 3, resident: {out['joint']['ours']:,.1f} images/s; bare loop {out['joint']['bare']:,.1f}; "
              f"ratio {out['joint']['ratio']:.2f}", flush=True)  # fmt: skip

        streamed = image_set(HostPixels(pixels, device.type == "cuda"), a.known, a.new)
        kinds = {"joint_from_memory": streamed, "joint_from_files": image_set(files, a.known, a.new)}
        for name, images in kinds.items():
            step = our_step(joint, images, made, device)
            rate(step, a.batch, a.warm_up, device)
            out[name] = rate(step, a.batch, a.steps, device)
            del step
            print(f"stage 3, {name.removeprefix('joint_').replace('_', ' ')}: {out[name]:,.1f} images/s", flush=True)

        step = our_step(Supervised(made.supervised, a.known, 0, True), on_device, made, device)
        rate(step, a.batch // 2, a.warm_up, device)
        out["supervised"] = rate(step, a.batch // 2, a.steps, device)
        model = networks.build(made.network, 3, *channel_constants(3), seed=0).to(device)
        model.to(memory_format=torch.channels_last)
        model.precision = precision
        features(model, held.images[: a.batch])
        start = time.perf_counter()
        features(model, held.images)
        out["embedding"] = a.images / (time.perf_counter() - start)
        print(f"stage 2: {out['supervised']:,.1f} images/s; features: {out['embedding']:,.1f} images/s", flush=True)
    out["bytes_to_device_per_step"] = a.batch * 3 * a.side * a.side
    out["bytes_read_per_step"] = a.batch * size
    print(f"per step: {out['bytes_to_device_per_step'] / 1e6:.1f} MB to the device, "
          f"{out['bytes_read_per_step'] / 1e6:.1f} MB of JPEGs read")  # fmt: skip
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--side", type=int, help="pixels to which images are decoded (256; CPU: 64)")
    parser.add_argument("--crop", type=int, help="pixels that the network sees (224; CPU: 56)")
    parser.add_argument("--batch", type=int, help="images of a batch, a quarter of them unlabelled (512; CPU: 32)")
    parser.add_argument("--images", type=int, help="different images (4096; CPU: 256)")
    parser.add_argument("--known", type=int, default=882)
    parser.add_argument("--new", type=int, default=30)
    parser.add_argument("--steps", type=int, help="timed steps of a turn (20; CPU: 3)")
    parser.add_argument("--warm-up", type=int, help="steps before (5; CPU: 1)")
    parser.add_argument("--repeats", type=int, default=3, help="turns of bare loop and ours")
    parser.add_argument("--jpegs", type=int, help="different JPEG files (1024; CPU: 128)")
    parser.add_argument("--processes", type=int, default=0, help="that decode (0: one per core)")
    parser.add_argument("--passes", type=int, help="over the JPEG files, decoding alone (24; CPU: 4)")
    a = parser.parse_args()
    device = devices.pick(a.device)
    small = device.type == "cpu"
    for name, (large, tiny) in {
        "side": (256, 64), "crop": (224, 56), "batch": (512, 32), "images": (4096, 256), "steps": (20, 3),
        "warm_up": (5, 1), "jpegs": (1024, 128), "passes": (24, 4),
    }.items():  # fmt: skip
        if getattr(a, name) is None:
            setattr(a, name, tiny if small else large)
    if a.batch % 4 or a.images < a.batch:
        parser.error("--batch must be a multiple of 4, and --images at least as many.")
    start, load = time.perf_counter(), os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    print(f"ResNet-18, batches of {a.batch * 3 // 4} + {a.batch // 4} images of {a.side}×{a.side}, views of "
          f"{a.crop}×{a.crop}, {a.known} + {a.new} classes, on {devices.describe(device)}, {os.cpu_count()} cores, "
          f"torch {torch.__version__}", flush=True)  # fmt: skip
    with devices.torch_settings(devices.precision("auto", device)):
        figures = measure(a, device)
    asked = {key: value for key, value in vars(a).items() if key not in ("out", "device")}
    told = {"settings": asked, **devices.facts(device), "cores": os.cpu_count(), "threads": torch.get_num_threads(),
            "load_average": load}  # fmt: skip
    print(f"{time.perf_counter() - start:.0f} s in all")
    if a.out:
        a.out.parent.mkdir(parents=True, exist_ok=True)
        a.out.write_text(json.dumps(told | {"figures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
