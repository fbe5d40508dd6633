"""The whole story on one page: images in, three stages, classes out.

    stage 1  features from rotations, on all images         (methods/rotnet.py, or prototypical.py)
    stage 2  the known classes, on the labelled images      (methods/supervised.py)
    [count   how many new classes, where nobody said        (counting.py)]
    stage 3  known and new classes together                 (methods/rankstats.py, or another of methods/)
    then     embed → discovery → scores → report

Every stage can be killed and resumed.  This is the only file that knows all rooms of the house.
"""

import contextlib
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from autonovel import agreement, choosing, counting, discovery, doubts, networks, record, stopping
from autonovel.cached_views import FEATURES, with_cached_views
from autonovel.companion import Companions
from autonovel.data import ImageSet, channel_statistics, share_of
from autonovel.data.checks import check_problem
from autonovel.data.crew import deaths_explained
from autonovel.device import precision, torch_settings
from autonovel.documents import read_json, write_json
from autonovel.embedding import Embedding, embed, joint_order
from autonovel.errors import AutonovelError, GuardError, UsageError
from autonovel.journal import Journal
from autonovel.kept import save_truth
from autonovel.methods import METHODS, WITHOUT_STAGE_2, Problem
from autonovel.methods.kmeans import pixel_clusters
from autonovel.methods.prototypical import Prototypical
from autonovel.methods.rotnet import Rotation
from autonovel.methods.supervised import supervised_stage
from autonovel.network_file import keep_network
from autonovel.networks import Model, heads
from autonovel.record import PIXELS
from autonovel.run_folder import FINISHED, subfolder_lock, sweep
from autonovel.settings import ALL_STAGES, Recipe
from autonovel.training import checkpoint
from autonovel.training.display import Display
from autonovel.training.loop import Context, run_stage
from autonovel.training.ranks import ALONE, Ranks
from autonovel.training.stage import Stage
from autonovel.variants import SIMILARITY, adopt_similarity


@dataclass(frozen=True)
class Job:
    """A run to do: images, recipe, and where.

    Attributes:
        recipe: all settings.
        train: labelled and unlabelled images.
        test: held-out images with truth, or None.
        n_new: number of new classes; None if it is to be estimated.
        seed: of every random draw.
        device: that trains.
        folder: the run folder, locked by the caller.
        display: for progress.
        keep_going: go on after a collapse.
        started: when the work began, on the monotonic clock; the total time counts from here.
        stages: numbers of the stages that may be trained now; earlier ones must be there.
        ranks: the processes that do the job together; the first one writes and delivers.
    """

    recipe: Recipe
    train: ImageSet
    test: ImageSet | None
    n_new: int | None
    seed: int
    device: torch.device
    folder: Path
    display: Display
    keep_going: bool = False
    started: float = field(default_factory=time.monotonic)
    stages: tuple[int, ...] = ALL_STAGES
    ranks: Ranks = ALONE

    @property
    def problem(self) -> Problem:
        """Return the numbers a method needs."""
        assert self.n_new is not None, "the new classes are counted before a method starts"
        return Problem(self.train.n_known, self.n_new, self.seed)

    def context(self, folder: Path, label: str = "") -> Context:
        """Return the training context for stages under ``folder``."""
        return Context(
            folder, Journal(folder / "metrics.jsonl"), self.seed, self.device, self.display,
            self.keep_going, self.recipe.run.checkpoint_seconds, label, self.recipe.run.cuda_graphs, self.ranks,
        )  # fmt: skip


@dataclass(frozen=True)
class Found:
    """What one system found: its model, what the model says of the training images, and the time it took."""

    model: Model
    embedding: Embedding
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """What a finished run holds in memory; all of it is in the run folder too."""

    model: Model
    embedding: Embedding
    discovery: discovery.Discovery
    results: dict[str, Any]


def run(job: Job) -> Outcome | None:
    """Do the job and return what came of it; work already in the folder is taken up.

    None means that the last stage was not asked for, so nothing is delivered yet, or that another process delivers.
    """
    check_problem(job.train, job.n_new, job.recipe)
    if job.ranks.world > 1 and job.device.type == "cuda" and job.recipe.run.cuda_graphs:
        job.display.say("CUDA graphs are off: the processes exchange features and gradients in every step.")
    with torch_settings(precision(job.recipe.network.precision, job.device)), deaths_explained():
        job.ranks.alone(lambda: keep_network(job))
        seen = as_seen(job)
        job.ranks.alone(lambda: _check_earlier_stages(seen))
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
    failures: list[AutonovelError] = []
    with _companions(seen, [name for name in others if _trains(seen, name)]) as beside:
        found = system(seen, primary, job.folder)
        for name in [name for name in others if not _done_here(seen, name, beside, failures)]:
            with _noting(failures, job.ranks):
                beside.wait(name)
    records = {primary: record.system_record(found.embedding, found.seconds, seen.train, *_on_test(seen, found))}
    if not job.ranks.first:
        return None
    seconds |= counting.seconds_spent(seen) | choosing.seconds_spent(seen)
    for name in others:
        path = job.folder / "systems" / name / "results.json"
        records[name] = read_json(path) if path.exists() else {"scores": None, "seconds": 0.0, "incremental": None}
    outcome = _deliver(job, primary, found, records, seconds)
    if failures:
        raise failures[0]
    record.finish(job.folder, job.device)
    return outcome


