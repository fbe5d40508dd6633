"""Omniglot as its authors publish it, at the size of a test."""

import shutil
import zipfile
from pathlib import Path

import pytest
import torch

import omniglot_tree
from autonovel.data import omniglot, sources
from autonovel.data.catalogue import DATASETS
from autonovel.data.inspect import check
from autonovel.data.layouts import OMNIGLOT
from autonovel.errors import InputError, UsageError
from autonovel.recipe import load


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    omniglot_tree.publish(monkeypatch)
    return omniglot_tree.write(tmp_path / "omniglot")


def test_published_counts() -> None:
    assert OMNIGLOT.background == 964
    assert len(OMNIGLOT.evaluation) == 20
    assert sum(OMNIGLOT.evaluation.values()) == 659
    counts = {split.name: len(split.per_class) for split in DATASETS["omniglot"].splits}
    assert counts == {"background": 964, "evaluation": 659}


def test_background_first_then_one_alphabet(tree: Path) -> None:
    found = omniglot.load(tree, "Keble", 32)
    assert found.images.shape == ((24 + 4) * 6, 1, 32, 32)
    assert found.images.dtype == torch.uint8
    assert found.labels.tolist() == [number for number in range(28) for _ in range(6)]
    assert found.names[0] == "Cyrillic/character01"
    assert found.names[24:] == tuple(f"Keble/character0{number}" for number in range(1, 5))


def test_ink_is_bright_on_dark_paper_and_shrinking_averages(tree: Path) -> None:
    whole, small = omniglot.load(tree, "Angelic").images, omniglot.load(tree, "Angelic", 35).images
    assert whole.shape[2:] == (105, 105)
    assert set(whole.unique().tolist()) == {0, 255}
    assert (whole > 0).float().mean() < 0.2
    assert whole.float().mean().item() == pytest.approx(small.float().mean().item(), rel=0.02)


def test_zip_files_and_folders_hold_the_same(tree: Path, tmp_path: Path) -> None:
    packed = omniglot_tree.write(tmp_path / "zips", zipped=True)
    one, other = omniglot.load(tree, "Angelic", 16), omniglot.load(packed, "Angelic", 16)
    assert one.names == other.names
    assert torch.equal(one.images, other.images)


def test_the_labelled_part_is_the_same_for_every_alphabet(tree: Path) -> None:
    changes = [f"data.path={tree}", "data.first_known=24"]
    sets = [sources.load(load("omniglot", [*changes, f"data.alphabet={a}"]).recipe, 0) for a in ("Angelic", "Keble")]
    (one, none, n_one), (other, _, n_other) = sets
    assert none is None
    assert (n_one, n_other) == (3, 4)
    assert isinstance(one.images, torch.Tensor) and isinstance(other.images, torch.Tensor)
    assert torch.equal(one.images[:144], other.images[:144])
    assert torch.equal(one.y[:144], other.y[:144])
    assert (one.y[144:] == -1).all() and (other.y[144:] == -1).all()


@pytest.mark.parametrize("alphabet", ["", "Latin", "angelic"])
def test_only_evaluation_alphabets_can_be_discovered(tree: Path, alphabet: str) -> None:
    with pytest.raises(UsageError, match=r"data\.alphabet .*Angelic, Keble"):
        omniglot.load(tree, alphabet)


def test_missing_characters_and_drawings_are_told(tree: Path) -> None:
    next((tree / "images_evaluation/Keble/character02").iterdir()).unlink()
    with pytest.raises(InputError, match=r"holds 5 drawings of Keble/character02; 6 are published"):
        omniglot.load(tree, "Keble")
    shutil.rmtree(tree / "images_evaluation/Keble/character02")
    with pytest.raises(InputError, match=r"holds 3 characters of Keble; 4 are published.*data fetch omniglot"):
        omniglot.load(tree, "Keble")
    omniglot.load(tree, "Angelic")
    shutil.rmtree(tree / "images_background")
    omniglot.background.cache_clear()
    with pytest.raises(InputError, match=r"neither images_background nor images_background.zip"):
        omniglot.load(tree, "Angelic")


def test_a_damaged_drawing_is_named(tree: Path) -> None:
    victim = sorted((tree / "images_background/Greek/character03").iterdir())[0]
    victim.write_bytes(b"no picture")
    with pytest.raises(InputError, match=rf"{victim.name} cannot be read: it is damaged"):
        omniglot.load(tree, "Angelic")
    victim.write_bytes(omniglot_tree.drawing(0, 0)[:-60])
    with pytest.raises(InputError, match=victim.name):
        omniglot.load(tree, "Angelic")


def test_a_drawing_of_another_size_is_refused(tree: Path) -> None:
    from PIL import Image

    victim = sorted((tree / "images_evaluation/Angelic/character01").iterdir())[0]
    Image.new("1", (28, 28)).save(victim)
    with pytest.raises(InputError, match=r"has 28×28 pixels; 105×105 are published"):
        omniglot.load(tree, "Angelic")


def test_check_counts_what_is_there(tree: Path) -> None:
    report = check("omniglot", tree)
    assert [split.count for split in report.splits] == [24 * 6, 7 * 6]
    assert not report.complete  # the real one has more


def test_a_drawing_that_would_unpack_to_very_much_is_refused(tmp_path: Path) -> None:
    packed = omniglot_tree.write(tmp_path / "zips", zipped=True)
    place = next(path for path in sorted(packed.rglob("*.zip")))
    with zipfile.ZipFile(place, "a", zipfile.ZIP_DEFLATED) as archive:
        folder = archive.namelist()[0].split("/")[0]
        archive.writestr(f"{folder}/Angelic/character01/bomb.png", bytes(3 * 2**20))
    with pytest.raises(InputError, match="states 3,145,728 bytes for"):
        omniglot.load(packed, "Angelic")
