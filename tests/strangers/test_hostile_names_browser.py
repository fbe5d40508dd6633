"""Classes and files whose names are HTML, in a real browser: they are shown as text, and nothing in them happens."""

import csv
import json
from pathlib import Path

import pytest

from autonovel import open_run
from autonovel.editing.found import COLUMNS
from autonovel.report.command import report_run
from autonovel.spreadsheet import harmless_line, line
from browser import Page, browsing
from test_review import server  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow
KNOWN = "<script>window.hit = 'known'</script>"
NEW = '"><img src=x onerror="window.hit = \'new\'">'
FILE = "'\"><svg onload=\"window.hit='file'\"></script><script>window.hit='file'</script>{{7*7}}${7*7}-%d.png"
RENAMED = "</title><iframe srcdoc=\"<script>parent.hit='renamed'</script>\">&lt;"


@pytest.fixture
def finished(finished: Path) -> Path:
    """Return a finished run in which a known class, a new one and all files have such names."""
    names = {"0": KNOWN, "new-1": NEW}
    with (finished / "discovery.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows):
        row["id"] = FILE % number
        for column in ("given_label", "class_name", "second_class", "nearest_known"):
            row[column] = names.get(row[column], row[column])
    (finished / "discovery.csv").write_text(
        line(COLUMNS) + "".join(harmless_line(COLUMNS, row) for row in rows), encoding="utf-8"
    )
    for document in ("classes.json", "run.json"):
        found = json.loads((finished / document).read_text())
        for one in found.get("classes", []):
            one["name"] = names.get(one["name"], one["name"])
        if "class_names" in found:
            found["class_names"] = [names.get(name, name) for name in found["class_names"]]
            found["recipe"]["data.source"] = "arrays"  # no pictures: the names are what this is about
        (finished / document).write_text(json.dumps(found))
    return finished


def unharmed(page: Page) -> None:
    assert page.value("typeof window.hit") == "undefined"
    assert page.value("document.querySelectorAll('iframe, img[src=x], svg[onload]').length") == 0
    assert not [address for address in page.requests if address.endswith("/x")]


def test_names_are_text_on_the_review_page_and_in_the_report(
    server: tuple[object, str, str],  # noqa: F811
    finished: Path,
    tmp_path: Path,
) -> None:
    _, address, token = server
    with browsing(tmp_path / "profile") as page:
        page.look()
        page.open(f"{address}/?token={token}")
        page.wait("document.querySelectorAll('.card').length === 10")
        shown = page.value("[...document.querySelectorAll('.cards h3')].map((e) => e.textContent)")
        assert KNOWN in shown and NEW in shown
        unharmed(page)
        page.click("[data-key=rename-5]")
        page.wait("document.activeElement.name === 'name'")
        page.type(RENAMED)
        page.press("Enter")
        page.wait("document.querySelector('#toast').textContent.includes('Renamed')")
        unharmed(page)
        page.open(f"{address}/#/class/6")
        page.wait("document.querySelectorAll('.tile').length > 5")
        assert "window.hit='file'" in page.value("document.querySelector('.tile').getAttribute('aria-label')")
        unharmed(page)
        page.open(f"{address}/#/history")
        page.wait(f"document.body.textContent.includes({json.dumps(RENAMED)})")
        assert page.value("document.title").startswith("History")
        unharmed(page)
        assert page.complaints == []

        assert open_run(finished).sorting.names[5] == RENAMED
        place = report_run(finished, tmp_path / "report.html", None, True, 0)
        page.open(place.resolve().as_uri())
        page.wait("document.querySelectorAll('.card').length === 10")
        text = page.value("document.body.textContent")
        assert KNOWN in text and RENAMED in text and "{{7*7}}" in place.read_text(encoding="utf-8")
        page.value("document.querySelector('#class-6 a').click()")
        page.wait("!document.querySelector('#class-page').hidden")
        unharmed(page)
        assert page.complaints == []
