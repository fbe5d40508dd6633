"""Features of a pretrained network, computed once: of every image, and of a few random views of it.

Where the network is held fixed, training needs nothing else, and a step on its features takes no time.
"""

import time
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from autonovel import draws
from autonovel.augment import Augmentation
from autonovel.data import ImageSet
from autonovel.errors import GuardError, RunFolderError
from autonovel.methods.views import augmentation
from autonovel.networks import Adapted, Model
from autonovel.networks.folded import folded
from autonovel.passes import batch_size, side_by_side
from autonovel.settings import Recipe
from autonovel.storage.documents import replace_file
from autonovel.training.display import Display

FEATURES = Path("stages") / "0-features"  # in a run folder
CHUNK = 256  # images to a file: what a killed run has to do again
HALF = torch.finfo(torch.float16).max
PURPOSE = 50  # keeps these draws apart from those of other stages


def with_cached_views(images: ImageSet, model: Model, recipe: Recipe, seed: int, folder: Path, display: Display,
                      views: int, what: str) -> ImageSet:  # fmt: skip
    """Return the set with n×views×d features in place of its pixels; the first view is the image itself.

    Chunks of them are kept in ``folder``, so that a killed run goes on where it was.  Of several processes, each looks
    at a part of every chunk, and the first one writes.
    """
    augment, model, ranks = augmentation(recipe.pretrain), folded(model), model.ranks
    title = f"features of {what}"
    chunks, done, total = [], 0, len(images) * views
    display.begin(title, total, 0, "views")
    start = time.monotonic()
    for number, pixels in enumerate(images.images.split(CHUNK)):
        path = _place(folder, what, number)
        found = ranks.lead(lambda path=path: _load(path) if path.exists() else None)  # type: ignore[misc]
        if found is None:
            first, part = number * CHUNK, ranks.part_of(len(pixels), 1)
            rows = torch.arange(first + part.start, first + part.stop)
            mine = _views(model, pixels[part.start : part.stop], rows, augment, views, seed)
            found = ranks.join_parts(mine, len(pixels), 1)
            if ranks.first:
                replace_file(path, save_tensors({"views": found}))
        chunks.append(found)
        done += len(pixels) * views
        display.update(title, done, {}, done / max(time.monotonic() - start, 1e-9))
    display.end(title)
    return replace(images, images=torch.cat(chunks))


def load_views(folder: Path, what: str) -> Tensor | None:
    """Return all cached views in ``folder``; None if there are none."""
    chunks = [_load(path) for path in sorted(folder.glob(f"{_name(what)}-*.safetensors"))]
    return torch.cat(chunks) if chunks else None


def save_views(folder: Path, what: str, number: int, views: Tensor) -> None:
    """Keep ``views`` as chunk ``number`` in ``folder``, unless it is there."""
    path = _place(folder, what, number)
    if not path.exists():
        replace_file(path, save_tensors({"views": views.contiguous()}))


def _name(what: str) -> str:
    return what.replace(" ", "-")


def _place(folder: Path, what: str, number: int) -> Path:
    return folder / f"{_name(what)}-{number:05d}.safetensors"


def _views(model: Model, pixels: Tensor, rows: Tensor, augment: Augmentation, views: int, seed: int) -> Tensor:
    """Return the features of the plain images and of random views of them, in half precision."""
    trunk, device = model.trunk, model.mean.device
    assert isinstance(trunk, Adapted)
    key, size = draws.stream(seed, PURPOSE), batch_size(pixels.shape[-1], device)

    @torch.no_grad()
    def features(part: tuple[int, Tensor, Tensor]) -> Tensor:
        view, images, index = part
        x = images.to(device)
        if view:
            u = draws.uniform(key, torch.tensor([view], device=device), index.to(device)[None], augment.n_draws)[0]
            x = augment.view(x, u)
        else:
            x = x.float() / 255
        return trunk.pooled(model.normalised(x)).half().cpu()

    batches = list(zip(pixels.split(size), rows.split(size), strict=True))
    parts = [(view, images, index) for view in range(views) for images, index in batches]
    found = list(side_by_side(features, parts, device))
    if not all(bool(torch.isfinite(part).all()) for part in found):
        raise GuardError(
            f"the pretrained network's features are not finite in half precision, which holds {HALF:,.0f} at most. "
            "Scale them (--set network.unit_length=true), or compute them in every step (--set network.cached_views=0)."
        )
    return torch.stack([torch.cat(found[view * len(batches) :][: len(batches)]) for view in range(views)], dim=1)


def _load(path: Path) -> Tensor:
    try:
        return load_tensors(path.read_bytes())["views"]
    except (OSError, SafetensorError, KeyError) as error:
        raise RunFolderError(f"{path} cannot be read ({error}). Delete it, then go on with --resume.") from error
