"""The paper's own tables with ours beside each number."""

from pathlib import Path
from typing import Any

import pytest

from autonovel import recipe
from autonovel.commands.look import print_table
from autonovel.errors import UsageError
from autonovel.evaluation import HELD_OUT, MATCHED_EACH
from autonovel.studies import variants
from autonovel.studies.variants import Variant
from autonovel.tables import paper, paper_layout, paper_tables, table
from autonovel.tables.table import Unrun

ROOT = Path(__file__).resolve().parents[1]


def result(name: str, seed: int, system: str, acc: float, **more: Any) -> dict[str, Any]:
    return {
        "recipe": name, "seed": seed, "systems": {system: {"acc": acc, "nmi": 0.5, "ari": 0.5}},
        "seconds": {"total": 100.0}, "hardware": "a GPU", "commit": "0123456789", "changed": {},
    } | more  # fmt: skip


def lines(results: list[dict[str, Any]], title: str) -> dict[str, list[str]]:
    """Return the cells of one of the tables, by the first of their line."""
    text = paper_tables.markdown(results)
    part = text.split(f"**{title}**")[1].split("\n\n**")[0]
    grid = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")]
    return {cells[0]: cells[1:] for cells in grid}


def test_our_number_stands_beside_the_paper_s_with_its_seeds() -> None:
    found = lines([result("svhn-fast", seed, "rankstats", acc) for seed, acc in ((0, 0.94), (1, 0.96))],
                  "Novel category discovery")  # fmt: skip
    assert found["ranking statistics"] == [
        "90.4 ± 0.5",
        "not run",
        "73.2 ± 2.1",
        "not run",
        "95.0 ± 0.2",
        "95.0 ± 1.4 (2)",
    ]
    assert found["ranking statistics, *full length*"][-1] == "not run"
    omniglot = lines([], "Novel category discovery, OmniGlot and ImageNet")
    assert omniglot["ranking statistics, *full length*"] == ["89.1", "not run", "–", "–"]


def test_what_is_clearly_below_the_paper_is_marked() -> None:
    one = lines([result("cifar10-fast", 0, "dtc", 0.858)], "Novel category discovery")
    assert one["DTC"][1] == "85.8 (1)"
    one = lines([result("cifar10-fast", 0, "dtc", 0.856)], "Novel category discovery")
    assert one["DTC"][1] == "▼ 85.6 (1)"


def test_runs_of_full_length_have_a_line_of_their_own() -> None:
    runs = [result("cifar10", 0, "rankstats", 0.914),
            result("cifar10", 0, "rankstats", 0.91, changed={"preset": "paper"})]  # fmt: skip
    found = lines(runs, "Novel category discovery")
    assert found["ranking statistics"][1] == "not run"
    assert found["ranking statistics, *full length*"][:2] == ["90.4 ± 0.5", "91.4 (1)"]
    printed = found["ranking statistics, *full length*, formulas as printed"]
    assert printed == ["90.4 ± 0.5", "91.0 (1)", "–", "–", "–", "–"]  # it is meant for CIFAR-10 alone


def test_a_line_that_nobody_asked_for_stands_there_if_it_was_run() -> None:
    title = "Novel category discovery"
    full = "k-means on stage-2 features, *full length*"
    assert full not in lines([], title)
    assert lines([result("cifar100", 0, "kmeans", 0.5)], title)[full] == [
        "–",
        "–",
        "56.3 ± 1.7",
        "▼ 50.0 (1)",
        "–",
        "–",
    ]
    printed = result("svhn", 0, "rankstats", 0.9, changed={"preset": "paper"})
    assert lines([printed], title)["ranking statistics, *full length*, formulas as printed"][-1] == "▼ 90.0 (1)"


def test_ablations_stand_where_their_setting_says() -> None:
    changed = {"joint.consistency": False, "joint.bce_views": "one", "run.report": False}
    runs = [result("svhn-fast", 0, "rankstats", 0.7, changed={"joint.ce": False}),
            result("svhn-fast", 0, "rankstats", 0.5, changed=changed)]  # fmt: skip
    found = lines(runs, "What each part does")
    assert found["without CE"][-2:] == ["59.7 ± 6.6", "70.0 (1)"]
    assert found["the same, pairs of one view"][-2:] == ["–", "50.0 (1)"]
    assert found["the same, pairs of one view"][:2] == ["–", "not run"]


