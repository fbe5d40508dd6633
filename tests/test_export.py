"""Exports: all edits made, originals untouched, formats as their makers describe them."""

import contextlib
import csv
import json
import os
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from PIL import Image

from autonovel import Discoverer, open_run
from autonovel.data import sources
from autonovel.editing.edited import EditedRun
from autonovel.errors import InputError, UsageError
from autonovel.export import export_run
from autonovel.export.job import FreeNames, fit
from autonovel.recipe import restore
from autonovel.review import serve
from autonovel.run_images import RunImages
from autonovel.spreadsheet import harmless
from finished import finished_run, rows_of


@pytest.fixture
def run(finished: Path) -> EditedRun:
    return edited(finished)


def edited(folder: Path) -> EditedRun:
    """Return a run with new-1 and new-2 as one class of awkward name, an image of new-3 as junk, one in new-4."""
    run = open_run(folder)
    run.rename("new-1", "=cmd|' /C calc'!A0")
    run.merge(5, "new-2")
    run.junk([run.found.ids[run.found.members(7)[0]]])
    run.move([MOVED], "new-4")
    return run


@pytest.fixture
def files_run(finished_with_files: Path) -> EditedRun:
    return edited(finished_with_files)


MOVED = "000003"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_csv_has_every_row_with_edits_and_no_formulas(files_run: EditedRun, tmp_path: Path) -> None:
    export_run(files_run.folder, "csv", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        raw = list(csv.reader(file))
    suspicious = [cell for row in raw for cell in row if cell and cell[0] in "=+-@\t\r"]
    assert all(cell.lstrip("-").replace(".", "").isdecimal() for cell in suspicious), "margins may be negative numbers"
    out, found = rows_of(tmp_path / "out.csv"), rows_of(files_run.folder / "discovery.csv")
    assert list(out) == list(found)
    for name, row in found.items():
        if row["class_name"] in ("new-1", "new-2") and name != MOVED:
            assert out[name]["class_name"] == "'=cmd|' /C calc'!A0" and out[name]["class_id"] == "5"
            assert out[name]["found_class"] == row["class_name"]
    assert sum(row["status"] == "junk" for row in out.values()) == 1
    assert [out[MOVED][key] for key in ("class_name", "found_class")] == ["new-4", found[MOVED]["class_name"]]
    assert [name for name, row in out.items() if row["by_hand"] and row["status"] != "junk"] == [MOVED]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "\n=x"])
def test_what_a_spreadsheet_would_compute_is_quoted(text: str) -> None:
    assert harmless(text) == "'" + text
    assert harmless("a" + text) == "a" + text


@pytest.mark.parametrize("how", ["copy", "hardlink", "symlink"])
def test_folders_hold_the_files_by_class_and_leave_the_originals_alone(
    files_run: EditedRun, tmp_path: Path, how: str
) -> None:
    images = tmp_path / "my images"
    before = contents(images)
    export_run(files_run.folder, "folders", tmp_path / "out", how)
    assert contents(images) == before
    rows = [row for row in files_run.rows() if row["class_name"]]
    names = {"=cmd|' /C calc'!A0": "=cmd_' _C calc'!A0"}
    for name in files_run.sorting.names.values():
        there = sorted(p.read_bytes() for p in (tmp_path / "out" / names.get(name, name)).iterdir())
        assert there == sorted((images / row["path"]).read_bytes() for row in rows if row["class_name"] == name)
    one = next(p for p in (tmp_path / "out" / "new-3").iterdir())
    assert one.is_symlink() == (how == "symlink")
    assert (one.stat().st_nlink > 1) == (how == "hardlink")


def test_images_that_are_no_files_are_written_as_png(run: EditedRun, tmp_path: Path) -> None:
    export_run(run.folder, "folders", tmp_path / "out")
    row = next(row for row in run.rows() if row["class_name"] == "new-4")
    pixels = sources.load(restore(run.facts["recipe"]), 0)[0]
    expected = pixels.images[pixels.ids.index(row["id"]), 0].numpy()
    assert np.array_equal(np.asarray(Image.open(tmp_path / "out" / "new-4" / f"{row['id']}.png")), expected)


