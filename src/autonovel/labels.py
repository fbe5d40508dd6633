"""What people call the systems; ``run.systems`` may name these."""

from collections.abc import Iterable

from autonovel.visible import visible

PLAIN, GROWN = "rankstats", "rankstats-incremental"  # the method itself, without and with incremental learning
PIXELS = "kmeans-pixels"  # has no model to deliver
KNOWN_ONLY = "known-only"  # discovers nothing: for runs in which every image has a label
LABELS = {
    PIXELS: "k-means on raw pixels",
    "kmeans": "k-means on stage-2 features",
    "kmeans-pretrained": "k-means on pretrained features",
    "kcl": "KCL",
    "mcl": "MCL",
    "dtc": "DTC",
    PLAIN: "ranking statistics",
    GROWN: "ranking statistics with incremental learning",
    KNOWN_ONLY: "classifier of the known classes alone",
}


def label_of(system: str) -> str:
    """Return what people call a system; one of somebody else, whose method nobody has registered here, by its name."""
    return LABELS.get(system) or visible(system)


def with_labels_first(systems: Iterable[str]) -> list[str]:
    """Return all systems there are labels of, in their order, and behind them the others of ``systems``, each once."""
    return list(dict.fromkeys((*LABELS, *systems)))
