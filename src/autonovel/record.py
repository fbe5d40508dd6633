"""What a run writes down about itself: ``run.json`` before it starts, ``results.json`` when it is done."""

import datetime
import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from autonovel import device as devices
from autonovel import evaluation, recipe
from autonovel.data import ImageSet
from autonovel.embedding import Embedding
from autonovel.errors import RunFolderError, UsageError
from autonovel.places import as_seen_from
from autonovel.settings import PLACES, SENTENCES, Recipe
from autonovel.storage.documents import read_json, write_json
from autonovel.storage.run_folder import FORMAT, check_format
from autonovel.storage.shapes import run_facts
from autonovel.tables.as_today import settings_held
from autonovel.training.remedies import may_change, too_late_to_inherit

PIXELS = "kmeans-pixels"


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
) -> None:
    """Write ``run.json`` of a new run, or check that a resumed one is the same run.

    ``n_new`` is None while it is still to be counted; ``changed`` names the settings that the caller gave other
    values than the recipe has; ``processes`` tells of several that do it together.
    """
    part = {"started": _now(), "command": command, **(processes or {})}
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
        now["recipe"] |= {key: recipe.flatten(settings)[key] for key in now["places"]}
        write_json(path, before | now | {"parts": [*before.get("parts", []), part]})
        return
    digest = _digest(images)
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
        "basis": _basis(images, settings, digest) + _start(settings),
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
    places = as_seen_from(folder, settings)
    compared -= {key for key, place in before.get("places", {}).items() if places.get(key) == place}  # called otherwise
    other = {k: (then.get(k), now[k]) for k in now if k in compared and now[k] != then.get(k)}
    settled = too_late_to_inherit(folder, before, other, now)
    other = {k: values for k, values in other.items() if k not in settled}
    altered = other if other and may_change(folder, before, other) else {}
    changed = [f"{k}: {was!r} there, {new!r} now" for k, (was, new) in other.items() if k not in altered]
    if not same_images(before, images):
        changed.append("other images or labels")
    if changed:
        raise UsageError(
            f"this run folder was begun with other settings ({'; '.join(changed[:4])}). "
            "Resume with the same ones, or choose another --out."
        )
    return altered


def same_images(facts: Mapping[str, Any], images: ImageSet) -> bool:
    """Tell whether ``images`` are those of the run whose ``run.json`` is ``facts``."""
    return bool(facts.get("digest") == _digest(images))


def check_same_images(folder: Path, facts: Mapping[str, Any], images: ImageSet, settings: Recipe) -> None:
    """Say so if ``images``, loaded by ``settings``, are not those of the run in ``folder``."""
    if not same_images(facts, images):
        raise UsageError(
            f"the images at {settings.data.path or 'the source'} are not those of {folder}, or have other labels. "
            "Say where its own are with --data DIR."
        )


def counted(folder: Path, n_new: int) -> None:
    """Add the number of new classes to ``run.json`` of a run that did not know it."""
    write_json(folder / "run.json", check_format(folder) | {"n_new": n_new})


def chosen(folder: Path, primary: str) -> None:
    """Put the system that delivers into ``run.json`` of a run that found out by trials."""
    write_json(folder / "run.json", check_format(folder) | {"primary": primary})


def _digest(images: ImageSet) -> str:
    """Return a checksum of images, labels and class names; the same however the images are held."""
    sums = hashlib.blake2b(digest_size=16)
    if images.fingerprint:
        sums.update(images.fingerprint.encode())
    else:
        for chunk in images.images.split(4096):
            sums.update(chunk.contiguous().numpy().tobytes())
    sums.update(images.y.contiguous().numpy().tobytes())
    sums.update(json.dumps(images.class_names).encode())
    return sums.hexdigest()


def outline(images: ImageSet) -> str:
    """Return a checksum of names, labels and, of files, what is in them: enough to tell copies of a set apart."""
    told = json.dumps([images.ids, images.class_names, images.fingerprint, list(images.images.shape)])
    return hashlib.blake2b(told.encode() + images.y.numpy().tobytes(), digest_size=16).hexdigest()


def _basis(images: ImageSet, settings: Recipe, digest: str) -> str:
    """Return a checksum of all that stages 1 and 2 learn from: runs of one basis may share them.

    That is every image, of which ``digest`` is the checksum, unless stage 1 sees the labelled ones alone; then it is
    these, and their places, on which random draws depend.
    """
    if not settings.pretrain.labelled_only or not (isinstance(images.images, Tensor) or images.sums is not None):
        return digest
    rows = (~images.unlabelled).nonzero()[:, 0]
    places = hashlib.blake2b(rows.numpy().tobytes(), digest_size=16).hexdigest()
    if images.sums is not None:  # of files, which may not be in memory
        pixels = hashlib.blake2b(images.sums[rows].numpy().tobytes(), digest_size=16).hexdigest()
        return _digest(replace(images, fingerprint=pixels, y=images.y[rows])) + places
    assert isinstance(images.images, Tensor)
    return _digest(replace(images, images=images.images[rows], y=images.y[rows])) + places


def _start(settings: Recipe) -> str:
    """Return a checksum of the weights that training starts from, if any: under their name others may lie tomorrow."""
    if not settings.pretrain.reads_weights:
        return ""
    with Path(settings.pretrain.weights).open("rb") as file:
        return hashlib.file_digest(file, functools.partial(hashlib.blake2b, digest_size=16)).hexdigest()


