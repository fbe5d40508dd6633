import base64
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from autonovel import words
from autonovel.data import ImageSet
from autonovel.discovery import Discovery, discover
from autonovel.embedding import Embedding
from autonovel.evaluation import MATCHED_EACH
from autonovel.report import cards as cards_of
from autonovel.report import curves, gather, pictures, tsne, write_report
from autonovel.report.facts import beyond_the_recipe
from autonovel.report.subject import Subject, as_found
from autonovel.storage.documents import write_json

KNOWN, NEW = ("cat", "dog"), ("owl", "fox")
ATTACK = "<script>alert(1)</script>"


def image_set(n: int = 48, channels: int = 1, names: tuple[str, ...] = KNOWN, side: int = 10) -> ImageSet:
    """Return ``n`` noisy images of four classes, the last two new."""
    generator = torch.Generator().manual_seed(0)
    truth = torch.arange(n) % 4
    return ImageSet(
        images=torch.randint(0, 256, (n, channels, side, side), generator=generator, dtype=torch.uint8),
        y=torch.where(truth < 2, truth, -1),
        ids=tuple(f"img-{number}" for number in range(n)),
        class_names=names,
        truth=truth,
        new_names=NEW,
    )


def embedding(images: ImageSet, n_new: int = 2) -> Embedding:
    """Return features in four heaps; class 2 is found as cluster 1, class 3 as 0, every seventh is misplaced."""
    generator = torch.Generator().manual_seed(1)
    truth = torch.arange(len(images)) % 4
    z = torch.randn(len(images), 6, generator=generator) + 8 * torch.nn.functional.one_hot(truth, 6)
    cluster = torch.where(truth == 2, 1, 0).clamp(max=n_new - 1)
    cluster[::7] = n_new - 1
    p_new = 0.7 * torch.nn.functional.one_hot(cluster, n_new) + 0.3 * torch.rand(
        len(images), n_new, generator=generator
    )
    p_known = torch.rand(len(images), images.n_known, generator=generator)
    return Embedding(z, p_new / p_new.sum(dim=1, keepdim=True), p_known / p_known.sum(dim=1, keepdim=True))


