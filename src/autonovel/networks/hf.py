"""Pretrained vision models of the library transformers (DINOv2, ViT, ResNet, ConvNeXt, …) as one frozen block.

Features are the class token after the last normalisation where a model has such a token, otherwise what its own pooling
gives.  They can be negative: an adapter with a ReLU goes on top, or they are ranked by magnitude.
"""

import contextlib
import inspect
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from autonovel import hub
from autonovel.errors import UsageError
from autonovel.networks.trunk import Trunk
from autonovel.settings import Network

NAME = "hf"
PIXELS = "pixel_values"  # what transformers calls the input of a vision model
COLOURS = 3
MOST_LAYERS = 1000
MOST_WEIGHTS = 10**10


class Pooled(nn.Module):
    """A model of transformers, from normalised images to its pooled features, as a map of one pixel."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.class_token = hasattr(getattr(model, "embeddings", None), "cls_token")
        if self.class_token and hasattr(model, "pooler"):
            setattr(model, "pooler", None)  # noqa: B010 - a layer behind the class token, which many weights come without
        self.model = model
        # images of another size than it was trained on: positions in between are interpolated
        may = "interpolate_pos_encoding" in inspect.signature(model.forward).parameters
        self.options = {"interpolate_pos_encoding": True} if may else {}

    def forward(self, x: Tensor) -> Tensor:
        """Return n×d×1×1 features of n×3×h×w images."""
        out = self.model(pixel_values=x, return_dict=True, **self.options)
        found: Tensor = out.last_hidden_state
        own = getattr(out, "pooler_output", None)
        if self.class_token:
            z = found[:, 0]
        elif own is not None:
            z = own.flatten(1)
        else:
            z = found.mean(dim=(2, 3)) if found.ndim == 4 else found.mean(dim=1)
        return z[:, :, None, None]


def trunk(name: str, config: Mapping[str, Any], channels: int) -> Trunk:
    """Return the architecture that ``config`` describes, with untrained weights; grey images become three channels."""
    if channels not in (1, COLOURS):
        raise UsageError(f"{name} needs images in grey or RGB; these have {channels} channels.")
    side = hub.own_side(config)
    width = _width(name, config, side, side)  # first: it costs no memory
    return Trunk(OrderedDict({hub.BLOCK: Pooled(_architecture(name, config))}), n_features=width)


def normalisation(network: Network) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and deviation of the channels under which the model was trained."""
    mean, std, _ = hub.find(network.model).normalisation()
    return mean, std


def load_pretrained(trunk: Trunk, network: Network) -> None:
    """Fill ``trunk`` with the weights of the model that ``network`` names."""
    found = hub.find(network.model)
    from safetensors import SafetensorError
    from transformers import AutoModel

    try:
        with quiet():
            model, told = AutoModel.from_pretrained(
                found.folder, use_safetensors=True, local_files_only=True, trust_remote_code=False,
                dtype=torch.float32, output_loading_info=True,
            )  # fmt: skip
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        reason = (str(error).strip().splitlines() or [""])[0]
        raise UsageError(f"the weights of {found.name} cannot be read ({reason}). Fetch or write them anew.") from error
    block = Pooled(model)
    missing = sorted(set(told["missing_keys"]) & set(model.state_dict()))
    if missing:
        raise UsageError(
            f"the weights of {found.name} lack {len(missing)} tensors of its architecture, such as {missing[0]}: its "
            "config.json and its weights do not belong together."
        )
    trunk.blocks[hub.BLOCK].load_state_dict(block.state_dict())


def check_size(name: str, config: Mapping[str, Any], height: int, width: int, setting: str = "data.size") -> None:
    """Raise an error unless the model takes images of this size, which they have by ``setting``."""
    made = _config(name, config)
    for side in (height, width):
        hub.check_side(name, dict(config) | _patches(made), side, setting)
    _width(name, config, height, width)


