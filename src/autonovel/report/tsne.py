"""A map of the features: t-SNE of a sample of all images, kept in the run folder so that it is made once."""

import contextlib
import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from autonovel import evaluation
from autonovel.editing.sorting import JUNK
from autonovel.errors import RunFolderError
from autonovel.report.subject import Subject
from autonovel.storage.documents import replace_file
from autonovel.words import count

FEWEST = 30
GRID = 4000
FILE = "map.safetensors"

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Points:
    """A sample of images on a grid whose longer side has ``GRID`` steps.

    Attributes:
        rows: of the images, in order.
        x: steps from the left.
        y: steps from the top.
    """

    rows: Ints
    x: tuple[int, ...]
    y: tuple[int, ...]


@dataclass(frozen=True)
class Map:
    """The map, or the reason why there is none, and how many images it shows."""

    points: Points | None
    note: str


def tsne_map(z: torch.Tensor, max_points: int, folder: Path | None = None) -> Map:
    """Return the map of at most ``max_points`` of the images with features ``z``.

    One that is kept in ``folder`` is taken as it is; one made anew is kept there.
    """
    rows = sample(len(z), max_points)
    if len(rows) < FEWEST:
        return Map(None, f"A map needs at least {FEWEST} images; here it would show {len(rows)}, so it is left out.")
    features = z[torch.from_numpy(rows)].contiguous().numpy()
    flat = _kept(folder, rows, features) if folder else None
    if flat is None:
        chosen = features.astype(np.float64)
        if not np.isfinite(chosen).all() or not np.ptp(chosen, axis=0).any():
            return Map(None, "The features do not tell the images apart, so the map is left out.")
        flat = project(chosen)
        if folder:
            layout = torch.from_numpy(flat).float().contiguous()
            about = {"rows": torch.from_numpy(rows).int(), "features": _sum(features)}
            with contextlib.suppress(RunFolderError):  # a map that cannot be kept is made again
                replace_file(folder / FILE, save_tensors({"flat": layout, **about}))
            flat = np.asarray(layout.numpy(), dtype=np.float64)  # as a later report finds it
    x, y = _on_grid(flat)
    shown = "All" if len(rows) == len(z) else f"A random sample of {count(len(rows))} out of"
    return Map(Points(rows, x, y), f"{shown} {count(len(z))} images.")


def _kept(folder: Path, rows: Ints, features: NDArray[np.float32]) -> Floats | None:
    """Return the layout kept in a run folder, if it is one of these images with these features."""
    path = folder / FILE
    try:
        tensors = load_tensors(path.read_bytes()) if path.exists() else {}
    except (OSError, SafetensorError):
        return None  # it can be made again
    same = (
        tensors.keys() == {"flat", "rows", "features"}
        and np.array_equal(tensors["rows"].numpy(), rows)
        and torch.equal(tensors["features"], _sum(features))
    )
    return np.asarray(tensors["flat"].numpy(), dtype=np.float64) if same else None


def _sum(features: NDArray[np.float32]) -> torch.Tensor:
    """Return a checksum of the features as bytes."""
    return torch.tensor(list(hashlib.blake2b(features.tobytes(), digest_size=16).digest()), dtype=torch.uint8)


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


def counterparts(subject: Subject) -> tuple[int, ...]:
    """Return for each true class the number of the class whose colour it takes: its match's, or one nobody has."""
    free = ~subject.labelled & (subject.class_of != JUNK)
    if subject.truth is None or not free.any():
        return ()
    match = evaluation.matching(subject.truth[free], subject.class_of[free])
    cluster_of = {true: cluster for cluster, true in match.items() if true >= subject.n_known}
    first_free = max(subject.names, default=-1) + 1
    spare = iter(range(first_free, first_free + len(subject.true_names)))
    return tuple(
        number if number < subject.n_known else cluster_of[number] if number in cluster_of else next(spare)
        for number in range(len(subject.true_names))
    )
