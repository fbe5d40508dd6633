"""`autonovel predict`: the answers of the loaded model, for files as they come, whatever they are."""

import csv
import io
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from autonovel import Discoverer
from autonovel.commands.predict import predict_files
from autonovel.data.files import printable
from autonovel.data.paths import images_at, listed
from autonovel.discovery import COLUMNS
from autonovel.editing.edited import EditedRun
from autonovel.embedding import embed
from autonovel.errors import InputError, UsageError
from autonovel.networks import NETWORKS, build
from autonovel.networks.folded import folded
from autonovel.predicting.answers import Answers, Distances
from autonovel.predicting.judging import batch_size, paths_of
from autonovel.predicting.prediction import Predictor
from finished import finished_run
from runs import autonovel, command, environment


def digits_of(run: Path) -> list[str]:
    """Return the files of a run's images, in the order of its table."""
    edited = EditedRun(run)
    return [str(Path(edited.facts["recipe"]["data.path"]) / row["path"]) for row in edited.table]


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def predict(run: Path, *paths: object, to: str = "-", **more: Any) -> None:
    given = {"listing": None, "form": None, "device": "cpu", "batch": 0, "overwrite": False} | more
    predict_files(run, [str(path) for path in paths], to=to, **given)


def predicted(run: Path, *paths: object, **more: Any) -> list[dict[str, str]]:
    target = run.parent / "predicted.csv"
    predict(run, *paths, to=str(target), overwrite=True, **more)
    with target.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# ---------------------------------------------------------------------------------------------------
# the same answers


def test_files_get_the_answers_of_the_loaded_model(finished_with_files: Path) -> None:
    files = digits_of(finished_with_files)
    loaded = Discoverer.load(finished_with_files)
    rows = predicted(finished_with_files, *files)
    assert [row["path"] for row in rows] == files and list(rows[0]) == list(COLUMNS)
    assert [int(row["class_id"]) for row in rows] == loaded.predict(files).tolist()
    assert [row["class_name"] for row in rows] == loaded.classes_[loaded.predict(files)].tolist()
    np.testing.assert_allclose([float(row["confidence"]) for row in rows], loaded.predict_proba(files).max(axis=1),
                               atol=1e-4)  # fmt: skip
    arrays = np.stack([np.asarray(Image.open(file)) for file in files])  # pictures at the size the model takes
    side = loaded._settings.data.size
    assert arrays.shape[1] != side, "files are scaled by Pillow, arrays by torch: nearly alike"
    assert (loaded.predict(arrays) == loaded.predict(files)).mean() > 0.95


@pytest.mark.parametrize("shape", [(12, 12), (12, 21), (17, 12)])
def test_pixels_of_the_right_size_give_the_same_probabilities(
    finished: Path, tmp_path: Path, shape: tuple[int, int]
) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (40, *shape), dtype=np.uint8)
    files = [tmp_path / f"{number}.png" for number in range(40)]
    for file, image in zip(files, images, strict=True):
        Image.fromarray(image).save(file)
    loaded = Discoverer.load(finished)
    np.testing.assert_allclose(loaded.predict_proba(files), loaded.predict_proba(images), atol=1e-5)
    np.testing.assert_allclose(loaded.transform(files), loaded.transform(images), atol=1e-5)
    np.testing.assert_array_equal(loaded.predict(files), loaded.predict(images))


def test_columns_are_what_they_say(finished_with_files: Path) -> None:
    files = digits_of(finished_with_files)[:30]
    loaded = Discoverer.load(finished_with_files)
    p, names, n_known = loaded.predict_proba(files), loaded.classes_, 5
    for row, chances in zip(predicted(finished_with_files, *files), p, strict=True):
        first, second = np.argsort(-chances)[:2]
        assert row["class_name"] == names[first] and row["second_class"] == names[second]
        assert row["status"] == "ok" and row["given_label"] == "" and row["id"] == row["path"]
        assert float(row["margin"]) == pytest.approx(chances[first] - chances[second], abs=2e-4)
        assert row["nearest_known"] == names[chances[:n_known].argmax()]
        assert float(row["looks_known"]) == pytest.approx(chances[:n_known].sum(), abs=2e-4)
        assert 0 <= float(row["outlier"]) <= 1


