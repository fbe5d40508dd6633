"""Looks after a stage while it trains: at the end of every epoch, never inside a step.

What is wrong ends the run (exit code 3) with what was seen, where, and what to do; a state that is not sound is never
written over a sound one, so that the run can go on from the last good epoch with gentler settings.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from autonovel import settings, stopping
from autonovel.data import ImageSet
from autonovel.errors import GuardError
from autonovel.networks import Model, Trunk
from autonovel.storage.documents import read_json, write_json
from autonovel.training import guard, remedies
from autonovel.training.observe import eval_mode
from autonovel.training.stage import OnMaterial, Stage
from autonovel.words import listed

if TYPE_CHECKING:
    from autonovel.training.loop import Context

LOOKED_AT = 16  # images whose features are compared after each epoch
ALIKE = 1e-4  # features that differ by less than this share of their size are the same for every image
GENTLER = 10  # by which a lower learning rate is suggested
USAGE = ("usage", "known/usage")  # of the head of the new classes, and of that of the known (or all) ones
ADVICE = "Try a lower learning rate (lr) or a longer warm-up (warmup_epochs) in this stage's section"
PRECISE = ", or on a GPU network.precision=float32"
JOINT_ADVICE = (
    "Try a longer warm-up ({0}.warmup_epochs), a smaller group ({0}.group or group_per_class), a slower ramp "
    "({0}.ramp_epochs) or a smaller weight ({0}.weight) of the consistency. k-means (discover --quick) needs none"
)


class Health:
    """Watches one stage; ``after_epoch`` tells whether its state is worth keeping."""

    def __init__(
        self, model: Model, optimiser: Optimizer, stage: Stage, images: ImageSet, context: "Context", place: Path
    ) -> None:
        self.model, self.optimiser, self.stage, self.context, self.place = model, optimiser, stage, context, place
        self.sample = None if isinstance(stage, OnMaterial) else _sample(images)
        self.names = images.class_names
        self._begin()

    def _begin(self) -> None:
        """Say what happened before, and refuse weights that were spoilt before the first step."""
        if (self.place / remedies.STOPPED).exists():
            before = read_json(self.place / remedies.STOPPED)
            here = self.context.ranks.launch
            if here.restarts and before.get("launch") == here.name:  # torchrun only repeats the command
                raise GuardError(
                    f"{before['seen']}. With the same settings it would end the same way: {self._go_on()}."
                )
            self.context.display.say(
                f"{self.stage.name} was stopped before ({before['seen']}). With the same settings it ends the same way."
            )
        wrong = guard.ruined({}, {}, sizes(self.model, self.optimiser))
        if wrong:
            raise GuardError(
                f"stage {self.stage.name}, before its first step: {wrong}. The weights it starts from are spoilt: give "
                "another file (pretrain.weights), or train the stage before anew (--overwrite)."
            )

    def after_epoch(self, epoch: int, means: Mapping[str, Tensor], broken: Mapping[str, int], good: int) -> bool:
        """Tell whether the state after ``epoch`` is sound; raise an error or say it where it is not.

        Args:
            epoch: its number, from 0.
            means: what was logged of it.
            broken: the step at which a term stopped being finite, by name.
            good: epochs in the last state that was kept.
        """
        terms = {name: float(value) for name, value in means.items() if name.startswith("loss/")}
        found = sizes(self.model, self.optimiser, changing=True)
        wrong = guard.ruined(terms, broken, found)
        if wrong:  # NaN stays NaN: here --keep-going has nothing to go on with
            raise self._stop(epoch, wrong, "so nothing can be delivered", good)
        trained = {f"model.{name}" for name, p in self.model.named_parameters() if p.requires_grad}
        wrong = guard.diverged(terms, {name: size for name, size in found.items() if name in trained})
        wrong = wrong or guard.collapsed(means.get("usage")) or self._constant()
        if wrong is None:
            self._tell_of_vanished(epoch)
            return True
        if not self.context.keep_going:
            raise self._stop(epoch, wrong, "", good)
        self.context.display.say(f"{self._where(epoch)}: {wrong}. Going on, as told.")
        return False

    def _where(self, epoch: int) -> str:
        return f"stage {self.stage.name}, epoch {epoch + 1}"

    def _stop(self, epoch: int, wrong: str, so: str, good: int) -> GuardError:
        """Keep on record why the stage is stopped, and return the error that says so."""
        seen = f"{self._where(epoch)}: {wrong}"
        content = {"stage": self.stage.name, "epoch": epoch, "seen": seen, "launch": self.context.ranks.launch.name}
        write_json(self.place / remedies.STOPPED, content)
        advice = ADVICE + PRECISE if so else self._advice()
        going_on = "" if so else " (--keep-going trains on all the same.)"
        kept = f"The state after epoch {good}" if good else "The state before this stage"
        error = GuardError(f"{seen}{', ' + so if so else ''}. {advice}. {kept} is kept: {self._go_on()}." + going_on)
        error.seen = seen
        return error

    def _advice(self) -> str:
        """Return what may keep this stage from collapsing."""
        if not isinstance(self.stage.settings, settings.Joint):
            return ADVICE
        return JOINT_ADVICE.format(remedies.section(self.stage.name, self.context.label) or "joint")

    def _go_on(self) -> str:
        """Return the command that goes on from the last good state."""
        rate = remedies.rate_of(self.stage.name, self.context.label)
        lower = f"{rate}={self.stage.settings.lr / GENTLER:g} (now {self.stage.settings.lr:g})" if rate else ""
        return f"{stopping.going_on(sys.argv[1:], lower, self.context.seed)} goes on from there"

    def _constant(self) -> str | None:
        """Return in a sentence that the features no longer tell images apart, or None."""
        if self.sample is None:
            return None
        for trunk in trained_trunks(self.model):
            z = features_of(self.model, self.sample, trunk)
            if alike(z):
                return f"the features collapsed: all {len(z)} images looked at have the same ones"
        return None

    def _tell_of_vanished(self, epoch: int) -> None:
        """Say it once of each class that held images and stays empty; classes to spare are no loss."""
        if getattr(self.stage.settings, "out_dim", 0):
            return
        lines = [line for line in self.context.journal.lines if line.get("stage") == self.stage.name]
        last = epoch + 1 == self.stage.settings.epochs
        remedy = "Try" if last else "It may fill again; if a class is empty at the end, try"
        for key in USAGE:
            lost = guard.vanished([line[key] for line in lines if line.get(key) is not None], last)
            if lost:
                fewer = " or fewer new classes" if any(c >= self._n_known(key) for c in lost) else ""
                self.context.display.say(
                    f"Beware: {self._where(epoch)}: no image falls into {self._named(key, lost)} any more. {remedy} "
                    f"a lower learning rate (lr), a longer warm-up (warmup_epochs){fewer}."
                )

    def _n_known(self, key: str) -> int:
        """Return how many of a head's outputs, the first ones, are known classes."""
        return 0 if key == "usage" else len(self.names)

    def _named(self, key: str, lost: list[int]) -> str:
        """Return classes of a head in words; that of the new classes has no others, another has them at its end.

        New ones are counted alone: their numbers of now are not those that are delivered, which go by size.
        """
        known = [f"known class {self.names[c]}" for c in lost if c < self._n_known(key)]
        n_new = len(lost) - len(known)
        words = known + ([f"{n_new} of the new classes"] if n_new else [])
        return listed(words, most=guard.NAMED)


