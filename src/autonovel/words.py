"""Numbers and lists as people read them."""

import math
from collections.abc import Iterable, Mapping, Sequence

NAMED = 12  # of a list, one by one


def count(number: int) -> str:
    """Return 2500 as ``2,500``."""
    return f"{number:,}"


def counted(number: int, one: str, many: str) -> str:
    """Return the number with the word for one or for many, as ``1 box`` or ``2,500 boxes``."""
    return f"{count(number)} {one if number == 1 else many}"


def listed(names: Sequence[str], most: int = NAMED) -> str:
    """Return names in a row, of more than ``most`` the last only counted: ``cat, dog and 7 more``, but never one."""
    if len(names) == most + 1:
        most += 1
    return ", ".join(names[:most]) + (f" and {count(len(names) - most)} more" if len(names) > most else "")


def ranges(numbers: Iterable[int]) -> str:
    """Return whole numbers in order, three or more that follow each other by their ends: ``0–3, 7, 8``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def of_images(number: int) -> str:
    """Return ``1 image`` or ``2,500 images``."""
    return counted(number, "image", "images")


def short_commit(commit: object) -> str:
    """Return the first characters of a git commit, and that its tree was changed: ``0123456``, ``0123456-dirty``."""
    name, *dirty = str(commit or "unknown").split("-", 1)
    return "-".join([name[:7], *dirty])


def per_cent(share: float | None, digits: int = 1) -> str:
    """Return 0.973 as ``97.3``, nothing known as a dash; only a whole is called 100."""
    if share is None or not math.isfinite(share):
        return "–"
    text = f"{100 * share:.{digits}f}"
    if float(text) == 100 and share < 1:
        return f"{100 - 10**-digits:.{digits}f}"
    return text


def on_unlabelled(found: Mapping[str, float]) -> str:
    """Return how a classifier of old and new classes does on the unlabelled images."""
    taken = f"wrongly takes {per_cent(found['taken_for_known'])} % of them for known classes"
    return f"On the unlabelled images it has {per_cent(found['acc'])} %, and {taken}."


def look_more_known(number: int) -> str:
    """Return ``1 image looks more like a known class``, or how many do."""
    return f"{of_images(number)} {'looks' if number == 1 else 'look'} more like a known class"


def on_known_again(pairs: Sequence[str]) -> str:
    """Return that new classes may be known ones; each pair is like ``new-6 may be starfish``."""
    if len(pairs) == 1:
        return f"By its features, {pairs[0]}, a known class: look, and merge the two if they are the same."
    return f"By their features, {listed(pairs)}, known classes: look, and merge what is the same."


def duration(seconds: float | None) -> str:
    """Return a time that fits its size: ``0.35 s``, ``12.3 s``, ``2 min 5 s``, ``3 h 2 min``."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
