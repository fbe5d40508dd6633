"""What people call the systems; ``run.systems`` may name these."""

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
