"""Results of a recipe that has changed since."""

import json
from pathlib import Path
from typing import Any

import pytest

from autonovel import recipe
from autonovel.studies.variants import with_effect
from autonovel.tables import table
from autonovel.tables.as_today import as_today, settings_held
from runs import TINY, autonovel

JOINT = {"split": "held-out test images", "protocols": {}}


def results(*systems: str, sets: tuple[str, ...] = (), **other: Any) -> dict[str, Any]:
    """Return results of cifar10-fast with ``sets``, as if the recipe had said ``other`` at the time."""
    loaded = recipe.load("cifar10-fast", [*sets, f"run.systems={json.dumps(systems)}"])
    scores = {"acc": 0.9, "nmi": 0.5, "ari": 0.5}
    return {
        "recipe": "cifar10-fast", "seed": 0, "systems": dict.fromkeys(systems, scores),
        "seconds": {"total": 1.0}, "incremental": None, "changed": loaded.changed,
        "settings": settings_held(loaded.recipe) | {key.replace("__", "."): value for key, value in other.items()},
    }  # fmt: skip


def changed(found: dict[str, Any]) -> list[tuple[list[str], dict[str, Any]]]:
    return [(list(part["systems"]), with_effect(part["changed"])) for part in as_today(found)]


@pytest.mark.parametrize("name", recipe.names())
def test_results_of_a_recipe_as_it_is_have_nothing_changed(name: str) -> None:
    held = settings_held(recipe.load(name, {"run.systems": ["rankstats", "kmeans"]}).recipe)
    found = results("rankstats", "kmeans") | {"recipe": name, "settings": held}
    assert changed(found) == [(["rankstats", "kmeans"], {})]


def test_what_the_recipe_says_otherwise_today_is_a_change_of_the_systems_that_depend_on_it() -> None:
    found = results("rankstats", "rankstats-incremental", "kmeans", "dtc", joint__k=50)
    assert changed(found) == [(["rankstats"], {"joint.k": 50}), (["rankstats-incremental", "kmeans", "dtc"], {})]
    every = ["rankstats", "kmeans", "kcl"]
    assert changed(results(*every, pretrain__epochs=7)) == [(every, {"pretrain.epochs": 7})]


def test_a_value_given_by_the_caller_that_the_recipe_has_today_is_no_change() -> None:
    own = recipe.load("cifar10-fast").recipe.joint.k
    assert changed(results("rankstats") | {"changed": {"joint.k": own}}) == [(["rankstats"], {})]


def test_what_is_given_and_what_was_once_so_are_told_together() -> None:
    found = results("rankstats", sets=("joint.ce=false",), joint__epochs=9)
    (part,) = as_today(found)
    assert part["changed"] == {"run.systems": ["rankstats"], "joint.ce": False, "joint.epochs": 9}


def test_what_the_caller_gave_is_told_apart_where_the_recipe_has_changed_since() -> None:
    (part,) = as_today(results("rankstats", sets=("joint.ce=false",), joint__epochs=9))
    assert part["given"] == {"run.systems": ["rankstats"], "joint.ce": False}
    for same in (results("rankstats", sets=("joint.ce=false",)), results("rankstats")):
        assert ["given" in part for part in as_today(same)] == [False]
    plain, kmeans = as_today(results("rankstats", "kmeans", joint__epochs=9))  # which does not depend on it
    assert "given" in plain and "given" not in kmeans


def test_what_was_given_and_is_in_the_recipe_by_now_is_not_told() -> None:
    own = recipe.load("cifar10-fast").recipe.joint.k
    (part,) = as_today(results("rankstats", joint__epochs=9) | {"changed": {"joint.k": own, "joint.ce": False}})
    assert part["given"] == {"joint.ce": False}


@pytest.mark.parametrize(
    "setting",
    [
        "joint__compile", "joint__threads", "joint__watch", "joint__decay_at", "supervised__scratch_epochs",
        "count__most", "dtc__epochs", "run__map_points", "about",
    ],
)  # fmt: skip
def test_what_has_no_effect_on_a_system_is_no_change(setting: str) -> None:
    assert changed(results("rankstats", **{setting: 77})) == [(["rankstats"], {})]


