"""Stage 3: discover the new classes by ranking statistics, beside the known ones.

Two images whose k strongest features are the same probably show the same class; that weak sign, one pair
of a batch at a time, teaches the head η^u of the new classes while η^l keeps the known ones.
"""

import functools
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from autonovel import draws, settings, stage_names
from autonovel.data import Batch, Fixed, ImageSet, Merged, Sampler
from autonovel.methods.fixed_views import FixedViews
from autonovel.methods.method import Problem
from autonovel.methods.new_heads import choose_tightest, outputs
from autonovel.methods.notes import KNOWN_USAGE, note_pairs, note_usage
from autonovel.methods.rebalance import rebalance
from autonovel.methods.views import augmentation, two_views
from autonovel.networks import Model, heads
from autonovel.networks.candidates import Candidates
from autonovel.objectives import (
    consistency,
    cross_entropy,
    pair_labels,
    pairs_in_groups,
    pairwise_bce,
    pseudo_labels,
    ramp,
)
from autonovel.settings import Recipe
from autonovel.training.display import Display
from autonovel.training.stage import Progress, Stage, Terms


@dataclass(frozen=True)
class RankStats:
    """The paper's method; incremental learning grows the known head by the new classes."""

    incremental: bool = False

    def stages(self, recipe: Recipe, problem: Problem) -> list[Stage]:
        """Return the joint training, and incremental learning as one with it or after it."""
        plain = Joint(recipe.joint, problem.n_known, problem.n_new, problem.seed)
        grown = replace(plain, settings=recipe.incremental, incremental=True)
        if not self.incremental:
            return [plain]
        if recipe.incremental.after == "supervised":
            return [grown]
        return [replace(plain, name=stage_names.JOINT_FIRST), replace(grown, name=stage_names.AFTER_JOINT, number=22)]

    def finish(self, model: Model, images: ImageSet, problem: Problem) -> None:
        """Joint training has left both heads; nothing remains."""


