"""What `autonovel predict` costs: `python benchmarks/predict.py` prints images per second and peak memory.

Speed: rows for image files by `predict`, beside a bare loop that does nothing but bring the same files through the same
network: a DataLoader whose workers decode with Pillow (JPEGs at reduced scale, as ours), then the forward pass and the
most probable class. Both in one process, in turns, as many workers and threads each; the bare loop with several batch
sizes, and the fastest of them counts.

Memory: `autonovel predict` on 1,000 and on 50,000 files (hard links to the same JPEGs), each a process of its own whose
proportional set size, workers included, is sampled throughout.

The run is made on the spot, by the recipe `photos` with an epoch of training on generated JPEGs; `--run` and `--images`
take your own.
"""

import argparse
import io
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
from streaming import link_jpegs, memory, write_jpegs
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from autonovel import device as devices
from autonovel.data.paths import images_at
from autonovel.delivered import load_model
from autonovel.predicting.prediction import Predictor

BARE_BATCHES = (8, 32, 128)
SAMPLE_EVERY = 0.05  # seconds between two looks at the memory
QUICK = ("supervised.epochs=1", "joint.epochs=1", "joint.warmup_epochs=0", "pretrain.epochs=1")


class Decoded(Dataset[Tensor]):
    """Files as tensors, the plain way."""

    def __init__(self, paths: list[str], side: int) -> None:
        self.paths, self.side = paths, side

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> Tensor:
        with open(self.paths[number], "rb") as file, Image.open(io.BytesIO(file.read())) as picture:
            picture.draft("RGB", (self.side, self.side))
            square = min(picture.size)
            left, top = (picture.width - square) // 2, (picture.height - square) // 2
            picture = picture.convert("RGB").crop((left, top, left + square, top + square))
            pixels = np.array(picture.resize((self.side, self.side), Image.Resampling.BILINEAR))
        return torch.from_numpy(pixels).permute(2, 0, 1)


@torch.inference_mode()
def bare(model: torch.nn.Module, paths: list[str], side: int, workers: int, batch: int) -> None:
    """Bring every file through the network and keep the number of the most probable class."""
    device = next(model.parameters()).device
    answers = []
    loader = DataLoader(Decoded(paths, side), batch, num_workers=workers, pin_memory=device.type == "cuda")
    for images in loader:
        answers.append(model(images.to(device, non_blocking=True).float() / 255, "known").argmax(dim=1))
    assert len(torch.cat(answers).cpu()) == len(paths)


def predicted(predictor: Predictor, paths: list[str]) -> None:
    """Make the rows of every file."""
    assert sum(len(rows) for rows in predictor.rows(iter(paths))) == len(paths)


def timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def speed(run: Path, images: Path, count: int, workers: int, repeats: int, device: str) -> None:
    """Print the table of images per second."""
    predictor = Predictor(run, device)
    predictor.pixels = replace(predictor.pixels, workers=workers)
    model = load_model(run).to(predictor.device)
    files = list(images_at([str(images)]))
    paths = [files[number % len(files)] for number in range(count)]
    side = predictor.pixels.side
    print(
        f"\n{count:,} files at {side}×{side}, {workers} workers, {torch.get_num_threads()} threads, {repeats} turns\n"
    )
    work: dict[str, Callable[[], None]] = {"predict": lambda: predicted(predictor, paths)}
    for size in BARE_BATCHES:
        work[f"bare loop, batches of {size}"] = lambda size=size: bare(model, paths, side, workers, size)  # type: ignore[misc]
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, do in work.items():
            times[name].append(timed(do))
    print("| | images/s: median (lowest to highest) |\n|---|---|")
    for name, found in times.items():
        rates = [count / one for one in found]
        print(f"| {name} | {statistics.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f}) |")
    fastest = [min(loops) for loops in zip(*(times[name] for name in work if name != "predict"), strict=True)]
    ratio = statistics.median(loop / own for own, loop in zip(times["predict"], fastest, strict=True))
    print(f"\npredict / fastest bare loop of its turn: {ratio:.2f} × (median of {repeats})", flush=True)


def autonovel(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "autonovel", *map(str, arguments)]


def trained(folder: Path, recipe: str, images: Path, *settings: str) -> Path:
    """Return a finished run, made in a minute."""
    sets = [word for setting in (*QUICK, *settings) for word in ("--set", setting)]
    command = autonovel("run", recipe, "--data", images, "--new-classes", 2, "--out", folder, "--keep-going", *sets)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


def peak(run: Path, images: Path) -> tuple[float, float]:
    """Return the peak memory of `predict` in MB, and its seconds."""
    highest, start = 0.0, time.perf_counter()
    command = autonovel("predict", run, images)
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while child.poll() is None:
        highest = max(highest, memory(child.pid))
        time.sleep(SAMPLE_EVERY)
    assert child.returncode == 0
    return highest, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="a finished run; default: made on the spot")
    parser.add_argument("--images", type=Path, help="folder of images; default: generated JPEGs of 256×256")
    parser.add_argument("--count", type=int, default=600, help="files, repeated if there are fewer")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--large", type=int, default=50_000, help="files of the larger set")
    parser.add_argument("--only", choices=("speed", "memory"))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"{devices.describe(devices.pick(arguments.device))}, torch {torch.__version__}, Pillow {Image.__version__}")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        if arguments.only != "memory":
            images = arguments.images or place / "photos"
            if not arguments.images:
                write_jpegs(images, 400, 256)
            run = arguments.run or trained(place / "run", "photos", images)
            speed(run, images, arguments.count, arguments.workers, arguments.repeats, arguments.device)
        if arguments.only != "speed":
            write_jpegs(place / "small", 1000, 64)
            link_jpegs(place / "small", place / "large", arguments.large)
            run = trained(place / "small-run", "demo", place / "small", "data.source=folder", "data.size=32")
            print("\nJPEGs of 64×64 at 32×32, small network\n\n| files | peak MB | seconds |\n|---|---|---|")
            for folder, count in (("small", 1000), ("large", arguments.large)):
                most, took = peak(run, place / folder)
                print(f"| {count:,} | {most:.0f} | {took:.0f} |", flush=True)


if __name__ == "__main__":
    main()
