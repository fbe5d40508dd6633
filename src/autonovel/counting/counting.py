"""Counting the new classes of a run, where nobody said how many there are."""

import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from autonovel import draws, record
from autonovel.clustering.count import Points, estimate, sweep
from autonovel.clustering.metric import class_metric
from autonovel.counting.checks import Check
from autonovel.counting.features import stage_features, without
from autonovel.counting.probes import Probes, probe_sets
from autonovel.counting.words import checked, combined, in_words
from autonovel.data import ImageSet
from autonovel.job import Job
from autonovel.settings import Count, Recipe
from autonovel.storage.documents import read_json, write_json
from autonovel.storage.shapes import COUNT, read_shaped
from autonovel.tables import paper

AUTO, PUBLISHED = "auto", "published"


def wanted(settings: Recipe, of_source: int) -> int | None:
    """Return the number of new classes a recipe asks for: its own, DTC's, that of its source, or None to count them."""
    asked = settings.count.new_classes
    if asked == PUBLISHED:
        return paper.stored_estimate(settings.data.source, settings.data.alphabet or settings.data.subset)
    return None if asked == AUTO else int(asked) if asked else of_source


def begun_with(folder: Path) -> int:
    """Return the number of new classes of the run in ``folder``; 0 where there is none, or it is still to be counted.

    Runs once took it from the table of truth of a person's own files; these go on with it.
    """
    path = folder / "run.json"
    return int(read_json(path).get("n_new") or 0) if path.exists() else 0


def number_of_new_classes(job: Job) -> int:
    """Return the number of new classes of a run, counting them if neither the job nor an earlier part knows it."""
    if job.n_new is not None:
        return job.n_new
    known: int | None = job.ranks.lead(lambda: read_json(job.folder / "run.json").get("n_new"))
    if known is not None:
        return int(known)
    found = job.ranks.lead(lambda: _counted_before(job)) or count(job)
    number = taken(found, job.recipe.count)
    job.ranks.alone(lambda: record.counted(job.folder, number))
    job.display.say(f"{in_words(found)}{why_taken(number, found, job.recipe.count)}")
    return number


def _counted_before(job: Job) -> dict[str, Any] | None:
    """Return the count in the run folder, if it was made with the settings of this run."""
    path = job.folder / "count.json"
    if not path.exists():
        return None
    found = read_shaped(path, COUNT, ("estimate", "settings", "seed", "seconds"))
    own = json.loads(json.dumps({"settings": asdict(job.recipe.count), "seed": job.seed}))  # as written and read
    if {key: found[key] for key in own} == own:
        return found
    job.display.say(f"{path} was counted with other settings than this run has: counting anew.")
    return None


def taken(found: dict[str, Any], settings: Count) -> int:
    """Return the number of classes to train with, given what a count found: the estimate and what is to spare."""
    return max(math.ceil(round(int(found["estimate"]) * (1 + settings.spare), 9)), 2)  # 50 + 10 % are 55, not 56


def why_taken(number: int, found: dict[str, Any], settings: Count) -> str:
    """Return a remark on the number of classes to train with, where it is not the estimate."""
    if number == int(found["estimate"]):
        return ""
    spare = f"with {number} of them, {settings.spare:.0%} to spare (count.spare)"
    return f" Training goes on {spare}." if settings.spare else " (at least two are needed to go on)"


def seconds_spent(job: Job) -> dict[str, float]:
    """Return the time a run spent on counting, if it did."""
    path = job.folder / "count.json"
    asked = job.recipe.count.new_classes == AUTO and path.exists()
    return {"count": float(read_json(path)["seconds"])} if asked else {}


def count(job: Job) -> dict[str, Any]:
    """Estimate the number of new classes and write ``count.json`` and its picture; return what was written.

    Args:
        job: a run, its images at the size the network sees; stages it lacks are trained first.
    """
    sets = probe_sets(job.train, job.recipe, job.seed)
    hidden = tuple(number for chosen in sets for number in chosen.classes)
    taught = without(job.train, hidden)
    parts = stage_features(job, taught, hidden)
    return job.ranks.lead(lambda: count_from(job, taught, sets, parts))


