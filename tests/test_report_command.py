"""The report of a finished run, written anew with a person's corrections."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from autonovel import open_run
from autonovel.delivery import redraw
from autonovel.editing.edited import EditedRun
from autonovel.editing.sorting import JUNK
from autonovel.errors import RunFolderError, UsageError
from autonovel.report import cards, gather, tsne
from autonovel.report.build import has_pictures
from autonovel.report.command import page_path, report_run
from autonovel.report.subject import NONE, corrected
from autonovel.storage.documents import write_json
from autonovel.training.display import Silent
from finished import finished_run
from runs import autonovel
from test_report import names, page_data, text_of


def correct(folder: Path) -> EditedRun:
    """Rename, merge, move and mark as junk."""
    run = open_run(folder)
    run.rename("new-1", "<script>alert(1)</script>")
    run.merge("new-2", "new-3")
    ids = [run.found.ids[row] for row in run.found.members(8)]
    run.junk(ids[:3])
    run.move(ids[3:5], "4")
    run.move([run.found.ids[run.found.members(0)[0]]], "new-5")
    return run


def test_counts_follow_the_corrections_and_add_up(finished: Path) -> None:
    run = correct(finished)
    subject, rows = corrected(run)
    results = json.loads((finished / "results.json").read_text())
    top = gather.headline(subject, results)
    assert rows.tolist() == list(range(400)) and len(subject) == 400
    assert top.unlabelled == (195, 2, 3) and top.labelled == (1, 199, 0)
    assert (top.n_new, top.n_known, top.n_unlabelled, top.n_labelled, top.n_edits) == (4, 5, 200, 200, 5)
    assert sum(card.size for card in cards.cards(subject)) == 195 + 1
    assert sum(card.size for card in cards.known_cards(subject)) == 2 + 199
    assert top.details == (
        "5 corrections by hand, included in all that follows. Of the unlabelled images, 195 are in new classes, 2 in "
        "known classes and 3 marked as junk. Of the labelled images, 1 is in new classes and 199 in known classes."
    )


def test_hints_follow_the_corrections(finished: Path) -> None:
    subject, _ = corrected(correct(finished))
    into = next(number for number, name in subject.names.items() if name == "new-2")
    inside = subject.members(into)
    assert not (subject.second[inside] == into).any() and (subject.second[inside] == NONE).any()
    for card in cards.cards(subject):
        rows = subject.members(card.number)
        assert card.near_new is not None and card.near_known is not None
        seconds = [int(subject.second[row]) for row in rows if subject.second[row] not in (NONE, JUNK, card.number)]
        most = max(map(seconds.count, set(seconds)))
        assert seconds.count(card.near_new.number) == most
        assert card.near_new.share == pytest.approx(most / len(rows))
        close = [
            row for row in rows if subject.second[row] == card.near_new.number and subject.margin[row] < cards.CLOSE
        ]
        assert card.near_new.close == pytest.approx(len(close) / len(rows))
        assert card.near_known.number < 5 and card.near_new.number >= 5


def test_one_file_with_everything(finished: Path) -> None:
    correct(finished)
    page = report_run(finished, None, None, None, 0)
    html = page.read_text()
    assert page == finished / "report.html" and not (finished / "report").exists()
    assert "<script>alert" not in html and "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "4 new classes in 200 unlabelled images" in text_of(html) and "3 images marked as junk" in text_of(html)
    data = page_data(html)
    assert sorted(names(html)) == sorted(open_run(finished).found.ids) and len(data["confidence"]) == 400
    assert [one["name"] for one in data["classes"]][-1] == "junk" and (finished / tsne.FILE).exists()
    assert str(finished.parent) not in html


def test_folder_beside_the_page_and_back_to_one_file(finished_with_files: Path, tmp_path: Path) -> None:
    place = tmp_path / "to look at"
    page = report_run(finished_with_files, place, None, False, 0)
    html = page.read_text()
    folder = page_data(html)["sheets"]["folder"]
    files = {path.name for path in (place / "report" / folder.rsplit("/", 1)[1]).iterdir()}
    assert {"sheet-0.webp", "sheet-1.webp", "names-0.js", "names-1.js", "card-5.webp"} <= files
    assert names(html) == [] and "base64" not in re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    assert str(tmp_path) not in html and "my images" not in html
    assert not (finished_with_files / "report.html").exists()
    report_run(finished_with_files, place, None, True, 0)
    assert not (place / "report").exists() and len(names(page.read_text())) == 400


def test_images_that_are_gone_leave_names(finished_with_files: Path, tmp_path: Path) -> None:
    (tmp_path / "my images").rename(tmp_path / "elsewhere")
    done = autonovel("report", finished_with_files)
    assert done.returncode == 0 and "--data DIR" in done.stdout and "Wrote" in done.stdout
    html = (finished_with_files / "report.html").read_text()
    assert page_data(html)["sheets"]["width"] == 0 and len(names(html)) == 400 and str(tmp_path) not in html
    assert autonovel("report", finished_with_files, "--data", tmp_path / "elsewhere").returncode == 0
    sheets = page_data((finished_with_files / "report.html").read_text())["sheets"]
    assert (sheets["width"], sheets["height"], sheets["pixelated"]) == (28, 28, True)


@pytest.mark.parametrize(("size", "cell"), [((20, 20), (20, 20)), ((300, 100), (64, 64)), ((50, 200), (28, 64))])
def test_thumbnails_of_files_fit_what_the_files_are(finished_with_files: Path, size: Any, cell: Any) -> None:
    """A cell is as wide as the widest and as high as the highest thumbnail, whatever the shapes are."""
    files = sorted((finished_with_files.parent / "my images").rglob("*.png"))
    for number, file in enumerate(files):
        shape = size if size == (20, 20) or number % 2 else size[::-1] if size == (300, 100) else (28, 28)
        Image.new("RGB", shape, "teal").save(file)
    html = report_run(finished_with_files, None, None, None, 0).read_text()
    assert (page_data(html)["sheets"]["width"], page_data(html)["sheets"]["height"]) == cell


def test_map_of_another_size_is_not_kept(finished: Path) -> None:
    report_run(finished, None, None, None, 50)
    assert not (finished / tsne.FILE).exists()
    assert len(page_data((finished / "report.html").read_text())["map"]["x"]) == 50


def test_where_the_page_goes(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert page_path(run, None) == run / "report.html"
    assert page_path(run, tmp_path / "a.html") == tmp_path / "a.html"
    assert page_path(run, tmp_path / "folder") == tmp_path / "folder" / "report.html"
    (tmp_path / "text").write_text("mine")
    (tmp_path / "b.html").mkdir()
    for place in ("text", "b.html"):
        with pytest.raises(UsageError, match="Name an HTML file"):
            page_path(run, tmp_path / place)


def test_runs_that_cannot_be_reported(finished: Path, tmp_path: Path) -> None:
    done = autonovel("report", tmp_path / "nowhere")
    assert done.returncode == 4 and "there is no run folder" in done.stderr
    write_json(finished / "results.json", {"systems": {}})
    with pytest.raises(RunFolderError, match="does not say recipe, seconds, seed"):
        report_run(finished, None, None, None, 0)
    write_json(finished / "results.json", {"systems": {}, "recipe": "x", "seconds": {"total": 1}, "seed": 0})
    with pytest.raises(RunFolderError, match=r"is damaged.*'primary'"):
        report_run(finished, None, None, None, 0)
    (finished / "results.json").unlink()
    with pytest.raises(RunFolderError, match="missing"):
        report_run(finished, None, None, None, 0)


def test_a_count_of_other_images_is_told(finished: Path) -> None:
    lines = (finished / "discovery.csv").read_text().splitlines(keepends=True)
    (finished / "discovery.csv").write_text("".join(lines[:-1]))
    with pytest.raises(RunFolderError, match=r"of 400 images, and discovery\.csv of 399"):
        report_run(finished, None, None, None, 0)


@pytest.mark.slow
def test_a_run_keeps_what_its_systems_say_and_tells_it(tmp_path: Path) -> None:
    from runs import TINY

    done = autonovel("run", TINY, "--out", tmp_path / "run", "--set", "run.map_points=90", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["agreement"]["systems"] == ["rankstats-incremental", "rankstats", "kmeans", "kmeans-pixels"]
    told = "Ranking statistics with incremental learning and k-means on stage-2 features agree on"
    assert told in done.stdout
    html = (tmp_path / "run" / "report.html").read_text()
    assert told in text_of(html) and "Do the systems agree?" in text_of(html)
    again = autonovel("report", tmp_path / "run")
    assert again.returncode == 0 and told in text_of((tmp_path / "run" / "report.html").read_text())
    facts = text_of(html).split("Facts")[-1]
    assert "autonovel run … --out … --set run.map_points=90" in facts and str(tmp_path) not in html
    assert "Where it departs from its recipe" in facts and "run.map_points = 90" in facts


def test_large_confusions_are_listed(tmp_path: Path) -> None:
    table = gather.Confusion(("a", "b"), ("x", "y"), ((5, 2), (0, 7)), 2)
    assert table.readable and table.worst == [("a", "y", 2)]
    wide = gather.Confusion(tuple("ab"), tuple(map(str, range(9000))), ((1,) * 9000, (3,) * 9000), 2)
    assert not wide.readable and len(wide.worst) == gather.WORST and wide.worst[0] == ("b", "0", 3)


def test_finished_run_without_edits_says_nothing_of_corrections(tmp_path: Path) -> None:
    subject, _ = corrected(open_run(finished_run(tmp_path / "run")))
    top = gather.headline(subject, json.loads((tmp_path / "run" / "results.json").read_text()))
    assert top.details == "" and not subject.by_hand.any()


def test_a_report_drawn_anew_finds_images_that_were_moved(finished_with_files: Path, tmp_path: Path) -> None:
    class Heard(Silent):
        said = ""

        def say(self, text: str) -> None:
            self.said += text

    (tmp_path / "my images").rename(tmp_path / "elsewhere")
    display = Heard()
    job: Any = SimpleNamespace(folder=finished_with_files, display=display)
    redraw(job, tmp_path / "elsewhere")
    assert "data:image" in (finished_with_files / "report.html").read_text() and not display.said
    redraw(job)
    assert "data:image" in (finished_with_files / "report.html").read_text(), "which would be lost"
    assert "--data" in display.said and "was left as it is" in display.said


def test_a_report_is_not_replaced_by_one_without_pictures(finished_with_files: Path, tmp_path: Path) -> None:
    page = report_run(finished_with_files, None, None, True, 0)
    before = page.read_bytes()
    (tmp_path / "my images").rename(tmp_path / "elsewhere")
    with pytest.raises(
        UsageError, match=r"not at hand .* --data DIR\. .*report\.html was left as it is.*--to .*report\.html replaces"
    ):
        report_run(finished_with_files, None, None, True, 0)
    assert page.read_bytes() == before
    assert report_run(finished_with_files, tmp_path / "plain.html", None, True, 0).stat().st_size < len(before)
    report_run(finished_with_files, None, tmp_path / "elsewhere", True, 0)
    assert page.stat().st_size > len(before) / 2
    assert report_run(finished_with_files, page, None, True, 0).stat().st_size < len(before), "a person wants it so"
    (tmp_path / "elsewhere").rename(tmp_path / "gone")
    open_run(finished_with_files).rename("new-1", "zeppelin")
    report_run(finished_with_files, None, None, True, 0)
    assert "zeppelin" in page.read_text(), "there were no pictures to lose any more"


def test_thumbnails_beside_a_report_are_not_lost_either(finished_with_files: Path, tmp_path: Path) -> None:
    page = report_run(finished_with_files, None, None, False, 0)
    (tmp_path / "my images").rename(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="would lose its pictures"):
        report_run(finished_with_files, None, None, None, 0)
    assert has_pictures(page)
