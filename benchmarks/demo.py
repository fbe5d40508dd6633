"""The demo on several seeds: `python benchmarks/demo.py --seeds 0 1 2 3 4` prints the table of docs/results/demo.md.

Each seed is one undisturbed `autonovel demo` in a process of its own; its results are kept as
benchmarks/results/demo/seed-N.json, with the wall time of the process beside them.  Further options, such as
`--set run.systems=rankstats`, go to the demo.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from autonovel.tables import table

HERE = Path(__file__).resolve().parent


def measure(seed: int, extra: list[str], kept: Path) -> dict[str, Any]:
    """Run the demo once and keep its results."""
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        start = time.monotonic()
        command = [sys.executable, "-m", "autonovel", "demo", "--seed", str(seed), "--out", str(run), *extra]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        wall = time.monotonic() - start
        results: dict[str, Any] = json.loads((run / "results.json").read_text())
    results["wall_seconds"] = round(wall, 1)
    kept.mkdir(parents=True, exist_ok=True)
    (kept / f"seed-{seed}.json").write_text(json.dumps(results, indent=2) + "\n")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--to", type=Path, default=HERE / "results" / "demo")
    arguments, extra = parser.parse_known_args()
    runs = []
    for seed in arguments.seeds:
        runs.append(measure(seed, extra, arguments.to))
        accuracies = {name: round(100 * scores["acc"], 1) for name, scores in runs[-1]["systems"].items()}
        print(f"seed {seed}: {runs[-1]['wall_seconds']} s {accuracies}", flush=True)
    print("\n" + table.markdown(runs))


if __name__ == "__main__":
    main()