def count_from(job: Job, taught: ImageSet, sets: list[Probes], parts: list[Tensor]) -> dict[str, Any]:
    """Estimate from the features of every image; write and return what was found."""
    settings, start, x = job.recipe.count, time.monotonic(), parts[-1]
    if settings.features != "plain":
        x = class_metric(parts, taught.y, settings.shrinkage, settings.dimensions, settings.directions)
    counting = _most_likely if settings.criterion == "icl" else _by_probes
    free = sampled(job.train.unlabelled, settings.images, job.seed)
    content = counting(job, sets, x, free, start)
    total, counted = int(job.train.unlabelled.sum()), int(free.sum())
    if counted < total:
        content["assumed"].insert(1, f"{counted:,} of {total:,} unlabelled images were counted, drawn at random.")
    job.display.end("count")
    _draw(job, content)
    write_json(job.folder / "count.json", content)  # last: where it is there, nothing is counted or drawn again
    return content


def sampled(unlabelled: Tensor, most: int, seed: int) -> Tensor:
    """Return which images are counted, as a mask: all unlabelled ones, or ``most`` of them drawn at random."""
    rows = unlabelled.nonzero()[:, 0]
    if len(rows) <= most:
        return unlabelled
    chosen = rows[torch.randperm(len(rows), generator=draws.generator(seed, 45))[:most]]
    return torch.zeros_like(unlabelled).index_fill(0, chosen, value=True)


def _by_probes(job: Job, sets: list[Probes], x: Tensor, free: Tensor, start: float) -> dict[str, Any]:
    """Return the mean of what the sets of probe classes say, each clustered together with the unlabelled images."""
    settings, found = job.recipe.count, []
    tell = _Progress(job, settings, len(sets))
    for chosen in sets:
        found.append(estimate(_points(job, x, free, chosen), settings, job.seed, tell))
        tell.next_set()
    return combined(job, settings, sets, found, time.monotonic() - start)


def _most_likely(job: Job, sets: list[Probes], x: Tensor, free: Tensor, start: float) -> dict[str, Any]:
    """Return the count of the unlabelled images by themselves, and how far that of each set of probe classes is off."""
    settings = job.recipe.count
    sets = [chosen for chosen in sets if chosen.classes]
    tell = _Progress(job, settings, 1 + len(sets))
    found = estimate(Points.unlabelled(x[free]), settings, job.seed, tell)
    checks = []
    for chosen in sets:
        tell.next_set()
        own = Points.unlabelled(x[torch.isin(job.train.y, torch.tensor(chosen.classes))])
        checks.append(Check(chosen, sweep(own, settings, job.seed, lambda: tell(1)).number))
    return checked(job, settings, checks, found, time.monotonic() - start)


def _points(job: Job, x: Tensor, free: Tensor, chosen: Probes) -> Points:
    """Return the features of the ``free`` images and of the probe classes; known classes that teach have no part."""
    probe = torch.full_like(job.train.y, -2)
    probe[free] = -1
    for number in chosen.classes:
        probe[job.train.y == number] = number
    rows = probe > -2
    x = x[rows].to(job.device if job.device.type == "cuda" else "cpu")
    return Points(x, probe[rows].to(x.device), chosen.anchors)


class _Progress:
    """Tells the display how far a count is: about as many clusterings for each half as for the whole."""

    def __init__(self, job: Job, settings: Count, sets: int) -> None:
        self.display, self.images = job.display, len(job.train)
        each = 1 if settings.criterion == "icl" else settings.most if settings.search == "exhaustive" else 40
        self.each = each * (1 + settings.halves)
        self.total, self.before = self.each * sets, 0
        self.display.begin("count", self.total, 0, "clusterings")
        self.start = time.monotonic()

    def next_set(self) -> None:
        """Go on to the next set of probe classes."""
        self.before += self.each

    def __call__(self, made: int) -> None:
        made = self.before + min(made, self.each)
        rate = made * self.images / max(time.monotonic() - self.start, 1e-9)
        self.display.update("count", made, {}, rate)


def _draw(job: Job, content: dict[str, Any]) -> None:
    """Write the curve as a picture; the drawing library may be missing where a run only trains."""
    try:
        from autonovel.report.count_picture import write_picture

        write_picture(job.folder / "count.png", content)
    except ImportError as error:
        job.display.say(f"No picture of the count was drawn: it needs the package {error.name}.")
