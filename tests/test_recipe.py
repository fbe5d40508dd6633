"""Recipes: where values come from, and what is refused at the border."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autonovel import recipe
from autonovel.errors import UsageError
from autonovel.presets import PRESETS
from autonovel.setting_values import as_override
from autonovel.settings import Augment, Joint, Pretrain, Recipe, Stage, Supervised

Writer = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    """Return a writer of recipe files."""

    def written(text: str) -> str:
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return written


def value(loaded: recipe.Loaded, key: str) -> Any:
    return recipe.flatten(loaded.recipe)[key]


def refusal(name: str, overrides: Any = ()) -> str:
    with pytest.raises(UsageError) as error:
        recipe.load(name, overrides)
    return str(error.value)


# ---------------------------------------------------------------------------------------------------
# precedence and sources


@pytest.mark.parametrize(
    ("text", "overrides", "wanted", "source"),
    [
        ("", [], "two", "default: published code"),
        ('preset = "paper"', [], "one", "preset paper"),
        ('preset = "paper"\n[joint]\nbce_views = "two"', [], "two", "recipe mine"),
        ('preset = "paper"\n[joint]\nbce_views = "two"  # as we ran it', [], "two", "as we ran it"),
        ('[joint]\nbce_views = "two"', ["preset=paper"], "one", "preset paper"),
        ('[joint]\nbce_views = "two"', ["preset=paper", "joint.bce_views=two"], "two", "--set"),
        ('[joint]\nbce_views = "two"', ["joint.bce_views=two", "preset=paper"], "two", "--set"),  # in any order
        ('preset = "code"', ["preset=paper"], "one", "preset paper"),
        ("", ["joint.bce_views=one"], "one", "--set"),
        ("", ["joint.bce_views=one", "joint.bce_views=two"], "two", "--set"),  # the last one wins
    ],
)
def test_later_layers_win(write: Writer, text: str, overrides: list[str], wanted: str, source: str) -> None:
    loaded = recipe.load(write(text), overrides)
    assert value(loaded, "joint.bce_views") == wanted
    assert loaded.sources["joint.bce_views"] == source


@pytest.mark.parametrize("overrides", [["preset=paper"], ["preset="]])
def test_a_preset_given_by_set_takes_the_place_of_the_recipe_s_own(write: Writer, overrides: list[str]) -> None:
    loaded = recipe.load(write('preset = "code"'), overrides)
    assert value(loaded, "pretrain.epochs") == 200
    assert loaded.sources["pretrain.epochs"].startswith("default")


def test_every_value_has_a_source(write: Writer) -> None:
    loaded = recipe.load(write("[joint]\nlr = 0.5"), ["preset=code"])
    assert loaded.sources.keys() == recipe.flatten(loaded.recipe).keys()
    assert all(loaded.sources.values())


def test_comments_are_sources(write: Writer) -> None:
    text = """
    about = "digits"  # ours
    departures = [
        "small",
    ]

    [joint]
    lr = 0.25  # tuned on seeds 10-19
    k = 3#  paper, table 4
    weight = 2

    [joint.augment]
    crop = 4  # published code, line 12
    """
    loaded = recipe.load(write(text))
    assert {key: loaded.sources[key] for key in ("about", "joint.lr", "joint.k", "joint.augment.crop")} == {
        "about": "ours",
        "joint.lr": "tuned on seeds 10-19",
        "joint.k": "paper, table 4",
        "joint.augment.crop": "published code, line 12",
    }
    assert loaded.sources["joint.weight"] == "recipe mine"
    assert loaded.sources["departures"] == "recipe mine"


def test_comments_behind_dotted_keys_are_sources(write: Writer) -> None:
    loaded = recipe.load(write("[joint]\naugment.rotate = 0.2  # about 11 degrees"))
    assert value(loaded, "joint.augment.rotate") == 0.2
    assert loaded.sources["joint.augment.rotate"] == "about 11 degrees"


def test_a_number_sign_inside_a_string_is_no_comment(write: Writer) -> None:
    loaded = recipe.load(write('about = "batch #7 of the scanner"'))
    assert value(loaded, "about") == "batch #7 of the scanner"
    assert loaded.sources["about"] == "recipe mine"


def test_a_file_is_named_after_itself_unless_it_says_otherwise(write: Writer) -> None:
    assert recipe.load(write("")).recipe.name == "mine"
    assert recipe.load(write('name = "other"')).recipe.name == "other"


def test_an_empty_recipe_is_the_defaults(write: Writer) -> None:
    loaded = recipe.load(write(""))
    assert recipe.flatten(loaded.recipe) == recipe.flatten(Recipe(name="mine"))


def test_overrides_as_a_mapping() -> None:
    loaded = recipe.load("demo", {"joint.k": 3, "joint.frozen": ("stem",), "data.known": ["7", 8], "joint.lr": 1})
    assert loaded.recipe.joint.k == 3
    assert loaded.recipe.joint.frozen == ("stem",)
    assert loaded.recipe.data.known == ("7", "8")
    assert loaded.recipe.joint.lr == 1.0 and isinstance(loaded.recipe.joint.lr, float)
    assert loaded.sources["joint.k"] == "--set"


@pytest.mark.parametrize(
    ("text", "key", "wanted"),
    [
        ("joint.k=3", "joint.k", 3),
        (" joint.k = 3 ", "joint.k", 3),
        ("joint.lr=1", "joint.lr", 1.0),
        ("joint.lr=5e-2", "joint.lr", 0.05),
        ("joint.ce=false", "joint.ce", False),
        ("joint.batch=merged", "joint.batch", "merged"),
        ('joint.batch="merged"', "joint.batch", "merged"),
        ("joint.frozen=stem", "joint.frozen", ["stem"]),
        ("joint.frozen=stem, block1", "joint.frozen", ["stem", "block1"]),
        ('joint.frozen=["stem", "block1"]', "joint.frozen", ["stem", "block1"]),
        ("joint.frozen=", "joint.frozen", []),
        ("joint.frozen=[]", "joint.frozen", []),
        ("data.known=0,1", "data.known", ["0", "1"]),
        ("data.known=7", "data.known", ["7"]),
        ("data.known=[0, 1]", "data.known", ["0", "1"]),
        ("pretrain.decay_at=[5, 9]", "pretrain.decay_at", [5, 9]),
        ("about=x = y", "about", "x = y"),
        ("joint.augment.crop=2", "joint.augment.crop", 2),
        ("preset=paper", "preset", "paper"),
        ("data.path=2024-01-01", "data.path", "2024-01-01"),
        ("data.path=12:30:00", "data.path", "12:30:00"),
        ("data.path=1_000", "data.path", "1_000"),
        ("data.path=1e5", "data.path", "1e5"),
        ("data.path=true", "data.path", "true"),
        ("data.path='my pictures'", "data.path", "my pictures"),
    ],
)
def test_set_reads_values_as_a_person_types_them(text: str, key: str, wanted: Any) -> None:
    loaded = recipe.load("demo", [text])
    found = value(loaded, key)
    assert found == wanted and type(found) is type(wanted)
    assert loaded.sources[key] == "--set"


# ---------------------------------------------------------------------------------------------------
# refusals


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("joint.groups", "joint.group"),
        ("joint.batchsize", "joint.batch_size"),
        ("jiont.k", "joint.k"),
        ("pretrain.epoch", "pretrain.epochs"),
        ("Data.Size", "data.size"),
    ],
)
def test_an_unknown_key_names_the_nearest(write: Writer, key: str, nearest: str) -> None:
    section, name = key.rsplit(".", 1)
    said = {
        refusal("demo", [f"{key}=1"]),
        refusal("demo", {key: 1}),
        refusal(mine := write(f"[{section}]\n{name} = 1")).removeprefix(f"recipe {mine}: "),
    }
    (words,) = said
    assert f"unknown setting {key!r}. Did you mean {nearest!r}?" in words


def test_an_unknown_key_far_from_all_names_none() -> None:
    said = refusal("demo", ["xyzzy=1"])
    assert "unknown setting 'xyzzy'" in said and "Did you mean" not in said and "autonovel show" in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("joint.k=2.5", ["joint.k", "2.5", "int"]),
        ("joint.k=five", ["joint.k", "'five'", "int"]),
        ("joint.k=true", ["joint.k", "True", "int"]),
        ("joint.k=", ["joint.k", "''", "int"]),
        ("joint.lr=fast", ["joint.lr", "'fast'", "float"]),
        ("joint.lr=true", ["joint.lr", "True", "float"]),
        ("joint.lr=nan", ["joint.lr", "finite number"]),
        ("joint.ce=1", ["joint.ce", "1", "bool"]),
        ("joint.ce=yes", ["joint.ce", "'yes'", "bool"]),
        ("joint.batch=1.5", ["joint.batch", "'1.5'", "fixed, merged"]),
        ("joint.frozen=[1.5]", ["joint.frozen", "1.5", "str"]),
        ("joint.frozen=true", ["joint.frozen", "True", "str"]),
        ("pretrain.decay_at=[1.5]", ["pretrain.decay_at", "1.5", "int"]),
        ("joint.k={a = 1}", ["joint.k", "int"]),
        ("joint.k=2020-01-01", ["joint.k", "int"]),
        # choices
        ("joint.batch=mixed", ["joint.batch", "'mixed'", "fixed, merged"]),
        ("joint.rank_by=size", ["joint.rank_by", "value, magnitude"]),
        ("network.name=lenet", ["network.name", "'lenet'", "resnet18, small, vgg"]),
        ("run.systems=rankstats,magic", ["run.systems", "magic", "rankstats-incremental"]),
        ("pretrain.kind=jigsaw", ["pretrain.kind", "rotation, prototypical, supervised, none, weights"]),
        ("preset=best", ["preset", "'best'", "code, paper"]),
        # bounds
        ("joint.k=0", ["joint.k", "0", "at least 1"]),
        ("joint.lr=-0.1", ["joint.lr", "-0.1", "at least 0"]),
        ("joint.momentum=1.5", ["joint.momentum", "1.5", "at most 1"]),
        ("data.test_fraction=0.95", ["data.test_fraction", "at most 0.9"]),
        ("joint.batch_size=0", ["joint.batch_size", "at least 1"]),
        ("supervised.decay_every=0", ["supervised.decay_every", "at least 1"]),
        ("joint.augment.shear=2", ["augment.shear", "at most 1.5"]),
        # form
        ("joint.k", ["'joint.k'", "section.key=value"]),
        ("=3", ["'=3'", "section.key=value"]),
        ("", ["''", "section.key=value"]),
        ("  =3", ["section.key=value"]),
        # what has no effect
        ("centres.frozen=stem", ["frozen_batchnorm and compile have no effect"]),
        ("centres.compile=true", ["have no effect"]),
        ("linear.frozen_batchnorm=eval", ["have no effect"]),
        ("linear.augment.flip=true", ["augment has no effect"]),
        # names that lead elsewhere, numbers of many digits
        ("name=../elsewhere", ["name is '../elsewhere'", "no slashes"]),
        ("name=..", ["give it letters"]),
        (f"count.new_classes={'9' * 5000}", ["a whole number from 2 on"]),
    ],
)
def test_what_is_refused_and_in_which_words(text: str, words: list[str]) -> None:
    said = refusal("demo", [text])
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[joint\nk = 3", ["not valid TOML", "line 1"]),
        ("k = = 3", ["not valid TOML"]),
        ("[joint]\nk = 3\nk = 4", ["not valid TOML"]),
        ("[joint]\nk = 'three'", ["joint.k", "int"]),
        ("joint = 3", ["unknown setting 'joint'"]),
        ("preset = 'best'", ["no preset 'best'", "code, paper"]),
        ("preset = 1", ["no preset '1'"]),
        ("[preset]\nname = 'code'", ["unknown setting 'preset.name'"]),
        ("[[joint]]\nk = 3", ["unknown setting 'joint'"]),
    ],
)
def test_bad_recipe_files(write: Writer, text: str, words: list[str]) -> None:
    said = refusal(write(text))
    for word in words:
        assert word in said


def test_a_missing_recipe_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path / "folder.toml"):
        if path.name == "folder.toml":
            path.mkdir()
        said = refusal(str(path))
        assert str(path) in said and "demo" in said


@pytest.mark.parametrize(("name", "hint"), [("dmeo", "Did you mean 'demo'?"), ("xyz", "Recipes: "), ("", "Recipes: ")])
def test_an_unknown_recipe_names_the_others(name: str, hint: str) -> None:
    said = refusal(name)
    assert f"no recipe named {name!r}" in said and hint in said and "demo" in said


def test_a_recipe_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(b"about = '\xff\xfe'")
    assert "not UTF-8" in refusal(str(tmp_path / "mine.toml"))


KEYS = st.sampled_from(sorted(set(recipe.default_values()) - {"preset"}))
VALUES = st.one_of(
    st.text(max_size=12),
    st.integers(-(10**20), 10**20).map(str),
    st.floats().map(str),
    st.sampled_from(["true", "false", "[]", "[1, 2]", '["a"]', "{a = 1}", "1e400", "-inf", "''", "a,b,,c", "07:30:00"]),
)


@given(KEYS | st.text(max_size=8) | st.sampled_from(["joint", "joint.", ".", "preset.x"]), VALUES)
@example("joint.frozen", "[[1], {a = 2}]")
@example("joint.k", "1\n[x]\ny = 2")
@example("joint.lr", "1e400")
@example("preset", "[")
@example("preset", "1.5")
def test_any_set_is_taken_or_refused_in_our_words(key: str, text: str) -> None:
    try:
        loaded = recipe.load("demo", [f"{key}={text}"])
    except UsageError as error:
        assert len(str(error)) > 10
    else:
        recipe.restore(json.loads(json.dumps(recipe.flatten(loaded.recipe))))


@pytest.mark.parametrize(
    "text",
    ['preset=["code"]', "preset={a = 1}", "joint.lr=1" + "0" * 400, "joint.k=1" + "0" * 5000, "joint.k=" + "[" * 3000],
    ids=["a list of presets", "a table of presets", "a huge rate", "a huge number", "deep brackets"],
)
def test_odd_values_are_refused_in_our_words(text: str) -> None:
    assert text.partition("=")[0] in refusal("demo", [text])


@pytest.mark.parametrize("systems", ["", "[]", "kmeans-pixels"])
def test_the_first_system_must_be_one_that_can_deliver(systems: str) -> None:
    assert "run.systems" in refusal("demo", [f"run.systems={systems}"])


def test_infinity_is_no_setting() -> None:
    assert "joint.lr" in refusal("demo", ["joint.lr=inf"])


# ---------------------------------------------------------------------------------------------------
# flatten and restore


@pytest.mark.parametrize("overrides", [[], ["preset=code"], ["preset=paper", "joint.frozen=stem", "data.known=a,b"]])
def test_flatten_and_restore_are_inverse(overrides: list[str]) -> None:
    made = recipe.load("demo", overrides).recipe
    through_json = json.loads(json.dumps(recipe.flatten(made)))
    assert recipe.restore(through_json) == made


def test_flatten_names_every_setting_once() -> None:
    flat = recipe.flatten(Recipe())
    stages = len(fields(Stage)) - 1 + len(fields(Augment))
    own = {kind: len(fields(kind)) - len(fields(Stage)) for kind in (Pretrain, Supervised, Joint)}
    assert sum(key.startswith("joint.") for key in flat) == stages + own[Joint]
    assert sum(key.startswith("pretrain.") for key in flat) == stages + own[Pretrain]
    assert sum(key.startswith("supervised.") for key in flat) == stages + own[Supervised]
    assert flat["joint.augment.crop"] == 0 and flat["joint.frozen"] == ["stem", "block1", "block2", "block3"]


def test_restore_fills_settings_that_were_not_written() -> None:
    assert recipe.restore({"joint.k": 7}).joint.k == 7
    assert recipe.restore({}) == Recipe()


@pytest.mark.parametrize("values", [{"joint.kk": 3}, {"joint.k": "3"}, {"joint.k": 0}, {"joint.batch": "x"}])
def test_restore_refuses_what_it_does_not_know(values: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"joint\."):
        recipe.restore(values)


# ---------------------------------------------------------------------------------------------------
# presets: the differences between paper and published code

CODE_AND_PAPER = {
    "joint.bce_views": ("two", "one"),  # one-view BCE with its diagonal
    "joint.consistency_on": ("all", "own"),  # each head on its own images
    "joint.consistency_over_classes": ("mean", "sum"),
    "joint.new_bias": ("below", "random"),  # all new head rows random
    "pretrain.rotations": ("four", "one"),  # one random rotation per image
    "joint.rank_by": ("value", "magnitude"),
    "joint.batch": ("merged", "merged"),
    "joint.views": ("separate", "separate"),
    "joint.ramp_by": ("epoch", "epoch"),
    "joint.group": (0, 0),  # not in the paper
    "joint.group_per_class": (0.0, 0.0),  # not in the paper
    "joint.starts": (1, 1),  # not in the paper
    "joint.fixed_views": (0, 0),  # not in the paper
    "joint.rebalance": (False, False),  # not in the paper
    "pretrain.label_weight": (0.0, 0.0),  # not in the paper
}


@pytest.mark.parametrize("key", CODE_AND_PAPER)
def test_presets_set_every_difference(key: str, write: Writer) -> None:
    """Also where a recipe says otherwise, or the defaults change."""
    for preset, wanted in zip(("code", "paper"), CODE_AND_PAPER[key], strict=True):
        assert PRESETS[preset][key] == wanted
        loaded = recipe.load(write("[joint]\ngroup = 16\nbatch = 'fixed'\nviews = 'joint'"), [f"preset={preset}"])
        assert value(loaded, key) == wanted
        assert loaded.sources[key] == f"preset {preset}"


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("pretrain.schedule_ahead", 1),
        ("supervised.schedule_ahead", 1),
        ("joint.schedule_ahead", 1),
    ],
)
def test_the_code_preset_repeats_the_schedules_of_the_published_code(write: Writer, key: str, code: int) -> None:
    assert value(recipe.load(write('preset = "code"')), key) == code
    assert value(recipe.load(write('preset = "paper"')), key) == recipe.default_values()[key] != code


def test_the_paper_preset_has_batches_of_128(write: Writer) -> None:
    assert value(recipe.load(write("[joint]\nbatch_size = 32"), ["preset=paper"]), "joint.batch_size") == 128


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("pretrain.nesterov", True),
        ("pretrain.weight_decay", 5e-4),
        ("pretrain.decay_at", [60, 120, 160, 200]),
        ("pretrain.decay_factor", 0.2),
        ("supervised.epochs", 100),
        ("supervised.decay_every", 10),
        ("supervised.decay_factor", 0.5),
        ("supervised.nesterov", False),
        ("supervised.weight_decay", 1e-4),
        ("joint.epochs", 200),
        ("joint.batch_size", 128),
        ("joint.decay_every", 170),
        ("joint.decay_factor", 0.1),
        ("joint.lr", 0.1),
        ("joint.momentum", 0.9),
        ("joint.k", 5),
        ("joint.weight", 5.0),
        ("joint.ramp_epochs", 50.0),
        ("joint.pseudo_weight", 0.05),
        ("joint.frozen", ["stem", "block1", "block2", "block3"]),
        ("joint.frozen_batchnorm", "train"),
        ("supervised.frozen", ["stem", "block1", "block2", "block3"]),
        ("network.name", "resnet18"),
    ],
)
def test_defaults_are_the_published_ones_for_cifar10(key: str, wanted: Any) -> None:
    assert recipe.flatten(Recipe())[key] == wanted


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_names_settings_that_exist(preset: str) -> None:
    made = recipe.load("demo", [f"preset={preset}"]).recipe
    assert {key: recipe.flatten(made)[key] for key in PRESETS[preset]} == PRESETS[preset]
    assert made.preset == preset


# ---------------------------------------------------------------------------------------------------
# what a reader sees


def test_the_demo_is_a_packaged_recipe() -> None:
    assert "demo" in recipe.names()
    assert recipe.names() == sorted(recipe.names())


@pytest.mark.parametrize("name", recipe.names())
def test_every_setting_has_a_meaning_and_a_source(name: str) -> None:
    loaded, meaning = recipe.load(name), recipe.documentation()
    flat = recipe.flatten(loaded.recipe)
    assert meaning.keys() == flat.keys() == loaded.sources.keys()
    for key in flat:
        assert len(meaning[key]) >= 8, key
        assert len(loaded.sources[key]) >= 3, key
    changed = [key for key in flat if flat[key] != recipe.flatten(Recipe())[key]]
    assert changed
    for key in changed:
        assert not loaded.sources[key].startswith("default"), key


@pytest.mark.parametrize("name", recipe.names())
def test_every_number_of_a_recipe_has_its_source_or_a_reason(name: str) -> None:
    loaded = recipe.load(name)
    for key, value in recipe.flatten(loaded.recipe).items():
        number = isinstance(value, int | float) or (isinstance(value, list) and all(isinstance(v, int) for v in value))
        if number:
            assert not loaded.sources[key].startswith("recipe "), f"{key} = {value} has no comment behind it"


@pytest.mark.parametrize("name", recipe.names())
def test_packaged_recipes_say_what_they_are(name: str) -> None:
    made = recipe.load(name).recipe
    assert made.name == name
    assert len(made.about) > 10
    assert all(len(departure) > 10 for departure in made.departures)


def test_the_demo_says_how_long_it_takes_and_where_it_departs_from_the_paper() -> None:
    made = recipe.load("demo").recipe
    assert "minute" in made.minutes
    assert len(made.departures) >= 3


def test_departures_that_a_caller_takes_back_are_not_said(write: Writer) -> None:
    text = 'departures = ["always", "two passes [joint.views]", "as run [preset]", "both [joint.k, joint.group]"]'
    assert recipe.load(write(text)).recipe.departures == ("always", "two passes", "as run", "both")
    assert recipe.load(write(text), ["joint.group=4"]).recipe.departures == ("always", "two passes", "as run")
    assert recipe.load(write(text), ["preset=paper"]).recipe.departures == ("always",)
    with pytest.raises(UsageError, match=r"no setting\. Did you mean 'joint.views'"):
        recipe.load(write('departures = ["two passes [joint.view]"]'))


@pytest.mark.parametrize("taken_back", ["pretrain.label_weight=0", "pretrain.kind=supervised", "preset=paper"])
def test_labels_in_stage_1_are_said_where_there_are_such(taken_back: str) -> None:
    said = "stage 1 learns the known classes beside the rotations"
    assert said in recipe.load("cifar100-fast").recipe.departures
    assert said not in recipe.load("cifar100-fast", [taken_back]).recipe.departures


def test_classes_that_a_caller_replaces_are_not_what_a_recipe_is_about(write: Writer) -> None:
    text = 'about = "digits: 0 known, 1 new [data.known, data.new]"'
    assert recipe.load(write(text)).recipe.about == "digits: 0 known, 1 new"
    assert recipe.load(write(text), ['data.known=["1"]']).recipe.about == "digits"
    assert recipe.load(write(text), ["joint.k=3"]).recipe.about == "digits: 0 known, 1 new"
    assert recipe.load("svhn-fast").recipe.about == "SVHN in minutes: digits 0-4 known, 5-9 new"
    assert recipe.load("cifar100", ["data.first_known=60"]).recipe.about == "CIFAR-100"
    assert recipe.load("demo").recipe.about.endswith("5,000 MNIST digits, 0-4 known, 5-9 to be discovered")
    assert recipe.load("demo", ["data.source=svhn"]).recipe.about == "a small network"


@pytest.mark.parametrize("name", recipe.names())
def test_naming_the_preset_that_a_recipe_has_changes_nothing(name: str) -> None:
    own = recipe.load(name)
    assert recipe.load(name, {"preset": own.recipe.preset}) == own


@pytest.mark.parametrize("name", ["cifar10-fast", "cifar100-fast", "svhn-fast"])
@pytest.mark.parametrize("preset", ["code", "paper"])
def test_a_preset_switches_off_what_neither_paper_nor_published_code_have(name: str, preset: str) -> None:
    made = recipe.load(name, {"preset": preset}).recipe
    for stage in (made.joint, made.incremental):
        assert (stage.frozen_batchnorm, stage.fixed_views, stage.group) == ("train", 0, 0)
        assert (stage.after, stage.rebalance) == ("supervised", False)
    said = " ".join(made.departures)
    assert not any(word in said for word in ("fixed BatchNorm", "a shift of the new classes", "goes on from joint"))


def test_what_a_recipe_says_of_learning_after_joint_training_is_about_that_alone() -> None:
    own = recipe.load("svhn-fast").recipe
    assert own.incremental.after == "joint" and own.incremental.epochs < own.joint.epochs
    as_one = recipe.load("svhn-fast", {"incremental.after": "supervised"}).recipe
    assert as_one.incremental == as_one.joint
    given = recipe.load("svhn-fast", {"incremental.after": "supervised", "incremental.epochs": 7}).recipe
    assert given.incremental.epochs == 7


@pytest.mark.parametrize(
    "name", [name for name in recipe.names() if recipe.load(name).recipe.pretrain.kind != "weights"]
)
def test_a_preset_does_not_leave_a_departure_said_that_it_takes_back(name: str) -> None:
    for preset in {"code", "paper"} - {recipe.load(name).recipe.preset}:
        said = " ".join(recipe.load(name, {"preset": preset}).recipe.departures)
        assert "follows the code" not in said and "in groups of" not in said


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "svhn", "cifar10-fast", "cifar100-fast", "svhn-fast"])
def test_the_paper_s_preset_does_not_say_what_it_switches_off(name: str) -> None:
    own, paper = (" ".join(recipe.load(name, sets).recipe.departures) for sets in ([], ["preset=paper"]))
    for said in ("follows the code", "both views in one pass", "in groups of"):
        assert said not in paper
    assert ("follows the code" in own) != ("both views in one pass" in own)
    assert "[" not in own + paper


def test_incremental_is_as_joint_unless_set() -> None:
    loaded = recipe.load("cifar100", ["joint.k=3", "incremental.lr=0.07"])
    r = loaded.recipe
    assert (r.joint.epochs, r.incremental.epochs) == (200, 400)
    assert (r.joint.weight, r.incremental.weight) == (50, 25)
    assert (r.joint.k, r.incremental.k) == (3, 3)
    assert (r.joint.lr, r.incremental.lr) == (0.1, 0.07)
    assert r.incremental.augment == r.joint.augment
    assert loaded.sources["incremental.k"] == "as joint"
    assert loaded.sources["incremental.epochs"] == "published code"


def test_the_paper_keeps_all_settings_with_incremental_learning() -> None:
    r = recipe.load("cifar100", ["preset=paper"]).recipe
    assert r.incremental == r.joint
    assert recipe.load("cifar100", ["preset=paper", "incremental.epochs=3"]).recipe.incremental.epochs == 3


def test_what_the_caller_changed_is_told_but_not_where_images_lie() -> None:
    loaded = recipe.load("cifar10", ["joint.k=3", "data.path=/somewhere"])
    assert loaded.changed == {"joint.k": 3}


def test_an_epoch_of_the_labelled_images_needs_fixed_batches() -> None:
    assert "one of all, labelled. (Their number is another setting: epochs.)" in refusal("demo", ["joint.epoch=3"])
    assert "joint.epoch is labelled" in refusal("cifar10", ["joint.epoch=labelled"])
    assert recipe.load("omniglot").recipe.joint.epoch == "labelled"
    as_printed = recipe.load("omniglot", ["preset=paper"]).recipe.joint
    assert (as_printed.epoch, as_printed.batch, as_printed.batch_size) == ("all", "merged", 128)


@pytest.mark.parametrize("text", ["2024-01-01", "1_000", "a = b", "'quoted'", 'a "b" c', "ü\x7f", "back\\slash", "#no"])
def test_an_override_is_read_as_the_value_it_was_made_of(text: str) -> None:
    assert recipe.parse_overrides([as_override("data.path", text)]) == {"data.path": text}


def test_views_computed_beforehand_leave_nothing_else_to_set() -> None:
    assert "augment.cached picks among views" in refusal("photos", ["joint.augment.flip=true"])
    assert value(recipe.load("photos", ["joint.augment.flip=true", "joint.augment.cached=false"]), "joint.augment.flip")


def test_a_recipe_extends_another_as_if_a_caller_had_given_what_it_says(write: Writer) -> None:
    mine = write('extends = "cifar10-fast"\n[joint]\nk = 5  # as the paper\nepochs = 3\n')
    loaded, told = recipe.load(mine), recipe.load("cifar10-fast", ["joint.k=5", "joint.epochs=3"])
    assert recipe.flatten(loaded.recipe) == recipe.flatten(told.recipe) | {"name": "mine"}
    assert loaded.changed == {}  # it is a recipe of its own
    assert [loaded.sources[key] for key in ("joint.k", "joint.epochs", "joint.group")] == [
        "as the paper",
        "recipe mine",
        told.sources["joint.group"],
    ]
    assert recipe.load(mine, ["joint.k=2"]).changed == {"joint.k": 2}


def test_a_recipe_says_what_it_departs_in_beyond_the_one_it_extends(write: Writer) -> None:
    theirs = recipe.load("cifar10-fast", ["joint.k=5"]).recipe.departures
    about = 'extends = "cifar10-fast"\nabout = "mine"\ndepartures = ["larger steps [joint.lr]"]\n'
    mine = write(about + "[joint]\nk = 5\nlr = 0.3\n")
    assert recipe.load(mine).recipe.departures == (*theirs, "larger steps")
    assert recipe.load(mine, ["joint.lr=0.1"]).recipe.departures == theirs
    assert recipe.load(mine).recipe.about == "mine"
    assert recipe.load(mine).sources["about"] == "recipe mine"


def test_recipes_extend_recipes_by_paths_from_where_they_lie(write: Writer, tmp_path: Path) -> None:
    first = write('extends = "demo"\n[joint]\nk = 7\nepochs = 9\n')
    (tmp_path / "below").mkdir()
    second = tmp_path / "below" / "second.toml"
    second.write_text(f'extends = "../{Path(first).name}"\n[joint]\nepochs = 4\n')
    loaded = recipe.load(str(second))
    assert [value(loaded, key) for key in ("name", "joint.k", "joint.epochs", "network.name")] == [
        "second", 7, 4, "small",
    ]  # fmt: skip
    assert loaded.sources["joint.k"] == "recipe mine"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([], ("code", "cifar10", ["cat", "dog"], "one")),
        (["preset=code"], ("code", "cifar10", ["cat", "dog"], "one")),
        (["preset=paper"], ("paper", "cifar10", ["cat", "dog"], PRESETS["paper"]["joint.bce_views"])),
        (["data.source=svhn"], ("code", "svhn", [], "one")),
    ],
    ids=lambda entry: " ".join(entry) if isinstance(entry, list) else "",
)
def test_a_caller_s_preset_and_images_take_the_place_of_a_recipe_s_that_extends(
    write: Writer, given: list[str], wanted: tuple[Any, ...]
) -> None:
    own = 'preset = "code"\n[data]\nsource = "cifar10"\nknown = ["cat", "dog"]\n[joint]\nbce_views = "one"\n'
    for text in (own, f'extends = "demo"\n{own}'):  # as with a recipe that extends none
        loaded = recipe.load(write(text), given)
        keys = ("preset", "data.source", "data.known", "joint.bce_views")
        assert tuple(value(loaded, key) for key in keys) == wanted


@pytest.mark.parametrize(
    "given",
    [
        {}, {"joint.lr": 0.2}, {"preset": "paper"}, {"preset": "code"}, {"preset": "paper", "joint.lr": 0.2},
        {"preset": "code", "joint.lr": 0.2}, {"joint.k": 9}, {"about": "caller"}, {"departures": ["none"]},
        {"incremental.lr": 0.01, "joint.lr": 0.2}, {"incremental.after": "joint", "joint.lr": 0.2},
        {"incremental.after": "supervised"}, {"incremental.after": "supervised", "joint.lr": 0.2},
        {"joint.after": "supervised"}, {"joint.after": "joint", "joint.lr": 0.2}, {"data.source": "svhn"},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("after", ["", "supervised", "joint"])
@pytest.mark.parametrize("preset", ["", "code", "paper"])
def test_a_caller_is_heard_as_by_a_recipe_that_extends_none(
    write: Writer, tmp_path: Path, given: dict[str, Any], preset: str, after: str
) -> None:
    base = '[data]\nsource = "sample"\nknown = ["0", "1"]\n[supervised]\nepochs = 9\n'
    first = 'about = "mine: five [joint.k]"\ndepartures = ["two [joint.lr]"]\n' + f'preset = "{preset}"\n' * bool(
        preset
    )
    then = "[joint]\nk = 5\n[incremental]\nlr = 0.07\n" + f'after = "{after}"\n' * bool(after)
    plain = recipe.load(write(first + base + then), given)
    Path(write(base)).rename(tmp_path / "base.toml")
    extending = recipe.load(write(f'extends = "base.toml"\n{first}{then}'), given)
    assert (extending.recipe, extending.changed) == (plain.recipe, plain.changed)


@pytest.mark.parametrize("taken_back", [["incremental.after=supervised"], ["preset=code"], ["preset=paper"]])
def test_what_is_said_over_a_training_after_joint_training_is_about_that_alone(
    write: Writer, tmp_path: Path, taken_back: list[str]
) -> None:
    mine = write('extends = "svhn-fast"\n[incremental]\nepochs = 40\n')
    assert value(recipe.load(mine), "incremental.epochs") == 40
    as_one = recipe.load(mine, taken_back).recipe
    assert as_one.incremental.epochs == as_one.joint.epochs
    above = tmp_path / "above.toml"
    above.write_text('extends = "mine.toml"\n[incremental]\nafter = "supervised"\n')
    assert value(recipe.load(str(above)), "incremental.epochs") == as_one.joint.epochs


def test_another_source_takes_back_which_classes_are_new(write: Writer) -> None:
    mine = write('extends = "cifar10-fast"\n[data]\nnew = ["truck"]\n')
    assert value(recipe.load(mine), "data.new") == ["truck"]
    assert value(recipe.load(mine, ["data.source=svhn"]), "data.new") == []


def test_what_a_recipe_below_says_of_incremental_learning_yields_to_joint_training_above(
    write: Writer, tmp_path: Path
) -> None:
    write('extends = "demo"\n[incremental]\nlr = 0.07\n')
    above = tmp_path / "above.toml"
    above.write_text('extends = "mine.toml"\n[joint]\nlr = 0.3\n')
    assert value(recipe.load(str(above)), "incremental.lr") == 0.3


def test_a_mistake_of_the_caller_blames_no_recipe() -> None:
    assert refusal("demo", ["data.first_known=3"]).startswith("data.known and first_known are both set")
    assert refusal("omniglot", ["joint.batch=merged"]).startswith("joint.epoch is labelled")


def test_a_sentence_about_no_setting_names_the_file_that_has_it(write: Writer, tmp_path: Path) -> None:
    mine = write('departures = ["another loss [joint.kk]"]')
    (tmp_path / "above.toml").write_text('extends = "mine.toml"\n')
    for asked in (mine, str(tmp_path / "above.toml")):
        assert refusal(asked).startswith(f"recipe {mine}: 'another loss [joint.kk]' is about")


@pytest.mark.parametrize(
    ("text", "given", "words"),
    [
        ("[joint]\nkk = 3", [], "mine.toml: unknown setting 'joint.kk'"),
        ("[joint]\nk = 0", [], "mine.toml: joint.k is 0; it must be at least 1"),
        ("[joint]\nk = 0", ["joint.k=-1"], "joint.k is -1; it must be at least 1"),
        ('preset = "best"', [], "mine.toml: no preset 'best'"),
        ("[joint]\nbce = 3", [], "mine.toml: joint.bce is 3; it must be of type bool"),
    ],
)
def test_a_mistake_in_a_file_names_the_file(
    write: Writer, tmp_path: Path, text: str, given: list[str], words: str
) -> None:
    write(text)
    above = tmp_path / "above.toml"
    above.write_text('extends = "mine.toml"\n[joint]\nepochs = 4\n')
    said = refusal(str(above), given)
    wanted = words if given else f"recipe {tmp_path}/{words}"
    assert said.startswith(wanted), said


@pytest.mark.parametrize("text", ['name = "cifar10-fast"', 'name = "demo"\nextends = "photos"'])
def test_no_file_passes_for_a_recipe_of_the_package(write: Writer, tmp_path: Path, text: str) -> None:
    assert "as one of the package is" in refusal(write(text))
    assert "as one of the package is" in refusal(write('name = " demo "'))
    assert "as one of the package is" in refusal(write(""), ["name=demo"])
    assert "as one of the package is" in refusal("demo", ["name=photos"])
    Path(write("")).rename(tmp_path / "svhn.toml")
    said = refusal(str(tmp_path / "svhn.toml"))
    assert "is called svhn" in said and "rename the file, or let it say another name" in said


@pytest.mark.parametrize(
    ("preset", "given"), [("code", []), ("", []), ("code", ["preset=code"]), ("code", ["preset="])]
)
def test_a_preset_that_is_replaced_takes_nothing_back(
    write: Writer, tmp_path: Path, preset: str, given: list[str]
) -> None:
    """The paper's would take back what the first recipe says of incremental learning."""
    write('extends = "demo"\n[incremental]\nlr = 0.07\n')
    (tmp_path / "printed.toml").write_text('extends = "mine.toml"\npreset = "paper"\n')
    assert value(recipe.load(str(tmp_path / "printed.toml")), "incremental.lr") != 0.07
    (tmp_path / "above.toml").write_text(f'extends = "printed.toml"\npreset = "{preset}"\n')
    replaced = recipe.load(str(tmp_path / "above.toml"), given)
    plain = recipe.load(str(tmp_path / "mine.toml"), [f"preset={value(replaced, 'preset')}"])
    assert value(replaced, "incremental.lr") == 0.07
    there, here = recipe.flatten(replaced.recipe), recipe.flatten(plain.recipe)
    assert there | {"name": ""} == here | {"name": ""}


