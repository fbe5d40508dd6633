"""Tables of image files: what is known, what is to be discovered, and what is refused with which words."""

import builtins
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from autonovel import recipe
from autonovel.data import ImageSet, sources
from autonovel.data.inventory import inventory_of
from autonovel.data.table import listing_of, moved, root_of, source_of
from autonovel.editing.edited import EditedRun
from autonovel.errors import InputError, UsageError
from autonovel.planning import Wish, plan
from autonovel.run_images import RunImages
from image_files import write_digits
from runs import TINY, autonovel


def write(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4)).save(root / name)
    return root


def load(place: Path, **more: object) -> tuple[ImageSet, ImageSet | None, int]:
    values = {"source": "table", "path": str(place), "size": 8} | more
    return sources.load(recipe.load("demo", {f"data.{key}": value for key, value in values.items()}).recipe, 0)


def labels(images: ImageSet) -> dict[str, str | None]:
    return {name: images.class_names[y] if y >= 0 else None for name, y in zip(images.ids, images.y, strict=True)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "photos", "1.png", "in/2.png", "in/3.png", "in/größe, 4.png", "5.png")


TABLE = 'path,label\n1.png,cat\nin/2.png,dog\nin/3.png,\n./5.png,  \n"in/größe, 4.png",cat\n'
WANTED = {"1.png": "cat", "5.png": None, "in/2.png": "dog", "in/3.png": None, "in/größe, 4.png": "cat"}


def test_blanks_are_to_be_discovered(root: Path) -> None:
    (root / "list.csv").write_text(TABLE)
    train, test, n_new = load(root / "list.csv")
    assert labels(train) == WANTED and list(train.ids) == sorted(train.ids)
    assert test is None and n_new == 0 and train.truth is None and train.ids_are_paths
    assert train.images[[0]].shape == (1, 3, 8, 8)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bom.csv", b"\xef\xbb\xbf" + TABLE.encode()),
        ("windows.csv", TABLE.replace("\n", "\r\n").encode()),
        ("latin.csv", TABLE.encode("latin-1")),
        ("excel.csv", TABLE.encode("utf-16")),
        ("semicolon.csv", TABLE.replace('"in/größe, 4.png"', "in/größe, 4.png").replace(",label", ";label")
         .replace("png,", "png;").encode()),
        ("tabs.tsv", TABLE.replace('"in/größe, 4.png"', "in/größe, 4.png").replace(",label", "\tlabel")
         .replace("png,", "png\t").encode()),
        ("capitals.csv", b"\n Path , LABEL,other\n" + TABLE.partition("\n")[2].encode()),
        ("backslashes.csv", TABLE.replace("in/", "in\\").encode()),
        ("metadata-like.csv", TABLE.replace("path", "file_name").encode()),
    ],
)  # fmt: skip
def test_tables_come_in_many_forms(root: Path, name: str, content: bytes) -> None:
    (root / name).write_bytes(content)
    train, _, _ = load(root / name)
    assert labels(train) == WANTED
    assert bool(train.notes) == (name == "latin.csv")


def test_absolute_paths_are_kept_relative_where_they_can_be(root: Path, tmp_path: Path) -> None:
    outside = write(tmp_path / "elsewhere", "9.png") / "9.png"
    (root / "list.csv").write_text(f"path,label\n{root / '1.png'},cat\n{outside},dog\n../elsewhere/9.png,dog\n")
    train, _, _ = load(root / "list.csv")
    assert labels(train) == {"1.png": "cat", str(outside): "dog", "../elsewhere/9.png": "dog"}
    assert train.images[[0, 1, 2]].shape[0] == 3


