"""What torchrun tells the processes it starts: which one of how many this is, and whether it starts them again.

Nothing here needs torch, so that a command can be refused before it is imported.
"""

import atexit
import os
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from autonovel.errors import RunFolderError, UsageError
from autonovel.storage.documents import read_json

TOGETHER = ("run", "predict")  # commands that several processes do together
PATIENCE = 5.0  # seconds in which the first process tells of an error, before another one ends and torchrun all


@dataclass(frozen=True)
class Launch:
    """This process among those that torchrun started; alone where it did not.

    Attributes:
        rank: number of this process.
        world: how many there are, on all machines.
        local_rank: number of this process on its machine.
        local_world: how many there are on its machine.
        name: which torchrun it was; empty where none was.
        restarts: how often it has started these processes again.
    """

    rank: int = 0
    world: int = 1
    local_rank: int = 0
    local_world: int = 1
    name: str = ""
    restarts: int = 0


def launch(environment: Mapping[str, str] = os.environ) -> Launch:
    """Return what torchrun's variables say of this process."""
    if "TORCHELASTIC_RUN_ID" not in environment:
        return Launch()
    keys = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    rank, world, local_rank, local_world = (
        int(environment.get(key, default)) for key, default in zip(keys, "0101", strict=True)
    )
    # the parent is torchrun itself, which stays the same over restarts; the first process's tells runs apart
    name = f"{socket.gethostname()}:{os.getppid()}:{_began(os.getppid())}"
    return Launch(rank, world, local_rank, local_world, name, int(environment.get("TORCHELASTIC_RESTART_COUNT", "0")))


def _began(process: int) -> str:
    """Return when a process began, in the system's own count: containers give many the same number."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):  # not Linux
        return ""


def check_command(command: str | None) -> None:
    """Refuse commands that several processes would only do several times."""
    here = launch()
    if here.world == 1 or command is None or command in TOGETHER:
        return
    if here.rank:
        time.sleep(PATIENCE)  # torchrun ends all as soon as one ends: the first one is to say why
    raise UsageError(
        f"torchrun has started {here.world} processes, and autonovel {command} is done by one. Give it without "
        f"torchrun; {' and '.join(TOGETHER)} are the commands for many."
    )


def started_again(folder: Path, here: Launch) -> bool:
    """Tell whether this very torchrun began the run in ``folder``, and so has started its processes once more."""
    if not here.name or not (folder / "run.json").exists():
        return False
    try:
        return bool(read_json(folder / "run.json")["parts"][-1].get("launch") == here.name)
    except (RunFolderError, AttributeError, KeyError, IndexError, TypeError):
        return False  # what is wrong with it will be said where it is used


def end_at_once(code: str | int | None) -> NoReturn:
    """End this process without the interpreter's last tidying up.

    Threads of Gloo may hold tensors still, and then abort the process (torch 2.13): a command that went well would be
    taken for one that failed.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else code is not None)


def about(here: Launch) -> dict[str, Any]:
    """Return what ``run.json`` says of the processes; nothing of one process that nobody else started."""
    return {"processes": here.world, "launch": here.name} if here.name else {}
