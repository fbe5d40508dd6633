"""What people call the systems."""

LABELS = {
    "kmeans-pixels": "k-means on raw pixels",
    "kmeans": "k-means on stage-2 features",
    "rankstats": "ranking statistics",
    "rankstats-incremental": "ranking statistics with incremental learning",
}
