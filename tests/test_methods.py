"""One contract for all methods: the same questions asked of each of them, whatever it does inside."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from autonovel import Discoverer
from autonovel.errors import InputError, UsageError
from autonovel.labels import KNOWN_ONLY, LABELS
from autonovel.methods import METHODS, Problem
from autonovel.recipe import load
from autonovel.studies.variants import EVERY_SYSTEM
from autonovel.training import checkpoint
from runs import TINY, autonovel, environment, journal

STAGES = ("similarity", "kcl", "dtc", "linear", "pretrain", "supervised", "joint")
QUICK: dict[str, Any] = (
    {f"{stage}.epochs": 3 for stage in STAGES}
    | {f"{stage}.batch_size": 20 for stage in STAGES}
    | {f"{stage}.threads": 1 for stage in STAGES}
    | {
        "supervised.epochs": 6,
        "joint.group": 0,
        "joint.group_per_class": 0,
        "dtc.start_epochs": 2,
        "dtc.update_every": 2,
        "linear.decay_at": [2],
    }
    | {"data.size": 0, "run.map_points": 40, "run.checkpoint_seconds": 0.0, "joint.watch": 0}
)
# DTC in all its variants: what they remember from epoch to epoch differs
# known-only finds nothing (test_refine.py), and the pretrained network has tests of its own (test_pretrained_kmeans.py)
DISCOVERING = [name for name in METHODS if name not in (KNOWN_ONLY, "kmeans-pretrained")]
CASES = [(name, {}) for name in DISCOVERING] + [("dtc", {"dtc.variant": v}) for v in ("baseline", "te", "tep")]
CASES += [("dtc", {"dtc.statistics": "anew", "dtc.first_view": "plain"})]
CASES += [("mcl", {"similarity.start": "pretrained"})]
CASES += [("kcl", {"similarity.statistics": "known", "similarity.batch": "merged"}), ("mcl", {"mcl.out_dim": 4})]
EACH = pytest.mark.parametrize(("method", "settings"), CASES, ids=lambda v: v if isinstance(v, str) else str(v))
JOINT_HEAD = ("rankstats-incremental", "kcl", "mcl", "dtc")


def stripes(per_class: int = 30, seed: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return four classes of noisy bright bands at four places; the last two are unlabelled."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 60, (4 * per_class, 12, 12))
    for number in range(4):
        images[number * per_class : (number + 1) * per_class, 3 * number : 3 * number + 3] += 180
    return images.astype(np.uint8), np.repeat([0, 1, -1, -1], per_class)


def fit(method: str, settings: dict[str, Any], out: Path, **options: Any) -> Discoverer:
    made = Discoverer(
        n_new=2, method=method, settings=QUICK | settings, device="cpu", out=out, seed=3, keep_going=True,
        verbose=False, **options,
    )  # fmt: skip
    return made.fit(*stripes())


def bits(run: Path) -> dict[str, Any]:
    files = {name: (run / name).read_bytes() for name in ("model.safetensors", "embedding.safetensors")}
    return files | {"csv": (run / "discovery.csv").read_text(), "journal": journal(run / "metrics.jsonl")}


@pytest.fixture(scope="module", autouse=True)
def no_report() -> Iterator[None]:
    """Leave the report out: it has tests of its own, and would take most of the time here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("autonovel.report.write_report", lambda *_: None)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Discoverer, Path]]:
    """Return a maker of runs that makes each only once."""
    made: dict[str, tuple[Discoverer, Path]] = {}

    def make(method: str, settings: dict[str, Any]) -> tuple[Discoverer, Path]:
        key = f"{method} {settings}"
        if key not in made:
            out = tmp_path_factory.mktemp("run") / "run"
            made[key] = fit(method, settings, out), out
        return made[key]

    return make


def test_every_method_has_a_name_for_people_and_can_be_chosen() -> None:
    assert set(METHODS) | {"kmeans-pixels"} == set(LABELS)
    for name in METHODS:
        assert load("demo", {"run.systems": [name]}).recipe.run.systems == (name,)


@EACH
def test_it_answers_for_every_image_and_predicts_on_unseen_ones(
    finished: Callable[..., tuple[Discoverer, Path]], method: str, settings: dict[str, Any]
) -> None:
    found, run = finished(method, settings)
    n_new = settings.get("mcl.out_dim", 2)
    _, y = stripes()
    assert (found.labels_[y >= 0] == y[y >= 0]).all() and (found.labels_[y < 0] >= 2).all()
    assert found.n_new_ == n_new and len(found.classes_) == 2 + n_new
    sizes = np.bincount(found.labels_, minlength=2 + n_new)[2:]
    assert (np.diff(sizes) <= 0).all()  # new classes are numbered by size
    unseen, _ = stripes(per_class=5, seed=9)
    again = Discoverer.load(run)
    if method in JOINT_HEAD:
        said, proba = found.predict(unseen), found.predict_proba(unseen)
        np.testing.assert_allclose(again.predict_proba(unseen), proba, rtol=1e-4, atol=1e-6)
    else:
        with pytest.warns(UserWarning, match="new ones only"):
            said = found.predict(unseen)
        with pytest.warns(UserWarning, match="new ones only"):
            proba = again.predict_proba(unseen)
    assert said.shape == (20,) and proba.shape == (20, 2 + n_new)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-4)