def test_fiftyone_format(files_run: EditedRun, tmp_path: Path) -> None:
    """As FiftyOne describes its FiftyOneImageClassificationDataset: data/<uuid>.<ext>, and classes and labels."""
    export_run(files_run.folder, "fiftyone", tmp_path / "out")
    document = json.loads((tmp_path / "out" / "labels.json").read_text(encoding="utf-8"))
    assert set(document) == {"classes", "labels"}
    assert document["classes"] == [name for _, name in sorted(files_run.sorting.names.items())]
    stems = [p.stem for p in (tmp_path / "out" / "data").iterdir()]
    assert sorted(document["labels"]) == sorted(stems) and len(set(stems)) == 400
    labels = [label for label in document["labels"].values() if label is not None]
    assert len(labels) == 399, "junk has no label"
    by_id = {row["id"]: row for row in files_run.rows()}
    for label in labels:
        row = by_id[label["attributes"]["id"]]
        assert document["classes"][label["label"]] == row["class_name"] and type(label["label"]) is int
        if row["id"] == MOVED:
            assert set(label) == {"label", "attributes"}, "the model is not confident of what a person said"
        else:
            assert set(label) == {"label", "confidence", "attributes"} and 0 <= label["confidence"] <= 1


def test_labelstudio_format(files_run: EditedRun, tmp_path: Path) -> None:
    """As Label Studio describes it: tasks with data and predictions, whose results name the interface's tags."""
    export_run(files_run.folder, "labelstudio", tmp_path / "for studio")
    out = tmp_path / "for studio"
    tasks: list[dict[str, Any]] = json.loads((out / "tasks.json").read_text(encoding="utf-8"))
    view = ElementTree.parse(out / "config.xml").getroot()
    image, choices = view.find("Image"), view.find("Choices")
    assert view.tag == "View" and image is not None and choices is not None
    offered = [choice.get("value") for choice in choices]
    assert offered == [name for _, name in sorted(files_run.sorting.names.items())]
    assert image.get("value") == "$image" and choices.get("toName") == image.get("name")
    by_id = {row["id"]: row for row in files_run.rows()}
    assert len(tasks) == 400
    for task in tasks:
        row = by_id[task["data"]["id"]]
        place = unquote(task["data"]["image"].removeprefix("/data/local-files/?d="))
        assert (tmp_path / place).read_bytes() == (tmp_path / "my images" / row["path"]).read_bytes()
        if row["status"] == "junk":
            assert task["predictions"] == []
            continue
        [prediction] = task["predictions"]
        [result] = prediction["result"]
        assert prediction["model_version"].startswith("autonovel")
        assert "score" not in prediction if row["id"] == MOVED else 0 <= prediction["score"] <= 1
        assert (result["from_name"], result["to_name"]) == (choices.get("name"), image.get("name"))
        assert result["type"] == "choices" and result["value"] == {"choices": [row["class_name"]]}


@pytest.fixture
def answering(finished: Path) -> EditedRun:
    """A run whose model's answers mean something else after edits."""
    run = open_run(finished)
    run.merge("new-1", "new-2")
    run.junk_class("new-3")
    return run


def expected_probabilities(run: EditedRun, n: int) -> tuple[Any, Any]:
    """Return the first images as the network sees them, and what the estimator says: 8 classes, and junk."""
    settings = restore(run.facts["recipe"])
    images = sources.load(settings, 0)[0].resized(settings.data.size).images[:n]
    p = Discoverer.load(run.folder).predict_proba(images.numpy())
    return images, np.column_stack([p[:, [0, 1, 2, 3, 4, 5, 8, 9]], 1 - p.sum(axis=1)])


@pytest.mark.slow
def test_onnx_agrees_with_torch_and_follows_the_edits(answering: EditedRun, tmp_path: Path) -> None:
    import onnx
    import onnxruntime

    export_run(answering.folder, "onnx", tmp_path / "model.onnx")
    content = (tmp_path / "model.onnx").read_bytes()
    model = onnx.load_from_string(content)
    onnx.checker.check_model(model)
    about = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(about["classes"]) == ["0", "1", "2", "3", "4", "new-1", "new-4", "new-5", "junk"]
    assert "central square" in about["input"], "what is done to files is to be done by whoever calls the model"
    for place in (Path(__file__).parent.parent, tmp_path, Path.home(), Path(onnx.__file__).parent.parent):
        assert len(str(place)) < 3 or str(place).encode() not in content, "no local path"
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    images, expected = expected_probabilities(answering, 7)
    for n in (1, 7):
        assert np.abs(session.run(None, {"images": images[:n].numpy()})[0] - expected[:n]).max() < 1e-4