@pytest.mark.parametrize("variant", variants.ABLATIONS, ids=lambda variant: variant.name)
def test_every_ablation_that_can_be_run_has_its_line(variant: Variant) -> None:
    found = lines([result("svhn-fast", 0, "rankstats", 0.123, changed=variant.settings)], "What each part does")
    assert [title for title, cells in found.items() if "12.3" in cells[-1]] == [
        paper_layout.ABLATION_TITLES[variant.name]
    ]


def test_each_part_of_a_joint_classifier_is_judged_by_itself() -> None:
    joint = {"split": HELD_OUT, "protocols": {MATCHED_EACH: {"old": 0.93, "new": 0.82, "all": 0.87}}}
    one = result("cifar10-fast", 0, "rankstats-incremental", 0.9, joint_classifiers={"rankstats-incremental": joint})
    found = lines([one], "Incremental learning: old / new / all on the test images")
    assert found["with incremental learning"][:2] == ["90.6 / 88.8 / 89.7", "93.0 / ▼ 82.0 / 87.0 (1)"]
    listed = paper_tables.markdown([one]).split("**Below the paper**")[1].splitlines()
    assert [line.split(" | ")[-2:] for line in listed if "old / new / all" in line] == [
        ["93.0 / ▼ 82.0 / 87.0 (1)", "– / 6.8 / 2.7 |"]
    ]


def test_what_is_below_the_paper_is_listed_dataset_by_dataset() -> None:
    """The method itself by however little, what it is compared with by more than three points."""
    runs = [
        result("svhn-fast", 0, "dtc", 0.727),
        result("cifar10-fast", 0, "rankstats", 0.9034),
        result("cifar10-fast", 0, "dtc", 0.858),
        result("svhn-fast", 0, "rankstats", 0.951),
    ]
    told = paper_tables.markdown(runs).split("**Below the paper**")[1].splitlines()
    assert [line for line in told if line.startswith("| CIFAR") or line.startswith("| SVHN")] == [
        "| CIFAR-10 | ranking statistics | 90.4 ± 0.5 | 90.3 (1) | 0.1 |"
    ]
    below = paper_tables.markdown([result("svhn-fast", 0, "dtc", 0.726), *runs[1:]])
    assert below.endswith("90.3 (1) | 0.1 |\n| SVHN | DTC | 75.7 ± 0.4 | ▼ 72.6 (1) | 3.1 |")
    assert "Below the paper" not in paper_tables.markdown(runs[2:])


def test_the_method_at_full_length_is_listed_by_however_little_and_a_recipe_alone_once() -> None:
    runs = [result("omniglot", 0, "rankstats", 0.890), result("imagenet", 0, "rankstats", 0.824)]
    below = paper_tables.markdown(runs).split("**Below the paper**")[1].splitlines()
    assert [line for line in below if line.startswith(("| Omni", "| Image"))] == [
        "| OmniGlot | ranking statistics, *full length* | 89.1 | 89.0 (1) | 0.1 |",
        "| ImageNet | ranking statistics | 82.5 (3 subsets) | 82.4 (1) | 0.1 |",
    ]


def test_why_a_line_was_not_run_is_told() -> None:
    not_run = [Unrun("svhn-fast", "too dark.", changes=("",), instead="held back")]
    told = paper_tables.markdown([], not_run)
    assert "Rows of `svhn-fast` that have no number of ours (held back): too dark." in told
    (line,) = [line for line in told.splitlines() if line.startswith("| with incremental learning | 91.7")]
    assert line.endswith("| 75.2 ± 4.2 | not run | 95.2 ± 0.2 | held back |")


def test_a_sweep_has_the_recipe_s_own_value_among_the_others() -> None:
    own = recipe.load("cifar10-fast").recipe.joint.k
    runs = [
        result("cifar10-fast", 0, "rankstats", 0.9),
        result("cifar10-fast", 0, "rankstats", 0.5, changed={"joint.k": 1}),
    ]
    found = lines(runs, "Ranking statistics with other k")
    by_k = dict(zip(found["k"], found["CIFAR-10"], strict=True))
    assert (by_k["1"], by_k[str(own)], by_k["50"]) == ("50.0 (1)", "90.0 (1)", "not run")


