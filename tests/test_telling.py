"""Long passes over images say how far they are, and can be stopped."""

from collections.abc import Iterator

import pytest
import torch

from autonovel import networks, stopping
from autonovel.embedding import features
from autonovel.training import telling
from autonovel.training.display import Silent


class Told(Silent):
    """A display that remembers."""

    def __init__(self) -> None:
        self.news: list[tuple[object, ...]] = []

    def begin(self, stage: str, total: int, done: int, of: str = "steps") -> None:
        self.news.append(("begin", stage, total, done, of))

    def update(self, stage: str, done: int, terms: dict[str, float], images_per_second: float) -> None:
        assert images_per_second > 0
        self.news.append(("update", stage, done))

    def end(self, stage: str) -> None:
        self.news.append(("end", stage))


def chunks(sizes: tuple[int, ...]) -> Iterator[torch.Tensor]:
    return (torch.zeros(size) for size in sizes)


def told(sizes: tuple[int, ...]) -> list[tuple[object, ...]]:
    display = Told()
    with telling.telling(display):
        passed = list(telling.watched(chunks(sizes), sum(sizes), "features"))
    assert [len(chunk) for chunk in passed] == list(sizes)
    return display.news


def test_a_short_pass_says_nothing() -> None:
    assert told((2, 2, 1)) == []


def test_a_long_pass_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "MOMENT", -1.0)
    assert told((2, 2, 1)) == [
        ("begin", "features", 5, 2, "images"),
        ("update", "features", 2), ("update", "features", 4), ("update", "features", 5),
        ("end", "features"),
    ]  # fmt: skip
    assert told((3,)) == []  # what ends at once needs no bar


def test_only_who_is_told_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "MOMENT", -1.0)
    outer, inner = Told(), Told()
    with telling.telling(outer), telling.telling(inner, "kcl"):
        list(telling.watched(chunks((1, 1)), 2, "features"))
    list(telling.watched(chunks((1, 1)), 2, "features"))
    assert inner.news[0] == ("begin", "features kcl", 2, 1, "images") and not outer.news


def test_features_of_many_images_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "MOMENT", -1.0)
    monkeypatch.setattr("autonovel.embedding.CHUNK", 4)
    model = networks.build("small", 3, torch.zeros(3), torch.ones(3), seed=0)
    pixels, display = torch.zeros(10, 3, 8, 8, dtype=torch.uint8), Told()
    with telling.telling(display):
        assert features(model, pixels).shape == (10, model.trunk.n_features)
    assert display.news[0] == ("begin", "features", 10, 4, "images") and display.news[-1] == ("end", "features")


def test_a_long_pass_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    class AskedError(Exception):
        pass

    def asked() -> None:
        raise AskedError

    passes = telling.watched(chunks((1, 1)), 2, "features")
    next(passes)
    monkeypatch.setattr(stopping, "check", asked)
    with pytest.raises(AskedError):
        next(passes)
