"""What the commands do that train: run, and one system for another process."""

import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from autonovel import recipe
from autonovel.commands.look import print_results
from autonovel.labels import LABELS
from autonovel.launch import about, launch, started_again
from autonovel.manner import Manner
from autonovel.studies.variants import FULL_VARIANT, Variant, adopt_stages, folder_name
from autonovel.terminal import TerminalDisplay
from autonovel.training.display import Display, Silent

if TYPE_CHECKING:
    from autonovel.editing.carried import Carried
    from autonovel.training.ranks import Ranks


def run_recipe(
    name: str,
    out: Path | None,
    seed: int,
    sets: list[str],
    manner: Manner,
    variant: Variant = FULL_VARIANT,
    console: Console | None = None,
    announced: bool = False,
    together: bool = False,
) -> Path:
    """Run a recipe on its own source of images, from the first line on the screen to the last.

    ``variant`` changes settings and the name of the folder.  ``console`` may be a file's; what was ``announced``
    before is not said again; all processes that torchrun has started may do it ``together``.  Returns the run folder.
    """
    ranks = _ranks(manner.device) if together else None
    loaded = recipe.load(name, [*sets, *variant.overrides])
    settings = loaded.recipe
    folder = out or Path("runs") / folder_name(settings.name, variant, seed)
    if ranks is None:
        manner.check_place(folder)
    else:
        resume, overwrite = ranks.lead(lambda: _place(folder, manner))
        manner = replace(manner, resume=resume, overwrite=overwrite)
        console = console or Console(quiet=not ranks.first)
    console = console or Console()
    if announced:
        console.print(f"Writes {folder}.", highlight=False, soft_wrap=True, markup=False)
    else:
        _announce(console, loaded, folder)
    train_run(loaded, folder, seed, manner, console=console, together=ranks)
    if ranks is not None:
        ranks.leave()
    return folder


def _ranks(device: str) -> "Ranks":
    """Return this process among those that torchrun has started; alone where it has not."""
    from autonovel import device as devices
    from autonovel.training.ranks import join

    return join(devices.pick(device))


def _place(folder: Path, manner: Manner) -> tuple[bool, bool]:
    """Return whether to go on with the run in ``folder``, and whether to replace it.

    Where torchrun starts the processes of this very run again, it goes on, whatever the command says.
    """
    if started_again(folder, launch()):
        return True, False
    manner.check_place(folder)
    return manner.resume, manner.overwrite


