"""One optimisation step, as PyTorch runs it by default."""

import torch
from torch import Tensor
from torch.optim import Optimizer

from autonovel.data import Loader
from autonovel.networks import Model
from autonovel.training import optimisers
from autonovel.training.stage import Progress, Stage

Sums = dict[str, tuple[Tensor, Tensor]]


class Step:
    """Trains ``model`` on one batch at a time and sums up what the stage reports over an epoch."""

    def __init__(self, model: Model, stage: Stage, loader: Loader, optimiser: Optimizer, steps_per_epoch: int) -> None:
        self.model, self.stage, self.loader, self.optimiser = model, stage, loader, optimiser
        self.steps_per_epoch = steps_per_epoch
        self.terms: dict[str, Tensor] = {}
        self.sums: Sums = {}
        self.whole: Tensor | None = None  # of each loss term, the steps of this epoch before it stopped being finite
        self.broken: dict[str, int] = {}  # of the last epoch, the terms that did, and the step of the stage, from 1
        self.last = 0  # number of the last step, from 0

    def __call__(self, index: Tensor, u: Tensor, step: int, rate: float) -> None:
        """Train on the images ``index`` with random numbers ``u``, as step number ``step``, at rate ``rate``.

        Of several processes, all name the whole batch, and each gives the random numbers of its share.
        """
        self.last = step
        optimisers.set_rate(self.optimiser, rate)
        self.optimiser.zero_grad(set_to_none=True)
        self._add(self._train(index, u, torch.tensor(step, device=index.device)))

    def _train(self, index: Tensor, u: Tensor, number: Tensor) -> Sums:
        """Take the step; return its terms and notes, each as (sum, out of how many)."""
        progress = Progress(number, self.steps_per_epoch)
        with self.model.sharing(len(u)):
            terms = self.stage.step(self.model, self.loader.batch(index, u), progress)
        torch.stack(list(terms.values())).sum().backward()
        self.model.ranks.average(self._gradients())
        self.optimiser.step()
        self.terms = {name: value.detach() for name, value in terms.items()}
        return {f"loss/{name}": (value, torch.ones_like(value)) for name, value in self.terms.items()} | progress.notes

    def _gradients(self) -> list[Tensor]:
        return [p.grad for group in self.optimiser.param_groups for p in group["params"] if p.grad is not None]

    def _add(self, reported: Sums) -> None:
        for name, (count, out_of) in reported.items():
            before = self.sums.get(name, (0.0, 0.0))
            self.sums[name] = (before[0] + count, before[1] + out_of)
        whole = self._still_whole()
        self.whole = whole if self.whole is None else self.whole + whole

    def _loss_names(self) -> list[str]:
        return [name for name in self.sums if name.startswith("loss/")]

    def _still_whole(self) -> Tensor:
        """Return 1 for every loss term whose sum is finite, so that no step of this epoch was not; nobody waits."""
        return torch.isfinite(torch.stack([self.sums[name][0] for name in self._loss_names()])).float()

    def end_of_epoch(self) -> dict[str, Tensor]:
        """Return the means over the epoch by name, on the CPU, and start the sums anew."""
        self.broken = self._broken()
        means = {name: (count / out_of.clamp(min=1)).cpu() for name, (count, out_of) in self.sums.items()}
        self._clear()
        return means

    def _broken(self) -> dict[str, int]:
        if self.whole is None:
            return {}
        names = self._loss_names()
        taken, whole = int(self.sums[names[0]][1]), self.whole.tolist()
        first = self.last + 1 - taken
        return {name: first + int(n) + 1 for name, n in zip(names, whole, strict=True) if n < taken}

    def _clear(self) -> None:
        self.sums, self.whole = {}, None


def step_kind(device: torch.device, recorded: bool = True) -> type[Step]:
    """Return the kind of step for ``device``: on a GPU a ``recorded`` one, as one CUDA graph."""
    if device.type == "cuda" and recorded:
        from autonovel.training.cuda_graph import GraphStep

        return GraphStep
    return Step
