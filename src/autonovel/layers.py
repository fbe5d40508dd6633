"""Settings in layers: what recipes say, each over the one it extends, presets, and what a caller gives.

A layer wins over those below it, and takes back more than it says itself:

- another source of images takes back which of them are known and new: that was said of the source before it;
- a preset takes the place of the one before it, right under the layer that names it, and then that one counts in
  nothing; naming the one in force does nothing;
- what is said of joint training is said of incremental learning too, unless that is a training of its own which comes
  after joint training (``incremental.after``): it takes back what layers below say of incremental learning; what it
  comes after is always said so, since joint training itself comes after nothing else;
- all of that is taken back where such a training becomes one with joint training, whose settings then hold, and by the
  preset of the paper, which states that all hyper-parameters stay the same (its code differs).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autonovel.errors import UsageError
from autonovel.presets import PRESETS
from autonovel.settings import WHICH_IMAGES

Flat = dict[str, Any]
PRESET, SOURCE, AFTER, JOINT_AFTER = "preset", "data.source", "incremental.after", "joint.after"
JOINT, INCREMENTAL = "joint.", "incremental."
AS_JOINT, AS_KCL = "as joint", "as kcl"
INHERITED = ((INCREMENTAL, JOINT, AS_JOINT), ("mcl.", "kcl.", AS_KCL))  # sections, and those they are as


@dataclass(frozen=True)
class Layer:
    """What one voice says of settings: a recipe, a preset or a caller.

    Attributes:
        values: settings by their dotted names.
        origin: tells where the value of a setting comes from.
    """

    values: Flat
    origin: Callable[[str], str]

    def without(self, keys: Collection[str]) -> "Layer":
        """Return the layer without what it says of ``keys``."""
        return replace(self, values={key: value for key, value in self.values.items() if key not in keys})


def laid_over(
    below: Sequence[Layer], above: Layer, defaults: Flat, replaced: bool = False
) -> tuple[list[Layer], set[str]]:
    """Return the layers with one more on top, and the settings that are no longer as they were said to be below it.

    ``replaced`` says that a preset which the new one names is not that of the layers still to come.
    """
    before = in_force(below, defaults)
    presets: list[Layer] = []
    preset = above.values.get(PRESET, before[PRESET])
    if preset == before[PRESET]:
        above = above.without({PRESET})
    else:
        values = _of_preset(str(preset))  # there must be such a preset in any case
        presets = [] if replaced else [Layer(values, lambda _: f"preset {preset}")]
    gone = {AFTER} if JOINT_AFTER in above.values else set[str]()
    stack = [layer.without(gone) for layer in (*below, *presets)]
    gone |= _taken_back(before, in_force([*stack, above], defaults), above, bool(presets))
    said = {key for layer in (*presets, above) for key in layer.values}
    return [*(layer.without(gone) for layer in stack), above], gone | said


def with_preset(said: Sequence[Flat], defaults: Flat) -> int:
    """Return which of the voices that say something of settings, the lowest first, names the preset in force."""
    which, preset = 0, defaults[PRESET]
    for place, values in enumerate(said):
        if values.get(PRESET, preset) != preset:
            which, preset = place, values[PRESET]
    return which


def _taken_back(before: Flat, now: Flat, above: Layer, new_preset: bool) -> set[str]:
    """Return the settings of which what was said below ``above`` does not count any more."""
    gone = {*WHICH_IMAGES} if now[SOURCE] != before[SOURCE] else set[str]()
    if (new_preset and now[PRESET] == "paper") or before[AFTER] == "joint" != now[AFTER]:
        return gone | {key for key in now if key.startswith(INCREMENTAL)}
    if now[AFTER] == "joint":
        return gone
    return gone | {INCREMENTAL + key.removeprefix(JOINT) for key in above.values if key.startswith(JOINT)}


def in_force(layers: Iterable[Layer], defaults: Flat) -> Flat:
    """Return the value that every setting has."""
    said: Flat = {}
    for layer in layers:
        said |= layer.values
    values = defaults | said
    return values | {key: values[twin] for key, twin, _ in _inheriting(values, said)}


def origins(layers: Iterable[Layer], defaults: dict[str, str]) -> dict[str, str]:
    """Return where the value that every setting has comes from; ``defaults`` tells it of defaults."""
    said = {key: layer.origin(key) for layer in layers for key in layer.values}
    return defaults | said | {key: how for key, _, how in _inheriting(defaults, said)}


def _inheriting(known: Collection[str], said: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield settings of which nobody says anything, the ones they are as then, and how that is said."""
    for section, other, how in INHERITED:
        for key in known:
            if key.startswith(section) and key not in said:
                yield key, other + key.removeprefix(section), how


def _of_preset(name: str) -> Flat:
    if name and name not in PRESETS:
        raise UsageError(f"no preset {name!r}; presets: {', '.join(PRESETS)}.")
    return PRESETS[name] if name else {}
