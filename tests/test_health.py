"""A fault put into any stage is found within its epoch, said plainly, and leaves the last good state to go on from."""

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file
from torch import Tensor, nn

from autonovel import record
from autonovel.commands.training import run_recipe
from autonovel.data import Batch
from autonovel.errors import GuardError, UsageError
from autonovel.launch import Launch
from autonovel.manner import Manner
from autonovel.networks import Model
from autonovel.recipe import load
from autonovel.storage.documents import read_json, write_json
from autonovel.studies.variants import STAGE_1, may_share
from autonovel.training import health, remedies
from autonovel.training.loop import run_stage
from autonovel.training.ranks import Ranks
from autonovel.training.stage import Progress, Terms
from every_stage import OF_METHODS, STAGES, Told, context_in, equal, line, ready, section_of, some_images, train
from runs import TINY

Fault = Callable[[Model, Terms, Tensor], Terms]  # of the model, what a step returned, and whether it is the one
ENDLESS = {"warmup_epochs": 0.0, "schedule": "constant"}


@functools.cache
def steps_per_epoch(name: str) -> int:
    model, stage = ready(name)
    images = stage.material(model, some_images()) if name == "linear" else some_images()
    return stage.sampler(images).steps_per_epoch


def at_step(monkeypatch: pytest.MonkeyPatch, name: str, number: int, fault: Fault) -> None:
    """Let ``fault`` spoil the step of this number, from 0, of the stage ``name``."""
    kind = type(line(name)[-1])
    sound = kind.step

    def step(self: Any, model: Model, batch: Batch, progress: Progress) -> Terms:
        terms = sound(self, model, batch, progress)
        return fault(model, terms, progress.step == number) if self.name == line(name)[-1].name else terms

    monkeypatch.setattr(kind, "step", step)


def poisoned(model: Model, terms: Terms, now: Tensor) -> Terms:
    first = next(iter(terms))
    return terms | {first: terms[first] * torch.where(now, torch.nan, 1.0)}


def overflowing(model: Model, terms: Terms, now: Tensor) -> Terms:
    first = next(iter(terms))
    return terms | {first: terms[first] + torch.where(now, torch.inf, 0.0)}


def spoilt_gradient(model: Model, terms: Terms, now: Tensor) -> Terms:
    """The loss looks sound and the step that follows from it does not."""
    first = next(iter(terms))
    value = terms[first] * 1.0
    value.register_hook(lambda gradient: gradient * torch.where(now, torch.inf, 1.0))
    return terms | {first: value}


def huge_weight(model: Model, terms: Terms, now: Tensor) -> Terms:
    if bool(now):
        weight = next(p for p in model.parameters() if p.requires_grad)
        weight.data[(0,) * weight.ndim] = 1e20
    return terms


def dead_features(model: Model, terms: Terms, now: Tensor) -> Terms:
    if bool(now):
        for trunk in health.trained_trunks(model):
            for parameter in trunk.parameters():
                parameter.data.zero_()
    return terms


def finite(path: Path) -> bool:
    return all(bool(torch.isfinite(value).all()) for value in load_file(path).values())


@pytest.mark.parametrize(
    ("name", "rate", "epochs"), [*((name, 1e6, 2) for name in STAGES), ("joint", 1e30, 1), ("linear", 1e30, 1)]
)
def test_a_learning_rate_that_is_far_too_high(tmp_path: Path, name: str, rate: float, epochs: int) -> None:
    section, setting = section_of(name)
    with pytest.raises(GuardError) as error:
        train(tmp_path, name, **{setting: rate} | ENDLESS)
    said, stage = str(error.value), line(name)[-1].name
    assert said.startswith(error.value.seen) and stage in error.value.seen and "Try" not in error.value.seen
    assert any(f"stage {stage}, epoch {n + 1}: " in said for n in range(epochs)), said
    assert f"is kept: the same call with {section}.{setting}={rate / 10:g} (now {rate:g}) goes on from there" in said
    assert json.loads((tmp_path / "stages" / stage / remedies.STOPPED).read_text())["stage"] == stage


