"""Counting the new classes of a run: features that never saw the probe classes, the estimate, ``count.json``.

Stage 1 uses no labels and is the run's own.  Stage 2 is the run's own too where no known class plays a new one;
otherwise it is trained anew without those classes, under ``count/`` in the run folder.
"""

import math
import statistics
import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from autonovel import paper, record, writing
from autonovel.clustering import search
from autonovel.clustering.count import Estimate, Points, estimate
from autonovel.clustering.metric import class_metric
from autonovel.data import ImageSet
from autonovel.embedding import features
from autonovel.methods.pretrained_kmeans import own_features
from autonovel.methods.supervised import Supervised
from autonovel.probes import FEWEST_PROBES, FEWEST_TAUGHT, Probes, probe_sets
from autonovel.run_folder import FORMAT, explained, read_json, write_json
from autonovel.settings import Count, Recipe
from autonovel.training.loop import run_stage
from autonovel.variants import PROBES

if TYPE_CHECKING:
    from autonovel.pipeline import Job

AUTO, PUBLISHED = "auto", "published"


def wanted(settings: Recipe, of_source: int) -> int | None:
    """Return the number of new classes a recipe asks for: its own, DTC's, that of its source, or None to count them."""
    asked = settings.count.new_classes
    if asked == PUBLISHED:
        return paper.stored_estimate(settings.data.source, settings.data.alphabet or settings.data.subset)
    return None if asked == AUTO else int(asked) if asked else of_source


def number_of_new_classes(job: "Job") -> int:
    """Return the number of new classes of a run, counting them if neither the job nor an earlier part knows it."""
    if job.n_new is not None:
        return job.n_new
    known: int | None = job.ranks.lead(lambda: read_json(job.folder / "run.json").get("n_new"))
    if known is not None:
        return int(known)
    path = job.folder / "count.json"
    found = job.ranks.lead(lambda: read_json(path) if path.exists() else None) or count(job)
    number = max(int(found["estimate"]), 2)
    job.ranks.alone(lambda: record.counted(job.folder, number))
    raised = " (at least two are needed to go on)" if number > int(found["estimate"]) else ""
    job.display.say(f"{in_words(found)}{raised}")
    return number


def seconds_spent(job: "Job") -> dict[str, float]:
    """Return the time a run spent on counting, if it did."""
    path = job.folder / "count.json"
    asked = job.recipe.count.new_classes == AUTO and path.exists()
    return {"count": float(read_json(path)["seconds"])} if asked else {}


def count(job: "Job") -> dict[str, Any]:
    """Estimate the number of new classes and write ``count.json`` and its picture; return what was written.

    Args:
        job: a run, its images at the size the network sees; stages it lacks are trained first.
    """
    sets = probe_sets(job.train, job.recipe, job.seed)
    hidden = tuple(number for chosen in sets for number in chosen.classes)
    taught = without(job.train, hidden)
    parts = stage_features(job, taught, hidden)
    return job.ranks.lead(lambda: _counted(job, taught, sets, parts))


def _counted(job: "Job", taught: ImageSet, sets: list[Probes], parts: list[Tensor]) -> dict[str, Any]:
    """Estimate from features; write and return what was found."""
    settings, start, x = job.recipe.count, time.monotonic(), parts[-1]
    if settings.features != "plain":
        x = class_metric(parts, taught.y, settings.shrinkage, settings.dimensions, settings.directions)
    tell = _Progress(job, settings, len(sets))
    found = []
    for chosen in sets:
        found.append(estimate(_points(job, x, chosen), settings, job.seed, tell))
        tell.next_set()
    job.display.end("count")
    content = _combined(job, settings, sets, found, time.monotonic() - start)
    _draw(job, content)
    write_json(job.folder / "count.json", content)  # last: where it is there, nothing is counted or drawn again
    return content


def _points(job: "Job", x: Tensor, chosen: Probes) -> Points:
    """Return the features of the unlabelled images and of the probe classes; known classes that teach have no part."""
    probe = torch.full_like(job.train.y, -2)
    probe[job.train.unlabelled] = -1
    for number in chosen.classes:
        probe[job.train.y == number] = number
    rows = probe > -2
    x = x[rows].to(job.device if job.device.type == "cuda" else "cpu")
    return Points(x, probe[rows].to(x.device), chosen.anchors)


