"""Which system to trust, found out without a label of the unlabelled images.

Some known classes play new ones: every system has to find them again among the labelled images, with the other known
classes as its guide.  The one that does best on average over a few such trials delivers; the others stay in the result.
"""

import contextlib
import itertools
import math
import statistics
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from autonovel import draws, record, scoring
from autonovel.batches import fitting_batches
from autonovel.data import ImageSet
from autonovel.data.checks import check_problem
from autonovel.errors import AutonovelError, GuardError
from autonovel.job import Job
from autonovel.labels import LABELS, PIXELS
from autonovel.recipe import flatten, restore
from autonovel.settings import Dtc, Joint, PairClustering, Recipe
from autonovel.storage import writing
from autonovel.storage.documents import write_json
from autonovel.storage.run_folder import FORMAT
from autonovel.storage.shapes import CHOICE, read_shaped
from autonovel.studies.variants import copy_stage
from autonovel.systems import run_system
from autonovel.training.display import Display

FEWEST_HIDDEN, FEWEST_TAUGHT = 2, 2
PRETRAINED = "kmeans-pretrained"
CLEAR = 0.01  # a lead below this is none: the recipe's order decides
FILE = "choice.json"
MOST_TIMES = 3  # that a trial's epochs may exceed the run's
IN_EPOCHS = {"epochs", "start_epochs", "ramp_epochs", "warmup_epochs", "decay_at", "decay_every", "update_every",
             "renew_views"}  # fmt: skip
S = TypeVar("S", Joint, Dtc, PairClustering)


def systems_in_order(job: Job) -> tuple[str, ...]:
    """Return the systems of a run, the one that delivers first: the recipe's own order, or what trials say."""
    systems = job.recipe.run.systems
    candidates = [name for name in systems if name != PIXELS]
    if not job.recipe.run.trials or len(candidates) < 2:
        return systems
    path = job.folder / FILE
    content = job.ranks.lead(lambda: _chosen_before(path)) or _choose(job, candidates)
    chosen = str(content["chosen"])
    job.ranks.alone(lambda: _keep(job, chosen))
    return chosen, *(name for name in systems if name != chosen)


def _chosen_before(path: Path) -> dict[str, Any] | None:
    """Return what the trials said, if they were made."""
    return read_shaped(path, CHOICE, ("chosen", "why", "seconds")) if path.exists() else None


def _keep(job: Job, chosen: str) -> None:
    with contextlib.suppress(OSError):
        writing.remove(job.folder / "choice")
    record.chosen(job.folder, chosen)


def seconds_spent(job: Job) -> dict[str, float]:
    """Return the time a run spent on trials, if it made any."""
    made = _chosen_before(job.folder / FILE)
    return {"trials": float(made["seconds"])} if made else {}


def told(folder: Path) -> str:
    """Return why the system that delivers does so, or nothing where no trial was to be made."""
    made = _chosen_before(folder / FILE)
    return str(made["why"]) if made else ""


def _choose(job: Job, candidates: list[str]) -> dict[str, Any]:
    """Run the trials, write ``choice.json`` and return what was written."""
    start, trials, folder = time.monotonic(), [], job.folder / "choice"
    obstacle = _obstacle(job, candidates)
    if not obstacle:
        hidden = _hidden_each_time(job)
        for number, classes in enumerate(hidden):
            part, called = _Part(job.train, classes), f"trial {number + 1} of {len(hidden)}"
            trials.append(_trial(job, part, called, candidates, folder / str(number)))
    return job.ranks.lead(lambda: _chosen(job, candidates, trials, obstacle, time.monotonic() - start))


def _chosen(
    job: Job, candidates: list[str], trials: list[dict[str, Any]], obstacle: str, seconds: float
) -> dict[str, Any]:
    means = {name: statistics.mean(trial["found"][name] for trial in trials) for name in candidates} if trials else {}
    chosen = _best(means, candidates)
    content = {
        "format": FORMAT,
        "chosen": chosen,
        "why": obstacle or _why(means, chosen, trials),
        "means": means,
        "trials": trials,
        "seconds": seconds,
    }
    write_json(job.folder / FILE, content)
    job.display.say(str(content["why"]))
    return content


