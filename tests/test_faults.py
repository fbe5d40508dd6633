"""A small share of ``make faults``: kills, full disks and power cuts at a few of all points."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="trials fork")
def test_nothing_is_lost_at_some_of_all_points(tmp_path: Path) -> None:
    kinds = ("kill", "full disk", "power cut", "kill among edits", "second process", "deleted")
    options = [*(part for name in ("run", "rename") for part in ("--only", name)),
               *(part for kind in kinds for part in ("--kind", kind))]  # fmt: skip
    done = subprocess.run(  # a process of its own: one that has trained cannot fork others that do
        [sys.executable, "-m", "tests.faults", "--every", "60", "--processes", "1", "--to", tmp_path, *options],
        cwd=ROOT, capture_output=True, text=True, timeout=280, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    found = json.loads((tmp_path / "faults.json").read_text())["verdicts"]
    assert {verdict["kind"] for verdict in found} >= {"kill", "full disk", "power cut", "second process", "deleted"}
    assert len(found) > 12
