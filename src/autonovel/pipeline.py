"""The whole story on one page: images in, three stages, classes out.

    stage 1  features from rotations, on all images,        (methods/rotnet.py, or prototypical.py)
             and where asked from known classes
    stage 2  the known classes, on the labelled images      (methods/supervised.py)
    [count   how many new classes, where nobody said        (counting/)]
    stage 3  known and new classes together                 (methods/rankstats.py, or another of methods/)
    then     embed → discovery → scores → report

Every stage can be killed and resumed.  This is the only file that knows all rooms of the house: ``extraction.py`` has
the stages that all systems share, ``systems.py`` what each does after them, ``delivery.py`` what is written at the end.
"""

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import replace

from autonovel import choosing, doubts, record, scoring, stopping
from autonovel.companion import Companions
from autonovel.counting import counting
from autonovel.data import share_of
from autonovel.data.checks import check_problem
from autonovel.data.crew import deaths_explained
from autonovel.delivery import Outcome, deliver, follow_corrections
from autonovel.device import precision, torch_settings
from autonovel.errors import AutonovelError, GuardError, UsageError
from autonovel.extraction import as_seen, extractor, shared_stages
from autonovel.job import Job
from autonovel.kept import save_truth
from autonovel.methods import METHODS, Problem
from autonovel.network_file import keep_network
from autonovel.settings import ALL_STAGES
from autonovel.storage.documents import read_json
from autonovel.storage.run_folder import FINISHED
from autonovel.systems import on_test, run_side_system, run_system, trains
from autonovel.training.ranks import Ranks
from autonovel.training.telling import telling


def run(job: Job) -> Outcome | None:
    """Do the job and return what came of it; work already in the folder is taken up.

    None means that the last stage was not asked for, so nothing is delivered yet, or that another process delivers.
    """
    check_problem(job.train, job.n_new, job.recipe)
    if job.ranks.world > 1 and job.device.type == "cuda" and job.recipe.run.cuda_graphs:
        job.display.say("CUDA graphs are off: the processes exchange features and gradients in every step.")
    arithmetic = torch_settings(precision(job.recipe.network.precision, job.device))
    with arithmetic, deaths_explained(), telling(job.display):
        job.ranks.alone(lambda: keep_network(job))
        seen = as_seen(job)
        job.ranks.alone(lambda: _check_earlier_stages(seen))
        job.ranks.alone(lambda: doubts.tell_of_dark_pictures(job))
        job.ranks.alone(lambda: doubts.tell_of_the_first_classifier(seen))
        job.ranks.alone(lambda: save_truth(job.folder, job.train))
        if ALL_STAGES[-1] not in job.stages:
            extractor(seen)
            return None
        n_new = counting.number_of_new_classes(seen)
        return _run(replace(job, n_new=n_new), replace(seen, n_new=n_new))


def check_shares(job: Job) -> None:
    """Ask, before anything is written, whether the processes can share the batches of every stage equally."""
    if job.ranks.world == 1:
        return
    problem = Problem(job.train.n_known, job.n_new or 2, job.seed)
    own = [METHODS[name].stages(job.recipe, problem) for name in job.recipe.run.systems if name in METHODS]
    for stage in itertools.chain(shared_stages(job).values(), *own):
        share_of(stage.sampler(job.train), job.ranks, stage.name)


def _check_earlier_stages(job: Job) -> None:
    """Say which stages are there, and raise an error if one is neither there nor to be trained now."""
    for stage in shared_stages(job).values():
        if (job.folder / "stages" / stage.name / FINISHED).exists():
            job.display.say(f"{stage.name}: done before")
        elif stage.number not in job.stages and stage.number < max(job.stages):
            raise UsageError(
                f"stage {stage.name} is not finished in {job.folder}, and --stages leaves it out. Name it."
            )


def _run(job: Job, seen: Job) -> Outcome | None:
    _, seconds = extractor(seen)
    job.ranks.alone(lambda: doubts.tell_of_rotations_not_learned(seen))
    primary, *others = choosing.systems_in_order(seen)
    failures: dict[str, AutonovelError] = {}
    with _companions(seen, [name for name in others if trains(seen, name)]) as beside:
        found = run_system(seen, primary, job.folder)
        for name in [name for name in others if not _done_here(seen, name, beside, failures)]:
            with _noting(failures, name, job.ranks):
                beside.wait(name)
    records = {primary: scoring.system_record(found.embedding, found.seconds, seen.train, *on_test(seen, found))}
    if not job.ranks.first:
        return None
    seconds |= counting.seconds_spent(seen) | choosing.seconds_spent(seen)
    for name in others:
        path = job.folder / "systems" / name / "results.json"
        records[name] = read_json(path) if path.exists() else {"scores": None, "seconds": 0.0, "incremental": None}
    outcome = deliver(job, primary, found, records, seconds, failures)
    record.finish(job.folder, job.device)
    follow_corrections(job)
    return outcome


def _done_here(job: Job, name: str, beside: Companions, failures: dict[str, AutonovelError]) -> bool:
    """Train a system of the comparison in this process if no other has begun it; tell whether that was so."""
    mine = beside.take_back(name)
    if mine:
        with _noting(failures, name, job.ranks):
            run_side_system(job, name)
    return mine


@contextlib.contextmanager
def _noting(failures: dict[str, AutonovelError], name: str, ranks: Ranks) -> Iterator[None]:
    """Keep an error of the system ``name`` for the end: what the primary system found is delivered first.

    Of several processes, only a failed guard is known to stop all of them at the same place.
    """
    try:
        yield
    except AutonovelError as error:
        stopping.check()  # what a dying child raised may have come before the signal's own
        if ranks.world > 1 and not isinstance(error, GuardError):
            raise
        failures[name] = error


@contextlib.contextmanager
def _companions(job: Job, names: list[str]) -> Iterator[Companions]:
    """Train ``names`` in processes beside this one, if the recipe wants it and the images have a source."""
    possible = job.recipe.run.parallel and job.device.type == "cpu" and job.recipe.data.source != "arrays"
    possible = possible and job.ranks.world == 1  # several processes train each system together
    companions = Companions(job.folder, names if possible else [], job.display, job.keep_going)
    try:
        yield companions
    finally:
        companions.stop()