@pytest.mark.parametrize(
    ("system", "section"),
    [
        ("kcl", "kcl"), ("kcl", "similarity"), ("kcl", "linear"),
        ("mcl", "mcl"), ("mcl", "similarity"), ("mcl", "linear"),
        ("dtc", "dtc"), ("dtc", "linear"), ("rankstats-incremental", "incremental"), ("kmeans-pretrained", "centres"),
        ("kmeans-pixels", ""), ("kmeans", ""), ("a-system-of-my-own", "joint"), ("a-system-of-my-own", "dtc"),
    ],
)  # fmt: skip
def test_a_system_depends_on_its_own_sections(system: str, section: str) -> None:
    """And of the others' on none, as raw pixels show."""
    every = ("joint", "incremental", "similarity", "kcl", "mcl", "dtc", "linear", "centres")
    own = {f"{part}.lr": 0.077 for part in ([section] if section else every)}
    settings = recipe.flatten(recipe.load("cifar10-fast").recipe) | own
    found = results("kmeans") | {"systems": {system: None}, "settings": settings}
    ((_, differs),) = changed(found)
    assert differs == (own if section else {})


def test_a_count_depends_on_how_it_is_made() -> None:
    found = results("rankstats", sets=("count.new_classes=auto",), count__most=77)
    assert changed(found) == [(["rankstats"], {"count.new_classes": "auto", "count.most": 77})]


def test_a_setting_younger_than_the_results_had_its_default() -> None:
    older = results("rankstats")
    del older["settings"]["joint.fixed_views"]
    assert changed(older) == [(["rankstats"], {"joint.fixed_views": 0})]


def test_a_setting_that_is_gone_is_still_named_where_it_was_given() -> None:
    older = results("rankstats", joint__gone=3) | {"changed": {"joint.gone": 3}}
    assert changed(older) == [(["rankstats"], {"joint.gone": 3})]


def test_incremental_learning_is_named_by_what_was_given() -> None:
    swept = results("rankstats-incremental", sets=("joint.k=50",))
    assert changed(swept) == [(["rankstats-incremental"], {"joint.k": 50})]
    assert changed(swept | {"changed": {}}) == [(["rankstats-incremental"], {"incremental.k": 50})]


def test_weights_from_a_file_need_no_stage_1() -> None:
    sets = ("pretrain.kind=weights", "pretrain.weights=w.safetensors")
    found = results("kmeans", sets=sets, pretrain__epochs=77)
    assert changed(found) == [(["kmeans"], {"pretrain.kind": "weights", "pretrain.weights": "w.safetensors"})]


def test_a_start_without_self_supervision_depends_on_its_own_length_alone() -> None:
    found = results("dtc", sets=("pretrain.kind=supervised",), pretrain__epochs=9, supervised__scratch_epochs=77)
    assert changed(found) == [(["dtc"], {"pretrain.kind": "supervised", "supervised.scratch_epochs": 77})]


def test_where_there_was_no_stage_2_nothing_depends_on_its_settings() -> None:
    no_stage_2 = results("rankstats", supervised__epochs=0, supervised__lr=0.077)
    assert changed(no_stage_2) == [(["rankstats"], {"supervised.epochs": 0})]
    from_scratch = results("rankstats", sets=("pretrain.kind=supervised",), supervised__epochs=0, supervised__lr=0.077)
    assert changed(from_scratch)[0][1]["supervised.lr"] == 0.077


def test_a_preset_is_named_instead_of_all_it_sets() -> None:
    loaded = recipe.load("cifar10", ["preset=paper"])
    found = results("rankstats", "kmeans") | {
        "recipe": "cifar10", "changed": loaded.changed, "settings": settings_held(loaded.recipe),
    }  # fmt: skip
    assert changed(found) == [(["rankstats", "kmeans"], {"preset": "paper"})]


def test_results_that_do_not_hold_their_settings_are_taken_as_they_are() -> None:
    older = {key: value for key, value in results("rankstats", "kmeans").items() if key != "settings"}
    assert as_today(older | {"changed": {"joint.k": 2}}) == [older | {"changed": {"joint.k": 2}}]
    gone = results("rankstats", joint__k=50) | {"recipe": "a-recipe-that-is-gone", "changed": {"joint.ce": False}}
    assert as_today(gone) == [gone]
    for damage in ({"changed": {"preset": ["code"]}}, {"systems": {}}):
        assert as_today(results("rankstats") | damage) == [results("rankstats") | damage]


