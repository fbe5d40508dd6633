"""Small things many tests need."""

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from autonovel.data import ImageSet

# Inputs are a function of the test alone, so that a failure is the same failure everywhere.
settings.register_profile("autonovel", deadline=None, max_examples=60, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "autonovel"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that have most slow tests: one left for the end would keep a single worker busy."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


@pytest.fixture
def make_images() -> Callable[..., ImageSet]:
    """Return a maker of small random ImageSets: some known classes, then unlabelled images of new ones."""

    def make(
        labelled: int = 12,
        unlabelled: int = 12,
        n_known: int = 2,
        n_new: int = 2,
        channels: int = 1,
        height: int = 8,
        width: int = 8,
        seed: int = 0,
        truth: bool = True,
    ) -> ImageSet:
        rng = torch.Generator().manual_seed(seed)
        n = labelled + unlabelled
        known = torch.arange(labelled) % max(n_known, 1)
        new = n_known + torch.arange(unlabelled) % max(n_new, 1)
        return ImageSet(
            images=torch.randint(0, 256, (n, channels, height, width), generator=rng, dtype=torch.uint8),
            y=torch.cat([known, torch.full((unlabelled,), -1)]),
            ids=tuple(f"image-{number}" for number in range(n)),
            class_names=tuple(f"known-{number}" for number in range(n_known)),
            truth=torch.cat([known, new]) if truth else None,
            new_names=tuple(f"hidden-{number}" for number in range(n_new)) if truth else (),
        )

    return make


@pytest.fixture(scope="session")
def _finished_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from finished import finished_run

    return finished_run(tmp_path_factory.mktemp("finished") / "run")


@pytest.fixture
def finished(_finished_template: Path, tmp_path: Path) -> Path:
    """Return the folder of a finished run of 400 digits, the test's own."""
    return Path(shutil.copytree(_finished_template, tmp_path / "run"))


@pytest.fixture(scope="session")
def _template_with_files(_finished_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from finished import with_files

    place = tmp_path_factory.mktemp("files")
    with_files(Path(shutil.copytree(_finished_template, place / "run")), place / "my images")
    return place


@pytest.fixture
def finished_with_files(_template_with_files: Path, tmp_path: Path) -> Path:
    """Return the folder of a finished run whose images are files, in the folder ``my images`` beside it."""
    from finished import move_images

    shutil.copytree(_template_with_files / "my images", tmp_path / "my images")
    return move_images(Path(shutil.copytree(_template_with_files / "run", tmp_path / "run")), tmp_path / "my images")
