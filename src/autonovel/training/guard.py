"""Watches a run for collapse and says so in one plain sentence."""

import math

import torch
from torch import Tensor

# Below this share of the possible entropy nearly all images sit in one class.
COLLAPSED_ENTROPY = 0.03


def usage_entropy(usage: Tensor) -> float:
    """Return the entropy of the share of images in each class, on the scale 0 (one class) to 1 (even)."""
    share = usage.double() / usage.double().sum().clamp(min=1e-12)
    entropy = -(share * share.clamp(min=1e-12).log()).sum()
    return float(entropy / math.log(max(len(usage), 2)))


ADVICE = "Try a lower learning rate (lr) or a longer warm-up (warmup_epochs) in this stage's section."
JOINT_ADVICE = (
    "Try a longer warm-up (joint.warmup_epochs), a smaller group (joint.group), "
    "a slower ramp (joint.ramp_epochs) or a smaller weight (joint.weight) of the consistency."
)


def complaint(terms: dict[str, float], usage: Tensor | None, advice: str = JOINT_ADVICE) -> str | None:
    """Return what is wrong with an epoch, or None.

    Args:
        terms: mean of every loss term over the epoch.
        usage: share of unlabelled images put into each new class during the epoch, if there is one.
        advice: what to try after a collapse.
    """
    broken = [name for name, value in terms.items() if not math.isfinite(value)]
    if broken:
        return (
            f"the loss is no longer a finite number ({', '.join(broken)}). "
            "Try a lower learning rate (lr), a longer warm-up (warmup_epochs), or precision float32."
        )
    if usage is not None and len(usage) > 1 and bool(torch.isfinite(usage).all()) and float(usage.sum()) > 0:
        entropy = usage_entropy(usage)
        if entropy < COLLAPSED_ENTROPY:
            return (
                f"the new classes collapsed: {100 * float(usage.max() / usage.sum()):.1f} % of the unlabelled images "
                f"fall into one of them. {advice}"
            )
    return None
