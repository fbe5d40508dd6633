"""The tables of the paper as it prints them, with ours beside each of its numbers, and where ours are below."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from autonovel import recipe
from autonovel.errors import UsageError
from autonovel.labels import LABELS
from autonovel.tables import paper
from autonovel.tables.markdown import grid
from autonovel.tables.naming import Results
from autonovel.tables.paper import Published
from autonovel.tables.paper_layout import SMALL, SWEEPS, TABLES, TITLES, Line, PaperTable, Sweep
from autonovel.tables.row import Row, spread
from autonovel.tables.table import Unrun, joint_label, reasons, rows

NOT_RUN = Unrun.instead  # where nothing else is said
NONE = "–"
CLEARLY_LESS = 3.0  # points below the paper
LESS = "▼ "
LEGEND = (
    "Accuracy in per cent, mean ± standard deviation, of ours with the number of seeds in brackets; the paper's "
    f"deviations are over {paper.RUNS} runs. {LESS.strip()}: more than {CLEARLY_LESS:.0f} points below the paper, "
    "as both are printed. "
    "Where a line does not say *full length*, the fast recipe is meant (on ImageNet there is but one)."
)
EARLIER = " †"
OF_EARLIER = "†: with the recipe as it was at the commit that the table of all runs names; today's differs."
BELOW = (
    "**Below the paper**: what the method itself reaches, by however little, and the other lines by more than "
    f"{CLEARLY_LESS:.0f} points."
)
Measured = Mapping[tuple[str, str], Row]  # by the recipe with its changes, and what the row calls the system


def markdown(results: Sequence[Results], not_run: Sequence[Unrun] = ()) -> str:
    """Return all tables of the paper with our results beside its own; ``not_run`` tells why some have none."""
    if results and not any(paper.dataset_of(str(r["recipe"])) in TITLES for r in results):
        named = ", ".join(sorted({str(r["recipe"]) for r in results}))
        raise UsageError(f"these runs are of {named}, none of which is in the paper. Print them without --paper.")
    measured = _measured(rows(results))
    instead = {name: one.instead for one in not_run for name in one.names}
    lines = []
    for table in TABLES:
        lines += ["", f"**{table.title}**", "", *_table(table, measured, instead)]
    for sweep in SWEEPS:
        lines += ["", f"**{sweep.title}**", "", *_sweep(sweep, measured)]
    lines += [*_below(measured), *reasons(not_run, results)]
    marked = any(EARLIER in line for line in lines)
    return "\n".join([f"{LEGEND} {OF_EARLIER}" if marked else LEGEND, *lines])


def _measured(found: Sequence[Row]) -> Measured:
    """Return the rows by name and system; for what today's recipe has not, those of the earlier one most like it."""
    earlier = sorted((row for row in found if row.given), key=lambda row: row.recipe.count("="), reverse=True)
    return {(row.given, row.system): row for row in earlier} | {(row.recipe, row.system): row for row in found}


def _table(table: PaperTable, measured: Measured, instead: Mapping[str, str]) -> list[str]:
    """Return a table of the paper; ``instead`` is what stands, by names of runs, in the place of numbers of ours."""
    header = ["", *(text for one in table.datasets for text in (f"{TITLES[one]}: paper", "ours"))]
    return grid(header, [cells for line in table.lines if (cells := _cells(table, line, measured, instead))])


def _cells(table: PaperTable, line: Line, measured: Measured, instead: Mapping[str, str]) -> list[str]:
    """Return a line's title and, for each dataset, the paper's number and ours; nothing if it need not stand there."""
    found = _found(table, line, measured)
    if not line.asked and not any(found.values()):
        return []
    cells = [line.title]
    for dataset, row in found.items():
        meant = line.asked and (not line.only or dataset in line.only)
        if row is None and not meant:
            cells += [NONE, NONE]
            continue
        theirs, name = _published(table, line, dataset), line.run_name(dataset)
        cells += [_told(table, theirs), _ours(row, name, theirs) if row else instead.get(name, NOT_RUN)]
    return cells


def _found(table: PaperTable, line: Line, measured: Measured) -> dict[str, Row | None]:
    """Return what was measured of a line on each dataset."""
    label = joint_label(line.system) if table.of_joint else LABELS[line.system]
    there = [dataset for dataset in table.datasets if line.has_run(dataset)]
    return dict.fromkeys(table.datasets) | {one: measured.get((line.run_name(one), label)) for one in there}


def _told(table: PaperTable, theirs: Sequence[Published]) -> str:
    return " / ".join(f"{one.mean:.1f}" if table.of_joint else str(one) for one in theirs) or NONE


def _published(table: PaperTable, line: Line, dataset: str) -> tuple[Published, ...]:
    """Return the paper's numbers, the same beside fast and full-length runs."""
    if table.of_joint:
        return paper.old_new_all(dataset, line.changes, line.system) or ()
    one = paper.accuracy(dataset, line.changes, line.system)
    return () if one is None else (one,)


def _ours(row: Row | None, name: str, published: Sequence[Published] = ()) -> str:
    """Return our numbers, marked where they are clearly below the paper, and if the recipe ``name`` differs today."""
    if row is None:
        return NOT_RUN
    texts = [
        f"{LESS if theirs and _points_below(values, theirs) > CLEARLY_LESS else ''}{spread(values)}"
        for values, theirs in zip_longest(_numbers(row), published)
    ]
    return f"{' / '.join(texts)} ({len(row.seeds)}){EARLIER if row.recipe != name else ''}"


def _numbers(row: Row) -> list[list[float]]:
    return [row.values[key] for key in (("old", "new", "all") if "old" in row.values else ("acc",))]


def _points_below(values: Sequence[float], published: Published) -> float:
    """Return by how much a mean is below the paper's, both to the digit that is shown."""
    return round(published.mean - round(statistics.mean(values), 1), 1)


def _below(measured: Measured) -> list[str]:
    """Return the table of all lines on which ours is below the paper, dataset by dataset; nothing where none is."""
    once = dict.fromkeys(_misses(measured))  # a line may stand in several tables
    cells = sorted(once, key=lambda cells: [*TITLES.values()].index(cells[0]))
    return ["", BELOW, "", *grid(["", "", "paper", "ours", "below by"], cells)] if cells else []


def _misses(measured: Measured) -> Iterator[tuple[str, ...]]:
    for table in TABLES:
        for line in table.lines:
            margin = 0.0 if line.of_the_method else CLEARLY_LESS
            for dataset, row in _found(table, line, measured).items():
                theirs = _published(table, line, dataset)
                below = [_points_below(*pair) for pair in zip(_numbers(row), theirs, strict=False)] if row else []
                if any(points > margin for points in below):
                    title = f"{line.title}: old / new / all" if table.of_joint else line.title
                    by = " / ".join(f"{points:.1f}" if points > 0 else NONE for points in below)
                    yield TITLES[dataset], title, _told(table, theirs), _ours(row, line.run_name(dataset), theirs), by


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