@pytest.mark.parametrize("joint", [True, False])
def test_the_exported_network_answers_as_the_estimator(answering: EditedRun, tmp_path: Path, joint: bool) -> None:
    import torch

    from autonovel.delivered import load_model
    from autonovel.export.onnx import FromPixels, columns

    run = answering
    if not joint:
        run = open_run(finished_run(tmp_path / "plain", joint=False))
        run.merge("new-1", "new-2")
        run.junk_class("new-3")
    network = FromPixels(load_model(run.folder), 5, columns(run.sorting)[1]).eval()
    with contextlib.nullcontext() if joint else pytest.warns(UserWarning, match="new ones only"):
        images, expected = expected_probabilities(run, 7)
    with torch.no_grad():
        assert np.abs(network(images).numpy() - expected).max() < 1e-5


def test_what_is_there_is_kept_unless_it_is_an_export_of_ours(run: EditedRun, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "photo.jpg").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(UsageError):
            export_run(run.folder, "folders", tmp_path / "mine", overwrite=overwrite)
    assert contents(tmp_path / "mine") == {"photo.jpg": b"mine"}
    export_run(run.folder, "folders", tmp_path / "out")
    with pytest.raises(UsageError, match="--overwrite"):
        export_run(run.folder, "folders", tmp_path / "out")
    run.rename("new-4", "four")
    export_run(run.folder, "folders", tmp_path / "out", overwrite=True)
    assert (tmp_path / "out" / "four").is_dir() and not (tmp_path / "out" / "new-4").exists()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="is a file"):
        export_run(run.folder, "folders", tmp_path / "file", overwrite=True)
    export_run(run.folder, "csv", tmp_path / "out.csv")
    export_run(run.folder, "csv", tmp_path / "out.csv", overwrite=True)
    with pytest.raises(UsageError, match="no export"):
        export_run(run.folder, "csv", tmp_path / "mine", overwrite=True)


def test_neither_the_run_nor_the_originals_are_written_to(files_run: EditedRun, tmp_path: Path) -> None:
    images = tmp_path / "my images"
    before = contents(images), (files_run.folder / "discovery.csv").read_bytes()
    one = images / files_run.table[0]["path"]
    places = [("csv", files_run.folder / "discovery.csv"), ("folders", files_run.folder / "out"), ("csv", one)]
    for to, dest in (*places, ("folders", images / "sorted"), ("fiftyone", images)):
        with pytest.raises(UsageError, match="lies"):
            export_run(files_run.folder, to, dest, overwrite=True)
    assert (contents(images), (files_run.folder / "discovery.csv").read_bytes()) == before
    export_run(files_run.folder, "csv", images / "result.csv")  # a new file beside them is a person's choice


def test_without_the_extras_the_command_to_install_them_is_told(
    run: EditedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UsageError, match=r"-m pip install .onnx>="):
        export_run(run.folder, "onnx", tmp_path / "model.onnx")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(UsageError, match=r"-m pip install .starlette>="):
        serve(run.folder, None, 0, browser=False)


def test_a_failed_export_leaves_nothing(files_run: EditedRun, tmp_path: Path) -> None:
    last = files_run.table[-1]["path"]
    os.remove(tmp_path / "my images" / last)
    with pytest.raises(InputError, match="is gone"):
        export_run(files_run.folder, "folders", tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("out")) == []


def test_moved_images_are_found_with_data(files_run: EditedRun, tmp_path: Path) -> None:
    (tmp_path / "my images").rename(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="--data"):
        export_run(files_run.folder, "fiftyone", tmp_path / "out")
    export_run(files_run.folder, "fiftyone", tmp_path / "out", data=tmp_path / "elsewhere")


def test_arrays_from_python_are_not_at_hand(run: EditedRun, tmp_path: Path) -> None:
    facts = json.loads((run.folder / "run.json").read_text())
    facts["recipe"]["data.source"] = "arrays"
    (run.folder / "run.json").write_text(json.dumps(facts))
    with pytest.raises(UsageError, match="Python arrays"):
        export_run(run.folder, "folders", tmp_path / "out")
    export_run(run.folder, "csv", tmp_path / "out.csv")


