"""New classes that may be known ones after all, by where their features lie."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from autonovel import Discoverer, open_run
from autonovel.commands.discover import _outcome
from autonovel.known_again import FEWEST, MOST, NEAR, known_again
from autonovel.report import gather
from autonovel.report.subject import corrected
from autonovel.review.view import View

PLACES = ((0.0, 0.0), (10.0, 0.0), (0.0, 30.0))  # of the known classes: the two nearest are 10 apart


def classes(*places: tuple[float, float], each: int = 40, spread: float = 1.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return features of classes around ``places``, and the class of each."""
    made = torch.Generator().manual_seed(seed)
    z = torch.cat([torch.tensor(place) + spread * torch.randn(each, 2, generator=made) for place in places])
    return z, torch.arange(len(places)).repeat_interleave(each)


def in_loops(z: Tensor, class_id: Tensor, n_known: int) -> dict[int, int]:
    """Do the same image by image: how far apart two classes are is known from one image of each and another pair."""
    x, of = z.double().numpy(), class_id.numpy()

    def apart(one: int, other: int) -> float:
        a, b = x[of == one], x[of == other]
        total = 0.0  # the product of two differences, of which no image is in both, has no bias
        for i in range(len(a)):
            for j in range(len(a)):
                for m in range(len(b)):
                    for n in range(len(b)):
                        if i != j and m != n:
                            total += float((a[i] - b[m]) @ (a[j] - b[n]))
        return total / (len(a) * (len(a) - 1) * len(b) * (len(b) - 1))

    there = [c for c in range(int(of.max()) + 1) if (of == c).sum() >= FEWEST]
    known = [c for c in there if c < n_known]
    nearest = min((apart(a, b) for a in known for b in known if a < b), default=0.0)
    found = {}
    for new in there:
        if new >= n_known and nearest > 0:
            distance, like = min((apart(new, c), c) for c in known)
            if distance < NEAR * nearest:
                found[new] = like
    return found


@pytest.mark.parametrize("seed", range(6))
def test_it_is_what_loops_over_pairs_of_images_say(seed: int) -> None:
    near = [(x / 2, y / 2) for x, y in torch.randint(-4, 24, (3, 2), generator=torch.Generator().manual_seed(seed))]
    places = (*PLACES, *((float(x), float(y)) for x, y in near))
    z, class_id = classes(*places, each=6, spread=3.0, seed=seed)
    assert known_again(z, class_id, 3) == in_loops(z, class_id, 3)


def test_a_class_where_a_known_one_lies_is_that_one_and_others_are_new() -> None:
    z, class_id = classes(*PLACES, (0.5, 0.5), (0.0, 29.0), (5.0, 4.0), (40.0, 40.0))
    assert known_again(z, class_id, 3) == {3: 0, 4: 2}
    shown, _ = classes(*PLACES, (0.5, 0.5), (0.0, 29.0), (5.0, 4.0), (40.0, 40.0), spread=6.0, each=400)
    assert known_again(shown, class_id.repeat_interleave(10), 3) == {3: 0, 4: 2}, "images may be wider than classes lie"


def test_few_images_and_known_classes_that_are_one_to_the_network_tell_nothing() -> None:
    z, class_id = classes(*PLACES, (0.0, 0.0))
    few = (class_id < 3) | (torch.arange(len(z)) >= len(z) - (FEWEST - 1))
    assert known_again(z[few], class_id[few], 3) == {}
    assert known_again(z, class_id, 1) == {}
    z[class_id == 1] = z[class_id == 0]
    assert known_again(z, class_id, 3) == {}
    assert known_again(*classes(*PLACES), 3) == {}


def test_of_many_images_a_sample_is_looked_at() -> None:
    z, class_id = classes(*PLACES, (0.5, 0.5), each=2 * MOST)
    half = torch.arange(len(z)) % 2 == 1
    z[half] = torch.nan
    assert known_again(z, class_id, 3) == {3: 0}


def told_in(finished: Path) -> Path:
    results = json.loads((finished / "results.json").read_text())
    (finished / "results.json").write_text(json.dumps(results | {"known_again": {"new-2": "3", "new-4": "0"}}))
    return finished


def test_whoever_looks_at_a_run_is_told_of_it(finished: Path) -> None:
    assert " features, " not in "\n".join(_outcome(finished))
    run = open_run(told_in(finished))
    told = "\n".join(_outcome(finished))
    assert "By their features, new-2 may be 3, new-4 may be 0, known classes: look, and merge what is the same." in told
    hints = {one["name"]: one["known_again"] for one in View(run).state()["classes"]}
    assert {name: like for name, like in hints.items() if like is not None} == {"new-2": 3, "new-4": 0}
    run.rename("new-2", "dry")
    run.merge("0", "new-4")
    results = json.loads((finished / "results.json").read_text())
    assert gather.headline(corrected(run)[0], results).hint.startswith(
        "By its features, dry may be 3, a known class: look"
    )


@pytest.mark.parametrize("spoilt", [None, "{"])
def test_for_want_of_a_hint_nobody_is_kept_from_looking(finished: Path, spoilt: str | None) -> None:
    if spoilt is None:
        (finished / "results.json").unlink()
    else:
        (finished / "results.json").write_text(spoilt)
    assert {one["known_again"] for one in View(open_run(finished)).state()["classes"]} == {None}


def test_a_known_class_in_the_pile_is_found_again(tmp_path: Path) -> None:
    made = np.random.default_rng(0)
    patterns = made.integers(0, 256, (5, 1, 1, 12, 12))  # three known ones and two new
    each, shown = 24, [0, 1, 2, 3, 4, 1]  # of the last, a known one, there are unlabelled images too
    noise = made.normal(0, 12, (len(shown), each, 1, 12, 12))
    images = np.clip(patterns[shown] + noise, 0, 255).astype(np.uint8).reshape(-1, 1, 12, 12)
    y = np.repeat([0, 1, 2, -1, -1, -1], each)
    settings = {"pretrain.epochs": 1, "supervised.epochs": 0, "run.report": False, "data.size": 0}
    fit = Discoverer(n_new=3, method="kmeans", settings=settings, out=tmp_path / "run", device="cpu").fit(images, y)
    found = open_run(tmp_path / "run").known_again
    assert found == {int(np.bincount(fit.labels_[-each:]).argmax()): 1}