def test_how_long_a_recipe_takes_is_not_said_where_its_lengths_were_changed(write: Writer) -> None:
    assert "minutes" in value(recipe.load("demo"), "minutes")
    assert "minutes" in value(recipe.load("demo", ["joint.k=7"]), "minutes")
    assert value(recipe.load("demo", ["joint.epochs=500"]), "minutes") == ""
    assert value(recipe.load(write('extends = "demo"\n[pretrain]\nepochs = 200')), "minutes") == ""
    own = 'extends = "demo"\nminutes = "an hour"\n[joint]\nepochs = 200'
    assert value(recipe.load(write(own)), "minutes") == "an hour"


def test_recipes_in_a_linked_folder_extend_what_lies_beside_them(tmp_path: Path) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "real" / "base.toml").write_text('extends = "demo"\n[joint]\nk = 7\n')
    (tmp_path / "real" / "deep" / "mine.toml").write_text('extends = "../base.toml"\n')
    (tmp_path / "link").symlink_to(Path("real") / "deep")
    assert value(recipe.load(str(tmp_path / "link" / "mine.toml")), "joint.k") == 7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('extends = "cifar11"', ["mine.toml extends cifar11: no recipe named 'cifar11'", "cifar10"]),
        ('extends = "mine.toml"', ["extend each other in a circle", "mine.toml"]),
        ("extends = 3", ["extends is 3", "name a recipe"]),
        ('extends = "demo"\ndepartures = ["one [joint.kk]"]', ["joint.kk", "no setting"]),
        ('extends = "demo"\n[joint]\nkk = 3', ["joint.kk", "joint.k"]),
        ('extends = "mine"', ["no recipe named 'mine'", "Of the file", 'say extends = "mine.toml"']),
        ('extends = "gone.toml"', ["no recipe file", "gone.toml"]),
        ('extends = "./below/../mine.toml"', ["extend each other in a circle"]),
        (f'extends = "{300 * "a"}.toml"', ["cannot be read", "too long"]),
        ("[extends]", ["extends is {}"]),
        ('extends = "nul\\u0000.toml"', ["no recipe file"]),
        ('extends = "demo"\nabout = "mine: five [joint.kk]"', ["joint.kk", "no setting"]),
    ],
)
def test_what_cannot_be_extended_is_said(write: Writer, text: str, words: list[str]) -> None:
    said = refusal(write(text))
    assert all(word in said for word in words), said
