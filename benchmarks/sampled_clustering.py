"""k-means and the count on samples of embeddings, as a run over very many images would do them.

`python benchmarks/sampled_clustering.py benchmarks/unit-costs/NAME.json` times both on this machine, on as many
embeddings as the product takes at most, and adds them to the file that benchmarks/imagenet.py wrote there, for
benchmarks/scale.py. The embeddings are those of benchmarks/kmeans.py: rectified random projections of overlapping
classes.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from kmeans import features

from autonovel import device as devices
from autonovel.clustering.count import Points, estimate
from autonovel.methods.kmeans import MOST_ROWS, centres
from autonovel.recipe import load

NEW, WIDTH = 30, 512  # as ImageNet's subsets and ResNet-18


def seconds(act: Callable[[], Any]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("costs", type=Path, help="a file that benchmarks/imagenet.py wrote on this machine")
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    written, load_average = json.loads(arguments.costs.read_text()), os.getloadavg()[0]
    device = devices.pick(arguments.device)
    if written["device"] != devices.describe(device):
        parser.error(f"{arguments.costs} is of {written['device']}, and this machine has {devices.describe(device)}")
    settings = replace(load("imagenet").recipe.count, halves=0)
    x = features(MOST_ROWS, WIDTH, NEW)
    found = {
        "kmeans_rows": MOST_ROWS,
        "kmeans_s": seconds(lambda: centres(x, NEW, 0)),
        "count_rows": settings.images,
        "count_s": seconds(lambda: estimate(Points.unlabelled(x[: settings.images].to(device)), settings, 0)),
        "load_average": load_average,
        "threads": torch.get_num_threads(),
    }
    print(json.dumps(found))
    written["figures"]["clustering"] = found
    arguments.costs.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
