"""Exports: the classes of a finished run, all edits made, in forms that other programs read."""

from autonovel.export.command import FORMATS, export_run

__all__ = ["FORMATS", "export_run"]
