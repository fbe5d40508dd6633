"""Time spent in a stage, its images per second, and the moments at which a person is told."""

import time

from torch import Tensor

from autonovel import stopping
from autonovel.training.display import Display

SECONDS_BETWEEN_UPDATES = 0.25


class Stopwatch:
    """Counts the steps of one stage."""

    def __init__(self, display: Display, stage: str, before: float) -> None:
        self.display, self.stage, self.before = display, stage, before
        self.start = self.told = time.monotonic()
        self.images, self.rate = 0, 0.0

    def seconds(self) -> float:
        """Return the seconds spent in this stage, earlier parts included."""
        return self.before + time.monotonic() - self.start

    def tick(self, done: int, images: int, terms: dict[str, Tensor]) -> None:
        """Count a step; now and then, read the terms (the only wait for the device) and show them."""
        stopping.check()
        self.images += images
        if time.monotonic() - self.told < SECONDS_BETWEEN_UPDATES:
            return
        values = {name: float(value) for name, value in terms.items()}
        now = time.monotonic()  # after the wait: steps are queued faster than a busy device takes them
        self.rate, self.images, self.told = self.images / (now - self.told), 0, now
        self.display.update(self.stage, done, values, self.rate)
