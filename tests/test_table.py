"""The table of results beside the paper's."""

import json
from pathlib import Path
from typing import Any

import pytest

from autonovel import recipe
from autonovel.errors import RunFolderError, UsageError
from autonovel.evaluation import MATCHED_EACH
from autonovel.figures.runs import collect as runs_of
from autonovel.figures.runs import studies
from autonovel.tables import paper, table
from autonovel.tables.as_today import settings_held
from runs import TINY, autonovel, journal

ROOT = Path(__file__).resolve().parents[1]


def result(seed: int, acc: float, recipe: str = "cifar10-fast", **more: Any) -> dict[str, Any]:
    return {
        "recipe": recipe, "seed": seed, "systems": {"rankstats": {"acc": acc, "nmi": 0.5, "ari": 0.5}},
        "seconds": {"total": 100.0 + seed}, "hardware": "a GPU", "commit": "0123456789", "departures": ["shorter"],
        "incremental": None, "changed": {},
    } | more  # fmt: skip


def test_runs_of_which_nobody_knows_the_truth_are_counted() -> None:
    unknown = result(1, 0.0) | {"systems": {"rankstats": None}}
    told = table.markdown([result(0, 0.9), unknown])
    assert "| 90.0 | 1 | 0 |" in told and "1 of 2 runs without scores: the true classes" in told
    assert "without scores" not in table.markdown([result(0, 0.9), result(1, 0.0) | {"systems": {}}])


def test_a_run_in_parts_is_one_run_without_scores(tmp_path: Path) -> None:
    settings = settings_held(recipe.load("demo", {"run.systems": ["rankstats", "kmeans"]}).recipe) | {"joint.epochs": 7}
    for seed, scores in ((0, {"acc": 0.9, "nmi": 0.5, "ari": 0.5}), (1, None)):
        systems = dict.fromkeys(("rankstats", "kmeans"), scores)
        seconds = {"rankstats": 1.0, "kmeans": 1.0, "total": 2.0}
        one = result(seed, 0.0, "demo", settings=settings, systems=systems, seconds=seconds)
        (tmp_path / f"seed-{seed}.json").write_text(json.dumps(one))
    assert "1 of 2 runs without scores" in table.markdown(table.collect([tmp_path]))


def test_mean_and_deviation_beside_the_paper() -> None:
    (row,) = table.rows([result(1, 0.91), result(0, 0.89)])
    assert row.cells() == (
        "cifar10-fast", "ranking statistics", "90.4 ± 0.5", "90.0 ± 1.4", "2", "0, 1", "100 s", "a GPU", "0123456",
    )  # fmt: skip


def test_seeds_that_follow_each_other_are_told_by_their_ends() -> None:
    (row,) = table.rows([result(seed, 0.9) for seed in (8, 0, 1, 2, 3, 7)])
    assert row.cells()[5] == "0–3, 7, 8"


def test_one_run_has_no_deviation_and_an_unknown_recipe_no_paper() -> None:
    (row,) = table.rows([result(0, 0.5, recipe="mine")])
    assert (row.ours, row.paper) == ("50.0", "–")


def test_runs_with_other_settings_are_never_averaged() -> None:
    found = table.rows([result(0, 0.9), result(1, 0.5, changed={"joint.k": 3})])
    assert [(row.recipe, row.ours) for row in found] == [("cifar10-fast", "90.0"), ("cifar10-fast joint.k=3", "50.0")]


def test_a_sweep_stands_in_the_order_of_its_numbers() -> None:
    found = table.rows([result(0, 0.9, changed={"joint.k": k}) for k in (10, 2, 1)] + [result(0, 0.9)])
    assert [row.recipe.removeprefix("cifar10-fast") for row in found] == ["", *(f" joint.k={k}" for k in (1, 2, 10))]


def test_what_is_only_shown_or_kept_makes_no_other_recipe() -> None:
    changed = {"run.map_points": 50, "joint.keep_embeddings_at": [0, 30], "joint.watch": 0, "incremental.watch": 9}
    (row,) = table.rows([result(0, 0.9), result(1, 0.9, changed=changed)])
    assert (row.recipe, row.paper, row.seeds) == ("cifar10-fast", "90.4 ± 0.5", (0, 1))


