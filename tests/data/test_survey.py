"""A look at many files goes block by block: it goes on where it stopped, and other runs take its blocks over."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import imagenet_tree
from autonovel.data import survey as module
from autonovel.data.files import FileTable
from autonovel.data.folder import everything
from autonovel.data.prepare import adopt_surveys
from autonovel.data.streamed import FilePixels
from autonovel.data.survey import survey
from autonovel.training.display import Silent

N, BLOCK = 12, 5


@pytest.fixture
def pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FilePixels:
    monkeypatch.setattr(module, "BLOCK", BLOCK)
    root = tmp_path / "pictures"
    root.mkdir()
    for number in range(N):
        imagenet_tree.picture("n01000001", number).save(root / f"{number:02d}.JPEG", "jpeg")
    (root / "06.JPEG").write_bytes(b"no picture")
    return FilePixels(FileTable.of(str(root), everything(root).entries), 8, 3, 1)


class Counting(Silent):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.updates: list[int] = []

    def update(self, stage: str, done: int, terms: dict[str, float], images_per_second: float) -> None:
        """Note how far it is."""
        self.updates.append(done)


def blocks(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("survey-block-*.json")}


def test_blocks_add_up_to_the_whole(pixels: FilePixels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in blocks").mkdir()
    (tmp_path / "at once").mkdir()
    made = survey(pixels, tmp_path / "in blocks", Silent())
    held = torch.empty(pixels.shape, dtype=torch.uint8)
    into = survey(pixels, tmp_path / "in blocks", Silent(), held)
    assert len(blocks(tmp_path / "in blocks")) == 3
    monkeypatch.setattr(module, "BLOCK", 1000)
    wanted = survey(pixels, tmp_path / "at once", Silent())
    assert not blocks(tmp_path / "at once")
    for found in (made, into):
        assert found.broken == wanted.broken and list(found.broken) == [6]
        assert torch.equal(found.counts, wanted.counts) and found.fingerprint == wanted.fingerprint
    rows = [row for row in range(N) if row != 6]
    assert torch.equal(held[: N - 1], pixels[rows])
    assert made.sums_by_image.shape == (N - 1, 8) and len(made.sums_by_image.unique(dim=0)) == N - 1


@pytest.mark.parametrize(
    "damage", [{"sums": "00" * 8}, {"broken": {"99": "x"}}, {"counts": [[0] * 256]}, {"format": 0}]
)
def test_a_block_that_does_not_fit_its_files_is_made_anew(
    pixels: FilePixels, tmp_path: Path, damage: dict[str, Any]
) -> None:
    wanted = survey(pixels, tmp_path / "kept", Silent())
    whole = module._place(pixels, tmp_path / "kept")
    for path in (whole, tmp_path / "kept" / sorted(blocks(tmp_path / "kept"))[0]):
        path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    found = survey(pixels, tmp_path / "kept", Silent())
    assert found.broken == wanted.broken and found.fingerprint == wanted.fingerprint
    assert torch.equal(found.counts, wanted.counts)


def test_an_interrupted_look_goes_on(pixels: FilePixels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, looked = module._look_at, []

    def stops_at_the_third(pixels: FilePixels, rows: torch.Tensor, *rest: object) -> module.Survey:
        if len(looked) == 2:
            raise KeyboardInterrupt
        looked.append(rows.tolist())
        return whole(pixels, rows, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(module, "_look_at", stops_at_the_third)
        with pytest.raises(KeyboardInterrupt):
            survey(pixels, tmp_path, Silent())
    assert looked == [list(range(5)), list(range(5, 10))] and len(blocks(tmp_path)) == 2
    monkeypatch.setattr(module, "SECONDS_BETWEEN_UPDATES", 0.0)
    display = Counting()
    made = survey(pixels, tmp_path, display)
    assert display.updates == [N] and list(made.broken) == [6]


def test_runs_take_over_the_blocks_of_files_they_have_in_common(pixels: FilePixels, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    (first / "cache").mkdir(parents=True)
    survey(pixels, first / "cache", Silent())
    adopt_surveys(second, [first, tmp_path / "nowhere"])
    fewer = FilePixels(FileTable.of(pixels.files.root, [pixels.files.entry(row) for row in range(10)]), 8, 3, 1)
    before = blocks(second / "cache")
    display = Counting()
    survey(fewer, second / "cache", display)
    assert not display.updates and blocks(second / "cache") == before  # both of its blocks were there
    other_size = FilePixels(fewer.files, 6, 3, 1)
    survey(other_size, second / "cache", Silent())
    assert len(blocks(second / "cache")) == len(before) + 2