@pytest.mark.parametrize(("to", "files", "words"), [("excel", "copy", "labelstudio"), ("csv", "teleport", "hardlink")])
def test_wrong_options_are_told(run: EditedRun, tmp_path: Path, to: str, files: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        export_run(run.folder, to, tmp_path / "out", files)


@pytest.mark.parametrize(
    ("to", "name", "words"),
    [
        ("csv", "t.txt", r"t\.txt is to be CSV, but its name ends in \.txt. Choose one that ends in \.csv"),
        ("onnx", "m.zip", r"ONNX model.*\.onnx"),
        ("labelstudio", "ls.json", r"labelstudio is a folder.*Leave \.json out"),
        ("folders", "sorted.ZIP", "is a folder"),
    ],
)
def test_a_name_that_ends_like_something_else_is_refused(
    run: EditedRun, tmp_path: Path, to: str, name: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        export_run(run.folder, to, tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("name", "tidy"),
    [
        ("a/b\\c", "a_b_c"),
        ("..", "_"),
        ("con", "_con"),
        ("COM1.txt", "_COM1.txt"),
        ("x. ", "x"),
        (".git", "_.git"),
        ("é", "é"),
    ],
)
def test_file_names_suit_every_system(name: str, tidy: str) -> None:
    assert fit(name) == tidy


def test_names_that_only_look_different_are_numbered() -> None:
    names = FreeNames()
    assert [names.free(n) for n in ("A.png", "a.png", "a.jpg")] == ["A.png", "a (2).png", "a.jpg"]
    stems = FreeNames(by_stem=True)
    assert [stems.free(n) for n in ("a.png", "a.jpg", "A.png")] == ["a.png", "a (2).jpg", "A (3).png"]
    many = FreeNames()
    given = [many.free(name) for name in ["x.png"] * 50 + ["x (7).png", "x.png"]]
    assert len(set(given)) == 52 and given[49] == "x (50).png"


def test_long_names_keep_their_ending() -> None:
    assert fit("x" * 300 + ".jpeg") == "x" * 145 + ".jpeg"


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "F"])
def test_pictures_of_every_kind_can_be_shown(files_run: EditedRun, tmp_path: Path, mode: str) -> None:
    path = tmp_path / "my images" / files_run.table[0]["path"]
    grey = Image.fromarray((np.arange(64, dtype=np.uint8) * 4).reshape(8, 8))
    picture = (
        Image.fromarray(np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000) if mode == "I;16" else grey.convert(mode)
    )
    picture.save(path, "TIFF")
    shown = RunImages(files_run).picture(0)
    assert shown.mode in ("L", "RGB") and shown.size == (8, 8)
    low, high = shown.convert("L").getextrema()
    assert low < 60 and high > 200, "not all black or white"


def test_pictures_stand_upright(files_run: EditedRun, tmp_path: Path) -> None:
    path = tmp_path / "my images" / files_run.table[0]["path"]
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    Image.new("RGB", (40, 20)).save(path, "JPEG", exif=exif)
    assert RunImages(files_run).picture(0).size == (20, 40)


def test_a_table_of_no_images_has_its_columns(finished: Path, tmp_path: Path) -> None:
    table = finished / "discovery.csv"
    table.write_text(table.read_text().splitlines()[0] + "\n")
    export_run(finished, "csv", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().startswith("id,path,status,") and not rows_of(tmp_path / "out.csv")


def test_images_taken_back_from_an_earlier_junk_are_exported(finished_with_files: Path, tmp_path: Path) -> None:
    table = finished_with_files / "discovery.csv"
    lines = table.read_text().splitlines()
    name, path, *_ = next(csv.reader([lines[-1]]))
    lines[-1] = ",".join([name, path, "junk", *[""] * (lines[0].count(",") - 2)])
    table.write_text("\n".join(lines) + "\n")
    open_run(finished_with_files).move([name], "new-1")
    export_run(finished_with_files, "fiftyone", tmp_path / "fiftyone")
    export_run(finished_with_files, "labelstudio", tmp_path / "labelstudio")
    assert len(json.loads((tmp_path / "fiftyone" / "labels.json").read_text())["labels"]) == len(lines) - 1
    tasks = json.loads((tmp_path / "labelstudio" / "tasks.json").read_text())
    assert len(tasks) == len(lines) - 1 and name in {task["data"]["id"] for task in tasks}