def without(images: ImageSet, classes: tuple[int, ...]) -> ImageSet:
    """Return the images with the labels of ``classes`` hidden and the other known classes numbered anew."""
    kept = [number for number in range(images.n_known) if number not in classes]
    renumbered = torch.full((images.n_known + 1,), -1)  # the last place serves unlabelled images, whose y is −1
    renumbered[kept] = torch.arange(len(kept))
    names = tuple(images.class_names[number] for number in kept)
    return replace(images, y=renumbered[images.y], class_names=names, truth=None, new_names=())


def stage_features(job: "Job", taught: ImageSet, hidden: tuple[int, ...]) -> list[Tensor]:
    """Return the features after stage 1, where it taught any, and after stage 2."""
    from autonovel import pipeline

    r = job.recipe
    pretrained = r.pretrain.kind in ("rotation", "prototypical", "weights", "imagenet")
    stage_1 = r.pretrain if pretrained else replace(r.pretrain, kind="none")
    no_labels = replace(r, pretrain=stage_1, supervised=replace(r.supervised, epochs=0))
    model, _ = pipeline.extractor(replace(job, recipe=no_labels))
    parts = [own_features(model, job.train)] if pretrained else []
    if not r.supervised.epochs or (parts and r.count.features == "pretrained"):
        return parts or [features(model, job.train.images)]
    stage = pipeline.shared_stages(job)["supervised"]
    folder, label = job.folder, ""
    if hidden:
        assert isinstance(stage, Supervised)
        stage, folder, label = replace(stage, n_known=taught.n_known), job.folder / "count", "without probes"
        job.ranks.alone(lambda: _forget_other_probes(job, hidden))
    run_stage(model, stage, taught, job.context(folder, label))
    return [*parts, features(model, job.train.images)]


def _forget_other_probes(job: "Job", hidden: tuple[int, ...]) -> None:
    """Drop a stage 2 that was trained without other classes than these."""
    note = job.folder / "count" / PROBES
    content = {"probes": list(hidden)}
    if not note.exists() or read_json(note) != content:
        with explained(job.folder):
            writing.remove(job.folder / "count")
        write_json(note, content)


class _Progress:
    """Tells the display how far a count is: about as many clusterings for each half as for the whole."""

    def __init__(self, job: "Job", settings: Count, sets: int) -> None:
        self.display, self.images = job.display, len(job.train)
        each = settings.most if settings.search == "exhaustive" else 40
        self.each = each * (1 + settings.halves)
        self.total, self.before = self.each * sets, 0
        self.display.begin("count", self.total, 0)
        self.start = time.monotonic()

    def next_set(self) -> None:
        """Go on to the next set of probe classes."""
        self.before += self.each

    def __call__(self, made: int) -> None:
        made = self.before + min(made, self.each)
        rate = made * self.images / max(time.monotonic() - self.start, 1e-9)
        self.display.update("count", made, {}, rate)


def _combined(job: "Job", settings: Count, sets: list[Probes], found: list[Estimate], seconds: float) -> dict[str, Any]:
    """Return what all sets of probe classes say: the mean, rounded up, with the curve of the set nearest to it."""
    number = math.ceil(statistics.mean(estimate.number for estimate in found))
    nearest = min(range(len(found)), key=lambda place: abs(found[place].number - number))
    content = _content(job, settings, sets[nearest], found[nearest], seconds)
    if len(sets) > 1:
        said = {chosen.group: estimate.number for chosen, estimate in zip(sets, found, strict=True)}
        low, high = min(estimate.low for estimate in found), max(estimate.high for estimate in found)
        content |= {"estimate": number, "low": low, "high": high, "groups": said}
        words = ", ".join(f"{group} {count}" for group, count in said.items())
        content["assumed"].insert(1, f"The mean of what {len(said)} groups of known classes say, rounded up: {words}.")
    return content


