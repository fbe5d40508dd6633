"""Whether images go to the device whole or batch by batch."""

import ctypes
import functools
import os
import time
from collections.abc import Callable
from pathlib import Path

import torch

SECONDS_BETWEEN_TRIMS = 2.0
SHARE = 0.25  # of the free memory that images may take: networks, activations and features need the rest
GROUP = Path("/sys/fs/cgroup")  # where Linux keeps the limit of a container


def available_bytes() -> int:
    """Return the memory this process can still get, by the system's word and that of a container's limit."""
    return min(_of_the_system(), _of_the_container())


def _of_the_system() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):  # Windows
        return 4 << 30


def _of_the_container() -> int:
    try:
        limit, used = ((GROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
        stat = dict(line.split() for line in (GROUP / "memory.stat").read_text().splitlines())
        return int(limit) - int(used) + int(stat.get("inactive_file", 0))
    except (OSError, ValueError):  # no container, another system, or no limit: "max"
        return 1 << 62


def free_bytes(device: torch.device) -> tuple[int, str]:
    """Return the memory that is free where ``device`` computes, and what people call it."""
    if device.type == "cuda":
        torch.cuda.empty_cache()  # what earlier tensors have left is free too
        return torch.cuda.mem_get_info(device)[0], "GPU memory"
    return available_bytes(), "memory"


def choose(wanted: str, size: int, held: bool, device: torch.device) -> tuple[str, str]:
    """Return the loader for images of ``size`` bytes, ``resident`` or ``streaming``, and why.

    Args:
        wanted: ``auto``, ``resident`` or ``streaming``.
        size: bytes of all decoded images.
        held: whether they are in the host's memory already.
        device: that trains.
    """
    if wanted != "auto":
        return wanted, f"data.loader = {wanted}"
    free, where = available_bytes(), "memory"
    if device.type == "cuda":
        on_device, _ = free_bytes(device)
        if held or on_device < free:
            free, where = on_device, "GPU memory"
    elif held:
        return "resident", "they are in memory already"
    kind = "resident" if size <= SHARE * free else "streaming"
    than = "at most" if kind == "resident" else "more than"
    return kind, f"{than} a quarter of the {gigabytes(free)} of {where} that are free"


@functools.cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc
        return None
    return found


_last_trim = 0.0


def trim() -> None:
    """Return free pages of the heap to the system, every two seconds at most.

    Between batches that come and go, glibc's heap was seen to grow by megabytes a batch: holes that no later tensor
    fits into.  Giving them back takes some ten milliseconds.
    """
    global _last_trim
    release, now = _malloc_trim(), time.monotonic()
    if release is not None and now - _last_trim >= SECONDS_BETWEEN_TRIMS:
        release(0)
        _last_trim = now


def gigabytes(size: float) -> str:
    """Return a number of bytes in words."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
