"""What is in a folder, told before anything is made of it."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from autonovel.data import inventory
from autonovel.data.inventory import inventory_of
from runs import autonovel

RNG = np.random.default_rng(0)


def picture(width: int, height: int, mode: str = "RGB") -> Image.Image:
    return Image.fromarray(RNG.integers(0, 256, (height, width, 3), dtype=np.uint8)).convert(mode)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "photos"
    for name in ("cat", "dog", "unlabelled", "test/cat"):
        (root / name).mkdir(parents=True)
    picture(10, 20).save(root / "cat" / "1.png")
    picture(30, 20, "L").save(root / "cat" / "2.png")
    picture(40, 40, "CMYK").save(root / "dog" / "1.jpg")
    picture(12, 12, "P").save(root / "dog" / "2.png")
    Image.fromarray(np.zeros((8, 8), np.uint16)).save(root / "dog" / "3.png")
    turned = Image.Exif()
    turned[0x0112] = 6
    picture(16, 12).save(root / "unlabelled" / "1.jpg", exif=turned)
    picture(16, 12).save(root / "unlabelled" / "2.gif", save_all=True, append_images=[picture(16, 12)])
    Image.new("RGBA", (16, 12), (200, 100, 50, 90)).save(root / "loose.webp", lossless=True)
    picture(9, 9).save(root / "test" / "cat" / "1.png")
    (root / "unlabelled" / "broken.jpg").write_bytes(b"no image")
    return root


def test_every_kind_is_counted(root: Path) -> None:
    found = inventory_of(root)
    assert (found.files, found.images, found.test, found.unlabelled) == (10, 9, 1, 3)
    assert found.classes == {"cat": 2, "dog": 3}
    assert found.smallest == (8, 8) and found.largest == (40, 40) and found.median == (16, 12)
    assert found.formats == {"PNG": 5, "JPEG": 2, "GIF": 1, "WEBP": 1}
    assert found.kinds["grey"] == 1 and found.kinds["CMYK"] == 1 and found.kinds["grey of more than 8 bits"] == 1
    assert found.kinds["colour, transparent"] == 1 and found.kinds["palette"] >= 1
    assert found.turned == 1 and found.animated == 1
    assert found.unreadable == {"unlabelled/broken.jpg": "not a JPEG, PNG, WebP, BMP, TIFF or GIF image"}
    assert found.duplicates.groups == [] and found.size == sum(p.stat().st_size for p in root.rglob("*.*"))


def test_duplicates_are_told_by_what_they_do_harm_to(root: Path) -> None:
    def copied(source: str, *targets: str) -> None:
        for target in targets:
            (root / target).write_bytes((root / source).read_bytes())

    copied("cat/1.png", "dog/9.png")
    copied("cat/2.png", "unlabelled/9.png", "unlabelled/8.png")
    copied("dog/2.png", "test/cat/9.png")
    copied("loose.webp", "loose-2.webp")
    found = inventory_of(root).duplicates
    assert sorted(map(sorted, found.groups)) == [
        ["cat/1.png", "dog/9.png"], ["cat/2.png", "unlabelled/8.png", "unlabelled/9.png"],
        ["dog/2.png", "test/cat/9.png"], ["loose-2.webp", "loose.webp"],
    ]  # fmt: skip
    assert found.repeated == 5
    assert found.in_two_classes == [["cat/1.png", "dog/9.png"]]
    assert found.with_and_without_label == [["cat/2.png", "unlabelled/8.png", "unlabelled/9.png"]]
    assert found.in_training_and_test == [["dog/2.png", "test/cat/9.png"]]
    told = "\n".join(inventory_of(root).told())
    assert "5 files repeat another (4 groups)" in told and "cat/1.png = dog/9.png" in told and "given away" in told


def test_files_of_one_size_and_equal_ends_are_not_the_same(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "ENDS", 64)
    pixels = np.zeros((32, 32, 3), np.uint8)
    for number in range(4):
        pixels[16, 16] = number // 2  # two of each, which differ in the middle alone
        Image.fromarray(pixels).save(root / f"{number}.bmp")
    assert inventory_of(root).duplicates.groups == [["0.bmp", "1.bmp"], ["2.bmp", "3.bmp"]]


def test_it_is_told_in_words_and_as_json(root: Path) -> None:
    done = autonovel("data", "check", "folder", root)
    assert done.returncode == 0, done.stderr
    for words in ("9 images", "8×8 to 40×40, median 16×12", "PNG 5, JPEG 2", "1 turned by EXIF",
                  "1 with several pictures", "known classes (2): cat 2, dog 3", "to be discovered: 3; for testing: 1",
                  "cannot be read: 1, unlabelled/broken.jpg (not a JPEG", "exact duplicates: none"):  # fmt: skip
        assert words in done.stdout, (words, done.stdout)
    (root / "list.csv").write_text("path,label\ncat/1.png,cat\ncat/1.png,cat\nloose.webp,\ngone.png,\n")
    done = autonovel("data", "check", "folder", root / "list.csv", "--json")
    content = json.loads(done.stdout)
    assert content["classes"] == {"cat": 1} and content["unlabelled"] == 1 and content["images"] == 2
    assert (
        content["unreadable"] == {"gone.png": "No such file or directory"} and "more than once" in content["notes"][0]
    )
    (root / "empty").mkdir()
    assert autonovel("data", "check", "folder", root / "nowhere").returncode == 2
    assert autonovel("data", "check", "folder", root / "empty").returncode == 2


def test_shards_are_counted_too(root: Path, tmp_path: Path) -> None:
    import tarfile

    from autonovel.data import shards

    (tmp_path / "tars").mkdir()
    with tarfile.open(tmp_path / "tars" / "0.tar", "w") as tar:
        for number, name in enumerate(("cat/1.png", "loose.webp", "cat/1.png")):
            tar.add(root / name, f"{number}.{name.rpartition('.')[2]}")
    found = inventory.take(*shards.load(str(tmp_path / "tars"), ""))
    assert found.images == 3 and found.duplicates.groups == [["0.tar/0.png", "0.tar/2.png"]]
