"""The one training loop: sums named terms, steps the optimiser, logs, guards, checkpoints.

It knows nothing of the method; a stage brings its batches and its step.
"""

import contextlib
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from autonovel import draws
from autonovel.data import ImageSet, loader, share_of
from autonovel.networks import Model
from autonovel.storage import writing
from autonovel.storage.documents import write_json
from autonovel.storage.journal import Journal
from autonovel.storage.run_folder import FINISHED
from autonovel.storage.shapes import STAGE, read_shaped
from autonovel.training import batch_statistics, checkpoint, observe, optimisers
from autonovel.training.display import Display, Silent
from autonovel.training.health import Health
from autonovel.training.ranks import ALONE, Ranks
from autonovel.training.remedies import STOPPED
from autonovel.training.schedules import learning_rate
from autonovel.training.stage import Concludes, Foresees, OnMaterial, Remembers, Stage
from autonovel.training.steps import step_kind
from autonovel.training.stopwatch import Stopwatch
from autonovel.training.telling import telling

NUMBERS_AT_ONCE = 1 << 22  # random numbers drawn ahead; an epoch of CIFAR takes a tenth of them
DEFAULT_THREADS = torch.get_num_threads()
CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True)
class Context:
    """Where and how a stage is trained.

    Attributes:
        folder: the folder whose ``stages/NAME`` and ``metrics.jsonl`` it writes.
        journal: the open ``metrics.jsonl``.
        seed: of every random draw.
        device: that trains.
        display: for progress.
        keep_going: go on after a collapse.
        checkpoint_seconds: time between checkpoints.
        label: what the display calls the system that is trained.
        cuda_graphs: record each step as a CUDA graph where there is a CUDA device.
        ranks: the processes that train together; the first one writes.
    """

    folder: Path
    journal: Journal
    seed: int
    device: torch.device
    display: Display
    keep_going: bool = False
    checkpoint_seconds: float = 20.0
    label: str = ""
    cuda_graphs: bool = True
    ranks: Ranks = ALONE

    def title(self, stage: Stage) -> str:
        """Return what the display calls ``stage``."""
        return f"{stage.name} {self.label}".strip()


