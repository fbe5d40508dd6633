"""Settings for OmniGlot, chosen without its evaluation alphabets: those held out from pretraining play the new one.

`python benchmarks/omniglot_tuning.py DIR variants.json` trains ranking statistics (or another `--system`) on each
held-out background alphabet, those not held out being known, once for every variant, and prints the accuracies; k-means
stands beside them. The file maps a variant's name to its settings, such as {"long": {"joint.epochs": 60}}; pretraining
is shared by all. With {"count.new_classes": "auto", "count.probes": "random", "count.probe_share": 0} a variant counts
the alphabet's characters first, with no others for the range.
"""

import argparse
import functools
import itertools
import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from autonovel import device as devices
from autonovel import recipe, scoring
from autonovel.counting import counting
from autonovel.data import ImageSet, omniglot
from autonovel.data.groups import groups
from autonovel.data.splits import known_and_new
from autonovel.extraction import extractor
from autonovel.job import Job
from autonovel.settings import Recipe
from autonovel.storage.documents import read_json, write_json
from autonovel.studies.variants import STAGE_1, copy_stage
from autonovel.systems import run_system
from autonovel.training.display import Silent

PRETRAINED = Path("stages") / "1-prototypical"
OF = "pretrained.json"  # in the work folder: what the shared pretraining was made with
background = functools.cache(omniglot.background)  # each process reads the drawings once


def problem(settings: Recipe, data: Path, alphabet: str) -> ImageSet:
    """Return the drawings of all alphabets that pretraining sees, then those of ``alphabet`` without labels."""
    drawings = background(data, settings.data.size)
    hidden = groups(drawings.names, settings.pretrain.held_out)
    unseen = {number for members in hidden.values() for number in members}
    known = tuple(name for number, name in enumerate(drawings.names) if number not in unseen)
    new = tuple(drawings.names[number] for number in hidden[alphabet])
    kept = known_and_new(drawings, known, new)
    order = kept.unlabelled.long().sort(stable=True).indices
    return ImageSet(kept.images[order], kept.y[order], kept.ids, known, kept.truth[order], new)


def accuracy(order: tuple[argparse.Namespace, str, dict[str, Any], str, str]) -> float:
    """Return the accuracy in per cent of one system on one alphabet."""
    arguments, variant, changes, system, alphabet = order
    changed = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
    settings = recipe.load(arguments.recipe, [f"data.path={arguments.data}", *arguments.set, *changed]).recipe
    images = problem(settings, arguments.data, alphabet)
    folder = arguments.work / variant / alphabet
    copy_stage(arguments.work / PRETRAINED, folder / PRETRAINED)
    device = devices.pick(arguments.device)
    n_new = counting.wanted(settings, len(images.new_names))
    job = Job(settings, images, None, n_new, arguments.seed, device, folder, Silent(), keep_going=True)
    with devices.torch_settings(devices.precision(settings.network.precision, device)):
        if not (arguments.work / PRETRAINED / "stage.json").exists():
            extractor(job)
            copy_stage(folder / PRETRAINED, arguments.work / PRETRAINED)
        if n_new is None:
            job = replace(job, n_new=counting.taken(counting.count(job), settings.count))
        found = run_system(job, system, folder)
    scores = scoring.system_scores(images, found.embedding)
    assert scores is not None
    return 100 * scores["acc"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("variants", type=Path)
    parser.add_argument("--recipe", default="omniglot-fast")
    parser.add_argument("--system", default="rankstats", choices=("rankstats", "dtc", "kcl", "mcl"))
    parser.add_argument("--alphabet", action="append", help="only these of the alphabets held out; repeatable")
    parser.add_argument("--seed", type=int, default=10)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", default=[], help="a setting of all variants")
    parser.add_argument("--beside", type=int, default=1, help="runs at a time")
    parser.add_argument("--work", type=Path, default=Path("runs/omniglot-tuning"))
    arguments = parser.parse_args()
    settings = recipe.load(arguments.recipe, arguments.set).recipe
    held_out = settings.pretrain.held_out
    alphabets = arguments.alphabet or held_out
    if not set(alphabets) <= set(held_out):
        parser.error(f"--alphabet: of {', '.join(alphabets)} some are not held out; there are {', '.join(held_out)}")
    stage_1 = {key: value for key, value in recipe.flatten(settings).items() if key.startswith(STAGE_1)}
    made_with = {"seed": arguments.seed, "settings": stage_1}
    note = arguments.work / OF
    if note.exists() and read_json(note) != made_with:
        parser.error(
            f"{arguments.work} has pretraining of another seed or other settings ({note}); give another --work"
        )
    write_json(note, made_with)
    variants: dict[str, dict[str, Any]] = {"k-means": {}, **json.loads(arguments.variants.read_text())}
    orders = [
        (arguments, name, changes, "kmeans" if name == "k-means" else arguments.system, alphabet)
        for name, changes in variants.items()
        for alphabet in alphabets
    ]
    first = accuracy(orders[0])  # pretrains, for the others to share
    print(f"| variant | {' | '.join(alphabets)} | mean |\n|---|{'---|' * len(alphabets)}---|", flush=True)
    with ProcessPoolExecutor(arguments.beside, get_context("spawn")) as workers:
        found = itertools.chain([first], workers.map(accuracy, orders[1:]))
        for name in variants:
            row = [next(found) for _ in alphabets]
            print(f"| {name} | {' | '.join(f'{acc:.1f}' for acc in row)} | {sum(row) / len(row):.1f} |", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
