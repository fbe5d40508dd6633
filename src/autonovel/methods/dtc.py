"""DTC, deep transfer clustering: soft assignments to centres, sharpened again and again.

Han, Vedaldi, Zisserman: Learning to discover novel visual categories via deep transfer clustering (ICCV 2019).
The features of the unlabelled images are reduced to as many dimensions as there are clusters; k-means there gives
first centres and first targets; then network, bottleneck and centres are trained towards targets that are the
sharpened assignments of all unlabelled images, refreshed every few epochs.
"""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from autonovel import draws, settings
from autonovel.clustering.metric import principal_components
from autonovel.data import Batch, ImageSet, Merged, Sampler
from autonovel.embedding import unlabelled_features
from autonovel.methods.kmeans import centres
from autonovel.methods.linear import LinearClassifier, settle
from autonovel.methods.method import Problem
from autonovel.methods.notes import note_usage
from autonovel.methods.statistics import renew_statistics
from autonovel.methods.views import augmentation, plain, two_views
from autonovel.networks import Model, heads
from autonovel.objectives import consistency, kl_to_target, ramp, running_average, sharpened, student_t
from autonovel.settings import Recipe
from autonovel.training.stage import Progress, Stage, Terms


@torch.no_grad()
def assignments(model: Model, images: ImageSet) -> Tensor:
    """Return q of all unlabelled images, in eval mode and without augmentation, on the model's device."""
    z = unlabelled_features(model, images).to(model.mean.device)
    return model.logits(z, "new").softmax(dim=1)


@dataclass(frozen=True)
class DTC:
    """First with the targets of k-means, then with its own."""

    def stages(self, recipe: Recipe, problem: Problem) -> list[Stage]:
        """Return both phases, and the classifier of the incremental comparison."""
        s, clusters = recipe.dtc, recipe.dtc.out_dim or problem.n_new
        first = replace(s, epochs=s.start_epochs, lr=s.start_lr, schedule="constant", variant="baseline")
        stages: list[Stage] = [Start(first, clusters, problem.seed), Sharpen(s, clusters, problem.seed)]
        if recipe.linear.epochs:
            stages.append(LinearClassifier(recipe.linear, problem.n_known, problem.seed))
        return stages

    def finish(self, model: Model, images: ImageSet, problem: Problem) -> None:
        """Make the known head fit the features as they are now."""
        settle(model, images, problem)


