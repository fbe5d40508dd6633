"""KCL (Hsu et al., ICLR 2018): alike pairs should be alike in distribution, others far apart."""

import torch
from torch import Tensor


def kcl(p: Tensor, s: Tensor, pairs: Tensor, margin: float = 2.0, eps: float = 1e-7) -> Tensor:
    """Return the hinge loss of KL(p_i ‖ p_j) against s_ij, over ``pairs``: KL if alike, else max(0, margin − KL).

    The first of each pair is a fixed target; ordered pairs hold both orders, so both sides learn.
    """
    # p: n×c float; s: n×n bool; pairs: n×n float in {0, 1}
    p = p.float()
    target, log_p = p.detach(), torch.log(p + eps)
    kl = (target * torch.log(target + eps)).sum(dim=1, keepdim=True) - target @ log_p.T
    losses = torch.where(s, kl, (margin - kl).clamp(min=0))
    return (losses * pairs).sum() / pairs.sum().clamp(min=1)
