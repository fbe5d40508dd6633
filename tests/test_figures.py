"""Figures from run folders: right numbers behind them, and plain words where one cannot be drawn."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import save_file

from autonovel import recipe
from autonovel.errors import UsageError
from autonovel.figures import comparison, draw_figures, sweeps
from autonovel.figures.curves import over_seeds
from autonovel.figures.figure import CannotDrawError
from autonovel.figures.neighbours import NEAREST, most_overlapping, neighbour_counts, overlap, purity
from autonovel.figures.runs import Study, collect, studies
from autonovel.tables.as_today import settings_held
from runs import TINY, autonovel


def make_run(
    root: Path, seed: int = 0, acc: float | None = 0.9, flipped: float | None = 0.5, name: str = "toy",
    primary: str = "rankstats", **changed: Any,
) -> Path:  # fmt: skip
    """Write what the figures read of a run whose settings ``changed`` differ (joint__k is joint.k)."""
    changes = {key.replace("__", "."): value for key, value in changed.items()}
    folder = root / f"run-{len(list(root.iterdir()))}"
    folder.mkdir()
    own = recipe.load(name if name in recipe.names() else "demo").recipe
    settings = recipe.flatten(own) | {"name": name} | changes
    facts = {"format": 1, "recipe": settings, "changed": changes, "seed": seed, "primary": primary}
    (folder / "run.json").write_text(json.dumps(facts))
    if acc is not None:
        (folder / "results.json").write_text(json.dumps({"systems": {primary: {"acc": acc}}}))
    lines = []
    for epoch in range(3):
        line: dict[str, Any] = {"stage": "3-joint", "epoch": epoch, "loss/ce": 1.0 / (epoch + 1), "loss/bce": 0.5}
        line |= {"pairs/precision": 0.8, "pairs/recall": 0.1}
        line |= {} if flipped is None else {"pairs/flipped": flipped, "all_pairs/flipped": flipped / 10}
        lines.append(json.dumps(line))
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def study(root: Path) -> Study:
    (only,) = studies(collect([root]))
    return only


def ignore(what: str, done: int, total: int) -> None:
    assert 0 <= done <= total


@given(st.integers(2, 30), st.integers(2, 4), st.integers(0, 2**30))
def test_neighbours_are_those_of_sorting_all_distances(n: int, n_classes: int, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    z, classes = torch.randn(n, 3, generator=rng) + 5, torch.randint(0, n_classes, (n,), generator=rng)
    ask = torch.arange(0, n, 2)
    expected = torch.zeros(n_classes, n_classes, dtype=torch.int64)
    for i in ask.tolist():
        others = sorted((float((z[i] - z[j]).square().sum()), j) for j in range(n) if j != i)
        for _, j in others[:NEAREST]:
            expected[classes[i], classes[j]] += 1
    assert torch.equal(neighbour_counts(z, classes, n_classes, ask), expected)


def test_overlap_and_purity_by_hand() -> None:
    counts = torch.tensor([[80, 0, 20], [0, 95, 5], [30, 0, 70]])
    assert overlap(counts, 0, 2) == pytest.approx(50 / 200) == overlap(counts, 2, 0)
    assert overlap(counts, 1, 2) == pytest.approx(5 / 200)
    assert purity(counts) == pytest.approx(245 / 300)
    assert most_overlapping(counts, n_known=2) == [(0, 2), (1, 2)]


def test_the_sweep_takes_runs_that_differ_in_k_alone(tmp_path: Path) -> None:
    for seed in (0, 1):
        make_run(tmp_path, seed, 0.90 + seed / 100)
        make_run(tmp_path, seed, 0.80, joint__k=2)
        make_run(tmp_path, seed, 0.10, joint__k=2, joint__ce=False)
        make_run(tmp_path, seed, 0.20, joint__consistency=False)
    make_run(tmp_path, 0, None, joint__k=9)  # not finished
    assert sweeps.accuracies(study(tmp_path), sweeps.K) == {2: {0: 80.0, 1: 80.0}, 5: {0: 90.0, 1: 91.0}}
    drawn = sweeps.draw([study(tmp_path)], sweeps.K)
    best = drawn.numbers["lines"]["toy"][1]
    assert (best["k"], best["mean"], best["std"]) == (5, 90.5, pytest.approx(0.5**0.5))
    assert "best at k = 5 with 90.5 %" in drawn.caption


def test_the_sweep_over_groups_leaves_out_what_compares_all_pairs(tmp_path: Path) -> None:
    make_run(tmp_path, 0, 0.70)  # its own group is 0: all images of a batch
    for group, acc in ((8, 0.80), (16, 0.90)):
        make_run(tmp_path, 0, acc, joint__group=group)
    make_run(tmp_path, 0, 0.10, joint__group=32, joint__k=2)
    assert sweeps.accuracies(study(tmp_path), sweeps.GROUP) == {8: {0: 80.0}, 16: {0: 90.0}}
    drawn = sweeps.draw([study(tmp_path)], sweeps.GROUP)
    assert [one["group"] for one in drawn.numbers["lines"]["toy"]] == [8, 16]
    assert "best at group = 16 with 90.0 %" in drawn.caption


def test_a_sweep_has_a_panel_for_each_recipe_and_tells_what_lies_far_below(tmp_path: Path) -> None:
    """A collapsed run drawn to scale would hide all other differences."""
    for name in ("toy", "other"):
        for k, acc in ((1, 0.25), (2, 0.90), (7, 0.91)):
            make_run(tmp_path, 0, acc, name=name, joint__k=k)
    picture = sweeps.draw(studies(collect([tmp_path])), sweeps.K).picture
    assert [axes.get_title() for axes in picture.axes] == ["Accuracy against k (other)", "Accuracy against k (toy)"]
    for axes in picture.axes:
        assert "25.0 ↓" in [text.get_text() for text in axes.texts]
        low, high = axes.get_ylim()
        assert 80 < low < high < 100


def test_kept_results_are_enough_for_accuracies(tmp_path: Path) -> None:
    def keep(place: str, seed: int, systems: dict[str, float], changed: dict[str, Any]) -> None:
        (tmp_path / place).mkdir(exist_ok=True)
        scores = {name: {"acc": acc} for name, acc in systems.items()}
        content = {"recipe": "demo", "seed": seed, "systems": scores, "changed": changed, "seconds": {"total": 1.0}}
        (tmp_path / place / f"seed-{seed}.json").write_text(json.dumps(content))

    keep("demo", 0, {"rankstats": 0.9, "kmeans": 0.6}, {})
    keep("demo", 1, {"rankstats": 0.8, "kmeans": 0.7}, {"run.report": False})
    keep("demo-k2", 0, {"rankstats": 0.5}, {"joint.k": 2})
    keep("demo-kcl", 0, {"kcl": 0.7}, {"run.systems": ["rankstats", "kcl"]})  # the other was kept elsewhere
    own = recipe.load("demo").recipe.joint.k
    for place in (tmp_path, tmp_path / "demo"):
        (found,) = studies(collect([place]))
        assert sweeps.accuracies(found, sweeps.K)[own] == {0: 90.0, 1: 80.0}
    drawn, left_out = draw_figures([tmp_path], ignore)
    assert {*drawn} == {"acc-against-k", "systems"} and "finished run" in left_out["training-tsne"]
    points = drawn["acc-against-k"].numbers["lines"]["demo"]
    assert {point["k"]: point["acc"] for point in points} == {2: [50.0], own: [90.0, 80.0]}


def test_the_k_that_a_recipe_once_had_is_a_value_of_its_sweep(tmp_path: Path) -> None:
    own = recipe.load("demo").recipe.joint.k
    for seed, k in enumerate((own, own + 1)):
        held = settings_held(recipe.load("demo", {"run.systems": ["rankstats"]}).recipe) | {"joint.k": k}
        content = {"recipe": "demo", "seed": seed, "systems": {"rankstats": {"acc": 0.9}}, "seconds": {"total": 1.0}}
        (tmp_path / f"seed-{seed}.json").write_text(json.dumps(content | {"changed": {}, "settings": held}))
    assert sweeps.accuracies(study(tmp_path), sweeps.K) == {own: {0: 90.0}, own + 1: {1: 90.0}}


def keep_earlier(place: Path, acc: float, more_k: int, epochs: int = 0, commit: str | None = None) -> None:
    """Keep a result of the demo, of a sweep or of the recipe itself, which had other ``epochs`` at the time."""
    changed = {"joint.k": recipe.load("demo").recipe.joint.k + more_k} if more_k else {}
    held = settings_held(recipe.load("demo", changed | {"run.systems": ["rankstats"]}).recipe)
    content = {"recipe": "demo", "seed": 0, "systems": {"rankstats": {"acc": acc}}, "seconds": {"total": 1.0}}
    content |= {"changed": changed, "settings": held | ({"joint.epochs": epochs} if epochs else {}), "commit": commit}
    (place / f"{acc}").mkdir()
    (place / f"{acc}" / "seed-0.json").write_text(json.dumps(content))


def lines_of(place: Path) -> dict[str, list[float]]:
    lines = sweeps.draw(studies(collect([place])), sweeps.K).numbers["lines"]
    return {label: [point["mean"] for point in line] for label, line in lines.items()}


def test_a_sweep_with_an_earlier_recipe_is_a_line_of_its_own_named_by_its_commits(tmp_path: Path) -> None:
    for acc, more_k in ((0.9, 0), (0.8, 1)):
        keep_earlier(tmp_path, acc, more_k, commit="abcdef0123")
    for acc, more_k, commit in ((0.7, 0, "abcdef0123"), (0.6, 1, "0123456789"), (0.5, 2, "abcdef0123")):
        keep_earlier(tmp_path, acc, more_k, 3, commit)
    assert lines_of(tmp_path) == {"demo": [90.0, 80.0], "demo at 0123456, abcdef0": [70.0, 60.0, 50.0]}


def test_two_earlier_recipes_of_unknown_commits_are_two_lines(tmp_path: Path) -> None:
    for acc, more_k, epochs in ((0.9, 0, 3), (0.8, 1, 3), (0.7, 0, 4), (0.6, 1, 4)):
        keep_earlier(tmp_path, acc, more_k, epochs)
    assert lines_of(tmp_path) == {"demo joint.epochs=3": [90.0, 80.0], "demo joint.epochs=4": [70.0, 60.0]}


def test_kept_results_of_a_recipe_that_is_gone_are_compared_all_the_same(tmp_path: Path) -> None:
    content = {"recipe": "mine", "seed": 0, "systems": {"rankstats": {"acc": 0.9}, "kmeans": {"acc": 0.6}}}
    content["seconds"] = {"total": 1.0}
    for k in (None, 2, 7):
        changed = {} if k is None else {"joint.k": k}
        (tmp_path / f"k{k}").mkdir()
        (tmp_path / f"k{k}" / "seed-0.json").write_text(json.dumps(content | {"changed": changed}))
    assert {*sweeps.accuracies(study(tmp_path), sweeps.K)} == {2, 7}  # its own k is not known any more
    assert "systems" in draw_figures([tmp_path], ignore)[0]


def test_one_value_with_two_accuracies_is_refused(tmp_path: Path) -> None:
    own = recipe.load("demo").recipe.joint.k  # what the recipe's k may have become since a sweep
    for acc, changed in ((0.9, {}), (0.8, {"joint.k": own})):
        content = {"recipe": "demo", "seed": 0, "systems": {"rankstats": {"acc": acc}}, "seconds": {"total": 1.0}}
        (tmp_path / f"{acc}").mkdir()
        (tmp_path / f"{acc}" / "seed-0.json").write_text(json.dumps(content | {"changed": changed}))
    with pytest.raises(UsageError, match=f"two accuracies with joint.k = {own}"):
        sweeps.accuracies(study(tmp_path), sweeps.K)


def test_one_value_of_k_is_no_sweep(tmp_path: Path) -> None:
    make_run(tmp_path)
    with pytest.raises(CannotDrawError, match="--sweep-k"):
        sweeps.draw([study(tmp_path)], sweeps.K)


def test_runs_with_other_settings_are_other_studies(tmp_path: Path) -> None:
    make_run(tmp_path)
    make_run(tmp_path, joint__lr=0.2)
    make_run(tmp_path, joint__k=2, run__map_points=50, joint__keep_embeddings_at=[0])
    assert {s.label: len(s.runs) for s in studies(collect([tmp_path]))} == {"toy": 2, "toy joint.lr=0.2": 1}
    drawn, left_out = draw_figures([tmp_path], ignore)
    assert set(drawn) == {"curves-toy", "curves-toy-joint.lr=0.2", "acc-against-k"}
    assert "training-tsne-toy" in left_out and "old-and-new-toy-joint.lr=0.2" in left_out


def test_one_seed_run_twice_is_not_two_samples(tmp_path: Path) -> None:
    make_run(tmp_path)
    make_run(tmp_path)
    with pytest.raises(UsageError, match="ranking statistics, seed 0 of toy, is there more than once"):
        draw_figures([tmp_path], ignore)


def test_a_run_named_twice_counts_once(tmp_path: Path) -> None:
    folder = make_run(tmp_path)
    assert len(collect([tmp_path, folder])) == 1


def test_curves_compare_with_and_without_consistency_over_seeds(tmp_path: Path) -> None:
    for seed, flipped in ((0, 0.2), (1, 0.4)):
        make_run(tmp_path, seed, flipped=flipped)
    make_run(tmp_path, 0, flipped=0.9, joint__consistency=False)
    drawn, left_out = draw_figures([tmp_path], ignore)
    variants = drawn["curves"].numbers["variants"]
    assert {label: of["seeds"] for label, of in variants.items()} == {"full method": [0, 1], "without consistency": [0]}
    assert variants["full method"]["last"]["pairs/flipped"] == pytest.approx(0.3)
    assert variants["full method"]["curves"]["pairs/flipped"]["std"][0] == pytest.approx(0.02**0.5)
    assert variants["without consistency"]["curves"]["pairs/flipped"]["std"] is None
    told = "full method: 30.0 % over all epochs, 30.0 % in the last (3.00 % of all pairs); without consistency: 90.0 %"
    assert told in drawn["curves"].caption
    assert set(left_out) == {"training-tsne", "old-and-new", "acc-against-k", "acc-against-group", "systems"}


def test_runs_that_did_not_watch_say_so(tmp_path: Path) -> None:
    make_run(tmp_path, flipped=None)
    drawn, _ = draw_figures([tmp_path], ignore)
    assert "joint.watch = 0" in drawn["curves"].caption


def test_a_mean_over_seeds_takes_the_epochs_all_have() -> None:
    one = [{"epoch": 0, "x": 1.0}, {"epoch": 1, "x": 3.0}, {"epoch": 2, "x": None}]
    other = [{"epoch": 0, "x": 2.0}, {"epoch": 2, "x": 8.0}]
    curve = over_seeds([one, other], "x")
    assert curve is not None and (curve.epochs, curve.mean) == ([1], [1.5])
    assert over_seeds([one, other], "y") is None and over_seeds([], "x") is None


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        collect([tmp_path])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("figures") / "run"
    sets = ["run.map_points=60", "pretrain.epochs=1", "supervised.epochs=1"]
    done = autonovel("run", TINY, "--out", folder, "--device", "cpu", *(w for s in sets for w in ("--set", s)))
    assert done.returncode == 0, done.stderr
    return folder


def test_the_command_draws_what_a_run_allows(tiny: Path, tmp_path: Path) -> None:
    done = autonovel("figures", tiny, "--to", tmp_path, "--pair", "3, 5")
    assert done.returncode == 0, done.stderr
    assert "acc-against-k was left out: no two finished runs" in done.stdout
    made = json.loads((tmp_path / "figures.json").read_text())
    assert set(made["figures"]) == {"training-tsne", "old-and-new", "curves", "systems"}
    assert set(made["left_out"]) == {"acc-against-k", "acc-against-group"}
    for figure in made["figures"].values():
        picture, drawing = figure["files"]
        with Image.open(tmp_path / picture) as opened:
            assert opened.width > 1000
        assert (tmp_path / drawing).read_text().startswith("<?xml") and figure["caption"] in done.stdout
    assert made["figures"]["training-tsne"]["numbers"]["epochs"] == [0, 2, 4, 6]
    both = made["figures"]["old-and-new"]["numbers"]
    assert both["pair"] == ["3", "5"] and set(both["systems"]) == {"rankstats", "rankstats-incremental"}
    assert both["images"] == 60 and both["of"] == 400
    for system in both["systems"].values():
        across = system["neighbours_of_first_in_second"] + system["neighbours_of_second_in_first"]
        assert system["overlap"] == pytest.approx(across / 2)  # the classes are of one size


def test_the_pair_is_the_most_overlapping_unless_named(tiny: Path) -> None:
    drawn, _ = draw_figures([tiny], ignore)
    numbers = drawn["old-and-new"].numbers
    first = numbers["systems"]["rankstats"]["largest_overlaps"][0]
    assert numbers["pair"] == [first["old"], first["new"]] and first["old"] in "01234" and first["new"] in "56789"
    assert numbers["systems"]["rankstats"]["overlap"] == first["overlap"]


@pytest.mark.parametrize(
    ("pair", "complaint"), [("3,cat", "--pair names '3' and 'cat'"), ("3", "--pair is '3'"), ("3,3", "two classes")]
)
def test_a_wrong_pair_is_explained(tiny: Path, tmp_path: Path, pair: str, complaint: str) -> None:
    done = autonovel("figures", tiny, "--to", tmp_path, "--pair", pair)
    assert done.returncode == 2 and complaint in done.stderr


def test_a_pair_is_looked_for_in_the_recipe_that_has_it(tiny: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path)
    about = {"names": json.dumps(["cat", "dog"]), "n_known": "1"}
    save_file({"truth": torch.tensor([0, 1], dtype=torch.int32)}, other / "truth.safetensors", about)
    drawn, left_out = draw_figures([tiny, other], ignore, ("5", "3"))
    (found,) = [figure for name, figure in drawn.items() if name.startswith("old-and-new-tiny")]
    assert found.numbers["pair"] == ["5", "3"] and "old-and-new-toy" in left_out


def test_without_truth_no_map_is_coloured(tiny: Path) -> None:
    truth = tiny / "truth.safetensors"
    hidden = truth.rename(truth.with_suffix(".hidden"))
    try:
        _, left_out = draw_figures([tiny], ignore)
    finally:
        hidden.rename(truth)
    assert "nobody knows the true classes" in left_out["training-tsne"]
    assert "nobody knows the true classes" in left_out["old-and-new"]


def test_nothing_to_draw_is_an_error(tmp_path: Path) -> None:
    (make_run(tmp_path) / "metrics.jsonl").unlink()
    done = autonovel("figures", tmp_path, "--to", tmp_path / "out")
    assert done.returncode == 2 and "none of the figures" in done.stderr
    assert "curves was left out: no run has a journal of joint training" in done.stdout


def test_a_reason_that_many_figures_share_is_told_once(tmp_path: Path) -> None:
    for recipe_name in "abcde":
        (make_run(tmp_path, name=recipe_name) / "metrics.jsonl").unlink()
    done = autonovel("figures", tmp_path, "--to", tmp_path / "out")
    assert done.returncode == 2, done.stderr
    told = [line for line in done.stdout.splitlines() if "left out: no run has a journal" in line]
    assert [line.partition(" were ")[0] for line in told] == ["curves-a, curves-b, curves-c and 2 more"]
    left_out = json.loads((tmp_path / "out" / "figures.json").read_text())["left_out"]
    assert {f"curves-{recipe_name}" for recipe_name in "abcde"} <= set(left_out)


def embedded_run(root: Path, z: torch.Tensor, truth: torch.Tensor, n_known: int, **changed: Any) -> Path:
    """Write a run whose two systems have the features ``z``."""
    folder = make_run(root, **changed)
    about = {"names": json.dumps([f"class-{i}" for i in range(int(truth.max()) + 1)]), "n_known": str(n_known)}
    save_file({"truth": truth.int()}, folder / "truth.safetensors", about)
    heads = {"p_new": torch.zeros(len(z), 2), "p_known": torch.zeros(len(z), 2)}
    for place in (folder, folder / "systems" / "rankstats-incremental"):
        place.mkdir(parents=True, exist_ok=True)
        save_file({"z": z, **heads}, place / "embedding.safetensors")
    return folder


def test_the_two_systems_may_lie_in_two_runs(tmp_path: Path) -> None:
    rng = torch.Generator().manual_seed(0)
    truth = torch.arange(60) % 4
    features = {primary: torch.randn(60, 8, generator=rng) for primary in ("rankstats", "rankstats-incremental")}
    for primary, z in features.items():
        folder = embedded_run(tmp_path, z, truth, 2, primary=primary, run__systems=[primary])
        shutil.rmtree(folder / "systems")
    drawn, _ = draw_figures([tmp_path], ignore)
    systems = drawn["old-and-new"].numbers["systems"]
    for primary, z in features.items():
        counts = neighbour_counts(z, truth, 4, torch.arange(60))
        assert systems[primary]["same_class_neighbours"] == purity(counts)
    assert list(drawn["curves"].numbers["variants"]) == ["full method"]
    assert drawn["curves"].numbers["system"] == "rankstats"
    (folder / "truth.safetensors").unlink()
    _, left_out = draw_figures([tmp_path], ignore)
    assert f"nobody knows the true classes of {folder}" in left_out["old-and-new"]


def test_many_classes_leave_the_old_ones_grey(tmp_path: Path) -> None:
    """A hundred classes, as CIFAR-100 has: colours go to the new ones, and names to those and the pair."""
    rng = torch.Generator().manual_seed(0)
    truth = torch.arange(400) % 100
    centres = torch.randn(100, 8, generator=rng)
    centres[90] = centres[3]  # an old and a new class in one place
    embedded_run(tmp_path, centres[truth] + 0.1 * torch.randn(400, 8, generator=rng), truth, 80, run__map_points=200)
    drawn, _ = draw_figures([tmp_path], ignore)
    figure = drawn["old-and-new"]
    assert figure.numbers["pair"] == ["class-3", "class-90"]
    words = {text.get_text() for text in figure.picture.axes[0].texts}
    assert {"class-3", "class-90"} <= words
    assert words <= {"class-3", *(f"class-{i}" for i in range(80, 100))}  # no other old class is named


@pytest.mark.parametrize(
    ("z", "reason"), [(torch.ones(40, 3), "do not tell the images apart"), (torch.rand(20, 3), "at least 30 images")]
)
def test_what_cannot_be_mapped_is_left_out(tmp_path: Path, z: torch.Tensor, reason: str) -> None:
    embedded_run(tmp_path, z, torch.arange(len(z)) % 4, 2)
    _, left_out = draw_figures([tmp_path], ignore)
    assert reason in left_out["old-and-new"]


def scored(root: Path, seed: int, acc: dict[str, float], name: str = "cifar10-fast", **changed: Any) -> None:
    folder = make_run(root, seed, name=name, **changed)
    (folder / "results.json").write_text(json.dumps({"systems": {k: {"acc": v} for k, v in acc.items()}}))


def test_systems_are_compared_over_seeds_and_starts(tmp_path: Path) -> None:
    scored(tmp_path, 0, {"rankstats": 0.9, "kmeans": 0.7})
    scored(tmp_path, 1, {"rankstats": 0.92, "kmeans": 0.7})
    scored(tmp_path, 0, {"dtc": 0.85, "kmeans": 0.7}, run__systems=["dtc", "kmeans"])  # a run of its own, same seed
    scored(tmp_path, 0, {"kmeans": 0.65}, run__systems=["kmeans"], pretrain__kind="supervised")
    drawn = comparison.draw(study(tmp_path))
    bars = {(bar["system"], bar["start"]): bar for bar in drawn.numbers["bars"]}
    assert bars.keys() == {
        *((system, comparison.WITH) for system in ("kmeans", "dtc", "rankstats")),
        ("kmeans", comparison.WITHOUT),
    }
    ours = bars["rankstats", comparison.WITH]
    assert ours["mean"] == pytest.approx(91) and ours["std"] == pytest.approx(2**0.5) and ours["paper"] == 90.4
    assert bars["kmeans", comparison.WITHOUT]["paper"] == 65.5 and bars["kmeans", comparison.WITH]["seeds"] == [0, 1]
    assert "DTC with self-supervision 85.0" in drawn.caption and "diamonds: the paper" in drawn.caption
    assert sorted(drawn.save(tmp_path)) == ["systems.png", "systems.svg"]
    with Image.open(tmp_path / "systems.png") as picture:
        assert picture.width > 500


def test_the_paper_stands_beside_kept_results_of_a_recipe_of_ones_own(tmp_path: Path) -> None:
    settings = settings_held(recipe.load("cifar10-fast", ["joint.k=5", "pretrain.kind=supervised"]).recipe)
    scores = {name: {"acc": 0.5, "nmi": 0.5, "ari": 0.5} for name in ("rankstats", "kmeans")}
    results = {"recipe": "my five", "seed": 0, "systems": scores, "settings": settings, "changed": {},
               "seconds": {"total": 1.0}}  # fmt: skip
    (tmp_path / "seed-0.json").write_text(json.dumps(results))
    (own,) = studies(collect([tmp_path]))
    found = {bar.system: (bar.start, bar.paper.mean if bar.paper else None) for bar in comparison.bars(own)}
    assert found == {"rankstats": (comparison.WITHOUT, 89.4), "kmeans": (comparison.WITHOUT, 65.5)}


@pytest.mark.parametrize(("name", "kind"), [("cifar10-fast", "none"), ("omniglot-fast", "rotation")])
def test_a_third_start_is_no_bar(tmp_path: Path, name: str, kind: str) -> None:
    scored(tmp_path, 0, {"rankstats": 0.9, "kmeans": 0.7}, name=name, data__source=name.partition("-")[0])
    changed = {"pretrain__kind": kind, "data__source": name.partition("-")[0]}
    scored(tmp_path, 0, {"rankstats": 0.3, "kmeans": 0.3}, name=name, **changed)
    found = comparison.bars(studies(collect([tmp_path]))[0])
    assert [(bar.system, bar.start, bar.acc) for bar in found] == [
        ("kmeans", comparison.WITH, {0: 70.0}),
        ("rankstats", comparison.WITH, {0: 90.0}),
    ]


def keep_own(place: Path, base: str, own: list[str], changed: dict[str, Any], seed: int = 0) -> None:
    """Keep a result of a recipe of one's own that says ``own`` over ``base``; a caller ``changed`` more."""
    settings = recipe.load(base, [*own, *(f"{key}={value}" for key, value in changed.items())]).recipe
    results = {"recipe": "mine", "seed": seed, "systems": {"rankstats": {"acc": 0.9}}, "changed": changed,
               "settings": settings_held(settings), "seconds": {"total": 1.0}}  # fmt: skip
    place.mkdir(exist_ok=True)
    (place / f"seed-{seed}.json").write_text(json.dumps(results))


