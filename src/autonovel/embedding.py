"""What the model says of every image: features and the probabilities of its heads."""

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from autonovel.errors import RunFolderError
from autonovel.networks import Model
from autonovel.run_folder import replace_file

CHUNK = 512


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

    def save(self, path: Path) -> None:
        """Write the embedding as safetensors."""
        replace_file(path, save_tensors({"z": self.z, "p_new": self.p_new, "p_known": self.p_known}))

    @classmethod
    def load(cls, path: Path) -> "Embedding":
        """Return the embedding at ``path``."""
        try:
            tensors = load_tensors(path.read_bytes())
            return cls(tensors["z"], tensors["p_new"], tensors["p_known"])
        except (OSError, SafetensorError, KeyError) as error:
            raise RunFolderError(f"{path} cannot be read ({error}). Finish the run with --resume.") from error


@torch.no_grad()
def features(model: Model, images: Tensor) -> Tensor:
    """Return Φ of uint8 ``images`` without augmentation, in eval mode, on the CPU."""
    model.eval()
    device = model.mean.device
    parts = [model.features(chunk.to(device).float() / 255).cpu() for chunk in images.split(CHUNK)]
    return torch.cat(parts)


@torch.no_grad()
def embed(model: Model, images: Tensor) -> Embedding:
    """Return what ``model`` says of uint8 ``images``."""
    z = features(model, images)
    device = model.mean.device
    heads = {name: model.logits(z.to(device), name).softmax(dim=1).cpu() for name in ("new", "known")}
    return Embedding(z.contiguous(), heads["new"].contiguous(), heads["known"].contiguous())
