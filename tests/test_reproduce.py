"""Seeds and variants of a recipe: which are made, beside each other or not, and what one that collapses does."""

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from autonovel.cli import app
from autonovel.commands import reproduce as reproduce_command
from autonovel.commands.reproduce import reproduce_recipe
from autonovel.errors import AutonovelError, GuardError, UsageError
from autonovel.manner import Manner
from autonovel.studies import side_by_side
from autonovel.studies.side_by_side import RunOrder
from autonovel.studies.variants import sweep
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
