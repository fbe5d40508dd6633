"""k-means here and in scikit-learn, side by side: `python benchmarks/kmeans.py` prints times and their ratio.

Both cluster the same 25,000 × 512 features into 20 clusters with 10 restarts, on the same number of threads, and
both are given the same tolerance and number of iterations; the inertia each reached stands beside its time.  On a
machine with a CUDA device, that is timed as well.  The features imitate those of a network: rectified random
projections of overlapping classes.
"""

import argparse
import os
import time

import torch
from torch import Tensor


def features(n: int, d: int, classes: int, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    middles = 1.2 * torch.randn(classes, 32, generator=rng)
    hidden = middles[torch.randint(0, classes, (n,), generator=rng)] + torch.randn(n, 32, generator=rng)
    mixed = hidden @ torch.randn(32, d, generator=rng) / 32**0.5
    return torch.relu(mixed + 0.3 * torch.randn(n, d, generator=rng))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=25_000)
    parser.add_argument("--dimensions", type=int, default=512)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--restarts", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3, help="the fastest of these counts")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)

    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    from autonovel import device
    from autonovel.clustering import kmeans

    torch.set_num_threads(arguments.threads)
    x = features(arguments.points, arguments.dimensions, arguments.clusters)
    k, restarts = arguments.clusters, arguments.restarts
    print(f"{len(x):,} × {x.shape[1]} points, K = {k}, {restarts} restarts, {arguments.threads} threads, "
          f"{device.describe(torch.device('cpu'))}")  # fmt: skip
    times: dict[str, list[float]] = {}
    inertia: dict[str, float] = {}
    devices = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
    with threadpool_limits(arguments.threads):
        for repeat in range(arguments.repeats):
            start = time.perf_counter()
            theirs = KMeans(k, n_init=restarts, max_iter=100, random_state=repeat).fit(x.numpy())
            times.setdefault("scikit-learn", []).append(time.perf_counter() - start)
            inertia["scikit-learn"] = min(inertia.get("scikit-learn", float("inf")), float(theirs.inertia_))
            for place in devices:
                there = x.to(place)
                if place == "cuda" and repeat == 0:
                    kmeans(there, k, seed=99, restarts=restarts)  # loads its kernels
                start = time.perf_counter()
                ours = kmeans(there, k, seed=repeat, restarts=restarts)
                times.setdefault(place, []).append(time.perf_counter() - start)
                inertia[place] = min(inertia.get(place, float("inf")), ours.inertia)
    slow = min(times["scikit-learn"])
    for name, spent in times.items():
        told = ", ".join(f"{seconds:.2f}" for seconds in spent)
        print(f"{name:14s} fastest {min(spent):7.3f} s of ({told})  {slow / min(spent):6.1f} ×  "
              f"lowest inertia {inertia[name]:.6g}")  # fmt: skip


if __name__ == "__main__":
    main()
