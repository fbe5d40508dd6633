"""The parts of KCL, MCL, DTC and the linear classifier: networks, samplers, targets, what they remember."""

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from sklearn.decomposition import PCA
from torch import Tensor, nn

from autonovel import draws, networks, selftest, settings
from autonovel.clustering.metric import principal_components
from autonovel.data import Batch, ByClass, ImageSet, Resident
from autonovel.data.streamed import HostPixels
from autonovel.embedding import features
from autonovel.methods import METHODS, Problem
from autonovel.methods.dtc import DTC, Sharpen, Start, assignments
from autonovel.methods.linear import LinearClassifier
from autonovel.methods.pair_clustering import Cluster
from autonovel.methods.similarity import LearnSimilarity, network_of, pair_logits, same_class
from autonovel.methods.statistics import renew_statistics
from autonovel.methods.views import augmentation, plain
from autonovel.networks import Model, heads
from autonovel.networks.similarity import PairHead
from autonovel.objectives import consistency, kl_to_target, mcl, sharpened
from autonovel.recipe import load
from autonovel.training import checkpoint, optimisers
from autonovel.training.stage import Concludes, OnMaterial, Progress, Remembers, Stage
from runs import TINY, autonovel

Maker = Callable[..., ImageSet]


def small_model() -> Model:
    return networks.build("small", 1, torch.tensor([0.5]), torch.tensor([0.3]), seed=0)


def batch_of(stage: Stage, images: ImageSet, epoch: int = 0) -> Batch:
    index = stage.sampler(images).epoch(epoch)[0]
    u = draws.uniform(draws.stream(1, 100), torch.tensor([0]), index[None], stage.n_draws)[0]
    return Resident(images, torch.device("cpu")).batch(index, u)


def progress(epoch: int = 0) -> Progress:
    return Progress(torch.tensor(epoch), 1)


def with_similarity(images: ImageSet, **switches: object) -> tuple[Model, LearnSimilarity]:
    s = settings.Similarity(**({"frozen": (), "batch_size": 8} | switches))  # type: ignore[arg-type]
    stage = LearnSimilarity(s, images.n_known, 2, seed=0)
    model = small_model()
    model.heads["known"] = nn.Linear(64, images.n_known)
    stage.prepare(model)
    return model, stage


# ---------------------------------------------------------------------------------------------------
# heads


def test_the_softmax_of_dtc_s_head_is_the_student_t_assignment() -> None:
    rng = torch.Generator().manual_seed(0)
    head = heads.CentresHead(heads.linear_head(6, 3, rng), 4)
    with torch.no_grad():
        head.centres.copy_(torch.randn(4, 3, generator=rng))
        z = torch.randn(9, 6, generator=rng)
        q = head(z).softmax(dim=1)
        wanted = selftest.student_t(head.bottleneck(z).tolist(), head.centres.tolist())
    torch.testing.assert_close(q, torch.tensor(wanted))


def test_dtc_s_head_learns_even_where_an_image_lies_on_a_centre() -> None:
    head = heads.CentresHead(heads.linear_head(3, 2, torch.Generator().manual_seed(0)), 2)
    z = torch.ones(1, 3)
    with torch.no_grad():
        head.centres[0] = head.bottleneck(z)[0]
        head.centres[1] = head.bottleneck(z)[0] + 1
    head(z).softmax(dim=1)[0, 1].backward()
    assert all(p.grad is not None and bool(torch.isfinite(p.grad).all()) for p in head.parameters())


def test_heads_are_reordered_and_read_back_whatever_their_kind() -> None:
    rng = torch.Generator().manual_seed(0)
    z, order = torch.randn(5, 6, generator=rng), torch.tensor([2, 0, 3, 1])
    centres, two_layers = (heads.CentresHead(heads.class_head(6, 4, width, rng), 4) for width in (0, 3))
    with torch.no_grad():
        centres.centres.copy_(torch.randn(4, 4, generator=rng))
        two_layers.centres.copy_(torch.randn(4, 4, generator=rng))
    for head in (centres, two_layers.eval(), heads.linear_head(6, 4, rng)):
        before = head(z)
        heads.reorder(head, order)
        torch.testing.assert_close(head(z), before[:, order])
        tensors = {f"heads.new.{name}": value for name, value in head.state_dict().items()}
        again = heads.empty_head(tensors, "heads.new")
        again.eval().load_state_dict(head.state_dict())
        torch.testing.assert_close(again(z), head(z))
    with pytest.raises(KeyError):
        heads.empty_head({}, "heads.new")


