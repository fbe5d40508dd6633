"""What a run writes down about itself in ``run.json``: before it starts, while it goes on, and when it is done."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from autonovel import device as devices
from autonovel import recipe, sameness
from autonovel.data import ImageSet
from autonovel.data.files import printable
from autonovel.errors import RunFolderError, UsageError
from autonovel.places import as_seen_from, same
from autonovel.settings import PLACES, SENTENCES, Recipe
from autonovel.storage.documents import read_json, write_json
from autonovel.storage.run_folder import FORMAT, check_format
from autonovel.storage.shapes import run_facts
from autonovel.training.remedies import may_change, too_late_to_inherit

DELIVERED = ("model.safetensors", "embedding.safetensors")  # made anew from the stages where they were damaged


def begin(
    folder: Path,
    settings: Recipe,
    seed: int,
    device: torch.device,
    images: ImageSet,
    n_new: int | None,
    command: list[str],
    changed: Mapping[str, Any],
    processes: Mapping[str, Any] | None = None,
    held: ImageSet | None = None,
) -> None:
    """Write ``run.json`` of a new run, or check that a resumed one is the same run.

    ``n_new`` is None while it is still to be counted; ``changed`` names the settings that the caller gave other
    values than the recipe has; ``processes`` tells of several that do it together; ``held`` are the test images.
    """
    part = {"started": _now(), "command": [*map(printable, command)], **(processes or {})}
    path = folder / "run.json"
    if path.exists():
        before = check_format(folder)
        altered = _check_same(before, settings, seed, images, n_new, folder)
        if finished(folder):
            return  # looking at it again is no part of it
        gentler = {key: new for key, (_, new) in altered.items()}
        now = {key: before.get(key, {}) | gentler for key in ("recipe", "changed")}
        part |= {"altered": altered} if altered else {}
        now["places"] = as_seen_from(folder, settings)  # images may lie elsewhere by now
        now["recipe"] |= {key: recipe.flatten(settings)[key] for key in {*PLACES, *now["places"]}}
        write_json(path, before | now | {"parts": [*before.get("parts", []), part]})
        return
    digest = sameness.digest_of(images)
    facts = {
        "format": FORMAT,
        "recipe": recipe.flatten(settings),
        "seed": seed,
        "device": device.type,
        **{("hardware" if key == "device" else key): value for key, value in devices.facts(device).items()},
        "threads": {
            "rotation": settings.pretrain.threads,
            "supervised": settings.supervised.threads,
            "joint": settings.joint.threads,
            "incremental": settings.incremental.threads,
            "torch default": torch.get_num_threads(),
        },
        "changed": dict(changed),
        "primary": settings.run.systems[0],
        "places": as_seen_from(folder, settings),
        "images": list(images.images.shape),
        "class_names": list(images.class_names),
        "n_new": n_new,
        "digest": digest,
        "source_digest": sameness.digest_of_source(images, held, settings, digest),
        "basis": sameness.basis_of(images, settings, digest) + sameness.start_of(settings),
        "parts": [part],
    }
    write_json(path, facts)


def _check_same(
    before: dict[str, Any], settings: Recipe, seed: int, images: ImageSet, n_new: int | None, folder: Path
) -> dict[str, tuple[Any, Any]]:
    """Refuse to go on with a run of other settings or other images; where the images lie may have changed.

    So may what the recipe says of itself, which a later version may put into other words.

    Returns the settings, as they were and as they are, that may be other ones because a guard has stopped the run.
    """
    now = recipe.flatten(settings) | {"seed": seed} | ({} if n_new is None else {"n_new": n_new})
    then = recipe.completed(before.get("recipe", {})) | {"seed": before.get("seed"), "n_new": before.get("n_new")}
    compared = now.keys() - {*PLACES, *SENTENCES}
    compared -= same(before.get("places", {}), as_seen_from(folder, settings))
    other = {k: (then.get(k), now[k]) for k in now if k in compared and now[k] != then.get(k)}
    settled = too_late_to_inherit(folder, before, other, now)
    other = {k: values for k, values in other.items() if k not in settled}
    altered = other if other and may_change(folder, before, other) else {}
    changed = [f"{k}: {was!r} there, {new!r} now" for k, (was, new) in other.items() if k not in altered]
    if not sameness.same_images(before, images):
        changed.append("other images or labels")
    if changed:
        raise UsageError(
            f"this run folder was begun with other settings ({'; '.join(changed[:4])}). "
            "Resume with the same ones, or choose another --out."
        )
    return altered


def counted(folder: Path, n_new: int) -> None:
    """Add the number of new classes to ``run.json`` of a run that did not know it."""
    write_json(folder / "run.json", check_format(folder) | {"n_new": n_new})


def chosen(folder: Path, primary: str) -> None:
    """Put the system that delivers into ``run.json`` of a run that found out by trials."""
    write_json(folder / "run.json", check_format(folder) | {"primary": primary})


def finish(folder: Path, device: torch.device) -> None:
    """Add the end of the run to ``run.json``."""
    facts = check_format(folder)
    write_json(folder / "run.json", facts | {"finished": _now(), "peak_memory": devices.peak_memory_bytes(device)})


def delivered(folder: Path) -> bool:
    """Tell whether the run in ``folder`` has delivered, so that it can be looked at, corrected and used."""
    return "finished" in check_format(folder) and (folder / "results.json").exists()


def finished(folder: Path) -> bool:
    """Tell whether nothing is left to do in ``folder``.

    It has delivered, what it delivered can be read, and no system of its comparison failed.
    """
    whole = delivered(folder) and all(_is_whole(folder / name) for name in DELIVERED)
    return whole and not read_json(folder / "results.json").get("failed")


def _is_whole(path: Path) -> bool:
    """Tell whether a file of tensors has as many bytes as it says in its beginning."""
    try:
        with safe_open(path, "pt"):
            return True
    except (OSError, SafetensorError):
        return False


def finished_facts(folder: Path) -> dict[str, Any]:
    """Return ``run.json`` of the run in ``folder``, which must have delivered."""
    if not delivered(folder):
        raise RunFolderError(f"{folder} is not finished. Go on with it first (--resume, or resume=True in Python).")
    return run_facts(folder)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