def train_run(
    loaded: recipe.Loaded,
    folder: Path,
    seed: int,
    manner: Manner,
    carried: "Carried | None" = None,
    console: Console | None = None,
    together: "Ranks | None" = None,
) -> Path:
    """Train in ``folder`` what was announced, and print the results; ``carried`` comes from a run it goes on from.

    Of several processes that do it ``together``, the first one locks and writes the folder, and speaks.
    """
    from autonovel import device as devices
    from autonovel import pipeline, record, sameness
    from autonovel.counting import counting
    from autonovel.data import sources
    from autonovel.data.checks import check_problem
    from autonovel.data.prepare import adopt_surveys, discard_cache, prepare_both
    from autonovel.job import Job
    from autonovel.storage.run_folder import RunFolder
    from autonovel.storage.shapes import read_results
    from autonovel.training.loop import discard_leftovers
    from autonovel.training.ranks import ALONE

    console, settings, ranks = console or Console(), loaded.recipe, together or ALONE
    chosen = devices.pick(manner.device)
    train, test, of_source = sources.load(settings, seed, folder, carried.labels if carried else None)
    n_new = counting.wanted(settings, of_source or (counting.begun_with(folder) if manner.resume else 0))
    check_problem(train, n_new, settings)
    display = TerminalDisplay(console)
    how = (manner.keep_going, manner.started, manner.stages, ranks)
    job = Job(settings, train, test, n_new, seed, chosen, folder, display, *how)
    pipeline.check_shares(job)

    def lock() -> RunFolder:
        going_on = manner.resume and folder.exists()
        if manner.resume and not going_on:
            console.print(f"{folder} does not exist yet: starting from the beginning.", highlight=False, markup=False)
        return RunFolder.resume(folder) if going_on else RunFolder.create(folder, manner.overwrite)

    def begin() -> bool:
        if carried and not (folder / "run.json").exists():
            carried.save(folder)
        command, processes = ["autonovel", *sys.argv[1:]], about(ranks.launch)
        record.begin(folder, settings, seed, chosen, train, n_new, command, loaded.changed, processes, test)
        return record.finished(folder)

    with ranks.alone(lock) or contextlib.nullcontext():
        ranks.alone(lambda: adopt_surveys(folder, manner.bases))
        try:
            # the first process looks at all files, and the others read what it has seen
            given, copies = (train, test, settings.data, folder, chosen, display), ranks.launch.local_world
            prepared = ranks.alone(lambda: prepare_both(*given, copies))
            train, test = prepared or prepare_both(*given, copies)
        except BaseException:
            display.close()
            raise
        if ranks.world > 1:
            ranks.check_same(
                sameness.outline(train),
                f"the machines do not see the same images in {settings.data.path or settings.data.source}: files or "
                "labels differ. Give all of them the same folder, or equal copies of it.",
            )
        if ranks.lead(begin):
            if ranks.first:
                discard_cache(folder)  # which a kill just after the end may have left
                discard_leftovers(folder)
                console.print(f"{folder} is finished; nothing was left to do.", highlight=False, markup=False)
                print_results(console, read_results(folder / "results.json"), folder)
            return folder
        for base in manner.bases:
            for stage in adopt_stages(folder, base):
                console.print(f"Stage {stage} is shared with {base}.", highlight=False, soft_wrap=True, markup=False)
        if carried:
            carried.take_features(folder, settings, train, display)
        try:
            outcome = pipeline.run(replace(job, train=train, test=test))
        finally:
            display.close()
        if outcome is not None or (ranks.launch.local_rank == 0 and not ranks.first):  # another machine has its own
            discard_cache(folder)
    if outcome is None:
        last = max(manner.stages)
        done = f"Stage {last} is done in {folder}; the same command with --resume and later --stages goes on."
        console.print(done, highlight=False, soft_wrap=True, markup=False)
        return folder
    print_results(console, outcome.results, folder)
    look = f" Look at {folder / 'report.html'}." if (folder / "report.html").exists() else ""
    console.print(f"Wrote {folder}.{look}", highlight=False, soft_wrap=True, markup=False)
    if outcome.failures:
        error = outcome.failures[0]
        error.delivered = True
        raise error
    return folder


def _announce(console: Console, loaded: recipe.Loaded, folder: Path) -> None:
    """Say what will happen, how long it takes, where it writes and where it departs from the paper."""
    settings, changed = loaded.recipe, loaded.changed
    length = f" Takes {settings.minutes}." if settings.minutes else ""
    systems = "; ".join(LABELS[name] for name in settings.run.systems)
    told = f"Departs from the paper: {'; '.join(settings.departures) or 'the recipe does not say where'}."
    if changed:
        told += f" Changed from the recipe: {', '.join(f'{key} = {value}' for key, value in changed.items())}."
    about = f"{settings.name}: {settings.about or 'a recipe without description'}."
    text = f"{about}{length} Writes {folder}.\nSystems: {systems}.\n{told}"
    console.print(text, highlight=False, soft_wrap=not console.is_terminal, markup=False)


def train_side_system(path: Path, name: str, display: Display, keep_going: bool) -> None:
    """Train one system of the comparison in the run at ``path``."""
    from autonovel import device as devices
    from autonovel import sameness
    from autonovel.data import sources
    from autonovel.data.prepare import prepare_both
    from autonovel.extraction import as_seen
    from autonovel.job import Job
    from autonovel.places import settings_now
    from autonovel.storage.run_folder import check_format
    from autonovel.systems import run_side_system
    from autonovel.training.telling import telling

    recipe.check_registered([name])
    facts = check_format(path)
    settings, seed = settings_now(path, facts), int(facts["seed"])
    train, test, _ = sources.load(settings, seed, path)
    chosen = devices.pick(facts["device"])
    train, test = prepare_both(train, test, settings.data, path, chosen, Silent())
    sameness.check_same_images(path, facts, train, settings)
    job = Job(settings, train, test, int(facts["n_new"]), seed, chosen, path, display, keep_going)
    with devices.torch_settings(devices.precision(settings.network.precision, chosen)), telling(display, name):
        run_side_system(as_seen(job), name)