def test_edits_are_made(finished_with_files: Path) -> None:
    files = digits_of(finished_with_files)
    edited = EditedRun(finished_with_files)
    was = Discoverer.load(finished_with_files).predict(files)
    usual, other, *_ = np.bincount(was, minlength=10)[5:].argsort()[::-1] + 5  # new classes, the most frequent first
    edited.rename(int(usual), "seven")
    edited.merge("seven", int(other))
    rows = predicted(finished_with_files, *files)
    now = Discoverer.load(finished_with_files)
    assert [int(row["class_id"]) for row in rows] == now.predict(files).tolist()
    named = [row["class_name"] for row in rows]
    assert named == now.classes_[now.predict(files)].tolist() and "seven" in named
    gone = {edited.found.names[int(usual)], edited.found.names[int(other)]}
    assert not gone & {row[column] for row in rows for column in ("class_name", "second_class")}
    edited.undo()
    edited.junk_class("seven")
    rows = predicted(finished_with_files, *files)
    answers = Discoverer.load(finished_with_files).predict(files)
    assert [int(row["class_id"] or -1) for row in rows] == answers.tolist() and (answers == -1).any()
    for row, number in zip(rows, answers.tolist(), strict=True):
        assert row["status"] == ("junk" if number == -1 else "ok")
        assert bool(row["class_name"]) == bool(row["outlier"]) == (number != -1)
    assert "junk" in {row["second_class"] for row in rows if row["status"] == "ok"}


def test_without_a_joint_head_answers_are_new_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = finished_run(tmp_path / "run", joint=False)
    Image.fromarray(np.full((20, 20), 90, np.uint8)).save(tmp_path / "a.png")
    (row,) = predicted(run, tmp_path / "a.png")
    assert "no classifier for known and new classes together" in capsys.readouterr().err
    assert int(row["class_id"]) >= 5 and row["second_class"].startswith("new-") and row["looks_known"] == ""
    assert row["nearest_known"] in tuple("01234")
    with pytest.warns(UserWarning, match="no head for known and new"):
        assert Discoverer.load(run).predict([tmp_path / "a.png"]).tolist() == [int(row["class_id"])]


@pytest.mark.parametrize("network", NETWORKS)
def test_a_folded_network_gives_the_same_features(network: str) -> None:
    torch.manual_seed(0)
    model = build(network, 3, torch.full((3,), 0.4), torch.full((3,), 0.3), 0)
    with torch.no_grad():
        for _ in range(3):
            model.features(torch.rand(16, 3, 32, 32))  # statistics other than those a BatchNorm begins with
        model.eval()
        x = torch.rand(4, 3, 32, 32)
        quick = folded(model)
        torch.testing.assert_close(quick.features(x), model.features(x), rtol=1e-3, atol=1e-4)
    count = [sum(isinstance(m, torch.nn.BatchNorm2d) for m in one.modules()) for one in (quick, model)]
    assert count[0] == 0 < count[1]


# ---------------------------------------------------------------------------------------------------
# outliers


def test_a_training_image_has_its_own_rank() -> None:
    rng = torch.Generator().manual_seed(0)
    z, class_of = torch.randn(50, 3, generator=rng), np.arange(50) % 3 - 1
    ranks = Distances(z, class_of).ranks(z, class_of)
    assert np.isnan(ranks[class_of == -1]).all()
    for number in (0, 1):
        members = z[torch.from_numpy(class_of == number)]
        far = [float((one - members.mean(dim=0)).norm()) for one in members]
        wanted = [sum(other < own for other in far) / (len(far) - 1) for own in far]
        np.testing.assert_allclose(ranks[class_of == number], wanted)


