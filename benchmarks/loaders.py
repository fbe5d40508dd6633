"""All 5,000 digits through every way of loading: `python benchmarks/loaders.py` prints how far the numbers differ.

The embedded sample is written as PNGs, 0 to 4 in class folders and 5 to 9 in one without labels.  The demo's recipe is
run on them, resident, and streamed with one and with two workers, without a cache, with one of the run's own, and with
one that another run has filled; each run's weights, features, rows and loss terms are held against the resident run's.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from safetensors.torch import load_file

from autonovel import device as devices
from autonovel.data import sample

WAYS = {
    "resident": ("resident", 2, "off"),
    "resident again": ("resident", 1, "off"),
    "streaming, 1 worker": ("streaming", 1, "off"),
    "streaming, 2 workers": ("streaming", 2, "off"),
    "streaming, cache of its own": ("streaming", 2, "auto"),
    "streaming, shared cache, empty": ("streaming", 2, "shared"),
    "streaming, shared cache, full": ("streaming", 1, "shared"),
}
SHORT = {"pretrain.epochs": 1, "supervised.epochs": 1, "joint.epochs": 2}
CLOCK = ("seconds", "images_per_second")


def write_digits(root: Path, per_class: int = 500) -> int:
    """Write the sample as PNGs, with the true classes of the unlabelled ones in truth.csv; return their number."""
    source, lines = sample.load(), ["path,label"]
    for digit in range(10):
        folder = root / (str(digit) if digit < 5 else "unlabelled")
        folder.mkdir(parents=True, exist_ok=True)
        for number, row in enumerate((source.labels == digit).nonzero()[:per_class, 0].tolist()):
            name = f"{digit}-{number:04d}.png"
            Image.fromarray(source.images[row, 0].numpy()).save(folder / name)
            if digit >= 5:
                lines.append(f"unlabelled/{name},{digit}")
    (root / "truth.csv").write_text("\n".join(lines) + "\n")
    return sum(1 for _ in root.rglob("*.png"))


def run(folder: Path, images: Path, way: tuple[str, int, str], shared: Path, whole: bool, system: str) -> float:
    """Train through one way of loading; return the seconds."""
    loader, workers, cache = way
    chosen: dict[str, Any] = {} if whole else dict(SHORT)
    chosen |= {"data.source": "folder", "data.loader": loader, "data.workers": workers, "run.report": False}
    chosen |= {"count.new_classes": "5"}
    chosen |= {"data.cache": str(shared) if cache == "shared" else cache, "run.systems": [system]}
    sets = [word for key, value in chosen.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    command = [sys.executable, "-m", "autonovel", "run", "demo", "--data", str(images), "--out", str(folder)]
    start = time.perf_counter()
    subprocess.run([*command, "--device", "cpu", *sets], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def tensors_apart(one: Path, other: Path) -> float:
    """Return the largest difference between two files of tensors."""
    mine, theirs = load_file(one), load_file(other)
    assert mine.keys() == theirs.keys()
    return max(float((mine[name].double() - theirs[name].double()).abs().max()) for name in mine if mine[name].numel())


def rows_apart(one: Path, other: Path) -> tuple[int, int]:
    """Return how many rows of two discoveries differ, and of how many."""
    with one.open(newline="") as mine, other.open(newline="") as theirs:
        pairs = list(zip(csv.reader(mine), csv.reader(theirs), strict=True))
    return sum(a != b for a, b in pairs), len(pairs) - 1


def lines_apart(one: Path, other: Path) -> int:
    """Return how many epochs differ in any logged number."""
    mine, theirs = ([json.loads(line) for line in path.read_text().splitlines()] for path in (one, other))
    return sum(
        {k: v for k, v in a.items() if k not in CLOCK} != {k: v for k, v in b.items() if k not in CLOCK}
        for a, b in zip(mine, theirs, strict=True)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--whole", action="store_true", help="all epochs of the demo, not 1 + 1 + 2")
    parser.add_argument("--system", default="rankstats-incremental")
    parser.add_argument("--out", type=Path, help="JSON file for the numbers")
    arguments = parser.parse_args()
    print(f"{devices.describe(torch.device('cpu'))}, torch {torch.__version__}, Pillow {Image.__version__}")
    print(f"OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'unset')}")
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        images, first = Path(place) / "digits", Path(place) / "0"
        count = write_digits(images)
        print(f"{count:,} PNGs, demo recipe{'' if arguments.whole else f' with {SHORT}'}, {arguments.system}\n")
        print("| loaded | weights differ by | features differ by | rows that differ | epochs that differ | seconds |")
        print("|---|---|---|---|---|---|")
        for number, (name, way) in enumerate(WAYS.items()):
            folder = Path(place) / str(number)
            took = run(folder, images, way, Path(place) / "shared", arguments.whole, arguments.system)
            weights, z = (tensors_apart(first / f"{file}.safetensors", folder / f"{file}.safetensors")
                          for file in ("model", "embedding"))  # fmt: skip
            rows, of = rows_apart(first / "discovery.csv", folder / "discovery.csv")
            epochs = lines_apart(first / "metrics.jsonl", folder / "metrics.jsonl")
            found[name] = {"weights": weights, "features": z, "rows": rows, "epochs": epochs, "seconds": took}
            print(f"| {name} | {weights:g} | {z:g} | {rows} of {of:,} | {epochs} | {took:.0f} |", flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=2) + "\n")
    if any(value for one in found.values() for key, value in one.items() if key != "seconds"):
        raise SystemExit("the numbers depend on the way of loading")


if __name__ == "__main__":
    main()
