"""What the README and the pages for users show works as printed."""

import functools
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from autonovel import open_run
from runs import autonovel, environment

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in ("guide", "commands", "benchmarks"))]


def example(part: str, kind: str = "python") -> str:
    """Return the one example of these pages that has ``part`` in it."""
    text = "\n".join(page.read_text() for page in PAGES)
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    (found,) = [text for of, text in blocks if of == kind and part in text]
    return str(found)


@functools.cache  # pages name the same few commands again and again
def help_of(*command: str) -> subprocess.CompletedProcess[str]:
    return autonovel(*command, "--help")


@pytest.mark.slow
def test_the_correcting_examples_run_as_printed(finished: Path) -> None:
    place = finished.parent / "runs"
    place.mkdir()
    finished.rename(place / "demo-seed0")
    for line in example("autonovel rename", "").splitlines():
        done = autonovel(*shlex.split(line, comments=True)[1:], cwd=place.parent)
        assert done.returncode == 0, (line, done.stderr)
    assert (place.parent / "digits.csv").exists()
    before = len((place / "demo-seed0" / "edits.jsonl").read_text().splitlines())
    name = open_run(place / "demo-seed0").found.ids[242]  # the run here has fewer images than the demo's
    program = example("open_run").replace("003341", name)
    subprocess.run([sys.executable, "-c", program], cwd=place.parent, env=environment(), check=True)
    kinds = [json.loads(line)["edit"] for line in (place / "demo-seed0" / "edits.jsonl").read_text().splitlines()]
    assert kinds[before:] == ["rename", "move", "split", "undo"]


@pytest.mark.slow
def test_the_python_example_runs_as_printed(tmp_path: Path) -> None:
    program = example("Discoverer(")
    program += "\nassert list(found.classes_) == [*'01234', *(f'new-{n}' for n in range(1, 6))]"
    program += "\nassert len(found.labels_) == len(images) and (found.labels_[y >= 0] == y[y >= 0]).all()\n"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "mine" / "discovery.csv").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_and_option_it_names_exists(page: Path) -> None:
    lines = re.findall(r"`autonovel ([a-z]+[^`]*)`", page.read_text())
    assert len(lines) >= 3
    for line in lines:
        words = line.split()
        shown = help_of(*(words[:2] if words[0] == "data" else words[:1]))
        assert shown.returncode == 0, line
        for option in re.findall(r"--[a-z-]+", line):
            assert option in shown.stdout, (line, option)


def test_every_recipe_named_exists_and_every_recipe_is_named() -> None:
    from autonovel import recipe

    (named,) = re.findall(r"Recipes: ([^.]*)\.", (ROOT / "docs" / "commands.md").read_text())
    assert sorted(re.findall(r"`([\w-]+)`", named)) == recipe.names()


def test_the_recipe_that_extends_another_can_be_read(tmp_path: Path) -> None:
    from autonovel import recipe

    place = tmp_path / "five.toml"
    place.write_text(example("extends", "toml"))
    loaded = recipe.load(str(place))
    assert recipe.flatten(loaded.recipe) == recipe.flatten(recipe.load("cifar10-fast", ["joint.k=5"]).recipe) | {
        "name": "five",
        "about": "CIFAR-10 in minutes, with the paper's k",
    }
    assert loaded.sources["joint.k"].startswith("the paper's")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_it_links_to_exist(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)", page.read_text())
    assert targets and all((page.parent / target).exists() for target in targets)
