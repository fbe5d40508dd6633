"""Batches that the images at hand can fill."""

from typing import Any

from autonovel.data.checks import clustering_sections
from autonovel.settings import Recipe

ON_UNLABELLED, ON_LABELLED = ("kcl", "mcl", "dtc"), ("similarity",)


def fitting_batches(settings: Recipe, labelled: int, unlabelled: int, processes: int = 1) -> dict[str, Any]:
    """Return changes of those batches that so many images would not fill; ``processes`` can share what they become."""
    out: dict[str, Any] = {}
    labelled, unlabelled = (max(n // processes, 1) * processes if n else 0 for n in (labelled, unlabelled))
    most = {"supervised": labelled if settings.supervised.epochs else 0}
    if settings.pretrain.kind == "rotation":
        most["pretrain"] = labelled + unlabelled
    for section in clustering_sections(settings):
        there = labelled if section in ON_LABELLED else unlabelled
        most[section] = there if section in ON_LABELLED + ON_UNLABELLED else labelled + unlabelled
    for section, joint in settings.joint_sections.items():
        if joint.batch == "merged":
            most[section] = labelled + unlabelled
            continue
        share = joint.labelled_per_batch or joint.batch_size // 2
        known, free = min(share, labelled), min(joint.batch_size - share, unlabelled)
        if known + free < joint.batch_size:
            out |= {f"{section}.batch_size": known + free, f"{section}.labelled_per_batch": known}
    for section, there in most.items():
        if 0 < there < getattr(settings, section).batch_size:
            out[f"{section}.batch_size"] = there
    return out
