"""The page: sections as data, pictures drawn for them, one template."""

import base64
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2

from autonovel import __version__
from autonovel.data import ImageSet
from autonovel.discovery import Discovery
from autonovel.embedding import Embedding
from autonovel.labels import LABELS
from autonovel.report import curves, gather, pictures, words
from autonovel.report.count_picture import count_of, count_svg
from autonovel.report.facts import Facts, facts
from autonovel.report.tsne import Map, Points, tsne_map
from autonovel.run_folder import replace_file


@dataclass(frozen=True)
class Report:
    """All sections of the page, in the order in which they are read."""

    headline: gather.Headline
    systems: gather.Systems
    incremental: gather.Incremental | None
    cards: tuple[gather.Card, ...]
    confusion: gather.Confusion | None
    map: Map
    training: tuple[curves.Training, ...]
    facts: Facts
    count: dict[str, Any] | None = None


def write_report(
    folder: Path,
    images: ImageSet,
    embedding: Embedding,
    found: Discovery,
    results: dict[str, Any],
    max_points: int = 2000,
) -> None:
    """Write ``report.html``, one file that needs nothing else.

    Args:
        folder: run folder; its ``run.json`` and journals are read.
        images: all images, at the size in which they should be shown.
        embedding: what the primary system says of them.
        found: the classes that were found.
        results: content of ``results.json``.
        max_points: images on the t-SNE map.
    """
    report = collect(folder, images, embedding, found, results, max_points)
    replace_file(folder / "report.html", render(report, images, found.n_known).encode())


def collect(
    folder: Path, images: ImageSet, embedding: Embedding, found: Discovery, results: dict[str, Any], max_points: int
) -> Report:
    """Return what the page says."""
    return Report(
        headline=gather.headline(images, found, results),
        systems=gather.systems(results),
        incremental=gather.incremental(results),
        cards=gather.cards(images, found),
        confusion=gather.confusion(images, found),
        map=tsne_map(images, embedding, found, max_points),
        training=curves.training(folder, results["primary"]),
        facts=facts(folder, images, results),
        count=count_of(folder),
    )


def render(report: Report, images: ImageSet, n_known: int) -> str:
    """Return the page of ``report`` as HTML."""
    points = report.map.points
    used = max((*points.truth_like, len(points.found_names) - 1), default=0) + 1 if points else 0
    colours = pictures.class_colours(n_known, max(used - n_known, len(report.cards)))
    return _environment().get_template("page.html").render(
        report=report,
        version=__version__,
        colours=colours,
        bars=_bars(report.systems),
        sheets=[_sheet(card, images) for card in report.cards],
        training=[(one.system, _drawn(one)) for one in report.training],
        count_svg=count_svg(report.count) if report.count else None,
        map_data=_map_data(points, colours, n_known) if points else None,
    )  # fmt: skip


def _bars(systems: gather.Systems) -> str | None:
    """Return the accuracies as bars; two numbers need no picture."""
    rows = [row for row in systems.rows if "acc" in row.scores]
    if len(rows) < 3:
        return None
    marked = next((place for place, row in enumerate(rows) if row.primary), -1)
    names, shares = [LABELS.get(row.name, row.name) for row in rows], [row.scores["acc"] for row in rows]
    return pictures.bars_svg(names, shares, marked)


def _environment() -> jinja2.Environment:
    package = resources.files("autonovel.report")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (package / name).read_text(encoding="utf-8")),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"count": words.count, "per_cent": words.per_cent, "duration": words.duration}
    environment.filters["system"] = lambda name: LABELS.get(name, name)
    environment.globals["counted"] = words.counted
    return environment


def _sheet(card: gather.Card, images: ImageSet) -> dict[str, Any] | None:
    """Return the sprite of a card and where on it each thumbnail is; None for an empty class."""
    shown = (*card.central, *card.unsure)
    if not shown:
        return None
    sprite = pictures.sprite(images.images[[thumbnail.row for thumbnail in shown]])
    places = [(*_place(sprite, i), thumbnail) for i, thumbnail in enumerate(shown)]
    return {
        "number": card.number,
        "sprite": sprite,
        "png": base64.b64encode(sprite.png).decode(),
        "central": places[: len(card.central)],
        "unsure": places[len(card.central) :],
    }


def _place(sprite: pictures.Sprite, position: int) -> tuple[str, str]:
    """Return the CSS background position that shows one thumbnail, whatever the size of its frame."""
    row, column = divmod(position, sprite.columns)
    return f"{100 * column / max(sprite.columns - 1, 1):.4g}%", f"{100 * row / max(sprite.rows - 1, 1):.4g}%"


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


def _map_data(points: Points, colours: tuple[str, ...], n_known: int) -> dict[str, Any]:
    """Return what the page's script needs to draw the map."""
    found = {"of": points.found, "names": points.found_names, "colours": colours[: len(points.found_names)]}
    truth = {"of": points.truth, "names": points.truth_names, "colours": [colours[i] for i in points.truth_like]}
    return {
        "known": n_known,
        "ids": points.ids,
        "x": points.x,
        "y": points.y,
        "given": [int(given) for given in points.given],
        "found": found,
        "truth": truth if points.truth is not None else None,
    }
