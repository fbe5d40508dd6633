"""What a person should know of the classes that a folder, a table or shards give: names that look like a slip."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from autonovel.words import listed, of_images

BLANKS = frozenset(  # what programs and people write where nothing is known, in small letters
    ("na", "n/a", "nan", "null", "none", "unknown", "unlabelled", "unlabeled", "?")
)
FEW = 3  # named one by one


def on_names(labels: Iterable[str | None], leave_out: str) -> tuple[str, ...]:
    """Return what to say of class names that may stand for no class, or for a class that is there already.

    Args:
        labels: class of each image, None for those to be discovered.
        leave_out: how an image is left without a class.
    """
    sizes = Counter(label for label in labels if label is not None)
    notes = [
        f"{name!r} is taken for a known class, of {of_images(sizes[name])}. If it says that their class is not known, "
        f"{leave_out}"
        for name in sorted(sizes)
        if name.lower() in BLANKS
    ]
    alike = defaultdict[str, list[str]](list)
    for name in sorted(sizes):
        alike[name.casefold()].append(name)
    differ = [names for names in alike.values() if len(names) > 1]
    notes += [
        f"{' and '.join(f'{name!r} ({sizes[name]:,})' for name in names)} differ in capital letters alone and are "
        "classes of their own. If they are one, write them alike"
        for names in differ[:FEW]
    ]
    if len(differ) > FEW:
        notes.append(f"{len(differ) - FEW:,} further class names are there in several spellings as well")
    return tuple(notes)


def on_folders(ids: Iterable[str], classes: Iterable[str]) -> tuple[str, ...]:
    """Return what to say of class folders that hold folders, and of folders that hold no images.

    Args:
        ids: paths of the images in class folders.
        classes: names of all folders that should be classes.
    """
    inside = defaultdict[str, set[str]](set)
    for name in ids:
        folder, *rest = name.split("/")
        inside[folder].update(rest[:-1][:1])
    nested = {folder: sorted(subs) for folder, subs in sorted(inside.items()) if subs}
    notes = [
        f"{folder} holds the sub-folder{'s' * (len(subs) > 1)} {listed(subs, most=FEW)}; all of it counts as one class"
        for folder, subs in list(nested.items())[:FEW]
    ]
    if len(nested) > FEW:
        notes.append(f"{len(nested) - FEW:,} further class folders hold sub-folders, and each counts as one class")
    empty = sorted(set(classes) - inside.keys())
    if empty:
        hold = "holds no images and is no class" if len(empty) == 1 else "hold no images and are no classes"
        notes.append(f"{'the folder' if len(empty) == 1 else 'the folders'} {listed(empty, most=FEW)} {hold}")
    return tuple(notes)
