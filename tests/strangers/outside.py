"""Every reader of data from outside, each with whole documents to begin from and a function that reads one.

``read`` takes the bytes of a document, puts them where the reader looks for them, and reads to the end.  It may raise
an error of our own type and nothing else.
"""

import gzip
import io
import pickle
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from odd_files import GOOD, colour, encoded
from runs import TINY


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
    from outside_runs import model_parsers, run_parsers
    from requests_outside import request_parsers

    made = [*_settings(place), *_tables(place), *_archives(place), *_images(place)]
    return [*made, *run_parsers(place), *model_parsers(place), *request_parsers(place)]


def placed(path: Path, read: Callable[[], object]) -> Callable[[bytes], object]:
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
    extending = b'extends = "cifar10-fast"\ndepartures = ["larger steps [joint.lr]"]\n[joint]\nlr = 0.3  # ours\n'
    yield Parser(
        "recipe (TOML)", "lines", [TINY.read_bytes(), extending, *packaged],
        placed(path, partial(recipe.load, str(path))),
    )  # fmt: skip
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
    yield Parser("table (CSV)", "lines", seeds, placed(path, partial(of_table, path)))
    parquet = place / "t" / "table.parquet"
    yield Parser("table (Parquet)", "bytes", _parquet_seeds(), placed(parquet, partial(of_table, parquet)))
    truth = place / "truth" / "truth.csv"
    for name in ("x.png", "cat/c.png", "dog/d.png"):
        (truth.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (truth.parent / name).write_bytes(encoded(colour(5), "PNG"))
    yield Parser(
        "truth.csv", "lines", [b"path,label\nx.png,fox\ncat/c.png,cat\n", b"label,path\r\nfox,x.png\r\n"],
        placed(truth, lambda: listing.problem(*folder.load(truth.parent), small, 0)),
    )  # fmt: skip
    labels = place / "labels" / "labels.csv"
    images, _, _ = listing.problem(*folder.load(truth.parent), small, 0)
    given = b"id,label,status\nx.png,fox,\ncat/c.png,,junk\ndog/d.png,'=dog,\n"
    yield Parser("labels.csv", "lines", [given], placed(labels, lambda: GivenLabels.read(labels).over(images, None, 0)))
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
    read = placed(folder / "test_batch", lambda: cifar.load(place / "cifar", "cifar10", "test"))
    yield Parser("CIFAR batch (pickle)", "bytes", pickled, read)

    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, content in (("test_batch", pickled[1]), ("batches.meta", meta)):
            about = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    archive = place / "packed" / "cifar-10-python.tar.gz"
    loading = placed(archive, lambda: cifar.load(archive.parent, "cifar10", "test"))
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
    yield Parser("SVHN (.mat)", "bytes", mats, placed(path, partial(svhn.load, path.parent, "test")))

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped:
        for number in range(omniglot.OMNIGLOT.drawings):
            drawing = encoded(colour(number, 105, "1"), "PNG")
            zipped.writestr(f"images_background/Latin/character01/0001_{number:02d}.png", drawing)
    path = place / "omniglot" / "images_background.zip"
    yield Parser(
        "Omniglot (zip)", "bytes", [file.getvalue()],
        placed(path, partial(omniglot.characters, path.parent, "background", "", 1, 28)),
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

    yield Parser("shards (tar)", "bytes", [file.getvalue()], placed(path, of_shards))


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
