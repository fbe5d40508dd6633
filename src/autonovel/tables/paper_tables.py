"""The tables of the paper as it prints them, with ours beside each of its numbers."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from autonovel import recipe
from autonovel.errors import UsageError
from autonovel.labels import LABELS
from autonovel.studies.variants import ABLATIONS, SWEPT
from autonovel.tables import paper
from autonovel.tables.markdown import grid
from autonovel.tables.naming import Results, changes_in_words
from autonovel.tables.paper import Published
from autonovel.tables.table import Row, joint_label, rows, spread

TITLES = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "svhn": "SVHN",
    "omniglot": "OmniGlot",
    "imagenet": "ImageNet",
}
SMALL = ("cifar10", "cifar100", "svhn")
LARGE = ("omniglot", "imagenet")
COMPARED = ("kmeans", "kcl", "mcl", "dtc")
NOT_RUN = "not run"
NONE = "–"
CLEARLY_LESS = 3.0  # points below the paper
LEGEND = (
    "Accuracy in per cent, mean ± standard deviation, of ours with the number of seeds in brackets; the paper's "
    f"deviations are over {paper.RUNS} runs. Ours is in **bold** where it is more than {CLEARLY_LESS:.0f} points "
    "below the paper. Where a line does not say *full length*, the fast recipe is meant (on ImageNet there is but one)."
)
EARLIER = " †"
OF_EARLIER = "†: with the recipe as it was at the commit that the table of all runs names; today's differs."
Measured = Mapping[tuple[str, str], Row]  # by the recipe with its changes, and what the row calls the system


@dataclass(frozen=True)
class Line:
    """One line of a table: a system under a recipe with some settings changed.

    Attributes:
        title: what the line is called.
        system: that was measured.
        changes: settings changed in the recipe, as the table of all results names them.
        full: whether the recipe of full length is meant, not the fast one.
        only: the datasets on which it is meant to be run; none named: all.
        asked: whether it stands there even if nobody has run it.
    """

    title: str
    system: str = "rankstats"
    changes: str = ""
    full: bool = False
    only: tuple[str, ...] = ()
    asked: bool = True

    def run_name(self, dataset: str) -> str:
        """Return the name under which the table of all results has this line's run on a dataset."""
        name = dataset if self.full or f"{dataset}-fast" not in recipe.names() else f"{dataset}-fast"
        return f"{name} {self.changes}".rstrip()


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper.

    Attributes:
        title: what it shows.
        datasets: its columns.
        lines: its rows.
        of_joint: old / new / all of joint classifiers, instead of the accuracy on the unlabelled images.
    """

    title: str
    datasets: tuple[str, ...]
    lines: tuple[Line, ...]
    of_joint: bool = False


@dataclass(frozen=True)
class Sweep:
    """A setting over which ranking statistics were run: the paper has a figure of k, without numbers.

    Attributes:
        title: what the table shows.
        word: for the setting.
        setting: its name.
        values: that were run, one by one.
    """

    title: str
    word: str
    setting: str
    values: tuple[int, ...]


def _all_lengths(title: str, system: str) -> tuple[Line, ...]:
    """Return a system's line, and those of runs at full length."""
    return (
        Line(title, system),
        Line(f"{title}, *full length*", system, full=True),
        Line(f"{title}, *full length*, formulas as printed", system, "preset=paper", full=True, only=("cifar10",)),
    )


WITHOUT_SELF_SUPERVISION = tuple(
    Line(f"{LABELS[system]}, without self-supervision", system, paper.FROM_SCRATCH) for system in COMPARED
)
BASELINES = tuple(Line(LABELS[system], system) for system in COMPARED)
BASELINES_IN_FULL = tuple(
    Line(f"{LABELS[system]}, *full length*", system, full=True, asked=False) for system in COMPARED
)
OURS = _all_lengths("ranking statistics", "rankstats")
OURS_IN_FULL = replace(OURS[1], asked=False)
INCREMENTAL = _all_lengths("with incremental learning", "rankstats-incremental")
OF_UNKNOWN_NUMBER = tuple(
    Line(f"{LABELS[system]}, {whose} estimates", system, changes)
    for whose, changes in (("DTC's stored", paper.WITH_STORED_ESTIMATES), ("our", paper.OUR_ESTIMATES))
    for system in (*COMPARED[1:], "rankstats")
)
ABLATION_TITLES = {  # by the names of the variants
    "without-consistency": "without consistency",
    "without-consistency-one-view": "the same, pairs of one view",
    "without-ce": "without CE",
    "without-bce": "without BCE",
    "without-self-supervision": "without self-supervision",
}
WITHOUT_A_PART = tuple(Line(ABLATION_TITLES[one.name], changes=changes_in_words(one.settings)) for one in ABLATIONS)
TABLES = (
    PaperTable(
        "Novel category discovery",
        SMALL,
        (*WITHOUT_SELF_SUPERVISION, *BASELINES, *BASELINES_IN_FULL, *OURS, *INCREMENTAL),
    ),
    PaperTable(
        "Novel category discovery, OmniGlot and ImageNet",
        LARGE,
        (*BASELINES, *BASELINES_IN_FULL, OURS[0], OURS_IN_FULL),
    ),
    PaperTable("Unknown number of new classes", LARGE, OF_UNKNOWN_NUMBER),
    PaperTable("What each part does", SMALL, (*WITHOUT_A_PART, OURS[0])),
    PaperTable("Incremental learning: old / new / all on the test images", SMALL, (*BASELINES[1:], *INCREMENTAL), True),
)
SWEEPS = (
    Sweep("Ranking statistics with other k", "k", SWEPT["k"], (1, 2, 3, 5, 7, 10, 15, 20, 50)),
    Sweep("Ranking statistics with pairs compared in other groups", "images a group", SWEPT["group"], (8, 16, 32, 64)),
)