def earlier(acc: float, given: dict[str, Any], system: str = "rankstats", **drifted: Any) -> dict[str, Any]:
    """Return a result of svhn-fast as it was, with what it said otherwise then beside what was asked for."""
    changed = given | {key.replace("__", "."): value for key, value in drifted.items()}
    return result("svhn-fast", 0, system, acc, changed=changed, given=given)


def test_where_the_recipe_of_today_was_not_run_an_earlier_one_stands_in_and_is_marked() -> None:
    runs = [
        result("svhn-fast", 0, "rankstats", 0.95),
        earlier(0.94, {}, joint__epochs=50),
        earlier(0.6, {"joint.ce": False}, joint__epochs=50),
        earlier(0.93, {"joint.k": 7}, joint__epochs=50),
        earlier(0.92, {}, "kmeans", pretrain__epochs=3),
    ]
    parts = lines(runs, "What each part does")
    assert parts["ranking statistics"][-1] == "95.0 (1)"
    assert parts["without CE"][-2:] == ["59.7 ± 6.6", "60.0 (1) †"]
    sweep = lines(runs, "Ranking statistics with other k")
    assert dict(zip(sweep["k"], sweep["SVHN"], strict=True))["7"] == "93.0 (1) †"
    assert lines(runs, "Novel category discovery")["k-means on stage-2 features"][-1] == "92.0 (1) †"
    assert "†: with the recipe as it was" in paper_tables.markdown(runs)
    assert "†" not in paper_tables.markdown(runs[:1])


def test_of_several_earlier_recipes_the_one_most_like_today_s_stands_in() -> None:
    near, far = earlier(0.93, {}, joint__weight=20.0), earlier(0.8, {}, joint__weight=20.0, joint__epochs=50)
    for runs in ([near, far], [far, near]):
        assert lines(runs, "What each part does")["ranking statistics"][-1] == "93.0 (1) †"


def test_a_value_that_an_earlier_recipe_had_itself_is_one_of_today_s_sweep() -> None:
    sweep = lines([earlier(0.94, {}, joint__k=7)], "Ranking statistics with other k")
    by_k = dict(zip(sweep["k"], sweep["SVHN"], strict=True))
    assert (by_k["7"], by_k[str(recipe.load("svhn-fast").recipe.joint.k)]) == ("94.0 (1)", "not run")


def test_every_number_of_the_paper_has_its_place() -> None:
    """None of those that `paper` knows is left out of the tables."""
    told = paper_tables.markdown([])
    tables = (paper.ACCURACY, paper.ACCURACY_FROM_SCRATCH, paper.ABLATION, paper.UNKNOWN_NUMBER)
    for published in (one for numbers in tables for one in numbers.values()):
        assert f"| {published} |" in told
    for old, new, every in paper.OLD_NEW_ALL.values():
        assert f"| {old.mean:.1f} / {new.mean:.1f} / {every.mean:.1f} |" in told


def test_the_page_of_results_has_the_tables_of_the_committed_runs() -> None:
    place = [ROOT / "benchmarks" / "results"]
    made = paper_tables.markdown(table.collect(place), table.unrun(place))
    page = (ROOT / "docs" / "results.md").read_text()
    assert made in page, "docs/results.md is stale: paste `autonovel table benchmarks/results --paper`"


def test_they_are_not_for_programs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give --json without it"):
        print_table([tmp_path], as_json=True, as_paper=True)


def test_a_sweep_may_name_the_recipe_s_own_value() -> None:
    own = recipe.load("svhn-fast").recipe.joint.k
    found = lines(
        [result("svhn-fast", 0, "rankstats", 0.9, changed={"joint.k": own})], "Ranking statistics with other k"
    )
    assert dict(zip(found["k"], found["SVHN"], strict=True))[str(own)] == "90.0 (1)"


def test_the_command_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([ROOT / "benchmarks" / "results"], as_json=False, as_paper=True)
    assert "**What each part does**" in capsys.readouterr().out


def test_runs_of_other_images_have_no_place_in_them() -> None:
    with pytest.raises(UsageError, match="of demo, folder, none of which is in the paper"):
        paper_tables.markdown([result("demo", 0, "rankstats", 0.9), result("folder", 0, "rankstats", 0.9)])
