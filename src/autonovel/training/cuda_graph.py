"""One optimisation step as a CUDA graph: the whole step is recorded once and replayed.

A small network on a fast GPU spends most of a step waiting for Python to launch kernels.  Replaying the
recorded step — gather, augment, both passes, losses, optimiser, sums — leaves one launch per step.
"""

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from autonovel.data import Loader
from autonovel.networks import Model
from autonovel.training.health import trained_trunks
from autonovel.training.stage import Stage
from autonovel.training.steps import Step

WARM_UP_STEPS = 3  # lets cuDNN choose its kernels and the optimiser allocate its state before recording


@contextlib.contextmanager
def _compiled(trunks: Sequence[nn.Module], wanted: bool) -> Iterator[None]:
    """Compile ``trunks`` while a step is recorded; afterwards only the recording runs, so undo it.

    Left compiled, a trunk would be compiled again, for seconds, when its features are next embedded.
    """
    for trunk in trunks if wanted else ():
        trunk.compile()
    try:
        yield
    finally:
        for trunk in trunks:
            trunk._compiled_call_impl = None


class GraphStep(Step):
    """A ``Step`` that records itself on its first call.  Every shape must be the same in every step."""

    def __init__(self, model: Model, stage: Stage, loader: Loader, optimiser: Optimizer, steps_per_epoch: int) -> None:
        super().__init__(model, stage, loader, optimiser, steps_per_epoch)
        self.graph: torch.cuda.CUDAGraph | None = None
        device = model.mean.device
        self.number = torch.zeros((), dtype=torch.int64, device=device)
        self.rate = torch.zeros((), device=device)
        self.index = torch.zeros(0, dtype=torch.int64, device=device)
        self.u = torch.zeros(0, device=device)
        for group in optimiser.param_groups:
            group["lr"] = self.rate  # a tensor, so that replays see it change

    def __call__(self, index: Tensor, u: Tensor, step: int, rate: float) -> None:
        """Replay the recorded step on other images; record it first if this is the first."""
        self.last = step
        if self.graph is None:
            self.index, self.u = index.clone(), u.clone()
        self.index.copy_(index)
        self.u.copy_(u)
        self.number.fill_(step)
        self.rate.fill_(rate)
        if self.graph is None:
            self._record()
        assert self.graph is not None
        self.graph.replay()

    def _record(self) -> None:
        with _compiled(trained_trunks(self.model), self.stage.settings.compile):
            self._warm_up_and_capture()

    def _warm_up_and_capture(self) -> None:
        before = self._snapshot()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP_STEPS):
                self.optimiser.zero_grad(set_to_none=True)
                reported = self._train(self.index, self.u, self.number)
        torch.cuda.current_stream().wait_stream(side)
        self._restore(before)
        self.sums = {name: (torch.zeros_like(a), torch.zeros_like(b)) for name, (a, b) in reported.items()}
        self.whole = torch.zeros_like(self._still_whole())
        self.optimiser.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        # thread_local: a loader's own thread may pin memory meanwhile, which would spoil a recording of all threads
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            for name, (count, out_of) in self._train(self.index, self.u, self.number).items():
                self.sums[name][0].add_(count)
                self.sums[name][1].add_(out_of)
            self.whole.add_(self._still_whole())

    def _snapshot(self) -> dict[int, Tensor]:
        """Return copies of all state that the warm-up will change, by the identity of the parameter."""
        return {id(value): value.detach().clone() for value in self._state()}

    def _restore(self, before: dict[int, Tensor]) -> None:
        """Undo the warm-up in place; optimiser state it created is set to zero, as a first step finds it."""
        with torch.no_grad():
            for value in self._state():
                if id(value) in before:
                    value.copy_(before[id(value)])
                else:
                    value.zero_()

    def _state(self) -> list[Tensor]:
        tensors = [*self.model.parameters(), *self.model.buffers()]
        for state in self.optimiser.state.values():
            tensors += [value for value in state.values() if isinstance(value, Tensor)]
        return tensors

    def _clear(self) -> None:
        for count, out_of in self.sums.values():
            count.zero_()
            out_of.zero_()
        if self.whole is not None:
            self.whole.zero_()