def test_a_part_has_its_own_joint_classifier() -> None:
    grown = {"rankstats": None, "rankstats-incremental": JOINT, "kmeans": None}
    found = results(*grown, incremental__epochs=3) | {"incremental": JOINT, "joint_classifiers": grown}
    plain, incremental = as_today(found)
    assert (plain["incremental"], plain["joint_classifiers"]) == (None, {"rankstats": None, "kmeans": None})
    assert (incremental["incremental"], with_effect(incremental["changed"])) == (JOINT, {"incremental.epochs": 3})


def test_a_table_does_not_average_over_two_versions_of_a_recipe(tmp_path: Path) -> None:
    for number, found in enumerate([results("rankstats", "kmeans"), results("rankstats", "kmeans", joint__k=50)]):
        (tmp_path / f"seed-{number}.json").write_text(json.dumps(found | {"seed": number}))
    rows = [(row.recipe, row.system, row.seeds) for row in table.rows(table.collect([tmp_path]))]
    assert rows == [
        ("cifar10-fast", "k-means on stage-2 features", (0, 1)),
        ("cifar10-fast", "ranking statistics", (0,)),
        ("cifar10-fast joint.k=50", "ranking statistics", (1,)),
    ]


def test_a_row_has_the_paper_s_number_where_the_recipe_itself_was_run_as_it_was_then() -> None:
    then, given = results("rankstats", joint__epochs=9), results("rankstats", sets=("joint.epochs=9",)) | {"seed": 1}
    (row,) = table.as_json(as_today(then))
    assert (row["recipe"], row["given"], row["paper"]) == ("cifar10-fast joint.epochs=9", "cifar10-fast", "90.4 ± 0.5")
    for runs in ([given], [then, given]):  # somebody else's choice of the same settings
        (row,) = table.as_json([part for one in runs for part in as_today(one)])
        assert (row["recipe"], row["given"], row["paper"]) == (*["cifar10-fast joint.epochs=9"] * 2, None)


def test_a_letter_stands_for_the_settings_of_an_earlier_recipe() -> None:
    then = results("rankstats", sets=("joint.ce=false",), joint__epochs=9, joint__lr=0.5)
    once = results("rankstats", joint__epochs=9)
    text = table.markdown([part for one in (then, once, results("rankstats")) for part in as_today(one)])
    first = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| cifar10-fast")]
    assert first == ["cifar10-fast", "cifar10-fast (a) joint.ce=False", "cifar10-fast joint.epochs=9"]
    assert "- `cifar10-fast` (a): joint.epochs=9 joint.lr=0.5" in text.splitlines()


def test_each_version_of_a_recipe_has_its_letter() -> None:
    versions = [results("rankstats", joint__epochs=epochs, joint__lr=0.5) for epochs in (9, 7)]
    again = results("rankstats", sets=("joint.k=1",), joint__epochs=9, joint__lr=0.5)
    text = table.markdown([part for one in (*versions, again) for part in as_today(one)])
    told = [line for line in text.splitlines() if line.startswith("- `cifar10-fast` (")]
    assert told == [
        "- `cifar10-fast` (a): joint.epochs=7 joint.lr=0.5",
        "- `cifar10-fast` (b): joint.epochs=9 joint.lr=0.5",
    ]
    assert "| cifar10-fast (b) joint.k=1 |" in text


def test_where_results_hold_their_settings_the_recipe_of_today_says_where_it_departs() -> None:
    """What a row differs in stands in its name; sentences that a run has told may have been those of another day."""
    found = results("rankstats", joint__epochs=9) | {"departures": ["of another day"]}
    text = table.markdown(as_today(found)).splitlines()
    assert all(f"- {one}" in text for one in recipe.load("cifar10-fast").recipe.departures)
    assert not any("of another day" in line for line in text)


def test_a_run_holds_its_settings_but_not_where_its_images_lie(tmp_path: Path) -> None:
    finished = autonovel("run", TINY, "--out", tmp_path / "run", "--set", "joint.k=2")
    assert finished.returncode == 0, finished.stderr
    held = json.loads((tmp_path / "run" / "results.json").read_text())["settings"]
    assert held == settings_held(recipe.load(str(TINY), ["joint.k=2"]).recipe)
    assert held["joint.k"] == 2 and not {"data.path", "name", "about", "run.systems"} & held.keys()
