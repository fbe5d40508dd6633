"""MCL (Hsu et al., ICLR 2019): the likelihood of the pair labels under the clustering."""

from torch import Tensor

from autonovel.objectives.pairs import pairwise_bce


def mcl(p: Tensor, s: Tensor, pairs: Tensor) -> Tensor:
    """Return the mean over ``pairs`` of −log ŝ_ij if s_ij, else −log(1 − ŝ_ij), where ŝ_ij = ⟨p_i, p_j⟩.

    It is eq. 3 of the ranking statistics with a single view; the two methods differ in where s comes from.
    """
    # p: n×c float; s: n×n bool; pairs: n×n float in {0, 1}
    return pairwise_bce(p, p, s, pairs)