def test_a_start_that_a_caller_brought_back_is_the_usual_one(tmp_path: Path) -> None:
    keep_own(tmp_path, "cifar10-fast", [], {"pretrain.kind": "rotation"})
    ((bar,),) = (comparison.bars(own) for own in studies(collect([tmp_path])))
    assert (bar.start, bar.paper and bar.paper.mean) == (comparison.WITH, 90.4)


def test_versions_of_a_recipe_of_ones_own_are_no_one_study(tmp_path: Path) -> None:
    for seed, change in enumerate(("joint.lr=0.2", "joint.lr=0.1", "joint.bce=false")):
        keep_own(tmp_path, "demo", [change], {}, seed)
    found = {study.label: [run.seed for run in study.only()] for study in studies(collect([tmp_path]))}
    assert found == {"mine joint.lr=0.2": [0], "mine joint.lr=0.1": [1]}


def test_a_sweep_of_a_recipe_of_ones_own_has_the_base_of_its_version(tmp_path: Path) -> None:
    made = [
        ("joint.lr=0.2", {}),
        ("joint.lr=0.1", {}),
        ("joint.lr=0.1", {"joint.k": 7}),
        ("joint.lr=0.1", {"joint.k": 3}),
    ]
    for place, (own, changed) in enumerate(made):
        keep_own(tmp_path / str(place), "demo", [own], changed)
    found = {study.label: study for study in studies(collect([tmp_path]))}
    assert {label: len(study.runs) for label, study in found.items()} == {
        "mine joint.lr=0.1": 3,
        "mine joint.lr=0.2": 1,
    }
    assert [*sweeps.accuracies(found["mine joint.lr=0.1"], sweeps.K)] == [3, 5, 7]


