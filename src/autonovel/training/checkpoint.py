"""The state of a stage as one safetensors file: model, optimiser and position together, or not at all."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn
from torch.optim import Optimizer

from autonovel.errors import RunFolderError, UsageError
from autonovel.networks import heads
from autonovel.networks.imagenet_resnet import renamed
from autonovel.storage.documents import replace_file

NONE: Mapping[str, Tensor] = MappingProxyType({})


def save_model(path: Path, model: nn.Module) -> None:
    """Write the weights of ``model``."""
    replace_file(path, save_tensors(_owned(model.state_dict())))


def load_model(path: Path, model: nn.Module) -> None:
    """Fill ``model`` with the weights at ``path``; its shapes must fit."""
    try:
        model.load_state_dict(_tensors(path))
    except RuntimeError as error:
        raise RunFolderError(f"{path} does not fit this network: {error} Start anew with --overwrite.") from error


def save(
    path: Path, model: nn.Module, optimiser: Optimizer, epoch: int, seconds: float, memory: Mapping[str, Tensor] = NONE
) -> None:
    """Write everything needed to go on with ``epoch`` (the next one); ``memory`` is what the stage remembers."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"memory.{name}": value for name, value in memory.items()}
    for name, parameter in _trained(model, optimiser):
        for key, value in optimiser.state[parameter].items():
            if isinstance(value, Tensor):
                tensors[f"optimiser.{key}.{name}"] = value
    position = {"position": json.dumps({"epoch": epoch, "seconds": seconds})}
    replace_file(path, save_tensors(_owned(tensors), position))


def load(
    path: Path,
    model: nn.Module,
    optimiser: Optimizer,
    memory: dict[str, Tensor] | None = None,
    content: bytes | None = None,
) -> tuple[int, float]:
    """Fill model, optimiser and ``memory``; return the epoch to go on with and the seconds spent before.

    ``content`` is that of the file, where somebody else has read it.
    """
    content = read(path) if content is None else content
    tensors = _parsed(content, path)
    if memory is not None:
        device = next(model.parameters()).device
        memory |= {k.removeprefix("memory."): v.to(device) for k, v in tensors.items() if k.startswith("memory.")}
    try:
        model.load_state_dict({k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")})
    except RuntimeError as error:
        raise RunFolderError(f"{path} does not fit this network: {error}") from error
    parameters = dict(_trained(model, optimiser))
    for entry, value in tensors.items():
        if entry.startswith("optimiser."):
            key, _, name = entry.removeprefix("optimiser.").partition(".")
            parameter = parameters.get(name)
            if parameter is None or value.shape not in (parameter.shape, torch.Size()):  # a count of steps has no shape
                told = f"it holds {entry}, {list(value.shape)}, of which nothing is trained"
                raise RunFolderError(f"{path} does not fit this network: {told}. Start anew with --overwrite.")
            if value.shape == parameter.shape:
                # in the parameter's own memory layout: fused optimisers walk both in storage order
                value = torch.empty_like(parameter, requires_grad=False).copy_(value)
            optimiser.state[parameter][key] = value.to(parameter.device)
    try:
        # a safetensors file begins with the length of its header, a JSON document
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        position = json.loads(header["__metadata__"]["position"])
        return int(position["epoch"]), float(position["seconds"])
    except (TypeError, KeyError, ValueError) as error:
        raise RunFolderError(f"{path} does not say how far it got ({error}). Start anew with --overwrite.") from error


def _trained(model: nn.Module, optimiser: Optimizer) -> list[tuple[str, nn.Parameter]]:
    known = {id(p) for group in optimiser.param_groups for p in group["params"]}
    return [(name, p) for name, p in model.named_parameters() if id(p) in known]


def _owned(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().contiguous() for name, value in tensors.items()}


def read(path: Path) -> bytes:
    """Return the content of a file of weights."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def _tensors(path: Path) -> dict[str, Tensor]:
    return _parsed(read(path), path)


def _parsed(content: bytes, path: Path) -> dict[str, Tensor]:
    try:
        return load_tensors(content)
    except SafetensorError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> RunFolderError:
    return RunFolderError(f"{path} cannot be read ({error}). Start the run anew with --overwrite.")


def load_trunk(path: Path, model: nn.Module) -> None:
    """Fill the trunk of ``model`` from a safetensors file of a whole model or of a trunk alone."""
    tensors = _given(path)
    prefixed = {name.removeprefix("trunk."): value for name, value in tensors.items() if name.startswith("trunk.")}
    try:
        model.get_submodule("trunk").load_state_dict(prefixed or tensors)
    except RuntimeError as error:
        raise UsageError(f"the weights in {path} do not fit network.name: {error}") from error


def known_head(path: Path, n_known: int) -> heads.ClassHead | None:
    """Return the classifier of the known classes that a file has beside its trunk; None if it has none of so many.

    Its outputs are taken to be the known classes in the order of their names.
    """
    tensors, prefix = _given(path), "heads.known."
    try:
        head = heads.empty_head(tensors, prefix.removesuffix("."))
    except KeyError:
        return None
    if not isinstance(head, heads.ClassHead) or head.out_features != n_known:
        return None
    head.load_state_dict({name.removeprefix(prefix): v for name, v in tensors.items() if name.startswith(prefix)})
    return head


def _given(path: Path) -> dict[str, Tensor]:
    """Return the weights of ``pretrain.weights`` under our names."""
    try:
        return renamed(_tensors(path))
    except RunFolderError as error:
        raise UsageError(f"pretrain.weights is {str(path)!r}, which is not a safetensors file of a trunk.") from error
