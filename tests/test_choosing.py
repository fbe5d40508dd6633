"""Trials on known classes choose the system that delivers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from autonovel import choosing, recipe
from autonovel.data import ImageSet
from autonovel.data.streamed import HostPixels
from autonovel.errors import GuardError
from autonovel.job import Job
from autonovel.storage.documents import write_json
from autonovel.systems import Found, run_system
from runs import TINY, autonovel
from test_pretrained_kmeans import cached_classes


class Heard:
    """A display that remembers what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.stages: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def begin(self, stage: str, total: int, done: int, of: str = "steps") -> None:
        self.stages.append(stage)

    def update(self, stage: str, done: int, terms: dict[str, float], images_per_second: float) -> None:
        pass

    def end(self, stage: str) -> None:
        pass


def job(folder: Path, images: ImageSet, display: Heard, **changes: object) -> Job:
    own = {"supervised.epochs": 2, "supervised.batch_size": 8, "joint.epochs": 2, "joint.batch_size": 16,
           "centres.batch_size": 32, "run.trials": 2} | changes  # fmt: skip
    settings = recipe.load("photos", own).recipe
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "run.json", {"format": 1, "primary": "rankstats-incremental"})
    return Job(settings, images, None, 3, 0, torch.device("cpu"), folder, display)


def test_the_better_system_on_hidden_known_classes_delivers(tmp_path: Path) -> None:
    heard = Heard()
    made = job(tmp_path, cached_classes(n_known=6, each=16), heard)
    # features that separate all classes, and joint training that has no time: k-means must win
    assert choosing.systems_in_order(made) == ("kmeans-pretrained", "rankstats-incremental")
    content = json.loads((tmp_path / "choice.json").read_text())
    assert len(content["trials"]) == 2 and all(len(trial["hidden"]) == 3 for trial in content["trials"])
    assert content["trials"][0]["hidden"] != content["trials"][1]["hidden"]
    assert content["means"]["kmeans-pretrained"] > content["means"]["rankstats-incremental"]
    assert "Chose k-means on pretrained features" in heard.said[-1] and "found again" in heard.said[-1]
    assert any(stage.startswith("trial 2 of 2: ") for stage in heard.stages)
    assert json.loads((tmp_path / "run.json").read_text())["primary"] == "kmeans-pretrained"
    assert not (tmp_path / "choice").exists()
    n_stages = len(heard.stages)
    assert choosing.systems_in_order(made)[0] == "kmeans-pretrained" and len(heard.stages) == n_stages  # no second time
    assert choosing.seconds_spent(made)["trials"] == content["seconds"]


def test_a_system_that_fails_its_trial_does_not_deliver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def collapse(trial: Job, name: str, folder: Path) -> Found:
        if name == "rankstats-incremental":
            raise GuardError("all in one class")
        return run_system(trial, name, folder)

    monkeypatch.setattr(choosing, "run_system", collapse)
    heard = Heard()
    made = job(tmp_path, cached_classes(n_known=4, each=20), heard, **{"run.trials": 1})
    assert choosing.systems_in_order(made)[0] == "kmeans-pretrained"
    assert any("failed: all in one class" in text for text in heard.said)


def test_trials_that_cannot_be_made_are_told_of_and_pretrained_features_deliver(tmp_path: Path) -> None:
    heard = Heard()
    few = job(tmp_path / "few", cached_classes(n_known=3), heard)
    assert choosing.systems_in_order(few) == ("kmeans-pretrained", "rankstats-incremental")
    assert "takes 4 known classes, and there are 3" in heard.said[-1]
    assert "Chose k-means on pretrained features; --method chooses another." in heard.said[-1]
    scratch = {"run.systems": ["rankstats-incremental", "kmeans"]}
    assert choosing.systems_in_order(job(tmp_path / "scratch", cached_classes(n_known=3), heard, **scratch)) == (
        "rankstats-incremental", "kmeans",
    )  # fmt: skip
    for told in ({"pretrain.kind": "prototypical"}, {"pretrain.kind": "rotation", "pretrain.label_weight": 1.0}):
        learned = job(tmp_path / told["pretrain.kind"], cached_classes(n_known=4), heard, **told)
        assert choosing.systems_in_order(learned)[0] == "kmeans-pretrained"
        assert "stage 1 learned from the labels" in heard.said[-1]