def test_parquet(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names, classes = list(WANTED), [3, None, 4, None, 3]
    parquet.write_table(arrow.table({"path": names, "label": classes, "bytes": [b"\xff"] * 5}), root / "a.parquet")
    train, _, _ = load(root / "a.parquet")
    assert labels(train) == {name: None if c is None else str(c) for name, c in zip(names, classes, strict=True)}
    floats = arrow.table({"path": names, "label": arrow.array([3.0, float("nan"), 4.0, None, 3.0])})
    parquet.write_table(floats, root / "b.parquet")
    assert labels(load(root / "b.parquet")[0]) == labels(train)
    (root / "c.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        load(root / "c.parquet")
    parquet.write_table(arrow.table({"image": names}), root / "d.parquet")
    with pytest.raises(InputError, match=r"columns image; it needs path"):
        load(root / "d.parquet")
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError("No module named 'pyarrow'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"-m pip install 'pyarrow>="):
        load(root / "a.parquet")


def test_a_split_column_names_test_images(root: Path) -> None:
    (root / "list.csv").write_text(
        "path,label,split\n1.png,cat,train\nin/2.png,dog,\nin/3.png,,Train\n5.png,dog,test\n"
    )
    train, test, _ = load(root / "list.csv")
    assert labels(train) == {"1.png": "cat", "in/2.png": "dog", "in/3.png": None}
    assert test is not None and test.ids == ("5.png",) and test.truth is not None and test.truth.tolist() == [1]


def test_missing_files_are_told_later_and_repeated_rows_at_once(root: Path) -> None:
    (root / "list.csv").write_text("path,label\n1.png,cat\ngone.png,dog\n1.png,cat\n./in/2.png,dog\nin/2.png,dog\n")
    train, _, _ = load(root / "list.csv")
    assert train.ids == ("1.png", "gone.png", "in/2.png")
    assert len(train.notes) == 1 and "2 files more than once" in train.notes[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("file,class\n1.png,cat\n", ["columns file, class", "path", "label"]),
        ("path\n1.png\n", ["columns path", "needs path and label", "blank"]),
        ("", ["columns none"]),
        ("path,label\n", ["no rows"]),
        ("path,label\n,cat\n", ["line 2", "no path"]),
        ("path,label\nnowhere/a.png,cat\nb.png,\n", ["none of the 2 files", "photos/nowhere/a.png", "relative"]),
        ("path,label\n1.png,cat\n./1.png,dog\n", ["1.png twice", "label cat", "line 3", "label dog"]),
        ("path,label\n1.png,cat\n1.png,\n", ["1.png twice", "no label"]),
        ("path,label\nin/a, b.png,cat\n", ["line 2", "3 cells for 2 columns", "double quotes"]),
        ("path,label,split\n1.png,cat,val\n", ["split 'val'", "train, test or blank"]),
        ("path,label,split\n1.png,cat,\n5.png,,test\n", ["test image 5.png", "no label"]),
        ("path,label\n1.png,c\0at\n", ["NUL", "UTF-8"]),
    ],
)
def test_what_is_wrong_is_said(root: Path, text: str, words: list[str]) -> None:
    (root / "list.csv").write_text(text)
    with pytest.raises(InputError) as error:
        load(root / "list.csv")
    assert all(word in str(error.value) for word in words), str(error.value)


def test_other_places_are_refused(root: Path) -> None:
    for place, words in (
        (root, ["without metadata.csv", "data.source=folder"]),
        (root / "no.csv", ["no table", "path and label"]),
        (root / "1.png", ["must end in .csv, .tsv, .parquet"]),
    ):
        with pytest.raises(UsageError) as error:
            load(place)
        assert all(word in str(error.value) for word in words), str(error.value)
    with pytest.raises(UsageError, match="needs a table of images: give it with --data FILE"):
        load(Path("."), path="")
    with pytest.raises(UsageError, match=r"data\.source=table"):
        load(root / "1.png", source="folder")


def test_metadata_in_a_folder(root: Path) -> None:
    (root / "metadata.csv").write_text("file_name,label,text\n1.png,cat,a cat\nin/2.png,,\nin/gone.png,dog,\n")
    train, _, _ = load(root)
    assert labels(train) == dict.fromkeys(sorted(WANTED)) | {"1.png": "cat", "in/gone.png": "dog"}
    assert any("does not name 3 images" in note and "5.png" in note for note in train.notes)
    (root / "metadata.csv").write_text("file_name,text\n1.png,a cat\nin/gone.png,\n")
    train, _, _ = load(root)
    assert labels(train) == {"1.png": None, "5.png": None, "in/2.png": "in", "in/3.png": "in", "in/größe, 4.png": "in"}
    assert train.unreadable == {"in/gone.png": "No such file or directory"}


def test_labels_that_look_like_a_slip_are_told_of(tmp_path: Path) -> None:
    names = [f"{n}.png" for n in range(7)]
    write(tmp_path, *names)
    labels = ["fox", "Fox", "fox", "NA", "n/a", "", "owl"]
    lines = [",".join(pair) for pair in zip(names, labels, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["path,label", *lines]))
    train, _, _ = load(tmp_path / "t.csv")
    assert train.class_names == ("Fox", "NA", "fox", "n/a", "owl"), "the meaning stays as it is"
    taken = "is taken for a known class, of 1 image. If it says that their class is not known, leave their label blank"
    assert train.notes[:2] == (f"'NA' {taken}", f"'n/a' {taken}")
    assert train.notes[2].startswith("'Fox' (1) and 'fox' (2) differ in capital letters alone")
    assert len(train.notes) == 3


def test_names_that_a_spreadsheet_would_compute_may_have_their_apostrophe(tmp_path: Path) -> None:
    write(tmp_path, "=a/1.png", "-2.png", "'=3.png")
    rows = ["'=a/1.png,'=fox", "-2.png,=fox", "'=3.png,owl"]
    (tmp_path / "t.csv").write_text("\n".join(["path,label", *rows]))
    train, _, _ = load(tmp_path / "t.csv")
    assert train.ids == ("'=3.png", "-2.png", "=a/1.png") and train.class_names == ("=fox", "owl")
    (tmp_path / "truth.csv").write_text("path,label\n'-2.png,'=fox\n'=3.png,owl\n")
    train, _, _ = load(tmp_path, source="folder")
    assert train.new_names == ("=fox", "owl")


def test_a_table_is_called_by_its_name_and_gets_the_advice_for_tables(tmp_path: Path) -> None:
    write(tmp_path, "1.png", "2.png", "3.png")
    place = tmp_path / "t.csv"
    place.write_text("path,label\n1.png,a\n2.png,b\n3.png,NA\n")
    found = inventory_of(place)
    assert found.told()[0].startswith(f"{place}: 3 images") and found.root == str(tmp_path)
    with pytest.raises(InputError, match=r"t\.csv has 0 images to be discovered.*Leave their label blank\.$"):
        plan(found, Wish())
    place.write_text("path,label\n1.png,a\n2.png,\n3.png,\n")
    with pytest.raises(InputError, match=r"t\.csv has 1 known class;.*Fill in the label of some images"):
        plan(inventory_of(place), Wish())


def test_the_right_source_is_found(root: Path, tmp_path: Path) -> None:
    assert source_of(root) == "folder" and len(listing_of(root)[0].entries) == 5
    (root / "list.csv").write_text(TABLE)
    assert source_of(root / "list.csv") == "table" and listing_of(root / "list.csv")[0].root == root
    (root / "list.csv").rename(root / "metadata.csv")
    with pytest.raises(UsageError, match="not a folder"):
        listing_of(tmp_path / "nowhere")
    assert source_of(root) == "table" and listing_of(root)[0].labels.count("cat") == 2
    assert root_of(root / "metadata.csv") == root == root_of(root) and root_of(root / "gone.csv") == root


def test_a_moved_table_is_found_by_its_folder(root: Path) -> None:
    (root / "list.csv").write_text(TABLE)
    assert moved("/before/list.csv", root) == str(root / "list.csv") == moved("/x/list.csv", root / "list.csv")
    assert moved("/before/other.csv", root) == str(root) == moved("/before", root)


@pytest.mark.slow
def test_a_run_on_a_table_can_be_evaluated_looked_at_and_exported(tmp_path: Path) -> None:
    digits = write_digits(tmp_path / "digits")
    rows = [line.split(",") for line in (digits / "truth.csv").read_text().splitlines()[1:]]
    known = sorted(path.relative_to(digits).as_posix() for path in digits.rglob("*.png"))[:200]
    lines = [*([name, name[0]] for name in known), *([name, ""] for name, _ in rows), ["5/lost.png", ""]]
    (digits / "list.csv").write_text("\n".join(",".join(line) for line in [["path", "label"], *lines]))
    (digits / "truth.csv").write_text(
        "\n".join(",".join(row) for row in [["path", "label"], *rows, ["5/lost.png", "5"]])
    )
    run = tmp_path / "run"
    sets = ("pretrain.epochs=1", "supervised.epochs=1", "joint.epochs=2", "run.systems=rankstats-incremental",
            "data.source=table", "data.per_class=0", "count.new_classes=5")  # fmt: skip
    quick = ["--keep-going", *(word for one in sets for word in ("--set", one))]
    done = autonovel("run", TINY, "--data", digits / "list.csv", "--out", run, *quick)
    assert done.returncode == 0, done.stderr
    table = EditedRun(run).table
    assert len(table) == 401 and {row["path"] for row in table} == {name for name, _ in lines}
    assert [row["status"] for row in table if row["path"] == "5/lost.png"] == ["unreadable: No such file or directory"]
    digits.rename(tmp_path / "moved")
    assert RunImages(EditedRun(run)).missing and not RunImages(EditedRun(run), tmp_path / "moved").missing
    again = autonovel("evaluate", run, "--data", tmp_path / "moved", "--device", "cpu", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["incremental"] == json.loads((run / "results.json").read_text())["incremental"]
    out = autonovel("export", run, tmp_path / "out", "--to", "folders", "--data", tmp_path / "moved" / "list.csv")
    assert out.returncode == 0, out.stderr
    assert sum(1 for _ in (tmp_path / "out").rglob("*.png")) == 400
