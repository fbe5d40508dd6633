"""Random views of a batch, and the features of two of them."""

from collections.abc import Callable
from dataclasses import asdict

from torch import Tensor, cat

from autonovel import settings
from autonovel.augment import Augmentation
from autonovel.data import Batch
from autonovel.methods.fixed_views import FixedViews
from autonovel.networks import Model
from autonovel.networks.model import unaugmented


def augmentation(s: settings.Stage) -> Augmentation:
    """Return what a stage's settings call a random view."""
    return Augmentation(**asdict(s.augment))


def plain(model: Model, batch: Batch) -> Tensor:
    """Return the images of a batch without a random choice, as large as the network takes them."""
    return _cut(model, unaugmented(batch.images))


def _cut(model: Model, x: Tensor) -> Tensor:
    """Return pixels as large as the network takes them; features, which cached views are, as they are."""
    return model.fitted(x) if x.ndim == 4 else x


def two_views(
    s: settings.Joint | settings.Dtc, model: Model, batch: Batch, fixed: FixedViews | None = None
) -> tuple[Tensor, Tensor]:
    """Return z and ẑ, the features of two independent views of every image, or of the image and a view of it.

    ``joint`` sends both through the network at once; ``separate`` one after the other, each with its own
    BatchNorm statistics.  With ``fixed``, they are two of these.
    """
    through: Callable[[Tensor], Tensor] = model.features
    if fixed is not None:
        views, through = fixed.two(model, batch)
    elif isinstance(s, settings.Dtc) and s.first_view == "plain":
        views = cat([plain(model, batch), _cut(model, augmentation(s).view(batch.images, batch.u))])
    else:
        u, u_hat = batch.u.chunk(2, dim=1)
        views = augmentation(s).view(cat([batch.images, batch.images]), cat([u, u_hat]))
    if s.views == "separate":
        x, x_hat = views.chunk(2)
        return through(x), through(x_hat)
    z, z_hat = through(views).chunk(2)
    return z, z_hat
