"""Runs of one recipe on different images of a person's own are no seeds of one experiment."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from autonovel.commands.training import run_recipe
from autonovel.data import ImageSet, sources
from autonovel.data.prepare import prepare_both
from autonovel.errors import UsageError
from autonovel.figures.runs import collect as runs_of
from autonovel.figures.runs import studies
from autonovel.manner import Manner
from autonovel.recipe import flatten, load
from autonovel.sameness import digest_of, digest_of_source
from autonovel.settings import Recipe
from autonovel.storage.documents import read_json, write_json
from autonovel.tables import table
from autonovel.training.display import Silent
from image_files import write_digits
from runs import TINY

OWN = {"data.source": "folder", "data.known": [], "data.per_class": 0, "run.systems": ["kmeans"], "run.report": False}
QUICK = {"pretrain.epochs": 1, "supervised.epochs": 1, "count.new_classes": "5"}


def result(seed: int, images: str | None, changed: dict[str, Any] | None = None, name: str = "mine") -> dict[str, Any]:
    """Return results of a recipe of somebody's own; those without a checksum are of an earlier version."""
    settings = flatten(load(name if name == "folder" else str(TINY), OWN | (changed or {})).recipe)
    made = {
        "recipe": name, "seed": seed, "systems": {"kmeans": {"acc": 0.5 + seed / 10, "nmi": 0.5, "ari": 0.5}},
        "seconds": {"total": 1.0}, "changed": changed or {}, "settings": settings,
    }  # fmt: skip
    return made | ({"source_digest": images * 16} if images else {})


def rows_of(folder: Path, results: Iterable[dict[str, Any]]) -> list[tuple[str, tuple[int, ...]]]:
    """Return name and seeds of the rows of a table."""
    for number, one in enumerate(results):
        write_json(folder / str(number) / "results.json", one)
    return [(row.recipe, row.seeds) for row in table.rows(table.collect([folder]))]


K = {"supervised.lr": 0.01}


