"""What a run takes over from the one it goes on from: labels by a person, and features that need not be made again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from autonovel import sameness
from autonovel.cached_views import CHUNK, FEATURES, load_views, save_views
from autonovel.data import ImageSet, sources
from autonovel.data.given_labels import GivenLabels
from autonovel.data.streamed import FilePixels
from autonovel.data.survey import kept_survey
from autonovel.settings import Recipe
from autonovel.storage.documents import replace_file, write_json
from autonovel.storage.run_folder import CACHE, LABELS, REFINED, check_format
from autonovel.training.display import Display

WHAT = "images"


@dataclass(frozen=True)
class Carried:
    """What a run takes over.

    Attributes:
        before: folder of the run it goes on from, which is only read.
        settings: of that run, its images where they lie now.
        labels: of all its images by now.
        about: what is noted in ``refined.json``.
    """

    before: Path
    settings: Recipe
    labels: GivenLabels
    about: Mapping[str, Any]

    def save(self, folder: Path) -> None:
        """Write what the run in ``folder`` needs to know whenever it is taken up again."""
        replace_file(folder / LABELS, self.labels.content())
        write_json(folder / REFINED, dict(self.about))

    def take_features(self, folder: Path, settings: Recipe, images: ImageSet, display: Display) -> None:
        """Take over the cached features of images that the run before had too; the others will be computed.

        Args:
            folder: of the new run.
            settings: of the new run.
            images: of the new run, in their final order.
            display: told how many there were.
        """
        if not settings.network.cached_views or not self._same_network(settings):
            return
        ids = self._images_before()
        if ids is None:
            display.say(f"The images are not quite those of {self.before}: their features are computed anew.")
            return
        views = load_views(self.before / FEATURES, WHAT)
        if views is None or len(views) != len(ids):
            return
        row_of = {name: row for row, name in enumerate(ids)}
        taken = 0
        for number, first in enumerate(range(0, len(images), CHUNK)):
            names = images.ids[first : first + CHUNK]
            if all(name in row_of for name in names):
                save_views(folder / FEATURES, WHAT, number, views[torch.tensor([row_of[name] for name in names])])
                taken += len(names)
        display.say(f"Features of {taken:,} of {len(images):,} images are taken over from {self.before}.")

    def _same_network(self, settings: Recipe) -> bool:
        one, other = self.settings, settings
        return (one.network, one.data.size, one.pretrain.augment) == (
            other.network,
            other.data.size,
            other.pretrain.augment,
        )

    def _images_before(self) -> tuple[str, ...] | None:
        """Return the ids of the images of the run before in its order, if they still are what they were."""
        facts = check_format(self.before)
        images, _, _ = sources.load(self.settings, int(facts["seed"]), self.before)
        pixels = images.images
        if isinstance(pixels, FilePixels):
            own = self.settings.data.cache in ("auto", "off", "")
            seen = kept_survey(pixels, self.before / CACHE if own else Path(self.settings.data.cache))
            if seen is None:
                return None
            rows = torch.tensor([row for row in range(len(images)) if row not in seen.broken], dtype=torch.int64)
            images = replace(images.rows(rows), fingerprint=seen.fingerprint)
        return images.as_named_in(self.labels.labels).ids if sameness.same_images(facts, images) else None
