"""The command that writes the report of a finished run anew; as thin and as late to import as all others."""

from pathlib import Path
from typing import Annotated

import typer

from autonovel.cli.errors import plain_errors
from autonovel.cli.options import PANEL, FinishedRun, Moved


def add_report_command(app: typer.Typer) -> None:
    """Add the command to ``app``."""

    @app.command(rich_help_panel=PANEL)
    def report(
        run: FinishedRun,
        to: Annotated[
            Path | None,
            typer.Option("--to", help="Folder for report.html, or the HTML file itself. Default: RUN.", metavar="PATH"),
        ] = None,
        data: Moved = None,
        single: Annotated[
            bool | None,
            typer.Option(
                "--single-file/--folder",
                help="Everything in one file, or thumbnails beside it. Default: one file up to 6,000 images.",
                show_default=False,
            ),
        ] = None,
        map_points: Annotated[
            int, typer.Option("--map-points", min=0, help="Images on the map. Default: the run's setting.")
        ] = 0,
    ) -> None:
        """Write the report of RUN anew, all corrections made: one HTML file, or one with a folder beside it."""
        with plain_errors():
            from autonovel.report.command import report_run

            report_run(run, to, data, single, map_points)
