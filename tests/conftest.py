"""Small things many tests need."""

import os
from collections.abc import Callable

import pytest
import torch
from hypothesis import settings

from autonovel.data import ImageSet

# Inputs are a function of the test alone, so that a failure is the same failure everywhere.
settings.register_profile("autonovel", deadline=None, max_examples=60, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "autonovel"))


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
