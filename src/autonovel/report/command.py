"""``autonovel report``: the report of a finished run, made anew with all corrections."""

import time
from pathlib import Path

from rich.console import Console

from autonovel.editing.edited import open_run
from autonovel.embedding import Embedding
from autonovel.errors import PicturesLostError, RunFolderError, UsageError
from autonovel.report.build import MOST_EMBEDDED, PAGE, build, has_pictures
from autonovel.report.page import collect
from autonovel.report.sheets import OfRun
from autonovel.report.subject import corrected
from autonovel.run_images import RunImages
from autonovel.storage.shapes import interpreting, read_results
from autonovel.terminal import TerminalDisplay
from autonovel.training.display import Display, Silent
from autonovel.words import duration

SUFFIXES = (".html", ".htm")


def report_run(folder: Path, to: Path | None, data: Path | None, single: bool | None, map_points: int) -> Path:
    """Write the report of the finished run at ``folder``, say what was written, and return the page.

    Args:
        folder: of the run.
        to: an HTML file, or a folder for ``report.html``; None: the run folder.
        data: where the images lie now, if they were moved.
        single: everything in one file, or thumbnails beside it; None: whichever suits the number of images.
        map_points: images on the map; 0 takes the run's setting.
    """
    page, console = page_path(folder, to), Console()
    begun = time.monotonic()
    display = TerminalDisplay(console)
    try:
        beside, missing = write_corrected_report(folder, page, data, single, map_points, display, keep=to is None)
    finally:
        display.close()
    if missing:
        console.print(missing, highlight=False, markup=False, soft_wrap=True)
    files = [page, *(path for path in beside.rglob("*") if path.is_file())] if beside else [page]
    size = sum(path.stat().st_size for path in files)
    more = f" and {len(files) - 1:,} files in {beside}" if beside else ""
    told = f"Wrote {page}{more}: {size / 1e6:,.1f} MB in {duration(time.monotonic() - begun)}."
    console.print(told, highlight=False, markup=False, soft_wrap=True)
    return page


def page_path(folder: Path, to: Path | None) -> Path:
    """Return the HTML file to write."""
    if to is None:
        return folder / PAGE
    if to.suffix.lower() in SUFFIXES:
        if to.is_dir():
            raise UsageError(
                f"{to} is a folder. Name an HTML file, or a folder whose name does not end in {to.suffix}."
            )
        return to
    if to.is_file():
        raise UsageError(f"{to} is a file without the ending .html. Name an HTML file, or a folder for {PAGE}.")
    return to / PAGE


def write_corrected_report(
    folder: Path,
    page: Path,
    data: Path | None,
    single: bool | None,
    map_points: int,
    display: Display,
    keep: bool = False,
) -> tuple[Path | None, str]:
    """Write the report of a finished run with its corrections to ``page``.

    ``keep`` says that one which is there is not to be replaced by one without pictures.

    Returns the folder of the files beside it, if there are any, and why it has no pictures, if it has none.
    """
    run = open_run(folder)
    results = read_results(folder / "results.json")
    subject, rows = corrected(run)
    z = Embedding.load(folder / "embedding.safetensors").z
    if len(z) != len(subject):
        raise RunFolderError(
            f"{folder / 'embedding.safetensors'} is of {len(z):,} images, and discovery.csv of {len(subject):,}. "
            "Finish the run anew."
        )
    images = RunImages(run, data)
    missing = images.missing
    if missing and keep and has_pictures(page):
        raise PicturesLostError(
            f"{missing} {page} was left as it is, since it would lose its pictures; --to {page} replaces it all the "
            "same."
        )
    points = map_points or images.settings.run.map_points
    with interpreting(f"{folder / 'results.json'} or count.json"):
        report = collect(folder, subject, z, results, points, keep=not map_points)
    source = None if missing else OfRun(images, rows, subject.shape)
    beside = build(page, report, subject, source, single, display if len(subject) > MOST_EMBEDDED else Silent())
    return beside, missing
