"""Small runs through the real command line, and what they leave behind."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TINY = Path(__file__).parent / "tiny.toml"
BESIDE = ("--set", "run.parallel=true")  # its two trained systems as processes beside each other


def autonovel(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command and return what it printed and its exit code."""
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=300, cwd=cwd, env=environment())


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "autonovel", *map(str, arguments)]


def environment() -> dict[str, str]:
    return os.environ | {"COLUMNS": "200", "OMP_NUM_THREADS": "1"}


def journal(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a journal without what depends on the clock."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("seconds", "images_per_second")} for line in lines]


def numbers(run: Path) -> dict[str, Any]:
    """Return everything a run found, leaving out times."""
    results = json.loads((run / "results.json").read_text())
    return {
        "systems": results["systems"],
        "incremental": results["incremental"],
        "discovery": (run / "discovery.csv").read_text(),
        "classes": (run / "classes.json").read_text(),
        "model": (run / "model.safetensors").read_bytes(),
        "embedding": (run / "embedding.safetensors").read_bytes(),
        "metrics": journal(run / "metrics.jsonl"),
        "kept": {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("embedding-epoch-*")},
        "side metrics": journal(run / "systems" / "rankstats" / "metrics.jsonl"),
    }