def test_one_system_is_no_comparison(tmp_path: Path) -> None:
    scored(tmp_path, 0, {"rankstats": 0.9}, name="toy")
    with pytest.raises(CannotDrawError, match="fewer than two systems"):
        comparison.draw(study(tmp_path))


def test_runs_of_other_systems_do_not_stand_in_the_way_of_the_figures(tmp_path: Path) -> None:
    make_run(tmp_path, 0)
    make_run(tmp_path, 0, run__systems=["dtc"])
    assert len(study(tmp_path).only()) == 1


def test_what_changed_for_another_system_than_the_first_one_is_seen(tmp_path: Path) -> None:
    make_run(tmp_path, 0, name="cifar10-fast", primary="kmeans", run__systems=["kmeans", "rankstats"], joint__k=7)
    (run,) = collect([tmp_path])
    assert run.changed == {"joint.k": 7}


def test_the_mean_over_parts_is_one_run_and_logs_are_none(tmp_path: Path) -> None:
    whole = tmp_path / "omniglot-fast-seed0"
    for part in ("Keble", "ULOG"):
        (whole / part).mkdir(parents=True)
        make_run(whole / part)
    systems = {"rankstats": {"acc": 0.9, "nmi": 0.5, "ari": 0.5}}
    mean = {"recipe": "omniglot-fast", "seed": 0, "systems": systems, "seconds": {"total": 1.0}, "changed": {}}
    (whole / "results.json").write_text(json.dumps(mean))
    log = tmp_path / "omniglot-fast-seed0.log"
    log.write_text("what it said")
    for paths in ([whole], [tmp_path], [whole, log]):
        (run,) = collect(paths)
        assert run.accuracy("rankstats") == 90.0 and run.recipe == "omniglot-fast"
