"""`autonovel refine`: confirmed classes become known, and training goes on from the last checkpoint."""

import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from autonovel import recipe
from autonovel.batches import fitting_batches
from autonovel.commands.training import train_run
from autonovel.editing.carried import Carried
from autonovel.editing.edited import EditedRun, open_run
from autonovel.editing.refining import Refinement, new_classes, refinement, system_of
from autonovel.editing.sorting import JUNK
from autonovel.errors import UsageError
from autonovel.labels import LABELS as SYSTEMS
from autonovel.manner import Manner
from autonovel.networks.adapted import ADAPTER
from autonovel.outcome import next_steps, say
from autonovel.settings import PLACES, Recipe
from autonovel.storage.documents import read_json
from autonovel.storage.run_folder import FORMAT, LABELS, REFINED
from autonovel.storage.shapes import REFINED_FROM, read_shaped
from autonovel.words import counted, listed, of_images

REFINED_NAME = re.compile(r"(.*)-refined(?:-(\d+))?")
FIXED = ("data.", "network.", "pretrain.kind", "pretrain.weights")  # what a run goes on with
CLASSIFIER_EPOCHS = 10  # of stage 2, where the run before had none
FOLLOWERS = {"joint.": "incremental.", "kcl.": "mcl."}  # sections that are as another unless set


def refine(
    folder: Path,
    confirm: Sequence[str] = (),
    every: bool = False,
    asked: str = "",
    out: Path | None = None,
    seed: int | None = None,
    sets: Sequence[str] = (),
    device: str = "auto",
    data: Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    keep_going: bool = False,
) -> Path:
    """Say what a person confirmed in the run at ``folder``, train on from there in a new run, and say what came of it.

    The run at ``folder`` is only read.  Returns the folder of the new run.
    """
    manner = Manner(device, resume, overwrite, keep_going, started=time.monotonic())
    run = open_run(folder)
    beside = folder if folder.name not in ("", "..") else folder.resolve()
    target = out or beside.parent / next_name(folder.resolve().name)
    if target.resolve() == folder.resolve():
        raise UsageError(f"--out is {target}, the run that is refined; it stays as it is. Choose another folder.")
    manner.check_place(target)
    found = refinement(run, confirm, every, _edits_followed(run, target) if resume else None)
    before = _settings_before(run, data)
    chosen_seed = _checked_seed(run, before, seed)
    loaded = _next_settings(run, before, found, asked, recipe.parse_overrides(sets))
    about = {
        "format": FORMAT,
        "run": str(folder.resolve()),
        "digest": run.facts["digest"],
        "edits": found.n_edits,
        "confirmed": found.named(found.confirmed),
        "made_known": found.made_known,
        "to_discover": found.named(found.left),
        "junk": len(found.sorting.members(JUNK)),
    }
    console = Console()
    say(console, *_told(run, found, loaded.recipe), _takes(run, found, loaded.recipe, device), f"Writes {target}.")
    carried = Carried(folder, before, found.labels(), about)
    train_run(loaded, target, chosen_seed, manner, carried)
    say(console, *_outcome(target))
    return target


def next_name(name: str) -> str:
    """Return what the run after the one called ``name`` is called: NAME-refined, then NAME-refined-2."""
    before = REFINED_NAME.fullmatch(name)
    return f"{before[1]}-refined-{int(before[2] or 1) + 1}" if before else f"{name}-refined"


def _edits_followed(run: EditedRun, target: Path) -> int | None:
    """Return how many edits the run in ``target`` was begun with: later ones are not for it."""
    if not (target / REFINED).exists():
        return None
    about = read_shaped(target / REFINED, REFINED_FROM, ("run", "digest", "edits"))
    if about["digest"] != run.facts["digest"]:
        raise UsageError(f"{target} goes on from {about['run']}, not from {run.folder}. Choose another --out.")
    n, now = int(about["edits"]), run.n_edits
    if now > n:
        later = f"{now - n} edit{'s' if now - n > 1 else ''} of {run.folder} came later and are not followed"
        say(Console(), f"{target} was begun after {n} edits; {later} (--overwrite starts anew with all).")
    return n


def _settings_before(run: EditedRun, data: Path | None) -> Recipe:
    """Return the settings of the run, its images where they lie now."""
    from autonovel.places import images_now

    if run.facts["recipe"]["data.source"] == "arrays":
        raise UsageError(
            f"the images of {run.folder} came from Python, and the run does not keep them. Fit again with the labels "
            "it has by now: Discoverer.load(RUN).labels_ and classes_ hold them, edits made."
        )
    return images_now(run.folder, run.facts, data)


def _checked_seed(run: EditedRun, before: Recipe, seed: int | None) -> int:
    own = int(run.facts["seed"])
    if seed not in (None, own) and before.data.test_fraction:
        raise UsageError(
            f"--seed is {seed}, but the test images of {run.folder} were held out by its seed, {own}. Leave --seed out."
        )
    return own if seed is None else seed


