"""Every reader of data from outside, each with whole documents to begin from and a function that reads one.

``read`` takes the bytes of a document, puts them where the reader looks for them, and reads to the end.  It may raise
an error of our own type and nothing else.
"""

import csv
import gzip
import io
import json
import pickle
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn

from finished import finished_run, move_images
from odd_files import GOOD, colour, encoded
from runs import TINY

ROWS = 24  # of the run whose documents are changed: enough for every class, few enough to read a thousand times


@dataclass(frozen=True)
class Parser:
    """One reader.

    Attributes:
        name: what it reads.
        kind: how documents are changed: ``bytes``, ``lines``, ``json`` or ``jsonl``.
        seeds: whole documents.
        read: reads the document it is given.
    """

    name: str
    kind: str
    seeds: list[bytes]
    read: Callable[[bytes], object]


def parsers(place: Path) -> list[Parser]:
    """Return all of them; ``place`` is an empty folder for what they read."""
    made = [*_settings(place), *_tables(place), *_archives(place), *_images(place), *_of_runs(place), *_models(place)]
    from requests_outside import request_parsers

    return made + request_parsers(place)


def _placed(path: Path, read: Callable[[], object]) -> Callable[[bytes], object]:
    """Return a reader that finds the document at ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)

    def reading(content: bytes) -> object:
        path.write_bytes(content)
        return read()

    return reading


def _settings(place: Path) -> Iterator[Parser]:
    from importlib import resources

    from autonovel import recipe

    path = place / "recipe.toml"
    packaged = [(resources.files("autonovel") / "recipes" / f"{name}.toml").read_bytes() for name in recipe.names()]
    yield Parser(
        "recipe (TOML)", "lines", [TINY.read_bytes(), *packaged], _placed(path, partial(recipe.load, str(path)))
    )
    texts = ["joint.lr=0.05", 'data.known=["0", "1"]', "preset=paper", "pretrain.decay_at=1,2", "run.seeds=1",
             "data.size=8", "joint.k=5", "data.path=~/x", "supervised.epochs=1_0", "joint.lr=1979-05-27"]  # fmt: skip
    yield Parser(
        "--set", "bytes", [text.encode() for text in texts],
        lambda content: recipe.load("demo", [content.decode(errors="surrogateescape")]),
    )  # fmt: skip


def _tables(place: Path) -> Iterator[Parser]:
    from autonovel.data import folder, listing, table
    from autonovel.data.given_labels import GivenLabels
    from autonovel.data.paths import listed
    from autonovel.settings import Data

    small = Data(size=8, path=str(place / "t"))
    for name in ("a.png", "b.png", "cat/c.png", "dog/d.png", "ü.png"):
        (place / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "t" / name).write_bytes(encoded(colour(len(name)), "PNG"))

    def of_table(path: Path) -> object:
        return listing.problem(*table.load(path), small, 0)

    rows = b"path,label,split\na.png,cat,\nb.png,,\ncat/c.png,dog,test\n\xc3\xbc.png,dog,train\n"
    seeds = [
        rows,
        b"\xef\xbb\xbf" + rows.replace(b",", b";"),
        rows.decode().encode("utf-16"),
        rows.replace(b"\n", b"\r\n"),
    ]
    path = place / "t" / "table.csv"
    yield Parser("table (CSV)", "lines", seeds, _placed(path, partial(of_table, path)))
    parquet = place / "t" / "table.parquet"
    yield Parser("table (Parquet)", "bytes", _parquet_seeds(), _placed(parquet, partial(of_table, parquet)))
    truth = place / "truth" / "truth.csv"
    for name in ("x.png", "cat/c.png", "dog/d.png"):
        (truth.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (truth.parent / name).write_bytes(encoded(colour(5), "PNG"))
    yield Parser(
        "truth.csv", "lines", [b"path,label\nx.png,fox\ncat/c.png,cat\n", b"label,path\r\nfox,x.png\r\n"],
        _placed(truth, lambda: listing.problem(*folder.load(truth.parent), small, 0)),
    )  # fmt: skip
    labels = place / "labels" / "labels.csv"
    images, _, _ = listing.problem(*folder.load(truth.parent), small, 0)
    given = b"id,label,status\nx.png,fox,\ncat/c.png,,junk\ndog/d.png,'=dog,\n"
    yield Parser("labels.csv", "lines", [given], _placed(labels, lambda: GivenLabels.read(labels).over(images, None)))
    lists = [b"a.png\nb.png\r\n\n", b"a.png\0b\nc.png\0", b"\xef\xbb\xbfx\n"]
    yield Parser("list of paths", "lines", lists, lambda content: list(listed(io.BytesIO(content))))


def _parquet_seeds() -> list[bytes]:
    import pyarrow
    from pyarrow import parquet

    columns = {"path": ["a.png", "b.png"], "label": ["cat", None], "split": ["", None]}
    numbers = {"file_name": ["a.png", "b.png"], "label": [1.0, None], "more": [b"xy", b""]}
    out = []
    for content, options in ((columns, {}), (numbers, {"compression": "none"}), (columns, {"compression": "zstd"})):
        file = io.BytesIO()
        parquet.write_table(pyarrow.table(content), file, **options)
        out.append(file.getvalue())
    return out


def _archives(place: Path) -> Iterator[Parser]:
    from scipy.io import savemat

    from autonovel.data import cifar, omniglot, shards, svhn

    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (2, 3072), dtype=np.uint8)
    batch = {"data": pixels, "labels": [0, 9], "batch_label": b"testing batch 1 of 1"}
    meta = pickle.dumps({"label_names": [f"class {number}" for number in range(10)]}, protocol=2)
    folder = place / "cifar" / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    (folder / "batches.meta").write_bytes(meta)
    pickled = [pickle.dumps(batch, protocol=number) for number in (0, 2, 3, 4)]
    read = _placed(folder / "test_batch", lambda: cifar.load(place / "cifar", "cifar10", "test"))
    yield Parser("CIFAR batch (pickle)", "bytes", pickled, read)

    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, content in (("test_batch", pickled[1]), ("batches.meta", meta)):
            about = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    archive = place / "packed" / "cifar-10-python.tar.gz"
    loading = _placed(archive, lambda: cifar.load(archive.parent, "cifar10", "test"))
    tar_seeds = [file.getvalue()]
    yield Parser("CIFAR archive (tar.gz)", "bytes", [gzip.compress(file.getvalue(), 1)], loading)
    yield Parser("CIFAR archive (its tar)", "bytes", tar_seeds, lambda content: loading(gzip.compress(content, 1)))

    mats = []
    for options in ({"do_compression": True}, {"do_compression": False}, {"format": "4"}):
        file = io.BytesIO()
        images = rng.integers(0, 256, (32, 32, 3, 2), dtype=np.uint8)
        content = {"X": images, "y": np.array([[1], [10]], np.uint8)}
        savemat(file, content if "format" not in options else {"y": content["y"]}, **options)
        mats.append(file.getvalue())
    path = place / "svhn" / "test_32x32.mat"
    yield Parser("SVHN (.mat)", "bytes", mats, _placed(path, partial(svhn.load, path.parent, "test")))

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped:
        for number in range(omniglot.OMNIGLOT.drawings):
            drawing = encoded(colour(number, 105, "1"), "PNG")
            zipped.writestr(f"images_background/Latin/character01/0001_{number:02d}.png", drawing)
    path = place / "omniglot" / "images_background.zip"
    yield Parser(
        "Omniglot (zip)", "bytes", [file.getvalue()],
        _placed(path, partial(omniglot.characters, path.parent, "background", "", 1, 28)),
    )  # fmt: skip

    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, content in (
            ("1.jpg", encoded(colour(1), "JPEG")),
            ("1.cls", b"cat"),
            ("2.png", encoded(colour(2), "PNG")),
        ):
            about = tarfile.TarInfo(name)
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    path = place / "shards" / "a.tar"

    def of_shards() -> object:
        from autonovel.data import listing
        from autonovel.settings import Data

        train, test = shards.load(str(place / "shards"), "off")
        return listing.problem(train, test, Data(size=8, path=str(place / "shards")), 0)

    yield Parser("shards (tar)", "bytes", [file.getvalue()], _placed(path, of_shards))


def _images(place: Path) -> Iterator[Parser]:
    from autonovel.data.decode import UnreadableError, decode, quiet
    from autonovel.data.headers import read_header
    from autonovel.errors import InputError

    def read(content: bytes) -> object:
        try:
            with quiet():
                read_header(io.BytesIO(content))
                return decode(content, 16, 3), decode(content, 16, 1)
        except UnreadableError as error:  # its sentence becomes the status of a row
            assert str(error)
            raise InputError(str(error)) from error

    for kind, endings in (("JPEG", (".jpg", ".jpeg", ".mpo", ".JPG")), ("PNG", (".png",)), ("TIFF", (".tif", ".tiff")),
                          ("WebP, BMP and GIF", (".webp", ".bmp", ".gif"))):  # fmt: skip
        seeds = [make(number) for number, (name, make) in enumerate(GOOD.items()) if name.endswith(endings)]
        yield Parser(f"images: {kind}", "bytes", seeds, read)


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


def _of_runs(place: Path) -> Iterator[Parser]:
    from rich.console import Console

    from autonovel import discovery, edited, open_run, recipe, table
    from autonovel.evaluation import MATCHED_EACH
    from autonovel.figures import runs as figures
    from autonovel.look_commands import print_results
    from autonovel.report import curves
    from autonovel.report.facts import facts
    from autonovel.report.subject import corrected
    from autonovel.review.view import View
    from autonovel.run_folder import read_json

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
            print_results(Console(file=io.StringIO()), table.collect([run])[0])
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


def _models(place: Path) -> Iterator[Parser]:
    from safetensors.torch import save as save_tensors

    from autonovel import hub
    from autonovel.agreement import load_assignments
    from autonovel.data import survey
    from autonovel.delivered import load_model
    from autonovel.embedding import Embedding
    from autonovel.kept import kept_features, load_truth
    from autonovel.networks import hf
    from autonovel.training import checkpoint

    run = place / "run"  # left by _of_runs
    model = run / "model.safetensors"
    yield Parser("model.safetensors", "bytes", [model.read_bytes()], _restored(model, partial(load_model, run)))
    path = run / "embedding.safetensors"
    yield Parser("embedding.safetensors", "bytes", [path.read_bytes()], _restored(path, partial(Embedding.load, path)))
    path = run / "truth.safetensors"
    about = {"names": '["a", "b"]', "n_known": "1"}
    seeds = [save_tensors({"truth": torch.tensor([0, 1, 1], dtype=torch.int32)}, about)]
    yield Parser("truth.safetensors", "bytes", seeds, _placed(path, partial(load_truth, run)))
    stage = place / "stage"
    path = stage / "embedding-epoch-003.safetensors"
    seeds = [save_tensors({"z": torch.rand(3, 2).half(), "rows": torch.arange(3).int()})]
    yield Parser("kept features", "bytes", seeds, _placed(path, partial(kept_features, stage)))
    path = stage / "assignments.safetensors"
    seeds = [save_tensors({"cluster": torch.arange(3).int()})]
    yield Parser("assignments.safetensors", "bytes", seeds, _placed(path, partial(load_assignments, stage)))

    network = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    network(torch.rand(4, 3)).sum().backward()
    optimiser.step()
    path = stage / "checkpoint.safetensors"
    checkpoint.save(path, network, optimiser, 3, 1.5, {"averages": torch.ones(2)})
    load = _placed(path, partial(checkpoint.load, path, network, optimiser, {}))
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
    kept = {"format": 1, "broken": {"1": "x"}, "counts": [[1] * 256], "fingerprint": "ab"}
    yield Parser("survey (cache)", "json", [json.dumps(kept).encode()], _placed(path, partial(survey._load, path)))
