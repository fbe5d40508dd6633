"""The page: sections as data, pictures drawn for them, one template."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from torch import Tensor

from autonovel import __version__, words
from autonovel.counting.words import range_over
from autonovel.editing.sorting import JUNK
from autonovel.labels import label_of
from autonovel.report import curves, gather, pictures
from autonovel.report.cards import Card, cards, known_cards
from autonovel.report.count_picture import count_of, count_svg
from autonovel.report.facts import Facts, facts
from autonovel.report.places import Places, page_data
from autonovel.report.sheets import COLUMNS, PER_SHEET, Sheet
from autonovel.report.subject import Subject
from autonovel.report.tsne import Map, counterparts, tsne_map

SCRIPTS = ("store.js", "tiles.js", "ids.js", "classes.js", "map.js", "routes.js")
JUNK_COLOUR = "#8d8d8d"


@dataclass(frozen=True)
class Report:
    """All sections of the page, in the order in which they are read."""

    headline: gather.Headline
    systems: gather.Systems
    agreement: gather.Agreement | None
    incremental: gather.Incremental | None
    cards: tuple[Card, ...]
    known_cards: tuple[Card, ...]
    confusion: gather.Confusion | None
    map: Map
    training: tuple[curves.Training, ...]
    facts: Facts
    count: dict[str, Any] | None = None

    @property
    def all_cards(self) -> tuple[Card, ...]:
        """Return the cards of new, then of known classes."""
        return self.cards + self.known_cards


def collect(folder: Path, subject: Subject, z: Tensor, results: dict[str, Any], max_points: int, keep: bool) -> Report:
    """Return what the page says.

    Args:
        folder: run folder.
        subject: images and classes.
        z: features of the images.
        results: content of ``results.json``.
        max_points: images on the map.
        keep: whether the map is kept in the run folder, and taken from there.
    """
    return Report(
        headline=gather.headline(subject, results),
        systems=gather.systems(results),
        agreement=gather.agreement(results, subject),
        incremental=gather.incremental(results),
        cards=cards(subject),
        known_cards=known_cards(subject),
        confusion=gather.confusion(subject),
        map=tsne_map(z, max_points, folder if keep else None),
        training=curves.training(folder, results["primary"]),
        facts=facts(folder, subject, results),
        count=count_of(folder),
    )


@dataclass(frozen=True)
class Picture:
    """A sheet where the page finds it: inside as a data address, or in a file beside the page."""

    address: str
    sheet: Sheet


@dataclass(frozen=True)
class Thumbnails:
    """All thumbnails of a report.

    Attributes:
        cards: sheet of each card with images, by class number.
        cell: a sheet of the pages of the classes, for its measures; None if there are no pictures.
        folder: address of the files beside the page; None if everything is inside.
        embedded: sheets of the pages of the classes in base64, if they are inside.
    """

    cards: dict[int, Picture]
    cell: Sheet | None
    folder: str | None
    embedded: Sequence[str]


def render(report: Report, subject: Subject, order: Places, thumbnails: Thumbnails) -> str:
    """Return the page as HTML."""
    like = counterparts(subject)
    new = max((*like, *subject.names), default=0) + 1 - subject.n_known
    colours = dict(enumerate(pictures.class_colours(subject.n_known, max(new, 0)))) | {JUNK: JUNK_COLOUR}
    true_names = subject.true_names if like else ()
    data = page_data(subject, order, colours) | {
        "trueClasses": [
            {"name": name, "colour": colours[number]} for name, number in zip(true_names, like, strict=True)
        ],
        "nKnown": subject.n_known,
        "map": _map_data(report.map, order),
        "sheets": _measures(thumbnails),
    }
    return _environment().get_template("page.html").render(
        report=report,
        version=__version__,
        colours=colours,
        bars=_bars(report.systems),
        cards_shown=_cards_shown(report, thumbnails),
        training=[(one.system, _drawn(one)) for one in report.training],
        count_svg=count_svg(report.count) if report.count else None,
        count_range=range_over(report.count) if report.count else "",
        data=data,
        names=[] if thumbnails.folder else names_by_sheet(subject, order),
        thumbnails=thumbnails,
        scripts=[_text(f"script/{name}") for name in SCRIPTS],
    )  # fmt: skip


def names_by_sheet(subject: Subject, order: Places) -> list[list[str]]:
    """Return the names of the images on each sheet."""
    return [[subject.ids[row] for row in rows] for rows in order.sheets]


def _measures(thumbnails: Thumbnails) -> dict[str, Any]:
    """Return what the script must know to find a thumbnail."""
    cell = thumbnails.cell.cell if thumbnails.cell else None
    return {
        "per": PER_SHEET,
        "columns": COLUMNS,
        "width": cell.width if cell else 0,
        "height": cell.height if cell else 0,
        "pixelated": bool(cell and cell.pixelated),
        "folder": thumbnails.folder,
    }


def _map_data(drawn: Map, order: Places) -> dict[str, Any] | None:
    if drawn.points is None:
        return None
    return {"place": order.of_row[drawn.points.rows].tolist(), "x": drawn.points.x, "y": drawn.points.y}


def _bars(systems: gather.Systems) -> str | None:
    """Return the accuracies as bars; two numbers need no picture."""
    rows = [row for row in systems.rows if "acc" in row.scores]
    if len(rows) < 3:
        return None
    marked = next((place for place, row in enumerate(rows) if row.primary), -1)
    names, shares = [label_of(row.name) for row in rows], [row.scores["acc"] for row in rows]
    return pictures.bars_svg(names, shares, marked)


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "count": words.count,
        "per_cent": words.per_cent,
        "duration": words.duration,
        "system": label_of,
    }
    environment.globals["counted"] = words.counted
    return environment


def _text(name: str) -> str:
    return (resources.files("autonovel.report") / name).read_text(encoding="utf-8")


def _cards_shown(report: Report, thumbnails: Thumbnails) -> dict[int, dict[str, Any]]:
    """Return, for each card with pictures, its sheet and the place of each thumbnail on it."""
    out = {}
    for card in report.all_cards:
        if card.number in thumbnails.cards:
            picture = thumbnails.cards[card.number]
            places = [(*_place(picture.sheet, i), one) for i, one in enumerate((*card.central, *card.unsure))]
            central, unsure = places[: len(card.central)], places[len(card.central) :]
            out[card.number] = {"picture": picture, "central": central, "unsure": unsure}
    return out


def _place(sheet: Sheet, position: int) -> tuple[str, str]:
    """Return the CSS background position that shows one thumbnail, whatever the size of its frame."""
    row, column = divmod(position, sheet.columns)
    return f"{100 * column / max(sheet.columns - 1, 1):.4g}%", f"{100 * row / max(sheet.rows - 1, 1):.4g}%"


def _drawn(training: curves.Training) -> list[dict[str, Any]]:
    """Return the charts of a system with their pictures and, for the legend, the colour of each line."""
    return [
        {
            "chart": chart,
            "svg": pictures.chart_svg(chart, f"{training.system} {number}"),
            "lines": list(zip(chart.series, pictures.line_colours(len(chart.series)), strict=True)),
        }
        for number, chart in enumerate(training.charts)
    ]
