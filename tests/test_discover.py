"""autonovel discover, from a folder to classes."""

import csv
import io
import json
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

from autonovel.commands.discover import _outcome
from autonovel.commands.look import print_results
from autonovel.evaluation import accuracy
from autonovel.outcome import next_steps
from finished import as_known
from image_files import write_digits
from runs import TINY, autonovel
from test_photos import write_photos

SMALL = ["run.map_points=40", "pretrain.epochs=1", "supervised.epochs=2", "joint.epochs=2", "count.halves=0"]


def sets(*changes: str) -> list[str]:
    return [word for change in changes for word in ("--set", change)]


def rows(run: Path) -> list[dict[str, str]]:
    with (run / "discovery.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_small_pictures_go_the_papers_way(tmp_path: Path) -> None:
    root = write_digits(tmp_path / "digits", per_class=40)
    (root / "unlabelled" / "torn.png").write_bytes(b"no image")
    (root / "truth.csv").unlink()
    done = autonovel("discover", root, "--out", tmp_path / "run", *sets(*SMALL, "data.size=12"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    expected = ("400 images", "known classes (5)", "to be discovered: 200", "cannot be read: 1", "Takes about",
                "Writes", "Method: chosen by trials", "1 file could not be read", "Next: autonovel")  # fmt: skip
    for words in expected:
        assert words in done.stdout, words
    found = rows(tmp_path / "run")
    assert len(found) == 401 and sum(row["status"].startswith("unreadable") for row in found) == 1
    choice = json.loads((tmp_path / "run" / "choice.json").read_text())
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["primary"] == choice["chosen"] and len(choice["trials"]) == 1
    assert json.loads((tmp_path / "run" / "count.json").read_text())["true"] is None
    again = autonovel("discover", root, "--out", tmp_path / "run", *sets(*SMALL, "data.size=12"), cwd=tmp_path)
    assert again.returncode == 2 and "--resume" in again.stderr
    resumed = autonovel("discover", root, "--out", tmp_path / "run", "--resume", *sets(*SMALL, "data.size=12"))
    assert resumed.returncode == 0 and "nothing was left to do" in resumed.stdout
    assert "Timing" in done.stdout and "Timing" not in resumed.stdout


@pytest.mark.slow
def test_a_model_that_was_lost_or_damaged_is_delivered_anew_with_all_corrections(tmp_path: Path) -> None:
    root, run = write_digits(tmp_path / "digits", per_class=20), tmp_path / "run"
    asked = ["discover", root, "--out", run, "--method", "rankstats-incremental", "--new-classes", 5, "--device", "cpu",
             *sets(*SMALL, "data.size=12")]  # fmt: skip
    assert autonovel(*asked).returncode == 0
    assert autonovel("rename", run, "new-1", "zeppelin").returncode == 0
    whole = {
        name: (run / name).read_bytes() for name in ("model.safetensors", "embedding.safetensors", "discovery.csv")
    }
    (run / "model.safetensors").unlink()
    (run / "embedding.safetensors").write_bytes(whole["embedding.safetensors"][:-1])
    lost = autonovel("predict", run, root / "unlabelled", "--device", "cpu")
    assert lost.returncode != 0 and "Finish the run with --resume" in lost.stderr
    again = autonovel(*asked, "--resume")
    assert again.returncode == 0, again.stderr
    assert {name: (run / name).read_bytes() for name in whole} == whole
    assert "zeppelin" in (run / "classes.json").read_text() and "zeppelin" in (run / "report.html").read_text()
    assert "nothing was left to do" in autonovel(*asked, "--resume").stdout


@pytest.mark.slow
def test_whoever_wants_new_classes_has_them_though_a_system_beside_fails(tmp_path: Path) -> None:
    root = write_digits(tmp_path / "digits", per_class=20)
    asked = ["discover", root, "--out", tmp_path / "run", "--method", "kmeans", "--new-classes", 5, "--device", "cpu"]
    failing = sets(*SMALL, "data.size=12", 'run.systems=["kmeans", "dtc"]', "dtc.start_lr=1e30")
    done = autonovel(*asked, *failing)
    assert done.returncode == 0, done.stderr
    for words in ("Beware: another system that was to be compared has failed", "dtc", "5 new classes in", "Next:"):
        assert words in done.stdout, words
    assert (tmp_path / "run" / "report.html").exists()


def test_the_table_of_a_corrected_run_has_the_names_of_now(finished: Path) -> None:
    from autonovel import open_run

    by_class = {"kmeans": [0.1, 1.0, 1.0, 1.0, 1.0]}
    agreement = {"systems": ["rankstats", "kmeans"], "images": 200, "shares": [[1.0, 0.5], [0.5, 1.0]],
                 "classes": [f"new-{number}" for number in range(1, 6)], "by_class": by_class}  # fmt: skip
    results = {"seed": 0, "systems": {"kmeans": None}, "seconds": {"kmeans": 1.0, "total": 2.0}, "incremental": None,
               "agreement": agreement}  # fmt: skip
    open_run(finished).rename("new-1", "zeppelin")
    print_results(Console(file=(seen := io.StringIO()), width=200), results, finished)
    assert "differ most on zeppelin (10.0 % shared)" in seen.getvalue()


@pytest.mark.slow
def test_photos_are_found_quickly_by_their_features(tmp_path: Path) -> None:
    root = write_photos(tmp_path / "photos", per_class=12)
    done = autonovel("discover", root, "--quick", "--new-classes", 2, "--size", 48, "--out", tmp_path / "run",
                     "--backbone", "efficientnet-lite0", "--device", "cpu", *sets("run.map_points=20"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Quick: k-means on features" in done.stdout and "2 known classes are few" in done.stdout
    page = (tmp_path / "run" / "report.html").read_text()
    assert "data.size = 48" in page and "data.source = " not in page  # which the recipe has itself
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert list(results["systems"]) == ["kmeans-pretrained"]
    found = [row for row in rows(tmp_path / "run") if not row["given_label"]]
    truth = ["blue" in row["path"] for row in found]
    assert accuracy([int(one) for one in truth], [int(row["class_id"]) - 2 for row in found]) > 0.9  # type: ignore[arg-type]
    told = autonovel("predict", tmp_path / "run", root / "red", root / "unlabelled", "--device", "cpu")
    assert told.returncode == 0, told.stderr
    answers = {row["path"]: row["class_name"] for row in csv.DictReader(told.stdout.splitlines())}
    assert len(answers) == 36 and set(answers.values()) <= {"red", "green", "new-1", "new-2"}


@pytest.mark.parametrize("scores", [{"acc": 0.5, "nmi": 0.4, "ari": 0.3}, None])
def test_scores_that_nobody_knows_have_no_columns(tmp_path: Path, scores: dict[str, float] | None) -> None:
    seen = io.StringIO()
    results = {"seed": 0, "systems": {"kmeans": scores}, "seconds": {"kmeans": 1.0, "total": 2.0}, "incremental": None}
    print_results(Console(file=seen, width=100), results, tmp_path)
    assert ("ACC %" in seen.getvalue()) == ("50.0" in seen.getvalue()) == bool(scores)
    assert "k-means on stage-2 features" in seen.getvalue() and "–" not in seen.getvalue()


def test_a_folder_with_spaces_is_quoted_where_commands_are_told() -> None:
    told = "\n".join(next_steps(Path("runs/größer & schön-seed0")))
    assert (
        "autonovel review 'runs/größer & schön-seed0'   (" in told
        and "predict 'runs/größer & schön-seed0' LATER" in told
    )


def test_new_classes_that_look_known_are_named(finished: Path) -> None:
    assert "look more like" not in "\n".join(_outcome(as_known(finished, "", "")))
    told = "\n".join(_outcome(as_known(finished, "new-2", "3")))
    assert "40 images look more like a known class (looks_known above 0.5" in told
    assert "By that, new-2 is 3: look, and merge what is the same." in told


def test_classes_that_stay_empty_are_named_in_the_end(finished: Path) -> None:
    assert "there may be fewer" not in "\n".join(_outcome(finished))
    content = json.loads((finished / "classes.json").read_text())
    for entry in content["classes"][-2:]:
        entry["size"] = 0
    (finished / "classes.json").write_text(json.dumps(content))
    told = "\n".join(_outcome(finished))
    assert "2 of them are empty (new-4, new-5): there may be fewer (--new-classes N says how many)." in told


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("joint.epochz=3", "Did you mean 'joint.epoch' or 'joint.epochs'?"),
        ("joint.epoch=3", "joint.epoch is '3'; it must be one of"),
        ('run.systems=["foo"]', "run.systems has 'foo'; each must be one of"),
        ("count.new_classes=many", "count.new_classes is 'many'; give a whole number"),
        ("joint.epochs=abc", "joint.epochs is 'abc'; it must be of type int."),
        ("joint.augment.scale=-1", "joint.augment.scale is -1.0; it must be at least 0"),
    ],
)
def test_a_mistyped_setting_is_told_before_files_are_looked_at(tmp_path: Path, change: str, words: str) -> None:
    (tmp_path / "photos").mkdir()
    done = autonovel("discover", tmp_path / "photos", "--set", change)
    assert done.returncode == 2 and words in done.stderr and not done.stdout


def test_a_table_can_be_discovered_with_a_recipe_of_ones_own(tmp_path: Path) -> None:
    root = write_digits(tmp_path / "digits", per_class=40)
    lines = ["path,label"]
    for path in sorted(root.rglob("*.png")):
        folder = path.parent.name
        lines.append(f"digits/{path.relative_to(root)},{'' if folder == 'unlabelled' else folder}")
    (tmp_path / "images.csv").write_text("\n".join(lines) + "\n")
    done = autonovel("discover", tmp_path / "images.csv", "--recipe", TINY, "--new-classes", 5, "--method", "kmeans",
                     "--out", tmp_path / "run", *sets("pretrain.epochs=1", "run.map_points=40"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Recipe" in done.stdout and len(rows(tmp_path / "run")) == 400


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (["--new-classes", "many"], "--new-classes is 'many'; give a whole number from 2 on, or auto."),
        (["--new-classes", "published"], "--new-classes is 'published'"),
        (["--method", "rankstat"], "--method is 'rankstat'; choose auto, or one of kmeans-pixels"),
        (["--backbone", "vgg"], "--backbone is vgg"),
    ],
)
def test_a_wish_that_cannot_be_fulfilled_is_refused_before_the_files_are_looked_at(
    tmp_path: Path, wish: list[str], words: str
) -> None:
    refused = autonovel("discover", tmp_path, *wish, "--out", tmp_path / "run")
    assert refused.returncode == 2 and words in refused.stderr and refused.stdout == ""


def test_nothing_is_begun_where_nothing_can_be_discovered(tmp_path: Path) -> None:
    missing = autonovel("discover", tmp_path / "nowhere", "--out", tmp_path / "run")
    assert missing.returncode == 2 and "give a folder of images" in missing.stderr
    (tmp_path / "one" / "cat").mkdir(parents=True)
    Image.new("RGB", (50, 50)).save(tmp_path / "one" / "cat" / "a.png")
    alone = autonovel("discover", tmp_path / "one", "--out", tmp_path / "run")
    assert alone.returncode == 2 and "1 known class" in alone.stderr and ": 1 image, " in alone.stdout
    assert not (tmp_path / "run").exists()
