"""What a count says: ``count.json``, and the estimate and what it rests on in sentences."""

import math
import statistics
from dataclasses import asdict
from typing import Any

from autonovel.clustering import search
from autonovel.clustering.count import Estimate
from autonovel.counting.checks import Check, in_a_sentence, stretched
from autonovel.counting.probes import FEWEST_PROBES, FEWEST_TAUGHT, Probes
from autonovel.job import Job
from autonovel.settings import Count
from autonovel.storage.run_folder import FORMAT


def combined(job: Job, settings: Count, sets: list[Probes], found: list[Estimate], seconds: float) -> dict[str, Any]:
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


def checked(job: Job, settings: Count, checks: list[Check], found: Estimate, seconds: float) -> dict[str, Any]:
    """Return what the unlabelled images by themselves say, with a range from known classes that were counted too."""
    content = _content(job, settings, Probes(), found, seconds)
    if checks:
        names = job.train.class_names
        low, high = stretched(found.number, found.low, found.high, checks)
        content |= {
            "low": low,
            "high": high,
            "checks": [
                {"group": check.probes.group, "estimate": check.estimate, "true": check.true} for check in checks
            ],
            "probes": [names[number] for check in checks for number in check.probes.classes],
        }
        content["assumed"].insert(2, in_a_sentence(checks, job.train.n_known))
    return content


def _content(job: Job, settings: Count, chosen: Probes, found: Estimate, seconds: float) -> dict[str, Any]:
    names, curve = job.train.class_names, found.curve
    return {
        "format": FORMAT,
        "estimate": found.number,
        "low": found.low,
        "high": found.high,
        "true": len(job.train.new_names) or None,
        "candidate": curve.candidate,
        "tops": dict(zip((curve.criterion, "accuracy"), curve.tops, strict=False)),
        "curve": [
            {
                "classes": c,
                curve.criterion: values[0],
                "accuracy": values[1] if len(values) > 1 else None,
                "decides": c in curve.index,
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


def _assumed(job: Job, settings: Count, chosen: Probes, found: Estimate) -> list[str]:
    """Return what the estimate rests on, in sentences."""
    names, n_known = job.train.class_names, job.train.n_known
    said = ["Every unlabelled image is of a new class, none of a known one."]
    if settings.criterion == "icl":
        said.append(
            "A new class is a round Gaussian, all of one width, and there are as many as make the completed likelihood "
            "(ICL) highest. The fewer images classes have, the farther apart they must lie to count as two."
        )
    elif chosen.classes:
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
            said.append("The pretrained weights are taken not to have learned from those classes.")
    elif not settings.probe_share:
        said.append("No known class played a new one (count.probe_share is 0): the silhouette alone decides.")
    else:
        fewest = FEWEST_PROBES + FEWEST_TAUGHT
        said.append(
            f"{n_known} known classes are fewer than {fewest}, too few for some of them to play new ones: "
            "the silhouette alone decides."
        )
    if settings.standard_errors:
        error = "a standard error" if settings.standard_errors == 1 else f"{settings.standard_errors:g} standard errors"
        said.append(f"Of the counts whose silhouette is within {error} of the highest, the least is taken.")
    if settings.features != "plain" and settings.shrinkage < 1:
        said.append("New classes spread as known ones do: distances are scaled by how images of a known class differ.")
    if settings.features != "plain" and settings.directions:
        said.append(
            f"New classes differ where known ones do: only the {settings.directions} directions count along which "
            "known classes lie farthest apart."
        )
    mixed = ", and more unlabelled images than images of known classes" if chosen.classes and settings.majority else ""
    said.append(f"A new class holds more than {settings.size_ratio:.3g} of the images of the largest one{mixed}.")
    index = {c: values[0] for c, values in found.curve.seen.items()}
    second = search.second_peak(index) if settings.criterion == "silhouette" else None
    if second is not None:
        said.append(
            f"The silhouette is highest at {search.top(index)} and nearly as high again at {second}: where "
            "classes fall into groups, the lower of the two may count the groups."
        )
    if found.curve.candidate >= max(found.curve.seen):
        more = "raise count.most" if max(found.curve.seen) >= settings.most else "there are too few images for more"
        said.append(f"The count stands at the largest number considered, {found.curve.candidate}: {more}.")
    else:
        said.append(f"There are at most {max(found.curve.seen)} new classes.")
    return said


def range_over(content: dict[str, Any]) -> str:
    """Return over what the range of an estimate was taken, empty if it has none."""
    if content.get("checks"):
        return "if it is as far off as that of known classes"
    if content["halves"]:
        return "on halves of the images"
    return "on groups of known classes" if content.get("groups") else ""


def in_words(content: dict[str, Any]) -> str:
    """Return the estimate and its range in a sentence."""
    spread = f", {content['low']} to {content['high']} {over}" if (over := range_over(content)) else ""
    true = f"; there are {content['true']}" if content["true"] else ""
    return f"About {content['estimate']} new classes{spread}{true}."
