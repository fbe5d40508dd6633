"""The demo on several seeds: `python benchmarks/demo.py --seeds 0 1 2 3 4` prints the table docs/results.md quotes.

Each seed is one undisturbed `autonovel demo` in a process of its own; its results are kept as
benchmarks/results/demo/seed-N.json with the hardware, versions and wall time (process start to end).
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SYSTEMS = {
    "kmeans-pixels": "k-means on raw pixels",
    "kmeans": "k-means on stage-2 features",
    "rankstats": "ranking statistics",
    "rankstats-incremental": "ranking statistics, incremental",
}


def measure(seed: int, extra: list[str], kept: Path) -> dict:
    """Run the demo once and keep its results."""
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        start = time.monotonic()
        command = [sys.executable, "-m", "autonovel", "demo", "--seed", str(seed), "--out", str(run), *extra]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        wall = time.monotonic() - start
        results, facts = json.loads((run / "results.json").read_text()), json.loads((run / "run.json").read_text())
    results["wall_seconds"] = round(wall, 1)
    results["command"] = " ".join(["autonovel", "demo", "--seed", str(seed), *extra])
    results |= {key: facts[key] for key in ("hardware", "versions", "commit", "threads", "platform")}
    kept.mkdir(parents=True, exist_ok=True)
    (kept / f"seed-{seed}.json").write_text(json.dumps(results, indent=2) + "\n")
    return results


def spread(values: list[float]) -> str:
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.1f} ± {deviation:.1f}"


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
    print("\n| system | ACC % by seed | ACC % | NMI % | ARI % |\n|---|---|---|---|---|")
    for name, label in SYSTEMS.items():
        scores = [run["systems"][name] for run in runs if name in run["systems"]]
        if scores:
            by_seed = ", ".join(f"{100 * score['acc']:.1f}" for score in scores)
            cells = " | ".join(spread([100 * score[key] for score in scores]) for key in ("acc", "nmi", "ari"))
            print(f"| {label} | {by_seed} | {cells} |")
    print(f"\nwall time, everything in the table: {spread([run['wall_seconds'] for run in runs])} s")


if __name__ == "__main__":
    main()
