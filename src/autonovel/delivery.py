"""What a run delivers once its systems are trained: model, embedding, discovery, scores and report."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autonovel import agreement, choosing, discovery, doubts, scoring
from autonovel.editing.edited import EDITS, EditedRun
from autonovel.embedding import Embedding
from autonovel.errors import AutonovelError, PicturesLostError
from autonovel.extraction import shared_stages
from autonovel.job import Job
from autonovel.known_again import known_again
from autonovel.networks import Model
from autonovel.storage.documents import write_json
from autonovel.systems import Found, new_class
from autonovel.training import checkpoint


@dataclass(frozen=True)
class Outcome:
    """What a finished run holds in memory; all of it is in the run folder too.

    ``failures`` are of other systems of the comparison: the run can be used, and resumed it tries them again.
    """

    model: Model
    embedding: Embedding
    discovery: discovery.Discovery
    results: dict[str, Any]
    failures: tuple[AutonovelError, ...] = ()


def deliver(
    job: Job,
    primary: str,
    found: Found,
    records: dict[str, Any],
    seconds: dict[str, float],
    failures: dict[str, AutonovelError],
) -> Outcome:
    """Write the model, the embedding, the discovery, the scores and the report; ``failures`` of others are kept too."""
    checkpoint.save_model(job.folder / "model.safetensors", found.model)
    found.embedding.save(job.folder / "embedding.safetensors")
    result = discovery.discover(job.train, found.embedding)
    result.save(job.folder)
    seconds |= {name: content["seconds"] for name, content in records.items()}
    results = scoring.results(job.folder, records, seconds)
    others = [name for name in job.recipe.run.systems if name != primary]
    if others:
        clusters = new_class(job, found.embedding).numpy()
        new_names = result.names[job.train.n_known :]
        results["agreement"] = agreement.between(primary, clusters, job.folder, others, new_names)
    results["choice"] = choosing.told(job.folder)
    if again := known_again(found.embedding.z, result.class_id, job.train.n_known):
        results["known_again"] = {result.names[new]: result.names[known] for new, known in again.items()}
    if failures:
        results["failed"] = {name: str(error) for name, error in failures.items()}
    doubts.tell_of_a_blind_classifier(job, primary, found.embedding)
    job.display.say("Scored; drawing the map and the report." if job.recipe.run.report else "Scored.")
    drawing = time.monotonic()
    _draw(job, found.embedding, result, results)
    seconds["report"] = time.monotonic() - drawing
    longest = max(content["seconds"] for content in records.values())
    stages = sum(seconds[name] for name in shared_stages(job)) + longest
    seconds["total"] = max(time.monotonic() - job.started, stages)  # a resumed run did its first stages before
    write_json(job.folder / "results.json", results)
    return Outcome(found.model, found.embedding, result, results, tuple(failures.values()))


def follow_corrections(job: Job) -> None:
    """Let what was delivered anew follow a person's corrections, if the run was corrected before it was resumed."""
    if not (job.folder / EDITS).exists():
        return
    EditedRun(job.folder).catch_up()
    if job.recipe.run.report:
        redraw(job)


def redraw(job: Job, data: Path | None = None) -> None:
    """Write the report of a delivered run anew, with all corrections made; ``data`` is where its images lie now."""
    try:
        from autonovel.report.build import PAGE
        from autonovel.report.command import write_corrected_report

        _, missing = write_corrected_report(job.folder, job.folder / PAGE, data, None, 0, job.display, keep=True)
        if missing:
            job.display.say(missing)
    except ImportError as error:
        job.display.say(_no_report(error))
    except PicturesLostError as error:
        job.display.say(str(error))


def _no_report(error: ImportError) -> str:
    return f"No report was written: it needs the package {error.name}. Everything else is there."


def _draw(job: Job, embedding: Embedding, found: discovery.Discovery, results: dict[str, Any]) -> None:
    """Write the report if it is wanted; its drawing libraries may be missing where a run only trains."""
    if not job.recipe.run.report:
        return
    try:
        from autonovel.report import write_report

        write_report(job.folder, job.train, embedding, found, results, job.recipe.run.map_points, job.display)
    except ImportError as error:
        job.display.say(_no_report(error))
