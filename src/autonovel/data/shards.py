"""Tar files in the layout of WebDataset, read by position: listed once, then every image is one seek and one read.

A sample is the members that share a name up to the first dot: ``0001.jpg`` is an image, ``0001.cls`` beside it the
name (or number) of its class.  A member with further dots is no image: ``0001.seg.png`` belongs to the sample too, and
is told of.  Without a ``.cls`` an image is to be discovered.  Shards in ``test/`` are for testing.
Local shards need the standard library alone.  Shards elsewhere (https://, s3:// and so on) are copied to
``data.cache`` first, by the package webdataset: reading them in place would tie batches to the order of the files.
"""

import hashlib
import os
import shutil
import tarfile
from collections.abc import Collection
from pathlib import Path

from autonovel.data import class_notes
from autonovel.data.decode import is_image
from autonovel.data.files import Entry, printable
from autonovel.data.listing import Listing
from autonovel.errors import InputError, UsageError
from autonovel.extras import installing
from autonovel.storage import writing
from autonovel.words import counted, listed

TEST = "test"
SECOND_DOT = "its name has a second dot, so that it is part of a sample without an image"
FEW = 3  # named one by one
LABEL = "cls"
WHOLE_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE)  # members that lie in the tar file as they are; sparse ones do not


def load(place: str, cache: str) -> tuple[Listing, Listing | None]:
    """Return the images in the shards at ``place``: a folder of tar files, or addresses with braces in them."""
    elsewhere = "://" in place or place.startswith("pipe:")
    root = fetch(place, cache) if elsewhere else Path(place)
    if not root.is_dir():
        raise UsageError(f"{root} is not a folder; give the folder of the tar files with --data DIR.")
    found = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.tar"))
    if not found:
        raise InputError(f"there are no .tar files in {root}.")
    train = _listing(root, [name for name in found if not name.startswith(TEST + "/")])
    test = _listing(root, [name for name in found if name.startswith(TEST + "/")])
    if None in test.labels:
        missing = test.entries[test.labels.index(None)].id
        raise InputError(f"test image {missing} has no class; put its name into a member ending in .{LABEL}.")
    return train, test if test.entries else None


def _listing(root: Path, shards: list[str]) -> Listing:
    images: dict[str, Entry] = {}
    labels: dict[str, str] = {}
    dotted: dict[str, str] = {}  # samples by their members that end like an image but have further dots
    for shard in shards:
        status = (root / shard).stat()
        try:
            with tarfile.open(root / shard, "r:") as tar:
                for member in tar:
                    if member.type not in WHOLE_FILES:
                        continue
                    if member.offset_data + member.size > status.st_size:
                        raise tarfile.ReadError(f"{member.name} goes beyond its end")
                    folder, _, name = member.name.rpartition("/")
                    stem, _, extension = name.partition(".")
                    sample = f"{shard}/{folder}/{stem}" if folder else f"{shard}/{stem}"
                    if extension == LABEL:
                        labels[sample] = _text(tar, member)
                    elif is_image(f"{stem or 'x'}.{extension}"):
                        if "." in extension:
                            dotted[printable(f"{shard}/{member.name}")] = sample
                            continue
                        place = (member.offset_data, member.size, status.st_mtime_ns)
                        _add(images, sample, Entry(f"{shard}/{member.name}", shard, *place))
        except (tarfile.TarError, EOFError) as error:
            raise InputError(
                f"{root / shard} is not a whole, uncompressed tar file ({error}). Make or fetch it anew."
            ) from error
    order = sorted(images, key=lambda sample: images[sample].id)
    found = [labels.get(sample) for sample in order]
    lost = dict.fromkeys((name for name, sample in dotted.items() if sample not in images), SECOND_DOT)
    notes = class_notes.on_names(found, f"leave out the member that ends in .{LABEL}")
    return Listing(root, [images[sample] for sample in order], found, lost, (*_told(dotted), *notes))


def _told(dotted: Collection[str]) -> tuple[str, ...]:
    """Return what to say of members that end like images but were not taken for the image of their sample."""
    if not dotted:
        return ()
    return (
        f"{counted(len(dotted), 'image with a second dot was', 'images with a second dot were')} not taken "
        f"({listed([*dotted], most=FEW)}): up to the first dot a name is that of a sample, behind it stands what is "
        "there of it. Rename those that are samples of their own",
    )


def _add(images: dict[str, Entry], sample: str, entry: Entry) -> None:
    if sample in images:
        raise InputError(f"{entry.id} and {images[sample].id} are two images in one sample; one is needed.")
    images[sample] = entry


def _text(tar: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    file = tar.extractfile(member)
    assert file is not None
    try:
        return file.read().decode().strip()
    except UnicodeDecodeError as error:
        raise InputError(f"the class in {member.name} is not UTF-8 text ({error}).") from error


def fetch(place: str, cache: str) -> Path:
    """Copy the shards at the addresses ``place`` into the folder ``cache`` and return where they are.

    Braces stand for many, as in ``train-{000..147}.tar``; several addresses are parted by ``::``.
    """
    if cache in ("auto", "off", ""):
        raise UsageError(f"shards at {place} are copied first: say whereto with --set data.cache=DIR.")
    try:
        from webdataset.gopen import gopen
        from webdataset.shardlists import expand_urls
    except ImportError as error:
        raise UsageError(
            f"shards at {place} need the package webdataset ({error}). Install it with: {installing('webdataset')}."
        ) from error
    folder = Path(cache) / f"shards-{hashlib.blake2b(place.encode(), digest_size=6).hexdigest()}"
    for number, address in enumerate(expand_urls(place)):
        target = folder / f"{number:06d}.tar"
        if target.exists():
            continue
        partial = target.with_name(f"{target.name}.{os.getpid()}{writing.PARTIAL}")
        try:
            with gopen(address, "rb") as stream, writing.replacing(target, partial) as file:
                shutil.copyfileobj(stream, file, 1 << 20)
                file.flush()
                with tarfile.open(partial, "r:"):
                    pass  # an error page is no tar file
        except Exception as error:  # of a network, a program or a disk: each package has its own
            raise InputError(f"shard {address} cannot be fetched ({error}). Those fetched before are kept.") from error
    return folder
