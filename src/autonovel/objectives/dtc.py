"""DTC (Han et al., ICCV 2019): soft assignments to centres, pulled towards their own sharpened form."""

import torch
from torch import Tensor


def student_t(distances: Tensor) -> Tensor:
    """Return q_ik ∝ (1 + ‖z_i − μ_k‖²)⁻¹, the soft assignment by Student's t with one degree of freedom."""
    # distances: n×c float, squared
    kernel = 1 / (1 + distances.float())
    return kernel / kernel.sum(dim=1, keepdim=True)


def sharpened(q: Tensor) -> Tensor:
    """Return the target p_ik ∝ q_ik² / Σ_j q_jk: surer than q, and with clusters of like size."""
    # q: n×c float, of all unlabelled images
    share = q.square() / q.sum(dim=0, keepdim=True)
    return share / share.sum(dim=1, keepdim=True)


def kl_to_target(q: Tensor, p: Tensor, eps: float = 1e-12) -> Tensor:
    """Return KL(p ‖ q), averaged over images and clusters as the published code does."""
    # q, p: n×c float
    p, q = p.float(), q.float()
    return (p * (torch.log(p + eps) - torch.log(q + eps))).mean()


def running_average(average: Tensor, latest: Tensor, momentum: float) -> Tensor:
    """Return Z ← α Z + (1 − α) q of temporal ensembling; after t updates, Z / (1 − αᵗ) has no bias towards 0."""
    return momentum * average + (1 - momentum) * latest
