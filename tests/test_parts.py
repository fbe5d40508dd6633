"""A benchmark of parts: a run for each, what they share, their mean, and the table."""

import json
import math
import multiprocessing
import statistics
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import omniglot_tree
from autonovel import recipe
from autonovel.commands.reproduce import reproduce_recipe
from autonovel.counting.counting import wanted
from autonovel.data import omniglot
from autonovel.delivered import load_model
from autonovel.embedding import Embedding
from autonovel.errors import AutonovelError, GuardError, UsageError
from autonovel.manner import Manner
from autonovel.storage.documents import read_json
from autonovel.studies import part_runs, variants
from autonovel.studies.parts import mean, parts_of
from autonovel.studies.side_by_side import RunOrder, carry_out
from autonovel.studies.variants import Variant
from autonovel.tables import paper
from autonovel.tables.table import as_json, collect, markdown
from runs import TINY

CPU = Manner("cpu")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    omniglot_tree.publish(monkeypatch)
    return omniglot_tree.write(tmp_path / "omniglot")


def reproduce(tree: Path, out: Path, *sets: str, seeds: int = 1, **more: Any) -> None:
    changes = [f"data.path={tree}", *omniglot_tree.SETTINGS, *sets]
    reproduce_recipe("omniglot", range(seeds), out, changes, Manner("cpu", keep_going=True), **more)


def stage_of(run: Path, name: str) -> bytes:
    return (run / "stages" / name / "model.safetensors").read_bytes()