def _sample(images: ImageSet) -> Tensor | None:
    """Return a few images that differ, spread over the set; None where there are none."""
    n = len(images)
    rows = torch.arange(LOOKED_AT) * max(n - 1, 0) // max(LOOKED_AT - 1, 1)
    sample = images.images[rows.unique()] if n else torch.zeros(0)
    return sample if len(sample) > 1 and bool((sample != sample[:1]).any()) else None


def trained_trunks(model: Model) -> list[Trunk]:
    """Return the trunks of which some part is trained: the model's own, or that of a network that travels with it."""
    return [m for m in model.modules() if isinstance(m, Trunk) and any(p.requires_grad for p in m.parameters())]


@torch.no_grad()
def features_of(model: Model, images: Tensor, trunk: Trunk) -> Tensor:
    """Return the features of ``images`` without augmentation; the model is left as it was."""
    with eval_mode(model):
        return model.clean_features(images, trunk)


def alike(z: Tensor) -> bool:
    """Tell whether all rows of ``z`` are the same, up to rounding."""
    spread = (z.amax(dim=0) - z.amin(dim=0)).max()
    return bool(spread <= ALIKE * z.abs().max())


@torch.no_grad()
def sizes(model: nn.Module, optimiser: Optimizer, changing: bool = False) -> dict[str, float]:
    """Return the largest absolute value in every tensor that a checkpoint would hold, fetched all at once.

    ``changing`` leaves out what is held fixed: a large pretrained network need not be looked at after every epoch.
    """
    held = {name for name, p in model.named_parameters() if changing and not p.requires_grad}
    tensors = {f"model.{name}": value for name, value in model.state_dict().items() if name not in held}
    names = {id(p): name for name, p in model.named_parameters()}
    for parameter, state in optimiser.state.items():
        for key, value in state.items():
            if isinstance(value, Tensor):
                tensors[f"optimiser.{key}.{names[id(parameter)]}"] = value
    measured = {name: value for name, value in tensors.items() if value.is_floating_point() and value.numel()}
    if not measured:
        return {}
    device = next(model.parameters()).device
    largest = [torch.linalg.vector_norm(value, torch.inf).to(device, torch.float32) for value in measured.values()]
    return dict(zip(measured, torch.stack(largest).tolist(), strict=True))
