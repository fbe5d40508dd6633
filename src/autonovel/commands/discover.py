"""`autonovel discover`: from a folder of pictures to new classes, with nothing to set up."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from autonovel import planning, recipe
from autonovel.commands.training import run_recipe
from autonovel.errors import AutonovelError, UsageError
from autonovel.manner import Manner
from autonovel.outcome import next_steps, say
from autonovel.planning import Plan, Wish
from autonovel.setting_values import as_override

if TYPE_CHECKING:
    from autonovel.editing.found import FoundRun

# a recipe made for a benchmark chooses among its classes; in a folder all that are there count
WHOLE_FOLDER = {"data.known": [], "data.first_known": 0, "data.new": [], "data.first_new": 0, "data.per_class": 0}


def discover(
    place: Path,
    wish: Wish,
    out: Path | None,
    seed: int,
    sets: list[str],
    manner: Manner,
) -> Path:
    """Look at the images, say what will be done and how long it takes, do it, and say what was found."""
    from autonovel import device as devices
    from autonovel.data.inventory import inventory_of
    from autonovel.data.table import source_of
    from autonovel.terminal import TerminalDisplay

    if not place.exists():
        raise UsageError(f"there is no {place}; give a folder of images, or a table with the columns path and label.")
    planning.check_wish(wish)
    recipe.check_given(sets)
    console, chosen = Console(), devices.pick(manner.device)
    here = Path(os.path.abspath(place))  # a link goes by its own name
    name = here.stem if place.is_file() else here.name
    folder = out or Path("runs") / f"{name or 'discover'}-seed{seed}"
    manner.check_place(folder)
    display = TerminalDisplay(console)
    found = inventory_of(place, display)
    display.close()
    say(console, *found.told())
    made = planning.plan(found, wish, chosen.type)
    settings = WHOLE_FOLDER | {"data.source": source_of(place), "data.path": str(place)} | made.settings
    changes = [as_override(key, value) for key, value in settings.items()] + sets
    say(console, *made.said, *(f"Beware: {text}" for text in made.beware))
    if not manner.resume:  # how much is left only the run itself can say, and it does
        _time(console, made, changes, found.classes, found.unlabelled, manner.device)
    try:
        run_recipe(made.recipe, folder, seed, changes, manner, announced=True)
    except AutonovelError as error:
        if not error.delivered:  # whoever wants new classes has them, though a system beside has failed
            raise
        say(console, f"Beware: another system that was to be compared has failed. {error}")
    say(console, *_outcome(folder))
    return folder


def _time(
    console: Console, made: Plan, changes: list[str], known: dict[str, int], unlabelled: int, device: str
) -> None:
    """Say how long the run will take."""
    from autonovel import device as devices
    from autonovel import timing

    say(console, "Timing a few steps on this machine.")
    settings = recipe.load(made.recipe, changes).recipe
    sizes = timing.Sizes(tuple(known.values()), unlabelled, 3)
    say(console, timing.in_words(timing.estimate(settings, sizes, devices.pick(device))))


def _outcome(folder: Path) -> list[str]:
    """Return what was found, in sentences, and what to do next."""
    from autonovel.editing.found import FoundRun
    from autonovel.storage.documents import read_json
    from autonovel.words import counted, listed, of_images

    every = read_json(folder / "classes.json")["classes"]
    classes = [entry for entry in every if entry["kind"] != "known"]
    run = FoundRun(folder)
    rows = [row for row in run.table if not row["given_label"]]
    named = listed([f"{entry['name']} {entry['size']:,}" for entry in classes])
    lines = [f"{len(classes)} new classes in {of_images(sum(bool(row['class_id']) for row in rows))}: {named}."]
    if empty := [entry["name"] for entry in classes if not entry["size"]]:
        few = f"{len(empty)} of them {'is' if len(empty) == 1 else 'are'} empty ({listed(empty)})"
        lines.append(f"{few}: there may be fewer (--new-classes N says how many).")
    lines += _may_be_known(run, every)
    unreadable = [row for row in rows if not row["class_id"]]
    if unreadable:
        some = counted(len(unreadable), "file", "files")
        lines.append(f"{some} could not be read; see discovery.csv for the reason.")
    return [*lines, *next_steps(folder)]


def _may_be_known(run: "FoundRun", every: list[dict[str, Any]]) -> list[str]:
    """Return which unlabelled images look like known classes, and which new ones of ``every`` class may be such."""
    from autonovel.editing.found import LOOKS_KNOWN, common_look, known_look
    from autonovel.words import look_more_known, on_known_again

    lines, called = [], {entry["id"]: entry["name"] for entry in every}
    looks: dict[str, list[str]] = {name: [] for name in called.values()}
    for row in run.table:
        looks.setdefault(row["class_name"], []).append(known_look(row))
    if known := sum(bool(look) for of_class in looks.values() for look in of_class):
        look = look_more_known(known)
        lines.append(f"Of these, {look} (looks_known above {LOOKS_KNOWN} in discovery.csv; nearest_known says which).")
    new = [entry["name"] for entry in every if entry["kind"] != "known"]
    same = {name: like for name in new if (like := common_look(looks[name])[0])}
    if same:
        told = ", ".join(f"{name} is {like}" for name, like in same.items())
        lines.append(f"By that, {told}: look, and merge what is the same.")
    again = {called[number]: called[like] for number, like in run.known_again.items() if number in called}
    if beyond := [f"{name} may be {like}" for name, like in again.items() if same.get(name) != like]:
        lines.append(on_known_again(beyond))
    return lines
