"""Methods that somebody registers from outside the package: what they learn is theirs, and what is kept can be read."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from autonovel import Discoverer
from autonovel.commands.look import evaluate_run
from autonovel.commands.refine import refine
from autonovel.commands.training import run_recipe, train_side_system
from autonovel.data import Batch
from autonovel.errors import UsageError
from autonovel.figures.comparison import bars, draw
from autonovel.figures.runs import collect as runs_of
from autonovel.figures.runs import studies
from autonovel.labels import LABELS
from autonovel.manner import Manner
from autonovel.methods import METHODS, Problem
from autonovel.methods.kcl import KCL
from autonovel.methods.rankstats import Joint, RankStats
from autonovel.methods.similarity import LearnSimilarity
from autonovel.networks import Model
from autonovel.places import images_now
from autonovel.recipe import flatten, load
from autonovel.settings import Recipe
from autonovel.stage_names import AFTER_JOINT, JOINT, JOINT_FIRST, SIMILARITY
from autonovel.storage.documents import write_json
from autonovel.storage.run_folder import FINISHED
from autonovel.storage.shapes import run_facts
from autonovel.studies.variants import adopt_stages
from autonovel.tables.table import collect, rows
from autonovel.training.display import Silent
from autonovel.training.stage import Progress, Stage, Terms
from runs import TINY, journal


class WithoutPairs(Joint):
    """Joint training in which no pair of images counts; its stages are called as those it is made from."""

    def step(self, model: Model, batch: Batch, progress: Progress) -> Terms:
        """Return the terms of the joint loss but for that of the pairs."""
        return {name: term for name, term in super().step(model, batch, progress).items() if name != "bce"}


class NoSimilarity(LearnSimilarity):
    """A similarity network that learns nothing."""

    def step(self, model: Model, batch: Batch, progress: Progress) -> Terms:
        """Return terms of 0."""
        return {name: 0 * term for name, term in super().step(model, batch, progress).items()}


@dataclass(frozen=True)
class Mine(RankStats):
    """Ranking statistics without pairs."""

    def stages(self, recipe: Recipe, problem: Problem) -> list[Stage]:
        """Return the stages of ranking statistics, each without pairs."""
        return [in_place_of(stage, WithoutPairs) for stage in super().stages(recipe, problem)]


@dataclass(frozen=True)
class MyKCL(KCL):
    """KCL on a similarity network that learns nothing."""

    def stages(self, recipe: Recipe, problem: Problem) -> list[Stage]:
        """Return the stages of KCL with another similarity network."""
        first, *others = super().stages(recipe, problem)
        return [in_place_of(first, NoSimilarity), *others]


def in_place_of(stage: Any, kind: Any) -> Stage:
    made: Stage = kind(**{field.name: getattr(stage, field.name) for field in fields(stage)})
    return made


OWN = {"mine": Mine(), "mine-grown": Mine(incremental=True), "my-kcl": MyKCL()}
SYSTEMS = ("mine-grown", "rankstats", "mine", "kcl", "my-kcl")
QUICK = ("run.parallel=false", "run.report=false", "joint.epochs=2", "joint.keep_embeddings_at=[]",
         "incremental.after=joint", "incremental.epochs=1", "similarity.epochs=1", "kcl.epochs=1", "linear.epochs=1",
         "linear.decay_at=[]")  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of own methods beside those they are made from, seen by somebody who has not registered them."""
    folder = tmp_path_factory.mktemp("own") / "run"
    with pytest.MonkeyPatch.context() as patch:
        for name, method in OWN.items():
            patch.setitem(METHODS, name, method)
            patch.setitem(LABELS, name, f"{name}, labelled")
        systems = f"run.systems={','.join(SYSTEMS)}"
        run_recipe(str(TINY), folder, 0, [systems, *QUICK], Manner(device="cpu", keep_going=True))
    yield folder


def test_no_system_takes_over_what_another_kind_of_method_has_learned(run: Path) -> None:
    trained = {
        name: {line["stage"] for line in journal(run / "systems" / name / "metrics.jsonl")} for name in SYSTEMS[1:]
    }
    assert trained == {
        "rankstats": {JOINT}, "mine": {JOINT}, "kcl": {SIMILARITY, "4-kcl", "9-linear"},
        "my-kcl": {SIMILARITY, "4-kcl", "9-linear"},
    }  # fmt: skip
    assert {line["stage"] for line in journal(run / "metrics.jsonl")} >= {JOINT_FIRST, AFTER_JOINT}


