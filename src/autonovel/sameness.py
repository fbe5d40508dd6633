"""Checksums of what a run learns from: whether images are those of a run, and which runs may share stages."""

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from autonovel.data import ImageSet
from autonovel.errors import UsageError
from autonovel.settings import OWN_SOURCES, Recipe
from autonovel.words import listed


def same_images(facts: Mapping[str, Any], images: ImageSet) -> bool:
    """Tell whether ``images`` are those of the run whose ``run.json`` is ``facts``."""
    return bool(facts.get("digest") == digest_of(images))


def check_same_images(folder: Path, facts: Mapping[str, Any], images: ImageSet, settings: Recipe) -> None:
    """Say so if ``images``, loaded by ``settings``, are not those of the run in ``folder``."""
    if not same_images(facts, images):
        raise UsageError(
            f"the images at {settings.data.path or 'the source'} are not those of {folder}: "
            f"{_what_differs(facts, images)}. Put back its own, or say where they are with --data DIR."
        )


def _what_differs(facts: Mapping[str, Any], images: ImageSet) -> str:
    (then, *_), now = facts.get("images") or [0], len(images)
    if now != then:
        hurt = f" ({len(images.unreadable)} more cannot be read)" if images.unreadable else ""
        return f"there are {now:,} now{hurt}, and the run had {then:,}"
    classes = facts.get("class_names") or []
    if [*images.class_names] != classes:
        return f"the known classes are {listed(images.class_names)} now, and were {listed(classes)}"
    return "some show something else now, or have another label"


def digest_of(images: ImageSet) -> str:
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


def digest_of_source(train: ImageSet, test: ImageSet | None, settings: Recipe, digest: str) -> str | None:
    """Return a checksum of a person's own images and their labels; None for those of a benchmark.

    It is the same under every seed, which says what of them is held out of training.

    Args:
        train: the training images.
        test: those held out, or None.
        settings: of the run.
        digest: checksum of the training images.
    """
    if settings.data.source not in OWN_SOURCES:
        return None
    if test is None:
        return digest
    sums = hashlib.blake2b(train.source_labels.encode(), digest_size=16)
    for told in sorted(one for images in (train, test) for one in _told_of_each(images)):
        sums.update(told.encode())
    return sums.hexdigest()


def _told_of_each(images: ImageSet) -> Iterator[str]:
    """Yield name, pixels and true class, or else label, of every image, which comes from a file."""
    assert images.sums is not None, "images of a person's own that are held out come from files"
    names, numbers = (images.class_names, images.y) if images.truth is None else (images.true_names, images.truth)
    for name, pixels, number in zip(images.ids, images.sums.numpy(), numbers.tolist(), strict=True):
        yield json.dumps([name, pixels.tobytes().hex(), names[number] if number >= 0 else None])


def outline(images: ImageSet) -> str:
    """Return a checksum of names, labels and, of files, what is in them: enough to tell copies of a set apart."""
    told = json.dumps([images.ids, images.class_names, images.fingerprint, list(images.images.shape)])
    return hashlib.blake2b(told.encode() + images.y.numpy().tobytes(), digest_size=16).hexdigest()


def basis_of(images: ImageSet, settings: Recipe, digest: str) -> str:
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
        return digest_of(replace(images, fingerprint=pixels, y=images.y[rows])) + places
    assert isinstance(images.images, Tensor)
    return digest_of(replace(images, images=images.images[rows], y=images.y[rows])) + places


def start_of(settings: Recipe) -> str:
    """Return a checksum of the weights that training starts from, if any: under their name others may lie tomorrow."""
    if not settings.pretrain.reads_weights:
        return ""
    with Path(settings.pretrain.weights).open("rb") as file:
        return hashlib.file_digest(file, functools.partial(hashlib.blake2b, digest_size=16)).hexdigest()
