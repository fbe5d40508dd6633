"""What a figure is: a picture, its caption, and the numbers behind it."""

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autonovel.errors import AutonovelError
from autonovel.storage.documents import replace_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS: dict[str, dict[str, Any]] = {"png": {"dpi": 200}, "svg": {"metadata": {"Date": None}}}

Tick = Callable[[str, int, int], None]  # told what is being done, how many parts of it are done, out of how many


class CannotDrawError(AutonovelError):
    """A figure that the given runs do not allow; the message says what is missing and how to get it."""


@dataclass(frozen=True)
class Drawn:
    """A figure that was drawn.

    Attributes:
        name: of its files.
        caption: what it shows, for somebody who has not read the rest.
        numbers: what can be quoted from it, as plain data.
        picture: the figure itself.
    """

    name: str
    caption: str
    numbers: dict[str, Any]
    picture: "Figure"

    def named(self, name: str) -> "Drawn":
        """Return the figure under another name."""
        return replace(self, name=name)

    def save(self, folder: Path) -> list[str]:
        """Write the picture in all formats; return the names of the files."""
        import matplotlib

        names = []
        with matplotlib.rc_context({"svg.hashsalt": self.name}):
            for kind, options in FORMATS.items():
                buffer = io.BytesIO()
                self.picture.savefig(buffer, format=kind, **options)
                names.append(f"{self.name}.{kind}")
                replace_file(folder / names[-1], buffer.getvalue())
        return names
