"""The HTML report of a run: a page that opens from disk, without a network.

``subject.py`` is what a report is about, just found or corrected by a person.  What the page says is plain data:
gather.py, cards.py, curves.py, tsne.py and facts.py.  pictures.py draws charts, sheets.py thumbnails; page.py fills
page.html, whose behaviour is in ``script/``; build.py puts everything on disk.
"""

from autonovel.report.build import write_report

__all__ = ["write_report"]
