"""The report in a real browser: opened from disk, used by keyboard and mouse, in one file and with files beside it."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from autonovel import open_run
from autonovel.report import build
from autonovel.report.command import report_run
from browser import Page, browsing
from finished import rows_of

pytestmark = pytest.mark.slow
ATTACK = "<script>alert(1)</script><img src=x onerror='alert(2)'>"
SHIFT = 8


@pytest.fixture(params=["one file", "folder"])
def opened(request: pytest.FixtureRequest, finished_with_files: Path, tmp_path: Path) -> Any:
    """Yield a page of the report of a run whose names are hostile, and the run."""
    run = open_run(finished_with_files)
    run.rename("new-1", ATTACK)
    run.junk([run.found.ids[run.found.members(6)[0]]])
    place = report_run(finished_with_files, tmp_path / "the 'report' #1", None, request.param == "one file", 0)
    with browsing(tmp_path / "profile") as page:
        page.look()
        page.open(place.resolve().as_uri())
        yield page, open_run(finished_with_files)
        assert page.complaints == []
        assert not page.value("Boolean(document.querySelector('img[src=x]'))")


def shown(page: Page) -> str:
    return str(page.value("document.querySelector('#class-shown').textContent"))


def loaded(page: Page, selector: str) -> bool:
    """Tell whether the picture behind an element can be shown."""
    return bool(
        page.value(
            "(async () => { const image = new Image(); const style = getComputedStyle(document.querySelector("
            f'{json.dumps(selector)})); image.src = /url\\("(.*)"\\)/.exec(style.backgroundImage)[1]; '
            "await image.decode(); return image.naturalWidth > 0; })()"
        )
    )


def test_a_class_opens_by_keyboard_and_the_slider_filters(opened: tuple[Page, Any]) -> None:
    page, run = opened
    page.wait("document.querySelectorAll('.card').length === 10")
    assert loaded(page, ".thumbnails i")
    page.value("document.querySelector('#class-5 a').focus()")
    page.press("Enter")
    page.wait("!document.querySelector('#class-page').hidden && document.querySelectorAll('#class-tiles .tile').length")
    assert page.value("document.querySelector('#class-title').textContent") == ATTACK
    assert page.value("document.activeElement.id") == "class-title", "the keyboard is where the reader is"

    rows, members = rows_of(run.folder / "discovery.csv"), run.sorting.members(5)
    sure = sorted((float(rows[run.sorting.ids[row]]["confidence"]) for row in members), reverse=True)
    assert shown(page) == f"{len(members)} of {len(members)} shown"
    level = round(100 * sure[len(sure) // 2])
    wanted = sum(value >= level / 100 - 1e-9 for value in sure)
    assert 0 < wanted < len(sure)
    page.value("document.querySelector('#class-threshold').focus()")
    for _ in range(level):
        page.press("ArrowRight")
    assert shown(page) == f"{wanted} of {len(members)} shown"
    assert page.value("document.querySelectorAll('#class-tiles .tile').length") == wanted

    page.value(
        "(() => { const e = document.querySelector('#class-order'); e.value = 'unsure'; "
        "e.dispatchEvent(new Event('change')); })()"
    )
    assert shown(page) == f"{len(members)} of {len(members)} shown"
    least = [run.sorting.ids[row] for row in members if run.confidence[row] == run.confidence[members].min()]
    page.wait(f"{json.dumps(least)}.includes(document.querySelector('.tile').title.split('\\n')[0])")
    assert loaded(page, ".tile i")

    page.value("document.querySelector('.tile').focus()")
    page.press("ArrowRight")
    page.press("Enter")
    page.wait("document.querySelector('#look').open")
    first = page.value("document.querySelector('#look-name').textContent")
    page.press("ArrowRight")
    page.wait(f"document.querySelector('#look-name').textContent !== {json.dumps(first)}")
    page.press("Escape")
    page.wait("!document.querySelector('#look').open && document.activeElement.dataset.position === '2'")

    page.click("#class-copy")
    page.wait("document.querySelector('#class-ids textarea')")
    ids = page.value("document.querySelector('#class-ids textarea').value").split("\n")
    assert sorted(ids) == sorted(run.sorting.ids[row] for row in members)

    page.value("document.querySelector('#class-title').focus()")
    page.press("Escape")
    page.wait("document.querySelector('#class-page').hidden")
    assert page.value("document.activeElement.textContent") == ATTACK, "back on the link that opened the class"


def test_images_are_pointed_at_and_selected_on_the_map(opened: tuple[Page, Any]) -> None:
    page, run = opened
    page.wait("document.querySelectorAll('#legend button').length === 11")
    page.value("document.querySelector('#map').scrollIntoView({ behavior: 'instant' })")
    page.value("document.querySelector('#plot').focus()")
    page.press("ArrowRight")
    page.wait("!told.hidden && !told.textContent.startsWith('…')")
    assert loaded(page, "#told i")
    name = page.value("told.textContent").split("\n")[0]
    assert name in run.sorting.index
    page.press(" ")
    page.wait("document.querySelector('#selection-told').textContent.startsWith('1 selected')")
    page.click("#selection-copy")
    page.wait(f"document.querySelector('#selection-ids textarea')?.value === {json.dumps(name)}")

    # around everything, by mouse
    page.value("document.querySelector('#map').scrollIntoView({ behavior: 'instant' })")
    x, y, width, height = page.value(
        "(() => { const r = document.querySelector('#plot').getBoundingClientRect(); "
        "return [r.x, r.y, r.width, r.height]; })()"
    )
    corners = [(x + 6, y + 6), (x + width - 6, y + 6), (x + width - 6, y + height - 6), (x + 6, y + height - 6)]
    mouse(page, "mousePressed", *corners[0])
    for corner in (*corners[1:], corners[0]):
        mouse(page, "mouseMoved", *corner)
    mouse(page, "mouseReleased", *corners[0])
    page.wait("document.querySelector('#selection-told').textContent.startsWith('400 selected')")
    assert page.value("document.querySelectorAll('#selection-tiles .tile').length") < 400, "only those in view exist"

    # one class singled out, then taken
    page.click("#selection-clear")
    page.wait("document.querySelector('#selection').hidden")
    page.click("#legend li:nth-child(3) button")
    page.click("#select-shown")
    size = len(run.sorting.members(6))
    page.wait(f"document.querySelector('#selection-told').textContent === '{size} selected: {size} in new-2'")
    page.value("document.querySelector('#plot').focus()")
    page.press("ArrowRight")
    page.press("Enter")
    page.wait("document.querySelector('#class-title').textContent === 'new-2'")


def mouse(page: Page, kind: str, x: float, y: float) -> None:
    page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)


def test_a_link_to_a_class_opens_it_and_one_to_nothing_does_not(opened: tuple[Page, Any]) -> None:
    page, _ = opened
    address = page.value("location.href.split('#')[0]")
    page.open("about:blank")
    page.open(f"{address}#/class/junk")
    page.wait("document.querySelector('#class-shown').textContent === '1 of 1 shown'")
    page.value("location.hash = '#facts'")
    page.wait("document.querySelector('#class-page').hidden && scrollY > 500")
    page.value("location.hash = '#/class/999'")
    page.wait("location.hash === '#/class/999' && document.querySelector('#class-page').hidden")


def test_names_alone_where_there_are_no_pictures(finished_with_files: Path, tmp_path: Path) -> None:
    (tmp_path / "my images").rename(tmp_path / "elsewhere")
    page_file = report_run(finished_with_files, None, None, None, 0)
    with browsing(tmp_path / "profile") as page:
        page.look(390, 800, dark=True)
        page.open(f"{page_file.resolve().as_uri()}#/class/6")
        page.wait("document.querySelector('.tile .text')?.textContent.startsWith('00')")
        assert page.value("document.documentElement.scrollWidth") == 390
        assert page.complaints == []


def test_a_page_without_its_files_says_nothing_false(finished: Path, tmp_path: Path) -> None:
    page_file = report_run(finished, tmp_path / "out", None, False, 0)
    for file in (tmp_path / "out" / "report").rglob("*.*"):
        file.unlink()
    with browsing(tmp_path / "profile") as page:
        page.look()
        page.open(f"{page_file.resolve().as_uri()}#/class/6")
        page.wait("document.querySelectorAll('.tile').length > 0")
        page.click("#class-copy")
        page.wait("document.querySelector('#class-ids textarea')?.getAttribute('aria-label').includes('0 images')")
        assert all("ERR_FILE_NOT_FOUND" in one for one in page.complaints)


def test_the_benchmark_of_large_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as for 50,000 images, with 2,000: a folder, a small page, a quiet console."""
    file = Path(__file__).parent.parent / "benchmarks" / "report.py"
    spec = importlib.util.spec_from_file_location("report_benchmark", file)
    assert spec and spec.loader
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    monkeypatch.setattr(build, "MOST_EMBEDDED", 1000)
    found = benchmark.measure(2000, tmp_path, points=300)
    view = found["first_view"]
    assert view["complaints"] == []
    assert found["page_bytes"] <= view["bytes"] <= view["overview_bytes"] < found["all_bytes"]
    assert found["page_bytes"] < 400_000 and view["bytes"] < 15e6
    (folder,) = [path for path in (tmp_path / "run" / "report").iterdir() if path.is_dir()]
    assert len(list(folder.glob("sheet-*.webp"))) == len(list(folder.glob("names-*.js"))) == 8