@EACH
def test_it_is_deterministic_for_a_seed(
    finished: Callable[..., tuple[Discoverer, Path]], method: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    _, run = finished(method, settings)
    fit(method, settings, tmp_path / "again")
    assert bits(tmp_path / "again") == bits(run)


def own_stages(method: str, settings: dict[str, Any]) -> list[str]:
    recipe = load("demo", QUICK | settings).recipe
    return [stage.name for stage in METHODS[method].stages(recipe, Problem(2, 2, 3))]


@pytest.mark.parametrize(
    ("method", "settings", "stage"),
    [(method, settings, stage) for method, settings in CASES for stage in own_stages(method, settings)],
    ids=lambda v: v if isinstance(v, str) else str(v),
)
def test_it_resumes_to_the_same_bits(
    finished: Callable[..., tuple[Discoverer, Path]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    method: str, settings: dict[str, Any], stage: str,
) -> None:  # fmt: skip
    save, killed = checkpoint.save, []

    def save_and_die(path: Path, *rest: Any) -> None:
        save(path, *rest)
        if path.parent.name == stage and not killed:
            killed.append(path)
            raise InterruptedError

    monkeypatch.setattr(checkpoint, "save", save_and_die)
    out = tmp_path / "run"
    with pytest.raises(InterruptedError):
        fit(method, settings, out)
    fit(method, settings, out, resume=True)
    _, undisturbed = finished(method, settings)
    assert bits(out) == bits(undisturbed)


@pytest.mark.parametrize("method", DISCOVERING)
def test_it_refuses_bad_input_like_the_others(method: str) -> None:
    images, y = stripes(per_class=10)
    made = Discoverer(n_new=2, method=method, settings=QUICK, device="cpu", verbose=False)
    with pytest.raises(InputError, match="no image is unlabelled"):
        made.fit(images, np.zeros_like(y) + np.arange(len(y)) % 2)
    with pytest.raises(InputError, match="1 known class found"):
        made.fit(images, np.where(y == 0, 0, -1))
    with pytest.raises(InputError, match="only 20 unlabelled images"):
        Discoverer(n_new=50, method=method, settings=QUICK, verbose=False).fit(images, y)
    with pytest.raises(InputError, match="must be at least 2"):
        Discoverer(n_new=1, method=method, settings=QUICK, verbose=False).fit(images, y)


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        ("kcl", {"kcl.batch_size": 21}, "kcl.batch_size asks for 21 images a batch, but there are only 20 unlabelled"),
        ("mcl", {"mcl.batch_size": 21}, "mcl.batch_size asks for 21"),
        ("dtc", {"dtc.batch_size": 21}, "dtc.batch_size asks for 21"),
        ("dtc", {"linear.batch_size": 41}, "linear.batch_size asks for 41 images a batch"),
        ("kcl", {"similarity.batch_size": 21}, "similarity.batch_size asks for 21"),
        ("kcl", {"similarity.classes_per_batch": 3}, "from 2 to the number of known classes"),
        ("mcl", {"similarity.batch_size": 3}, "at least two images of each class"),
        ("kcl", {"kcl.out_dim": 1}, "kcl.out_dim is 1; it must be 0, or at least the number of new classes"),
        ("dtc", {"dtc.out_dim": 30}, "at most that of the unlabelled images"),
        ("dtc", {"dtc.frozen": ["block9"]}, "cannot freeze block9"),
        ("kcl", {"kcl.frozen": ["stem", "block1", "block2", "block3"]}, "only heads would learn"),
        ("kcl", {"linear.augment.crop": 1}, "no effect on a linear classifier"),
        ("kcl", {"joint.batch_size": 500, "linear.epochs": 500, "kcl.lr": -1.0}, "lr is -1.0"),
    ],
)  # fmt: skip
def test_wrong_settings_of_the_method_that_runs_are_explained(
    method: str, settings: dict[str, Any], words: str
) -> None:
    images, y = stripes(per_class=10)
    with pytest.raises((UsageError, InputError), match=words):
        Discoverer(n_new=2, method=method, settings=QUICK | settings, verbose=False).fit(images, y)


def test_settings_of_methods_that_do_not_run_are_nobody_s_trouble(tmp_path: Path) -> None:
    found = fit("kmeans", {"joint.batch_size": 500, "dtc.batch_size": 500, "kcl.out_dim": 1}, tmp_path / "run")
    assert found.n_new_ == 2


