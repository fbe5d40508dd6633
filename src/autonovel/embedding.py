"""What the model says of every image: features and the probabilities of its heads."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from autonovel.data import ImageSet
from autonovel.data.streamed import Streamed, in_batches
from autonovel.errors import GuardError, RunFolderError
from autonovel.networks import Model
from autonovel.storage.documents import replace_file
from autonovel.training.telling import watched

CHUNK = 512
ROWS = 1 << 16  # features at once through the heads: a million images times a thousand classes would fill a device


@dataclass(frozen=True)
class Embedding:
    """Features and head outputs in input order, on the CPU.

    Attributes:
        z: n×d features.
        p_new: n×C^u probabilities of the head of the new classes.
        p_known: n×C^l probabilities of the known classes, or n×(C^l + C^u) from a grown head.
    """

    z: Tensor
    p_new: Tensor
    p_known: Tensor

    def is_grown(self, n_known: int) -> bool:
        """Tell whether the head of the ``n_known`` known classes has grown to tell the new ones too."""
        return self.p_known.shape[1] > n_known

    def reordered(self, order: Tensor, n_known: int) -> "Embedding":
        """Return the embedding with the new classes in ``order`` (new class i was ``order[i]``)."""
        p_known = self.p_known[:, joint_order(order, n_known)] if self.is_grown(n_known) else self.p_known
        return Embedding(self.z, self.p_new[:, order].contiguous(), p_known.contiguous())

    def save(self, path: Path) -> None:
        """Write the embedding as safetensors."""
        replace_file(path, save_tensors({"z": self.z, "p_new": self.p_new, "p_known": self.p_known}))

    @classmethod
    def load(cls, path: Path) -> "Embedding":
        """Return the embedding at ``path``."""
        try:
            tensors = load_tensors(path.read_bytes())
            found = cls(tensors["z"], tensors["p_new"], tensors["p_known"])
        except (OSError, SafetensorError, KeyError) as error:
            raise RunFolderError(f"{path} cannot be read ({error}). Finish the run with --resume.") from error
        parts = (found.z, found.p_new, found.p_known)
        if any(part.ndim != 2 or not part.is_floating_point() or len(part) != len(found.z) for part in parts):
            raise RunFolderError(f"{path} is damaged: its tensors are not of one row for each image.")
        return found


def joint_order(order: Tensor, n_known: int) -> Tensor:
    """Return the order of all classes when the new ones are put into ``order``."""
    return torch.cat([torch.arange(n_known), order + n_known])


@torch.no_grad()
def features(model: Model, images: Tensor | Streamed) -> Tensor:
    """Return Φ of uint8 ``images`` without augmentation, in eval mode, on the CPU."""
    model.eval()
    part = model.ranks.part_of(len(images), CHUNK)
    z = torch.empty(len(part), model.trunk.n_features)
    done = 0
    for chunk in watched(_chunks(images, part), len(part), "features"):
        if len(chunk):  # a transformer cannot be asked about no image at all
            z[done : done + len(chunk)] = model.clean_features(chunk)
        done += len(chunk)
    z = model.ranks.join_parts(z, len(images), CHUNK)
    if not _all_finite(z):
        raise GuardError("the features are not finite numbers, so nothing can be delivered. Try a lower learning rate.")
    return z


def _all_finite(z: Tensor) -> bool:
    """Tell whether no number is infinite or NaN, by the extremes alone: masks of many features take long to make."""
    return not z.numel() or bool(torch.stack(z.aminmax()).isfinite().all())


def unlabelled_features(model: Model, images: ImageSet) -> Tensor:
    """Return the features of the unlabelled images without augmentation, on the CPU."""
    rows, pixels = images.unlabelled.nonzero()[:, 0], images.images
    return features(model, pixels[rows]) if isinstance(pixels, Tensor) else features(model, pixels)[rows]


def _chunks(images: Tensor | Streamed, part: range) -> Iterable[Tensor]:
    """Return the images ``part``, some at a time; of several processes, each takes a part of all."""
    if len(part) == len(images):
        return images.split(CHUNK)
    return in_batches(images, torch.arange(part.start, part.stop).split(CHUNK) if part else ())


@torch.no_grad()
def embed(model: Model, images: Tensor | Streamed, z: Tensor | None = None) -> Embedding:
    """Return what ``model`` says of uint8 ``images``; their features ``z`` are computed unless they are at hand."""
    z = features(model, images) if z is None else z
    device = model.mean.device
    p_new, p_known = (
        torch.cat([model.logits(part.to(device), head).softmax(dim=1).cpu() for part in z.split(ROWS)])
        for head in ("new", "known")
    )
    return Embedding(z.contiguous(), p_new, p_known)