@dataclass(frozen=True)
class Sharpen:
    """KL(p ‖ q) to the sharpened target p, and what the variant adds to it.

    ``memory`` holds, for every unlabelled image, the target and the variant's averages, and ``row``, the place of
    each image among them.
    """

    settings: settings.Dtc
    n_clusters: int
    seed: int
    name: str = "4-dtc"
    number: int = 17
    memory: dict[str, Tensor] = field(default_factory=dict)

    @property
    def n_draws(self) -> int:
        """Return the draws of the random views, of which there may be none."""
        s = self.settings
        return ((s.variant == "pi") + (s.first_view == "random")) * augmentation(s).n_draws

    def prepare(self, model: Model) -> None:
        """Train everything but what is frozen; bottleneck and centres are there from the start."""
        model.heads.requires_grad_(False)
        model.heads["new"].requires_grad_(True)
        model.trunk.freeze(self.settings.frozen, self.settings.frozen_batchnorm)

    def sampler(self, images: ImageSet) -> Sampler:
        """Return batches of unlabelled images."""
        members = images.unlabelled.nonzero()[:, 0]
        return Merged(members, self.settings.batch_size, self.seed, self.number)

    def before_epoch(self, model: Model, images: ImageSet, epoch: int) -> None:
        """Refresh averages and, every few epochs, the target, from all unlabelled images."""
        s = self.settings
        due = epoch % s.update_every == 0
        q = self._assigned(model, images) if due or s.variant == "tep" else None
        if epoch == 0:
            self._keep("row", (images.unlabelled.cumsum(0) - 1).to(model.mean.device))
        if s.variant == "te":
            self._average_views(q, epoch)
        if s.variant == "tep":
            assert q is not None
            q = self._averaged(q, epoch + 1)
        if due:
            assert q is not None
            self._keep("target", sharpened(q))

    def conclude(self, model: Model, images: ImageSet) -> None:
        """Leave statistics that fit the weights, where the targets were made with such."""
        self._fit_statistics(model, images)

    def _fit_statistics(self, model: Model, images: ImageSet) -> None:
        if self.settings.statistics == "anew":
            renew_statistics(model, images, self.settings.batch_size, self.seed)

    def _assigned(self, model: Model, images: ImageSet) -> Tensor:
        self._fit_statistics(model, images)
        return assignments(model, images)

    def _average_views(self, q: Tensor | None, epoch: int) -> None:
        """Make the average of what earlier epochs said of each image; before the first, of what the model says now."""
        if epoch == 0:
            assert q is not None
            self._keep("latest", q)
            self._keep("past", q)
        else:
            self._keep("past", self._averaged(self.memory["latest"], epoch))

    def _averaged(self, latest: Tensor, updates: int) -> Tensor:
        momentum = self.settings.momentum_of_averages
        before = self.memory["average"] if updates > 1 else torch.zeros_like(latest)
        self._keep("average", running_average(before, latest, momentum))
        return self.memory["average"] / (1 - momentum**updates)

    def _keep(self, name: str, value: Tensor) -> None:
        """Remember ``value``, in place where there is one already: a recorded step looks there."""
        if name in self.memory:
            self.memory[name].copy_(value)
        else:
            self.memory[name] = value.clone()

    def step(self, model: Model, batch: Batch, progress: Progress) -> Terms:
        """Return the divergence from the target and the agreement that the variant asks for."""
        s = self.settings
        row = self.memory["row"][batch.index]
        if s.variant == "pi":
            z, z_hat = two_views(s, model, batch)
        else:
            view = plain(model, batch) if s.first_view == "plain" else augmentation(s).view(batch.images, batch.u)
            z = model.features(view)
        logits = model.logits(z, "new")
        q = logits.softmax(dim=1)
        terms = {"kl": kl_to_target(q, self.memory["target"][row])}
        if s.variant in ("pi", "te"):
            other = model.logits(z_hat, "new").softmax(dim=1) if s.variant == "pi" else self.memory["past"][row]
            rise = s.weight * ramp(progress.whole_epochs.float(), s.ramp_epochs)
            terms["consistency"] = rise * consistency(q, other)
        if s.variant == "te":
            self.memory["latest"][row] = q.detach()
        note_usage(progress, logits, torch.ones_like(batch.labelled))
        return terms


@dataclass(frozen=True)
class Start(Sharpen):
    """The first epochs: bottleneck and network learn the targets that k-means gave."""

    name: str = "3-dtc-start"
    number: int = 16

    def prepare(self, model: Model) -> None:
        """Add a random bottleneck, of one dimension per cluster, and room for the centres."""
        dimensions = min(self.n_clusters, model.trunk.n_features)
        bottleneck = model.new_head(dimensions, draws.generator(self.seed, 52))
        model.heads["new"] = heads.CentresHead(bottleneck, self.n_clusters)
        super().prepare(model)

    def before_epoch(self, model: Model, images: ImageSet, epoch: int) -> None:
        """Find the first centres and targets; they stay."""
        if epoch > 0:
            return
        head = model.heads["new"]
        assert isinstance(head, heads.CentresHead)
        z, width = unlabelled_features(model, images), head.centres.shape[1]
        x = model.ranks.lead(lambda: principal_components(z, width))
        found = model.ranks.lead(lambda: centres(x, self.n_clusters, self.seed, self.settings.restarts))
        device = model.mean.device
        with torch.no_grad():
            head.centres.copy_(found)
        q = student_t(torch.cdist(x.double(), found.double()).square())
        self._keep("row", (images.unlabelled.cumsum(0) - 1).to(device))
        self._keep("target", sharpened(q).to(device))

    def conclude(self, model: Model, images: ImageSet) -> None:
        """Leave all as it is: the next stage begins with statistics of its own."""