@pytest.mark.parametrize(
    ("giver", "taker", "stage", "shared"),
    [
        ("mine", "rankstats-incremental", JOINT, []),
        ("mine-grown", "rankstats-incremental", JOINT_FIRST, []),
        ("rankstats", "mine-grown", JOINT, []),
        ("rankstats", "rankstats-incremental", JOINT, [JOINT_FIRST]),
        ("my-kcl", "kcl", SIMILARITY, []),
        ("kcl", "my-kcl", SIMILARITY, []),
        ("mcl", "kcl", SIMILARITY, [SIMILARITY]),
    ],
)
def test_nor_does_it_from_another_run(tmp_path: Path, giver: str, taker: str, stage: str, shared: list[str]) -> None:
    settings = flatten(load(str(TINY), ["incremental.after=joint", "similarity.classes_per_batch=2"]).recipe)
    for name, system in (("base", giver), ("own", taker)):
        facts = {"format": 1, "seed": 0, "digest": "x", "device": "cpu", "n_new": 5, "primary": system}
        write_json(tmp_path / name / "run.json", facts | {"recipe": settings | {"run.systems": [system]}})
    learned = tmp_path / "base" / "stages" / stage
    write_json(learned / FINISHED, {"stage": stage, "seconds": 1.0})
    (learned / "model.safetensors").write_bytes(b"weights")
    assert adopt_stages(tmp_path / "own", tmp_path / "base") == shared
    assert [path.name for path in (tmp_path / "own").glob("stages/*")] == shared


def test_a_network_for_a_system_beside_lies_where_no_other_one_finds_it(tmp_path: Path) -> None:
    settings = flatten(load(str(TINY), ["similarity.classes_per_batch=2"]).recipe)
    for name, systems in (("base", ["kcl"]), ("own", ["my-kcl", "kcl"])):
        facts = {"format": 1, "seed": 0, "digest": "x", "device": "cpu", "n_new": 5, "primary": systems[0]}
        write_json(tmp_path / name / "run.json", facts | {"recipe": settings | {"run.systems": systems}})
    write_json(tmp_path / "base" / "stages" / SIMILARITY / FINISHED, {"stage": SIMILARITY, "seconds": 1.0})
    (tmp_path / "base" / "stages" / SIMILARITY / "model.safetensors").write_bytes(b"weights")
    assert adopt_stages(tmp_path / "own", tmp_path / "base") == [SIMILARITY]
    assert (tmp_path / "own" / "systems" / "kcl" / "stages" / SIMILARITY / FINISHED).exists()
    assert not (tmp_path / "own" / "stages").exists()


def test_a_table_has_its_rows_where_nobody_has_registered_it(run: Path) -> None:
    labels = ["KCL", "ranking statistics", "mine-grown", "mine", "my-kcl"]
    joint = [
        f"{name}: joint classifier, old / new / all, on the training images (none were held out)"
        for name in ("KCL", *OWN)
    ]
    found = [row.system for row in rows(collect([run]))]
    assert [name for name in found if ":" not in name] == labels
    assert [name for name in found if "old / new / all" in name] == [joint[0], joint[2], joint[3]]


def test_so_has_the_figure_of_systems(run: Path) -> None:
    (study,) = studies(runs_of([run]))
    assert [bar.system for bar in bars(study)] == ["kcl", "rankstats", "mine-grown", "mine", "my-kcl"]
    assert "my-kcl" in draw(study).caption


def test_its_model_can_be_read_there(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate_run(run, None, "cpu", classes=True, as_json=False)
    assert "mine-grown" in capsys.readouterr().out
    assert images_now(run, run_facts(run), None).run.systems == SYSTEMS
    assert Discoverer.load(run).n_new_ == 5


def test_to_train_with_it_the_method_has_to_be_registered(run: Path, tmp_path: Path) -> None:
    told = r"run\.systems has 'mine.*'; each must be one of .* registered first, by the very program that trains"
    with pytest.raises(UsageError, match=told):
        refine(run, confirm=["new-1"], out=tmp_path / "refined", device="cpu")
    with pytest.raises(UsageError, match=told):
        load(str(TINY), ["run.systems=mine"])
    with pytest.raises(UsageError, match=told):
        train_side_system(run, "mine", Silent(), keep_going=False)
