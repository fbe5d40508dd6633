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

    def __call__(self, index: Tensor, u: Tensor, step: int, rate: float) -> None:
        """Train on the images ``index`` with random numbers ``u``, as step number ``step``, at rate ``rate``.

        Of several processes, all name the whole batch, and each gives the random numbers of its share.
        """
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

    def end_of_epoch(self) -> dict[str, Tensor]:
        """Return the means over the epoch by name, on the CPU, and start the sums anew."""
        means = {name: (count / out_of.clamp(min=1)).cpu() for name, (count, out_of) in self.sums.items()}
        self._clear()
        return means

    def _clear(self) -> None:
        self.sums = {}
