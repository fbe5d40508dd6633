"""How far systems agree: against naive loops, and in words."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autonovel import agreement
from autonovel.errors import RunFolderError


def keep(folder: Path, **systems: Any) -> None:
    for name, clusters in systems.items():
        place = folder / "systems" / name
        place.mkdir(parents=True, exist_ok=True)
        agreement.save_assignments(place, torch.tensor(clusters))


def best_by_trying(a: list[int], b: list[int], n: int) -> float:
    """Return the share of images in matched classes under the best of all ways to match."""
    ways = itertools.permutations(range(n))
    return max(sum(x == way[y] for x, y in zip(a, b, strict=True)) for way in ways) / len(a)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_agreement_is_the_best_of_all_matchings(tmp_path_factory: pytest.TempPathFactory, pairs: Any) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    folder = tmp_path_factory.mktemp("run")
    keep(folder, kmeans=b)
    found = agreement.between("rankstats", np.array(a), folder, ["kmeans"], ["w", "x", "y", "z"])
    assert found is not None
    assert found["shares"][0][1] == found["shares"][1][0] == pytest.approx(best_by_trying(a, b, 4))
    assert found["shares"][0][0] == found["shares"][1][1] == 1.0


def test_every_pair_and_every_class_is_compared(tmp_path: Path) -> None:
    keep(tmp_path, kmeans=[1, 1, 0, 0, 0, 2], dtc=[0, 0, 1, 1, 2, 2])
    found = agreement.between(
        "rankstats", np.array([0, 0, 1, 1, 2, 2]), tmp_path, ["kmeans", "dtc", "mcl"], ["a", "b", "c", "empty"]
    )
    assert found is not None
    assert found["systems"] == ["rankstats", "kmeans", "dtc"]  # mcl kept nothing
    assert found["shares"][0] == pytest.approx([1, 5 / 6, 1]) and found["shares"][2][1] == pytest.approx(5 / 6)
    assert found["by_class"]["kmeans"] == [1.0, 1.0, 0.5, None]


def test_one_system_alone_has_nobody_to_agree_with(tmp_path: Path) -> None:
    assert agreement.between("rankstats", np.array([0, 1]), tmp_path, ["kmeans"], ["a", "b"]) is None


def test_assignments_of_other_images_are_left_out(tmp_path: Path) -> None:
    keep(tmp_path, kmeans=[0, 1, 1])
    assert agreement.between("rankstats", np.array([0, 1]), tmp_path, ["kmeans"], ["a", "b"]) is None


def test_damaged_assignments_are_told(tmp_path: Path) -> None:
    keep(tmp_path, kmeans=[0, 1])
    (tmp_path / "systems" / "kmeans" / agreement.ASSIGNMENTS).write_bytes(b"torn")
    with pytest.raises(RunFolderError, match="cannot be read"):
        agreement.between("rankstats", np.array([0, 1]), tmp_path, ["kmeans"], ["a", "b"])


@pytest.mark.parametrize(
    ("share", "words", "per_cent"),
    [
        (0.95, "agree widely", "95.0 %"),
        (0.8999, "agree in the main", "89.9 %"),
        (0.6999, "disagree widely, so", "69.9 %"),
    ],
)
def test_words_follow_the_thresholds(share: float, words: str, per_cent: str) -> None:
    content = {"systems": ["rankstats", "kmeans"], "images": 2500, "shares": [[1, share], [share, 1]],
               "classes": ["new-1", "new-2"], "by_class": {"kmeans": [0.99, 0.5]}}  # fmt: skip
    text = agreement.told(content, {"new-2": "owl"})
    assert words in text and f"agree on {per_cent} of the 2,500 unlabelled images" in text
    assert text.startswith("Ranking statistics and k-means on stage-2 features")
    assert "differ most on owl (50.0 % shared)" in text and "new-1" not in text
    assert "90 % and more" in text and "less than 70 %" in text


def test_without_k_means_the_least_agreeing_system_is_told() -> None:
    shares = [[1, 0.9, 0.4], [0.9, 1, 0], [0.4, 0, 1]]
    content = {"systems": ["rankstats", "dtc", "mcl"], "images": 10, "shares": shares,
               "classes": ["new-1"], "by_class": {"dtc": [0.9], "mcl": [0.4]}}  # fmt: skip
    assert "Ranking statistics and MCL agree on 40.0 %" in agreement.told(content)
    assert "With DTC, closest to it here, it agrees on 90.0 %" in agreement.told(content)
    alone = content | {"systems": ["rankstats", "mcl"], "shares": [[1, 0.4], [0.4, 1]]}
    assert "closest" not in agreement.told(alone)
