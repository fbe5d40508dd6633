"""What each stage makes of a batch: its terms, whom they teach, and what it notes on the way."""

import itertools
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from autonovel import draws, embedding, networks, selftest, settings, systems
from autonovel.augment import Augmentation
from autonovel.data import Batch, ImageSet, Resident
from autonovel.embedding import embed, features
from autonovel.errors import GuardError
from autonovel.job import Job
from autonovel.methods import METHODS, Problem, kmeans
from autonovel.methods.kmeans import KMeans, centres, nearest
from autonovel.methods.rankstats import Joint
from autonovel.methods.rotnet import Rotation
from autonovel.methods.supervised import Supervised
from autonovel.methods.views import two_views
from autonovel.networks import Model, Trunk
from autonovel.settings import FROZEN, Augment
from autonovel.systems import Found, on_test
from autonovel.training import optimisers
from autonovel.training.display import Silent
from autonovel.training.stage import Progress, Stage, Terms
from autonovel.training.steps import Step

N_KNOWN, N_NEW = 3, 4
VIEWS = Augment(crop=1, flip=True)
TRAINED_BLOCKS: list[tuple[str, ...]] = [(), ("stem",), ("stem", "block1", "block2"), ("block2",), FROZEN]


# ---------------------------------------------------------------------------------------------------
# batches and models