def test_far_images_are_outliers_and_empty_classes_say_nothing() -> None:
    known = Distances(torch.tensor([[0.0], [2.0], [9.0]]), np.array([0, 0, 1]))
    found = known.ranks(torch.tensor([[1.0], [50.0], [9.0], [10.0], [1.0]]), np.array([0, 0, 1, 1, 7]))
    np.testing.assert_array_equal(found, [0, 1, 0, 1, np.nan])


def test_junk_must_be_more_probable_than_every_class() -> None:
    answers = Answers({0: "a", 1: "b"}, 1)
    p = np.array([[0.5, 0.1, 0.4], [0.3, 0.3, 0.4]], np.float32)
    assert answers.best(p).tolist() == [0, -1]


# ---------------------------------------------------------------------------------------------------
# files as they are


def test_every_file_has_its_row_in_its_place(finished: Path, tmp_path: Path) -> None:
    root = tmp_path / "later"
    (root / "b").mkdir(parents=True)
    for name in ("a.png", "b/c.PNG", "b/d.png", 'z "quoted", with\nnewline.png'):
        Image.new("L", (9, 7), 50).save(root / name, "PNG")
    (root / "b" / "broken.jpg").write_bytes(b"no image")
    (root / "gone.png").symlink_to(root / "nowhere.png")
    (root / "notes.txt").write_text("not asked for")
    (root / ".hidden.png").write_bytes(b"")
    (root / "b" / "again").symlink_to(root)
    os.mkfifo(root / "pipe.png")
    rows = predicted(finished, root, batch=3)
    assert [row["path"].removeprefix(f"{root}/") for row in rows] == [
        "a.png", "b/broken.jpg", "b/c.PNG", "b/d.png", "gone.png", "pipe.png", "z \"quoted\", with\nnewline.png",
    ]  # fmt: skip
    status = {Path(row["path"]).name: row["status"] for row in rows}
    assert status["broken.jpg"] == "unreadable: not a JPEG, PNG, WebP, BMP, TIFF or GIF image"
    assert status["gone.png"] == "unreadable: No such file or directory"
    assert status["pipe.png"] == "unreadable: a folder, pipe or device, not a file"
    assert [row["class_name"] == "" for row in rows] == [row["status"] != "ok" for row in rows]
    assert all(row["given_label"] == "" for row in rows)
    (only,) = predicted(finished, root / "b" / "broken.jpg")
    assert only["status"].startswith("unreadable"), "a batch without a single image"
    loaded = Discoverer.load(finished)
    found = loaded.predict([root / "a.png", root / "gone.png"])
    assert found[0] >= 0 and found[1] == -2
    assert np.isnan(loaded.predict_proba([root / "gone.png", root / "a.png"])[0]).all()


@pytest.mark.skipif(os.name == "nt", reason="names are always text there")
def test_tabs_part_the_cells_of_a_file_that_is_called_so(finished: Path, tmp_path: Path) -> None:
    Image.new("L", (9, 7), 50).save(tmp_path / "a.png")
    Image.new("L", (9, 7), 50).save(tmp_path / "b\tc.png")
    for name in ("p.tsv", "p.csv"):
        predict(finished, tmp_path / "a.png", tmp_path / "b\tc.png", to=str(tmp_path / name))
    with (tmp_path / "p.tsv").open(newline="") as tabs, (tmp_path / "p.csv").open(newline="") as commas:
        assert list(csv.reader(tabs, delimiter="\t")) == list(csv.reader(commas))