@pytest.mark.parametrize("name", STAGES)
def test_a_poisoned_batch_leaves_the_state_before_it(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = train(tmp_path / "undisturbed", name)
    steps, stage = steps_per_epoch(name), line(name)[-1].name
    with monkeypatch.context() as patch:
        at_step(patch, name, 2 * steps - 1, poisoned)  # the last one of the second epoch
        with pytest.raises(GuardError, match=f"stage {stage}, epoch 2: the loss is no longer a finite number") as error:
            train(tmp_path / "run", name)
        said = str(error.value)
        assert f"is not a number (nan) since step {2 * steps}" in said
        assert "The state after epoch 1 is kept" in said
        kept = tmp_path / "run" / "stages" / stage / "checkpoint.safetensors"
        before = kept.read_bytes()
        assert finite(kept)
        with pytest.raises(GuardError, match="nothing can be delivered"):  # neither going on nor trying again ruins it
            train(tmp_path / "run", name, keep_going=True)
        assert kept.read_bytes() == before
    told = Told()
    assert equal(train(tmp_path / "run", name, told), wanted)
    assert any("was stopped before" in text for text in told.said)
    assert not (kept.parent / remedies.STOPPED).exists()


@pytest.mark.parametrize("name", ["rotation", "joint", "similarity", "dtc", "linear"])
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (overflowing, "is beyond what a float holds (inf) since step"),
        (spoilt_gradient, "of the model or its optimiser hold numbers that are not finite"),
        (huge_weight, ""),
    ],
)
def test_other_faults_are_found_within_their_epoch(
    tmp_path: Path, name: str, fault: Fault, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_step(monkeypatch, name, 2 * steps_per_epoch(name) - 1, fault)
    with pytest.raises(GuardError, match=", epoch 2: ") as error:
        train(tmp_path, name)
    assert words in str(error.value)
    assert finite(tmp_path / "stages" / line(name)[-1].name / "checkpoint.safetensors")


@pytest.mark.parametrize("name", [name for name in STAGES if name != "linear"])  # which trains no features
def test_features_that_are_the_same_for_every_image(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_step(monkeypatch, name, steps_per_epoch(name), dead_features)
    quiet = {section_of(name)[1]: 0.0, "weight_decay": 0.0}
    with pytest.raises(GuardError, match=r", epoch 2: the (features|new classes) collapsed") as error:
        train(tmp_path / "run", name, **quiet)
    assert "--keep-going" in str(error.value)
    told = Told()
    kept = tmp_path / "run" / "stages" / line(name)[-1].name / "checkpoint.safetensors"
    before = kept.read_bytes()
    seen: list[bytes] = []
    monkeypatch.setattr(told, "say", lambda text: seen.append(kept.read_bytes()) if "Going on" in text else None)
    train(tmp_path / "run", name, told, keep_going=True, **quiet)
    assert seen and set(seen) == {before}  # a state that collapsed is not kept, even where the run goes on


def test_a_class_that_vanishes_is_told_of_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shut(model: Model, terms: Terms, now: Tensor) -> Terms:
        if bool(now):
            known = model.heads["known"]
            assert isinstance(known, nn.Linear)
            known.bias.data[1] = -50.0
        return terms

    steps = steps_per_epoch("joint")
    at_step(monkeypatch, "joint", 2 * steps - 1, shut)
    told = Told()
    train(tmp_path, "joint", told, lr=0.01, weight_decay=0.0)
    beware = [text for text in told.said if text.startswith("Beware: stage 3-joint, epoch 5: no image falls into ")]
    assert any("known class b" in text for text in beware), told.said
    journal = [json.loads(text) for text in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert journal[1]["known/usage"][1] > 0 and all(journal[epoch]["known/usage"][1] == 0 for epoch in (2, 3, 4))


def test_new_classes_that_vanish_are_counted_since_they_are_numbered_anew_by_size() -> None:
    looked = health.Health.__new__(health.Health)
    looked.names = ("a", "b")
    assert looked._named("known/usage", [1, 2, 4]) == "known class b, 2 of the new classes"
    assert looked._named("usage", [1]) == "1 of the new classes"


def test_an_optimiser_that_overflowed_is_found_though_the_weights_look_sound() -> None:
    """A second moment of infinity stops a weight for good, and nothing else shows it."""
    model = nn.Linear(2, 1)
    optimiser = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimiser.step()
    assert all(size < 10 for size in health.sizes(model, optimiser).values())
    optimiser.state[model.weight]["exp_avg_sq"][0, 0] = torch.inf
    bad = [name for name, size in health.sizes(model, optimiser).items() if size == torch.inf]
    assert bad == ["optimiser.exp_avg_sq.weight"]


@pytest.mark.parametrize("spoilt", [torch.nan, torch.inf, -torch.inf])
def test_the_size_of_a_tensor_shows_every_number_that_is_not_finite(spoilt: float) -> None:
    model = nn.Linear(40, 30)
    with torch.no_grad():
        model.weight[17, 3] = spoilt
    found = health.sizes(model, torch.optim.SGD(model.parameters(), lr=0.1))
    assert not torch.isfinite(torch.tensor(found["model.weight"])) and found["model.bias"] < 1
    model.weight.requires_grad_(False)
    assert set(health.sizes(model, torch.optim.SGD([model.bias], lr=0.1), changing=True)) == {"model.bias"}


def test_weights_that_were_spoilt_before_are_not_trained_on(tmp_path: Path) -> None:
    first = tmp_path / "first"
    train(first, "rotation")
    model = load_file(first / "stages" / "1-rotation" / "model.safetensors")
    trunk = {name: value for name, value in model.items() if name.startswith("trunk.")}
    next(value for name, value in trunk.items() if name.endswith("conv1.weight"))[0, 0, 0, 0] = torch.nan
    from safetensors.torch import save_file

    save_file(trunk, tmp_path / "trunk.safetensors")
    changes = ["pretrain.kind=weights", f"pretrain.weights={tmp_path / 'trunk.safetensors'}", "run.systems=rankstats"]
    with pytest.raises(GuardError, match=r"2-supervised, before its first step: .*pretrain\.weights"):
        tiny(tmp_path / "run", changes, False)


def tiny(folder: Path, changes: list[str], resume: bool) -> None:
    """Train ranking statistics alone on few epochs, in this process."""
    quick = ["run.report=false", "pretrain.epochs=1", "supervised.epochs=1", "joint.epochs=3", "run.parallel=false"]
    with (folder.parent / "said.txt").open("w") as said:
        console = Console(file=said, width=200)
        run_recipe(str(TINY), folder, 0, quick + changes, Manner("cpu", resume), console=console)


def test_a_stopped_run_goes_on_with_a_lower_rate(tmp_path: Path) -> None:
    folder, first = tmp_path / "run", ["run.systems=rankstats", "joint.lr=1e30", "joint.schedule=constant"]
    with pytest.raises(GuardError, match=r"joint\.lr=1e\+29 \(now 1e\+30\) goes on from there"):
        tiny(folder, first, False)
    with pytest.raises(UsageError, match="other settings"):  # stage 2 is finished
        tiny(folder, [*first, "supervised.lr=0.01"], True)
    tiny(folder, [*first, "joint.lr=0.05"], True)
    facts = json.loads((folder / "run.json").read_text())
    assert facts["recipe"]["joint.lr"] == facts["changed"]["joint.lr"] == 0.05
    assert (
        json.loads((folder / "results.json").read_text())["changed"]["joint.lr"] == 0.05
    )  # no run without it is alike
    assert facts["parts"][-1]["altered"]["joint.lr"] == [1e30, 0.05]
    tiny(tmp_path / "plain", [*first, "joint.lr=0.05"], False)
    assert (folder / "discovery.csv").read_bytes() == (tmp_path / "plain" / "discovery.csv").read_bytes()


def test_settings_of_what_is_done_do_not_change(tmp_path: Path) -> None:
    """The side system is finished with joint.lr; the delivering one stopped, so its own section may change."""
    place = tmp_path / "run"
    write_json(place / "stages" / "3-joint" / remedies.STOPPED, {})
    write_json(place / "stages" / "2-supervised" / remedies.FINISHED, {})
    write_json(place / "systems" / "rankstats" / "stages" / "3-joint" / remedies.FINISHED, {})
    facts = {"primary": "rankstats-incremental"}
    assert remedies.may_change(place, facts, ["incremental.lr", "network.precision"])
    assert not remedies.may_change(place, facts, ["incremental.lr", "joint.lr"])
    assert not remedies.may_change(place, facts, ["supervised.lr"])
    assert not remedies.may_change(place, facts, ["incremental.epochs"])
    assert not remedies.may_change(tmp_path, facts, ["incremental.lr"])


def test_dtc_may_go_on_gentler_though_its_start_is_finished(tmp_path: Path) -> None:
    write_json(tmp_path / "stages" / "3-dtc-start" / remedies.FINISHED, {})
    write_json(tmp_path / "stages" / "4-dtc" / remedies.STOPPED, {})
    facts = {"primary": "dtc"}
    assert remedies.stopped(tmp_path)
    assert remedies.may_change(tmp_path, facts, [remedies.rate_of("4-dtc", "dtc"), "dtc.weight"])
    assert not remedies.may_change(tmp_path, facts, ["dtc.start_lr"])
    write_json(tmp_path / "stages" / "4-dtc" / remedies.FINISHED, {})
    assert not remedies.may_change(tmp_path, facts, ["dtc.lr"])


def test_a_finished_stage_keeps_the_rate_it_had_when_another_section_gets_a_lower_one(tmp_path: Path) -> None:
    """[incremental] has [joint]'s rate unless it has one; it is done, and the advice is to lower joint.lr."""
    place = tmp_path / "run"
    write_json(place / "stages" / "3-joint" / remedies.FINISHED, {})
    write_json(place / "systems" / "rankstats" / "stages" / "3-joint" / remedies.STOPPED, {})
    facts = {"primary": "rankstats-incremental", "parts": []}
    now = {"joint.lr": 0.01, "incremental.lr": 0.01}
    differing = {key: (0.1, value) for key, value in now.items()}
    assert remedies.too_late_to_inherit(place, facts, differing, now) == {"incremental.lr"}
    assert remedies.may_change(place, facts, ["joint.lr"])
    later = {"primary": "rankstats-incremental", "parts": [{"altered": {"joint.lr": [0.1, 0.01]}}]}
    only = {"incremental.lr": (0.1, 0.01)}  # joint.lr is in run.json by now
    assert remedies.too_late_to_inherit(place, later, only, now) == {"incremental.lr"}
    assert not remedies.too_late_to_inherit(place, facts, only, now), "nobody has altered joint.lr"
    assert not remedies.too_late_to_inherit(place, facts, differing, now | {"incremental.lr": 0.02})


def test_stages_with_settings_changed_under_way_are_not_shared() -> None:
    facts = {"recipe": {"supervised.lr": 0.01}, "digest": "d", "seed": 0, "device": "cpu", "parts": []}
    assert may_share(facts, dict(facts))
    assert may_share(facts, facts | {"recipe": {"supervised.lr": 0.01, "supervised.scratch_epochs": 0}}), "its default"
    for key, shared in (("supervised.lr", False), ("joint.lr", True)):
        altered = facts | {"parts": [{"altered": {key: [0.1, 0.01]}}]}
        assert may_share(facts, altered) == may_share(altered, facts) == shared
        assert may_share(facts, altered, STAGE_1)
    other = facts | {"recipe": {"supervised.lr": 0.1}}
    assert may_share(facts, other, STAGE_1) and not may_share(facts, other)
    assert not may_share(facts, facts | {"recipe": {"supervised.lr": 0.01, "pretrain.lr": 0.5}}, STAGE_1)


def test_stages_from_weights_that_were_replaced_are_not_shared(tmp_path: Path) -> None:
    """Not even under the same name."""
    weights, started = tmp_path / "trunk.safetensors", dict[str, Any]()
    settings = load(str(TINY), ["pretrain.kind=weights", f"pretrain.weights={weights}"]).recipe
    for name, content in (("first", b"some"), ("again", b"some"), ("other", b"others")):
        weights.write_bytes(content)
        record.begin(tmp_path / name, settings, 0, torch.device("cpu"), some_images(), 2, ["test"], {})
        started[name] = read_json(tmp_path / name / "run.json")
    assert may_share(started["first"], started["again"]) and not may_share(started["first"], started["other"])
    weights.unlink()
    unused = load(str(TINY), ["pretrain.kind=rotation", f"pretrain.weights={weights}"]).recipe
    record.begin(tmp_path / "rotation", unused, 0, torch.device("cpu"), some_images(), 2, ["test"], {})


def test_processes_that_torchrun_starts_again_do_not_repeat_a_stop(tmp_path: Path) -> None:
    here = Launch(world=1, name="host:1:2", restarts=1)
    context = replace(context_in(tmp_path, system="rankstats"), ranks=Ranks(here))
    model, stage = ready("joint")
    stopped = tmp_path / "stages" / stage.name / remedies.STOPPED
    write_json(stopped, {"seen": "stage 3-joint, epoch 2: gone", "launch": here.name})
    with pytest.raises(GuardError, match=r"epoch 2: gone\. With the same settings it would end the same way"):
        run_stage(model, stage, some_images(), context)
    write_json(stopped, {"seen": "stage 3-joint, epoch 2: gone", "launch": "host:1:1"})  # settings may be others now
    run_stage(*ready("joint"), some_images(), context)
    assert not stopped.exists()


def test_every_stage_has_a_section() -> None:
    for name in STAGES:
        stage, system = line(name)[-1].name, OF_METHODS[name][0] if name in OF_METHODS else ""
        assert remedies.section(stage, system) == section_of(name)[0]
        assert remedies.rate_of(stage, system) == ".".join(section_of(name))
    assert remedies.rate_of("3-mine", "") == ""
