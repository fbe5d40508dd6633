"""Counting classes here and by the exhaustive sweep with scikit-learn: `python benchmarks/count.py`.

Both count the five new digits of the embedded sample (2,500 images) in the same features: stages 1 and 2 of the
demo, in the metric of its known classes.  The long way is KMeans with 10 restarts for every count from 2 to 100
and the silhouette of all images; ours is what `autonovel count` does (without the repeats on halves, which the long
way does not have either).  Printed: both answers, both times, their ratio.  `--run` takes a run of the demo that has
its stages 1 and 2; otherwise they are trained first (about half a minute).
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor


def sample_features(run: Path | None, seed: int) -> tuple[Tensor, int]:
    """Return the features of the unlabelled images, and how many classes there are."""
    from autonovel import recipe
    from autonovel.clustering.metric import class_metric
    from autonovel.counting.features import stage_features
    from autonovel.data import sources
    from autonovel.extraction import as_seen
    from autonovel.job import Job
    from autonovel.training.display import Silent

    settings = recipe.load("demo").recipe
    train, _, true = sources.load(settings, seed)
    with tempfile.TemporaryDirectory() as scratch:
        job = Job(settings, train, None, None, seed, torch.device("cpu"), run or Path(scratch), Silent())
        job = as_seen(job)
        parts = stage_features(job, job.train, hidden=())
    return class_metric(parts, train.y, settings.count.shrinkage)[train.unlabelled], true


def long_way(x: np.ndarray, most: int, seed: int) -> int:
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    values = {}
    for count in range(2, most + 1):
        labels = KMeans(count, n_init=10, max_iter=100, random_state=seed).fit(x).labels_
        values[count] = silhouette_score(x, labels)
    return max(values, key=lambda count: (values[count], count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=100)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)

    from threadpoolctl import threadpool_limits

    from autonovel import device
    from autonovel.clustering.count import Points, sweep
    from autonovel.settings import Count

    x, true = sample_features(arguments.run, arguments.seed)
    torch.set_num_threads(arguments.threads)
    print(f"{len(x):,} × {x.shape[1]} features of {true} classes, counts 2 to {arguments.most}, "
          f"{arguments.threads} threads, {device.describe(torch.device('cpu'))}", flush=True)  # fmt: skip
    points = Points(x, torch.full((len(x),), -1))
    start, work = time.perf_counter(), time.process_time()
    ours = sweep(points, Count(most=arguments.most), arguments.seed)
    quick, quick_work = time.perf_counter() - start, time.process_time() - work
    print(f"autonovel      {ours.number} classes, {quick:7.2f} s, {quick_work:7.2f} s of processor time "
          f"({len(ours.seen)} counts looked at)", flush=True)  # fmt: skip
    with threadpool_limits(arguments.threads):
        start, work = time.perf_counter(), time.process_time()
        theirs = long_way(x.numpy(), arguments.most, arguments.seed)
        slow, slow_work = time.perf_counter() - start, time.process_time() - work
    print(f"scikit-learn   {theirs} classes, {slow:7.2f} s, {slow_work:7.2f} s of processor time "
          f"({arguments.most - 1} counts)")  # fmt: skip
    agree = "the same answer" if theirs == ours.number else "ANOTHER ANSWER"
    print(f"{slow / quick:.1f} × as fast, {slow_work / quick_work:.1f} × less work, {agree}")


if __name__ == "__main__":
    main()
