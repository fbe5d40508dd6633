"""KCL: a clustering network learns from pairs by the Kullback–Leibler divergence of their outputs.

Hsu, Lv, Kira: Learning to cluster in order to transfer across domains and tasks (ICLR 2018).
"""

from dataclasses import dataclass

from autonovel.methods.pair_clustering import PairClusteringMethod, PairLoss
from autonovel.objectives import kcl


@dataclass(frozen=True)
class KCL(PairClusteringMethod):
    """Clustering by pairs with the hinge loss of their divergence (margin 2)."""

    title: str = "kcl"
    loss: PairLoss = kcl
