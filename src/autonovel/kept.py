"""What a run keeps for its figures: features at chosen epochs, and the true classes that colour them."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from autonovel.data import ImageSet
from autonovel.errors import RunFolderError
from autonovel.storage.documents import replace_file

TRUTH = "truth.safetensors"
_NAME = re.compile(r"embedding-epoch-(\d+)\.safetensors")


@dataclass(frozen=True)
class KeptFeatures:
    """Features of the unlabelled images at one moment of the joint training.

    Attributes:
        z: n×d features.
        rows: their numbers in the set of all images.
        epoch: epochs of training behind them; 0 is the start.
    """

    z: Tensor
    rows: Tensor
    epoch: int

    def save(self, folder: Path) -> None:
        """Write the features in half precision, which no picture can tell from the whole."""
        half = self.z.clamp(max=torch.finfo(torch.float16).max).half().contiguous()
        path = folder / f"embedding-epoch-{self.epoch:03d}.safetensors"
        replace_file(path, save_tensors({"z": half, "rows": self.rows.int()}))


def kept_features(folder: Path) -> list[KeptFeatures]:
    """Return all features kept in the folder of a stage, in the order of their epochs."""
    found = [(int(name[1]), path) for path in folder.glob("*") if (name := _NAME.fullmatch(path.name))]
    return [_kept(path, epoch) for epoch, path in sorted(found)]


def _kept(path: Path, epoch: int) -> KeptFeatures:
    try:
        tensors = load_tensors(path.read_bytes())
        return KeptFeatures(tensors["z"].float(), tensors["rows"].long(), epoch)
    except (OSError, SafetensorError, KeyError) as error:
        raise RunFolderError(f"{path} cannot be read ({error}). Run it anew with --overwrite.") from error


@dataclass(frozen=True)
class Truth:
    """True class of every image, for scoring and colouring alone.

    Attributes:
        truth: class of each image, known classes first.
        names: names of the classes.
        n_known: how many of them are known.
    """

    truth: Tensor
    names: tuple[str, ...]
    n_known: int


def save_truth(folder: Path, images: ImageSet) -> None:
    """Write the true classes of ``images``, so that figures need no dataset; nothing where nobody knows them."""
    if images.truth is None:
        return
    about = {"names": json.dumps(images.true_names, ensure_ascii=False), "n_known": str(images.n_known)}
    replace_file(folder / TRUTH, save_tensors({"truth": images.truth.int().contiguous()}, about))


def load_truth(folder: Path) -> Truth | None:
    """Return the true classes kept in a run folder; None where there are none."""
    path = folder / TRUTH
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            about = file.metadata()
            return Truth(file.get_tensor("truth").long(), tuple(json.loads(about["names"])), int(about["n_known"]))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise RunFolderError(f"{path} cannot be read ({error}). Finish the run with --resume.") from error
