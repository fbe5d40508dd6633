"""What a person is told of the speed of a stage."""

from typing import Any

import pytest

from autonovel.training import stopwatch
from autonovel.training.display import Silent


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Slow:
    """A term whose value comes when the device has caught up with the steps queued for it."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock, self.seconds = clock, seconds

    def __float__(self) -> float:
        self.clock.now += self.seconds
        return 1.0


class Told(Silent):
    """A display that keeps the speeds it is told."""

    def __init__(self) -> None:
        self.rates: list[float] = []

    def update(self, stage: str, done: int, terms: dict[str, float], images_per_second: float) -> None:
        self.rates.append(images_per_second)


def test_the_wait_for_a_busy_device_belongs_to_the_steps_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the step after it, alone, is held to have taken all that time."""
    clock, display = Clock(), Told()
    monkeypatch.setattr(stopwatch, "time", clock)
    watch = stopwatch.Stopwatch(display, "3-joint", 0.0)
    terms: Any = {"loss": Slow(clock, 0.9)}
    for step in range(30):  # ten steps are queued in 0.1 s
        clock.now += 0.01
        watch.tick(step + 1, 128, terms)
    assert display.rates == [pytest.approx(26 * 128 / 1.16, rel=0.1)]
    assert watch.images < 10 * 128


def test_earlier_parts_count_in_the_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(stopwatch, "time", clock)
    watch = stopwatch.Stopwatch(Told(), "3-joint", 40.0)
    clock.now += 2.0
    assert watch.seconds() == pytest.approx(42.0)
