"""Which device trains, and what it is, in words."""

import contextlib
import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from autonovel import __version__
from autonovel.errors import UsageError


def pick(name: str) -> torch.device:
    """Return the device ``cpu``, ``cuda`` or ``mps``; ``auto`` takes the fastest that is there."""
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if there[kind])
    if name not in there:
        raise UsageError(f"no device {name!r}; choose cpu, cuda, mps or auto.")
    if not there[name]:
        raise UsageError(f"device {name} is not available here. Choose --device cpu, or auto.")
    return torch.device(name)


def precision(setting: str, device: torch.device) -> str:
    """Return the arithmetic of the trunk: ``bf16`` where a GPU has it, unless told otherwise."""
    if setting != "auto":
        return setting
    return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "float32"


@contextlib.contextmanager
def torch_settings(arithmetic: str) -> Iterator[None]:
    """Set what torch keeps for the whole process as a run needs it, and put it back afterwards.

    Args:
        arithmetic: of the trunk; ``float32`` means true float32, in convolutions too.
    """
    threads, cudnn = torch.get_num_threads(), torch.backends.cudnn
    before = torch.get_float32_matmul_precision(), cudnn.benchmark, cudnn.allow_tf32
    try:
        torch.set_float32_matmul_precision("highest")  # TF32 in the pair product can collapse a run
        cudnn.benchmark = True  # shapes never change, so that searching for the best kernels pays
        cudnn.allow_tf32 = arithmetic != "float32"
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(before[0])
        cudnn.benchmark, cudnn.allow_tf32 = before[1:]


def describe(device: torch.device) -> str:
    """Return the device in words."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type}, {_processor()}, {os.cpu_count()} cores"


def _processor() -> str:
    """Return the model of the processor where the system tells it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Return the versions a result depends on."""
    import numpy
    import scipy
    import sklearn

    return {
        "autonovel": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def commit() -> str | None:
    """Return the git commit of the source tree this package runs from, if it runs from one.

    It ends with ``-dirty``, as git itself puts it, where the package is not what the commit has, and with
    ``-unchecked`` where git cannot tell.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists() or not (root / "src" / "autonovel").is_dir():
        return None
    found = _git(root, "rev-parse", "HEAD")
    changes = _git(root, "--no-optional-locks", "status", "--porcelain", "--", "src")
    return found and found + ("-unchecked" if changes is None else "-dirty" if changes else "")


def _git(root: Path, *words: str) -> str | None:
    """Return what git says; None where there is no git, or no repository that it trusts."""
    try:
        found = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() if found.returncode == 0 else None


def peak_memory_bytes(device: torch.device) -> dict[str, int | None]:
    """Return the most memory the process has used, on the host and on the GPU."""
    host: int | None = None
    try:
        import resource
        import sys

        unit = 1 if sys.platform == "darwin" else 1024
        host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    except ImportError:  # pragma: no cover - Windows
        pass
    return {"host": host, "gpu": torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None}


def facts(device: torch.device) -> dict[str, Any]:
    """Return what a result depends on besides recipe and seed."""
    return {"device": describe(device), "versions": versions(), "commit": commit(), "platform": platform.platform()}
