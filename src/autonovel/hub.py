"""Pretrained models of the library transformers: where their files lie and what these say, without loading any.

A model is a folder as ``save_pretrained`` writes it (``config.json``, weights in ``*.safetensors``, usually
``preprocessor_config.json``), given as such or by its name on the Hugging Face hub.  Weights are read from safetensors
alone, and no code that comes with a model is ever run.
"""

import functools
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from autonovel.errors import UsageError
from autonovel.extras import installing

PREFIX = "hf:"
BLOCK = "pretrained"  # what the one block of such a network is called
FILES = ["config.json", "preprocessor_config.json", "model.safetensors", "model-*.safetensors",
         "model.safetensors.index.json"]  # fmt: skip
IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # means and deviations of ImageNet's channels
USUAL_SIDE = 224  # of models that do not say on which images they were trained
PLACES = ("_name_or_path", "auto_map")  # what a config says of other places than its own architecture
READ_AT_ONCE = 2**24
ANY_FOLDER = "a local folder that save_pretrained wrote"
# NAME or OWNER/NAME; everything else can only be a path
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


@dataclass(frozen=True)
class PretrainedFolder:
    """The files of one model.

    Attributes:
        name: as it was asked for.
        folder: where its files lie.
        config: what ``config.json`` says of its architecture.
    """

    name: str
    folder: Path
    config: dict[str, Any]

    @property
    def weights(self) -> list[Path]:
        """Return the files of its weights."""
        return sorted(self.folder.glob("*.safetensors"))

    def digest(self) -> str:
        """Return a checksum of its weights."""
        sums = hashlib.blake2b(digest_size=16)
        for path in self.weights:
            with path.open("rb") as file:
                while block := file.read(READ_AT_ONCE):
                    sums.update(block)
        return sums.hexdigest()

    def normalisation(self) -> tuple[tuple[float, ...], tuple[float, ...], str]:
        """Return mean and deviation of each channel of images in [0, 1], and a note where they had to be assumed."""
        path = self.folder / "preprocessor_config.json"
        said = _read(path) if path.exists() else {}
        mean: tuple[float, ...]
        std: tuple[float, ...]
        if said.get("do_normalize") is False:
            mean, std, note = (0.0,) * 3, (1.0,) * 3, ""
        elif said.get("image_mean") is None or said.get("image_std") is None:
            (mean, std), where = IMAGENET, f"{self.name} does not say how its images were normalised"
            note = f"{where} (preprocessor_config.json); ImageNet's means and deviations are assumed."
        else:
            mean, std, note = _channels(said["image_mean"], path), _channels(said["image_std"], path), ""
        # pixels 0…255 were multiplied by this before they were normalised
        factor = 1.0 if said.get("do_rescale") is False else _factor(said.get("rescale_factor"), path)
        scale = 1.0 if note else 1 / (255 * factor)
        return tuple(scale * value for value in mean), tuple(scale * value for value in std), note


def find(name: str) -> PretrainedFolder:
    """Return the model ``name``, a folder or a name on the hub, whose files are fetched if they are not there yet."""
    if not name:
        raise UsageError(f"network hf needs network.model: a name on the Hugging Face hub, or {ANY_FOLDER}.")
    need_transformers()
    folder = Path(name).expanduser()
    if not folder.is_dir():
        if not _NAME.fullmatch(name):
            raise UsageError(f"there is no folder {name}, and it is no name on the Hugging Face hub (OWNER/NAME).")
        folder = _fetched(name)
    if not (folder / "config.json").is_file():
        raise UsageError(f"{name} has no config.json, so it is no model for transformers. Give {ANY_FOLDER}.")
    found = PretrainedFolder(name, folder, without_places(_read(folder / "config.json")))
    if not found.weights:
        others = [path.name for pattern in ("*.bin", "*.pt", "*.pth", "*.h5") for path in folder.glob(pattern)]
        there = f" ({', '.join(others[:3])} could run code when read, and is left alone)" if others else ""
        raise UsageError(f"{name} has no weights in *.safetensors{there}. Load the model in transformers and write it "
                         "again with save_pretrained.")  # fmt: skip
    return found


def need_transformers() -> None:
    """Raise an error if the library is not installed."""
    if find_spec("transformers") is None:
        raise UsageError(f"network hf needs the package transformers, which is not installed: {installing('hf')}.")


@functools.cache
def _fetched(name: str) -> Path:
    """Return the folder of a model of the hub, in its cache; asked for once in a process."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=FILES))
    except (OSError, ValueError) as error:  # unknown names, models behind a login, no connection
        reason = (str(error).strip().splitlines() or [""])[0]
        raise UsageError(
            f"{name} is no folder here, and could not be fetched from the Hugging Face hub "
            f"({type(error).__name__}: {reason}). Check the name and the connection, or give {ANY_FOLDER}."
        ) from error


def without_places(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``config`` says of the architecture alone."""
    return {key: value for key, value in config.items() if key not in PLACES}


def own_side(config: Mapping[str, Any]) -> int:
    """Return the side of the images a model was made for."""
    side: Any = config.get("image_size")
    side = min(side) if _whole_numbers(side) else side
    return int(side) if isinstance(side, int) and side > 0 else USUAL_SIDE


def patch(config: Mapping[str, Any]) -> int:
    """Return the side of the patches into which a transformer cuts images; 1 for a network of convolutions."""
    side: Any = config.get("patch_size")
    side = max(side) if _whole_numbers(side) else side
    return int(side) if isinstance(side, int) and side > 0 and config.get("hidden_size") else 1


def _whole_numbers(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(type(one) is int for one in value)


def fitting(config: Mapping[str, Any], side: int) -> int:
    """Return the side nearest to ``side`` that the model's patches fill."""
    step = patch(config)
    return max(round(side / step), 1) * step


def check_side(name: str, config: Mapping[str, Any], side: int, setting: str = "data.size") -> None:
    """Raise an error unless images of ``side`` pixels, as ``setting`` says, can be cut into whole patches."""
    step = patch(config)
    if side % step:
        fits = [n for n in (side // step * step, (side // step + 1) * step) if n]
        raise UsageError(
            f"{setting} is {side}, but {name} cuts images into patches of {step}×{step} pixels. "
            f"Choose {' or '.join(map(str, fits))} (--size of discover, or --set {setting}=…)."
        )


def _channels(given: Any, path: Path) -> tuple[float, ...]:
    values = tuple(given) if isinstance(given, list | tuple) else (given,) * 3
    values = values * 3 if len(values) == 1 else values
    if len(values) != 3 or not all(_finite(value) for value in values):
        raise UsageError(f"{path} gives {str(given)[:60]} for the channels of an image; three numbers are needed.")
    return tuple(map(float, values))


def _factor(given: Any, path: Path) -> float:
    if given in (None, 0):
        return 1 / 255
    if not _finite(given) or not 1e-6 < given < 1e6:
        raise UsageError(f"{path} gives rescale_factor as {str(given)[:60]}; a number such as 1/255 is needed.")
    return float(given)


def _finite(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e9 and value == value


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read ({error}). Fetch or write the model anew.") from error
    if not isinstance(found, dict):
        raise UsageError(f"{path} is no JSON object. Fetch or write the model anew.")
    return found
