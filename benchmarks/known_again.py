"""Known classes in a pile, told by their features: `python benchmarks/known_again.py RUN --piles 200`.

RUN is a finished run whose true classes are known.  From its features piles are drawn: 3 to 12 of the classes are
known, with 8 to 40 images each, and the pile has 8 to 30 images of each of 3 to 8 others and of up to three of the
known ones.  k-means finds as many clusters as classes are in the pile, and of each it is asked how far it lies from the
nearest known class, as a share of the squared distance of the two nearest known ones.  Printed: for several limits, how
many clusters lie below, how many of them show mostly a known class, the one that is named, and how many such there are.
"""

import argparse
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

LIMITS = (0.1, 0.25, 0.35, 0.5, 0.7)


@dataclass(frozen=True)
class Pile:
    """Images by their rows: labelled ones with their class, unlabelled ones with their true one."""

    rows: list[int]
    truth: list[int]
    labelled: list[bool]


def draw(of_class: dict[int, list[int]], seed: int) -> Pile:
    """Return known and new classes, some images of each, and of up to three known ones more in the pile."""
    made = random.Random(seed)
    names = sorted(of_class)
    known = made.sample(names, min(made.choice([3, 5, 8, 12]), len(names) - 3))
    others = [name for name in names if name not in known]
    new = made.sample(others, min(made.choice([3, 5, 8]), len(others)))
    again = made.sample(known, made.choice([0, 1, 2, 3]))
    each, few = made.choice([8, 15, 40]), made.choice([8, 15, 30])
    chosen: list[tuple[int, int, bool]] = []
    for name in (*known, *new):
        rows = made.sample(of_class[name], len(of_class[name]))
        cut = each if name in known else 0
        chosen += [(row, name, True) for row in rows[:cut]]
        if name in again or name in new:
            chosen += [(row, name, False) for row in rows[cut : cut + few]]
    rows, truth, labelled = zip(*chosen, strict=True)
    return Pile([*rows], [*truth], [*labelled])


def clusters_told(z: Tensor, pile: Pile, seed: int) -> list[tuple[float, bool, bool]]:
    """Return of each cluster of a pile: its distance, whether it shows mostly a known class, and the nearest one."""
    from autonovel.clustering.kmeans import kmeans
    from autonovel.known_again import FEWEST, nearest_known

    labelled, truth = torch.tensor(pile.labelled), torch.tensor(pile.truth)
    x = z[pile.rows]
    known = truth[labelled].unique()
    free = ~labelled
    class_id = torch.empty(len(x), dtype=torch.int64)
    class_id[labelled] = torch.searchsorted(known, truth[labelled])
    class_id[free] = len(known) + kmeans(x[free], len(truth[free].unique()), seed=seed).labels
    told = []
    for cluster, (nearest, share) in nearest_known(x, class_id, len(known)).items():
        [(most, n)] = Counter(truth[class_id == cluster].tolist()).most_common(1)
        size = int((class_id == cluster).sum())
        assert size >= FEWEST
        is_known = 2 * n > size and bool((known == most).any())
        told.append((share, is_known, is_known and int(known[nearest]) == most))
    return told


def main() -> None:
    """Draw piles, and print what the limits would say of their clusters."""
    from autonovel.embedding import Embedding
    from autonovel.kept import load_truth

    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("run", type=Path)
    options.add_argument("--piles", type=int, default=200)
    asked = options.parse_args()
    truth = load_truth(asked.run)
    if truth is None:
        options.error(f"{asked.run} holds no true classes; give a run on images whose classes are known.")
    z = Embedding.load(asked.run / "embedding.safetensors").z
    of_class: dict[int, list[int]] = {}
    for row, number in enumerate(truth.truth.tolist()):
        of_class.setdefault(number, []).append(row)
    told = [one for seed in range(asked.piles) for one in clusters_told(z, draw(of_class, seed), seed)]
    n_known = sum(is_known for _, is_known, _ in told)
    print(f"{asked.piles} piles, {len(told)} clusters, of which {n_known} show mostly a known class")
    print("| limit | clusters below | of them mostly a known class | the one that is named |")
    print("|---|---|---|---|")
    for limit in LIMITS:
        below = [one for one in told if one[0] < limit]
        print(f"| {limit} | {len(below)} | {sum(one[1] for one in below)} | {sum(one[2] for one in below)} |")


if __name__ == "__main__":
    main()
