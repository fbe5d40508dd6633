"""How far the systems of a run agree on the unlabelled images, in numbers and in words.

Two systems number their classes differently, so classes are matched one to one first (Hungarian matching); agreement
is the share of images in matched classes.  It needs no truth, so it is the one check that every run has.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from autonovel import evaluation
from autonovel.errors import RunFolderError
from autonovel.labels import label_of
from autonovel.storage.documents import replace_file

ASSIGNMENTS = "assignments.safetensors"
BASELINE = "kmeans"
WIDELY, BARELY = 0.9, 0.7  # from WIDELY on two systems agree widely, below BARELY they disagree widely
LOOK_AT = 3  # classes that are named, at most

Ints = NDArray[np.int64]


def save_assignments(folder: Path, clusters: Tensor) -> None:
    """Write which cluster a system puts each unlabelled image into, in input order."""
    replace_file(folder / ASSIGNMENTS, save_tensors({"cluster": clusters.int().contiguous()}))


def load_assignments(folder: Path) -> Ints | None:
    """Return the clusters kept under ``folder``; None where there are none."""
    path = folder / ASSIGNMENTS
    if not path.exists():
        return None
    try:
        return load_tensors(path.read_bytes())["cluster"].numpy().astype(np.int64)
    except (OSError, SafetensorError, KeyError) as error:
        raise RunFolderError(f"{path} cannot be read ({error}). Delete it, then report again.") from error


def between(
    primary: str, clusters: Ints, folder: Path, others: Sequence[str], classes: Sequence[str]
) -> dict[str, Any] | None:
    """Return the agreement of all pairs of systems as plain data; None where there is only one.

    Args:
        primary: the system that delivers.
        clusters: its new class of each unlabelled image, from 0 on.
        folder: the run folder, under which the other systems keep theirs.
        others: the other systems.
        classes: names of its new classes.

    ``shares`` is a symmetric matrix over ``systems``; ``by_class`` has, for each other system, the share of each class
    of the primary one that the other puts into the matching class (None for an empty class).
    """
    found = {primary: clusters}
    for name in others:
        kept = load_assignments(folder / "systems" / name)
        if kept is not None and len(kept) == len(clusters):
            found[name] = kept
    if len(found) < 2 or not len(clusters):
        return None
    names = list(found)
    shares = [[evaluation.accuracy(found[a], found[b]) if a != b else 1.0 for b in names] for a in names]
    by_class = {name: _by_class(clusters, found[name], len(classes)) for name in names[1:]}
    return {
        "systems": names,
        "images": len(clusters),
        "shares": shares,
        "classes": list(classes),
        "by_class": by_class,
    }


def _by_class(clusters: Ints, other: Ints, n_new: int) -> list[float | None]:
    """Return for each class the share of its images that ``other`` puts into the class matched to it."""
    match = {mine: theirs for theirs, mine in evaluation.matching(clusters, other).items()}
    members = [other[clusters == number] for number in range(n_new)]
    return [float((rows == match.get(number, -1)).mean()) if len(rows) else None for number, rows in enumerate(members)]


def told(agreement: Mapping[str, Any], renamed: Mapping[str, str] | None = None) -> str:
    """Return in words how far the primary system agrees with k-means, or else with the system it agrees with least.

    The system it agrees with most is told of too: k-means on weak features is no judge of a result that others confirm.

    Args:
        agreement: what ``between`` returned.
        renamed: what classes are called now, by the names they were found under.
    """
    primary, *others = agreement["systems"]
    shares = dict(zip(others, agreement["shares"][0][1:], strict=True))
    other = BASELINE if BASELINE in shares else min(shares, key=lambda name: shares[name])
    share = shares[other]
    if share >= WIDELY:
        verdict = "they agree widely"
    elif share >= BARELY:
        verdict = "they agree in the main"
    else:
        verdict = "they disagree widely, so the classes depend on the method: look at them before you rely on them"
    text = (
        f"{_sentence_start(label_of(primary))} and {label_of(other)} agree on "
        f"{rounded_down(share)} % of the {agreement['images']:,} unlabelled images, classes matched one to one: "
        f"{verdict}"
    )
    doubtful = [
        (value, (renamed or {}).get(name, name))
        for value, name in zip(agreement["by_class"][other], agreement["classes"], strict=True)
        if value is not None and value < WIDELY
    ]
    if doubtful:
        worst = [f"{name} ({rounded_down(value)} % shared)" for value, name in sorted(doubtful)[:LOOK_AT]]
        text += f". They differ most on {_listed(worst)}: look there first"
    closest = max(shares, key=lambda name: shares[name])
    if closest != other:
        label = label_of(closest)
        text += f". With {label}, closest to it here, it agrees on {rounded_down(shares[closest])} %"
    limits = (
        f"{100 * WIDELY:.0f} % and more counts as wide agreement, less than {100 * BARELY:.0f} % as wide disagreement"
    )
    return f"{text}. ({limits}.)"


def rounded_down(share: float) -> str:
    """Return the share rounded down, so that a number never claims more than a threshold it misses."""
    return f"{math.floor(1000 * share + 1e-9) / 10:.1f}"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _sentence_start(text: str) -> str:
    return text[:1].upper() + text[1:] if text[:2] != "k-" else text
