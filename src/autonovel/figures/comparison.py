"""The paper's comparison of systems as a bar chart: accuracy on the unlabelled images, beside the paper's own."""

import statistics
from dataclasses import dataclass
from typing import Any

from autonovel.figures import style
from autonovel.figures.figure import CannotDrawError, Drawn
from autonovel.figures.runs import VARIED, Run, Study
from autonovel.labels import label_of, with_labels_first
from autonovel.tables import paper
from autonovel.tables.as_today import as_published, published_as
from autonovel.tables.naming import changes_in_words

NAME = "systems"
WITH, WITHOUT = "with self-supervision", "without self-supervision"
PRETRAINING = "pretrain.kind"
BAR_COLOURS = {WITH: style.FEW[0], WITHOUT: style.FEW[5]}
NUMBER_COLOURS = {WITH: "white", WITHOUT: style.INK}  # read on those


@dataclass(frozen=True)
class Bar:
    """One system from one start: its accuracies in per cent by seed, and the paper's."""

    system: str
    start: str
    acc: dict[int, float]
    paper: paper.Published | None

    @property
    def mean(self) -> float:
        """Return the mean over the seeds."""
        return statistics.mean(self.acc.values())

    @property
    def std(self) -> float | None:
        """Return the standard deviation over the seeds, if there are several."""
        return statistics.stdev(self.acc.values()) if len(self.acc) > 1 else None


def draw(study: Study) -> Drawn:
    """Return the bars of all systems that the runs of a study have scored."""
    found = bars(study)
    if len({bar.system for bar in found}) < 2:
        raise CannotDrawError(
            "fewer than two systems have scores. Run several, such as `autonovel reproduce RECIPE --method kmeans "
            "--method dtc --method rankstats`, or `autonovel demo --compare`."
        )
    seeds = sorted({seed for bar in found for seed in bar.acc})
    told = "; ".join(f"{label_of(bar.system)} {_start(bar, found)}{bar.mean:.1f}" for bar in found)
    caption = (
        f"Accuracy (ACC, per cent) on the unlabelled images, {study.label}, seed{'s' if len(seeds) > 1 else ''} "
        f"{', '.join(map(str, seeds))}, last epoch; bars of one standard deviation where there are several seeds"
        f"{', diamonds: the paper' if any(bar.paper for bar in found) else ''}. {told}."
    )
    numbers = [
        {"system": bar.system, "start": bar.start, "acc": list(bar.acc.values()), "seeds": list(bar.acc),
         "mean": bar.mean, "std": bar.std, "paper": bar.paper.mean if bar.paper else None}
        for bar in found
    ]  # fmt: skip
    return Drawn(NAME, caption, {"bars": numbers}, _picture(study.label, found))


def bars(study: Study) -> list[Bar]:
    """Return a bar for each system and start; a seed that two runs have counts once."""
    found = []
    name = study.runs[0].recipe
    for system in with_labels_first(system for run in study.runs for system in run.systems):
        for start in (WITH, WITHOUT):
            runs = [run for run in study.runs if _start_of(run) == start]
            acc = {run.seed: value for run in runs if (value := run.accuracy(system)) is not None}
            if acc:
                changes = changes_in_words(_varied(runs[0]))
                stands_for = published_as(name, changes, runs[0].settings, system)
                published = paper.accuracy(*stands_for, system) if study.label == name else None
                found.append(Bar(system, start, acc, published))
    return found


def _varied(run: Run) -> dict[str, Any]:
    return {key: value for key, value in run.changed.items() if key in VARIED}


def _start_of(run: Run) -> str | None:
    """Return where a run starts from; nothing for one in which something else was varied, or with a third start."""
    varied = _varied(run)
    if varied.keys() - {PRETRAINING}:
        return None
    start = varied.get(PRETRAINING, run.settings.get(PRETRAINING))
    if start == "supervised":
        return WITHOUT
    return WITH if PRETRAINING not in varied or start == as_published(run.settings).get(PRETRAINING) else None


def _start(bar: Bar, found: list[Bar]) -> str:
    return f"{bar.start} " if any(other.start == WITHOUT for other in found) else ""


def _offset(bar: Bar, found: list[Bar]) -> float:
    """Return how many bars below the middle of its system's place a bar is drawn: one bar alone stands in it."""
    together = [other.start for other in found if other.system == bar.system]
    return together.index(bar.start) - (len(together) - 1) / 2


def _or_nothing(std: float | None) -> float:
    """Return a length that is not drawn where there is none: a bar of length 0 would look like certainty."""
    return float("nan") if std is None else std


def _picture(label: str, found: list[Bar]) -> Any:
    import matplotlib

    systems = list(dict.fromkeys(bar.system for bar in found))
    starts = list(dict.fromkeys(bar.start for bar in found))
    height = 0.8 / len(starts)
    with matplotlib.rc_context(style.SETTINGS):
        figure, (axes,) = style.panels(1, 6.2, 0.9 + 0.36 * len(systems) * max(1.0, 0.7 * len(starts)))
        for number, start in enumerate(starts):
            own = [bar for bar in found if bar.start == start]
            places = [systems.index(bar.system) + _offset(bar, found) * height for bar in own]
            lengths, spread = [bar.mean for bar in own], [_or_nothing(bar.std) for bar in own]
            axes.barh(
                places, lengths, 0.92 * height, xerr=spread, label=start,
                color=BAR_COLOURS[start], error_kw={"elinewidth": 1.1, "capsize": 2.5}, zorder=2,
            )  # fmt: skip
            for place, bar in zip(places, own, strict=True):
                axes.text(1.2, place, f"{bar.mean:.1f}", va="center", color=NUMBER_COLOURS[start], fontweight="bold",
                          zorder=4)  # fmt: skip
            published = [(bar.paper.mean, place) for place, bar in zip(places, own, strict=True) if bar.paper]
            if published:
                x, y = zip(*published, strict=True)
                axes.scatter(x, y, marker="D", s=24, color=style.INK, edgecolors="white", linewidths=0.7, zorder=5,
                             label="the paper" if number == len(starts) - 1 else None)  # fmt: skip
        axes.set_yticks(range(len(systems)), [label_of(system) for system in systems])
        axes.invert_yaxis()
        axes.set_xlim(0, 100)
        axes.set_xlabel("ACC on unlabelled images (%)")
        axes.set_title(label)
        style.plain(axes)
        axes.grid(visible=False, axis="y")
        axes.grid(axis="x", color=style.INK, alpha=0.12, linewidth=0.6)
        if len(starts) > 1 or any(bar.paper for bar in found):
            figure.legend(loc="outside lower center", ncols=3)
    return figure
