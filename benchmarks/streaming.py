"""What streaming costs: `python benchmarks/streaming.py` prints images per second and peak memory, on generated JPEGs.

Speed: batches in random order through the streaming loader, without and with its cache of decoded images, beside a bare
loop that does nothing but decode the same files with Pillow; as many processes each, in turns, all in one run.

Memory: reading all of 5,000, 50,000 and 200,000 files, some steps of training on random ones, and the features of all,
each in a process of its own, whose memory (proportional set size, workers included) is sampled throughout.  The files
are hard links to 5,000 JPEGs: they are opened, read and decoded one by one all the same, but take no disk.
"""

import argparse
import io
import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from autonovel import device as devices
from autonovel import networks, recipe, settings
from autonovel.data import ImageSet, Merged, Sampler, channel_statistics, sources
from autonovel.data.crew import Crew
from autonovel.data.files import FileTable
from autonovel.data.folder import load
from autonovel.data.pixel_cache import PixelCache
from autonovel.data.prepare import prepare
from autonovel.data.streamed import FilePixels
from autonovel.embedding import features
from autonovel.methods.supervised import Supervised
from autonovel.storage.journal import Journal
from autonovel.training.display import Silent
from autonovel.training.loop import Context, run_stage

DISTINCT, BATCH, EPOCHS = 5000, 128, 3
STEPS = 100  # of training, where the memory is measured
SAMPLE_EVERY = 0.1  # seconds between two looks at the memory


def write_jpegs(folder: Path, count: int, side: int) -> None:
    """Write ``count`` smooth random colour pictures: a quarter each in two classes, the others unlabelled."""
    rng = np.random.default_rng(0)
    for number in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).resize((side, side), Image.BICUBIC)
        noise = rng.integers(-12, 13, (side, side, 3))
        picture = Image.fromarray(np.clip(np.asarray(coarse) + noise, 0, 255).astype(np.uint8))
        path = folder / ("a", "b", "unlabelled", "unlabelled")[number % 4] / f"{number:06d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.save(path, quality=85)


def link_jpegs(source: Path, folder: Path, count: int) -> None:
    """Make a folder of ``count`` hard links to the files of ``source``."""
    files = sorted(source.rglob("*.jpg"))
    for number in range(count):
        file = files[number % len(files)]
        path = folder / file.parent.name / f"{number:06d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        os.link(file, path)


def bare_loop(paths: list[str], side: int) -> None:
    """Decode every file as fast as Pillow can and keep nothing."""
    for path in paths:
        with open(path, "rb") as file:
            content = file.read()
        with Image.open(io.BytesIO(content), formats=("JPEG",)) as picture:
            picture.draft("RGB", (side, side))
            np.asarray(picture.resize((side, side), Image.Resampling.BILINEAR))


def bare(paths: list[str], side: int, processes: int) -> None:
    """Let ``processes`` do the bare loop, each on its share."""
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=bare_loop, args=(paths[i::processes], side)) for i in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def streamed(pixels: FilePixels, epochs: int) -> None:
    """Go through all images ``epochs`` times, in random order, and keep nothing."""
    order = torch.randperm(len(pixels) * epochs, generator=torch.Generator().manual_seed(0)) % len(pixels)
    fresh = replace(pixels, crew=Crew())  # workers that end with this pass, so that their time is counted
    for _ in fresh.in_order(iter(order.split(BATCH))):
        pass


def processor_seconds() -> float:
    """Return the processor time of this process and of all that it started and that have ended."""
    mine, theirs = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return mine.ru_utime + mine.ru_stime + theirs.ru_utime + theirs.ru_stime


def timed(work: Callable[[], None]) -> tuple[float, float]:
    """Return the seconds ``work`` takes by the clock, start of its processes included, and of the processors."""
    clock, spent = time.perf_counter(), processor_seconds()
    work()
    return time.perf_counter() - clock, processor_seconds() - spent