@pytest.mark.parametrize("method", ["kcl", "dtc"])
def test_without_the_linear_classifier_known_classes_are_told_by_their_means(method: str, tmp_path: Path) -> None:
    found = fit(method, {"linear.epochs": 0, "supervised.epochs": 0}, tmp_path / "run")
    _, y = stripes()
    known = found.discovery_.nearest_known.numpy()
    assert (known[y >= 0] == y[y >= 0]).mean() > 0.9
    assert json.loads((tmp_path / "run" / "results.json").read_text())["incremental"] is None


@pytest.mark.slow
def test_all_systems_run_from_scratch_and_beside_each_other(tmp_path: Path) -> None:
    asked = ["kmeans", "kcl", "mcl", "dtc", "rankstats"]
    methods = [word for name in asked for word in ("--method", name)]
    alike = ("--no-self-supervision", "--out", tmp_path)
    done = autonovel("reproduce", TINY, *methods, *alike, "--keep-going")
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = tmp_path.iterdir()
    assert run.name == "tiny-kmeans-kcl-mcl-dtc-rankstats-without-self-supervision-seed0"
    assert not (run / "stages" / "1-rotation").exists() and (run / "systems" / "dtc" / "stages" / "4-dtc").is_dir()
    rows = [line for line in done.stdout.splitlines() if line.startswith("| tiny pretrain.kind=supervised |")]
    assert [row.split(" | ")[1] for row in rows[:5]] == [
        LABELS[name] for name in ("kmeans", "kcl", "mcl", "dtc", "rankstats")
    ]
    assert sum("joint classifier, old / new / all" in row for row in rows[5:]) == 3
    epochs = [line for line in (run / "metrics.jsonl").read_text().splitlines() if '"2-supervised"' in line]
    assert len(epochs) == 3, "a network from scratch learns for epochs of its own"
    beside = autonovel("reproduce", TINY, "--method", "kmeans", *alike)
    assert f"Stage 2-supervised is shared with {run}" in beside.stdout


def test_a_study_of_ranking_statistics_takes_no_other_method(tmp_path: Path) -> None:
    done = autonovel("reproduce", TINY, "--method", "dtc", "--ablations", "--out", tmp_path)
    assert done.returncode == 2 and "give them without --method" in done.stderr
    wrong = autonovel("run", TINY, "--method", "magic", cwd=tmp_path)
    assert wrong.returncode == 2 and "run.systems" in wrong.stderr and "magic" in wrong.stderr


@pytest.mark.slow
def test_the_example_of_a_new_method_puts_its_row_into_the_table(tmp_path: Path) -> None:
    program = Path(__file__).resolve().parents[1] / "examples" / "new_method.py"
    assert len(program.read_text().splitlines()) <= 60
    done = subprocess.run(
        [sys.executable, program, "--recipe", TINY, "--out", tmp_path / "run", "--set", "joint.epochs=2",
         "--set", "joint.schedule=constant", "--set", "joint.keep_embeddings_at=[]"],
        capture_output=True, text=True, env=environment(), cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| tiny")]
    assert any("| cosine of pairs |" in row for row in rows) and len(rows) == 3


@pytest.mark.slow
def test_the_demo_compares_every_system(tmp_path: Path) -> None:
    quick = [f"{stage}.epochs=1" for stage in STAGES if stage != "linear"] + ["dtc.start_epochs=1", "linear.epochs=11"]
    quick += [f"{stage}.batch_size=40" for stage in STAGES] + ["data.per_class=40", "run.map_points=40"]
    sets = [word for change in quick for word in ("--set", change)]
    done = autonovel("demo", "--compare", "--keep-going", *sets, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    run = tmp_path / "runs" / "demo-compare-seed0"
    assert "Next: autonovel review runs/demo-compare-seed0 " in done.stdout
    results = json.loads((run / "results.json").read_text())
    assert set(results["systems"]) == set(EVERY_SYSTEM) and all(results["systems"].values())
    assert {name for name, joint in results["joint_classifiers"].items() if joint} == set(JOINT_HEAD)
    shown = [line for line in done.stdout.splitlines() if "│" in line]
    assert all(any(label in line for line in shown) for label in (LABELS[name] for name in EVERY_SYSTEM))
    assert (run / "systems.png").exists() and (run / "systems.svg").exists()
    assert "Accuracy of the systems as bars" in (run / "report.html").read_text()


@pytest.mark.full
def test_on_the_sample_every_system_beats_raw_pixels(tmp_path: Path) -> None:
    done = autonovel("demo", "--compare", "--seed", 1, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stdout + done.stderr
    acc = {name: s["acc"] for name, s in json.loads((tmp_path / "run" / "results.json").read_text())["systems"].items()}
    assert min(acc[name] for name in ("dtc", "kcl", "mcl")) > acc["kmeans-pixels"]
    assert acc["dtc"] >= 0.65 and acc["kcl"] >= 0.59 and min(acc["rankstats"], acc["rankstats-incremental"]) >= 0.93
    assert (tmp_path / "run" / "systems.png").exists()