@pytest.mark.parametrize(
    ("name", "extends", "change", "paper"),
    [
        ("five", "cifar10-fast", "joint.k=5", "90.4 ± 0.5"),
        ("without", "cifar10-fast", "joint.bce=false", "26.2 ± 2.0"),
        ("scratch", "cifar10-fast", "pretrain.kind=supervised", "89.4 ± 1.4"),
        ("five", "cifar10-fast", "data.known=cat,dog,frog,horse,ship", "–"),
        ("svhn-odd", "svhn-fast", "data.known=1,3,5,7,9", "–"),
        ("little", "demo", "joint.k=5", "–"),
        ("my five", "cifar10-fast", "joint.k=5", "90.4 ± 0.5"),
        ("mean", "omniglot-fast", "joint.k=7", "89.1"),
        ("one", "omniglot-fast", "data.alphabet=Angelic", "–"),
        ("counted", "omniglot-fast", "count.new_classes=auto", "85.4"),
        ("counted", "cifar10-fast", "count.new_classes=auto", "–"),
        ("nine", "cifar10-fast", "count.new_classes=9", "–"),
        ("third", "imagenet", "data.subset=A", "–"),
    ],
)
def test_beside_a_recipe_of_ones_own_the_paper_has_what_it_has_of_these_classes(
    name: str, extends: str, change: str, paper: str
) -> None:
    settings = settings_held(recipe.load(extends, [change]).recipe)
    (row,) = table.rows([result(0, 0.9, name, settings=settings)])
    assert (row.recipe, row.paper) == (name, paper)


def test_what_a_recipe_of_ones_own_leaves_out_is_told_of_those_systems_that_have_it() -> None:
    settings = settings_held(recipe.load("cifar10-fast", ["joint.bce=false"]).recipe)
    systems = {name: {"acc": 0.5, "nmi": 0.5, "ari": 0.5} for name in ("rankstats", "kmeans")}
    seconds = {"rankstats": 1.0, "kmeans": 1.0, "total": 2.0}
    found = table.rows([result(0, 0.5, "without", settings=settings, systems=systems, seconds=seconds)])
    assert {row.system: row.paper for row in found} == {
        "ranking statistics": "26.2 ± 2.0", "k-means on stage-2 features": "72.5 ± 0.0",
    }  # fmt: skip


def test_beside_a_recipe_of_ones_own_that_a_caller_brings_back_the_paper_has_the_whole_method() -> None:
    settings = settings_held(recipe.load("cifar10-fast").recipe)
    (row,) = table.rows([result(0, 0.9, "scratch", settings=settings, changed={"joint.bce": True})])
    assert (row.recipe, row.paper) == ("scratch joint.bce=True", "90.4 ± 0.5")


def test_runs_of_a_recipe_of_ones_own_that_was_edited_between_them_are_never_averaged(tmp_path: Path) -> None:
    systems = {name: {"acc": 0.5, "nmi": 0.5, "ari": 0.5} for name in ("rankstats", "kmeans")}
    seconds = {"rankstats": 1.0, "kmeans": 1.0, "total": 2.0}
    for seed, change in enumerate(("joint.k=5", "joint.k=5", "joint.bce=false")):
        settings = settings_held(recipe.load("cifar10-fast", [change, 'run.systems=["rankstats", "kmeans"]']).recipe)
        one = result(seed, 0.5, "mine", settings=settings, systems=systems, seconds=seconds)
        (tmp_path / f"seed-{seed}.json").write_text(json.dumps(one))
    found = table.rows(table.collect([tmp_path]))
    assert [(row.recipe, row.system, row.paper, row.seeds) for row in found] == [
        ("mine", "k-means on stage-2 features", "72.5 ± 0.0", (0, 1, 2)),
        ("mine joint.bce=False joint.k=3", "ranking statistics", "26.2 ± 2.0", (2,)),
        ("mine joint.bce=True joint.k=5", "ranking statistics", "90.4 ± 0.5", (0, 1)),
    ]
    told = table.markdown(table.collect([tmp_path]))
    assert "| mine (b) | ranking statistics |" in told and "- `mine` (b): joint.bce=True joint.k=5" in told


