"""The review page in a real browser: what a person does there is what is on disk and in every export."""

import time
from pathlib import Path

import pytest

from autonovel import open_run
from autonovel.export import export_run
from browser import Page, browsing
from finished import as_known, rows_of
from test_review import server  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow
CTRL, SHIFT = 2, 8


def names(page: Page) -> list[str]:
    return list(page.value("[...document.querySelectorAll('.cards h3')].map((e) => e.textContent)"))


def say(page: Page, text: str) -> None:
    """Wait for what the page says of the last edit."""
    page.wait(f"document.querySelector('#toast').textContent.includes({text!r})")


def rename(page: Page, number: int, name: str) -> None:
    page.click(f"[data-key=rename-{number}]")
    page.wait("document.activeElement.name === 'name'")
    page.type(name)
    page.press("Enter")
    say(page, f"to {name}")


def test_a_person_corrects_the_classes(
    server: tuple[object, str, str],  # noqa: F811
    finished: Path,
    tmp_path: Path,
) -> None:
    _, address, token = server
    found = open_run(finished).found
    with browsing(tmp_path / "profile") as page:
        page.look()
        page.open(f"{address}/?token={token}")
        page.wait("document.querySelectorAll('.card').length === 10")
        assert token not in page.value("location.href"), "the token leaves the address bar"
        rename(page, 5, "seven")
        rename(page, 6, "six & <b>more</b>")

        page.click("[data-key=tick-5]")
        page.click("[data-key=tick-6]")
        page.click("[data-key=merge]")
        say(page, "Merged")
        sizes = [len(found.members(n)) for n in (5, 6)]
        kept = 5 if sizes[0] >= sizes[1] else 6
        merged = {5: "seven", 6: "six & <b>more</b>"}[kept]
        page.wait("document.querySelectorAll('.card').length === 9")
        assert merged in names(page)

        page.click(f"[data-key=open-{kept}]")
        page.wait("document.querySelectorAll('.tile').length > 20")
        moved = page.value("document.querySelector('.tile:nth-child(2)').getAttribute('aria-label').split(',')[0]")
        page.click(".tile:nth-child(2)")
        page.press("m")
        page.wait("document.querySelector('dialog input')")
        page.type("new-4")
        page.press("Enter")
        say(page, "Moved 1 image to new-4")

        # by keyboard alone: two images are junk, and then they are not
        page.value("document.querySelector('.tile[tabindex=\"0\"]').focus()")
        page.press("ArrowRight")
        page.press(" ")
        page.press("ArrowRight", SHIFT)
        page.wait("document.querySelectorAll('.tile[aria-selected=true]').length === 2")
        page.press("j")
        say(page, "Marked 2 images as junk")
        page.wait("document.querySelectorAll('.tile[aria-selected=true]').length === 0")
        page.press("z", CTRL)
        say(page, "Undid: marked 2 images as junk")

        # the slider leaves only images that are sure enough
        row = rows_of(finished / "discovery.csv")
        members = [i for i, n in enumerate(found.class_of) if n in (5, 6) and found.ids[i] != moved]
        confidence = sorted(float(row[found.ids[i]]["confidence"]) for i in members)
        level = round(100 * confidence[len(members) // 2])
        told = "document.querySelector('.tools output').textContent"
        page.wait(f"{told} === '{len(members)} of {len(members)} shown'")
        page.value(
            f"(() => {{ const s = document.querySelector('input[type=range]'); s.value = {level}; "
            "s.dispatchEvent(new Event('input')); })()"
        )
        sure = sum(value >= level / 100 for value in confidence)
        assert 0 < sure < len(members), "the slider is put where it divides the class"
        page.wait(f"{told} === '{sure} of {len(members)} shown'")
        assert page.value("document.querySelectorAll('.tile').length") == sure

        page.open(f"{address}/#/")
        page.call("Page.reload")
        page.wait("document.querySelectorAll('.card').length === 9")
        assert merged in names(page)
        picture = page.value("getComputedStyle(document.querySelector('.thumbnails i')).backgroundImage.slice(5, -2)")
        assert page.value(f"fetch({picture!r}).then((a) => a.ok)"), "thumbnails are there"

        # another person, or a command, was faster: the page refuses, shows it, and goes on
        open_run(finished).rename("new-5", "elsewhere")
        page.click("[data-key=rename-7]")
        page.wait("document.activeElement.name === 'name'")
        page.type("three")
        page.press("Enter")
        say(page, "changed since")
        page.wait("document.body.textContent.includes('elsewhere')")
        rename(page, 7, "three")
        assert [c for c in page.complaints if "409" not in c] == []

    export_run(finished, "csv", tmp_path / "out.csv")
    out = rows_of(tmp_path / "out.csv")
    expected = {"new-1": merged, "new-2": merged, "new-3": "three", "new-5": "elsewhere"}
    for name, row in rows_of(finished / "discovery.csv").items():
        wanted = "new-4" if name == moved else expected.get(row["class_name"], row["class_name"])
        assert (out[name]["class_name"], out[name]["status"]) == (wanted, "ok")


@pytest.fixture
def looking(finished: Path) -> Path:
    """Let 7 of the 40 images of class 6 look like class 3."""
    return as_known(finished, "new-2", "3", most=7)


def test_what_looks_known_is_seen_together_and_moved_there(
    looking: Path,  # before the server, which reads the table
    server: tuple[object, str, str],  # noqa: F811
    tmp_path: Path,
) -> None:
    _, address, token = server
    told, order = "document.querySelector('.tools output').textContent", "document.querySelector('.tools select')"
    with browsing(tmp_path / "profile") as page:
        page.open(f"{address}/?token={token}")
        page.wait("document.body.textContent.includes('7 images look more like a known class.')")
        page.click("[data-key=known-6]")
        page.wait("document.querySelectorAll('.tile').length > 20")
        page.wait(f"{told} === '40 of 40 shown'")
        offered = page.value(f"[...{order}.options].map((one) => one.textContent)")
        assert offered == ["Surest first", "Least sure first", "Looks known first", "Looks like 3 (7)"]
        choose = "(() => {{ const s = {}; s.value = {!r}; s.dispatchEvent(new Event('change')); }})()"
        page.value(choose.format(order, "like"))
        page.wait(f"{told} === '7 of 40 shown'")
        assert page.value("document.querySelector('.tile').title.includes('looks like 3 90 %')")
        page.value(choose.format(order, "like-3"))
        page.click("[data-key=all]")
        page.press("m")
        page.wait("document.querySelector('dialog input')")
        page.press("Enter")  # the class they look like comes first
        say(page, "Moved 7 images to 3")
        page.wait(f"{order}.value === 'like' && {told} === '0 of 33 shown'")
        page.value(choose.format(order, "sure"))
        page.wait(f"{told} === '33 of 33 shown'")
        assert page.complaints == []
    moved = {row["id"] for row in open_run(looking).rows() if row["by_hand"]}
    assert moved == {name for name, row in rows_of(looking / "discovery.csv").items() if row["looks_known"] == "0.9"}


RANGE_OVER_A_REFRESH = """
import("/static/tiles.js").then(({ Tiles }) => {
  const tiles = new Tiles("some images", () => {});
  document.body.append(tiles.element);
  const items = [0, 1, 2, 3, 4, 5].map((row) => ({ row, id: `image ${row}`, confidence: 1 }));
  const press = (key, shiftKey = false) => tiles.pressed({ key, shiftKey, preventDefault() {} });
  tiles.show(items);
  ["ArrowRight", "ArrowRight", " "].forEach((key) => press(key));
  tiles.show(items.slice(1)); // an image before it was moved elsewhere
  press("ArrowRight", true);
  tiles.leave();
  tiles.element.remove();
  return [...tiles.selected].sort();
})
"""


def test_the_keyboard_stays_with_its_image_where_others_go(
    server: tuple[object, str, str],  # noqa: F811
    tmp_path: Path,
) -> None:
    """Edits are shown a moment later: a range that was begun before must not begin at the image behind it."""
    _, address, token = server
    with browsing(tmp_path / "profile") as page:
        page.open(f"{address}/?token={token}")
        page.wait("document.querySelectorAll('.card').length === 10")
        assert page.value(RANGE_OVER_A_REFRESH) == [2, 3]


def test_another_site_gets_nothing(
    server: tuple[object, str, str],  # noqa: F811
    finished: Path,
    tmp_path: Path,
) -> None:
    """A page from elsewhere, in the browser that holds the cookie, can neither read nor edit."""
    _, address, token = server
    with browsing(tmp_path / "profile") as page:
        page.open(f"{address}/?token={token}")
        page.wait("document.querySelector('.card')")
        page.open("data:text/html,<title>elsewhere</title>")
        wish = '{"edit": {"edit": "rename", "number": 5, "name": "stolen"}, "based_on": 0}'
        ask = f"fetch('{address}/api/state', {{credentials: 'include'}}).then(() => 'read', () => 'refused')"
        send = (
            f"fetch('{address}/api/edit', {{method: 'POST', mode: 'no-cors', credentials: 'include', body: '{wish}'}})"
            ".then((a) => a.type, () => 'refused')"
        )
        assert page.value(ask) == "refused"
        page.value(send)
        time.sleep(0.2)
        picture = (
            "new Promise((done) => { const image = new Image(); image.onload = () => done('seen'); "
            f"image.onerror = () => done('refused'); image.src = '{address}/static/icon.svg'; }})"
        )
        assert page.value(picture) == "refused"
    assert not (finished / "edits.jsonl").exists()
