"""Counting in whole runs: the command, --new-classes, Discoverer(n_new="auto"), and what they leave behind."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from autonovel import Discoverer, evaluation, record
from autonovel.counting.counting import begun_with, sampled, taken, wanted, why_taken
from autonovel.counting.words import in_words
from autonovel.data import sources
from autonovel.errors import UsageError
from autonovel.recipe import flatten, load
from autonovel.settings import Count
from autonovel.storage.documents import write_json
from autonovel.studies.variants import adopt_stages
from runs import TINY, autonovel

QUICK = ("--set", "count.most=15", "--set", "count.halves=2")
SEVEN = ("--set", 'data.known=["0", "1", "2", "3", "4", "5", "6"]')


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A recipe counted first, then run with the estimate."""
    run = tmp_path_factory.mktemp("count") / "run"
    told = autonovel("count", TINY, "--out", run, *QUICK)
    assert told.returncode == 0, told.stderr
    return run, told.stdout


def test_count_tells_estimate_range_assumptions_time_and_place(counted: tuple[Path, str]) -> None:
    run, told = counted
    content = read(run / "count.json")
    assert f"About {content['estimate']} new classes, {content['low']} to {content['high']} on halves" in told
    assert "there are 5" in told
    assert "5 known classes are fewer than 6" in told and "silhouette alone decides" in told
    assert all(sentence in told for sentence in content["assumed"])
    assert "s for the count" in told and "count.json" in told and "--new-classes auto" in told
    assert content["low"] <= content["estimate"] <= content["high"] and len(content["halves"]) == 2
    assert content["probes"] == [] and "accuracy" not in content["tops"]
    assert all(point["accuracy"] is None for point in content["curve"])
    assert (run / "count.png").read_bytes().startswith(b"\x89PNG")
    assert read(run / "run.json")["n_new"] is None
    assert not (run / "count").exists()  # nothing was refitted


def test_the_least_of_counts_that_are_as_clear_is_said_to_be_taken(tmp_path: Path) -> None:
    told = autonovel("count", TINY, "--out", tmp_path / "run", *QUICK, "--set", "count.standard_errors=2")
    assert "within 2 standard errors of the highest, the least is taken." in told.stdout


@pytest.mark.parametrize(
    ("estimate", "spare", "number", "said"),
    [
        (20, 0.0, 20, ""),
        (1, 0.0, 2, " (at least two are needed to go on)"),
        (20, 0.15, 23, " Training goes on with 23 of them, 15% to spare (count.spare)."),
        (21, 0.15, 25, " Training goes on with 25 of them, 15% to spare (count.spare)."),  # rounded up
        (50, 0.1, 55, " Training goes on with 55 of them, 10% to spare (count.spare)."),  # not by a rounding error
    ],
)
def test_training_takes_the_estimate_and_what_is_to_spare(estimate: int, spare: float, number: int, said: str) -> None:
    found, settings = {"estimate": estimate}, Count(spare=spare)
    assert taken(found, settings) == number
    assert why_taken(number, found, settings) == said


def test_of_very_many_images_a_sample_is_counted() -> None:
    unlabelled = torch.arange(100) % 4 != 0
    assert sampled(unlabelled, 75, 0) is unlabelled
    some = sampled(unlabelled, 20, 0)
    assert some.sum() == 20 and not some[~unlabelled].any()
    assert torch.equal(some, sampled(unlabelled, 20, 0)) and not torch.equal(some, sampled(unlabelled, 20, 1))


