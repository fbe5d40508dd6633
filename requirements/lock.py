"""Writes ``demo.txt`` and ``dev.txt``: every package but torch, of one version each, with the checksums of its files.

    pip install uv && make lock

uv asks the package index for versions that fit Python 3.11 and later on every platform, and for the checksums of all
their files.  torch is left out with the packages that only it brings (CUDA, triton): which build of it is right differs
from place to place, so ``constraints.txt`` pins its version alone.
"""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
OF_TORCH = re.compile(r"(torch|triton|nvidia-[\w-]+|cuda-[\w-]+)==")
WIDEST = "dev"
TITLE = "# Made by make lock; do not edit. torch is in constraints.txt.\n"


def lock(extra: str) -> str:
    """Return the requirements of the project with ``extra``, and of building it, each with its checksums."""
    command = ["uv", "pip", "compile", "pyproject.toml", "requirements/build.in", "--extra", extra, "--quiet"]
    command += ["--constraint", "constraints.txt", "--universal", "--python-version", "3.11", "--generate-hashes"]
    command += ["--no-header", "--no-annotate", "--no-emit-index-url"]
    if extra != WIDEST:  # one version of a package for all
        command += ["--constraint", f"requirements/{WIDEST}.txt"]
    found = subprocess.run(command, cwd=HERE.parent, check=True, capture_output=True, text=True).stdout
    blocks = re.split(r"^(?=\S)", found, flags=re.MULTILINE)
    return TITLE + "".join(block for block in blocks if block.strip() and not OF_TORCH.match(block))


if __name__ == "__main__":
    for name in sys.argv[1:] or (WIDEST, "demo"):
        (HERE / f"{name}.txt").write_text(lock(name), encoding="utf-8")