@pytest.mark.parametrize(
    ("results", "rows"),
    [
        ([result(0, "ab"), result(1, "ab")], [("mine", (0, 1))]),
        ([result(0, "ab"), result(1, "cd")], [("mine images=abababab", (0,)), ("mine images=cdcdcdcd", (1,))]),
        ([result(0, "ab"), result(0, "cd")], [("mine images=abababab", (0,)), ("mine images=cdcdcdcd", (0,))]),
        ([result(0, None), result(1, None)], [("mine", (0, 1))]),
        ([result(0, None), result(1, "cd")], [("mine", (0,)), ("mine images=cdcdcdcd", (1,))]),
        ([result(0, "ab"), result(0, "ab", K)], [("mine", (0,)), ("mine supervised.lr=0.01", (0,))]),
        (
            [result(0, "ab"), result(0, "cd", K)],
            [("mine images=abababab", (0,)), ("mine images=cdcdcdcd supervised.lr=0.01", (0,))],
        ),
        # another choice of images has another checksum, and a name that says so
        (
            [result(0, "ab"), result(0, "cd", {"data.per_class": 9})],
            [("mine", (0,)), ("mine data.per_class=9", (0,))],
        ),
        (
            [result(0, "ab", {}, "folder"), result(1, "cd", {}, "folder")],
            [("folder images=abababab", (0,)), ("folder images=cdcdcdcd", (1,))],
        ),
    ],
)
def test_rows_are_told_apart_by_the_checksum_of_their_images(
    tmp_path: Path, results: list[dict[str, Any]], rows: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert rows_of(tmp_path, results) == rows


def test_the_table_says_what_images_stands_for() -> None:
    both, one = ([result(0, "ab"), result(1, images)] for images in ("cd", "ab"))
    assert "first digits of their checksum" in table.markdown(table.told_apart_by_images(both))
    assert "first digits of their checksum" not in table.markdown(table.told_apart_by_images(one))


@pytest.mark.parametrize(
    ("images", "told"),
    [
        ("ab", r"seed 0 of mine is there more than once on the same images \(checksum abababab\), perhaps under"),
        (
            None,
            r"more than once, perhaps on other images \(results of earlier versions hold no checksum of them\), perh",
        ),
    ],
)
def test_a_seed_that_is_there_twice_is_told_with_its_images(images: str | None, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        table.rows([result(0, images), result(0, images), result(1, "cd")])


def test_runs_are_of_their_images_in_table_and_figures(tmp_path: Path) -> None:
    write_json(tmp_path / "seed-0.json", result(0, "ab"))
    mine = tmp_path / "mine.toml"
    changes = "\n".join(f"{key} = {value!r}".replace("False", "false") for key, value in (OWN | QUICK).items())
    mine.write_text(f'extends = "{TINY}"\n{changes}\n')
    folders = [write_digits(tmp_path / name, count) for name, count in (("one", 20), ("other", 16))]
    runs = tmp_path / "runs"
    for seed, folder in ((0, folders[0]), (1, folders[0]), (0, folders[1])):
        place = runs / f"{folder.name}-{seed}"
        run_recipe(str(mine), place, seed, [f"data.path={folder}"], Manner(device="cpu", keep_going=True))
    one, again, other = (
        read_json(runs / name / "results.json")["source_digest"][:8] for name in ("one-0", "one-1", "other-0")
    )
    assert one == again != other
    found = {row.recipe: row.seeds for row in table.rows(table.collect([runs]))}
    assert found == {f"mine images={one}": (0, 1), f"mine images={other}": (0,)}
    drawn = {study.label: [run.seed for run in study.runs] for study in studies(runs_of([runs]))}
    assert drawn == {f"mine images={one}": [0, 1], f"mine images={other}": [0]}


def prepared(
    root: Path, seed: int, place: Path, loader: str = "auto", **more: str
) -> tuple[ImageSet, ImageSet | None, Recipe]:
    own = OWN | {"data.path": str(root), "data.test_fraction": 0.5, "data.loader": loader} | more
    settings = load(str(TINY), own).recipe
    train, test, _ = sources.load(settings, seed)
    return *prepare_both(train, test, settings.data, place, torch.device("cpu"), Silent()), settings


def checksums(root: Path, seed: int, place: Path, loader: str) -> tuple[str, str | None]:
    train, test, settings = prepared(root, seed, place, loader)
    return digest_of(train), digest_of_source(train, test, settings, digest_of(train))


@pytest.mark.parametrize("loader", ["resident", "streaming"])
def test_the_checksum_is_of_all_images_whatever_a_seed_holds_out(tmp_path: Path, loader: str) -> None:
    root = write_digits(tmp_path / "images", 6)
    (mine, source), (others, again) = (checksums(root, seed, tmp_path / "run", loader) for seed in (0, 1))
    assert mine != others and source == again
    (root / "0" / "0-0000.png").write_bytes((root / "0" / "0-0001.png").read_bytes())
    assert checksums(root, 0, tmp_path / "run", loader)[1] not in (None, source)


def test_it_is_of_the_labels_too(tmp_path: Path) -> None:
    """Whoever labels more of the same images has another experiment, whatever a seed holds out of it."""
    root = write_digits(tmp_path / "i", 6)
    found = []
    for labelled in (3, 5):  # of each known digit; the others are to be discovered, and truth.csv names all
        names = [path.relative_to(root).as_posix() for path in sorted(root.rglob("*.png"))]
        known = [name for name in names if name[0] != "u" and int(name[-5]) < labelled]
        (root / "t.csv").write_text("path,label\n" + "".join(f"{n},{n[0] if n in known else ''}\n" for n in names))
        (root / "truth.csv").write_text(
            "path,label\n" + "".join(f"{n},{n.split('/')[1][0]}\n" for n in names if n not in known)
        )
        train, test, settings = prepared(root / "t.csv", 0, tmp_path / "run", **{"data.source": "table"})
        found.append(digest_of_source(train, test, settings, ""))
    assert None not in found and len(set(found)) == 2


def test_benchmarks_need_none() -> None:
    settings = load(str(TINY)).recipe
    train, test, _ = sources.load(settings, 0)
    assert digest_of_source(train, test, settings, "x") is None
