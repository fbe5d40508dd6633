"""How a run is made, whatever it is a run of."""

import time
from dataclasses import dataclass
from pathlib import Path

from autonovel.errors import UsageError
from autonovel.settings import ALL_STAGES

STARTED = time.monotonic()  # imported by a command as its first act: the total time counts from here


@dataclass(frozen=True)
class Manner:
    """What a person says of a run besides its recipe, seed and place.

    Attributes:
        device: ``cpu``, ``cuda``, ``mps`` or ``auto``.
        resume: go on with the run in its folder, if there is one.
        overwrite: replace the run in its folder.
        keep_going: warn where a guard would stop.
        stages: those that are trained.
        bases: runs from which stages 1 and 2 are taken over where the two may share them.
        started: from when its time counts, by ``time.monotonic``.
    """

    device: str = "auto"
    resume: bool = False
    overwrite: bool = False
    keep_going: bool = False
    stages: tuple[int, ...] = ALL_STAGES
    bases: tuple[Path, ...] = ()
    started: float = STARTED

    def check_place(self, folder: Path) -> None:
        """Say so if a run in ``folder`` stands in the way."""
        if self.resume and self.overwrite:
            raise UsageError("--resume keeps the run in --out and --overwrite replaces it; give one of them.")
        if not (self.resume or self.overwrite) and (folder / "run.json").exists():
            raise UsageError(
                f"{folder} holds a run already. Finish it, or see its table again, with --resume; replace it with "
                "--overwrite; or choose another folder with --out."
            )
