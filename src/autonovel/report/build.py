"""A report from its data to disk: thumbnails made, the page rendered, everything put in its place."""

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from autonovel.data import ImageSet
from autonovel.discovery import Discovery
from autonovel.embedding import Embedding
from autonovel.report import beside
from autonovel.report.cards import Card
from autonovel.report.page import Picture, Report, Thumbnails, collect, names_by_sheet, render
from autonovel.report.places import Places, places
from autonovel.report.sheets import COLUMNS, OfImages, Source, make_sheets
from autonovel.report.subject import Ints, Subject, as_found
from autonovel.storage.documents import replace_file
from autonovel.training.display import Display, Silent

CARD_COLUMNS = 8
LARGEST_EMBEDDED, LARGEST_BESIDE = 64, 96  # longest side of a thumbnail inside the page, and in a file of its own
MOST_EMBEDDED = 6000  # images whose thumbnails a single file holds, unless told otherwise: about 10 MB of photos
PAGE = "report.html"
STAGE = "thumbnails"
PICTURE = "data:image/webp;base64,"  # how a picture inside the page begins


def write_report(
    folder: Path,
    images: ImageSet,
    embedding: Embedding,
    found: Discovery,
    results: dict[str, Any],
    max_points: int = 2000,
    display: Display | None = None,
) -> None:
    """Write ``report.html`` of a run that has just ended; with many images, their thumbnails beside it.

    Args:
        folder: run folder; its ``run.json`` and journals are read.
        images: all images, at the size in which they should be shown.
        embedding: what the primary system says of them.
        found: the classes that were found.
        results: content of ``results.json``.
        max_points: images on the t-SNE map.
        display: for progress, where it takes long.
    """
    subject = as_found(images, found)
    report = collect(folder, subject, embedding.z, results, max_points, keep=True)
    shown = display if display is not None and len(images) > MOST_EMBEDDED else Silent()
    build(folder / PAGE, report, subject, OfImages(images.images), None, shown)


def build(
    page: Path, report: Report, subject: Subject, source: Source | None, single: bool | None, display: Display
) -> Path | None:
    """Write the page and what belongs to it; return the folder of the files beside it, if there are any.

    Args:
        page: the HTML file.
        report: what it says.
        subject: images and classes.
        source: of the pictures; None if there are none.
        single: everything in one file (True), or thumbnails and names beside it (False); None: one file where
            ``MOST_EMBEDDED`` images are not exceeded.
        display: for progress.
    """
    single = len(subject) <= MOST_EMBEDDED if single is None else single
    order = places(subject)
    files = None if single else beside.FilesBeside(page)
    try:
        thumbnails = _thumbnails(report, subject, order, source, files, display)
        replace_file(page, render(report, subject, order, thumbnails).encode())
        beside.remove_others(page, thumbnails.folder)
    finally:
        if files:
            files.close()
    return files.folder if files else None


def has_pictures(page: Path) -> bool:
    """Tell whether there is a page which shows pictures, in itself or beside it."""
    return page.is_file() and (PICTURE.encode() in page.read_bytes() or any(page.with_suffix("").glob("*/*.webp")))


def _thumbnails(
    report: Report,
    subject: Subject,
    order: Places,
    source: Source | None,
    files: beside.FilesBeside | None,
    display: Display,
) -> Thumbnails:
    cards = {card.number: _rows(card) for card in report.all_cards if card.size} if source else {}
    cards_made, embedded, measure = {}, [], None
    if source:
        sheets = order.sheets
        largest = LARGEST_BESIDE if files else LARGEST_EMBEDDED
        columns = [CARD_COLUMNS] * len(cards) + [COLUMNS] * len(sheets)
        batches = [*cards.values(), *sheets]
        made = make_sheets(source, batches, largest, columns, _progress(display, sum(map(len, batches))))
        for number in cards:
            sheet = next(made)
            name = f"card-{number}.webp"
            cards_made[number] = Picture(name if files else _data_address(sheet.content), sheet)
            if files:
                files.add(name, sheet.content)
        for place, sheet in enumerate(made):
            measure = measure or sheet
            if files:
                files.add(f"sheet-{place}.webp", sheet.content)
            else:
                embedded.append(base64.b64encode(sheet.content).decode())
        display.end(STAGE)
    if not files:
        return Thumbnails(cards_made, measure, None, embedded)
    for place, names in enumerate(names_by_sheet(subject, order)):
        files.add(f"names-{place}.js", f"autonovelNames({place}, {json.dumps(names)});\n".encode())
    address = files.finish()
    beside_page = {number: Picture(f"{address}/{one.address}", one.sheet) for number, one in cards_made.items()}
    return Thumbnails(beside_page, measure, address, ())


def _rows(card: Card) -> Ints:
    return np.array([thumbnail.row for thumbnail in (*card.central, *card.unsure)], dtype=np.int64)


def _data_address(content: bytes) -> str:
    return f"{PICTURE}{base64.b64encode(content).decode()}"


def _progress(display: Display, total: int) -> Callable[[int], None]:
    """Return what tells ``display`` how far the thumbnails are."""
    display.begin(STAGE, total, 0, "images")
    begun = time.monotonic()

    def tick(done: int) -> None:
        display.update(STAGE, done, {}, done / max(time.monotonic() - begun, 1e-9))

    return tick