@dataclass(frozen=True)
class Joint:
    """L = CE + BCE + ω(t) MSE (eq. 5), and in incremental learning the cross-entropy of pseudo-labels."""

    settings: settings.Joint
    n_known: int
    n_new: int
    seed: int
    incremental: bool = False
    name: str = stage_names.JOINT
    number: int = 3

    @property
    def n_draws(self) -> int:
        """Return the draws of two views; of fixed ones, of the choice of two."""
        return 2 if self.settings.fixed_views else 2 * augmentation(self.settings).n_draws

    @functools.cached_property
    def fixed(self) -> FixedViews | None:
        """Return the views that are drawn beforehand, where the settings ask for such."""
        s = self.settings
        key = draws.stream(self.seed, 47, self.number)
        return FixedViews(augmentation(s), s.fixed_views, key, s.renew_views) if s.fixed_views else None

    @property
    def group(self) -> int:
        """Return how many unlabelled images are compared with each other (0: all of a batch).

        A group of g images has g pairs of an image with itself and, of C^u classes, g (g − 1) / C^u pairs that show one
        class, nearly all of them taken for different: their ratio, not g, is what training feels.
        """
        s = self.settings
        if s.group or not s.group_per_class:
            return s.group
        wanted = max(1.0, s.group_per_class * self.n_new)
        if s.batch == "merged":
            return round(wanted)
        groups = max(1, round(self._unlabelled / wanted))
        return -(-self._unlabelled // groups)  # as even as they can be

    @property
    def _starts(self) -> list[tuple[int, ...]]:
        """Return what sets the draws of each start apart; the first has those of a head that is alone."""
        return [(), *((number,) for number in range(1, self.settings.starts))]

    @property
    def _labelled(self) -> int:
        return self.settings.labelled_per_batch or self.settings.batch_size // 2

    @property
    def _unlabelled(self) -> int:
        return self.settings.batch_size - self._labelled

    def prepare(self, model: Model) -> None:
        """Add the head of the new classes, or keep it; in incremental learning, grow the known one by them too."""
        s = self.settings
        before = dict(model.heads.items())
        known = before.get("known")
        model.heads.clear()
        if not isinstance(known, heads.ClassHead):
            known = model.new_head(self.n_known, draws.generator(self.seed, 20))
        if self.incremental:
            known = heads.grown_head(known, self.n_new, draws.generator(self.seed, 31), s.new_bias)
        model.heads["known"] = known
        model.heads["new"] = before["new"] if self._goes_on else self._new_head(model)
        model.trunk.freeze(s.frozen, s.frozen_batchnorm)

    @property
    def _goes_on(self) -> bool:
        """Return whether joint training has found the new classes before."""
        return self.incremental and self.settings.after == "joint"

    def _new_head(self, model: Model) -> nn.Module:
        starts = [model.new_head(self.n_new, draws.generator(self.seed, 30, *more)) for more in self._starts]
        return Candidates(starts) if len(starts) > 1 else starts[0]

    def sampler(self, images: ImageSet) -> Sampler:
        """Return batches of labelled and unlabelled images together."""
        s = self.settings
        if s.batch == "merged":
            return Merged(torch.arange(len(images)), s.batch_size, self.seed, self.number)
        return Fixed(
            (~images.unlabelled).nonzero()[:, 0],
            images.unlabelled.nonzero()[:, 0],
            self._labelled,
            self._unlabelled,
            self.seed,
            self.number,
            epoch_of=s.epoch,
        )

    def foresee(self, model: Model, images: ImageSet, display: Display, epoch: int = 0) -> AbstractContextManager[None]:
        """Compute the frozen blocks' output for views that are drawn beforehand."""
        return self.fixed.computed(model, images, display, epoch) if self.fixed else nullcontext()

    def before_epoch(self, model: Model, images: ImageSet, epoch: int) -> None:
        """Take other views into use, and choose among several starts of the head, when it is time."""
        if self.fixed:
            self.fixed.before_epoch(model, images, epoch)
        head, until = model.heads["new"], round(self.settings.starts_until * self.settings.epochs)
        if isinstance(head, Candidates) and epoch == max(1, until):
            choose_tightest(model, head, images)

    def conclude(self, model: Model, images: ImageSet) -> None:
        """Leave one head of the new classes, and where asked for a grown one that favours neither old nor new."""
        head = model.heads["new"]
        if isinstance(head, Candidates):
            if not head.chosen:
                choose_tightest(model, head, images)
            model.heads["new"] = head.best
        if self.incremental and self.settings.rebalance:
            rebalance(model, images, self.n_known, self.n_new, self.settings.rebalance_by)

    def same(self, z: Tensor) -> Tensor:
        """Return s_ij, which pairs of the batch are taken to show the same class, as an n×n boolean matrix."""
        return pair_labels(z, self.settings.k, self.settings.rank_by)

    def step(self, model: Model, batch: Batch, progress: Progress) -> Terms:
        """Return the terms of the joint loss for two views of every image."""
        s = self.settings
        z, z_hat = two_views(s, model, batch, self.fixed)
        known, known_hat = model.logits(z, "known"), model.logits(z_hat, "known")
        new = outputs(model, z, z_hat)
        labelled, unlabelled = batch.labelled, 1 - batch.labelled
        epoch = progress.whole_epochs.float() if s.ramp_by == "epoch" else progress.epoch
        rise = ramp(epoch, s.ramp_epochs)
        terms: Terms = {}
        if s.ce:
            terms["ce"] = cross_entropy(known, batch.y, labelled)
        if s.bce:
            same = self.same(z)
            pairs = pairs_in_groups(unlabelled, self.group)
            if s.pairs == "local":
                pairs = pairs * model.ranks.one_share(len(pairs), pairs.device)
            terms["bce"] = new.over(lambda p, p_hat: pairwise_bce(p, p_hat if s.bce_views == "two" else p, same, pairs))
            note_pairs(progress, same, pairs, batch)
        if s.consistency:
            w_known, w_new = (labelled, unlabelled) if s.consistency_on == "own" else (None, None)
            over = s.consistency_over_classes
            agreement = consistency(known.softmax(dim=1), known_hat.softmax(dim=1), w_known, over)
            agreement = agreement + new.over(lambda p, p_hat: consistency(p, p_hat, w_new, over))
            terms["consistency"] = s.weight * rise * agreement
        if self.incremental:
            targets = pseudo_labels(new.logits, self.n_known)
            terms["pseudo"] = new.decided * rise * s.pseudo_weight * cross_entropy(known, targets, unlabelled)
        note_usage(progress, new.logits, unlabelled * new.decided)
        note_usage(progress, known, labelled, KNOWN_USAGE)
        return terms