def _content(job: "Job", settings: Count, chosen: Probes, found: Estimate, seconds: float) -> dict[str, Any]:
    names, curve = job.train.class_names, found.curve
    return {
        "format": FORMAT,
        "estimate": found.number,
        "low": found.low,
        "high": found.high,
        "true": len(job.train.new_names) or None,
        "candidate": curve.candidate,
        "tops": dict(zip(("silhouette", "accuracy"), curve.tops, strict=False)),
        "curve": [
            {
                "classes": c,
                "silhouette": values[0],
                "accuracy": values[1] if len(values) > 1 else None,
                "decides": c in curve.silhouette,
            }
            for c, values in curve.seen.items()
        ],
        "halves": list(found.halves),
        "probes": [names[number] for number in chosen.classes],
        "anchors": [names[number] for number in chosen.anchors],
        "assumed": _assumed(job, settings, chosen, found),
        "settings": asdict(settings),
        "seed": job.seed,
        "seconds": seconds,
    }


def _assumed(job: "Job", settings: Count, chosen: Probes, found: Estimate) -> list[str]:
    """Return what the estimate rests on, in sentences."""
    names, n_known = job.train.class_names, job.train.n_known
    said = ["Every unlabelled image is of a new class, none of a known one."]
    if chosen.classes:
        rest = [names[number] for number in chosen.classes[chosen.n_anchors :]]
        of_group = f" ({chosen.group})" if chosen.group else ""
        stage = "pretraining" if job.recipe.pretrain.kind == "prototypical" else "stage 2"
        untaught = "" if settings.features == "pretrained" else f", and {stage} was trained without them"
        said.append(
            f"{len(chosen.classes)} of {n_known} known classes{of_group} played new ones{untaught}: "
            f"{', '.join(names[number] for number in chosen.anchors)} held in their clusters, {', '.join(rest)} to be "
            "found again. The mean of what their accuracy and the silhouette say decides."
        )
        if job.recipe.pretrain.kind in ("weights", "imagenet"):
            said.append("The pretrained weights did not learn from those classes.")
    elif not settings.probe_share:
        said.append("No known class played a new one (count.probe_share is 0): the silhouette alone decides.")
    else:
        fewest = FEWEST_PROBES + FEWEST_TAUGHT
        said.append(
            f"{n_known} known classes are fewer than {fewest}, too few for some of them to play new ones: "
            "the silhouette alone decides."
        )
    if settings.features != "plain":
        said.append("New classes spread as known ones do: distances are scaled by how images of a known class differ.")
    mixed = ", and more unlabelled images than images of known classes" if chosen.classes and settings.majority else ""
    said.append(f"A new class holds more than {settings.size_ratio:.3g} of the images of the largest one{mixed}.")
    silhouette = {c: values[0] for c, values in found.curve.seen.items()}
    second = search.second_peak(silhouette)
    if second is not None:
        said.append(
            f"The silhouette is highest at {search.top(silhouette)} and nearly as high again at {second}: where "
            "classes fall into groups, the lower of the two may count the groups."
        )
    if found.curve.candidate >= max(found.curve.seen):
        said.append(f"The count stands at the largest number considered, {found.curve.candidate}: raise count.most.")
    else:
        said.append(f"There are at most {max(found.curve.seen)} new classes.")
    return said


def in_words(content: dict[str, Any]) -> str:
    """Return the estimate and its range in a sentence."""
    over = "halves of the images" if content["halves"] else "groups of known classes" if content.get("groups") else ""
    spread = f", {content['low']} to {content['high']} on {over}" if over else ""
    true = f"; there are {content['true']}" if content["true"] else ""
    return f"About {content['estimate']} new classes{spread}{true}."


def _draw(job: "Job", content: dict[str, Any]) -> None:
    """Write the curve as a picture; the drawing library may be missing where a run only trains."""
    try:
        from autonovel.report.count_picture import write_picture

        write_picture(job.folder / "count.png", content)
    except ImportError as error:
        job.display.say(f"No picture of the count was drawn: it needs the package {error.name}.")
