"""Joint training over the epochs: loss terms, how right the pair labels are, and how much they move."""

import statistics
from dataclasses import dataclass
from typing import Any

from autonovel.figures import style
from autonovel.figures.figure import CannotDrawError, Drawn
from autonovel.figures.runs import Run, Study
from autonovel.labels import GROWN, LABELS, PLAIN

NAME = "curves"
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("full method", {}),
    ("without consistency", {"joint.consistency": False}),
    ("without consistency, one-view pairs", {"joint.consistency": False, "joint.bce_views": "one"}),
)
TERMS = {
    "loss/ce": "cross-entropy (known classes)",
    "loss/bce": "pairwise BCE (new classes)",
    "loss/consistency": "consistency (ramped)",
    "loss/pseudo": "pseudo-labels (ramped)",
}
RIGHT = {"pairs/precision": "precision", "pairs/recall": "recall"}
FLIPPED, OF_ALL = "pairs/flipped", "all_pairs/flipped"


@dataclass(frozen=True)
class Curve:
    """Mean and standard deviation over seeds by epoch; epochs count from 1."""

    epochs: list[int]
    mean: list[float]
    std: list[float]


@dataclass(frozen=True)
class Variant:
    """One variant's curves by name of the quantity, and the seeds they are a mean of."""

    label: str
    seeds: list[int]
    curves: dict[str, Curve]


def draw(study: Study) -> Drawn:
    """Return the curves of the full method and, where they were run, of it without consistency."""
    system, variants = _variants(study)
    caption = (
        f"Joint training ({study.label}, {LABELS[system]}), mean over seeds ("
        + "; ".join(f"{v.label}: {', '.join(map(str, v.seeds))}" for v in variants)
        + "), bands of one standard deviation where there are several. Left: terms of the loss. Middle: pairs of "
        "unlabelled images called the same by their top-k sets: the share that is right (precision), and the share of "
        "the true pairs that is found (recall). Right: the moving target, pair labels that change from one epoch to "
        "the next on a fixed sample of clean unlabelled images, out of the pairs positive before or after."
        + _flips_in_words(variants)
    )  # fmt: skip
    numbers = {
        "recipe": study.label, "system": system,
        "variants": {
            v.label: {
                "seeds": v.seeds, "epochs": max(c.epochs[-1] for c in v.curves.values()),
                "last": {name: curve.mean[-1] for name, curve in v.curves.items()},
                "over_epochs": {name: statistics.mean(curve.mean) for name, curve in v.curves.items()},
                "curves": {
                    name: {"epoch": curve.epochs, "mean": curve.mean, "std": curve.std if len(v.seeds) > 1 else None}
                    for name, curve in v.curves.items()
                },
            }
            for v in variants
        },
    }  # fmt: skip
    return Drawn(NAME, caption, numbers, _picture(variants))


def _variants(study: Study) -> tuple[str, list[Variant]]:
    for system in (PLAIN, GROWN):
        found = [made for label, changed in VARIANTS if (made := _variant(label, study.only(changed), system))]
        if found:
            return system, found
    raise CannotDrawError("no run has a journal of joint training. Train rankstats or rankstats-incremental.")


def _variant(label: str, runs: list[Run], system: str) -> Variant | None:
    journals = {run.seed: lines for run in runs if (lines := run.joint_epochs(system))}
    names = [*TERMS, *RIGHT, FLIPPED, OF_ALL]
    curves = {name: curve for name in names if (curve := over_seeds(list(journals.values()), name))}
    return Variant(label, list(journals), curves) if curves else None


def over_seeds(journals: list[list[dict[str, Any]]], name: str) -> Curve | None:
    """Return the curve of ``name`` over the epochs that every journal has it for; None if there are none."""
    values = [
        {int(line["epoch"]) + 1: line[name] for line in lines if line.get(name) is not None} for lines in journals
    ]
    epochs = sorted(set.intersection(*map(set, values))) if values else []
    if not epochs:
        return None
    columns = [[float(own[epoch]) for own in values] for epoch in epochs]
    spread = [statistics.stdev(column) if len(column) > 1 else 0.0 for column in columns]
    return Curve(epochs, [statistics.mean(column) for column in columns], spread)


def _flips_in_words(variants: list[Variant]) -> str:
    told = [
        f"{v.label}: {100 * statistics.mean(v.curves[FLIPPED].mean):.1f} % over all epochs, "
        f"{100 * v.curves[FLIPPED].mean[-1]:.1f} % in the last ({100 * v.curves[OF_ALL].mean[-1]:.2f} % of all pairs)"
        for v in variants
        if FLIPPED in v.curves
    ]
    return f" Flipped with the {'; '.join(told)}." if told else " These runs did not count flips (joint.watch = 0)."


def _picture(variants: list[Variant]) -> Any:
    import matplotlib
    from matplotlib.lines import Line2D

    with matplotlib.rc_context(style.SETTINGS):
        figure, axes = style.panels(3, 3.3, 3.8)
        quantities = (TERMS, RIGHT, {FLIPPED: ""})
        titles = ("Loss terms", "Are the pair labels right?", "Do the pair labels keep still?")
        units = ("loss", "share of pairs (%)", "positive pair labels flipped (%)")
        for panel, names, title, unit in zip(axes, quantities, titles, units, strict=True):
            _panel(panel, variants, names, 1.0 if names is TERMS else 100.0)
            panel.set_title(title)
            panel.set_ylabel(unit)
            panel.set_xlabel("epoch of joint training")
            style.plain(panel)
        if len(variants) > 1:
            handles = [
                Line2D([], [], color=style.INK, linestyle=style.LINES[i], linewidth=1.6, label=variant.label)
                for i, variant in enumerate(variants)
            ]
            figure.legend(handles=handles, loc="outside lower center", ncols=3, handlelength=3)
    return figure


def _panel(axes: Any, variants: list[Variant], names: dict[str, str], scale: float) -> None:
    from matplotlib.ticker import MaxNLocator

    flips = list(names) == [FLIPPED]
    for position, (name, label) in enumerate(names.items()):
        labelled = False
        for number, variant in enumerate(variants):
            curve = variant.curves.get(name)
            if curve is None:
                continue
            colour = style.FEW[(0, 3, 4)[number] if flips else position]
            mean, std = [scale * v for v in curve.mean], [scale * v for v in curve.std]
            axes.plot(
                curve.epochs, mean, color=colour, linestyle=style.LINES[number], linewidth=1.6,
                marker="o" if len(mean) == 1 else "", label=None if labelled or not label else label,
            )  # fmt: skip
            labelled = True
            if len(variant.seeds) > 1:
                low, high = zip(*((m - s, m + s) for m, s in zip(mean, std, strict=True)), strict=True)
                axes.fill_between(curve.epochs, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.set_ylim(bottom=0)
    if scale != 1:
        axes.set_ylim(0, 102)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    if not axes.lines:
        axes.text(0.5, 0.5, "not logged in these runs", transform=axes.transAxes, ha="center", color=style.SOFT)
    elif any(names.values()):
        # below: between the lines of several variants there is no free place
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), fontsize=8, handlelength=1.2, labelspacing=0.25)
