"""Maps that can be compared: the same images in each, every layout begun from the one before."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from autonovel.figures.figure import CannotDrawError, Tick
from autonovel.figures.runs import Run
from autonovel.kept import Truth
from autonovel.report.tsne import FEWEST, project


def comparable(
    features: Sequence[Tensor], chosen: NDArray[np.int64], name: str, tick: Tick
) -> list[NDArray[np.float64]]:
    """Return the t-SNE of the ``chosen`` rows of each of ``features``, or say why there can be none."""
    if len(chosen) < FEWEST:
        raise CannotDrawError(f"a map needs at least {FEWEST} images; here it would show {len(chosen)}.")
    made: list[NDArray[np.float64]] = []
    for number, z in enumerate(features):
        tick(f"{name}: t-SNE", number, len(features))
        points = z.numpy()[chosen].astype(np.float64)
        if not np.isfinite(points).all() or not np.ptp(points, axis=0).any():
            raise CannotDrawError("the features do not tell the images apart (all the same, or not finite).")
        made.append(project(points, made[-1] if made else None))
    tick(f"{name}: t-SNE", len(features), len(features))
    return made


def true_classes(run: Run) -> Truth:
    """Return the classes that colour a map of the images of ``run``."""
    truth = run.truth()
    if truth is None:
        raise CannotDrawError(f"nobody knows the true classes of {run.folder}, which would colour it.")
    return truth