def set_of_images(n: int = 14, side: int = 6, channels: int = 1) -> ImageSet:
    """Return images of which every second is unlabelled."""
    rng = torch.Generator().manual_seed(5)
    truth = torch.arange(n) // 2 % N_KNOWN
    truth[1::2] = N_KNOWN + torch.arange(n // 2) % N_NEW
    y = torch.where(truth < N_KNOWN, truth, -1)
    images = torch.randint(0, 256, (n, channels, side, side), generator=rng, dtype=torch.uint8)
    return ImageSet(images, y, tuple(map(str, range(n))), tuple("abc"), truth, tuple("defg"))


def batch_of(images: ImageSet, n_draws: int, index: Tensor | None = None, step: int = 0) -> Batch:
    index = torch.arange(len(images)) if index is None else index
    u = draws.uniform(draws.stream(1, 100), torch.tensor([step]), index[None], n_draws)[0]
    return Resident(images, torch.device("cpu")).batch(index, u)


def network(stage: Stage, channels: int = 1) -> Model:
    model = networks.build("small", channels, torch.full((channels,), 0.5), torch.full((channels,), 0.3), seed=0)
    stage.prepare(model)
    return model


def pixel_model(stage: Stage, n_pixels: int, mean: float) -> Model:
    """Return a model whose features are the pixels, less their mean: exact, and negative where dark."""
    blocks: OrderedDict[str, nn.Module] = OrderedDict()
    blocks["pixels"] = nn.Sequential(nn.Flatten(), nn.Unflatten(1, (n_pixels, 1, 1)))
    model = Model(Trunk(blocks, n_pixels), torch.tensor([mean]), torch.tensor([0.3]))
    stage.prepare(model)
    return model


def progress(step: int = 0, steps_per_epoch: int = 8) -> Progress:
    return Progress(torch.tensor(step), steps_per_epoch)


def joint(incremental: bool = False, **switches: Any) -> Joint:
    return Joint(
        settings.Joint(**({"frozen": (), "k": 2, "augment": VIEWS} | switches)), N_KNOWN, N_NEW, 0, incremental
    )


def rotation(**switches: Any) -> Rotation:
    return Rotation(settings.Pretrain(**({"augment": VIEWS} | switches)), N_KNOWN, seed=0)


def supervised(**switches: Any) -> Supervised:
    return Supervised(settings.Supervised(**({"frozen": (), "augment": VIEWS} | switches)), N_KNOWN, seed=0)


def labelled_only(images: ImageSet) -> Tensor:
    return (~images.unlabelled).nonzero()[:, 0]


def values(terms: Terms) -> dict[str, float]:
    return {name: float(value.detach()) for name, value in terms.items()}


def taught(model: Model, terms: Terms) -> set[str]:
    """Return the names of the blocks and heads whose parameters the terms move; all of a part or none of it."""
    model.zero_grad(set_to_none=True)
    torch.stack(list(terms.values())).sum().backward()
    parts: dict[str, nn.Module] = dict(model.trunk.blocks.items()) | dict(model.heads.items())
    moved = set()
    for name, part in parts.items():
        reached = {p.grad is not None and bool((p.grad != 0).any()) for p in part.parameters()}
        assert len(reached) == 1, name
        assert all(p.grad is None or bool(torch.isfinite(p.grad).all()) for p in part.parameters())
        assert reached == {True} or all(p.grad is None for p in part.parameters())
        moved |= {name} if reached == {True} else set()
    return moved


def unfrozen(model: Model, frozen: tuple[str, ...]) -> set[str]:
    return set(model.trunk.blocks) - set(frozen)


# ---------------------------------------------------------------------------------------------------
# names of the terms, and whom they teach


@pytest.mark.parametrize("frozen", TRAINED_BLOCKS)
@pytest.mark.parametrize("rotations", ["one", "four"])
def test_rotation_returns_one_term_and_teaches_its_head_and_the_blocks(rotations: str, frozen: tuple[str, ...]) -> None:
    stage = rotation(rotations=rotations, frozen=frozen)
    model = network(stage)
    terms = stage.step(model, batch_of(set_of_images(), stage.n_draws), progress())
    assert set(terms) == {"rotation"}
    assert 0 < values(terms)["rotation"] < 10
    assert taught(model, terms) == {"rotation"} | unfrozen(model, frozen)


@pytest.mark.parametrize("frozen", TRAINED_BLOCKS)
def test_supervised_returns_one_term_and_teaches_its_head_and_the_blocks(frozen: tuple[str, ...]) -> None:
    stage, images = supervised(frozen=frozen), set_of_images()
    model = network(stage)
    terms = stage.step(model, batch_of(images, stage.n_draws, labelled_only(images)), progress())
    assert set(terms) == {"ce"}
    assert 0 < values(terms)["ce"] < 10
    assert taught(model, terms) == {"known"} | unfrozen(model, frozen)


def test_supervised_from_scratch_teaches_every_block() -> None:
    stage, images = replace(supervised(frozen=FROZEN), whole_network=True), set_of_images()
    model = network(stage)
    terms = stage.step(model, batch_of(images, stage.n_draws, labelled_only(images)), progress())
    assert taught(model, terms) == {"known", *FROZEN}


ON_AND_OFF = [switches for switches in itertools.product([True, False], repeat=4) if any(switches[:3])]


@pytest.mark.parametrize(("ce", "bce", "consistency", "incremental"), ON_AND_OFF)
def test_joint_returns_the_terms_that_are_switched_on(
    ce: bool, bce: bool, consistency: bool, incremental: bool
) -> None:
    stage = joint(incremental, ce=ce, bce=bce, consistency=consistency, frozen=("stem",))
    model = network(stage)
    terms = stage.step(model, batch_of(set_of_images(), stage.n_draws), progress())
    on = {"ce": ce, "bce": bce, "consistency": consistency, "pseudo": incremental}
    assert set(terms) == {name for name, wanted in on.items() if wanted}
    assert all(0 < value < 100 for value in values(terms).values())
    # pseudo-labels come from the new head, but teach the grown one only
    known, new = ce or consistency or incremental, bce or consistency
    wanted = ({"known"} if known else set()) | ({"new"} if new else set()) | unfrozen(model, ("stem",))
    assert taught(model, terms) == wanted


@pytest.mark.parametrize("incremental", [False, True])
@pytest.mark.parametrize("frozen", TRAINED_BLOCKS)
def test_joint_teaches_both_heads_and_the_blocks_that_are_not_frozen(
    frozen: tuple[str, ...], incremental: bool
) -> None:
    stage = joint(incremental, frozen=frozen)
    model = network(stage)
    terms = stage.step(model, batch_of(set_of_images(), stage.n_draws), progress())
    assert taught(model, terms) == {"known", "new"} | unfrozen(model, frozen)


@pytest.mark.parametrize(
    ("bce_views", "consistency_on", "over", "views", "batch"),
    itertools.product(["one", "two"], ["all", "own"], ["mean", "sum"], ["joint", "separate"], ["fixed", "merged"]),
)
def test_other_switches_of_joint_leave_the_names(
    bce_views: str, consistency_on: str, over: str, views: str, batch: str
) -> None:
    switches = {"bce_views": bce_views, "consistency_on": consistency_on, "consistency_over_classes": over}
    stage = joint(incremental=True, views=views, batch=batch, **switches)
    model = network(stage)
    terms = stage.step(model, batch_of(set_of_images(), stage.n_draws), progress())
    assert list(terms) == ["ce", "bce", "consistency", "pseudo"]
    assert all(math.isfinite(value) and value > 0 for value in values(terms).values())


@pytest.mark.parametrize("who", ["labelled", "unlabelled"])
def test_a_batch_of_one_kind_only_has_finite_terms(who: str) -> None:
    stage, images = joint(incremental=True), set_of_images()
    index = labelled_only(images) if who == "labelled" else images.unlabelled.nonzero()[:, 0]
    model = network(stage)
    terms = stage.step(model, batch_of(images, stage.n_draws, index), progress())
    found = values(terms)
    absent = {"bce", "pseudo"} if who == "labelled" else {"ce"}
    assert {name for name, value in found.items() if value == 0} == absent
    torch.stack(list(terms.values())).sum().backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize(("augment", "each"), [(Augment(), 0), (VIEWS, 3), (Augment(shift=1.0), 5)])
def test_a_stage_says_how_many_numbers_it_needs(augment: Augment, each: int) -> None:
    assert supervised(augment=augment).n_draws == each
    assert joint(augment=augment).n_draws == 2 * each
    for rotations in ("one", "four"):
        assert rotation(augment=augment, rotations=rotations).n_draws == 1 + each


@pytest.mark.parametrize("incremental", [False, True])
def test_joint_keeps_the_known_head_and_adds_one(incremental: bool) -> None:
    before = supervised()
    model = network(before)
    old = model.heads["known"]
    joint(incremental).prepare(model)
    known, new = model.heads["known"], model.heads["new"]
    assert set(model.heads) == {"known", "new"}
    assert known.bias.shape == (N_KNOWN + N_NEW * incremental,)
    assert new.bias.shape == (N_NEW,)
    assert torch.equal(known.weight[:N_KNOWN], old.weight) and torch.equal(known.bias[:N_KNOWN], old.bias)


# ---------------------------------------------------------------------------------------------------
# rotation and supervised against loops


def one_by_one(model: Model, views: Sequence[np.ndarray], head: str) -> list[list[float]]:
    """Return the logits of every view, each sent through the model alone."""
    with torch.no_grad():
        return [model(torch.tensor(np.ascontiguousarray(x))[None], head)[0].tolist() for x in views]


def share(logits: list[list[float]], y: Sequence[int]) -> tuple[int, int]:
    right = sum(max(range(len(row)), key=row.__getitem__) == label for row, label in zip(logits, y, strict=True))
    return right, len(logits)


def noted(p: Progress) -> dict[str, Any]:
    return {name: (count.tolist(), out_of.tolist()) for name, (count, out_of) in p.notes.items()}


@pytest.mark.parametrize("rotations", ["one", "four"])
@pytest.mark.parametrize("label_turns", ["", "all", "upright"])
def test_rotation_equals_turning_each_image_by_itself(rotations: str, label_turns: str) -> None:
    labels = {"label_weight": 0.5, "label_turns": label_turns} if label_turns else {}
    stage, images, p = rotation(rotations=rotations, **labels), set_of_images(40), progress()
    model, batch = network(stage).eval(), batch_of(images, stage.n_draws)
    found = stage.step(model, batch, p)
    views, turned, classes = [], [], []
    for image, y, u in zip(batch.images, batch.y.tolist(), batch.u, strict=True):
        view = Augmentation(crop=1, flip=True).view(image[None], u[None, 1:])[0].numpy()
        for turns in range(4) if rotations == "four" else [int(4 * u[0])]:
            views.append(np.rot90(view, turns, axes=(1, 2)))
            turned.append(turns)
            classes.append(y)
    assert set(turned) == {0, 1, 2, 3}
    logits = one_by_one(model, views, "rotation")
    assert values(found)["rotation"] == pytest.approx(
        selftest.cross_entropy(logits, turned, [True] * len(turned)), rel=1e-4
    )
    assert noted(p) == {"accuracy": share(logits, turned)}
    if label_turns:
        taken = [y >= 0 and (t == 0 or label_turns == "all") for y, t in zip(classes, turned, strict=True)]
        told = selftest.cross_entropy(one_by_one(model, views, "known"), classes, taken)
        assert values(found)["ce"] == pytest.approx(0.5 * told, rel=1e-4)


def test_rotation_with_labels_teaches_the_blocks_and_a_head_of_each_task_and_stage_2_begins_with_its_own() -> None:
    stage = rotation(label_weight=1.0)
    model = network(stage)
    terms = stage.step(model, batch_of(set_of_images(), stage.n_draws), progress())
    assert set(terms) == {"rotation", "ce"}
    assert taught(model, terms) == {"rotation", "known"} | unfrozen(model, ())
    before = model.heads["known"]
    supervised().prepare(model)
    assert set(model.heads) == {"known"}
    assert model.heads["known"] is not before


def test_supervised_equals_looking_at_each_image_by_itself() -> None:
    stage, images, p = supervised(), set_of_images(), progress()
    batch = batch_of(images, stage.n_draws, labelled_only(images))
    model = network(stage).eval()
    found = stage.step(model, batch, p)
    views = [
        Augmentation(crop=1, flip=True).view(image[None], u[None])[0].numpy()
        for image, u in zip(batch.images, batch.u, strict=True)
    ]
    logits, y = one_by_one(model, views, "known"), batch.y.tolist()
    assert values(found)["ce"] == pytest.approx(selftest.cross_entropy(logits, y, [True] * len(y)), rel=1e-4)
    assert noted(p) == {"accuracy": share(logits, y), "known/usage": used(logits, [True] * len(y))}


def used(rows: list[list[float]], taken: list[bool]) -> tuple[list[int], int]:
    """Count, of the taken rows, how many choose each class."""
    counts = [0] * len(rows[0])
    for row, counted in zip(rows, taken, strict=True):
        counts[max(range(len(row)), key=row.__getitem__)] += counted
    return counts, sum(taken)


# ---------------------------------------------------------------------------------------------------
# joint against the oracles

SIDE, MEAN = 4, 0.7


def patterned(n: int = 24) -> ImageSet:
    """Return noise with two bright pixels at one of three places and two black ones at one of three.

    By value the bright pixels rank first, by magnitude (less the mean) the black ones, so that many pairs
    of images agree, and other ones by value than by magnitude; the truth agrees with neither.
    """
    images = set_of_images(n, SIDE)
    flat = images.images.flatten(1) // 3 + 60
    rng = torch.Generator().manual_seed(2)
    bright, black = torch.randint(0, 3, (2, n), generator=rng)
    for row in range(n):
        flat[row, [2 * int(bright[row]), 2 * int(bright[row]) + 1]] = 255
        flat[row, [8 + 2 * int(black[row]), 9 + 2 * int(black[row])]] = 0
    return replace(images, images=flat.view(-1, 1, SIDE, SIDE))


def linear(z: np.ndarray, head: nn.Module) -> list[list[float]]:
    weight, bias = (head.get_parameter(name).detach().double().numpy() for name in ("weight", "bias"))
    out: list[list[float]] = (z @ weight.T + bias).tolist()
    return out


def softmax(rows: list[list[float]]) -> list[list[float]]:
    powers = [[math.exp(v) for v in row] for row in rows]
    return [[v / sum(row) for v in row] for row in powers]


class ByHand:
    """A joint step again: exact features, heads in NumPy, labels and losses from the oracles."""

    def __init__(self, stage: Joint, model: Model, batch: Batch) -> None:
        s = self.s = stage.settings
        self.incremental = stage.incremental
        u, u_hat = batch.u[:, : batch.u.shape[1] // 2], batch.u[:, batch.u.shape[1] // 2 :]
        a = Augmentation(crop=s.augment.crop, flip=s.augment.flip)
        z, z_hat = (((a.view(batch.images, half) - MEAN) / 0.3).flatten(1) for half in (u, u_hat))
        self.labelled = [label >= 0 for label in batch.y.tolist()]
        self.unlabelled = [not known for known in self.labelled]
        self.y = batch.y.tolist()
        self.same = selftest.pair_labels(z.tolist(), s.k, s.rank_by)
        self.pairs = selftest.pairs_in_groups(self.unlabelled, stage.group)
        self.known, self.known_hat = (linear(x.double().numpy(), model.heads["known"]) for x in (z, z_hat))
        self.new, self.new_hat = (linear(x.double().numpy(), model.heads["new"]) for x in (z, z_hat))
        self.chosen = [max(range(N_NEW), key=row.__getitem__) for row in self.new]

    def terms(self, rise: float) -> dict[str, float]:
        s, out = self.s, {}
        everything = [True] * len(self.y)
        p, p_hat = softmax(self.new), softmax(self.new_hat)
        out["ce"] = selftest.cross_entropy(self.known, self.y, self.labelled)
        out["bce"] = selftest.pairwise_bce(p, p_hat if s.bce_views == "two" else p, self.same, self.pairs)
        own, over = s.consistency_on == "own", s.consistency_over_classes
        known = selftest.consistency(
            softmax(self.known), softmax(self.known_hat), self.labelled if own else everything, over
        )
        new = selftest.consistency(p, p_hat, self.unlabelled if own else everything, over)
        out["consistency"] = s.weight * rise * (known + new)
        if self.incremental:
            targets = [N_KNOWN + chosen for chosen in self.chosen]
            out["pseudo"] = s.pseudo_weight * rise * selftest.cross_entropy(self.known, targets, self.unlabelled)
        return out

    def notes(self, truth: list[int] | None) -> dict[str, Any]:
        """Count pairs of different images, one pair at a time."""
        others = called = alike = hits = 0
        for i, j in itertools.permutations(range(len(self.y)), 2):
            if self.pairs[i][j]:
                others += 1
                called += self.same[i][j]
                if truth is not None:
                    alike += truth[i] == truth[j]
                    hits += self.same[i][j] and truth[i] == truth[j]
        out: dict[str, Any] = {"pairs/positive": (called, others)}
        if truth is not None:
            out |= {"pairs/precision": (hits, called), "pairs/recall": (hits, alike)}
        return out | {"usage": used(self.new, self.unlabelled), "known/usage": used(self.known, self.labelled)}


CASES: list[dict[str, Any]] = [
    {},
    {"bce_views": "one"},
    {"consistency_on": "own"},
    {"consistency_over_classes": "sum"},
    {"group": 3},
    {"rank_by": "magnitude"},
    {"k": 3},
    {"views": "separate", "weight": 0.7, "pseudo_weight": 2.0},
    {
        "bce_views": "one",
        "consistency_on": "own",
        "consistency_over_classes": "sum",
        "rank_by": "magnitude",
        "group": 2,
    },
]


def pixel_case(incremental: bool, **switches: Any) -> tuple[Joint, Model, Batch]:
    stage = joint(incremental, **({"augment": Augment(flip=True), "ramp_epochs": 5.0} | switches))
    model = pixel_model(stage, SIDE * SIDE, MEAN)
    return stage, model, batch_of(patterned(), stage.n_draws, torch.randperm(24, generator=draws.generator(3)))


def test_pseudo_labels_teach_the_features_and_the_grown_head(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, model, batch = pixel_case(True)
    scale, plain = torch.ones((), requires_grad=True), model.features
    monkeypatch.setattr(model, "features", lambda *images: scale * plain(*images))
    stage.step(model, batch, progress(40))["pseudo"].backward()
    assert scale.grad is not None and bool(scale.grad != 0)
    gradient = next(iter(model.heads["known"].parameters())).grad
    assert gradient is not None and bool((gradient[-N_NEW:] != 0).any())


@pytest.mark.parametrize("incremental", [False, True])
@pytest.mark.parametrize("switches", CASES, ids=str)
@pytest.mark.parametrize(
    ("ramp_by", "step", "rise"),
    [
        # 8 steps an epoch, T = 5 epochs: step 20 is epoch 2.5, or 2 where the ramp moves by whole epochs
        ("step", 20, math.exp(-1.25)),
        ("epoch", 20, math.exp(-1.8)),
        ("step", 0, math.exp(-5)),
        ("epoch", 7, math.exp(-5)),
        ("epoch", 8, math.exp(-3.2)),
        ("step", 40, 1.0),
        ("epoch", 1000, 1.0),
    ],
)
def test_joint_equals_the_oracles(
    incremental: bool, switches: dict[str, Any], ramp_by: str, step: int, rise: float
) -> None:
    stage, model, batch = pixel_case(incremental, ramp_by=ramp_by, **switches)
    found = values(stage.step(model, batch, progress(step)))
    wanted = ByHand(stage, model, batch).terms(rise)
    assert list(found) == list(wanted)
    assert found == pytest.approx(wanted, rel=1e-4)


def test_every_switch_of_joint_makes_a_difference() -> None:
    """The cases above would prove little if a switch did nothing to this batch."""
    plain = values(pixel_step({}))
    changed = {
        "bce_views": {"bce"},
        "consistency_on": {"consistency"},
        "consistency_over_classes": {"consistency"},
        "group": {"bce"},
        "rank_by": {"bce"},
        "k": {"bce"},
    }
    for case in CASES[1:7]:
        other = values(pixel_step(case))
        moved = {name for name in plain if other[name] != pytest.approx(plain[name], rel=1e-3)}
        assert moved == changed[next(iter(case))]


def pixel_step(switches: dict[str, Any]) -> Terms:
    stage, model, batch = pixel_case(True, **switches)
    return stage.step(model, batch, progress())


@pytest.mark.parametrize(("ramp_by", "rise"), [("step", math.exp(-1.25)), ("epoch", math.exp(-1.8))])
def test_the_loop_tells_a_step_where_the_ramp_is(ramp_by: str, rise: float) -> None:
    stage, model, batch = pixel_case(True, ramp_by=ramp_by)
    wanted = ByHand(stage, model, batch).terms(rise)
    index = torch.randperm(24, generator=draws.generator(3))
    optimiser = optimisers.make(stage.settings, model.parameters())
    take = Step(model, stage, Resident(patterned(), torch.device("cpu")), optimiser, steps_per_epoch=8)
    take(index, batch.u, 20, 0.0)
    assert values(take.terms) == pytest.approx(wanted, rel=1e-4)
    means = take.end_of_epoch()
    assert {name: float(means[f"loss/{name}"]) for name in wanted} == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("incremental", [False, True])
def test_the_truth_is_for_diagnostics_only(incremental: bool) -> None:
    stage, model, batch = pixel_case(incremental)
    assert batch.truth is not None
    found = values(stage.step(model, batch, progress()))
    for truth in (None, batch.truth.flip(0)):
        assert values(stage.step(model, replace(batch, truth=truth), progress())) == found


# ---------------------------------------------------------------------------------------------------
# notes of joint


@pytest.mark.parametrize("with_truth", [True, False])
@pytest.mark.parametrize("switches", CASES, ids=str)
def test_notes_equal_loops_over_pairs(switches: dict[str, Any], with_truth: bool) -> None:
    stage, model, batch = pixel_case(False, **switches)
    assert batch.truth is not None
    batch = batch if with_truth else replace(batch, truth=None)
    p = progress()
    stage.step(model, batch, p)
    assert noted(p) == ByHand(stage, model, batch).notes(batch.truth.tolist() if batch.truth is not None else None)


@pytest.mark.parametrize("group", [0, 3])
def test_the_batch_of_the_notes_has_something_of_everything(group: int) -> None:
    stage, model, batch = pixel_case(False, group=group)
    assert batch.truth is not None
    found = ByHand(stage, model, batch).notes(batch.truth.tolist())
    assert all(0 < found[name][0] < found[name][1] for name in ("pairs/positive", "pairs/precision", "pairs/recall"))
    assert sum(count > 0 for count in found["usage"][0]) > 1


def test_without_pairs_only_the_usage_is_noted() -> None:
    stage, model, batch = pixel_case(False, bce=False)
    p = progress()
    stage.step(model, batch, p)
    notes = ByHand(stage, model, batch).notes(None)
    assert noted(p) == {name: notes[name] for name in ("usage", "known/usage")}


def test_a_batch_without_unlabelled_images_notes_nothing_out_of_nothing() -> None:
    stage, model, _ = pixel_case(False)
    images, p = patterned(), progress()
    batch = batch_of(images, stage.n_draws, labelled_only(images))
    stage.step(model, batch, p)
    nothing = (0.0, 0.0)
    assert noted(p) == {
        "known/usage": used(ByHand(stage, model, batch).known, [True] * len(batch.y)),
        "pairs/positive": nothing,
        "pairs/precision": nothing,
        "pairs/recall": nothing,
        "usage": ([0.0] * N_NEW, 0.0),
    }


# ---------------------------------------------------------------------------------------------------
# one pass or two


@pytest.mark.parametrize("incremental", [False, True])
def test_one_pass_and_two_agree_where_batchnorm_is_fixed(incremental: bool) -> None:
    found = {}
    for views in ("joint", "separate"):
        stage, p = joint(incremental, views=views), progress()
        model, batch = network(stage).eval(), batch_of(set_of_images(), stage.n_draws)
        terms = stage.step(model, batch, p)
        torch.stack(list(terms.values())).sum().backward()
        gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
        found[views] = (two_views(stage.settings, model, batch), values(terms), noted(p), gradients)
    (z, terms, notes, gradients), (z_two, terms_two, notes_two, gradients_two) = found["joint"], found["separate"]
    for a, b in zip(z, z_two, strict=True):
        assert torch.allclose(a, b, atol=1e-5)
    assert not torch.allclose(*z, atol=1e-3)  # the views themselves differ
    assert terms == pytest.approx(terms_two, rel=1e-4)
    assert notes == notes_two
    for name, gradient in gradients.items():
        other = gradients_two[name]
        assert gradient is not None and other is not None
        assert torch.allclose(gradient, other, rtol=1e-3, atol=1e-5)


def test_one_pass_and_two_differ_in_their_batch_statistics() -> None:
    found = {}
    for views in ("joint", "separate"):
        stage = joint(views=views)
        model, batch = network(stage).train(), batch_of(set_of_images(), stage.n_draws)
        found[views] = two_views(stage.settings, model, batch)
        counts = {int(b) for name, b in model.named_buffers() if name.endswith("num_batches_tracked")}
        assert counts == {1 if views == "joint" else 2}
    assert not torch.allclose(found["joint"][0], found["separate"][0], atol=1e-4)


# ---------------------------------------------------------------------------------------------------
# k-means


def blobs(per_blob: int = 20, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return points around four far corners, in no order, and the corner of each."""
    rng = torch.Generator().manual_seed(seed)
    corners = torch.tensor([[0.0, 0, 0, 9], [9, 0, 0, 0], [0, 9, 0, 0], [9, 9, 9, 9]])
    corner = torch.randperm(4 * per_blob, generator=rng) % 4
    return corners[corner] + 0.3 * torch.randn(4 * per_blob, 4, generator=rng), corner


def test_centres_of_separate_blobs_are_their_means() -> None:
    x, corner = blobs()
    found = centres(x, 4, seed=0)
    means = torch.stack([x[corner == number].mean(dim=0) for number in range(4)])
    order = nearest(means, found)
    assert sorted(order.tolist()) == [0, 1, 2, 3]
    assert torch.allclose(found[order], means, atol=1e-4)
    assert found.dtype == torch.float32


def test_centres_of_very_many_rows_come_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred rows in two heaps, of which a sample of ten sees both; the same seed draws the same sample."""
    x = torch.cat([torch.zeros(50, 2), torch.ones(50, 2)]) + 0.01 * torch.randn(100, 2, generator=draws.generator(0))
    whole = centres(x, 2, seed=0)
    monkeypatch.setattr("autonovel.methods.kmeans.MOST_ROWS", 10)
    found = centres(x, 2, seed=0)
    assert torch.equal(found, centres(x, 2, seed=0)) and not torch.equal(found, whole)
    assert torch.allclose(found.sort(dim=0).values, whole.sort(dim=0).values, atol=0.02)
    assert torch.allclose(centres(x[:10], 1, seed=0), x[:10].mean(dim=0, keepdim=True))


def test_centres_take_images_as_rows_of_pixels() -> None:
    x, _ = blobs()
    assert torch.equal(centres(x.view(-1, 1, 2, 2), 4, seed=0), centres(x, 4, seed=0))


def test_centres_are_a_function_of_the_seed() -> None:
    x = torch.rand(60, 5, generator=torch.Generator().manual_seed(0))
    first = centres(x, 6, seed=3, restarts=1)
    np.random.seed(1)
    torch.manual_seed(1)
    assert torch.equal(centres(x, 6, seed=3, restarts=1), first)
    assert any(not torch.equal(centres(x, 6, seed=seed, restarts=1), first) for seed in range(4, 8))


def test_more_restarts_never_lead_further_from_the_images() -> None:
    x = torch.rand(60, 5, generator=torch.Generator().manual_seed(0))

    def distance(points: Tensor) -> float:
        return float(torch.cdist(x, points).amin(dim=1).square().sum())

    assert distance(centres(x, 6, seed=0)) <= distance(centres(x, 6, seed=0, restarts=1)) + 1e-4


def by_distance(z: Tensor, points: Tensor) -> list[int]:
    return [min(range(len(points)), key=lambda c, row=row: float((row - points[c]).square().sum())) for row in z]


@pytest.mark.parametrize(("n", "c", "d"), [(7, 2, 1), (60, 5, 3), (40, 30, 20)])
def test_nearest_equals_a_loop(n: int, c: int, d: int) -> None:
    rng = torch.Generator().manual_seed(n)
    z, points = torch.randn(n, d, generator=rng), torch.randn(c, d, generator=rng)
    assert nearest(z, points).tolist() == by_distance(z, points)


def test_nearest_takes_images_as_rows_of_pixels() -> None:
    images, points = set_of_images().images, torch.rand(3, 36) * 255
    assert nearest(images, points).tolist() == by_distance(images.flatten(1).float(), points)


def test_k_means_takes_the_classifier_of_known_classes_from_stage_1_where_there_is_no_other() -> None:
    model = network(rotation(label_weight=1.0))
    known = model.heads["known"]
    KMeans().finish(model, set_of_images(48), Problem(N_KNOWN, N_NEW, seed=4))
    assert set(model.heads) == {"known", "new"} and model.heads["known"] is known


def test_k_means_trains_nothing() -> None:
    assert isinstance(METHODS["kmeans"], KMeans)
    assert KMeans().stages(settings.Recipe(), Problem(N_KNOWN, N_NEW, 0)) == []


@pytest.mark.parametrize("stage_2", [True, False])
def test_k_means_leaves_heads_that_answer_the_nearest_centre(stage_2: bool) -> None:
    images = set_of_images(48)
    model = network(supervised() if stage_2 else rotation())
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    before = {name: value for name, value in kept.items() if "rotation" not in name}
    returned = KMeans().finish(model, images, Problem(N_KNOWN, N_NEW, seed=4))
    assert set(model.heads) == {"known", "new"}
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())  # nothing is trained
    z = features(model, images.images)
    assert torch.equal(returned, z)
    found = centres(z[images.unlabelled], N_NEW, seed=4)
    with torch.no_grad():
        answers = {name: model.logits(z, name).argmax(dim=1).tolist() for name in model.heads}
    assert answers["new"] == by_distance(z, found) == nearest(z, found).tolist()
    assert len(set(answers["new"])) == N_NEW
    if not stage_2:
        means = torch.stack([z[images.y == number].mean(dim=0) for number in range(N_KNOWN)])
        assert answers["known"] == by_distance(z, means)
        assert len(set(answers["known"])) == N_KNOWN


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_one_feature_that_is_no_finite_number_is_enough_to_stop(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    images, model = set_of_images().images, network(supervised())
    z = features(model, images)
    monkeypatch.setattr(model, "clean_features", lambda chunk: z)
    assert torch.equal(features(model, images), z)
    z[5, 7] = value
    with pytest.raises(GuardError, match="not finite"):
        features(model, images)


def test_held_out_images_are_asked_about_for_a_grown_head_alone(tmp_path: Path) -> None:
    images, model = set_of_images(), network(joint(incremental=True))
    job = Job(settings.Recipe(), images, images, N_NEW, 0, torch.device("cpu"), tmp_path, Silent())
    grown = embed(model, images.images)
    plain = replace(grown, p_known=grown.p_known[:, :N_KNOWN])
    assert on_test(job, Found(model, plain, 0.0)) == (None, None)
    held_out, said = on_test(job, Found(model, grown, 0.0))
    assert held_out is images and said is not None and torch.equal(said.p_known, grown.p_known)


def test_the_features_that_k_means_clusters_are_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, model, passes = set_of_images(), network(supervised()), list[int]()

    def counted(model: Model, pixels: Tensor) -> Tensor:
        passes.append(len(pixels))
        return features(model, pixels)

    for module in (kmeans, embedding):
        monkeypatch.setattr(module, "features", counted)
    monkeypatch.setattr(systems, "extractor", lambda job: (model, {}))
    job = Job(settings.Recipe(), images, None, N_NEW, 0, torch.device("cpu"), tmp_path, Silent())
    found = systems.run_system(job, "kmeans", tmp_path)
    assert passes == [len(images)]
    assert torch.equal(found.embedding.z, features(model, images.images))


def test_k_means_does_not_look_at_the_truth(make_images: Callable[..., ImageSet]) -> None:
    found = []
    for truth in (True, False):
        model = network(supervised())
        KMeans().finish(model, make_images(truth=truth), Problem(2, 2, seed=0))
        found.append(model.heads["new"].get_parameter("weight"))
    assert torch.equal(*found)


def test_the_other_methods_have_nothing_left_to_do() -> None:
    stage = joint()
    model = network(stage)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for name, grown in (("rankstats", False), ("rankstats-incremental", True)):
        problem = Problem(N_KNOWN, N_NEW, seed=6)
        (made,) = METHODS[name].stages(settings.Recipe(), problem)
        assert made == Joint(settings.Joint(), N_KNOWN, N_NEW, 6, grown)
        METHODS[name].finish(model, set_of_images(), problem)
    after = model.state_dict()
    assert set(after) == set(before) and all(torch.equal(after[name], value) for name, value in before.items())
