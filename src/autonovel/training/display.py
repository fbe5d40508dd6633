"""Where a run's progress goes: a terminal, a log, another process, or nowhere."""

from typing import Protocol


class Display(Protocol):
    """What the pipeline and the loop tell a person."""

    def say(self, text: str) -> None:
        """Show a line of text."""

    def begin(self, stage: str, total: int, done: int, of: str = "steps") -> None:
        """Announce a stage of ``total`` steps (or what else it is made ``of``), of which ``done`` are behind us."""

    def update(self, stage: str, done: int, terms: dict[str, float], images_per_second: float) -> None:
        """Show how far a stage is, with its loss terms by name."""

    def end(self, stage: str) -> None:
        """Close a stage."""


class Silent:
    """Shows nothing."""

    def say(self, text: str) -> None:
        """Ignore a line."""

    def begin(self, stage: str, total: int, done: int, of: str = "steps") -> None:
        """Ignore a stage."""

    def update(self, stage: str, done: int, terms: dict[str, float], images_per_second: float) -> None:
        """Ignore progress."""

    def end(self, stage: str) -> None:
        """Ignore an end."""