def finish(folder: Path, device: torch.device) -> None:
    """Add the end of the run to ``run.json``."""
    facts = check_format(folder)
    write_json(folder / "run.json", facts | {"finished": _now(), "peak_memory": devices.peak_memory_bytes(device)})


def delivered(folder: Path) -> bool:
    """Tell whether the run in ``folder`` has delivered, so that it can be looked at, corrected and used."""
    return "finished" in check_format(folder) and (folder / "results.json").exists()


def finished(folder: Path) -> bool:
    """Tell whether nothing is left to do in ``folder``: it has delivered, and no system of its comparison failed."""
    return delivered(folder) and not read_json(folder / "results.json").get("failed")


def finished_facts(folder: Path) -> dict[str, Any]:
    """Return ``run.json`` of the run in ``folder``, which must have delivered."""
    if not delivered(folder):
        raise RunFolderError(f"{folder} is not finished. Go on with it first (--resume, or resume=True in Python).")
    return run_facts(folder)


def cluster_scores(images: ImageSet, clusters: Tensor) -> dict[str, float] | None:
    """Return ACC, NMI and ARI of the unlabelled images' clusters, or None where nobody knows the truth."""
    if images.truth is None:
        return None
    return evaluation.score(images.truth[images.unlabelled].numpy(), clusters.numpy()).as_dict()


def system_scores(images: ImageSet, embedding: Embedding) -> dict[str, float] | None:
    """Return the scores of a system by its head of the new classes, the paper's headline protocol; None without any."""
    if not embedding.p_new.shape[1]:
        return None
    return cluster_scores(images, embedding.p_new[images.unlabelled].argmax(dim=1))


def judges_of_joint(
    train: ImageSet, on_train: Embedding, test: ImageSet | None, on_test: Embedding | None
) -> tuple[ImageSet, Embedding, str]:
    """Return the images that a grown head is judged on, what the model says of them, and what to call them."""
    if test is not None and on_test is not None:
        return test, on_test, evaluation.HELD_OUT
    return train, on_train, "the training images (none were held out)"


def joint_scores(
    train: ImageSet, on_train: Embedding, test: ImageSet | None = None, on_test: Embedding | None = None
) -> dict[str, Any] | None:
    """Return old / new / all accuracies of a grown head, on the test images if some were held out.

    None without truth, without a grown head, or without images of both kinds.  The split is named, so that nobody
    mistakes one for the other.  Beside them, where the truth of the unlabelled training images is known, what the grown
    head makes of these, on which the head of the new classes is judged.
    """
    images, embedding, split = judges_of_joint(train, on_train, test, on_test)
    if images.truth is None or not embedding.is_grown(images.n_known):
        return None
    old = images.truth < images.n_known
    if old.all() or not old.any():  # nothing to compare, such as a test set of known classes alone
        return None
    found = evaluation.incremental(images.truth.numpy(), embedding.p_known.argmax(dim=1).numpy(), images.n_known)
    told = {"split": split, "protocols": {name: value.as_dict() for name, value in found.items()}}
    return told | ({"unlabelled": _of_unlabelled(train, on_train)} if train.truth is not None else {})


def _of_unlabelled(train: ImageSet, on_train: Embedding) -> dict[str, float]:
    """Return ACC of a grown head on the unlabelled images, and the share of them it wrongly takes for known classes.

    Only outputs of new classes are matched; a known class is right where the image is truly of it, as in piles of
    one's own pictures.
    """
    assert train.truth is not None
    truth, predicted = train.truth[train.unlabelled], on_train.p_known[train.unlabelled].argmax(dim=1)
    new = predicted >= train.n_known
    share, right, wrong = (
        float(chosen.double().mean()) for chosen in (new, ~new & (predicted == truth), ~new & (predicted != truth))
    )
    acc = share * evaluation.accuracy(truth[new].numpy(), predicted[new].numpy()) if share else 0.0
    return {"acc": acc + right, "taken_for_known": wrong}


def system_record(
    on_train: Embedding, seconds: float, train: ImageSet, test: ImageSet | None, on_test: Embedding | None
) -> dict[str, Any]:
    """Return what is kept of one system: its scores, the time it took, and old / new / all of a grown head."""
    scores = system_scores(train, on_train)
    return {"scores": scores, "seconds": seconds, "incremental": joint_scores(train, on_train, test, on_test)}


def results(folder: Path, records: dict[str, dict[str, Any]], seconds: dict[str, float]) -> dict[str, Any]:
    """Return the content of ``results.json``, which says all a table needs to quote it.

    ``incremental``, old / new / all, is that of the first system with a grown head; ``joint_classifiers`` has it
    of every system.  ``seconds`` may still be filled in.
    """
    facts = check_format(folder)
    settings = recipe.restore(facts["recipe"])
    joint = [content["incremental"] for content in records.values() if content["incremental"]]
    return {
        "format": FORMAT,
        "recipe": settings.name,
        "preset": settings.preset,
        "seed": facts["seed"],
        "primary": facts["primary"],
        "epoch": "last",
        "systems": {name: content["scores"] for name, content in records.items()},
        "incremental": joint[0] if joint else None,
        "n_new": facts["n_new"],
        "joint_classifiers": {name: content["incremental"] for name, content in records.items()},
        "seconds": seconds,
        "parts": len(facts["parts"]),
        "departures": list(settings.departures),
        "changed": facts["changed"],
        "settings": settings_held(settings),
        **{key: facts[key] for key in ("hardware", "threads", "versions", "commit", "platform")},
    }


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