def run_stage(model: Model, stage: Stage, images: ImageSet, context: Context) -> float:
    """Bring ``model`` through ``stage`` and return the seconds it took, over all resumed parts.

    A finished stage is loaded, a begun one goes on from its checkpoint, with the result it would have
    had undisturbed.  Of several processes, the first one reads and writes, and tells the others.
    """
    folder, ranks = context.folder / "stages" / stage.name, context.ranks
    torch.set_num_threads(stage.settings.threads or DEFAULT_THREADS)
    model.ranks = ranks
    stage.prepare(model)
    model.to(context.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    seconds = ranks.lead(lambda: _seconds_of_finished(folder))
    if seconds is not None:
        ranks.alone(lambda: checkpoint.load_model(folder / "model.safetensors", model))
        ranks.equalise(model.state_dict().values())
    else:
        seconds = _train(model, stage, images, context, folder / CHECKPOINT)
        if ranks.first:
            checkpoint.save_model(folder / "model.safetensors", model)
            write_json(folder / FINISHED, {"stage": stage.name, "seconds": seconds, "threads": torch.get_num_threads()})
            _discard(folder)
    if isinstance(stage, Concludes):
        stage.conclude(model, images)
    return seconds


def _seconds_of_finished(folder: Path) -> float | None:
    """Return how long a stage took that is done; None if it is not."""
    if not (folder / FINISHED).exists():
        return None
    _discard(folder)
    return float(read_shaped(folder / FINISHED, STAGE, ("seconds",))["seconds"])


def discard_leftovers(run: Path) -> None:
    """Delete what the stages of a finished run no longer need; a power cut may have brought it back."""
    for place in sorted([*run.glob(f"stages/*/{FINISHED}"), *run.glob(f"systems/*/stages/*/{FINISHED}")]):
        _discard(place.parent)


def _discard(folder: Path) -> None:
    """Delete what only an unfinished stage needs, or what a kill has left of it; what stays does no harm."""
    for name in (CHECKPOINT, STOPPED):
        with contextlib.suppress(OSError):
            writing.remove(folder / name)


def _train(model: Model, stage: Stage, images: ImageSet, context: Context, saved: Path) -> float:
    if isinstance(stage, OnMaterial):
        images = stage.material(model, images)
    ranks, sampler = context.ranks, stage.sampler(images)
    share = share_of(sampler, ranks, stage.name)
    batch_statistics.share(model)
    ranks.equalise(model.state_dict().values())
    optimiser = optimisers.make(stage.settings, model.parameters())
    memory = stage.memory if isinstance(stage, Remembers) else {}
    content = ranks.lead(lambda: checkpoint.read(saved) if saved.exists() else None)
    first, before = checkpoint.load(saved, model, optimiser, memory, content) if content else (0, 0.0)
    if ranks.first:
        context.journal.rewind(stage.name, first)
    steps, epochs = sampler.steps_per_epoch, stage.settings.epochs
    key = draws.stream(context.seed, 100 + stage.number)
    last_save, good = time.monotonic(), first
    health = ranks.alone(lambda: Health(model, optimiser, stage, images, context, saved.parent))
    watch = Stopwatch(context.display, context.title(stage), before)
    reading = contextlib.closing(loader(images, context.device, ranks))
    quiet = telling(Silent())  # what passes over all images between two epochs has no bar beside the stage's
    with reading as source, _foreseen(stage, model, images, context, first), quiet:
        source.start(share, range(first, epochs))
        kind = step_kind(context.device, context.cuda_graphs and ranks.world == 1)
        take_step = kind(model, stage, source, optimiser, steps)
        context.display.begin(context.title(stage), epochs * steps, first * steps)
        observers = observe.observers(stage.settings, images, context.seed, saved.parent) if ranks.first else []
        for observer in observers:
            observer.look(model, first)
        for epoch in range(first, epochs):
            stage.before_epoch(model, images, epoch)
            model.train()
            rows = sampler.epoch(epoch).to(context.device)
            for step, index, u in _with_draws(key, epoch * steps, rows, stage.n_draws, ranks):
                source.advance()
                take_step(index, u, step, learning_rate(stage.settings, step, steps))
                watch.tick(step + 1, len(index), take_step.terms)
            means = take_step.end_of_epoch()
            batch_statistics.average(model)
            for observer in observers:
                means |= observer.look(model, epoch + 1)
            if ranks.first:
                _log(context, stage.name, epoch, (epoch + 1) * steps, means, watch)
            sound = ranks.lead(partial(_sound, health, epoch, means, take_step.broken, good))
            due = ranks.first and time.monotonic() - last_save >= context.checkpoint_seconds
            if sound and epoch + 1 < epochs and due:
                checkpoint.save(saved, model, optimiser, epoch + 1, watch.seconds(), memory)
                last_save, good = time.monotonic(), epoch + 1
    context.display.end(context.title(stage))
    return watch.seconds()


def _foreseen(
    stage: Stage, model: Model, images: ImageSet, context: Context, epoch: int
) -> AbstractContextManager[None]:
    """Return the context in which a stage has what it computes before its first step."""
    if isinstance(stage, Foresees):
        return stage.foresee(model, images, context.display, epoch)
    return contextlib.nullcontext()


def _with_draws(key: int, first: int, rows: Tensor, count: int, ranks: Ranks) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Return number, images and this process's random numbers of every step, drawn for many steps at once."""
    many = max(NUMBERS_AT_ONCE // max(rows.shape[1] * count, 1), 1)
    for start in range(0, len(rows), many):
        block = rows[start : start + many]
        numbers = torch.arange(first + start, first + start + len(block), device=rows.device)
        u = draws.uniform(key, numbers, ranks.share(block), count)
        for place, index in enumerate(block):
            yield first + start + place, index, u[place]


def _log(context: Context, stage: str, epoch: int, step: int, means: dict[str, Tensor], watch: Stopwatch) -> None:
    line: dict[str, Any] = {"stage": stage, "epoch": epoch, "step": step}
    # JSON has no NaN: a term that is not finite is written as null, and the guard tells of it
    line |= {name: value.tolist() if torch.isfinite(value).all() else None for name, value in means.items()}
    context.journal.append(line | {"images_per_second": round(watch.rate), "seconds": round(watch.seconds(), 3)})


def _sound(health: Health | None, epoch: int, means: dict[str, Tensor], broken: dict[str, int], good: int) -> bool:
    """Tell whether the state after ``epoch`` is worth keeping; models are equal, so the first process alone looks."""
    assert health is not None, "only the first process is asked"
    return health.after_epoch(epoch, means, broken, good)
