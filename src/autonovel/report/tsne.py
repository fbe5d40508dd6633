"""A map of the features: t-SNE of a sample of all images."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autonovel import evaluation
from autonovel.data import ImageSet
from autonovel.discovery import Discovery
from autonovel.embedding import Embedding
from autonovel.report.gather import true_names
from autonovel.report.words import count

FEWEST = 30
GRID = 4000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Points:
    """A sample of images on a grid whose longer side has ``GRID`` steps.

    Attributes:
        ids: name of each image.
        x: steps from the left.
        y: steps from the top.
        given: whether the image came with a label.
        found: found class of each image.
        found_names: names of the found classes.
        truth: true class of each image; None where nobody knows.
        truth_names: names of the true classes.
        truth_like: for each true class the found class whose colour it shares.
    """

    ids: tuple[str, ...]
    x: tuple[int, ...]
    y: tuple[int, ...]
    given: tuple[bool, ...]
    found: tuple[int, ...]
    found_names: tuple[str, ...]
    truth: tuple[int, ...] | None
    truth_names: tuple[str, ...]
    truth_like: tuple[int, ...]


@dataclass(frozen=True)
class Map:
    """The map, or the reason why there is none, and how many images it shows."""

    points: Points | None
    note: str


def tsne_map(images: ImageSet, embedding: Embedding, found: Discovery, max_points: int) -> Map:
    """Return the map of at most ``max_points`` images."""
    rows = sample(len(images), max_points)
    if len(rows) < FEWEST:
        return Map(None, f"A map needs at least {FEWEST} images; here it would show {len(rows)}, so it is left out.")
    z = embedding.z.numpy()[rows].astype(np.float64)
    if not np.isfinite(z).all() or not np.ptp(z, axis=0).any():
        return Map(None, "The features do not tell the images apart, so the map is left out.")
    x, y = _on_grid(project(z))
    points = Points(
        ids=tuple(found.ids[row] for row in rows),
        x=x,
        y=y,
        given=tuple((~images.unlabelled).numpy()[rows].tolist()),
        found=tuple(found.class_id.numpy()[rows].tolist()),
        found_names=found.names,
        truth=None if images.truth is None else tuple(images.truth.numpy()[rows].tolist()),
        truth_names=() if images.truth is None else true_names(images),
        truth_like=() if images.truth is None else _counterparts(images, found),
    )
    shown = "All" if len(rows) == len(images) else f"A random sample of {count(len(rows))} out of"
    return Map(points, f"{shown} {count(len(images))} images.")


def sample(n: int, at_most: int) -> NDArray[np.int64]:
    """Return the rows on the map, always the same ones, in order."""
    if n <= at_most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, at_most, replace=False))


def project(z: Floats, start: Floats | None = None) -> Floats:
    """Return n×2 coordinates by t-SNE, the same on every call.

    A layout ``start`` of the same images to begin from makes two maps of them comparable.

    Barnes-Hut gradients, exact neighbours and 400 iterations rather than 750: for 2,000 points that is three
    times as fast as openTSNE's defaults, and the divergence it ends with is less than 1 % higher.
    """
    from openTSNE import TSNE

    made = TSNE(
        perplexity=min(30.0, (len(z) - 1) / 3),
        initialization=_small(start) if start is not None else "pca" if z.shape[1] > 1 else "random",
        neighbors="exact",
        negative_gradient_method="bh",
        early_exaggeration_iter=100,
        n_iter=300,
        random_state=0,
        n_jobs=1,
    ).fit(z)
    return np.asarray(made, dtype=np.float64)


def _small(flat: Floats) -> Floats:
    """Return a layout as t-SNE wants to begin with it: around 0, and so small that points can still pass."""
    centred = flat - flat.mean(axis=0)
    return np.asarray(1e-4 * centred / max(float(centred[:, 0].std()), 1e-12))


def _on_grid(flat: Floats) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return whole numbers, which take a third of the room of floats and lose nothing to the eye."""
    flat = flat * (1, -1) - (flat * (1, -1)).min(axis=0)  # y goes down on the page
    steps = (flat * GRID / max(float(flat.max()), 1e-12)).round().astype(int)
    return tuple(steps[:, 0].tolist()), tuple(steps[:, 1].tolist())


def _counterparts(images: ImageSet, found: Discovery) -> tuple[int, ...]:
    """Return for each true class the number whose colour it takes: its match's, or one nobody has."""
    assert images.truth is not None
    free = images.unlabelled
    match = evaluation.matching(images.truth[free].numpy(), found.class_id[free].numpy())
    cluster_of = {true: cluster for cluster, true in match.items() if true >= found.n_known}
    spare = iter(range(len(found.names), len(found.names) + len(true_names(images))))
    return tuple(
        number if number < found.n_known else cluster_of[number] if number in cluster_of else next(spare)
        for number in range(len(true_names(images)))
    )
