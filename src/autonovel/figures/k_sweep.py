"""The paper's figure of the accuracy against k, the size of the compared top-ranked sets."""

import statistics
from typing import Any

from autonovel.figures import style
from autonovel.figures.figure import CannotDrawError, Drawn
from autonovel.figures.runs import PLAIN, Study

NAME = "acc-against-k"
PAPER = (
    "The paper reports the best results overall at k = 5 and 7, and results that are in general stable for every k "
    "but 1 (appendix, k in 1, 2, 3, 5, 7, 10, 15, 20, 50; it prints no numbers)."
)
PAPER_K = 5

Line = dict[int, dict[int, float]]  # ACC in per cent by k and seed


def draw(studies: list[Study]) -> Drawn:
    """Return the accuracy against k, a line for each study that has at least two values of it."""
    lines = {study.label: line for study in studies if len(line := accuracies(study)) > 1}
    if not lines:
        raise CannotDrawError(
            "no two finished runs with scores differ in k alone. Run `autonovel reproduce RECIPE --sweep-k 1,2,5,10`."
        )
    told = "; ".join(_told(label, line) for label, line in lines.items())
    caption = (
        "Accuracy on the unlabelled images against k, the number of strongest features that two images must have in "
        "common to be taken for the same class; mean over seeds, bars of one standard deviation where there are "
        f"several, small dots for the single runs. {told}. {PAPER}"
    )
    numbers = {
        label: [
            {"k": k, "acc": list(of.values()), "seeds": list(of), "mean": statistics.mean(of.values()), "std": _std(of)}
            for k, of in line.items()
        ]
        for label, line in lines.items()
    }
    return Drawn(NAME, caption, {"system": PLAIN, "lines": numbers, "paper": PAPER}, _picture(lines))


def accuracies(study: Study) -> Line:
    """Return the accuracy by k and seed of the runs in which nothing but k was changed.

    The unchanged recipe counts under its own k; where a sweep has run that k again, it is the same run.
    """
    found: Line = {}
    for run in [*study.only(), *study.only(joint__k=...)]:
        acc = run.accuracy(PLAIN)
        if acc is not None:
            found.setdefault(int(run.settings["joint.k"]), {})[run.seed] = acc
    return {k: dict(sorted(found[k].items())) for k in sorted(found)}


def _std(of: dict[int, float]) -> float | None:
    return statistics.stdev(of.values()) if len(of) > 1 else None


def _told(label: str, line: Line) -> str:
    best = max(line, key=lambda k: statistics.mean(line[k].values()))
    seeds = sorted({seed for of in line.values() for seed in of})
    many = f"seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else f"seed {seeds[0]}"
    return f"{label} ({many}): best at k = {best} with {statistics.mean(line[best].values()):.1f} %"


def _picture(lines: dict[str, Line]) -> Any:
    import matplotlib
    from matplotlib.ticker import NullLocator

    values = sorted({k for line in lines.values() for k in line})
    with matplotlib.rc_context(style.SETTINGS):
        figure, (axes,) = style.panels(1, 5.4, 3.5)
        for position, (label, line) in enumerate(lines.items()):
            colour, k = style.FEW[position % len(style.FEW)], list(line)
            for of, x in zip(line.values(), k, strict=True):
                if len(of) > 1:
                    axes.scatter(
                        [1.04 * x] * len(of), list(of.values()), s=11, color=colour, alpha=0.55, linewidths=0, zorder=2
                    )
            axes.errorbar(
                k, [statistics.mean(of.values()) for of in line.values()], [_std(of) or 0.0 for of in line.values()],
                color=colour, marker=style.mark(position), linestyle=style.LINES[position % 3], markersize=5.5,
                linewidth=1.6, elinewidth=1.1, capsize=3, label=label, zorder=3,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xticks(values, list(map(str, values)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("k: strongest features that must agree (log scale)")
        axes.set_ylabel("ACC on unlabelled images (%)")
        axes.set_title("Accuracy against k" + (f" ({next(iter(lines))})" if len(lines) == 1 else ""))
        style.plain(axes)
        if PAPER_K in values:
            axes.axvline(PAPER_K, color=style.SOFT, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
            axes.annotate(
                "the paper's choice", (PAPER_K, 0.03), xycoords=("data", "axes fraction"), xytext=(4, 0),
                textcoords="offset points", color=style.SOFT, fontsize=8,
            )  # fmt: skip
        if len(lines) > 1:
            figure.legend(loc="outside lower center", ncols=min(len(lines), 3))
    return figure
