"""The model a run delivers, read back from its folder."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors

from autonovel import recipe
from autonovel.errors import RunFolderError
from autonovel.network_file import kept_config
from autonovel.networks import Adapted, Model, Trunk, heads, make_trunk
from autonovel.networks.adapted import ADAPTER
from autonovel.storage.run_folder import check_format


def load_model(folder: Path) -> Model:
    """Return the model of the finished run at ``folder``, in eval mode on the CPU.

    Its outputs are in the order of the run's classes: known ones first, new ones by size.
    """
    settings = recipe.restore(check_format(folder)["recipe"])
    path, config = folder / "model.safetensors", kept_config(folder, settings.network)
    try:
        tensors = load_tensors(path.read_bytes())
        mean = tensors["mean"].flatten()
        trunk: Trunk = make_trunk(settings.network, len(mean), config)
        if isinstance(trunk, Adapted) and not any(name.startswith(f"trunk.blocks.{ADAPTER}.") for name in tensors):
            trunk = trunk.without_adapter()  # as the method took it that delivered
        network = settings.network
        model = Model(trunk, mean, tensors["std"].flatten(), crop=network.crop, side=network.side)
        for head in ("known", "new"):
            model.heads[head] = heads.empty_head(tensors, f"heads.{head}")
        model.load_state_dict(tensors)
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        raise RunFolderError(f"{path} cannot be read ({error}). Finish the run with --resume.") from error
    return model.to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload, no-any-return]
