"""Looks for absolute paths in documents, which nobody else should learn from."""

import re
from pathlib import Path

ROOTS = b"tmp|home|root|usr|opt|var|private|Users|work|mnt"
ABSOLUTE = re.compile(rb"(?<![\w.:/<~-])/(?:" + ROOTS + rb")/[\w.-]+|[A-Za-z]:\\\\[\w.-]+")


def paths_in(content: bytes, own: Path) -> list[bytes]:
    """Return the absolute paths in a document: those of the test's own folders, and what looks like any other."""
    places = {str(own), f"{Path.home()}/", str(Path(__file__).parents[1])}
    return [place.encode() for place in places if place.encode() in content] + ABSOLUTE.findall(content)
