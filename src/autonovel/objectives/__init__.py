"""The paper's equations as pure functions of tensors.

Symbols follow the paper: ``z`` features, ``p`` and ``p_hat`` the soft-max outputs of two views of the
same images, ``s`` pair labels, ``w`` row weights (1 where an image takes part, 0 where it does not).
Weights instead of boolean indexing keep every shape static, so that a whole training step can be one
CUDA graph.  No function here knows about devices, settings or processes.
"""

from autonovel.objectives.classification import cross_entropy, pseudo_labels
from autonovel.objectives.consistency import consistency
from autonovel.objectives.dtc import kl_to_target, running_average, sharpened, student_t
from autonovel.objectives.kcl import kcl
from autonovel.objectives.mcl import mcl
from autonovel.objectives.pairs import pair_labels, pairs_in_groups, pairwise_bce, top_k_sets
from autonovel.objectives.prototypes import prototype_distances, prototypical
from autonovel.objectives.ramp import ramp
from autonovel.objectives.similarity import pair_cross_entropy

__all__ = [
    "consistency",
    "cross_entropy",
    "kcl",
    "kl_to_target",
    "mcl",
    "pair_cross_entropy",
    "pair_labels",
    "pairs_in_groups",
    "pairwise_bce",
    "prototype_distances",
    "prototypical",
    "pseudo_labels",
    "ramp",
    "running_average",
    "sharpened",
    "student_t",
    "top_k_sets",
]
