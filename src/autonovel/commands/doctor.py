"""``autonovel doctor``: what is installed, which devices are there, and do the objectives compute right here."""

import importlib.util
import time

import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autonovel import device as devices
from autonovel import selftest
from autonovel.extras import EXTRAS, adding


def examine() -> bool:
    """Print the findings; return whether all is well."""
    console = Console()
    facts = Table("what", "found", title="Installation")
    for name, version in devices.versions().items():
        facts.add_row(name, version)
    for extra, packages in EXTRAS.items():
        there = all(importlib.util.find_spec(package) for package in packages)
        facts.add_row(f"extra {extra}", "yes" if there else escape(f"no: {adding(extra)}"))
    facts.add_row("threads", str(torch.get_num_threads()))
    console.print(facts)
    outcomes = [_examine_device(console, device) for device in _devices()]
    return all(outcomes)


def _devices() -> list[torch.device]:
    found = [torch.device("cpu")]
    if torch.cuda.is_available():
        found.append(torch.device("cuda"))
    if torch.backends.mps.is_available():
        found.append(torch.device("mps"))
    return found


def _examine_device(console: Console, device: torch.device) -> bool:
    start = time.monotonic()
    outcome = selftest.check(device)
    table = Table("objective", "agrees with its naive loop", title=f"Self-test on {devices.describe(device)}")
    for name, agrees in outcome.items():
        table.add_row(name, "yes" if agrees else "NO")
    console.print(table)
    console.print(f"{sum(outcome.values())} of {len(outcome)} agree, {time.monotonic() - start:.2f} s", highlight=False)
    return all(outcome.values())