def speed(folder: Path, image: int, side: int, processes: int, repeats: int) -> None:
    """Print the table of images per second."""
    print(
        f"\n{DISTINCT:,} JPEGs of {image}×{image} decoded at {side}×{side}, {EPOCHS} times over, {processes} processes,"
    )
    print(f"{repeats} turns\n")
    listing, _ = load(folder)
    table = FileTable.of(str(folder), listing.entries)
    paths = [str(folder / entry.id) for entry in listing.entries] * EPOCHS
    pixels = FilePixels(table, side, 3, processes)
    cached = replace(pixels, cache=PixelCache(folder.parent / f"cache-{image}", len(table), 3 * side * side))
    streamed(cached, 2)  # fills the cache, and brings the files into the system's memory for all three
    work: dict[str, Callable[[], None]] = {
        "bare loop": lambda: bare(paths, side, processes),
        "streaming": lambda: streamed(pixels, EPOCHS),
        "streaming, from its cache": lambda: streamed(cached, EPOCHS),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, do in work.items():
            times[name].append(timed(do))
    print(
        "| | images/s: median (lowest to highest) | beside the bare loop | processor µs per image |\n|---|---|---|---|"
    )
    for name, found in times.items():
        rates = [len(paths) / clock for clock, _ in found]
        ratio = statistics.median(loop[0] / one[0] for one, loop in zip(found, times["bare loop"], strict=True))
        cost = statistics.median(1e6 * spent / len(paths) for _, spent in found)
        print(f"| {name} | {statistics.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f}) "
              f"| {ratio:.2f} × | {cost:.0f} |", flush=True)  # fmt: skip


class SomeSteps(Supervised):
    """Stage 2 on random labelled images, as many as fill the steps, wherever their files lie."""

    def sampler(self, images: ImageSet) -> Sampler:
        """Return batches of images from all over the set."""
        labelled = (~images.unlabelled).nonzero()[:, 0]
        order = torch.randperm(len(labelled), generator=torch.Generator().manual_seed(0))
        return Merged(labelled[order[: STEPS * BATCH]], BATCH, self.seed, self.number)


def train(folder: Path, side: int, processes: int) -> None:
    """Read all, train some steps of stage 2, and compute all features: what the memory is measured of."""
    chosen = {"data.source": "folder", "data.path": str(folder), "data.size": side, "data.loader": "streaming",
              "data.known": [], "data.per_class": 0, "data.workers": processes}  # fmt: skip
    made = recipe.load("demo", chosen).recipe
    device = torch.device("cpu")
    with tempfile.TemporaryDirectory() as place:
        images, _, _ = sources.load(made, 0)
        images = prepare(images, made.data, Path(place), device, Silent())
        model = networks.build("small", 3, *channel_statistics(images.images), seed=0)
        epochs = max(-(-STEPS * BATCH // int((~images.unlabelled).sum())), 1)  # few images are gone through again
        stage = SomeSteps(settings.Supervised(epochs=epochs, batch_size=BATCH, lr=0.01, frozen=(), threads=1), 2, 0)
        run_stage(model, stage, images, Context(Path(place), Journal(Path(place) / "m.jsonl"), 0, device, Silent()))
        print(f"trained {len(images)}", flush=True)
        print(f"features {features(model, images.images).nbytes}", flush=True)


def tree(process: int) -> list[int]:
    """Return a process and all that it started."""
    try:
        tasks = Path(f"/proc/{process}/task").iterdir()
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return [process, *(one for child in children for one in tree(child))]


def memory(process: int) -> float:
    """Return the proportional set size of a process and its children in MB."""
    total = 0
    for one in tree(process):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return total * 1024 / 1e6


def peaks(folder: Path, side: int, processes: int) -> tuple[float, float, int, float]:
    """Return peak memory in MB until training is done, and to the end; bytes of features; seconds."""
    command = [sys.executable, __file__, "--train", str(folder), "--side", str(side), "--processes", str(processes)]
    start = time.perf_counter()
    highest = {"trained": 0.0, "features": 0.0}
    size = 0
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(command, stdout=said)
        while child.poll() is None:
            said.seek(0)
            lines = dict(line.split() for line in said.read().splitlines())
            phase = "features" if "trained" in lines else "trained"
            highest[phase] = max(highest[phase], memory(child.pid))
            time.sleep(SAMPLE_EVERY)
        said.seek(0)
        size = int(dict(line.split() for line in said.read().splitlines())["features"])
    return highest["trained"], max(highest.values()), size, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5000, 50_000, 200_000], help="files, for the memory")
    parser.add_argument("--out", type=Path, help="JSON file for the memory")
    parser.add_argument("--side", type=int, default=32, help="size to which images are decoded for the memory")
    parser.add_argument("--only", choices=("speed", "memory"))
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.train, arguments.side, arguments.processes)
        return
    torch.set_num_threads(1)
    print(f"{devices.describe(torch.device('cpu'))}, torch {torch.__version__}, Pillow {Image.__version__}")
    with tempfile.TemporaryDirectory() as place:
        if arguments.only != "memory":
            for image, side in ((256, 64), (64, 32)):
                write_jpegs(Path(place) / f"speed-{image}", DISTINCT, image)
                speed(Path(place) / f"speed-{image}", image, side, arguments.processes, arguments.repeats)
        if arguments.only != "speed":
            print(f"\nAll files read, {STEPS} steps of stage 2, all features; JPEGs of 64×64 at {arguments.side}\n")
            print("| files | peak MB, reading and training | peak MB, features too | of these features, MB | seconds |")
            print("|---|---|---|---|---|")
            write_jpegs(Path(place) / "distinct", DISTINCT, 64)
            found = []
            for count in arguments.sizes:
                link_jpegs(Path(place) / "distinct", Path(place) / str(count), count)
                training, end, size, took = peaks(Path(place) / str(count), arguments.side, arguments.processes)
                found.append({"files": count, "training_mb": training, "peak_mb": end, "features_mb": size / 1e6})
                print(f"| {count:,} | {training:.0f} | {end:.0f} | {size / 1e6:.0f} | {took:.0f} |", flush=True)
            if arguments.out:
                arguments.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
