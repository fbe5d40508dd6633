"""What a joint step costs as batches and classes grow: `python benchmarks/scaling.py`, on whatever device is there.

The pair labels of n images with d features are one n×n product of multi-hot rows; beside them stand the same labels by
enumerating all pairs, as the published loop does; 16 times the pairs may take 16 times as long, no worse.  Then a whole
joint step of `cifar10-fast` (ResNet-18, new views in every step, half of the images unlabelled, all pairs of these
compared) against the size of its batch, and its losses (everything but the network) against the number of new classes.
"""

import argparse
import time
from collections.abc import Callable

import published_loop
import speed
import torch

from autonovel import device as devices
from autonovel import objectives

FEATURES, K = 512, 5


def milliseconds(work: Callable[[], object], device: torch.device, repeats: int = 10) -> float:
    """Return the median time of ``work``."""
    times = []
    for _ in range(repeats + 2):
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - start))
    return sorted(times[2:])[repeats // 2]


def losses(z: torch.Tensor, logits: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Return the terms of a joint step that depend on the number of new classes."""
    p, p_hat = logits.softmax(1), logits.flip(0).softmax(1)
    same = objectives.pair_labels(z, K)
    bce = objectives.pairwise_bce(p, p_hat, same, objectives.pairs_in_groups(w))
    return bce + objectives.consistency(p, p_hat)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    device = devices.pick(parser.parse_args().device)
    print(f"{FEATURES} features, k = {K}, {devices.describe(device)}, torch {torch.__version__}\n")
    print("| unlabelled images n | pair labels, ms | by enumeration, ms | ratio |\n|---|---|---|---|")
    sizes = (64, 256, 1024, 2048, 4096, 8192) if device.type == "cuda" else (64, 128, 256, 512, 1024)
    times = {}
    for n in sizes:
        z = torch.rand(n, FEATURES, device=device)
        times[n] = ours = milliseconds(lambda z=z: objectives.pair_labels(z, K), device)
        enumerated = milliseconds(lambda z=z: published_loop.pair_labels(z, K), device)
        print(f"| {n} | {ours:.2f} | {enumerated:.2f} | {enumerated / ours:.1f} × |", flush=True)
    most, less = sizes[-1], sizes[-1] // 4
    longer = times[most] / times[less]
    print(f"\nFrom {less:,} to {most:,} images, 16 times the pairs, labels take {longer:.1f} times as long.")
    print("\n| images of a batch | a joint step, ms | of an image, ms |\n|---|---|---|")
    for batch in (64, 128, 256, 512, 1024) if device.type == "cuda" else (32, 64, 128):
        changes = [*speed.ROWS["joint"][1], f"joint.batch_size={batch}", "joint.group=0"]
        step = speed.ours("joint", changes, 8 * batch, device)
        took = milliseconds(step, device, 10 if device.type == "cuda" else 1)
        print(f"| {batch} | {took:.1f} | {took / batch:.3f} |", flush=True)
    print("\n| new classes | losses of a joint step with 256 unlabelled images, ms |\n|---|---|")
    z, w = torch.rand(256, FEATURES, device=device), torch.ones(256, device=device)
    for classes in (5, 20, 100, 1000):
        logits = torch.randn(256, classes, device=device)
        print(f"| {classes} | {milliseconds(lambda logits=logits: losses(z, logits, w), device):.2f} |", flush=True)


if __name__ == "__main__":
    main()