@pytest.mark.parametrize(
    ("runs", "names"),
    [
        ([[], ["joint.weight=7.0"]], ["mine"]),  # which the recipe says itself
        ([["joint.weight=7.0"], ["joint.lr=0.2"]], ["mine", "mine joint.lr=0.2"]),  # each tells of the other
        ([[], ["joint.weight=8.0"]], ["mine", "mine joint.weight=8.0"]),
        ([[], ["joint.weight=7.0", "joint.lr=0.2"]], ["mine", "mine joint.lr=0.2"]),
        ([["joint.weight=7.0"], ["joint.weight=7.0"]], ["mine joint.weight=7.0"]),  # nobody knows what the recipe says
        ([[], ["preset=paper", "joint.weight=7.0"]], ["mine", "mine joint.weight=7.0 preset=paper"]),
        ([["preset=paper"], ["joint.weight=7.0"]], ["mine joint.weight=7.0", "mine preset=paper"]),
    ],
)
def test_what_a_recipe_of_ones_own_says_itself_is_no_change(
    tmp_path: Path, runs: list[list[str]], names: list[str]
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "cifar10-fast"\n[run]\nsystems = ["rankstats"]\n[joint]\nweight = 7\n')
    for seed, sets in enumerate(runs):
        loaded = recipe.load(str(mine), sets)
        settings, changed = settings_held(loaded.recipe), loaded.changed
        one = result(seed, 0.5, "mine", settings=settings, changed=changed)
        (tmp_path / f"seed-{seed}.json").write_text(json.dumps(one))
    assert [row.recipe for row in table.rows(table.collect([tmp_path]))] == names
    assert sorted(study.label for study in studies(runs_of([tmp_path]))) == names


def test_what_follows_from_a_change_is_compared_with_what_the_recipe_says(tmp_path: Path) -> None:
    """Joint training says k for incremental learning too, for which this recipe has another one."""
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "cifar10-fast"\n[run]\nsystems = ["rankstats-incremental"]\n[incremental]\nk = 7\n')
    scores = {"rankstats-incremental": {"acc": 0.5, "nmi": 0.5, "ari": 0.5}}
    for seed, k in enumerate((None, 10, 7)):
        loaded = recipe.load(str(mine), {} if k is None else {"joint.k": k})
        one = result(seed, 0.5, "mine", settings=settings_held(loaded.recipe), changed=loaded.changed, systems=scores)
        (tmp_path / f"seed-{seed}.json").write_text(json.dumps(one))
    found = {row.recipe: row.seeds for row in table.rows(table.collect([tmp_path]))}
    assert found == {"mine": (0, 2), "mine joint.k=10": (1,)}


def test_old_new_all_stand_in_one_row_and_above_the_table_how_they_are_matched() -> None:
    joint = {"split": "held-out test images", "protocols": {MATCHED_EACH: {"old": 0.9, "new": 0.8, "all": 0.85}}}
    row = table.rows([result(0, 0.9, incremental=joint)])[-1]
    assert row.ours == "90.0 / 80.0 / 85.0"
    assert row.paper == "90.6 ± 0.2 / 88.8 ± 0.2 / 89.7 ± 0.1"
    assert row.system == "joint classifier, old / new / all"
    told = table.markdown([result(0, 0.9, incremental=joint)])
    assert f"{MATCHED_EACH}, on held-out test images" in told.splitlines()[0]
    other = table.rows([result(0, 0.9, incremental=joint | {"split": "the training images"})])[-1]
    assert other.system == "joint classifier, old / new / all, on the training images"


def test_the_joint_classifier_is_judged_on_the_unlabelled_images_too() -> None:
    """Over those seeds that have it: older results do not say."""
    joint = {"split": "held-out test images", "protocols": {MATCHED_EACH: {"old": 0.9, "new": 0.8, "all": 0.85}}}
    grown = [joint, *(joint | {"unlabelled": {"acc": acc, "taken_for_known": 0.04}} for acc in (0.86, 0.88))]
    rows = table.rows([result(seed, 0.9, incremental=one) for seed, one in enumerate(grown)])
    assert [row.seeds for row in rows] == [(0, 1, 2), (0, 1, 2), (1, 2)]
    assert rows[-1].system == "joint classifier, on the unlabelled images"
    assert rows[-1].ours == "87.0 ± 1.4; 4.0 ± 0.0 % taken for known classes"
    assert rows[-1].values["acc"] == [86.0, 88.0]


def test_departures_stand_under_the_table() -> None:
    assert "`cifar10-fast` departs from the paper: shorter." in table.markdown([result(0, 0.9)])


def test_one_seed_measured_twice_is_not_two_samples() -> None:
    with pytest.raises(UsageError, match="seed 0 of cifar10-fast is there more than once"):
        table.rows([result(0, 0.9), result(0, 0.9)])


def test_json_holds_every_number() -> None:
    joint = {"split": "s", "protocols": {MATCHED_EACH: {"old": 0.9, "new": 0.8, "all": 0.85}}}
    plain, grown = table.as_json([result(0, 0.9, recipe="mine", incremental=joint)])
    assert plain["values"] == {"acc": [90.0], "nmi": [50.0], "ari": [50.0]} and plain["paper"] is None
    assert grown["values"] == {"old": [90.0], "new": [80.0], "all": [85.0]}


def test_what_is_not_a_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no results"):
        table.collect([tmp_path])
    (tmp_path / "seed-0.json").write_text("[]")
    with pytest.raises(RunFolderError, match="not the results of a run"):
        table.collect([tmp_path])


def test_results_are_found_in_runs_and_folders_of_them(tmp_path: Path) -> None:
    for place in ("run-a/results.json", "run-b/results.json", "demo/seed-3.json"):
        (tmp_path / place).parent.mkdir()
        (tmp_path / place).write_text(json.dumps(result(3, 0.9)))
    assert len(table.collect([tmp_path])) == 3
    assert len(table.collect([tmp_path / "run-a"])) == 1
    assert len(table.collect([tmp_path / "demo" / "seed-3.json"])) == 1
    (tmp_path / "run-a.log").write_text("what a run beside others has said")
    assert len(table.collect([tmp_path / "run-a", tmp_path / "run-a.log"])) == 1


def test_the_page_of_results_is_made_from_the_committed_runs() -> None:
    page = (ROOT / "docs" / "results" / "all-runs.md").read_text()
    place = [ROOT / "benchmarks" / "results"]
    made = table.markdown(table.collect(place), table.unrun(place))
    assert made in page, "docs/results/all-runs.md is stale: paste the output of `autonovel table benchmarks/results`"


@pytest.mark.slow
def test_reproduce_runs_seeds_resumes_and_prints_the_table(tmp_path: Path) -> None:
    arguments = ["reproduce", TINY, "--seeds", 2, "--out", tmp_path, "--device", "cpu"]
    arguments += ["--set", "run.systems=kmeans", "--set", "pretrain.epochs=1", "--set", "supervised.epochs=1"]
    first = autonovel(*arguments)
    assert first.returncode == 0, first.stderr
    (row,) = [line for line in first.stdout.splitlines() if "| k-means on stage-2 features |" in line]
    assert "| 2 | 0, 1 |" in row
    again = autonovel(*arguments)
    same = next(line for line in again.stdout.splitlines() if line.startswith("| tiny"))
    assert same.split("|")[:7] == row.split("|")[:7]
    shown = autonovel("table", tmp_path / "tiny-seed0", "--json")
    assert json.loads(shown.stdout)[0]["seeds"] == [0]


def test_time_counts_all_stages_of_a_system_also_where_the_total_is_another_one_s() -> None:
    seconds = {"rotation": 90.0, "supervised": 10.0, "rankstats": 60.0, "kmeans": 1.0, "total": 120.0}
    scores = {"acc": 0.8, "nmi": 0.5, "ari": 0.5}
    one = result(0, 0.8, seconds=seconds) | {"systems": {"rankstats": scores, "kmeans": scores}}
    assert {row.system: row.seconds for row in table.rows([one])} == {
        "ranking statistics": (160.0,), "k-means on stage-2 features": (120.0,),
    }  # fmt: skip


def test_ablations_stand_beside_the_paper_s() -> None:
    changed = {"joint.ce": False, "run.systems": ["rankstats"]}
    (row,) = table.rows([result(0, 0.8, changed=changed)])
    assert (row.recipe, row.paper) == ("cifar10-fast joint.ce=False", "84.7 ± 4.4")
    (other,) = table.rows([result(0, 0.8, changed={"joint.lr": 0.2})])
    assert other.paper == "–"


@pytest.mark.slow
def test_a_study_shares_the_stages_that_are_the_same(tmp_path: Path) -> None:
    quick = ["pretrain.epochs=1", "supervised.epochs=1", "joint.epochs=1", "run.map_points=40"]
    sets = [word for change in quick for word in ("--set", change)]
    arguments = ["reproduce", TINY, "--out", tmp_path, "--device", "cpu"]
    before = autonovel(*arguments, *sets, "--set", 'run.systems=["rankstats", "kmeans"]')
    assert before.returncode == 0, before.stderr
    done = autonovel(*arguments, "--ablations", "--sweep-k", "2,5,7", "--sweep-group", "4", *sets)
    assert done.returncode == 0, done.stdout + done.stderr
    runs = {path.name for path in tmp_path.iterdir()}
    assert runs == {f"tiny{variant}-seed0" for variant in (
        "", "-without-consistency", "-without-consistency-one-view", "-without-ce", "-without-bce",
        "-without-self-supervision", "-k2", "-k7", "-group4",
    )}  # fmt: skip
    assert recipe.load(str(TINY)).recipe.joint.k == 5  # which is the run they are compared with
    base = (tmp_path / "tiny-seed0" / "stages" / "2-supervised" / "model.safetensors").read_bytes()
    for name in runs - {"tiny-seed0"}:
        same = (tmp_path / name / "stages" / "2-supervised" / "model.safetensors").read_bytes() == base
        assert same == (name != "tiny-without-self-supervision-seed0")
    assert done.stdout.count("is shared with") == 2 * 7
    shown = [line for line in done.stdout.splitlines() if line.startswith("| tiny")]
    assert len(shown) == 9 + 1 and any("joint.bce=False" in line for line in shown)  # the run before had k-means too
    epochs = [line["epoch"] for line in journal(tmp_path / "tiny-k2-seed0" / "metrics.jsonl")]
    assert epochs == [0]  # only the joint stage was trained there


@pytest.mark.full
def test_labelled_runs_lie_beside_others_and_share_what_is_the_same(tmp_path: Path) -> None:
    quick = ["pretrain.epochs=1", "supervised.epochs=1", "joint.epochs=1", "run.report=false"]
    arguments = ["reproduce", TINY, "--out", tmp_path, "--device", "cpu"]
    arguments += [word for change in quick for word in ("--set", change)]
    rotation, supervised = "Stage 1-rotation is shared with", "Stage 2-supervised is shared with"
    assert rotation not in autonovel(*arguments, "--method", "kmeans").stdout
    plain = autonovel(*arguments)
    assert rotation in plain.stdout and supervised in plain.stdout
    slow = autonovel(*arguments, "--label", "slow", "--set", "supervised.lr=0.05")
    assert rotation in slow.stdout and supervised not in slow.stdout
    assert {path.name for path in tmp_path.iterdir()} == {
        "tiny-kmeans-seed0", "tiny-seed0", "tiny-slow-seed0",
    }  # fmt: skip


def test_a_wrong_label_is_explained(tmp_path: Path) -> None:
    done = autonovel("reproduce", TINY, "--label", "../x", cwd=tmp_path)
    assert done.returncode == 2 and "--label is '../x'" in done.stderr and not list(tmp_path.iterdir())


def test_a_wrong_sweep_is_explained(tmp_path: Path) -> None:
    done = autonovel("reproduce", TINY, "--sweep-k", "5,x", cwd=tmp_path)
    assert done.returncode == 2 and "--sweep-k is '5,x'" in done.stderr


def test_the_compared_systems_stand_beside_the_paper_s_from_either_start() -> None:
    scores = {"acc": 0.7, "nmi": 0.5, "ari": 0.5}
    systems = {"systems": dict.fromkeys(("kmeans", "kcl", "mcl", "dtc"), scores)}
    with_start = table.rows([result(0, 0.9, recipe="svhn-fast", **systems)])
    assert [row.system for row in with_start] == ["k-means on stage-2 features", "KCL", "MCL", "DTC"]
    assert [row.paper for row in with_start] == ["46.7 ± 0.0", "65.6 ± 4.9", "53.1 ± 0.3", "75.7 ± 0.4"]
    from_scratch = table.rows([result(0, 0.9, recipe="cifar100", changed={"pretrain.kind": "supervised"}, **systems)])
    assert [row.paper for row in from_scratch] == ["56.6 ± 1.6", "14.3 ± 1.3", "21.3 ± 3.4", "56.7 ± 1.2"]
    other = table.rows([result(0, 0.9, changed={"pretrain.kind": "supervised", "dtc.lr": 0.1}, **systems)])
    assert {row.paper for row in other} == {"–"}


def test_every_joint_classifier_has_a_row() -> None:
    joint = {"split": "held-out test images", "protocols": {MATCHED_EACH: {"old": 0.9, "new": 0.8, "all": 0.85}}}
    found = {"dtc": joint, "rankstats-incremental": joint, "kmeans": None}
    rows = table.rows([result(seed, 0.9, incremental=joint, joint_classifiers=found) for seed in (0, 1)])
    joint_rows = {row.system: row.paper for row in rows if "joint classifier" in row.system}
    assert len(rows) == 3 and len(joint_rows) == 2
    assert joint_rows["DTC: joint classifier, old / new / all"] == "58.7 ± 0.6 / 78.6 ± 0.2 / 68.7 ± 0.3"
    from_scratch = table.rows([result(0, 0.9, joint_classifiers=found, changed={"pretrain.kind": "supervised"})])
    assert all(row.paper == "–" for row in from_scratch if "joint classifier" in row.system)


def test_the_paper_has_every_number_of_its_tables() -> None:
    datasets, compared = ("cifar10", "cifar100", "svhn"), ("kmeans", "kcl", "mcl", "dtc")
    ours = ("rankstats", "rankstats-incremental")
    omniglot = {("omniglot", system) for system in (*compared, "rankstats")}
    parts = omniglot | {("imagenet", system) for _, system in omniglot}
    assert set(paper.ACCURACY) == {(d, s) for d in datasets for s in (*compared, *ours)} | parts
    assert set(paper.UNKNOWN_NUMBER) == {(dataset, system) for dataset, system in parts if system != "kmeans"}
    assert set(paper.ACCURACY_FROM_SCRATCH) == {(d, s) for d in datasets for s in compared}
    assert set(paper.OLD_NEW_ALL) == {(d, s) for d in datasets for s in ("kcl", "mcl", "dtc", "rankstats-incremental")}
    assert all(old.mean > 0 and new.mean > 0 for old, new, _ in paper.OLD_NEW_ALL.values())


def test_benchmarks_that_were_not_run_are_rows_without_ours(tmp_path: Path) -> None:
    (tmp_path / "imagenet").mkdir()
    (tmp_path / "imagenet" / table.NOT_RUN).write_text(json.dumps({"recipe": "imagenet", "why": "no images."}))
    told = table.markdown([], table.unrun([tmp_path])).splitlines()
    assert "| imagenet | ranking statistics | 82.5 (3 subsets) | not run | – | – | – | – | – |" in told
    unknown = "| imagenet count.new_classes=published | DTC | 77.6 (3 subsets) | not run | – | – | – | – | – |"
    assert unknown in told and "Rows of `imagenet` that have no number of ours (not run): no images." in told
    assert len([line for line in told if "not run |" in line]) == 5 + 4
    (tmp_path / "imagenet" / "seed-0.json").write_text(json.dumps(result(0, 0.8, "imagenet")))
    lines = table.markdown(table.collect([tmp_path]), table.unrun([tmp_path])).splitlines()
    (row,) = [line for line in lines if line.startswith("| imagenet | ranking statistics |")]
    assert "| 80.0 | 1 | 0 |" in row


def test_rows_that_were_not_run_are_those_of_every_table_of_the_paper(tmp_path: Path) -> None:
    (tmp_path / table.NOT_RUN).write_text(json.dumps({"recipe": "svhn-fast", "why": "to be run."}))
    (tmp_path / "seed-0.json").write_text(json.dumps(result(0, 0.8, "svhn-fast", changed={"joint.ce": False})))
    results, not_run = table.collect([tmp_path]), table.unrun([tmp_path])
    missing = {(row.recipe.partition(" ")[2], row.system): row for row in table.unrun_rows(not_run, results)}
    # six systems; four of them from scratch; three ablations; four joint classifiers
    assert len(missing) == 6 + 4 + 3 + 4
    assert ("joint.ce=False", "ranking statistics") not in missing
    assert missing["pretrain.kind=supervised", "ranking statistics"].paper == "72.9 ± 5.0"
    assert missing["", f"KCL: {table.OLD_NEW_ALL}"].paper == "90.3 ± 0.3 / 65.0 ± 0.5 / 81.0 ± 0.1"
    told = table.as_json(results, not_run)
    assert [one["seeds"] for one in told] == [[0]] + [[]] * len(missing)
    assert told[0]["departures"] == ["shorter"]


def test_what_was_not_run_may_be_some_systems_and_variants(tmp_path: Path) -> None:
    content = {"recipe": "cifar10", "why": "to be run.", "systems": ["rankstats"], "changes": ["preset=paper"]}
    (tmp_path / table.NOT_RUN).write_text(json.dumps(content))
    (row,) = table.unrun_rows(table.unrun([tmp_path]), [])
    assert (row.recipe, row.system, row.paper) == ("cifar10 preset=paper", "ranking statistics", "90.4 ± 0.5")
    (tmp_path / table.NOT_RUN).write_text(json.dumps(content | {"instead": "held back"}))
    (other,) = table.unrun_rows(table.unrun([tmp_path]), [])
    assert (row.ours, other.ours) == ("not run", "held back")


def test_no_reason_is_given_for_rows_that_were_run_meanwhile(tmp_path: Path) -> None:
    content = {"recipe": "cifar10", "why": "to be run.", "systems": ["rankstats"], "changes": [""]}
    (tmp_path / table.NOT_RUN).write_text(json.dumps(content))
    not_run = table.unrun([tmp_path])
    assert "to be run." in table.markdown([], not_run)
    assert "to be run." not in table.markdown([result(0, 0.9, "cifar10")], not_run)


def test_the_paper_s_numbers_stand_beside_either_preset() -> None:
    (row,) = table.rows([result(0, 0.9, "cifar10", changed={"preset": "paper", "joint.ce": False})])
    assert row.paper == "84.7 ± 4.4"


def test_a_recipe_that_was_changed_says_where_it_departed_by_commit() -> None:
    versions = [result(0, 0.9, commit="a" * 40), result(1, 0.9, commit="b" * 40, departures=["shorter", "colder"])]
    told = table.markdown(versions)
    assert "`cifar10-fast` at aaaaaaa departs from the paper: shorter." in told
    assert "`cifar10-fast` at bbbbbbb departs from the paper: shorter; colder." in told


def test_departures_that_differ_name_the_rows_they_are_of() -> None:
    runs = [result(0, 0.9), result(0, 0.8, changed={"joint.k": 7}), result(1, 0.9, departures=["other pairs"])]
    told = [line.partition(" departs")[0] for line in table.markdown(runs).splitlines() if "departs" in line]
    assert told == ["`cifar10-fast` at 0123456", "`cifar10-fast`, `cifar10-fast joint.k=7` at 0123456"]


def test_results_whose_first_system_is_no_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "seed-0.json"
    path.write_text(json.dumps(result(0, 0.9, primary={})))
    with pytest.raises(RunFolderError, match=r"primary is .\{\}. where a text is needed"):
        table.collect([path])
