"""Incremental learning that goes on from joint training (incremental.after = joint) instead of from stage 2."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from autonovel.batches import fitting_batches
from autonovel.errors import GuardError
from autonovel.figures.runs import Run
from autonovel.methods import METHODS, Problem
from autonovel.networks import heads
from autonovel.recipe import flatten, load
from autonovel.stage_names import AFTER_JOINT, JOINT, JOINT_FIRST
from autonovel.storage.documents import write_json
from autonovel.storage.run_folder import FINISHED
from autonovel.studies.variants import adopt_stages
from autonovel.tables.as_today import as_today
from autonovel.training import guard
from autonovel.training.loop import run_stage
from every_stage import N_KNOWN, N_NEW, context_in, ready, some_images
from runs import TINY, autonovel, journal

AFTER = "incremental.after=joint"
SHORT = ("--set", AFTER, "--set", "incremental.epochs=2", "--set", "run.report=false")


def stages(*sets: str) -> list[Any]:
    return METHODS["rankstats-incremental"].stages(load(str(TINY), sets).recipe, Problem(N_KNOWN, N_NEW, 0))


def test_joint_training_comes_first_with_its_own_settings_and_draws() -> None:
    first, grown = stages(AFTER, "incremental.lr=0.01")
    (plain,) = METHODS["rankstats"].stages(load(str(TINY)).recipe, Problem(N_KNOWN, N_NEW, 0))
    assert (first.name, grown.name) == (JOINT_FIRST, AFTER_JOINT)
    assert (first.number, first.incremental, first.settings.lr) == (plain.number, False, plain.settings.lr)
    assert grown.incremental and grown.settings.lr == 0.01 and grown.number != first.number
    assert [stage.name for stage in stages()] == [JOINT]


@pytest.mark.parametrize(("name", "kept"), [("grown after joint", True), ("incremental", False)])
def test_the_head_of_the_new_classes_is_kept_and_the_known_one_grows(name: str, kept: bool) -> None:
    model, stage = ready("joint")
    stage.prepare(model)
    with torch.no_grad():
        for head in model.heads.values():
            heads.last_layer(head).weight.add_(1.0)  # as if it had learned something
    before = {name: heads.last_layer(head).weight.clone() for name, head in model.heads.items()}
    ready(name)[1].prepare(model)
    now = {name: heads.last_layer(head).weight for name, head in model.heads.items()}
    assert torch.equal(now["new"], before["new"]) == kept
    assert now["known"].shape[0] == N_KNOWN + N_NEW and torch.equal(now["known"][:N_KNOWN], before["known"])


def test_systems_and_runs_share_the_joint_training(tmp_path: Path) -> None:
    """And one that trains it itself ends with the same bits."""
    runs = tmp_path / "runs"
    both = ("--method", "rankstats", "--method", "rankstats-incremental")
    done = autonovel("reproduce", TINY, "--out", runs, *both, *SHORT)
    assert done.returncode == 0, done.stderr
    (run,) = runs.iterdir()
    beside = run / "systems" / "rankstats-incremental"
    shared = (run / "stages" / JOINT / "model.safetensors").read_bytes()
    assert (beside / "stages" / JOINT_FIRST / "model.safetensors").read_bytes() == shared
    assert {line["stage"] for line in journal(beside / "metrics.jsonl")} == {AFTER_JOINT}

    again = autonovel("reproduce", TINY, "--out", runs, "--method", "rankstats-incremental", *SHORT)
    assert f"Stage {JOINT_FIRST} is shared with {run}" in again.stdout, again.stdout + again.stderr
    alone = autonovel("reproduce", TINY, "--out", tmp_path / "alone", "--method", "rankstats-incremental", *SHORT)
    assert "is shared with" not in alone.stdout
    (other,) = (tmp_path / "alone").iterdir()
    assert {line["stage"] for line in journal(other / "metrics.jsonl")} >= {JOINT_FIRST, AFTER_JOINT}
    trained = [runs / other.name, other]
    assert len({(place / "model.safetensors").read_bytes() for place in trained}) == 1
    scores = [json.loads((place / "results.json").read_text())["systems"] for place in trained]
    side = json.loads((run / "results.json").read_text())["systems"]["rankstats-incremental"]
    assert scores[0] == scores[1] == {"rankstats-incremental": side}


def test_joint_training_is_taken_over_from_incremental_learning_too(tmp_path: Path) -> None:
    systems = 'run.systems=["rankstats-incremental","rankstats"]'
    done = autonovel("run", TINY, "--out", tmp_path / "run", "--set", systems, "--set", "run.parallel=false", *SHORT)
    assert done.returncode == 0, done.stderr
    trained = [line for path in (tmp_path / "run").rglob("metrics.jsonl") for line in journal(path)]
    epochs = [line["epoch"] for line in trained if line["stage"] in (JOINT, JOINT_FIRST)]
    assert epochs == list(range(load(str(TINY)).recipe.joint.epochs))


@pytest.mark.parametrize(
    ("base", "own", "shared"),
    [
        ([], [], True),
        (["joint.watch=0"], [], True),  # nothing that is learned depends on it
        (["joint.keep_embeddings_at=[0,1]"], ["joint.keep_embeddings_at=[1]"], True),
        (["joint.keep_embeddings_at=[]"], ["joint.keep_embeddings_at=[1]"], False),  # nobody has kept them
        (["joint.k=3"], [], False),
        ([], ["joint.k=3"], False),
        (["run.systems=rankstats-incremental"], [], False),  # its joint training has grown the known head
        ([], ["incremental.after=supervised"], False),
        ([], ["run.systems=rankstats,rankstats-incremental"], False),  # it will train its own
        ([], ["run.systems=rankstats-incremental,rankstats"], True),
        ([], ["run.systems=kmeans"], False),
    ],
)
def test_only_the_same_joint_training_is_shared(tmp_path: Path, base: list[str], own: list[str], shared: bool) -> None:
    def run(name: str, sets: list[str]) -> Path:
        settings = load(str(TINY), sets).recipe
        facts = {"format": 1, "recipe": flatten(settings), "seed": 0, "digest": "x", "device": "cpu", "n_new": 5}
        write_json(tmp_path / name / "run.json", facts | {"primary": settings.run.systems[0]})
        return tmp_path / name

    trained = run("base", ["run.systems=rankstats", *base]) / "stages" / JOINT
    write_json(trained / FINISHED, {"stage": JOINT, "seconds": 1.0})
    (trained / "model.safetensors").write_bytes(b"weights")
    (trained / "embedding-epoch-001.safetensors").write_bytes(b"features")
    mine = run("own", ["run.systems=rankstats-incremental", AFTER, *own])
    assert adopt_stages(mine, tmp_path / "base") == [JOINT_FIRST] * shared
    assert (mine / "stages" / JOINT_FIRST / "model.safetensors").exists() == shared
    assert (mine / "stages" / JOINT_FIRST / "embedding-epoch-001.safetensors").exists() == shared


def test_batches_of_both_trainings_are_filled() -> None:
    sets = ["run.systems=rankstats-incremental", "joint.batch_size=400", "incremental.batch_size=100"]
    assert "joint.batch_size" not in fitting_batches(load(str(TINY), sets).recipe, 200, 50)
    fitted = fitting_batches(load(str(TINY), [*sets, AFTER]).recipe, 200, 50)
    assert fitted["joint.batch_size"] == 250 and "incremental.batch_size" not in fitted


@pytest.mark.parametrize("after", ["joint", "supervised"])
def test_its_results_depend_on_the_settings_of_joint_training(after: str) -> None:
    settings = flatten(load("svhn-fast", {"joint.k": 9, "incremental.k": 5, "incremental.after": after}).recipe)
    results = {
        "recipe": "svhn-fast", "seed": 0, "systems": {"rankstats-incremental": {"acc": 0.5}}, "settings": settings,
        "changed": {"joint.k": 9},
    }  # fmt: skip
    (today,) = as_today(results)
    assert ("joint.k" in today["changed"]) == (after == "joint")


def test_changes_of_joint_training_leave_what_comes_after_it_alone() -> None:
    """Where the two are one, they hold for both."""
    sets = ["joint.epochs=90", "joint.ramp_epochs=45", "joint.k=9"]
    after = load("svhn-fast", sets).recipe
    assert (after.incremental.epochs, after.incremental.ramp_epochs, after.incremental.k) == (20, 0, 9)
    assert load("svhn-fast", ["joint.after=supervised", *sets]).recipe.incremental.epochs == 90
    assert load("cifar10-fast", sets).recipe.incremental.epochs == 90
    assert load("svhn-fast", [*sets, "incremental.epochs=7"]).recipe.incremental.epochs == 7


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("joint.k=9", ["goes on from joint training", "a shift of the new classes"]),
        ("incremental.epochs=7", ["a shift of the new classes"]),
        ("joint.rebalance=false", ["goes on from joint training", "a shift of the new classes"]),
        ("incremental.rebalance=false", ["goes on from joint training"]),
        ("joint.after=supervised", []),
        ("preset=paper", []),
    ],
)
def test_departures_are_told_as_long_as_they_hold(change: str, said: list[str]) -> None:
    told = " ".join(load("svhn-fast", [change]).recipe.departures)
    both = ["goes on from joint training", "a shift of the new classes"]
    assert [sentence for sentence in both if sentence in told] == said


def test_advice_after_a_stop_is_about_settings_that_may_still_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Joint training itself is done by then."""
    monkeypatch.setattr(guard, "collapsed", lambda usage: "all images are in one class")
    with pytest.raises(GuardError, match=r"\(incremental\.warmup_epochs\).* with incremental\.lr=") as stopped:
        run_stage(*ready("grown after joint"), some_images(), context_in(tmp_path, system="rankstats-incremental"))
    assert "joint." not in str(stopped.value)


def test_figures_of_joint_training_are_of_the_stage_before(tmp_path: Path) -> None:
    for after, stage, epochs in (("joint", JOINT_FIRST, 6 + 2), ("supervised", JOINT, 2)):
        settings = flatten(load(str(TINY), [f"incremental.after={after}", "incremental.epochs=2"]).recipe)
        run = Run(tmp_path, settings, {}, 0, "rankstats-incremental", None)
        assert (run.joint_stage("rankstats-incremental"), run.epochs("rankstats-incremental")) == (stage, epochs)
        assert (run.joint_stage("rankstats"), run.epochs("rankstats")) == (JOINT, 6)
