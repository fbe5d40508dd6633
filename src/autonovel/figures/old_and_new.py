"""The paper's figure of old and new classes together, without and with incremental learning."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from autonovel.embedding import Embedding
from autonovel.errors import UsageError
from autonovel.figures import style
from autonovel.figures.figure import CannotDrawError, Drawn, Tick
from autonovel.figures.maps import comparable, true_classes
from autonovel.figures.neighbours import NEAREST, most_overlapping, neighbour_counts, overlap, purity
from autonovel.figures.runs import Run, Study
from autonovel.kept import Truth
from autonovel.labels import GROWN, PLAIN
from autonovel.report.tsne import sample
from autonovel.words import count

NAME = "old-and-new"
TITLES = {PLAIN: "without incremental learning", GROWN: "with incremental learning"}
LISTED = 5
MOST_COLOURS = 20  # with more classes than this, the old ones are all grey


def draw(study: Study, tick: Tick, pair: tuple[str, str] | None = None) -> Drawn:
    """Return maps of all images by both systems, with the overlap of two classes as a number.

    Args:
        study: its first seed that has both systems is drawn.
        tick: told of progress.
        pair: names of the two classes; None for the old and the new class that overlap most without
            incremental learning.
    """
    runs, truth = _source(study)
    wanted = _numbers(pair, truth) if pair else None
    z = {system: _features(run, system) for system, run in runs.items()}
    chosen = sample(len(truth.truth), runs[PLAIN].map_points)
    maps = comparable(list(z.values()), chosen, NAME, tick)
    counts = {system: _counts(z[system], truth, tick, TITLES[system]) for system in runs}
    one, other = wanted or most_overlapping(counts[PLAIN], truth.n_known)[0]
    overlaps = {system: overlap(counts[system], one, other) for system in runs}
    under = [_overlap_in_words(truth, one, other, overlaps[system]) for system in runs]
    picture = _picture(maps, list(runs), under, truth.truth.numpy()[chosen], truth, (one, other))
    seed = runs[PLAIN].seed
    shown = "all" if len(chosen) == len(truth.truth) else f"a random {count(len(chosen))} of the"
    caption = (
        f"Old and new classes together ({study.label}, seed {seed}): t-SNE of the features of {shown} "
        f"{count(len(truth.truth))} training images, coloured by true class; circles are images of old (labelled) "
        "classes, triangles of new (unlabelled) ones. The right map starts from the layout of the left. Of the "
        f"{NEAREST} nearest neighbours in feature space of the images of {_told(truth, one)} and {_told(truth, other)}"
        f", {100 * overlaps[PLAIN]:.1f} % are of the other of the two without incremental learning and "
        f"{100 * overlaps[GROWN]:.1f} % with it."
    )
    numbers = {
        "recipe": study.label, "seed": seed, "images": len(chosen), "of": len(truth.truth), "neighbours": NEAREST,
        "pair": [truth.names[one], truth.names[other]], "pair_chosen_by": "the user" if pair else "largest overlap",
        "systems": {system: _system_numbers(runs[system], counts[system], truth, one, other) for system in runs},
    }  # fmt: skip
    return Drawn(NAME, caption, numbers, picture)


def _source(study: Study) -> tuple[dict[str, Run], Truth]:
    """Return the run of each of the two systems, of the first seed that has both."""
    runs = study.only()
    for seed in sorted({run.seed for run in runs}):
        found: dict[str, Run] = {}
        for system in (PLAIN, GROWN):
            there = [run for run in runs if run.seed == seed and run.embedding(system)]
            found |= {system: there[0]} if there else {}
        if len(found) == 2:
            truths = {system: true_classes(run) for system, run in found.items()}
            return found, truths[PLAIN]
    raise CannotDrawError(
        f"no finished run of the unchanged recipe holds the features of both systems, {PLAIN} and {GROWN}. Run it with "
        f'--set run.systems=["{PLAIN}","{GROWN}"].'
    )


def check_pair(pair: tuple[str, str], found: Sequence[Study]) -> None:
    """Refuse, before any work, a pair of classes that none of the runs has."""
    known = list(dict.fromkeys(truth.names for study in found for run in study.runs if (truth := run.truth())))
    if known and not any(set(pair) <= set(names) for names in known):
        listed = "; or ".join(", ".join(names) for names in known)
        raise UsageError(f"--pair names {pair[0]!r} and {pair[1]!r}; the classes of these runs are {listed}.")


def _numbers(pair: tuple[str, str], truth: Truth) -> tuple[int, int]:
    if not set(pair) <= set(truth.names):
        raise CannotDrawError(f"it has no classes {pair[0]} and {pair[1]}.")
    return truth.names.index(pair[0]), truth.names.index(pair[1])


def _features(run: Run, system: str) -> Tensor:
    path = run.embedding(system)
    assert path is not None
    return Embedding.load(path).z


def _counts(z: Tensor, truth: Truth, tick: Tick, title: str) -> Tensor:
    def told(done: int, total: int) -> None:
        tick(f"{NAME}: neighbours {title}", done, total)

    return neighbour_counts(z, truth.truth, len(truth.names), torch.arange(len(z)), told)


def _told(truth: Truth, number: int) -> str:
    return f"{truth.names[number]} ({'old' if number < truth.n_known else 'new'})"


def _overlap_in_words(truth: Truth, one: int, other: int, share: float) -> str:
    return f"overlap of {_told(truth, one)} and {_told(truth, other)}: {100 * share:.1f} %"


def _system_numbers(run: Run, counts: Tensor, truth: Truth, one: int, other: int) -> dict[str, Any]:
    total = counts.sum(dim=1).clamp(min=1)
    return {
        "run": str(run.folder),
        "overlap": overlap(counts, one, other),
        "neighbours_of_first_in_second": float(counts[one, other] / total[one]),
        "neighbours_of_second_in_first": float(counts[other, one] / total[other]),
        "same_class_neighbours": purity(counts),
        "largest_overlaps": [
            {"old": truth.names[old], "new": truth.names[new], "overlap": overlap(counts, old, new)}
            for old, new in most_overlapping(counts, truth.n_known)[:LISTED]
        ],
    }


def _picture(
    maps: list[Any], systems: list[str], under: list[str], of: Any, truth: Truth, pair: tuple[int, int]
) -> Any:
    import matplotlib

    colours = _class_colours(truth, pair)
    with matplotlib.rc_context(style.SETTINGS):
        figure, axes = style.panels(2, 4.1, 4.85)
        order = np.random.default_rng(0).permutation(len(of))
        for panel, flat, system, words in zip(axes, maps, systems, under, strict=True):
            for number in [n for n in np.unique(of).tolist() if n not in pair] + list(pair):
                own = order[of[order] == number]
                panel.scatter(
                    flat[own, 0], flat[own, 1], s=10 if number in pair else 6, color=colours[number], linewidths=0,
                    marker="o" if number < truth.n_known else "^", alpha=0.9 if number in pair else 0.55,
                )  # fmt: skip
            panel.set_title(TITLES[system])
            panel.set_xlabel(words, fontsize=8.5)
            style.bare(panel, flat)
            named = np.isin(of, _named(truth, pair))
            style.label_groups(panel, flat[named], of[named], truth.names, pair)
        grey = [("old class, labelled", style.SOFT, "o"), ("new class, unlabelled", style.SOFT, "^")]
        style.class_legend(figure, grey)
    return figure


def _class_colours(truth: Truth, pair: tuple[int, int]) -> list[str]:
    n = len(truth.names)
    if n <= MOST_COLOURS:
        return style.colours(n)
    made = [style.FAINT] * truth.n_known + style.colours(n - truth.n_known)
    for number in pair:
        made[number] = style.INK if number < truth.n_known else made[number]
    return made


def _named(truth: Truth, pair: tuple[int, int]) -> list[int]:
    """Return the classes whose names fit on the map: all of them, or of many only the new ones and the pair."""
    n = len(truth.names)
    return list(range(n)) if n <= MOST_COLOURS else sorted({*range(truth.n_known, n), *pair})