def test_the_pair_head_is_the_network_on_features_side_by_side() -> None:
    rng = torch.Generator().manual_seed(0)
    head = PairHead(5, 7, rng)
    z = torch.randn(4, 5, generator=rng)
    network = nn.Sequential(head.first, head.norm, nn.ReLU(), head.last)
    pairs = torch.stack([torch.cat([z[i], z[j]]) for i in range(4) for j in range(4)])
    torch.testing.assert_close(head(z), network(pairs).view(4, 4, 2), rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------------------------------------------
# similarity network


def test_batches_hold_a_few_classes_in_equal_numbers() -> None:
    y = torch.tensor([0] * 9 + [1] * 9 + [2] * 2 + [3] * 9 + [-1] * 5)
    sampler = ByClass(y, n_classes=3, batch_size=14, seed=0, purpose=14)
    rows = sampler.epoch(0)
    assert rows.shape == (sampler.steps_per_epoch, 12) and sampler.steps_per_epoch == 3  # 29 images, 12 a batch
    seen = Counter()
    for row in torch.cat([sampler.epoch(number) for number in range(20)]):
        counts = Counter(y[row].tolist())
        assert set(counts.values()) == {4} and len(counts) == 3 and -1 not in counts
        assert all(len(row[y[row] == label].unique()) == min(4, int((y == label).sum())) for label in counts)
        seen.update(counts.keys())
    assert set(seen) == {0, 1, 2, 3}
    assert torch.equal(rows, sampler.epoch(0)) and not torch.equal(rows, sampler.epoch(1))
    shares = [ByClass(y, 3, 14, 0, 14, rank, 2).epoch(0) for rank in range(2)]
    assert sorted(torch.cat(shares, dim=1)[0].tolist()) == sorted(rows[0].tolist())


def test_the_similarity_network_has_a_trunk_of_its_own(make_images: Maker) -> None:
    images = make_images()
    model, stage = with_similarity(images)
    before = {name: value.clone() for name, value in model.trunk.state_dict().items()}
    optimiser = optimisers.make(replace(stage.settings, lr=0.1), model.parameters())
    model.train()
    batch = batch_of(stage, images)
    assert sorted(Counter(batch.y.tolist()).values()) == [4, 4]
    stage.step(model, batch, progress())["similarity"].backward()
    optimiser.step()
    assert all(torch.equal(value, before[name]) for name, value in model.trunk.state_dict().items())
    assert all(p.grad is None for p in [*model.trunk.parameters(), *model.heads["known"].parameters()])
    moved = network_of(model).trunk.state_dict()
    assert any(not torch.equal(value, before[name]) for name, value in moved.items())


@pytest.mark.parametrize(("start", "kind", "stage"), [
    ("pretrained", "rotation", "1-rotation"), ("supervised", "rotation", "2-supervised"),
    ("pretrained", "supervised", "2-supervised"),
])  # fmt: skip
def test_the_similarity_network_starts_where_it_is_told_to(tmp_path: Path, start: str, kind: str, stage: str) -> None:
    changes = ["run.systems=kcl", f"similarity.start={start}", f"pretrain.kind={kind}", "similarity.lr=0"]
    changes += ["pretrain.epochs=1", "supervised.epochs=1", "similarity.epochs=1", "kcl.epochs=1", "linear.epochs=0"]
    done = autonovel("run", TINY, "--out", tmp_path, "--keep-going", *(one for c in changes for one in ("--set", c)))
    assert done.returncode == 0, done.stderr
    own = load_file(tmp_path / "stages" / "3-similarity" / "model.safetensors")
    base = load_file(tmp_path / "stages" / stage / "model.safetensors")
    weights = {name: value for name, value in base.items() if name.startswith("trunk.") and value.dim() == 4}
    assert weights and all(torch.equal(own[f"heads.similarity.{name}"], value) for name, value in weights.items())


@pytest.mark.parametrize(("statistics", "moves"), [("batch", True), ("known", False)])
def test_judging_never_teaches_the_similarity_network(make_images: Maker, statistics: str, moves: bool) -> None:
    images = make_images()
    model, _ = with_similarity(images)
    stage = Cluster(settings.PairClustering(frozen=(), batch_size=6), 3, statistics, 0, mcl, "mcl")
    stage.prepare(model)
    model.train()
    network = network_of(model)
    weights = {name: value.clone() for name, value in network.named_parameters()}
    buffers = {name: value.clone() for name, value in network.named_buffers()}
    terms = stage.step(model, batch_of(stage, images), progress())
    assert set(terms) == {"mcl"}
    terms["mcl"].backward()
    optimisers.make(stage.settings, model.parameters()).step()
    assert all(torch.equal(value, weights[name]) for name, value in network.named_parameters())
    assert moves == any(not torch.equal(value, buffers[name]) for name, value in network.named_buffers())
    assert model.heads["new"].weight.grad is not None


def test_decisions_are_hard_and_carry_no_gradient(make_images: Maker) -> None:
    images = make_images()
    model, _ = with_similarity(images)
    model.eval()
    x = images.images[:6].float() / 255
    said, logits = same_class(model, x), pair_logits(model, x)
    assert said.dtype == torch.bool and not said.requires_grad
    assert torch.equal(said, logits.argmax(dim=2) == 1)


def test_mcl_is_as_kcl_unless_the_recipe_or_the_caller_says_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[kcl]\nlr = 0.5\nepochs = 7\n[mcl]\nepochs = 9\n")
    found = load(str(path), ["kcl.out_dim=8"]).recipe
    assert (found.mcl.lr, found.mcl.epochs, found.mcl.out_dim) == (0.5, 9, 8)
    assert load(str(path), ["mcl.lr=0.1"]).recipe.mcl.lr == 0.1
    assert load(str(path)).sources["mcl.lr"] == "as kcl"


# ---------------------------------------------------------------------------------------------------
# DTC


def test_principal_components_are_those_of_scikit_learn() -> None:
    z = torch.randn(40, 6, generator=torch.Generator().manual_seed(0)) * torch.tensor([5.0, 4, 3, 2, 1, 0.5])
    found = principal_components(z, 3)
    wanted = torch.from_numpy(PCA(3).fit_transform(z.numpy()))
    torch.testing.assert_close(found.abs(), wanted.abs().float(), rtol=1e-3, atol=1e-3)


def started(images: ImageSet, variant: str, **switches: object) -> tuple[Model, Sharpen]:
    """Return a model after the start of DTC, untrained, and its main stage."""
    s = settings.Dtc(variant=variant, batch_size=6, update_every=2, restarts=2, **switches)  # type: ignore[arg-type]
    model = small_model()
    recipe = replace(load("demo").recipe, dtc=s)
    start, stage, *_ = DTC().stages(recipe, Problem(images.n_known, 3, 0))
    assert isinstance(start, Start) and isinstance(stage, Sharpen)
    start.prepare(model)
    start.before_epoch(model, images, 0)
    assert torch.equal(start.memory["row"][images.unlabelled], torch.arange(int(images.unlabelled.sum())))
    stage.prepare(model)
    return model, stage


def test_the_start_puts_the_centres_where_k_means_found_them(make_images: Maker) -> None:
    images = make_images(labelled=6, unlabelled=18, n_new=3)
    model, _ = started(images, "pi")
    x = principal_components(features(model, images.images[images.unlabelled]), 3)
    nearest = torch.cdist(x, model.heads["new"].centres).argmin(dim=1)
    means = torch.stack([x[nearest == number].mean(dim=0) for number in range(3)])
    torch.testing.assert_close(means, model.heads["new"].centres.detach(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("variant", ["baseline", "pi", "te", "tep"])
def test_terms_and_memory_of_each_variant(make_images: Maker, variant: str) -> None:
    images = make_images(labelled=6, unlabelled=18, n_new=3)
    model, stage = started(images, variant, augment=settings.Augment(shift=1.0))
    assert isinstance(stage, Remembers)
    stage.before_epoch(model, images, 0)
    model.train()
    terms = stage.step(model, batch_of(stage, images), progress(3))
    assert set(terms) == ({"kl", "consistency"} if variant in ("pi", "te") else {"kl"})
    wanted = {"baseline": set(), "pi": set(), "te": {"latest", "past"}, "tep": {"average"}}[variant]
    assert set(stage.memory) == {"row", "target"} | wanted
    assert all(bool(torch.isfinite(value).all()) for value in terms.values())


def test_the_target_is_refreshed_on_time_and_in_place(make_images: Maker) -> None:
    images = make_images(labelled=6, unlabelled=18, n_new=3)
    model, stage = started(images, "baseline")
    stage.before_epoch(model, images, 0)
    place, first = stage.memory["target"], stage.memory["target"].clone()
    with torch.no_grad():
        model.heads["new"].centres.add_(0.3 * torch.eye(3))
    stage.before_epoch(model, images, 1)
    assert torch.equal(stage.memory["target"], first)
    stage.before_epoch(model, images, 2)
    assert stage.memory["target"] is place and not torch.equal(place, first)
    torch.testing.assert_close(place, sharpened(assignments(model, images)))


@pytest.mark.parametrize("variant", ["baseline", "pi"])
def test_the_plain_image_may_learn_the_target(make_images: Maker, variant: str) -> None:
    images = make_images(labelled=6, unlabelled=18, n_new=3)
    model, stage = started(images, variant, augment=settings.Augment(shift=3.0), first_view="plain", views="separate")
    assert stage.n_draws == (variant == "pi") * 5
    stage.before_epoch(model, images, 0)
    batch = batch_of(stage, images)
    terms = stage.step(model, batch, progress(9))  # in eval mode, so that no image depends on the others
    q = model(batch.images.float() / 255, "new").softmax(dim=1)
    target = stage.memory["target"][stage.memory["row"][batch.index]]
    torch.testing.assert_close(terms["kl"], kl_to_target(q, target))
    if variant == "pi":
        q_hat = model(augmentation(stage.settings).view(batch.images, batch.u), "new").softmax(dim=1)
        torch.testing.assert_close(terms["consistency"], stage.settings.weight * consistency(q, q_hat))
        assert not torch.allclose(q, q_hat)


@pytest.mark.parametrize("views", [{"resized_crop": 0.5, "side": 8}, {"flip": True}], ids=["as large", "larger"])
def test_the_plain_image_is_as_large_as_a_view(make_images: Maker, views: dict[str, Any]) -> None:
    """Where images are held larger than the network takes them, both are cut to what it takes."""
    images = make_images(labelled=6, unlabelled=18, n_new=3, height=12, width=12)
    model, stage = started(images, "pi", augment=settings.Augment(**views), first_view="plain")
    model.crop = 8
    batch = batch_of(stage, images)
    assert torch.equal(plain(model, batch), batch.images[:, :, 2:10, 2:10].float() / 255)
    stage.before_epoch(model, images, 0)
    model.train()
    assert torch.isfinite(sum(stage.step(model, batch, progress(3)).values(), torch.tensor(0.0)))


@pytest.mark.parametrize("in_memory", [True, False])
def test_statistics_made_anew_agree_with_loops(make_images: Maker, in_memory: bool) -> None:
    """Means over batches of the unlabelled images alone, whatever was tracked before."""
    images = make_images(labelled=6, unlabelled=18, n_new=3)
    assert isinstance(images.images, torch.Tensor)
    images.images[~images.unlabelled] = 255
    model, stage = started(images, "pi")
    layer = next(one for one in model.modules() if isinstance(one, nn.BatchNorm2d))
    model.train()
    model(images.images.float() / 255, "new")
    rows = images.unlabelled.nonzero()[:, 0]
    rows = rows[torch.randperm(18, generator=draws.generator(stage.seed, 55))]
    seen: list[torch.Tensor] = []
    hook = layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
    for start in range(0, 18, 6):
        model.clean_features(images.images[rows[start : start + 6]])
    hook.remove()
    held = images if in_memory else replace(images, images=HostPixels(images.images))
    renew_statistics(model, held, 6, stage.seed)
    assert layer.running_mean is not None and layer.running_var is not None
    means = [x.mean(dim=(0, 2, 3)) for x in seen]
    variances = [(x - x.mean(dim=(0, 2, 3), keepdim=True)).square().sum(dim=(0, 2, 3)) for x in seen]
    n = seen[0].numel() / seen[0].shape[1]
    torch.testing.assert_close(layer.running_mean, sum(means) / 3)
    torch.testing.assert_close(layer.running_var, sum(variances) / (n - 1) / 3)
    assert layer.momentum == 0.1 and not model.training


def test_statistics_made_anew_are_of_the_trained_parts_and_both_layers_of_the_head(make_images: Maker) -> None:
    """In one batch of all images, eval mode then says what train mode does."""
    images = make_images(labelled=6, unlabelled=18, n_new=3)
    network = settings.Network(name="small", head_width=5)
    model = networks.build(network, 1, torch.tensor([0.5]), torch.tensor([0.3]), seed=0)
    start = Start(settings.Dtc(variant="baseline", batch_size=18, restarts=2), 3, seed=0)
    model.heads["known"] = model.new_head(3, torch.Generator().manual_seed(0))
    start.prepare(model)
    model.heads["new"].centres.data.normal_(generator=torch.Generator().manual_seed(1))
    model.trunk.freeze(("stem",), "eval")
    kept = {name: value.clone() for name, value in model.state_dict().items() if "stem" in name or "known" in name}
    stale = assignments(model, images)
    renew_statistics(model, images, 18, 0)
    assert all(torch.equal(model.state_dict()[name], value) for name, value in kept.items())
    fresh = assignments(model, images)
    model.train()
    said = model(images.images[images.unlabelled].float() / 255, "new").softmax(dim=1)
    # what is tracked is the variance of the population, a batch is divided by its own: n / (n − 1) apart
    torch.testing.assert_close(fresh, said, rtol=0.1, atol=0.02)
    assert (fresh - said).abs().max() < 0.2 * (stale - said).abs().max()


@pytest.mark.parametrize("statistics", ["running", "anew"])
def test_statistics_made_anew_are_those_of_the_targets_and_stay_when_the_stage_ends(
    make_images: Maker, statistics: str
) -> None:
    images = make_images(labelled=6, unlabelled=18, n_new=3)
    model, stage = started(images, "pi", statistics=statistics)
    other = copy.deepcopy(model)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    stage.before_epoch(model, images, 0)
    if statistics == "anew":
        renew_statistics(other, images, 6, stage.seed)
    torch.testing.assert_close(stage.memory["target"], sharpened(assignments(other, images)))
    assert isinstance(stage, Concludes)
    model.load_state_dict(before)
    stage.conclude(model, images)
    changed = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert bool(changed) == (statistics == "anew") and all("running" in name or "num_" in name for name in changed)


def test_temporal_ensembling_averages_what_training_said(make_images: Maker) -> None:
    images = make_images(labelled=6, unlabelled=18, n_new=3)
    model, stage = started(images, "te")
    q = [torch.rand(18, 3, generator=torch.Generator().manual_seed(n)).softmax(dim=1) for n in range(3)]
    stage.before_epoch(model, images, 0)
    torch.testing.assert_close(stage.memory["past"], assignments(model, images))
    for epoch, said in enumerate(q, start=1):
        stage.memory["latest"].copy_(said)
        stage.before_epoch(model, images, epoch)
    weights = torch.tensor([0.4 * 0.36, 0.4 * 0.6, 0.4])
    wanted = sum(w * said for w, said in zip(weights / weights.sum(), q, strict=True))
    torch.testing.assert_close(stage.memory["past"], wanted)
    index = images.unlabelled.nonzero()[:, 0][:6]
    batch = Resident(images, torch.device("cpu")).batch(index, torch.zeros(6, stage.n_draws))
    model.train()
    stage.step(model, batch, progress(3))
    assert not torch.equal(stage.memory["latest"][:6], q[-1][:6]) and torch.equal(stage.memory["latest"][6:], q[-1][6:])


def test_what_a_stage_remembers_survives_in_its_checkpoint(tmp_path: Path) -> None:
    model = small_model()
    optimiser = optimisers.make(settings.Dtc(), model.parameters())
    memory = {"row": torch.arange(5), "target": torch.rand(5, 3)}
    checkpoint.save(tmp_path / "c.safetensors", model, optimiser, 4, 1.5, memory)
    again: dict[str, Tensor] = {}
    assert checkpoint.load(tmp_path / "c.safetensors", model, optimiser, again) == (4, 1.5)
    assert again.keys() == memory.keys() and all(torch.equal(again[name], memory[name]) for name in memory)


# ---------------------------------------------------------------------------------------------------
# the linear classifier of the incremental comparison


def test_the_linear_classifier_learns_labels_and_clusters_on_frozen_features(make_images: Maker) -> None:
    images = make_images(labelled=8, unlabelled=10)
    model = small_model()
    model.heads["known"], model.heads["new"] = nn.Linear(64, 2), nn.Linear(64, 3)
    model.heads["similarity"] = nn.Linear(1, 1)
    stage = LinearClassifier(settings.Linear(batch_size=18), images.n_known, seed=0)
    stage.prepare(model)
    assert isinstance(stage, OnMaterial) and set(model.heads) == {"known", "new"}
    material = stage.material(model, images)
    z = features(model, images.images)
    clusters = model.heads["new"](z).argmax(dim=1)
    torch.testing.assert_close(material.images, z)
    assert torch.equal(material.y, torch.where(images.unlabelled, 2 + clusters, images.y))
    model.train()
    stage.step(model, batch_of(stage, material), progress())["ce"].backward()
    assert {name for name, p in model.named_parameters() if p.grad is not None} == {
        "heads.known.weight", "heads.known.bias",
    }  # fmt: skip
    assert model.heads["known"].out_features == 5


@pytest.mark.parametrize("method", ["kcl", "mcl", "dtc"])
def test_more_clusters_than_classes_are_possible(method: str) -> None:
    recipe = load("demo", [f"{method}.out_dim=9"]).recipe
    stages = METHODS[method].stages(recipe, Problem(5, 4, 0))
    model = small_model()
    for stage in stages:
        stage.prepare(model)
    assert model.heads["new"].out_features == 9 and model.heads["known"].out_features == 14
