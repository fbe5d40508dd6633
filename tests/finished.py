"""Finished runs in a second: the real files of a run, by an untrained network with its heads."""

import csv
import json
from pathlib import Path

import torch
from torch import nn

from autonovel import discovery, networks, recipe, record, scoring
from autonovel.data import channel_statistics, sources
from autonovel.embedding import embed
from autonovel.storage.documents import write_json
from autonovel.training import checkpoint
from runs import TINY


def finished_run(folder: Path, *settings: str, joint: bool = True) -> Path:
    """Write a finished run on the sample: 5 known digits, 5 new classes, 40 images of each digit."""
    loaded = recipe.load(str(TINY), settings)
    train, _, n_new = sources.load(loaded.recipe, 0)
    seen = train.resized(loaded.recipe.data.size)
    folder.mkdir(parents=True)
    record.begin(folder, loaded.recipe, 0, torch.device("cpu"), train, n_new, ["test"], {})
    mean, std = channel_statistics(seen.images)
    model = networks.build(loaded.recipe.network.name, seen.images.shape[1], mean, std, 0)
    torch.manual_seed(0)
    for name, n in (("known", train.n_known + n_new * joint), ("new", n_new)):
        model.heads[name] = nn.Linear(model.trunk.n_features, n)
        nn.init.normal_(model.heads[name].weight, std=2.0)
    found = embed(model.eval(), seen.images)
    checkpoint.save_model(folder / "model.safetensors", model)
    found.save(folder / "embedding.safetensors")
    spread = torch.arange(len(train)) % n_new  # an untrained network would put nearly all images into one class
    p_new = torch.nn.functional.one_hot(spread, n_new) * 0.6 + found.p_new * 0.4
    discovery.discover(train, type(found)(found.z, p_new, found.p_known)).save(folder)
    nothing = {"scores": None, "seconds": 0.0, "incremental": None}
    records = {loaded.recipe.run.systems[0]: nothing}
    write_json(folder / "results.json", scoring.results(folder, records, {"total": 0.0}))
    record.finish(folder, torch.device("cpu"))
    return folder


def with_files(run: Path, images: Path) -> Path:
    """Let the images of a run be files under ``images``, named as a person might have named them."""
    from autonovel.editing.edited import EditedRun
    from autonovel.run_images import RunImages

    pictures = RunImages(EditedRun(run))
    with (run / "discovery.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows):
        row["path"] = f"part {number % 3}/{'=' if number % 50 == 0 else ''}img{number // 3}.png"
        (images / row["path"]).parent.mkdir(parents=True, exist_ok=True)
        pictures.picture(number).save(images / row["path"])
    with (run / "discovery.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return move_images(run, images)


def move_images(run: Path, images: Path) -> Path:
    """Let the run know its images at another place."""
    facts = json.loads((run / "run.json").read_text())
    facts["recipe"]["data.path"] = str(images)
    write_json(run / "run.json", facts)
    return run


def rows_of(path: Path) -> dict[str, dict[str, str]]:
    """Return a CSV by the ids of its rows."""
    with path.open(newline="", encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def as_known(run: Path, name: str, known: str, most: int = 1000) -> Path:
    """Let (``most``) images of the class ``name`` look like the known class ``known``, and no other image like any."""
    found, left = rows_of(run / "discovery.csv"), most
    for row in found.values():
        like = row["class_name"] == name and left > 0
        left -= like
        row |= {"looks_known": "0.9" if like else "0.1", "nearest_known": known if like else row["nearest_known"]}
    with (run / "discovery.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(next(iter(found.values()))), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found.values())
    return run
