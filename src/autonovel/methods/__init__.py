"""Methods by name: one file per system."""

from autonovel.methods.kmeans import KMeans
from autonovel.methods.method import Method, Problem
from autonovel.methods.rankstats import RankStats

METHODS: dict[str, Method] = {
    "rankstats": RankStats(),
    "rankstats-incremental": RankStats(incremental=True),
    "kmeans": KMeans(),
}

__all__ = ["METHODS", "Method", "Problem"]