def _next_settings(
    run: EditedRun, before: Recipe, found: Refinement, asked: str, given: dict[str, Any]
) -> recipe.Loaded:
    """Return the settings of the run that follows, ``given`` ones last."""
    fixed = [key for key in given if (key.startswith(FIXED) and key not in PLACES) or key == "data.path"]
    if fixed:
        hint = "say where they lie with --data" if fixed[0] == "data.path" else "start a run of its own for that"
        raise UsageError(f"--set {fixed[0]} cannot be changed: refine goes on with the images and network of "
                         f"{run.folder}; {hint}.")  # fmt: skip
    then = recipe.flatten(before)
    changes: dict[str, Any] = {
        "run.systems": [system_of(found, str(run.facts["primary"]))],
        "run.trials": 0,
        "data.labels": LABELS,
        "count.new_classes": new_classes(found, asked),
        **_start(run, before),
    }
    if not found.left and not before.supervised.epochs:
        changes["supervised.epochs"] = CLASSIFIER_EPOCHS  # a run that only clustered has no stage 2 to go on with
    if before.pretrain.kind not in ("imagenet", "none"):
        changes["count.probe_share"] = 0  # the model that it starts from has seen all known classes
    followers = {
        follower + key.removeprefix(leader): value
        for leader, follower in FOLLOWERS.items()
        for key, value in given.items()
        if key.startswith(leader) and key in then and then[key] == then[follower + key.removeprefix(leader)]
    }
    changes |= followers | given
    n_labelled, n_left = sum(found.known.values()), found.size(found.left)
    smaller = fitting_batches(recipe.restore(then | changes), n_labelled, n_left)
    changes |= {key: value for key, value in smaller.items() if key not in given}
    settings = recipe.restore(then | changes)
    recipe.check_registered(settings.run.systems)
    told = [key for key in changes if recipe.flatten(settings)[key] != then[key]]
    return recipe.Loaded(settings, dict.fromkeys([*run.facts.get("changed", {}), *told], recipe.SET))


def _start(run: EditedRun, before: Recipe) -> dict[str, Any]:
    """Return the settings that let training go on from the trunk of the run before."""
    from safetensors import safe_open

    path = (run.folder / "model.safetensors").resolve()
    if before.pretrain.kind == "imagenet" and before.network.adapter:
        with safe_open(path, framework="pt") as file:
            adapted = any(name.startswith(f"trunk.blocks.{ADAPTER}.") for name in file.keys())  # noqa: SIM118
        if not adapted:  # the method that delivered left the adapter out: the package's weights are all there is
            return {"pretrain.weights": ""}
    kind = "imagenet" if before.pretrain.kind == "imagenet" else "weights"
    return {"pretrain.kind": kind, "pretrain.weights": str(path)}


def _told(run: EditedRun, found: Refinement, settings: Recipe) -> list[str]:
    """Return what was confirmed, what stays to be discovered and how training goes on."""
    known = f"{counted(len(found.known), 'class', 'classes')} with {of_images(sum(found.known.values()))}"
    lines = [f"Confirmed in {run.folder}: {_with_sizes(found, found.confirmed)}. Known from now on: {known}."]
    junk = len(found.sorting.members(JUNK))
    if found.unnamed:
        lines.append(f"Nobody has named {listed(found.unnamed)}; that can still be done in the new run.")
    if found.moved:
        lines.append(f"Images that a person moved: {found.moved:,}; they count where they were put.")
    if junk:
        lines.append(f"Junk: {of_images(junk)}; left out of training, with a row each in discovery.csv.")
    if found.gone:
        lines.append(f"Known classes without an image left, which are dropped: {', '.join(found.gone)}.")
    if found.left:
        count = settings.count.new_classes
        number = "a number of new classes that is estimated" if count == "auto" else f"{count} new classes"
        lines.append(f"To be discovered: {number} among the {of_images(found.size(found.left))} of "
                     f"{_with_sizes(found, found.left)}, by {SYSTEMS[settings.run.systems[0]]}. Their names and "
                     "limits may change.")  # fmt: skip
    else:
        lines.append("Nothing is left to discover: stage 2 trains a classifier of the known classes alone.")
    if settings.pretrain.weights:
        lines.append(f"Training goes on from {settings.pretrain.weights}; stage 1 is not repeated.")
    else:
        lines.append(f"The model of {run.folder} is the pretrained network without a layer of its own: training goes "
                     "on from that network.")  # fmt: skip
    return lines


def _with_sizes(found: Refinement, numbers: Sequence[int]) -> str:
    return listed([f"{found.sorting.names[n]} ({len(found.sorting.members(n)):,})" for n in numbers])


def _takes(run: EditedRun, found: Refinement, settings: Recipe, device: str) -> str:
    """Return about how long it will take, in a sentence."""
    from autonovel import device as devices
    from autonovel import timing
    from autonovel.cached_views import FEATURES

    _, channels, height, _ = run.facts["images"]
    sized = replace(settings, data=replace(settings.data, size=settings.data.size or height))
    sizes = timing.Sizes(tuple(found.known.values()), found.size(found.left), channels)
    parts = timing.estimate(sized, sizes, devices.pick(device))
    if (run.folder / FEATURES).is_dir():
        parts.pop("features", None)  # taken over
    return timing.in_words(parts)


def _outcome(folder: Path) -> list[str]:
    """Return what came of it, in sentences, and what to do next."""
    classes = read_json(folder / "classes.json")["classes"]
    known, new = ([entry for entry in classes if (entry["kind"] == "known") == wanted] for wanted in (True, False))
    named = listed([f"{entry['name']} {entry['size']:,}" for entry in new])
    found = f"{len(new)} new classes: {named}" if new else "no new classes"
    once_more = (
        f"      autonovel refine {shlex.quote(str(folder))}   (once more, when further classes have their names)"
    )
    again = [once_more] if new else []
    return [f"{len(known)} known classes and {found}.", *next_steps(folder, *again)]
