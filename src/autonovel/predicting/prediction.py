"""Later images: which class of a finished run each belongs to, in the columns of ``discovery.csv``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from autonovel import device as devices
from autonovel import recipe, record
from autonovel.data.files import printable
from autonovel.delivered import load_model
from autonovel.discovery import UNREADABLE
from autonovel.editing.edited import EditedRun
from autonovel.editing.found import COLUMNS
from autonovel.editing.sorting import JUNK, JUNK_NAME
from autonovel.embedding import Embedding
from autonovel.networks.folded import folded
from autonovel.predicting.answers import Answers, Distances, Floats
from autonovel.predicting.judging import Judged, judge_files, pixels_of

DECIMALS = 4  # as discovery.csv has
Row = dict[str, Any]


class Predictor:
    """The model of a finished run, what its answers mean by now, and how far its training images spread.

    Args:
        run: folder of a finished run.
        device: ``cpu``, ``cuda``, ``mps`` or ``auto``.
    """

    def __init__(self, run: Path, device: str = "auto") -> None:
        facts = record.finished_facts(run)
        settings = recipe.restore(facts["recipe"])
        self.device = devices.pick(device)
        self.precision = devices.precision(settings.network.precision, self.device)
        edited = EditedRun(run)
        sorting = edited.sorting
        self.answers = Answers.corrected(sorting)
        stored = Embedding.load(run / "embedding.safetensors")
        self.distances = Distances(stored.z, sorting.class_of[edited.seen])
        self.joint = self.answers.joint(stored)
        answered = sorting.answer_matrix()[0 if self.joint else sorting.n_known :]
        self.possible = answered.any(axis=0)  # the classes by number, and junk, that the model can answer with
        self.pixels = pixels_of(settings.data, facts["images"], self.device)
        self.model = folded(load_model(run)).to(self.device)
        self.model.precision = self.precision

    def rows(self, paths: Iterator[str], batch: int = 0) -> Iterator[list[Row]]:
        """Yield a row per file under the names of ``COLUMNS``, a batch at a time; None stands for nothing.

        Args:
            paths: asked for as they are needed.
            batch: images at once; 0 chooses.
        """
        with devices.torch_settings(self.precision):
            for judged in judge_files(self.model, paths, self.pixels, batch):
                yield self._rows(judged)

    def _rows(self, judged: Judged) -> list[Row]:
        answered = iter(self._answered(judged.found))
        out = []
        for place, path in enumerate(judged.paths):
            name = printable(path)
            row: Row = dict.fromkeys(COLUMNS)
            reason = judged.unreadable.get(place)
            row |= {"id": name, "path": name} | (
                next(answered) if reason is None else {"status": f"{UNREADABLE}: {reason}"}
            )
            out.append(row)
        return out

    def _answered(self, found: Embedding) -> list[Row]:
        """Return the columns that the model fills, a row per image."""
        names, n_known = self.answers.names, self.answers.n_known
        p = self.answers.probabilities(found)
        best = self.answers.best(p)
        every = np.arange(len(p))
        confidence = p[every, best]  # JUNK, −1, is the last column
        second, second_p = self._second(p, best)
        known = p[:, :n_known] if self.joint else found.p_known.numpy()
        columns = {
            "status": ["ok" if number != JUNK else JUNK_NAME for number in best.tolist()],
            "class_id": [number if number != JUNK else None for number in best.tolist()],
            "class_name": [names.get(number) for number in best.tolist()],
            "confidence": _rounded(confidence),
            "second_class": second,
            "margin": _rounded(confidence - second_p),
            "nearest_known": [names[number] for number in known.argmax(axis=1).tolist()],
            "looks_known": _rounded(known.sum(axis=1)) if self.joint else [None] * len(p),
            "outlier": _rounded(self.distances.ranks(found.z, best)),
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _second(self, p: Floats, best: Any) -> tuple[list[str | None], Floats]:
        """Return name and probability of the class that comes second; none where there is no other."""
        others = np.where(self.possible, p, -1)
        others[np.arange(len(p)), best] = -1
        second, value = others.argmax(axis=1), others.max(axis=1)
        called = {**self.answers.names, p.shape[1] - 1: JUNK_NAME}
        named = [called[number] if top >= 0 else None
                 for number, top in zip(second.tolist(), value.tolist(), strict=True)]  # fmt: skip
        return named, np.maximum(value, 0)


def _rounded(values: Any) -> list[float | None]:
    """Return numbers with four decimals, None for what is no number."""
    return [None if value != value else round(value, DECIMALS) for value in np.asarray(values, np.float64).tolist()]
