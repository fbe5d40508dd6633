"""What people call the systems; ``run.systems`` may name these."""

LABELS = {
    "kmeans-pixels": "k-means on raw pixels",
    "kmeans": "k-means on stage-2 features",
    "kmeans-pretrained": "k-means on pretrained features",
    "kcl": "KCL",
    "mcl": "MCL",
    "dtc": "DTC",
    "rankstats": "ranking statistics",
    "rankstats-incremental": "ranking statistics with incremental learning",
}
