"""The accuracy against a setting: the paper's figure of k, the size of compared sets, and ours of groups of pairs."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autonovel.errors import UsageError
from autonovel.figures import style
from autonovel.figures.figure import CannotDrawError, Drawn
from autonovel.figures.runs import Study
from autonovel.labels import PLAIN
from autonovel.studies.variants import SWEPT

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Sweep:
    """A setting of joint training whose values a figure compares.

    Attributes:
        name: of the figure.
        short: what a value of it is called.
        meaning: the caption's words for it.
        title: what the picture's title calls it.
        axis: the words under the picture.
        known: what is known of it elsewhere.
        command: how to make the runs.
        published: the value of the paper, which the picture marks.
    """

    name: str
    short: str
    meaning: str
    title: str
    axis: str
    known: str
    command: str
    published: int | None = None

    @property
    def setting(self) -> str:
        """Return its key in a recipe."""
        return SWEPT[self.short]


K = Sweep(
    "acc-against-k", "k",
    "k, the number of strongest features that two images must have in common to be taken for the same class",
    "k",
    "k: strongest features that must agree",
    "The paper reports the best results overall at k = 5 and 7, and results that are in general stable for every k "
    "but 1 (appendix, k in 1, 2, 3, 5, 7, 10, 15, 20, 50; it prints no numbers).",
    "--sweep-k 1,2,5,10",
    published=5,
)  # fmt: skip
GROUP = Sweep(
    "acc-against-group", "group",
    "the number of unlabelled images of a batch that are compared with each other",
    "the size of groups",
    "unlabelled images compared with each other",
    "The paper compares all unlabelled images of a batch, and has no such figure. The number of steps is the same.",
    "--sweep-group 8,16,32,64",
)  # fmt: skip
SWEEPS = (K, GROUP)

FAR_BELOW = 15.0  # points under the median of a panel
Line = dict[int, dict[int, float]]  # ACC in per cent by value and seed


def draw(studies: list[Study], sweep: Sweep) -> Drawn:
    """Return the accuracy against a setting, a line for each study that has at least two values of it."""
    short = Counter(study.short for study in studies)
    lines = {
        study.short if short[study.short] == 1 else study.label: line
        for study in studies
        if len(line := accuracies(study, sweep)) > 1
    }
    if not lines:
        raise CannotDrawError(
            f"no two finished runs with scores differ in {sweep.setting} alone. "
            f"Run `autonovel reproduce RECIPE {sweep.command}`."
        )
    told = "; ".join(_told(label, line, sweep) for label, line in lines.items())
    caption = (
        f"Accuracy on the unlabelled images against {sweep.meaning}; mean over seeds, bars of one standard deviation "
        "where there are several, small dots for the single runs, an arrow for what lies far below. "
        f"{told}. {sweep.known}"
    )
    numbers = {
        label: [
            {
                sweep.short: value, "acc": list(of.values()), "seeds": list(of),
                "mean": statistics.mean(of.values()), "std": _std(of),
            }
            for value, of in line.items()
        ]
        for label, line in lines.items()
    }  # fmt: skip
    return Drawn(sweep.name, caption, {"system": PLAIN, "lines": numbers, "known": sweep.known}, _picture(lines, sweep))


def accuracies(study: Study, sweep: Sweep) -> Line:
    """Return the accuracy by value and seed of the runs in which nothing but that setting was changed.

    The unchanged recipe counts under its own value; where a sweep has run that value again, it is the same run. A
    value of 0, all images of a batch, has no place on the axis, and neither has one that nobody knows any more.
    """
    found: Line = {}
    for run in [*study.only(), *study.only({sweep.setting: ...})]:
        acc, value = run.accuracy(PLAIN), int(run.settings.get(sweep.setting, 0))
        if acc is None or value <= 0:
            continue
        if found.setdefault(value, {}).setdefault(run.seed, acc) != acc:
            raise UsageError(
                f"{study.label}, seed {run.seed}, has two accuracies with {sweep.setting} = {value}, {acc:.1f} "
                f"({run.folder}) and {found[value][run.seed]:.1f}; name only one of the two."
            )
    return {value: dict(sorted(found[value].items())) for value in sorted(found)}


def _std(of: dict[int, float]) -> float | None:
    return statistics.stdev(of.values()) if len(of) > 1 else None


def _told(label: str, line: Line, sweep: Sweep) -> str:
    best = max(line, key=lambda value: statistics.mean(line[value].values()))
    seeds = sorted({seed for of in line.values() for seed in of})
    many = f"seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else f"seed {seeds[0]}"
    return f"{label} ({many}): best at {sweep.short} = {best} with {statistics.mean(line[best].values()):.1f} %"


def _picture(lines: dict[str, Line], sweep: Sweep) -> Any:
    """Return a panel for each recipe, with a line for each version of it."""
    import matplotlib

    of_recipe: dict[str, dict[str, Line]] = {}
    for label, line in lines.items():
        of_recipe.setdefault(label.partition(" ")[0], {})[label] = line
    with matplotlib.rc_context(style.SETTINGS):
        figure, panels = style.panels(len(of_recipe), 5.4 if len(of_recipe) == 1 else 4.2, 3.5)
        for axes, (recipe, versions) in zip(panels, of_recipe.items(), strict=True):
            _panel(axes, versions, sweep)
            axes.set_title(f"Accuracy against {sweep.title} ({recipe})")
        panels[0].set_ylabel("ACC on unlabelled images (%)")
    return figure


def _panel(axes: "Axes", versions: dict[str, Line], sweep: Sweep) -> None:
    from matplotlib.ticker import NullLocator

    means = {
        label: {value: statistics.mean(of.values()) for value, of in line.items()} for label, line in versions.items()
    }
    floor = _floor([mean for of in means.values() for mean in of.values()])
    # today's recipe first, so that it looks the same in all panels
    for position, label in enumerate(sorted(versions, key=lambda label: " " in label)):
        line, colour = versions[label], style.FEW[position % len(style.FEW)]
        seen = {value: mean for value, mean in means[label].items() if mean >= floor}
        for value in seen:
            if len(line[value]) > 1:
                beside = [1.04 * value] * len(line[value])
                axes.scatter(beside, [*line[value].values()], s=11, color=colour, alpha=0.55, linewidths=0, zorder=2)
        axes.errorbar(
            [*seen], [*seen.values()], [_std(line[value]) or 0.0 for value in seen],
            color=colour, marker=style.mark(position), linestyle=style.LINES[position % 3], markersize=5.5,
            linewidth=1.6, elinewidth=1.1, capsize=3, label=label, zorder=3,
        )  # fmt: skip
        for value, mean in means[label].items():
            if mean < floor:
                axes.annotate(
                    f"{mean:.1f} ↓", (value, 0.04 + 0.07 * position), xycoords=("data", "axes fraction"),
                    ha="center", color=colour, fontsize=8,
                )  # fmt: skip
    values = sorted({value for line in versions.values() for value in line})
    axes.set(xscale="log", xlim=(values[0] / 1.25, values[-1] * 1.25))
    axes.set_xticks(values, list(map(str, values)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(f"{sweep.axis} (log scale)")
    style.plain(axes)
    if sweep.published in values:
        axes.axvline(sweep.published, color=style.SOFT, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
        axes.annotate(
            "the paper's choice", (sweep.published, 0.03), xycoords=("data", "axes fraction"), xytext=(4, 0),
            textcoords="offset points", color=style.SOFT, fontsize=8,
        )  # fmt: skip
    axes.margins(y=0.25)
    if len(versions) > 1:
        axes.legend(loc="upper right", fontsize=8)


def _floor(means: Sequence[float]) -> float:
    """Return the accuracy under which a point is only told, so that it does not flatten all others."""
    return statistics.median(means) - FAR_BELOW