@torch.no_grad()
def check_repeatable(name: str, trunk: Trunk, side: int) -> None:
    """Raise an error if the model answers differently when asked twice, as one does that hides random patches."""
    trunk.eval()
    x = torch.rand(1, COLOURS, side, side, generator=torch.Generator().manual_seed(0))
    first, second = (trunk.average(x, [hub.BLOCK]) for _ in range(2))
    if not torch.equal(first, second) or not torch.isfinite(first).all():
        raise UsageError(
            f"{name} gives an image other features each time, or none that are numbers, so it cannot serve here. "
            "Choose a model that only looks, such as DINOv2, ViT or ResNet."
        )


def _width(name: str, config: Mapping[str, Any], height: int, width: int) -> int:
    """Return the number of features of images of this size, found without computing any of them."""
    with torch.device("meta"), torch.no_grad():
        block = Pooled(_architecture(name, config)).eval()
        weights = sum(one.numel() for one in block.parameters())
        if weights > MOST_WEIGHTS:
            raise UsageError(f"{name} has {weights:,} weights; more than {MOST_WEIGHTS:,} are not loaded.")
        try:
            z: Tensor = block(torch.empty(2, COLOURS, height, width))
        except Exception as error:  # whatever a model makes of a size, or of a config, that does not fit it
            own = hub.own_side(config)
            raise UsageError(
                f"{name} does not take images of {width}×{height} pixels ({error}). It was made for {own}×{own}: "
                f"--size {own} of discover, or --set data.size={own}."
            ) from error
    if z.ndim != 4 or len(z) != 2:
        raise UsageError(f"{name} does not give one row of features to an image. Choose DINOv2, ViT or ResNet.")
    return z.shape[1]


def _config(name: str, config: Mapping[str, Any]) -> Any:
    hub.need_transformers()
    import transformers

    kind = config.get("model_type", "")
    if not isinstance(kind, str) or kind not in transformers.CONFIG_MAPPING:
        raise UsageError(
            f"{name} is of the type {kind!r}, which transformers {transformers.__version__} does not know. Code that "
            "comes with a model is not run; a newer transformers may know the type."
        )
    _check_depth(name, config)
    try:
        with quiet():
            return transformers.CONFIG_MAPPING[kind].from_dict(hub.without_places(config))
    except Exception as error:  # each type of model has checks of its own
        raise _unfit(name, error) from error


def _check_depth(name: str, config: Mapping[str, Any]) -> None:
    """Refuse a number of layers that would take for ever to build."""
    for key, value in config.items():
        depths = value if isinstance(value, list) else [value]
        if ("layers" in key or key == "depths") and any(type(d) is int and d > MOST_LAYERS for d in depths):
            raise UsageError(f"{name} says {key} is {str(value)[:40]}; more than {MOST_LAYERS} layers are not built.")


def _unfit(name: str, error: Exception) -> UsageError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
    return UsageError(f"the config.json of {name} describes no model that transformers can build ({reason[:200]}). "
                      "Fetch or write the model anew.")  # fmt: skip


def _patches(made: Any) -> dict[str, Any]:
    """Return what decides about patches, as the architecture fills it in where config.json is silent."""
    return {key: getattr(made, key) for key in ("patch_size", "hidden_size") if hasattr(made, key)}


def _architecture(name: str, config: Mapping[str, Any]) -> nn.Module:
    """Return the model that ``config`` describes, if it is one of images."""
    made = _config(name, config)
    import transformers

    kinds = transformers.MODEL_MAPPING
    if type(made) not in kinds or getattr(kinds[type(made)], "main_input_name", "") != PIXELS:
        raise UsageError(
            f"{name} ({made.model_type}) is no model of images alone. Choose one of vision, such as DINOv2, ViT, "
            "ResNet or ConvNeXt."
        )
    if getattr(made, "num_channels", COLOURS) != COLOURS:
        raise UsageError(f"{name} was made for images of {made.num_channels} channels; three are needed.")
    try:
        with quiet():
            model = transformers.AutoModel.from_config(made, dtype=torch.float32, trust_remote_code=False)
    except Exception as error:  # sizes that do not go together
        raise _unfit(name, error) from error
    assert isinstance(model, nn.Module)
    return model


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the library from telling of its files and from drawing bars of its own."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
