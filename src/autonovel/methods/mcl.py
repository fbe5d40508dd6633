"""MCL: a clustering network learns from pairs by the likelihood of the pair labels.

Hsu, Lv, Schlosser, Odom, Kira: Multi-class classification without multi-class labels (ICLR 2019).
"""

from dataclasses import dataclass

from autonovel.methods.pair_clustering import PairClusteringMethod, PairLoss
from autonovel.objectives import mcl


@dataclass(frozen=True)
class MCL(PairClusteringMethod):
    """Clustering by pairs with the meta-classification likelihood."""

    title: str = "mcl"
    loss: PairLoss = mcl
