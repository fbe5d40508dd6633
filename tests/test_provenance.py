"""Which source tree a run says that it came from."""

import subprocess
from pathlib import Path

import pytest

from autonovel import device
from autonovel.words import short_commit


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository of one commit that the package seems to run from."""
    module = tmp_path / "src" / "autonovel" / "device.py"
    module.parent.mkdir(parents=True)
    module.write_text("one = 1\n")
    (tmp_path / "notes.txt").write_text("a note\n")
    monkeypatch.setattr(device, "__file__", str(module))
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", "first")
    return tmp_path


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_a_run_names_its_commit(tree: Path) -> None:
    assert device.commit() == git(tree, "rev-parse", "HEAD")
    (tree / "notes.txt").write_text("another note\n")
    assert device.commit() == git(tree, "rev-parse", "HEAD")  # the package is what the commit has


@pytest.mark.parametrize("file", ["device.py", "a_new_file.py"])
def test_a_package_that_was_changed_since_is_told(tree: Path, file: str) -> None:
    (tree / "src" / "autonovel" / file).write_text("two = 2\n")
    assert device.commit() == git(tree, "rev-parse", "HEAD") + "-dirty"


def test_a_tree_that_git_cannot_look_at_is_told(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / ".git" / "index").write_text("damaged")
    assert device.commit() == git(tree, "rev-parse", "HEAD") + "-unchecked"
    monkeypatch.setenv("PATH", "")
    assert device.commit() is None


def test_without_a_repository_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "__file__", str(tmp_path / "src" / "autonovel" / "device.py"))
    assert device.commit() is None
    (tmp_path / "src" / "autonovel").mkdir(parents=True)
    (tmp_path / ".git").write_text("damaged")
    assert device.commit() is None


@pytest.mark.parametrize(
    ("commit", "short"),
    [("0123456789abcdef", "0123456"), ("0123456789abcdef-dirty", "0123456-dirty"), (None, "unknown")],
)
def test_a_table_shortens_it(commit: str | None, short: str) -> None:
    assert short_commit(commit) == short