def markdown(results: Sequence[Results]) -> str:
    """Return all tables of the paper with our results beside its own, those of ours that nobody ran included."""
    if results and not any(paper.dataset_of(str(r["recipe"])) in TITLES for r in results):
        named = ", ".join(sorted({str(r["recipe"]) for r in results}))
        raise UsageError(f"these runs are of {named}, none of which is in the paper. Print them without --paper.")
    measured = _measured(rows(results))
    lines = []
    for table in TABLES:
        lines += ["", f"**{table.title}**", "", *_table(table, measured)]
    for sweep in SWEEPS:
        lines += ["", f"**{sweep.title}**", "", *_sweep(sweep, measured)]
    marked = any(EARLIER in line for line in lines)
    return "\n".join([f"{LEGEND} {OF_EARLIER}" if marked else LEGEND, *lines])


def _measured(found: Sequence[Row]) -> Measured:
    """Return the rows by name and system; for what today's recipe has not, those of the earlier one most like it."""
    earlier = sorted((row for row in found if row.given), key=lambda row: row.recipe.count("="), reverse=True)
    return {(row.given, row.system): row for row in earlier} | {(row.recipe, row.system): row for row in found}


def _table(table: PaperTable, measured: Measured) -> list[str]:
    header = ["", *(text for one in table.datasets for text in (f"{TITLES[one]}: paper", "ours"))]
    return grid(header, [cells for line in table.lines if (cells := _cells(table, line, measured))])


def _cells(table: PaperTable, line: Line, measured: Measured) -> list[str]:
    """Return a line's title and, for each dataset, the paper's number and ours; nothing if it need not stand there."""
    label = joint_label(line.system) if table.of_joint else LABELS[line.system]
    found = {dataset: measured.get((line.run_name(dataset), label)) for dataset in table.datasets}
    if not line.asked and not any(found.values()):
        return []
    cells = [line.title]
    for dataset, row in found.items():
        meant = line.asked and (not line.only or dataset in line.only)
        if row is None and not meant:
            cells += [NONE, NONE]
            continue
        theirs = _published(table, line, dataset)
        told = " / ".join(f"{one.mean:.1f}" if table.of_joint else str(one) for one in theirs)
        cells += [told or NONE, _ours(row, line.run_name(dataset), theirs)]
    return cells


def _published(table: PaperTable, line: Line, dataset: str) -> tuple[Published, ...]:
    """Return the paper's numbers, the same beside fast and full-length runs."""
    if table.of_joint:
        return paper.old_new_all(dataset, line.changes, line.system) or ()
    one = paper.accuracy(dataset, line.changes, line.system)
    return () if one is None else (one,)


def _ours(row: Row | None, name: str, published: Sequence[Published] = ()) -> str:
    """Return our numbers; they are marked if their recipe is not the one of that ``name`` today."""
    if row is None:
        return NOT_RUN
    numbers = [row.values[key] for key in (("old", "new", "all") if "old" in row.values else ("acc",))]
    texts = [_marked(values, theirs) for values, theirs in zip_longest(numbers, published)]
    return f"{' / '.join(texts)} ({len(row.seeds)}){EARLIER if row.recipe != name else ''}"


def _marked(values: Sequence[float], published: Published | None) -> str:
    less = published is not None and statistics.mean(values) < published.mean - CLEARLY_LESS
    return f"**{spread(values)}**" if less else spread(values)


def _sweep(sweep: Sweep, measured: Measured) -> list[str]:
    """Return the lines of a swept setting, the value that a recipe has itself among the others."""
    section, name = sweep.setting.split(".")
    lines = []
    for dataset in SMALL:
        fast = Line("").run_name(dataset)
        own = getattr(getattr(recipe.load(fast).recipe, section), name)
        lines.append(
            [TITLES[dataset], *(_of_value(sweep, value, fast, value == own, measured) for value in sweep.values)]
        )
    return grid([sweep.word, *map(str, sweep.values)], lines)


def _of_value(sweep: Sweep, value: int, fast: str, own: bool, measured: Measured) -> str:
    """Return our number for one value of a swept setting, which may be the recipe's ``own`` today."""
    name, system = f"{fast} {sweep.setting}={value}", LABELS["rankstats"]
    if own and (name, system) not in measured:
        name = fast
    row = measured.get((name, system))
    if row and name == fast and f"{sweep.setting}=" in row.recipe:  # an earlier recipe, whose own was another
        row = None
    return _ours(row, name)