def test_a_count_of_a_sample_says_so(counted: tuple[Path, str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    told = autonovel("count", TINY, "--out", run, *QUICK, "--set", "count.images=120")
    assert told.returncode == 0, told.stderr
    assert "120 of 200 unlabelled images were counted, drawn at random." in told.stdout
    assert "drawn at random" not in counted[1]


@pytest.mark.full
def test_a_run_trains_with_classes_to_spare(counted: tuple[Path, str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    told = autonovel("run", TINY, "--new-classes", "auto", "--out", run, *QUICK, "--set", "count.spare=0.5")
    assert told.returncode == 0, told.stderr
    estimate, number = read(run / "count.json")["estimate"], read(run / "run.json")["n_new"]
    assert estimate == read(counted[0] / "count.json")["estimate"]  # of the classes, not of the head
    assert number == read(run / "results.json")["n_new"] == -(-estimate * 3 // 2)
    assert f"with {number} of them, 50% to spare" in told.stdout


def test_a_run_goes_on_with_the_estimate(counted: tuple[Path, str], tmp_path: Path) -> None:
    run, _ = counted
    before = (run / "stages" / "2-supervised" / "model.safetensors").read_bytes()
    systems = ("--set", 'run.systems=["rankstats-incremental", "kmeans"]')
    other = autonovel("run", TINY, "--new-classes", "auto", "--out", run, "--resume", *QUICK, *systems)
    assert other.returncode == 2 and "other settings" in other.stderr
    told = autonovel("run", TINY, "--new-classes", "auto", "--out", run, "--resume", *QUICK)
    assert told.returncode == 0, told.stderr
    estimate = read(run / "count.json")["estimate"]
    assert "count: " not in told.stdout  # it is not counted twice
    assert read(run / "run.json")["n_new"] == estimate == read(run / "results.json")["n_new"]
    assert read(run / "results.json")["seconds"]["count"] > 0
    assert sum(entry["kind"] == "new" for entry in read(run / "classes.json")["classes"]) == estimate
    assert (run / "stages" / "2-supervised" / "model.safetensors").read_bytes() == before
    page = (run / "report.html").read_text()
    assert 'id="count"' in page and "silhouette alone decides" in page
    assert autonovel("evaluate", run).returncode == 0
    assert Discoverer.load(run).n_new_ == estimate
    again = autonovel("run", TINY, "--new-classes", "auto", "--out", run, "--resume", *QUICK)
    assert "nothing was left to do" in again.stdout
    _count_in_a_finished_run(run)


def _count_in_a_finished_run(run: Path) -> None:
    journal = (run / "metrics.jsonl").read_bytes()
    told = autonovel("count", run, "--set", "count.halves=0", "--set", "count.search=exhaustive")
    assert told.returncode == 0, told.stderr
    content = read(run / "count.json")
    assert content["halves"] == [] and len(content["curve"]) == 14
    assert (run / "metrics.jsonl").read_bytes() == journal  # nothing was trained
    assert "Drawing the report anew" in told.stdout
    as_json = autonovel("count", run, "--set", "count.halves=0", "--json")
    assert json.loads(as_json.stdout)["estimate"] == content["estimate"]


@pytest.mark.slow
def test_with_enough_known_classes_stage_2_is_trained_without_the_probes(tmp_path: Path) -> None:
    run = tmp_path / "run"
    told = autonovel("count", TINY, "--out", run, *SEVEN, *QUICK)
    assert told.returncode == 0, told.stderr
    content = read(run / "count.json")
    assert len(content["probes"]) == 4 and len(content["anchors"]) == 2
    assert content["anchors"] == content["probes"][:2]
    assert all(0 <= point["accuracy"] <= 1 for point in content["curve"])
    assert content["true"] == 3
    assert "4 of 7 known classes played new ones, and stage 2 was trained without them" in told.stdout
    assert not (run / "stages" / "2-supervised").exists()  # the run's own knows all classes: it is not needed here
    assert (run / "stages" / "1-rotation" / "stage.json").exists()
    refitted = run / "count" / "stages" / "2-supervised"
    from safetensors.torch import load_file

    assert load_file(refitted / "model.safetensors")["heads.known.weight"].shape[0] == 3
    assert not (run / "count" / "stages" / "1-rotation").exists()
    weights, mark = (refitted / "model.safetensors").read_bytes(), (refitted / "stage.json").stat().st_mtime_ns
    again = autonovel("count", run)
    assert "2-supervised without probes" not in again.stdout  # taken up, not trained again
    assert (refitted / "stage.json").stat().st_mtime_ns == mark
    other = autonovel("count", run, "--set", "count.probe_share=0.8")
    assert other.returncode == 0 and "2-supervised without probes" in other.stdout
    assert (refitted / "model.safetensors").read_bytes() != weights


@pytest.mark.parametrize("number", [pytest.param(2, marks=pytest.mark.full), 8])
def test_a_number_other_than_the_true_one_is_trained_scored_and_reported(tmp_path: Path, number: int) -> None:
    run = tmp_path / "run"
    told = autonovel(
        "run", TINY, "--new-classes", number, "--out", run, "--set", 'run.systems=["rankstats-incremental"]'
    )
    assert told.returncode == 0, told.stderr
    results = read(run / "results.json")
    assert results["n_new"] == number and results["changed"]["count.new_classes"] == str(number)
    assert 0 < results["systems"]["rankstats-incremental"]["acc"] <= (2 / 5 if number == 2 else 1)
    assert len(results["incremental"]["protocols"]) == 3
    assert len(read(run / "classes.json")["classes"]) == 5 + number
    assert autonovel("evaluate", run).returncode == 0


def test_scores_of_too_few_and_too_many_outputs_by_hand() -> None:
    """Known class 0; new classes 1, 2 and 3, two images each."""
    truth = [0, 0, 1, 1, 2, 2, 3, 3]
    few = evaluation.incremental(truth, [0, 0, 1, 1, 2, 2, 2, 2], 1)
    many = evaluation.incremental(truth, [0, 0, 1, 1, 2, 2, 3, 9], 1)
    for name in few:
        assert few[name].as_dict() == pytest.approx({"old": 1, "new": 4 / 6, "all": 6 / 8})
        assert many[name].as_dict() == pytest.approx({"old": 1, "new": 5 / 6, "all": 7 / 8})


def test_discoverer_counts_and_a_later_fit_takes_it_up(tmp_path: Path) -> None:
    settings = load(str(TINY)).recipe
    images, _, _ = sources.load(settings, 0)
    pixels, y = images.images.numpy().transpose(0, 2, 3, 1), images.y.numpy()
    quick = {"count.most": 12, "count.halves": 0, "joint.epochs": 1, "pretrain.epochs": 1, "supervised.epochs": 1}
    made = Discoverer(
        n_new="auto", recipe=str(TINY), method="kmeans", settings=quick, out=tmp_path / "run", verbose=False
    )
    found = made.fit(pixels, y)
    estimate = read(tmp_path / "run" / "count.json")["estimate"]
    assert found.n_new_ == max(estimate, 2) == len(found.classes_) - 5
    assert set(np.unique(found.labels_[y < 0])) <= set(range(5, 5 + found.n_new_))
    again = Discoverer(**{**made.get_params(), "resume": True}).fit(pixels, y)
    assert again.n_new_ == found.n_new_
    assert found.get_params()["n_new"] == "auto"
    assert autonovel("count", tmp_path / "run").returncode == 2


def test_variants_that_share_stages_share_the_count(tmp_path: Path) -> None:
    def run(name: str, *sets: str) -> Path:
        facts = {
            "format": 1,
            "recipe": flatten(load(str(TINY), sets).recipe),
            "seed": 0,
            "digest": "x",
            "device": "cpu",
        }
        write_json(tmp_path / name / "run.json", facts)
        return tmp_path / name

    base = run("base", "count.new_classes=auto")
    write_json(base / "count.json", {"estimate": 4})
    alike, other = (
        run("alike", "count.new_classes=auto", "joint.k=3"),
        run("other", "count.new_classes=auto", "count.most=9"),
    )
    pretrained = run("pretrained", "count.new_classes=auto", "pretrain.kind=supervised")
    for folder in (alike, other, pretrained):
        adopt_stages(folder, base)
    assert [(folder / "count.json").exists() for folder in (alike, other, pretrained)] == [True, False, False]


@pytest.mark.parametrize("wrong", ["many", 2.5, True, None, -1])
def test_discoverer_refuses_what_is_no_number(wrong: Any) -> None:
    with pytest.raises(UsageError, match="or 'auto'"):
        Discoverer(n_new=wrong).fit(np.zeros((9, 8, 8), dtype=np.uint8), [0, 0, 0, 1, 1, 1, -1, -1, -1])


def test_discoverer_refuses_the_number_in_two_places() -> None:
    with pytest.raises(UsageError, match="n_new"):
        Discoverer(settings={"count.new_classes": "3"}).fit(np.zeros((2, 8, 8), dtype=np.uint8), [0, -1])


def test_a_run_from_before_there_was_a_count_is_still_taken_up(make_images: Any, tmp_path: Path) -> None:
    images, settings = make_images(), load(str(TINY)).recipe
    arguments = (tmp_path, settings, 0, torch.device("cpu"), images, 2, ["autonovel"], {})
    record.begin(*arguments)
    facts = read(tmp_path / "run.json")
    facts["recipe"] = {key: value for key, value in facts["recipe"].items() if not key.startswith("count.")}
    write_json(tmp_path / "run.json", facts)
    facts["recipe"] |= {"about": "other words", "departures": ["said otherwise"]}  # by another version, of the same
    write_json(tmp_path / "run.json", facts)
    record.begin(*arguments)
    assert len(read(tmp_path / "run.json")["parts"]) == 2
    other = load(str(TINY), ["count.new_classes=3"]).recipe
    with pytest.raises(UsageError, match=r"count\.new_classes"):
        record.begin(tmp_path, other, 0, torch.device("cpu"), images, 2, ["autonovel"], {})


def test_a_run_goes_on_with_the_number_it_was_begun_with(tmp_path: Path) -> None:
    assert begun_with(tmp_path) == 0
    for told, number in ((None, 0), (5, 5)):
        write_json(tmp_path / "run.json", {"n_new": told})
        assert begun_with(tmp_path) == number


def test_what_is_wanted() -> None:
    assert wanted(load(str(TINY)).recipe, 5) == 5
    assert wanted(load(str(TINY), ["count.new_classes=7"]).recipe, 5) == 7
    assert wanted(load(str(TINY), ["count.new_classes=auto"]).recipe, 5) is None
    assert in_words({"estimate": 4, "low": 3, "high": 5, "halves": [3, 5], "true": None}) == (
        "About 4 new classes, 3 to 5 on halves of the images."
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nowhere",), "no recipe named"),
        ((TINY.parent,), "not of a run"),
        ((TINY, "--set", "count.new_classes=4"), "nothing to count"),
        ((TINY, "--set", "count.most=1"), "at least 2"),
        ((TINY, "--set", "count.features=other"), "one of metric, pretrained, plain"),
    ],
)
def test_wrong_targets_are_told(arguments: tuple[object, ...], told: str, tmp_path: Path) -> None:
    done = autonovel("count", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and told in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_run_keeps_its_settings_seed_and_folder(counted: tuple[Path, str]) -> None:
    run, _ = counted
    for arguments, told in ((("--set", "joint.k=3"), "only settings of [count]"), (("--seed", 1), "of its own")):
        done = autonovel("count", run, *arguments)
        assert done.returncode == 2 and told in done.stderr
    done = autonovel("count", TINY, "--out", run)
    assert done.returncode == 2 and "holds a run already" in done.stderr


def test_a_count_with_other_settings_does_not_decide(tmp_path: Path) -> None:
    run = tmp_path / "run"
    given = (TINY, "--new-classes", "auto", "--out", run, *QUICK, "--set", "joint.epochs=1", "--keep-going")
    assert autonovel("run", *given, "--stages", "1,2").returncode == 0
    assert autonovel("count", run, "--set", "count.most=3").returncode == 0
    assert read(run / "count.json")["settings"]["most"] == 3
    told = autonovel("run", *given, "--resume")
    assert told.returncode == 0, told.stderr
    assert "counted with other settings than this run has: counting anew" in told.stdout
    assert read(run / "count.json")["settings"]["most"] == 15
    assert read(run / "run.json")["n_new"] == read(run / "count.json")["estimate"]
