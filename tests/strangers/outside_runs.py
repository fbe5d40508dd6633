"""Readers of what is in a run folder, and of models, with whole documents to begin from."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import torch
from outside import Parser, placed
from torch import nn

from finished import finished_run, move_images
from odd_files import colour, encoded

ROWS = 24  # of the run whose documents are changed: enough for every class, few enough to read a thousand times


def small_run(place: Path) -> Path:
    """Write a finished run of few images, with every document that a run may have."""
    run = finished_run(place / "run")
    with (run / "discovery.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    chosen = [*range(0, len(rows), len(rows) // ROWS)][:ROWS]
    with (run / "discovery.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows([rows[number] | {"path": f"{number}.png"} for number in chosen])
        writer.writerow(dict.fromkeys(rows[0], "") | {"id": "bad.png", "path": "bad.png", "status": "unreadable: x"})
    from autonovel.embedding import Embedding

    (place / "images").mkdir()
    for number in chosen:
        (place / "images" / f"{number}.png").write_bytes(encoded(colour(number), "PNG"))
    move_images(run, place / "images")
    found = Embedding.load(run / "embedding.safetensors")
    Embedding(found.z[chosen].clone(), found.p_new[chosen].clone(), found.p_known[chosen].clone()).save(
        run / "embedding.safetensors"
    )
    lines = [{"stage": "3-joint", "epoch": n, "loss/bce": 0.5, "pairs/positive": 0.1, "seconds": 1.0} for n in range(3)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


def run_parsers(place: Path) -> Iterator[Parser]:
    from rich.console import Console

    from autonovel import discovery, open_run, recipe
    from autonovel.commands.look import print_results
    from autonovel.editing import edited
    from autonovel.evaluation import MATCHED_EACH
    from autonovel.figures import runs as figures
    from autonovel.report import curves
    from autonovel.report.facts import facts
    from autonovel.report.subject import corrected
    from autonovel.review.view import View
    from autonovel.storage.documents import read_json
    from autonovel.tables import table

    run = small_run(place)
    opened = open_run(run)
    opened.rename("new-1", "seven")
    opened.move([opened.found.ids[0]], "new-2")
    opened.junk([opened.found.ids[1]])
    opened.undo()

    def whole() -> object:
        """Read a run as the review page, the exports, the report and predict do."""
        found = open_run(run)
        view = View(found)
        view.state()
        view.images_of(-1)
        discovery.read(run)
        subject, _ = corrected(found)
        return found.rows(), found.edits(), facts(run, subject, read_json(run / "results.json"))

    def all_of_run_json() -> object:
        settings = recipe.restore(edited.EditedRun(run).facts["recipe"])
        return whole(), settings, figures.studies(figures.collect([run]))

    def results() -> object:
        with redirect_stdout(io.StringIO()):
            print_results(Console(file=io.StringIO()), table.collect([run])[0], run)
        table.markdown(table.collect([run]))
        return whole()

    def metrics() -> object:
        return curves.training(run, "rankstats"), figures.collect([run])[0].joint_epochs(
            figures.collect([run])[0].primary
        )

    scored = json.loads((run / "results.json").read_text())
    scores = {"acc": 0.5, "nmi": 0.4, "ari": 0.3}
    joint = {"split": "test", "protocols": {MATCHED_EACH: {"old": 0.5, "new": 0.5, "all": 0.5}}}
    name = next(iter(scored["systems"]))
    scored["seconds"] |= {name: 1.0}
    full = scored | {"systems": {name: scores}, "incremental": joint, "joint_classifiers": {name: joint}}
    for file, kind, read, more in (
        ("run.json", "json", all_of_run_json, []),
        ("results.json", "json", results, [json.dumps(full).encode()]),
        ("metrics.jsonl", "jsonl", metrics, []),
        ("discovery.csv", "lines", whole, []),
        ("classes.json", "json", whole, []),
        ("edits.jsonl", "jsonl", whole, []),
    ):
        yield Parser(file, kind, [(run / file).read_bytes(), *more], _restored(run / file, read))
    refined = json.dumps({"run": "/runs/before", "edits": 3, "confirmed": ["4"], "made_known": ["3", "4"]})
    yield Parser("refined.json", "json", [refined.encode()], _restored(run / "refined.json", whole))


def _restored(path: Path, read: Callable[[], object]) -> Callable[[bytes], object]:
    """Return a reader of the document at ``path``, which is put back afterwards."""
    before = path.read_bytes() if path.exists() else None

    def reading(content: bytes) -> object:
        path.write_bytes(content)
        try:
            return read()
        finally:
            if before is None:
                path.unlink()
            else:
                path.write_bytes(before)

    return reading


def model_parsers(place: Path) -> Iterator[Parser]:
    from safetensors.torch import save as save_tensors

    from autonovel import hub
    from autonovel.agreement import load_assignments
    from autonovel.data import survey
    from autonovel.delivered import load_model
    from autonovel.embedding import Embedding
    from autonovel.kept import kept_features, load_truth
    from autonovel.networks import hf
    from autonovel.training import checkpoint

    run = place / "run"  # left by run_parsers
    model = run / "model.safetensors"
    yield Parser("model.safetensors", "bytes", [model.read_bytes()], _restored(model, partial(load_model, run)))
    path = run / "embedding.safetensors"
    yield Parser("embedding.safetensors", "bytes", [path.read_bytes()], _restored(path, partial(Embedding.load, path)))
    path = run / "truth.safetensors"
    about = {"names": '["a", "b"]', "n_known": "1"}
    seeds = [save_tensors({"truth": torch.tensor([0, 1, 1], dtype=torch.int32)}, about)]
    yield Parser("truth.safetensors", "bytes", seeds, placed(path, partial(load_truth, run)))
    stage = place / "stage"
    path = stage / "embedding-epoch-003.safetensors"
    seeds = [save_tensors({"z": torch.rand(3, 2).half(), "rows": torch.arange(3).int()})]
    yield Parser("kept features", "bytes", seeds, placed(path, partial(kept_features, stage)))
    path = stage / "assignments.safetensors"
    seeds = [save_tensors({"cluster": torch.arange(3).int()})]
    yield Parser("assignments.safetensors", "bytes", seeds, placed(path, partial(load_assignments, stage)))

    network = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    network(torch.rand(4, 3)).sum().backward()
    optimiser.step()
    path = stage / "checkpoint.safetensors"
    checkpoint.save(path, network, optimiser, 3, 1.5, {"averages": torch.ones(2)})
    load = placed(path, partial(checkpoint.load, path, network, optimiser, {}))
    yield Parser("checkpoint.safetensors", "bytes", [path.read_bytes()], load)

    folder = place / "hf"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(save_tensors({"x": torch.ones(1)}))
    config = {"model_type": "vit", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
              "intermediate_size": 8, "image_size": 16, "patch_size": 8, "num_channels": 3}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    scaling = {"do_normalize": True, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.2, 0.2, 0.2], "rescale_factor": 0.1}

    def of_hub() -> object:
        found = hub.find(str(folder))
        return found.normalisation(), hub.own_side(found.config), hub.fitting(found.config, 100)

    def architecture() -> object:
        found = hub.find(str(folder))
        hub.check_side(str(folder), found.config, 16)
        hf.check_size(str(folder), found.config, 16, 16)
        return of_hub()

    path = folder / "config.json"
    yield Parser("config.json of transformers", "json", [path.read_bytes()], _restored(path, architecture))
    path = folder / "preprocessor_config.json"
    yield Parser("preprocessor_config.json", "json", [json.dumps(scaling).encode()], _restored(path, of_hub))
    path = place / "survey.json"
    kept = {"format": survey.FORMAT, "broken": {"1": "x"}, "counts": [[1] * 256], "sums": "ab" * survey.SUM}
    path.write_text(json.dumps(kept))
    assert survey._load(path, 2, 1) is not None
    yield Parser("survey (cache)", "json", [json.dumps(kept).encode()], placed(path, partial(survey._load, path, 2, 1)))