def test_a_trial_makes_do_with_few_images(tmp_path: Path) -> None:
    heard = Heard()
    assert choosing.systems_in_order(job(tmp_path, cached_classes(n_known=4, each=4), heard, **{"run.trials": 1}))
    assert "found again" in heard.said[-1]


def test_a_hair_of_a_lead_leaves_the_order_as_it_is() -> None:
    assert choosing._best({"a": 0.90, "b": 0.905}, ["a", "b"]) == "a"
    assert choosing._best({"a": 0.90, "b": 0.92}, ["a", "b"]) == "b"
    assert choosing._best({}, ["a", "b"]) == "a"
    assert choosing._best({}, ["a", "kmeans-pretrained"]) == "kmeans-pretrained"


@pytest.mark.parametrize(("n_known", "trials", "made"), [(4, 3, 3), (4, 9, 6), (5, 10, 10), (6, 3, 3)])
def test_no_two_trials_hide_the_same_classes(tmp_path: Path, n_known: int, trials: int, made: int) -> None:
    images = cached_classes(n_known=n_known, n_new=2, each=8)
    for seed in range(8):
        asked = replace(job(tmp_path, images, Heard(), **{"run.trials": trials}), seed=seed)
        hidden = choosing._hidden_each_time(asked)
        assert len(hidden) == len(set(map(tuple, hidden))) == made
        assert hidden == choosing._hidden_each_time(asked)


def test_every_system_trains_for_as_long_in_a_trial_as_in_the_run() -> None:
    settings = recipe.load("cifar10-fast", {"joint.renew_views": 4, "kcl.decay_at": [6], "joint.watch": 2}).recipe
    longer = choosing._as_long(settings, 2.5)
    for name in ("joint", "incremental", "dtc", "kcl", "mcl"):
        before, after = getattr(settings, name), getattr(longer, name)
        assert after.epochs == round(2.5 * before.epochs) and after.warmup_epochs == 2.5 * before.warmup_epochs
    assert (longer.joint.renew_views, longer.joint.watch, longer.kcl.decay_at) == (10, 0, (15,))
    assert longer.dtc.start_epochs == round(2.5 * settings.dtc.start_epochs)
    assert longer.dtc.update_every == round(2.5 * settings.dtc.update_every)
    assert longer.dtc.ramp_epochs == 2.5 * settings.dtc.ramp_epochs
    assert longer.supervised == settings.supervised and choosing._as_long(settings, 9) == choosing._as_long(settings, 3)


def test_hidden_classes_are_unlabelled_and_scored_by_their_labels(tmp_path: Path) -> None:
    images = cached_classes(n_known=5, n_new=2, each=8)
    part = choosing._Part(images, choosing._hidden_each_time(job(tmp_path, images, Heard()))[0])
    assert part.n_hidden == 2 and len(part.images) == 40 and part.images.truth is not None
    assert {part.images.class_names[number] for number in part.images.y.unique().tolist() if number >= 0} == set(
        part.images.class_names
    )
    names = part.images.class_names + part.images.new_names
    given = [images.class_names[number] for number in images.y[:40].tolist()]
    assert [names[number] for number in part.images.truth.tolist()] == given
    hidden = [name in part.images.new_names for name in given]
    assert part.images.unlabelled.tolist() == hidden


def test_rows_of_images_keep_what_is_known_of_them() -> None:
    images = cached_classes()
    rows = torch.tensor([50, 3, 99])
    assert isinstance(images.images, torch.Tensor) and images.truth is not None
    for held in (images, replace(images, images=HostPixels(images.images))):
        few = held.rows(rows)
        assert few.ids == ("50", "3", "99") and few.y.tolist() == images.y[rows].tolist()
        assert torch.equal(few.images[:], images.images[rows]) and type(few.images) is type(held.images)


@pytest.mark.slow
def test_a_run_from_scratch_shares_its_first_stage_with_the_trials(tmp_path: Path) -> None:
    done = autonovel("run", TINY, "--out", tmp_path / "run", "--set", "run.trials=1",
                     "--set", 'run.systems=["rankstats-incremental", "kmeans"]')  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("1-rotation: done") == 1  # trained once, taken over by the trial
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    choice = json.loads((tmp_path / "run" / "choice.json").read_text())
    assert results["primary"] == choice["chosen"] and choice["why"] in done.stdout
    assert results["seconds"]["trials"] > 0 and set(results["systems"]) == set(choice["means"])
