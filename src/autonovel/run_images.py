"""The images of a finished run, to be shown or exported: files where the run's source has them, else pixels."""

import os
from functools import cached_property
from pathlib import Path

from PIL import Image, ImageOps
from torch import Tensor

from autonovel.data.decode import open_picture, reason_of
from autonovel.data.files import open_file
from autonovel.data.streamed import Streamed
from autonovel.data.table import root_of
from autonovel.editing.edited import EditedRun
from autonovel.editing.found import has_class
from autonovel.errors import InputError
from autonovel.places import settings_now


class RunImages:
    """Pictures by row of ``discovery.csv``.

    Args:
        run: the run.
        data: where the images lie now, if they were moved since.
    """

    def __init__(self, run: EditedRun, data: Path | None = None) -> None:
        self.run = run
        every = {"data.labels": ""}  # the pictures of junk, which labels leave out, are wanted too
        self.settings = settings_now(run.folder, run.facts, data, every)

    @property
    def missing(self) -> str:
        """Return why there is nothing to show; nothing if there is."""
        if self.settings.data.source == "arrays":
            return "The images came from Python arrays, which the run does not keep, so only their names are shown."
        try:
            self._first()
        except (InputError, OSError, ValueError) as error:
            reason = str(error).removesuffix(".")
            return f"The images are not at hand ({reason}). Say where they are with --data DIR."
        return ""

    def _first(self) -> None:
        readable = (row for row, line in enumerate(self.run.table) if has_class(line))
        self.picture(next(readable))

    @property
    def folder(self) -> Path | None:
        """Return the folder that the image files lie in; None if the images are no files."""
        return root_of(Path(self.settings.data.path)) if any(row["path"] for row in self.run.table) else None

    def file(self, row: int) -> Path | None:
        """Return the file of an image; None if the run's source has none."""
        place = self.run.table[row]["path"]
        in_tar = self.settings.data.source == "shards"
        return root_of(Path(self.settings.data.path)) / place if place and not in_tar else None

    def picture(self, row: int, side: int = 0) -> Image.Image:
        """Return an image in grey or RGB, the way up it was taken.

        Args:
            row: its row in ``discovery.csv``.
            side: the picture may be made smaller, but not below this; 0 wants it whole.
        """
        from autonovel.report.pictures import picture_of

        file = self.file(row)
        if file is None:
            return picture_of(self._pixels[[self._places[self.run.table[row]["id"]]]][0])
        try:
            with open_file(os.fspath(file)) as content, open_picture(content) as opened:
                if side:
                    opened.draft("RGB", (side, side))  # a JPEG is decoded at a fraction of its size
                upright = ImageOps.exif_transpose(opened)
                return _plain(upright)
        except Exception as error:  # Pillow's readers raise nearly everything on damaged files
            raise InputError(f"{file} cannot be shown: {reason_of(error)}.") from error

    @cached_property
    def _set(self) -> tuple[Tensor | Streamed, tuple[str, ...]]:
        from autonovel.data import sources

        train, _, _ = sources.load(self.settings, int(self.run.facts["seed"]))
        train = train.as_named_in([row["id"] for row in self.run.table])
        return train.images, train.ids

    @property
    def _pixels(self) -> Tensor | Streamed:
        return self._set[0]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self._set[1])}


def _plain(picture: Image.Image) -> Image.Image:
    """Return ``picture`` in grey or RGB: what is transparent on white, deeper grey than 8 bits scaled to them."""
    if picture.mode in ("L", "RGB"):
        picture.load()
        return picture
    if picture.mode in ("I", "F") or picture.mode.startswith("I;16"):
        grey = picture.convert("F")
        low, high = grey.getextrema()
        span = max(float(high) - float(low), 1.0)  # type: ignore[arg-type]
        return grey.point(lambda v: v * (255 / span) - float(low) * 255 / span).convert("L")  # type: ignore[arg-type]
    if "A" in picture.mode or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return picture.convert("RGB")
