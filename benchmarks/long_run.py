"""Does anything grow in a long run?  `python benchmarks/long_run.py` trains 200 epochs of the joint stage and looks.

A few digits, written as PNGs, are trained on by ranking statistics with incremental learning, each way of loading in a
process of its own, with a checkpoint and the stage's observers after every epoch.  After every epoch the process notes
its memory, that of its workers, its open files, threads and children; lines are fitted after the first 20 epochs.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from loaders import write_digits
from streaming import memory, tree

from autonovel import device as devices
from autonovel import networks, recipe
from autonovel.data import channel_statistics, sources
from autonovel.data.prepare import prepare
from autonovel.methods.rankstats import Joint
from autonovel.storage.journal import Journal
from autonovel.training.display import Silent
from autonovel.training.loop import Context, run_stage

WAYS = {
    "resident": ("resident", "off"),
    "streaming": ("streaming", "off"),
    "streaming, cached": ("streaming", "auto"),
}
PER_CLASS, SETTLED = 40, 20
MEASURES = {"MB": "MB", "workers MB": "MB", "files": "", "threads": "", "children": ""}


class Looking(Journal):
    """A journal that notes what the process holds whenever an epoch is logged."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.seen: list[dict[str, float]] = []

    def append(self, line: dict[str, Any]) -> None:
        """Log an epoch and look around."""
        super().append(line)
        own = Path("/proc/self")
        status = dict(text.split(":", 1) for text in (own / "status").read_text().splitlines())
        self.seen.append({
            "MB": int(status["VmRSS"].split()[0]) * 1024 / 1e6,
            "workers MB": sum(memory(child) for child in tree(int(status["Pid"]))[1:]),
            "files": len(list((own / "fd").iterdir())),
            "threads": int(status["Threads"]),
            "children": len(tree(int(status["Pid"]))) - 1,
        })  # fmt: skip


def train(images: Path, loader: str, cache: str, workers: int, epochs: int) -> None:
    """Train in this process and print what was seen after each epoch."""
    chosen = {"data.source": "folder", "data.path": str(images), "data.loader": loader, "data.cache": cache,
              "data.workers": workers, "data.size": 12, "data.known": [], "joint.epochs": epochs,
              "joint.batch_size": 40, "joint.group": 10, "joint.watch": 64, "joint.threads": 1}  # fmt: skip
    made, device = recipe.load("demo", chosen).recipe, torch.device("cpu")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        train_set, _, _ = sources.load(made, 0)
        train_set = prepare(train_set, made.data, folder, device, Silent())
        model = networks.build("small", train_set.images.shape[1], *channel_statistics(train_set.images), seed=0)
        stage = Joint(replace(made.incremental, keep_embeddings_at=()), train_set.n_known, 5, 0, True)
        journal = Looking(folder / "metrics.jsonl")
        # a checkpoint after every epoch; 200 epochs on 400 images are far too many, so a collapse is let pass
        run_stage(model, stage, train_set, Context(folder, journal, 0, device, Silent(), True, 0.0))
    print(json.dumps(journal.seen))


def slope(values: list[float]) -> float:
    """Return the growth in an epoch, by a line through all but the first epochs."""
    settled = values[SETTLED:]
    return float(np.polyfit(np.arange(len(settled)), settled, 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="JSON file for what was seen after every epoch")
    parser.add_argument("--train", nargs=3, metavar=("IMAGES", "LOADER", "CACHE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        images, loader, cache = arguments.train
        train(Path(images), loader, cache, arguments.workers, arguments.epochs)
        return
    if arguments.epochs <= SETTLED + 1:
        parser.error(f"--epochs must be more than {SETTLED + 1}: lines are fitted after the first {SETTLED}")
    print(f"{devices.describe(torch.device('cpu'))}, torch {torch.__version__}")
    print(f"{arguments.epochs} epochs, {arguments.workers} workers, {10 * PER_CLASS} images\n")
    print(f"| loaded | what | after epoch {SETTLED} | at the end | highest | growth per 100 epochs |")
    print("|---|---|---|---|---|---|")
    found = {}
    with tempfile.TemporaryDirectory() as place:
        write_digits(Path(place), PER_CLASS)
        for name, way in WAYS.items():
            command = [sys.executable, __file__, "--train", place, *way, "--workers", str(arguments.workers)]
            start = time.perf_counter()
            done = subprocess.run([*command, "--epochs", str(arguments.epochs)], check=True, stdout=subprocess.PIPE)
            seen = json.loads(done.stdout.splitlines()[-1])
            found[name] = {"seconds": time.perf_counter() - start, "epochs": seen}
            for measure, unit in MEASURES.items():
                values = [epoch[measure] for epoch in seen]
                first, last, most, grown = values[SETTLED], values[-1], max(values), 100 * slope(values)
                form = ".1f" if unit else ".0f"
                print(f"| {name} | {measure} | {first:{form}} | {last:{form}} | {most:{form}} | {grown:+.2f} {unit} |",
                      flush=True)  # fmt: skip
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