def test_every_alphabet_has_a_run_and_the_result_is_their_mean(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "runs"
    reproduce(tree, out)
    folder = out / "omniglot-seed0"
    each = {part: read_json(folder / part / "results.json") for part in ("Angelic", "Keble")}
    whole = read_json(folder / "results.json")
    for system in ("rankstats", "kmeans"):
        wanted_mean = statistics.fmean(of["systems"][system]["acc"] for of in each.values())
        assert whole["systems"][system]["acc"] == pytest.approx(wanted_mean)
    assert {part: of["n_new"] for part, of in whole["each"].items()} == {"Angelic": 3, "Keble": 4}
    assert whole["seconds"]["total"] > 0
    assert "data.alphabet" not in whole["changed"] | whole["settings"]
    assert whole["settings"] == {k: v for k, v in each["Keble"]["settings"].items() if k != "data.alphabet"}
    assert stage_of(folder / "Angelic", "1-prototypical") == stage_of(folder / "Keble", "1-prototypical")
    lines = [json.loads(line) for line in (folder / "Keble" / "metrics.jsonl").read_text().splitlines()]
    assert {line["stage"] for line in lines} == {"3-joint"}  # the other stage was taken over, not trained
    printed = capsys.readouterr().out
    assert f"| Keble | 4 | 4 | {100 * each['Keble']['systems']['kmeans']['acc']:.1f} |" in printed

    before = (folder / "results.json").read_bytes()
    reproduce(tree, out)
    assert "nothing was left to do" in capsys.readouterr().out
    assert (folder / "results.json").read_bytes() == before


def test_a_run_alone_has_the_numbers_of_one_among_all(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    reproduce(tree, out, 'run.systems=["rankstats"]')
    reproduce(tree, tmp_path / "alone", 'run.systems=["rankstats"]', "data.alphabet=Keble")
    one, other = out / "omniglot-seed0" / "Keble", tmp_path / "alone" / "omniglot-seed0"
    for name in ("discovery.csv", "model.safetensors"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    # whoever loads the model gives it drawings as they are, which it shrinks as it did in the run
    model, kept = load_model(one), Embedding.load(one / "embedding.safetensors")
    drawings = omniglot.load(tree, "Keble").images
    assert model.side == 32 and drawings.shape[2:] == (105, 105)
    with torch.no_grad():
        torch.testing.assert_close(model.clean_features(drawings), kept.z)


def test_other_systems_share_pretraining_and_the_similarity_network(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    reproduce(tree, out, systems=variants.of_systems(["kmeans"]))
    reproduce(tree, out, systems=variants.of_systems(["kcl", "mcl", "dtc"]))
    first, second = (out / "omniglot-kcl-mcl-dtc-seed0" / part for part in ("Angelic", "Keble"))
    kmeans = out / "omniglot-kmeans-seed0" / "Keble"
    assert stage_of(kmeans, "1-prototypical") == stage_of(first, "1-prototypical")
    learned = stage_of(first, variants.SIMILARITY)
    assert stage_of(second, variants.SIMILARITY) == learned
    assert stage_of(second / "systems" / "mcl", variants.SIMILARITY) == learned
    journal = [json.loads(line) for line in (second / "metrics.jsonl").read_text().splitlines()]
    assert {line["stage"] for line in journal} == {"4-kcl"}
    results = collect([out])
    assert {row["system"]: row["paper"] for row in as_json(results)} == dict.fromkeys(
        ["k-means on stage-2 features", "KCL", "MCL", "DTC"]
    ), "with other settings than the recipe's, nothing of the paper stands beside"


def test_another_number_of_new_classes_has_folders_of_its_own_and_shares_pretraining(
    tree: Path, tmp_path: Path
) -> None:
    out = tmp_path / "runs"
    reproduce(tree, out, systems=variants.of_systems(["kmeans"]))
    reproduce(tree, out, systems=variants.of_systems(["kmeans"], new_classes="5"))
    known, other = (out / f"omniglot-kmeans{middle}-seed0" / "Keble" for middle in ("", "-5-new-classes"))
    assert stage_of(known, "1-prototypical") == stage_of(other, "1-prototypical")
    assert [read_json(run / "results.json")["n_new"] for run in (known, other)] == [4, 5]


def test_an_ablation_that_a_recipe_does_not_allow_is_left_out(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = (Variant("without-ce", {"joint.ce": False}), variants.WITHOUT_SELF_SUPERVISION)
    reproduce(tree, tmp_path / "runs", compared=asked)
    said = " ".join(capsys.readouterr().out.split())
    assert "Not without self-supervision, which omniglot does not start by (pretrain.kind = prototypical)." in said
    assert sorted(path.name for path in (tmp_path / "runs").iterdir() if path.is_dir()) == [
        "omniglot-seed0", "omniglot-without-ce-seed0",
    ]  # fmt: skip
    assert variants.that_apply(variants.ABLATIONS, "rotation") == variants.ABLATIONS


def test_similarity_is_not_shared_where_it_depends_on_the_number_of_new_classes(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    reproduce(
        tree, out, "similarity.classes_per_batch=0", "similarity.batch_size=16", systems=variants.of_systems(["kcl"])
    )
    first, second = (out / "omniglot-kcl-seed0" / part for part in ("Angelic", "Keble"))
    assert stage_of(first, variants.SIMILARITY) != stage_of(second, variants.SIMILARITY)


def test_rotation_on_labelled_images_is_shared_and_on_all_is_not(tree: Path, tmp_path: Path) -> None:
    sets = ("pretrain.kind=rotation", "pretrain.epochs=1", 'run.systems=["kmeans"]')
    for images, same in (("labelled", True), ("all", False)):
        out = tmp_path / images
        reproduce(tree, out, *sets, f"pretrain.images={images}")
        one, other = (stage_of(out / "omniglot-seed0" / part, "1-rotation") for part in ("Angelic", "Keble"))
        assert (one == other) == same


COUNTED = (
    "count.new_classes=auto", "pretrain.held_out=Latin,Greek", "count.most=8", 'run.systems=["kmeans"]',
    "pretrain.epochs=1", "count.spare=0",
)  # fmt: skip


def test_new_classes_are_counted_with_each_alphabet_held_out(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "runs"
    reproduce(tree, out, *COUNTED, "count.criterion=silhouette")
    folder = out / "omniglot-seed0"
    for part in ("Angelic", "Keble"):
        content = read_json(folder / part / "count.json")
        assert content["groups"].keys() == {"Latin", "Greek"}
        assert content["estimate"] == -(-sum(content["groups"].values()) // 2)
        assert (content["low"], content["high"]) == (min(content["groups"].values()), max(content["groups"].values()))
        assert content["true"] == omniglot_tree.EVALUATION[part]
        assert {name.split("/")[0] for name in content["probes"]} <= {"Latin", "Greek"}
        assert read_json(folder / part / "results.json")["n_new"] == max(content["estimate"], 2)
    assert " count.new_classes=auto " in capsys.readouterr().out


def test_alphabets_held_out_are_counted_like_the_new_one(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "runs"
    reproduce(tree, out, *COUNTED)
    contents = [read_json(out / "omniglot-seed0" / part / "count.json") for part in ("Angelic", "Keble")]
    for content in contents:
        assert content["settings"]["criterion"] == "icl" and "groups" not in content
        assert [(one["group"], one["true"]) for one in content["checks"]] == [("Latin", 6), ("Greek", 6)]
        assert {name.split("/")[0] for name in content["probes"]} == {"Latin", "Greek"} and not content["anchors"]
        ends = [content["estimate"] * 6 / one["estimate"] for one in content["checks"]]
        assert content["low"] == min(content["estimate"], *map(math.floor, ends))
        assert content["high"] == max(content["estimate"], *map(math.ceil, ends))
    assert "as far off as that of known classes" in capsys.readouterr().out


def test_counting_refuses_probes_that_pretraining_has_seen(tree: Path, tmp_path: Path) -> None:
    for change, message in (
        ("count.probes=random", "count.probes=held-out"),
        ("pretrain.held_out=[]", "names no group"),
    ):
        with pytest.raises(UsageError, match=message):
            reproduce(tree, tmp_path / change[:8], "count.new_classes=auto", "pretrain.epochs=1", change)


def test_stored_estimates_of_dtc() -> None:
    from autonovel.data.layouts import OMNIGLOT

    stored = {part: number for (source, part), number in paper.STORED_ESTIMATES.items() if source == "omniglot"}
    assert stored.keys() == OMNIGLOT.evaluation.keys()
    errors = [abs(stored[part] - true) for part, true in OMNIGLOT.evaluation.items()]
    assert statistics.fmean(errors) == pytest.approx(4.6)
    asked = recipe.load("omniglot", ["count.new_classes=published", "data.alphabet=ULOG"]).recipe
    assert wanted(asked, 26) == 33
    with pytest.raises(UsageError, match=r"no published estimate .* sample"):
        wanted(recipe.load("demo", ["count.new_classes=published"]).recipe, 5)


def test_the_papers_numbers_stand_beside_known_and_estimated_counts() -> None:
    assert str(paper.accuracy("omniglot", "", "rankstats")) == "89.1"
    for how in ("auto", "published"):
        found = {s: str(paper.accuracy("omniglot-fast", f"count.new_classes={how}", s)) for s in ("kcl", "mcl", "dtc")}
        assert found == {"kcl": "80.3", "mcl": "80.5", "dtc": "87.0"}
    assert paper.accuracy("cifar10", "count.new_classes=auto", "kcl") is None


def test_what_is_a_benchmark_of_parts() -> None:
    whole = parts_of(recipe.load("omniglot").recipe)
    assert whole is not None and whole.key == "data.alphabet" and len(whole.n_new) == 20
    assert parts_of(recipe.load("omniglot", ["data.alphabet=ULOG"]).recipe) is None
    assert parts_of(recipe.load("demo").recipe) is None


def test_mean_of_tables() -> None:
    assert mean([{"a": 1.0, "b": {"c": 2, "d": "x"}}, {"a": 3.0, "b": {"c": 3, "d": "y"}}]) == {
        "a": 2.0, "b": {"c": 2.5, "d": "x"},
    }  # fmt: skip
    assert mean([{"a": None}, {"a": 1.0}]) == {"a": None}
    assert mean([{"a": 2.0, "b": 1.0}, {"a": 4.0}]) == {"a": 3.0}, "a part of an older version does not say b"


def part_results(seed: int, acc: float, n_new: int) -> dict[str, Any]:
    scores = {"rankstats": {"acc": acc, "nmi": acc, "ari": acc}}
    return {
        "recipe": "omniglot", "seed": seed, "systems": scores, "seconds": {"total": 100.0}, "changed": {},
        "each": {"Keble": {"systems": scores, "n_new": n_new, "true_n_new": 26, "seconds": {}}},
    }  # fmt: skip


def test_table_of_parts_over_seeds(tmp_path: Path) -> None:
    for seed, (acc, n_new) in enumerate([(0.9, 26), (0.8, 28)]):
        (tmp_path / f"seed-{seed}.json").write_text(json.dumps(part_results(seed, acc, n_new)))
    text = markdown(collect([tmp_path]))
    assert "| omniglot | ranking statistics | 89.1 | 85.0 ± 7.1 | 2 |" in text
    assert "| Keble | 26 | 26, 28 | 85.0 |" in text
    assert "wrong by 1.0 in the mean over parts and seeds" in text


def test_tables_of_parts_stand_in_the_order_of_their_rows() -> None:
    """Of a sweep that is the order of its numbers."""
    text = markdown([part_results(0, 0.9, 26) | {"changed": {"joint.k": k}} for k in (10, 2)])
    assert text.index("Parts of `omniglot joint.k=2`") < text.index("Parts of `omniglot joint.k=10`")


def orders(folder: Path, *sets: str) -> list[RunOrder]:
    changes = ('run.systems=["rankstats"]', "run.report=false", "run.checkpoint_seconds=20", *sets)
    return [RunOrder(str(TINY), folder / f"seed{seed}", seed, changes, CPU) for seed in (0, 1)]


def test_runs_beside_each_other_are_those_made_one_after_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    carry_out(orders(tmp_path / "one"), 1, Console())
    capsys.readouterr()
    carry_out(orders(tmp_path / "beside"), 2, Console())
    printed = capsys.readouterr().out
    assert "(2 of 2, about 0 s left)" in printed
    for seed in ("seed0", "seed1"):
        for name in ("discovery.csv", "model.safetensors"):
            assert (tmp_path / "one" / seed / name).read_bytes() == (tmp_path / "beside" / seed / name).read_bytes()
        assert "Wrote" in (tmp_path / "beside" / f"{seed}.log").read_text()


def test_a_run_that_fails_does_not_stop_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    good = orders(tmp_path, 'run.systems=["kmeans"]')
    bad = RunOrder(str(TINY), tmp_path / "bad", 0, ("data.known=[]",), CPU, Variant("bad"))
    for beside in (1, 2):
        with pytest.raises(Exception, match="known"):
            carry_out([bad, *good], beside, Console())
        assert all((order.folder / "results.json").exists() for order in good)
        assert "bad: error" in capsys.readouterr().out.replace("error: bad: ", "bad: error")


def test_a_part_that_collapses_stops_neither_the_others_nor_other_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[tuple[int, str]]()

    def collapse(orders: list[RunOrder], beside: int, console: object) -> None:
        made.extend((order.seed, order.folder.name) for order in orders)
        raise GuardError("collapsed")

    monkeypatch.setattr(part_runs, "carry_out", collapse)
    for systems, parts in (('["kcl"]', 20), ('["rankstats"]', 1)):  # with the first part whole, or what all need of it
        made.clear()
        with pytest.raises(GuardError):
            reproduce_recipe("omniglot-fast", range(2), tmp_path, [f"run.systems={systems}"], CPU)
        assert [seed for seed, _ in made] == [0] * parts + [1] * parts
    assert not list(tmp_path.iterdir())  # where nothing was begun, no time was spent


def test_a_process_that_dies_is_told_of(tmp_path: Path) -> None:
    from rich.console import Console

    def kill_children() -> None:
        while not multiprocessing.active_children():
            time.sleep(0.05)
        time.sleep(1)
        for child in multiprocessing.active_children():
            child.kill()

    threading.Thread(target=kill_children, daemon=True).start()
    with pytest.raises(AutonovelError, match="a process ended all at once"):
        carry_out(orders(tmp_path, "pretrain.epochs=100000"), 2, Console())  # for as long as it may take
