"""``network.json``: what a run needs to rebuild a network that came from elsewhere, and to know it again."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from autonovel import hub
from autonovel.errors import UsageError
from autonovel.networks import hf
from autonovel.settings import Network
from autonovel.storage.documents import write_json
from autonovel.storage.run_folder import FORMAT
from autonovel.storage.shapes import NETWORK, read_shaped

if TYPE_CHECKING:
    from autonovel.job import Job

FILE = "network.json"


def keep_network(job: "Job") -> None:
    """Write down which pretrained model a run builds on; a resumed run must find the same weights."""
    network = job.recipe.network
    if network.name != hf.NAME:
        return
    found = hub.find(network.model)
    mean, std, note = found.normalisation()
    content = {
        "format": FORMAT,
        "model": network.model,
        "weights": found.digest(),
        "config": found.config,
        "mean": mean,
        "std": std,
        "note": note,
    }
    path = job.folder / FILE
    if path.exists():
        if read_shaped(path, NETWORK, ("weights",))["weights"] != content["weights"]:
            raise UsageError(
                f"{network.model} has other weights than when this run began. Resume with the same ones, or start "
                "anew with --overwrite."
            )
        return
    trunk = hf.trunk(network.model, found.config, hf.COLOURS)
    hf.load_pretrained(trunk, network)
    hf.check_repeatable(network.model, trunk, job.recipe.data.size or int(job.train.images.shape[2]))
    if note:
        job.display.say(note)
    write_json(path, content)


def kept_config(folder: Path, network: Network) -> dict[str, Any] | None:
    """Return the architecture of the pretrained model in the run at ``folder``; None where its name says it all."""
    if network.name != hf.NAME:
        return None
    return dict(read_shaped(folder / FILE, NETWORK, ("config",))["config"])