def _obstacle(job: Job, candidates: list[str]) -> str:
    """Return in a sentence why no trial can be made, or nothing."""
    n_known = job.train.n_known
    first = LABELS[_untried(candidates)]
    if n_known < FEWEST_HIDDEN + FEWEST_TAUGHT:
        return (
            f"Which system to trust could not be tried out: that takes {FEWEST_HIDDEN + FEWEST_TAUGHT} known classes, "
            f"and there are {n_known}. Chose {first}; --method chooses another."
        )
    if job.recipe.pretrain.learns_labels:
        return (
            "Which system to trust could not be tried out: stage 1 learned from the labels of all "
            f"known classes, so none of them can play a new one. Chose {first}; --method chooses another."
        )
    part = _Part(job.train, _hidden_each_time(job)[0])
    try:
        check_problem(part.images, part.n_hidden, _fitting(job, part), seen=True)
    except AutonovelError as error:
        return f"Which system to trust could not be tried out on the labelled images ({error}) Chose {first}."
    return ""


def _hidden_each_time(job: Job) -> list[list[int]]:
    """Return the known classes that each trial hides; no two hide the same ones, which would tell nothing new."""
    n_known = job.train.n_known
    n_hidden = min(max(n_known // 2, FEWEST_HIDDEN), n_known - FEWEST_TAUGHT)
    times = min(job.recipe.run.trials, math.comb(n_known, n_hidden))
    hidden: list[list[int]] = []
    for number in itertools.count():
        if len(hidden) == times:
            break
        order = torch.randperm(n_known, generator=draws.generator(job.seed, 44, number))
        chosen = order[:n_hidden].sort().values.tolist()
        if chosen not in hidden:
            hidden.append(chosen)
    return hidden


class _Part:
    """The labelled images with some of their classes hidden."""

    def __init__(self, train: ImageSet, hidden: list[int]) -> None:
        self.n_hidden = len(hidden)
        self.hidden = torch.tensor(hidden)
        taught = torch.tensor([row for row in range(train.n_known) if row not in hidden])
        labelled = train.rows((~train.unlabelled).nonzero()[:, 0])
        renumbered = torch.full((train.n_known,), -1)
        renumbered[taught] = torch.arange(len(taught))
        true = torch.cat([taught, self.hidden]).argsort()  # known ones first, as everywhere
        self.images = ImageSet(
            images=labelled.images,
            y=renumbered[labelled.y],
            ids=labelled.ids,
            class_names=tuple(train.class_names[row] for row in taught.tolist()),
            truth=true[labelled.y],
            new_names=tuple(train.class_names[row] for row in self.hidden.tolist()),
        )


def _trial(job: Job, part: _Part, name_of_trial: str, candidates: list[str], folder: Path) -> dict[str, Any]:
    """Return what share of the images of the hidden classes each system puts right."""
    display = _Prefixed(job.display, f"{name_of_trial}: ")
    longer = int(job.train.unlabelled.sum()) / max(int(part.images.unlabelled.sum()), 1)
    recipe = _as_long(_fitting(job, part), longer)
    trial = replace(
        job, recipe=recipe, train=part.images, test=None, n_new=part.n_hidden, folder=folder, display=display
    )
    job.ranks.alone(lambda: _copy_stage_1(job, folder))
    found = {}
    for name in candidates:
        try:
            result = run_system(trial, name, folder / "systems" / name)
        except GuardError as error:  # a system that collapses has found nothing
            display.say(f"{LABELS[name]} failed: {error.seen or error}")
            found[name] = 0.0
            continue
        scores = scoring.system_scores(part.images, result.embedding)
        assert scores is not None
        found[name] = scores["acc"]
    return {"hidden": list(part.images.new_names), "found": found}


def _copy_stage_1(job: Job, folder: Path) -> None:
    """Give a trial what was learned without labels."""
    for stage in sorted((job.folder / "stages").glob("1-*")):
        copy_stage(stage, folder / "stages" / stage.name)


def _fitting(job: Job, part: _Part) -> Recipe:
    """Return the recipe with batches that the fewer images of a trial can fill."""
    free = int(part.images.unlabelled.sum())
    changes = fitting_batches(job.recipe, len(part.images) - free, free, job.ranks.world)
    return restore(flatten(job.recipe) | changes)


def _as_long(recipe: Recipe, factor: float) -> Recipe:
    """Return the recipe with about as many steps on the fewer images of a trial as the run itself will take.

    That is of the stages that learn from images of new classes; of these a trial has fewer.
    """
    times = min(max(factor, 1), MOST_TIMES)
    return replace(
        recipe,
        joint=_stretched(recipe.joint, times),
        incremental=_stretched(recipe.incremental, times),
        dtc=_stretched(recipe.dtc, times),
        kcl=_stretched(recipe.kcl, times),
        mcl=_stretched(recipe.mcl, times),
    )


def _stretched(section: S, times: float) -> S:
    """Return the settings of a stage with all that they count in epochs made longer, and nothing kept on the way."""
    changes: dict[str, Any] = {}
    for name in IN_EPOCHS & {field.name for field in fields(section)}:
        before = getattr(section, name)
        if isinstance(before, tuple):
            changes[name] = tuple(round(times * epoch) for epoch in before)
        else:
            changes[name] = round(times * before) if isinstance(before, int) else times * before
    if isinstance(section, Joint):
        changes |= {"keep_embeddings_at": (), "watch": 0}
    return replace(section, **changes)


def _best(means: dict[str, float], candidates: list[str]) -> str:
    """Return the system with the highest mean, or an earlier one that is hardly worse."""
    if not means:
        return _untried(candidates)
    top = max(means.values())
    return next(name for name in candidates if means[name] > top - CLEAR)


def _untried(candidates: list[str]) -> str:
    """Return the system that delivers where trials cannot tell: k-means on a pretrained network's features, if there.

    With two or three known classes, which allow no trial, ranking statistics found less than it in 19 of 20 splits
    (docs/results/pictures.md).  Where more of them allow none, for want of images, nobody has looked.
    """
    return PRETRAINED if PRETRAINED in candidates else candidates[0]


def _why(means: dict[str, float], chosen: str, trials: list[dict[str, Any]]) -> str:
    """Return the choice and its reason in words."""
    hidden = len(trials[0]["hidden"])
    times = "once" if len(trials) == 1 else f"{len(trials)} times"
    told = ", ".join(f"{LABELS[name]} {100 * mean:.1f} %" for name, mean in sorted(means.items(), key=lambda m: -m[1]))
    lead = "" if means[chosen] == max(means.values()) else " (a lead of less than one point is none)"
    return (
        f"Chose {LABELS[chosen]}{lead}: with {hidden} known classes hidden, {times}, the share of their images found "
        f"again was {told}."
    )


class _Prefixed:
    """Shows which trial a stage belongs to."""

    def __init__(self, display: Display, prefix: str) -> None:
        self.display, self.prefix = display, prefix

    def say(self, text: str) -> None:
        """Show a line of text."""
        self.display.say(self.prefix + text)

    def begin(self, stage: str, total: int, done: int, of: str = "steps") -> None:
        """Announce a stage."""
        self.display.begin(self.prefix + stage, total, done, of)

    def update(self, stage: str, done: int, terms: dict[str, float], images_per_second: float) -> None:
        """Show how far a stage is."""
        self.display.update(self.prefix + stage, done, terms, images_per_second)

    def end(self, stage: str) -> None:
        """Close a stage."""
        self.display.end(self.prefix + stage)
