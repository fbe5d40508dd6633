"""Seeds and variants of a recipe: which are made, beside each other or not, and what one that collapses does."""

import json
import re
from pathlib import Path

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from autonovel.cli import app
from autonovel.commands import reproduce as reproduce_command
from autonovel.commands.reproduce import reproduce_recipe
from autonovel.commands.training import run_recipe
from autonovel.errors import AutonovelError, GuardError, UsageError
from autonovel.manner import Manner
from autonovel.studies import side_by_side
from autonovel.studies.side_by_side import RunOrder, carry_out
from autonovel.studies.variants import adopt_stages, sweep
from runs import TINY

CPU = Manner("cpu")

QUICK = [
    "pretrain.epochs=1", "supervised.epochs=1", "joint.epochs=2", "joint.ramp_epochs=1", "joint.keep_embeddings_at=[]",
    "run.report=false",
]  # fmt: skip


def test_seeds_and_then_variants_beside_each_other_are_those_made_one_after_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    names = {f"tiny{variant}-seed{seed}" for seed in (3, 4) for variant in ("", "-k2")}
    for beside in (1, 2):
        out = tmp_path / str(beside)
        reproduce_recipe(str(TINY), range(3, 5), out, QUICK, CPU, sweep("k", [2]), beside=beside)
        assert {path.name for path in out.iterdir() if path.is_dir()} == names
        rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| tiny")]
        assert len(rows) == 2 and "joint.k=2" in rows[0] and all("| 2 | 3, 4 |" in row for row in rows)
    for name in names:
        for file in ("discovery.csv", "model.safetensors", "stages/2-supervised/model.safetensors"):
            assert (tmp_path / "1" / name / file).read_bytes() == (tmp_path / "2" / name / file).read_bytes()
    assert "is shared with" in (tmp_path / "2" / "tiny-k2-seed4.log").read_text()


def test_a_collapse_is_told_after_the_other_seeds_and_anything_else_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[int]()

    def collapse(orders: list[RunOrder], beside: int, console: object) -> None:
        made.extend(order.seed for order in orders)
        if any(order.seed == 1 for order in orders):
            raise error

    monkeypatch.setattr(reproduce_command, "carry_out", collapse)
    for error, seeds in (GuardError("collapsed"), [0, 1, 2]), (UsageError("no images"), [0, 1]):
        made.clear()
        with pytest.raises(type(error), match=str(error)):
            reproduce_recipe(str(TINY), range(3), tmp_path, [], CPU)
        assert made == seeds
    error = GuardError("collapsed")
    made.clear()
    with pytest.raises(GuardError):
        reproduce_recipe(str(TINY), range(3), tmp_path, [], CPU, sweep("k", [2, 7, 2]), beside=2)
    assert made == [0, 1, 2, 0, 0, 1, 1, 2, 2]  # the variants too, each once


def test_the_command_counts_seeds_from_the_first_one_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[list[int]]()
    monkeypatch.setattr(reproduce_command, "reproduce_recipe", lambda _, seeds, *rest: asked.append(list(seeds)))
    for options in ([], ["--seeds", "3"], ["--seeds", "2", "--first-seed", "5"]):
        assert CliRunner().invoke(app, ["reproduce", str(TINY), *options]).exit_code == 0
    assert asked == [[0], [0, 1, 2], [5, 6]]


def test_a_full_device_is_an_error_of_one_run_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate much.\nmore lines")

    monkeypatch.setattr(side_by_side, "_make", fill)
    order = RunOrder(str(TINY), tmp_path / "one", 0, (), CPU)
    with pytest.raises(AutonovelError, match=r"^CUDA out of memory.* try a smaller --beside\.$"):
        side_by_side._make_quietly(order)


def test_a_stopped_variant_goes_on_gentler_and_finished_runs_keep_their_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reproduce_recipe(str(TINY), [0], tmp_path, QUICK, CPU)
    variants = sweep("k", [2])
    with pytest.raises(GuardError):
        run_recipe(str(TINY), tmp_path / "tiny-k2-seed0", 0, [*QUICK, "joint.lr=1e30"], CPU, variants[0])
    before = (tmp_path / "tiny-seed0" / "run.json").read_bytes()
    capsys.readouterr()
    reproduce_recipe(str(TINY), [0], tmp_path, [*QUICK, "joint.lr=0.05"], CPU, variants)
    assert (tmp_path / "tiny-k2-seed0" / "results.json").exists()
    assert (tmp_path / "tiny-seed0" / "run.json").read_bytes() == before
    rows = {line.split("|")[1] for line in capsys.readouterr().out.splitlines() if line.startswith("| tiny")}
    assert {("joint.k=2" in row, "joint.lr=0.05" in row) for row in rows} == {(False, False), (True, True)}
    with pytest.raises(UsageError, match=r"joint\.lr"):  # nothing is stopped any more: settings are compared
        reproduce_recipe(str(TINY), [0], tmp_path, [*QUICK, "joint.lr=0.05"], CPU, variants)


def test_what_is_no_collapse_is_told_before_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = iter([GuardError("collapsed"), UsageError("no images"), GuardError("collapsed too")])

    def fail(*_: object, **__: object) -> None:
        raise next(errors)

    monkeypatch.setattr(side_by_side, "_make", fail)
    with pytest.raises(UsageError, match="no images"):
        carry_out([RunOrder(str(TINY), tmp_path / str(n), n, (), CPU) for n in range(3)], 1, Console(quiet=True))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--method", "kmeans", "--set", 'run.systems=["rankstats"]'], r'run\.systems is \["rankstats"\] by --set'),
        (["--no-self-supervision", "--set", "pretrain.kind=none"], r'pretrain\.kind is "none" by --set'),
        (["--new-classes", "3", "--set", "count.new_classes=4"], r'count\.new_classes is "4" by --set and "3"'),
        (["--sweep-k", "2", "--set", 'run.systems=["kmeans"]'], r"give no run\.systems"),
    ],
)
def test_what_is_said_twice_and_differs_is_refused(tmp_path: Path, options: list[str], said: str) -> None:
    told = CliRunner().invoke(app, ["reproduce", str(TINY), "--out", str(tmp_path), *options])
    assert told.exit_code == 2 and re.search(said, " ".join(told.output.split())) and not list(tmp_path.iterdir())


def test_a_damaged_run_beside_it_is_left_alone(tmp_path: Path) -> None:
    reproduce_recipe(str(TINY), [0], tmp_path, QUICK, CPU)
    for name, content in (("older", {"format": 0}), ("torn", {"format": 1, "recipe": {"name": "tiny"}})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(json.dumps(content))
        assert adopt_stages(tmp_path / "tiny-seed0", tmp_path / name) == []
