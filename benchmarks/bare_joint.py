"""Stage 3 at ImageNet's size as a bare loop of torch calls: the same arithmetic as ours, and nothing around it.

Same network, views (random part of the image, resized, mirrored half of the time), batch, precision and memory layout;
images resident on the device; two passes, cross-entropy, pairs by ranking statistics and consistency.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from autonovel import networks, settings
from autonovel.augment import flip, resized_crop


def random_view(x: Tensor, smallest: float, aspect: float, side: int) -> Tensor:
    """Return a random part of each image, resized to side×side, mirrored half of the time."""
    u = torch.rand(len(x), 5, device=x.device)
    return flip(resized_crop(x, u[:, :4], smallest, aspect, side), u[:, 4:])


def joint_step(
    images: Tensor, y: Tensor, known: int, new: int, s: settings.Joint, precision: str
) -> Callable[[], Tensor]:
    """Return a training step on random batches of ``images``, labelled where ``y`` is a class; it returns its loss."""
    device = images.device
    trunk = networks.NETWORKS["resnet18-imagenet"](images.shape[1]).to(device, memory_format=torch.channels_last)
    trunk.freeze(s.frozen)
    heads = nn.ModuleList([nn.Linear(trunk.n_features, n) for n in (known, new)]).to(device)
    trained = [p for p in [*trunk.parameters(), *heads.parameters()] if p.requires_grad]
    optimiser = torch.optim.SGD(trained, 0.01, momentum=s.momentum, weight_decay=s.weight_decay, fused=True)
    mean = torch.tensor((0.485, 0.456, 0.406), device=device).view(1, 3, 1, 1)
    std = torch.tensor((0.229, 0.224, 0.225), device=device).view(1, 3, 1, 1)
    labelled, free = (y >= 0).nonzero()[:, 0], (y < 0).nonzero()[:, 0]
    n_labelled, n_free = s.labelled_per_batch, s.batch_size - s.labelled_per_batch
    a = s.augment
    trunk.train()

    def features(x: Tensor) -> Tensor:
        view = random_view(x, a.resized_crop, a.aspect, a.side)
        view = ((view - mean) / std).contiguous(memory_format=torch.channels_last)
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            z: Tensor = trunk(view)
        return z.float()

    def step() -> Tensor:
        chosen = torch.cat([
            labelled[torch.randint(len(labelled), (n_labelled,), device=device)],
            free[torch.randint(len(free), (n_free,), device=device)],
        ])  # fmt: skip
        x = images[chosen].float() / 255
        z, z_hat = features(x), features(x)
        old, old_hat, u, u_hat = heads[0](z), heads[0](z_hat), heads[1](z), heads[1](z_hat)
        p, p_hat = u.softmax(1), u_hat.softmax(1)
        top = z[n_labelled:].detach().topk(s.k, dim=1).indices
        sets = torch.zeros(n_free, z.shape[1], device=device).scatter_(1, top, 1.0)
        scores = p[n_labelled:] @ p_hat[n_labelled:].T
        pairs = -torch.log(torch.where(sets @ sets.T == s.k, scores, 1 - scores) + 1e-7).mean()
        agreement = F.mse_loss(p, p_hat) + F.mse_loss(old.softmax(1), old_hat.softmax(1))
        loss = F.cross_entropy(old[:n_labelled], y[chosen[:n_labelled]]) + pairs + s.weight * agreement
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        return loss.detach()

    return step
