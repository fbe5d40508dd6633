"""The two readings of the method where the paper and its published code differ, as sets of switches."""

from typing import Any

_AS_RUN = {
    "pretrain.label_weight": 0.0,
    "joint.batch": "merged",
    "joint.epoch": "all",
    "joint.views": "separate",
    "joint.ramp_by": "epoch",
    "joint.group": 0,
    "joint.group_per_class": 0.0,
    "joint.starts": 1,
    "joint.fixed_views": 0,
    "joint.renew_views": 0,
    "joint.frozen_batchnorm": "train",
    "joint.rebalance": False,
    "incremental.after": "supervised",
    "incremental.rebalance": False,
    "dtc.views": "separate",
}

PRESETS: dict[str, dict[str, Any]] = {
    # What produced the published numbers.
    "code": _AS_RUN
    | {
        "pretrain.rotations": "four",
        "pretrain.schedule_ahead": 1,  # the scheduler is stepped before each epoch
        "supervised.schedule_ahead": 1,
        "joint.schedule_ahead": 1,
        "joint.rank_by": "value",
        "joint.bce_views": "two",
        "joint.consistency_on": "all",
        "joint.consistency_over_classes": "mean",
        "joint.new_bias": "below",
    },
    # The formulas as printed.
    "paper": _AS_RUN
    | {
        "pretrain.rotations": "one",
        "pretrain.batch_size": 128,
        "supervised.batch_size": 128,
        "joint.batch_size": 128,
        "joint.rank_by": "magnitude",
        "joint.bce_views": "one",
        "joint.consistency_on": "own",
        "joint.consistency_over_classes": "sum",
        "joint.new_bias": "random",
    },
}