def _done_here(job: Job, name: str, beside: Companions, failures: list[AutonovelError]) -> bool:
    """Train a system of the comparison in this process if no other has begun it; tell whether that was so."""
    mine = beside.take_back(name)
    if mine:
        with _noting(failures, job.ranks):
            side_system(job, name)
    return mine


@contextlib.contextmanager
def _noting(failures: list[AutonovelError], ranks: Ranks) -> Iterator[None]:
    """Keep an error for the end: what the primary system found is delivered first.

    Of several processes, only a failed guard is known to stop all of them at the same place.
    """
    try:
        yield
    except AutonovelError as error:
        stopping.check()  # what a dying child raised may have come before the signal's own
        if ranks.world > 1 and not isinstance(error, GuardError):
            raise
        failures.append(error)


def as_seen(job: Job) -> Job:
    """Return the job with its images as training sees them: at their size, or as features computed once."""
    side = job.recipe.data.size
    seen = replace(job, train=job.train.resized(side), test=job.test.resized(side) if job.test else None)
    return _with_features(seen) if job.recipe.network.cached_views else seen


def _with_features(job: Job) -> Job:
    model = new_model(job.recipe, job.train, job.seed)
    model.to(job.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    model.precision, model.ranks = precision(job.recipe.network.precision, job.device), job.ranks
    given = (model, job.recipe, job.seed, job.folder / FEATURES, job.display)
    train = with_cached_views(job.train, *given, job.recipe.network.cached_views, "images")
    return replace(job, train=train, test=with_cached_views(job.test, *given, 1, "test images") if job.test else None)


def extractor(job: Job) -> tuple[Model, dict[str, float]]:
    """Return the model after the stages all systems share, and the seconds each took."""
    model = new_model(job.recipe, job.train, job.seed)
    model.precision, model.ranks = precision(job.recipe.network.precision, job.device), job.ranks
    seconds = {}
    context = job.context(job.folder)
    for name, stage in shared_stages(job).items():
        if stage.number <= max(job.stages):
            seconds[name] = run_stage(model, stage, job.train, context)
    return model.to(job.device), seconds


def new_model(recipe: Recipe, images: ImageSet, seed: int) -> Model:
    """Return the untrained model, or the one whose trunk comes from a file or a package."""
    imagenet = recipe.pretrain.kind == "imagenet"
    if imagenet:
        model = networks.pretrained(recipe.network, seed)
    else:
        mean, std = normalisation(recipe, images)
        model = networks.build(recipe.network, images.images.shape[1], mean, std, seed)
    if recipe.pretrain.kind == "weights" or (imagenet and recipe.pretrain.weights):
        checkpoint.load_trunk(Path(recipe.pretrain.weights), model)
        if recipe.starts_from_a_classifier:
            head = checkpoint.known_head(Path(recipe.pretrain.weights), images.n_known)
            if head is not None:
                model.heads["known"] = head
    return model


def normalisation(recipe: Recipe, images: ImageSet) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the means and deviations of the channels that images are normalised by."""
    if recipe.network.normalise == "imagenet":
        return networks.imagenet_resnet.statistics(images.images.shape[1])
    rows = (~images.unlabelled).nonzero()[:, 0] if recipe.pretrain.labelled_only else None
    return channel_statistics(images.images, rows)


def shared_stages(job: Job) -> dict[str, Stage]:
    """Return stages 1 and 2 by name, as far as the recipe has them."""
    r = job.recipe
    stages: dict[str, Stage] = {}
    if r.pretrain.kind == "rotation":
        stages["rotation"] = Rotation(r.pretrain, job.seed)
    if r.pretrain.kind == "prototypical":
        stages["prototypical"] = Prototypical(r.pretrain, job.seed)
    if r.supervised.epochs:
        stages["supervised"] = supervised_stage(r, job.train.n_known, job.seed)
    return stages


def system(job: Job, name: str, folder: Path) -> Found:
    """Bring one system to its end, its own stages under ``folder``, new classes ordered by size."""
    model, _ = extractor(_without_stage_2(job) if name in WITHOUT_STAGE_2 else job)
    method, context = METHODS[name], job.context(folder, name)
    start = time.monotonic()
    stages = method.stages(job.recipe, job.problem)
    if any(stage.name == SIMILARITY for stage in stages):  # another system of this run may have learned it
        job.ranks.alone(lambda: adopt_similarity(folder, job.folder))
    seconds = sum(run_stage(model, stage, job.train, context) for stage in stages)
    method.finish(model, job.train, job.problem)
    embedding = embed(model, job.train.images)
    order = discovery.by_size(job.train, embedding.p_new)
    _order_by_size(model, order, job.train.n_known)
    return Found(model, embedding.reordered(order, job.train.n_known), seconds or time.monotonic() - start)


def _without_stage_2(job: Job) -> Job:
    return replace(job, recipe=replace(job.recipe, supervised=replace(job.recipe.supervised, epochs=0)))


def _order_by_size(model: Model, order: torch.Tensor, n_known: int) -> None:
    new, known = model.heads["new"], model.heads["known"]
    assert isinstance(known, heads.ClassHead)
    heads.reorder(new, order.to(model.mean.device))
    if known.out_features > n_known:
        heads.reorder(known, joint_order(order, n_known).to(model.mean.device))


def _on_test(job: Job, found: Found) -> tuple[ImageSet, Embedding] | tuple[None, None]:
    return (job.test, embed(found.model, job.test.images)) if job.test else (None, None)


def side_system(job: Job, name: str) -> None:
    """Bring a system of the comparison to its end under ``systems/NAME`` and write its scores there."""
    folder, ranks = job.folder / "systems" / name, job.ranks
    with ranks.alone(lambda: subfolder_lock(folder)) or contextlib.nullcontext(), deaths_explained():
        if ranks.lead(lambda: (folder / "results.json").exists()):
            return
        ranks.alone(lambda: sweep(folder))
        if name == PIXELS:
            ranks.alone(lambda: _cluster_pixels(job, folder))
            return
        found = system(job, name, folder)
        content = record.system_record(found.embedding, found.seconds, job.train, *_on_test(job, found))
        if ranks.first:
            if _trains(job, name):  # features of its own, which the figures compare
                found.embedding.save(folder / "embedding.safetensors")
            agreement.save_assignments(folder, _new_class(job, found.embedding))
            write_json(folder / "results.json", content)


def _cluster_pixels(job: Job, folder: Path) -> None:
    start = time.monotonic()
    clusters = pixel_clusters(job.train, job.problem.n_new, job.seed)
    scores, seconds = record.cluster_scores(job.train, clusters), time.monotonic() - start
    agreement.save_assignments(folder, clusters)
    write_json(folder / "results.json", {"scores": scores, "seconds": seconds, "incremental": None})


def _new_class(job: Job, embedding: Embedding) -> torch.Tensor:
    """Return the new class, from 0 on, of each unlabelled image."""
    if not embedding.p_new.shape[1]:  # there was nothing to discover
        return torch.zeros(0, dtype=torch.int64)
    return embedding.p_new[job.train.unlabelled].argmax(dim=1)


def _trains(job: Job, name: str) -> bool:
    return name in METHODS and bool(METHODS[name].stages(job.recipe, job.problem))


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


def _deliver(job: Job, primary: str, found: Found, records: dict[str, Any], seconds: dict[str, float]) -> Outcome:
    """Write the model, the embedding, the discovery, the scores and the report."""
    checkpoint.save_model(job.folder / "model.safetensors", found.model)
    found.embedding.save(job.folder / "embedding.safetensors")
    result = discovery.discover(job.train, found.embedding)
    result.save(job.folder)
    seconds |= {name: content["seconds"] for name, content in records.items()}
    results = record.results(job.folder, records, seconds)
    others = [name for name in job.recipe.run.systems if name != primary]
    if others:
        clusters = _new_class(job, found.embedding).numpy()
        new_names = result.names[job.train.n_known :]
        results["agreement"] = agreement.between(primary, clusters, job.folder, others, new_names)
    results["choice"] = choosing.told(job.folder)
    doubts.tell_of_a_blind_classifier(job, primary, found.embedding)
    job.display.say("Scored; drawing the map and the report." if job.recipe.run.report else "Scored.")
    drawing = time.monotonic()
    draw(job, found.embedding, result, results)
    seconds["report"] = time.monotonic() - drawing
    stages = sum(seconds[name] for name in (*shared_stages(job), primary))
    seconds["total"] = max(time.monotonic() - job.started, stages)  # a resumed run did its first stages before
    write_json(job.folder / "results.json", results)
    return Outcome(found.model, found.embedding, result, results)


def draw(job: Job, embedding: Embedding, found: discovery.Discovery, results: dict[str, Any]) -> None:
    """Write the report if it is wanted; its drawing libraries may be missing where a run only trains."""
    if not job.recipe.run.report:
        return
    try:
        from autonovel.report import write_report

        write_report(job.folder, job.train, embedding, found, results, job.recipe.run.map_points, job.display)
    except ImportError as error:
        job.display.say(f"No report was written: it needs the package {error.name}. Everything else is there.")
