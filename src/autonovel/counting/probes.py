"""Known classes that play new ones while the new classes are counted."""

from dataclasses import dataclass, field

import torch

from autonovel import draws
from autonovel.data import ImageSet
from autonovel.data.groups import groups
from autonovel.errors import UsageError
from autonovel.settings import Count, Recipe

FEWEST_PROBES = 4  # two anchors and two to be found again
FEWEST_TAUGHT = 2  # classes left to teach stage 2


@dataclass(frozen=True)
class Probes:
    """Known classes that play new ones, by number; the first of them are anchors.

    ``group`` names them where they are one of the groups of classes held out from pretraining.
    """

    classes: tuple[int, ...] = ()
    n_anchors: int = 0
    group: str = field(default="", compare=False)

    @property
    def anchors(self) -> tuple[int, ...]:
        """Return the classes whose images are held in their clusters."""
        return self.classes[: self.n_anchors]


def choose_probes(n_known: int, settings: Count, seed: int) -> Probes:
    """Return known classes to play new ones, drawn at random; none if there are too few."""
    if n_known < FEWEST_PROBES + FEWEST_TAUGHT or not settings.probe_share:
        return Probes()
    n = min(max(round(settings.probe_share * n_known), FEWEST_PROBES), n_known - FEWEST_TAUGHT)
    order = torch.randperm(n_known, generator=draws.generator(seed, 43)).tolist()
    return Probes(tuple(order[:n]), min(round(settings.anchor_share * n), n - 2))


def probe_sets(images: ImageSet, recipe: Recipe, seed: int) -> list[Probes]:
    """Return the probe classes with which to count, one set after another."""
    s, pretrain = recipe.count, recipe.pretrain
    if s.probes == "random":
        sets = [choose_probes(images.n_known, s, seed)]
    elif pretrain.held_out:
        named = groups(images.class_names, pretrain.held_out).items()
        sets = [_group(name, members, s, seed, place) for place, (name, members) in enumerate(named)]
    else:
        raise UsageError("count.probes is held-out, but pretrain.held_out names no group of known classes.")
    held_out = s.probes == "held-out" and pretrain.kind == "prototypical"  # rotations are told all labels, or none
    if pretrain.learns_labels and not held_out and any(chosen.classes for chosen in sets):
        other = (
            "Hold groups of classes out (pretrain.held_out) and set count.probes=held-out"
            if pretrain.kind == "prototypical"
            else "Train stage 1 on rotations alone (pretrain.label_weight=0)"
        )
        raise UsageError(
            "stage 1 learns from the labels of known classes, so those that it saw cannot play new ones when these are "
            f"counted. {other}; or let none play new ones (count.probes=random and count.probe_share=0)."
        )
    return sets


def _group(name: str, members: tuple[int, ...], s: Count, seed: int, place: int) -> Probes:
    if len(members) < FEWEST_PROBES:
        raise UsageError(
            f"pretrain.held_out names {name}, a group of {len(members)} known classes; at least {FEWEST_PROBES} are "
            "needed to play new ones."
        )
    order = torch.randperm(len(members), generator=draws.generator(seed, 43, place)).tolist()
    return Probes(tuple(members[i] for i in order), min(round(s.anchor_share * len(members)), len(members) - 2), name)
