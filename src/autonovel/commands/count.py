"""What ``autonovel count`` does once the command line is parsed."""

import json
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from autonovel import recipe
from autonovel.errors import RunFolderError, UsageError
from autonovel.setting_values import as_override
from autonovel.terminal import TerminalDisplay


@dataclass(frozen=True)
class _Asked:
    """The run in which to count."""

    folder: Path
    loaded: recipe.Loaded
    seed: int
    device: str
    data: Path | None  # where its images lie now, if it was said
    begun: bool = True


def count_classes(
    target: str,
    data: Path | None,
    out: Path | None,
    seed: int | None,
    sets: list[str],
    device: str | None,
    as_json: bool,
) -> None:
    """Estimate the number of new classes in a run, or in a new run of a recipe, and print it."""
    start = time.monotonic()
    asked = _in_run(Path(target), data, out, seed, sets, device) if Path(target).is_dir() else None
    asked = asked or _of_recipe(target, data, out, seed, sets, device)
    console = Console(stderr=as_json)  # JSON stands alone on standard output
    display = TerminalDisplay(console)
    try:
        content = _count(asked, display)
    finally:
        display.close()
    if as_json:
        print(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        _print(console, content, asked.folder, time.monotonic() - start)
        if not asked.begun:
            print(
                f"To discover them, go on with the same recipe, data and settings: "
                f"autonovel run {shlex.quote(target)} --new-classes auto --seed {asked.seed} "
                f"--out {shlex.quote(str(asked.folder))} --resume"
            )


def _in_run(
    folder: Path, data: Path | None, out: Path | None, seed: int | None, sets: list[str], device: str | None
) -> _Asked:
    from autonovel.places import images_now
    from autonovel.storage.shapes import run_facts

    if not (folder / "run.json").exists():
        raise UsageError(
            f"{folder} is a folder, but not of a run. To count in a folder of images, name a recipe: "
            f"autonovel count RECIPE --data {shlex.quote(str(folder))}."
        )
    if out is not None or seed is not None:
        raise UsageError(f"{folder} is a run with a folder and a seed of its own; leave --out and --seed away.")
    facts = run_facts(folder, ("recipe", "seed", "device"))
    changed = recipe.parse_overrides(sets)
    misplaced = [key for key in changed if not key.startswith("count.") or key == "count.new_classes"]
    if misplaced:
        raise UsageError(f"--set {misplaced[0]} cannot change a run that exists; only settings of [count] can.")
    if facts["recipe"].get("data.source") == "arrays":
        raise UsageError(f"the images of {folder} came from Python and are not at hand; use Discoverer(n_new='auto').")
    settings = images_now(folder, facts, data, changed)
    return _Asked(folder, recipe.Loaded(settings, {}), int(facts["seed"]), device or facts["device"], data)


def _of_recipe(
    name: str, data: Path | None, out: Path | None, seed: int | None, sets: list[str], device: str | None
) -> _Asked:
    if "/" in name and not name.endswith(".toml"):
        raise RunFolderError(f"there is no run folder {name}. Name the folder of a run, or a recipe such as demo.")
    place = [as_override("data.path", str(data))] if data else []
    loaded = recipe.load(name, [*place, "count.new_classes=auto", *sets])
    if loaded.recipe.count.new_classes != "auto":
        raise UsageError("--set count.new_classes says how many new classes there are; then there is nothing to count.")
    folder = out or Path("runs") / f"{loaded.recipe.name}-seed{seed or 0}"
    if (folder / "run.json").exists():
        raise UsageError(
            f"{folder} holds a run already. Count in it with `autonovel count {shlex.quote(str(folder))}`, or choose "
            "another folder with --out."
        )
    return _Asked(folder, loaded, seed or 0, device or "auto", data, begun=False)


def _count(asked: _Asked, display: TerminalDisplay) -> dict[str, Any]:
    from autonovel import device as devices
    from autonovel import record, sameness
    from autonovel.counting import counting
    from autonovel.data import sources
    from autonovel.data.checks import check_problem
    from autonovel.data.prepare import prepare_both
    from autonovel.delivery import redraw
    from autonovel.extraction import as_seen
    from autonovel.job import Job
    from autonovel.storage.run_folder import RunFolder, check_format
    from autonovel.training.telling import telling

    settings, folder, seed = asked.loaded.recipe, asked.folder, asked.seed
    chosen = devices.pick(asked.device)
    train, test, _ = sources.load(settings, seed, folder)
    check_problem(train, None, settings)
    with RunFolder.resume(folder) if asked.begun else RunFolder.create(folder):
        train, test = prepare_both(train, test, settings.data, folder, chosen, display)
        if not asked.begun:
            command = ["autonovel", *sys.argv[1:]]
            record.begin(folder, settings, seed, chosen, train, None, command, asked.loaded.changed, held=test)
        else:
            sameness.check_same_images(folder, check_format(folder), train, settings)
        job = Job(settings, train, test, None, seed, chosen, folder, display)
        with devices.torch_settings(devices.precision(settings.network.precision, chosen)), telling(display):
            content = counting.count(as_seen(job))
        if record.delivered(folder):
            display.say("Drawing the report anew, with the count in it.")
            redraw(job, asked.data)
    return content


def _print(console: Console, content: dict[str, Any], folder: Path, seconds: float) -> None:
    from autonovel.counting.words import in_words

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=not console.is_terminal)

    say(in_words(content))
    say("It rests on this:")
    for sentence in content["assumed"]:
        say(f"- {sentence}")
    made = f"{content['seconds']:.1f} s for the count, {seconds:.1f} s in all"
    say(f"{made}. Wrote {folder / 'count.json'} and {folder / 'count.png'}.")