def test_names_that_are_no_text_are_read(finished: Path, tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/later-\xff.png")
    Image.new("L", (9, 7), 50).save(tmp_path / "x.png")
    (tmp_path / "x.png").rename(path)
    (row,) = predicted(finished, path)
    assert row["path"] == f"{tmp_path}/later-\\xff.png" == printable(path) and row["status"] == "ok"


def test_lists_of_paths(tmp_path: Path) -> None:
    def paths(content: bytes) -> list[str]:
        return list(listed(io.BytesIO(content)))

    assert paths(b"") == [] and paths(b"\n\n") == []
    assert paths(b"a.png\nb c.png\r\n\nd.png") == ["a.png", "b c.png", "d.png"]
    assert paths(b"\xef\xbb\xbfa.png\n") == ["a.png"]
    assert paths(b"a\nb.png\0c.png\0") == ["a\nb.png", "c.png"]
    many = [f"folder/{number:07d}.png" for number in range(20_000)]
    assert paths("\n".join(many).encode()) == many, "longer than what is read at once"
    with pytest.raises(InputError, match="no list"):
        paths(bytes([65]) * (3 << 20))


def test_a_list_is_read_as_it_is_written() -> None:
    out, into = os.pipe()
    with open(out, "rb") as file, open(into, "wb", buffering=0) as writer:
        writer.write(b"a.png\nb.p")
        names = listed(file)
        assert next(names) == "a.png"
        writer.write(b"ng\n")
        assert next(names) == "b.png"


def test_folders_are_gone_through_in_order_and_once(tmp_path: Path) -> None:
    for name in ("b/2.png", "b/1.png", "a.png", "c/d/e.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "c" / "up").symlink_to(tmp_path)
    (tmp_path / "x.jpg").mkdir()
    (tmp_path / "x.jpg" / "y.png").write_bytes(b"")
    found = [os.path.relpath(path, tmp_path) for path in images_at([str(tmp_path)])]
    assert found == ["a.png", "b/1.png", "b/2.png", "c/d/e.png", "x.jpg/y.png"]
    assert list(images_at([str(tmp_path / "any.thing")])) == [str(tmp_path / "any.thing")]


def test_batches_are_small_on_a_cpu() -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert batch_size(160, cpu) == 8 and batch_size(14, cpu) == 512 and batch_size(4000, cpu) == 8
    assert batch_size(160, gpu) > batch_size(160, cpu)


def test_images_are_paths_one_of_them_or_pixels(tmp_path: Path) -> None:
    assert paths_of(["a.png", Path("b.png")]) == ["a.png", "b.png"]
    assert paths_of("a.png") == paths_of(Path("a.png")) == ["a.png"], "no image for each letter"
    assert paths_of([]) is None and paths_of(np.zeros((2, 4, 4))) is None
    (tmp_path / "new").mkdir()
    for folder in (tmp_path / "new", str(tmp_path / "new")):
        with pytest.raises(
            UsageError, match=r"new is a folder.*glob\('.*new/\*\.jpg'\).*autonovel predict RUN .*new --to"
        ):
            paths_of(folder)


def test_a_single_path_is_a_single_image(finished: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (12, 12), dtype=np.uint8)).save(path)
    loaded = Discoverer.load(finished)
    for one in (path, str(path)):
        assert loaded.predict(one).tolist() == loaded.predict([path]).tolist() and loaded.predict(one).shape == (1,)
        assert len(loaded.predict_proba(one)) == len(loaded.transform(one)) == 1
    assert loaded.predict(tmp_path / "gone.png").tolist() == [-2]


# ---------------------------------------------------------------------------------------------------
# the command


@pytest.mark.slow
def test_the_command_writes_csv_and_json_lines(finished_with_files: Path, tmp_path: Path) -> None:
    images = tmp_path / "my images"
    to_file = autonovel("predict", finished_with_files, images, "--to", tmp_path / "out" / "p.jsonl")
    assert to_file.returncode == 0 and to_file.stdout == "", to_file.stderr
    assert "400 files" in to_file.stderr and "images/s" in to_file.stderr
    lines = [json.loads(line) for line in (tmp_path / "out" / "p.jsonl").read_text().splitlines()]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["p.jsonl"]
    names = "\n".join(row["path"] for row in lines)
    done = subprocess.run(
        command("predict", finished_with_files, "-", "--device", "cpu", "--batch", 7),
        input=names, capture_output=True, text=True, env=environment(), timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = table(done.stdout)
    assert list(rows[0]) == list(COLUMNS) and len(rows) == len(lines) == 400
    for row, line in zip(rows, lines, strict=True):
        assert row["path"] == line["path"] and row["class_name"] == line["class_name"]
        assert isinstance(line["class_id"], int) and line["given_label"] is None
        assert float(row["confidence"]) == pytest.approx(line["confidence"], abs=2e-4)


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(finished_with_files: Path, tmp_path: Path) -> None:
    shell = " ".join(f"'{word}'" for word in command("predict", finished_with_files, tmp_path / "my images"))
    done = subprocess.run(f"{shell} | head -1", shell=True, capture_output=True, text=True, env=environment())
    assert done.stdout.startswith("id,path") and "Traceback" not in done.stderr and "Broken" not in done.stderr


def test_what_is_wrong_is_said(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    Image.new("L", (9, 7), 50).save(tmp_path / "a.png")
    (tmp_path / "old.csv").write_text("kept")
    wrong: list[tuple[list[object], dict[str, Any], list[str]]] = [
        ([], {}, ["--from FILE"]),
        (["nowhere"], {}, ["no file or folder nowhere"]),
        ([tmp_path / "empty"], {}, ["no images in", ".jpg"]),
        ([tmp_path / "a.png"], {"form": "xml"}, ["xml", "csv, tsv, jsonl"]),
        ([tmp_path / "a.png"], {"to": str(tmp_path / "new.xlsx")}, ["new.xlsx is to be CSV", "ends in .csv"]),
        ([tmp_path / "a.png"], {"to": str(tmp_path / "new.tsv"), "form": "jsonl"}, [".jsonl or .ndjson"]),
        ([tmp_path / "a.png"], {"to": str(tmp_path)}, ["a folder"]),
        ([tmp_path / "a.png"], {"to": str(tmp_path / "old.csv")}, ["already exists", "--overwrite"]),
        ([], {"listing": str(tmp_path / "no.txt")}, ["no.txt cannot be read"]),
        (["-"], {"listing": "-"}, ["twice"]),
    ]
    for paths, more, words in wrong:
        with pytest.raises(UsageError) as error:
            predict(finished, *paths, **more)
        assert all(word in str(error.value) for word in words), str(error.value)
    assert (tmp_path / "old.csv").read_text() == "kept"
    run = finished_run(tmp_path / "wide", "data.size=0")
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(facts | {"images": [400, 1, 28, 20]}))
    with pytest.raises(UsageError, match="20×28"):
        Predictor(run, "cpu")


def test_rows_written_before_a_failure_are_kept_beside(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("L", (9, 7), 50).save(tmp_path / "a.png")
    whole = Predictor.rows

    def interrupted(self: Predictor, paths: Any, batch: int = 0) -> Any:
        yield from whole(self, paths, batch)
        raise KeyboardInterrupt

    monkeypatch.setattr(Predictor, "rows", interrupted)
    with pytest.raises(Exception, match=r"rows so far are in .*p\.csv\.partial") as error:
        predict(finished, tmp_path / "a.png", to=str(tmp_path / "p.csv"))
    assert error.value.exit_code == 130  # type: ignore[attr-defined]
    assert not (tmp_path / "p.csv").exists()
    assert len((tmp_path / "p.csv.partial").read_text().splitlines()) == 2


def test_predicting_keeps_torchs_threads(finished: Path, tmp_path: Path) -> None:
    Image.new("L", (9, 7), 50).save(tmp_path / "a.png")
    before = torch.get_num_threads()
    loaded = Discoverer.load(finished)
    loaded.predict([tmp_path / "a.png"])
    assert torch.get_num_threads() == before
    assert embed(loaded._model, torch.zeros(0, 1, 12, 12, dtype=torch.uint8)).z.shape[0] == 0
