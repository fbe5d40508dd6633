"""The HTML report of a run: one file that opens from disk, without a network.

What the page says is plain data: gather.py, with curves.py, tsne.py and facts.py for sections that take
more.  pictures.py draws sprites and charts; page.py fills page.html.
"""

from autonovel.report.page import write_report

__all__ = ["write_report"]
