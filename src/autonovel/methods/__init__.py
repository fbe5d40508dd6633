"""Methods by name: one file per system."""

from autonovel.methods.dtc import DTC
from autonovel.methods.kcl import KCL
from autonovel.methods.kmeans import KMeans
from autonovel.methods.known_only import KnownOnly
from autonovel.methods.mcl import MCL
from autonovel.methods.method import Method, Problem
from autonovel.methods.pretrained_kmeans import PretrainedKMeans
from autonovel.methods.rankstats import RankStats

METHODS: dict[str, Method] = {
    "rankstats": RankStats(),
    "rankstats-incremental": RankStats(incremental=True),
    "dtc": DTC(),
    "kcl": KCL(),
    "mcl": MCL(),
    "kmeans": KMeans(),
    "kmeans-pretrained": PretrainedKMeans(),
    "known-only": KnownOnly(),
}
# systems that take the network as it was pretrained, before stage 2 taught it the known classes
WITHOUT_STAGE_2 = ("kmeans-pretrained",)

__all__ = ["METHODS", "WITHOUT_STAGE_2", "Method", "Problem"]