def results(scored: bool = True) -> dict[str, Any]:
    scores = {"acc": 0.913, "nmi": 0.8, "ari": 0.75} if scored else None
    protocols = {"matched once on all": {"old": 0.991, "new": 0.882, "all": 0.937}}
    return {
        "recipe": "tiny",
        "preset": "",
        "seed": 7,
        "primary": "rankstats",
        "systems": {"rankstats": scores, "kmeans": scores and {"acc": 0.5, "nmi": 0.4, "ari": -0.01}},
        "incremental": {"split": "held-out test images", "protocols": protocols} if scored else None,
        "seconds": {"rotation": 3.0, "rankstats": 61.5, "kmeans": 0.25, "report": 0.0},
        "epoch": "last",
        "departures": ["nothing is frozen"],
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run folder with its facts and the journals of two systems."""
    write_json(
        tmp_path / "run.json",
        {
            "format": 1,
            "recipe": {"about": "Noise in four heaps"},
            "hardware": "cpu, 2 cores",
            "versions": {"torch": "2.99"},
            "commit": "c0ffee",
            "parts": [{"started": "2025-01-02T03:04:05+00:00", "command": ["autonovel", str(tmp_path / "secret")]}],
        },
    )
    stage = {"stage": "3-joint", "usage": [0.5, 0.5], "pairs/precision": 0.9, "pairs/recall": 0.2, "loss/ce": 0.5}
    journal(tmp_path, [stage | {"epoch": epoch, "loss/bce": 1 / (1 + epoch)} for epoch in range(3)])
    journal(tmp_path / "systems" / "kcl", [{"stage": "3-kcl", "epoch": 0, "loss/kcl": 2.0}])
    return tmp_path


def journal(folder: Path, lines: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def page(folder: Path, images: ImageSet, n_new: int = 2, scored: bool = True, **options: Any) -> str:
    made = embedding(images, n_new)
    write_report(folder, images, made, discover(images, made), results(scored), **options)
    return (folder / "report.html").read_text(encoding="utf-8")


def test_images_that_look_like_a_known_class_are_counted_and_there_is_a_way(folder: Path) -> None:
    images = image_set()
    made = embedding(images)
    assert not gather.headline(as_found(images, discover(images, made)), results()).hint, "no classifier of both kinds"
    p = torch.rand(len(images), 4, generator=torch.Generator().manual_seed(5))
    grown = replace(made, p_known=p / p.sum(dim=1, keepdim=True))
    found, looking = discover(images, grown), 0
    write_report(folder, images, grown, found, results())
    for row in found.rows():
        looking += not row["given_label"] and float(row["looks_known"]) > 0.5
    assert 0 < looking < 24
    said = text_of((folder / "report.html").read_text(encoding="utf-8"))
    assert f" {looking} images look more like a known class: new-" in said and "“Looks known first”" in said


def found_in(images: ImageSet, n_new: int = 2) -> Discovery:
    return discover(images, embedding(images, n_new))


def subject_of(images: ImageSet, n_new: int = 2) -> Subject:
    return as_found(images, found_in(images, n_new))


def text_of(html: str) -> str:
    """Return what a reader sees, spaces made single."""

    class Reader(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.parts: list[str] = []
            self.silent = 0

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.silent += tag in ("script", "style")

        def handle_endtag(self, tag: str) -> None:
            self.silent -= tag in ("script", "style")

        def handle_data(self, data: str) -> None:
            if not self.silent:
                self.parts.append(data)

    reader = Reader()
    reader.feed(html)
    return " ".join(" ".join(reader.parts).split())


def page_data(html: str) -> dict[str, Any]:
    found = re.search(r'id="report-data">(.*?)</script>', html, re.DOTALL)
    assert found
    return dict(json.loads(found[1]))


def names(html: str) -> list[str]:
    """Return the names of the images by their places."""
    found = re.findall(r'id="names-\d+">(.*?)</script>', html, re.DOTALL)
    return [name for part in found for name in json.loads(part)]


def card_sheets(html: str) -> list[Image.Image]:
    found = re.findall(r"data:image/webp;base64,([A-Za-z0-9+/=]+)", html)
    return [Image.open(io.BytesIO(base64.b64decode(one))) for one in found]


def test_page_stands_alone_and_names_no_place(folder: Path) -> None:
    html = page(folder, image_set())
    assert html.startswith("<!doctype html>") and html.rstrip().endswith("</html>")
    assert "http:" not in html and "https:" not in html and "//www" not in html
    markup = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r'(?:src|href)="(?!#|data:)', markup)
    assert all(target.startswith("data:") for target in re.findall(r"url\(([^)]*)", markup) if target[0] != "#")
    assert str(folder) not in html and "secret" not in html
    assert not list(folder.glob("*.partial"))


def test_page_says_what_happened(folder: Path) -> None:
    text = text_of(page(folder, image_set()))
    assert "2 new classes in 24 unlabelled images, beside 2 known classes with 24 labelled images." in text
    assert "ranking statistics , 91.3 % of the unlabelled" in text
    assert "k-means on stage-2 features 50.0 40.0 -1.0 0.25 s" in text
    assert "matched once on all 99.1 88.2 93.7" in text and "held-out test images" in text
    assert "comes on top: rotation 3.0 s." in text
    for fact in ("Noise in four heaps", "cpu, 2 cores", "torch 2.99", "c0ffee", "nothing is frozen"):
        assert fact in text


def test_sections_come_in_the_order_in_which_they_are_read(folder: Path) -> None:
    sections = re.findall(r'<section id="(\w+)"', page(folder, image_set()))
    assert sections == ["systems", "classes", "known", "confusion", "map", "training", "facts"]


def test_names_are_escaped_wherever_they_stand(folder: Path) -> None:
    images = image_set(names=(ATTACK, "</script><b>dog"))
    images = replace(images, ids=tuple(f"{ATTACK}{i}" for i in range(len(images))), new_names=(ATTACK, '"><i>'))
    facts = results() | {"departures": [ATTACK], "recipe": ATTACK}
    made = embedding(images)
    found = replace(discover(images, made), names=(*images.class_names, ATTACK, '" onload="x'))
    write_report(folder, images, made, found, facts)
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert ATTACK not in html and "</script><b>" not in html
    assert '"><i>' not in html and '" onload="' not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert [one["name"] for one in page_data(html)["classes"]][2] == ATTACK
    assert names(html)[0].startswith(ATTACK)


def test_counts_add_up() -> None:
    images = image_set(50)
    subject = subject_of(images, n_new=5)
    top = gather.headline(subject, results())
    cards = cards_of.cards(subject)
    assert (top.n_new, top.n_known, top.n_unlabelled, top.n_labelled) == (5, 2, 24, 26)
    assert sum(card.size for card in cards) == top.n_unlabelled
    assert top.n_empty == sum(card.size == 0 for card in cards) == 2
    assert "5 new classes (2 of them empty) in 24 unlabelled" in top.sentence
    table = gather.confusion(subject)
    assert table is not None and table.total == top.n_unlabelled


def test_card_shows_central_and_unsure_images_of_its_class() -> None:
    images = image_set(160)
    found = found_in(images)
    for card in cards_of.cards(as_found(images, found)):
        members = [i for i in range(160) if int(found.class_id[i]) == card.number]
        assert len(card.central) == 24 and len(card.unsure) == 8 and card.size == len(members)
        outlier, confidence = found.outlier.numpy(), found.confidence.numpy()
        rest = set(members) - {thumbnail.row for thumbnail in card.central}
        assert max(outlier[t.row] for t in card.central) <= min(outlier[i] for i in rest)
        rest = set(members) - {thumbnail.row for thumbnail in card.unsure}
        assert max(confidence[t.row] for t in card.unsure) <= min(confidence[i] for i in rest)
        assert card.confidence == pytest.approx(confidence[members].mean())


def test_card_names_its_most_frequent_true_class(folder: Path) -> None:
    images = image_set()
    first, second = cards_of.cards(subject_of(images))
    assert (first.true_name, second.true_name) == ("fox", "owl")
    inside = [i for i in range(48) if int(found_in(images).class_id[i]) == first.number]
    assert first.true_share == pytest.approx(np.mean([i % 4 == 3 for i in inside]))
    assert f"{100 * first.true_share:.0f} % are ‘fox’" in text_of(page(folder, images))


def test_nothing_is_scored_where_nobody_knows_the_truth(folder: Path) -> None:
    html = page(folder, replace(image_set(), truth=None, new_names=()), scored=False)
    text = text_of(html)
    assert 'id="confusion"' not in html and "Confusion" not in text
    assert "ACC" not in text and "% are" not in text and "nothing is scored" in text
    assert page_data(html)["truth"] is None and "Colour by" not in text
    assert "61.5 s" in text


def test_confusion_puts_the_match_on_the_diagonal() -> None:
    images = image_set()
    table = gather.confusion(subject_of(images))
    assert table is not None
    assert table.true == ("owl", "fox") and table.found == ("new-2", "new-1") and table.n_matched == 2
    # Cluster 1 holds class 2 and the misplaced images of class 3: rows 7 and 35.
    assert table.counts == ((12, 0), (2, 10))
    assert table.agreeing == 22


def test_confusion_with_more_clusters_than_classes(folder: Path) -> None:
    images = image_set()
    table = gather.confusion(subject_of(images, n_new=3))
    assert table is not None
    assert table.true == ("owl", "fox") and table.found == ("new-2", "new-1", "new-3") and table.n_matched == 2
    assert [row[2] for row in table.counts] == [2, 2]
    assert "found classes without a match" in text_of(page(folder, images, n_new=3))


def test_confusion_with_fewer_clusters_than_classes(folder: Path) -> None:
    images = image_set()
    table = gather.confusion(subject_of(images, n_new=1))
    assert table is not None
    assert len(table.true) == 2 and table.found == ("new-1",) and table.n_matched == 1
    assert table.counts == ((12,), (12,))
    assert "true classes without a match" in text_of(page(folder, images, n_new=1))


def test_known_class_among_the_unlabelled_and_class_without_a_name() -> None:
    images = image_set()
    y = images.y.clone()
    y[0] = -1
    images = replace(images, y=y, new_names=("owl",))
    table = gather.confusion(subject_of(images))
    assert table is not None
    assert set(table.true) == {"cat", "owl", "class 3"} and table.total == 25


@pytest.mark.parametrize("channels", [1, 3])
def test_page_holds_a_sheet_for_each_class_that_has_images(folder: Path, channels: int) -> None:
    html = page(folder, image_set(channels=channels), n_new=5)
    subject = subject_of(image_set(), n_new=5)
    cards = [*cards_of.cards(subject), *cards_of.known_cards(subject)]
    shown = [len(card.central) + len(card.unsure) for card in cards if card.size]
    assert len(shown) == 5
    assert [sheet.size for sheet in card_sheets(html)] == [(10 * min(n, 8), 10 * -(-n // 8)) for n in shown]
    assert html.count("background-position") == sum(shown)
    assert text_of(html).count("No image was put into this class.") == 2


def test_map_is_left_out_of_tiny_sets(folder: Path) -> None:
    html = page(folder, image_set(29))
    assert "<canvas" not in html and page_data(html)["map"] is None
    assert "A map needs at least 30 images; here it would show 29" in text_of(html)
    assert "<canvas" in page(folder, image_set(30))


def test_map_shows_a_sample_and_is_the_same_every_time(folder: Path) -> None:
    images = image_set(64)
    html = page(folder, images, max_points=40)
    data, shown = page_data(html), page_data(html)["map"]
    assert len(set(shown["place"])) == len(shown["x"]) == len(shown["y"]) == 40
    assert "A random sample of 40 out of 64 images." in text_of(html)
    rows = [int(names(html)[place].removeprefix("img-")) for place in shown["place"]]
    assert rows == sorted(rows)
    assert [data["truth"][place] for place in shown["place"]] == [row % 4 for row in rows]
    assert [data["flags"][place] for place in shown["place"]] == [int(row % 4 < 2) for row in rows]
    assert max(shown["x"] + shown["y"]) == tsne.GRID and min(shown["x"]) == min(shown["y"]) == 0
    assert page(folder, images, max_points=40) == html
    (folder / tsne.FILE).unlink()
    assert page(folder, images, max_points=40) == html, "a map made anew is the one that was kept"


def test_map_is_kept_and_made_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = image_set()
    first = page_data(page(folder, images))["map"]
    monkeypatch.setattr(tsne, "project", lambda *_: pytest.fail("the map is there"))
    assert page_data(page(folder, images))["map"] == first
    monkeypatch.setattr(tsne, "project", lambda z: np.zeros((len(z), 2)))
    other = tsne.tsne_map(embedding(images).z + 1, 2000, folder)  # other features have another map
    assert other.points is not None and not any(other.points.x)
    (folder / tsne.FILE).write_bytes(b"torn")
    assert tsne.tsne_map(embedding(images).z, 2000, folder).points is not None


def test_map_gives_a_true_class_the_colour_of_its_match(folder: Path) -> None:
    data = page_data(page(folder, image_set()))
    found = {one["number"]: one["colour"] for one in data["classes"]}
    truth = [one["colour"] for one in data["trueClasses"]]
    assert data["nKnown"] == 2 and [found[2], found[3]] == list(pictures.STRONG_COLOURS[:2])
    assert len(set(found.values())) == 4
    assert truth == [found[0], found[1], found[3], found[2]]


def test_map_gives_a_true_class_without_a_match_a_colour_of_its_own(folder: Path) -> None:
    images = image_set()
    assert images.truth is not None
    images.truth[2] = 3  # so that the only cluster is matched to class 3
    data = page_data(page(folder, images, n_new=1))
    truth = [one["colour"] for one in data["trueClasses"]]
    assert truth[3] == next(one["colour"] for one in data["classes"] if one["number"] == 2)
    assert len(set(truth)) == 4


def test_map_keeps_neighbours_together(folder: Path) -> None:
    data = page_data(page(folder, image_set(80)))
    shown = data["map"]
    at = np.column_stack([shown["x"], shown["y"]])
    truth = np.array([data["truth"][place] for place in shown["place"]])
    distances = np.linalg.norm(at[:, None] - at[None], axis=2) + 1e9 * np.eye(len(at))
    assert (truth[distances.argmin(axis=1)] == truth).mean() > 0.9


@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_map_is_left_out_where_features_say_nothing(folder: Path, value: float) -> None:
    images = image_set()
    made = replace(embedding(images), z=torch.full((48, 6), value))
    drawn = tsne.tsne_map(made.z, 2000)
    assert drawn.points is None and "do not tell the images apart" in drawn.note


def test_map_takes_a_single_feature() -> None:
    assert np.isfinite(tsne.project(np.linspace(0, 1, 40)[:, None])).all()


def test_curves_are_read_by_system_stage_and_term(folder: Path) -> None:
    own, other = curves.training(folder, "rankstats")
    assert (own.system, other.system) == ("rankstats", "kcl")
    losses, pairs = own.charts
    assert [series.name for series in losses.series] == ["ce", "bce"]
    assert losses.series[1].epochs == (1, 2, 3) and losses.series[1].values == (1.0, 0.5, 1 / 3)
    assert pairs.shares and [series.name for series in pairs.series] == ["precision", "recall"]


def test_curves_are_drawn_and_told(folder: Path) -> None:
    html = page(folder, image_set())
    assert html.count("<svg") == 3 and 'aria-label="loss terms of stage 3-joint by epoch"' in html
    text = text_of(html)
    assert "bce 0.333" in text and "precision 90.0 %" in text and "kcl 2" in text
    identifiers = re.findall(r'\bid="([^"]+)"', html)
    assert len(identifiers) == len(set(identifiers))


def test_epochs_without_a_number_are_not_drawn(folder: Path) -> None:
    lines = [{"stage": "s", "epoch": epoch, "loss/a": v, "loss/b": None} for epoch, v in enumerate((2.0, None, -1.0))]
    journal(folder, lines)
    (chart,) = curves.training(folder, "rankstats")[0].charts
    assert chart.series == (curves.Series("a", (1, 3), (2.0, -1.0)),)
    assert "<svg" in pictures.chart_svg(chart, "salt")


def test_a_single_epoch_is_a_dot_over_a_whole_number() -> None:
    svg = pictures.chart_svg(curves.Chart("s", "loss terms", False, (curves.Series("a", (1,), (2.0,)),)), "salt")
    ticks = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert ticks.index("epoch") == 1 and ticks[0] == "1"


def test_run_without_training_has_no_curves(folder: Path) -> None:
    (folder / "metrics.jsonl").unlink()
    (folder / "systems" / "kcl" / "metrics.jsonl").unlink()
    assert 'id="training"' not in page(folder, image_set())


def test_pictures_and_controls_have_names(folder: Path) -> None:
    html = page(folder, image_set())
    assert all("aria-label=" in tag for tag in re.findall(r'<[^>]*role="(?:img|region)"[^>]*>', html))
    assert "<img" not in html and 'lang="en"' in html and "prefers-color-scheme: dark" in html
    assert re.search(r"<canvas[^>]*tabindex", html)


def test_colours_of_new_classes_differ() -> None:
    colours = pictures.class_colours(3, 25)
    assert len(colours) == 28 and len(set(colours[3:])) == 25


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0.346, "0.35 s"),
        (12.34, "12.3 s"),
        (99.97, "1 min 40 s"),
        (125, "2 min 5 s"),
        (10920, "3 h 2 min"),
    ],
)
def test_duration(seconds: float | None, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("share", "digits", "text"),
    [
        (0.9731, 1, "97.3"),
        (1.0, 1, "100.0"),
        (0.9999, 1, "99.9"),
        (0.997, 0, "99"),
        (None, 1, "–"),
        (float("nan"), 1, "–"),
    ],
)
def test_per_cent(share: float | None, digits: int, text: str) -> None:
    assert words.per_cent(share, digits) == text


def test_a_comparison_of_several_systems_is_drawn_and_compared_on_old_and_new(folder: Path) -> None:
    images = image_set()
    given = results()
    given["systems"] |= {
        "dtc": {"acc": 0.875, "nmi": 0.5, "ari": 0.5},
        "kmeans-pixels": {"acc": 0.25, "nmi": 0.1, "ari": 0.1},
    }
    joint = {"split": "held-out test images", "protocols": {MATCHED_EACH: {"old": 0.951, "new": 0.642, "all": 0.7965}}}
    given["incremental"] |= {"unlabelled": {"acc": 0.834, "taken_for_known": 0.057}}
    given["joint_classifiers"] = {"rankstats": joint, "dtc": joint, "kmeans": None}
    found = discover(images, embedding(images))
    write_report(folder, images, embedding(images), found, given)
    page = (folder / "report.html").read_text()
    assert "Accuracy of the systems as bars" in page and "87.5 %" in page
    rows = gather.incremental(given)
    assert rows is not None and set(rows.by_system) == {"rankstats", "dtc"}
    assert "Old, new and all classes by system" in page and "79.7" in page
    assert "On the unlabelled images it has 83.4 %, and wrongly takes 5.7 % of them for known classes." in page


def test_two_systems_need_no_bars(folder: Path) -> None:
    images = image_set()
    write_report(folder, images, embedding(images), discover(images, embedding(images)), results())
    page = (folder / "report.html").read_text()
    assert "as bars" not in page and "by system" not in page


def test_a_confusion_too_large_for_a_table_is_a_list(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "MOST_CELLS", 3)
    text = text_of(page(folder, image_set()))
    assert "The table would have 2 rows and 2 columns" in text and "fox new-2 2" in text


@pytest.mark.parametrize(
    ("name", "changed", "shown"),
    [
        ("demo", {"joint.epochs": 24, "joint.k": 7}, ["joint.k"]),  # it has 24 itself
        ("demo", {"joint.epochs": 3, "incremental.epochs": 24}, ["joint.epochs", "incremental.epochs"]),  # else 3
        ("svhn-fast", {"incremental.after": "supervised", "incremental.epochs": 20},
         ["incremental.after", "incremental.epochs"]),
        ("demo", {"data.path": "pictures", "data.source": "sample"}, []),
        ("mine", {"joint.epochs": 24}, ["joint.epochs"]),
    ],
)  # fmt: skip
def test_changed_settings_are_those_that_would_not_be_so_without(
    name: str, changed: dict[str, Any], shown: list[str]
) -> None:
    assert [*beyond_the_recipe({"recipe": name, "changed": changed})] == shown
