"""The command that uses a finished run on later images; as late to import as all others."""

from typing import Annotated

import typer

from autonovel.cli.errors import plain_errors
from autonovel.cli.options import PANEL, Device, FinishedRun


def add_use_commands(app: typer.Typer) -> None:
    """Add the command to ``app``."""

    @app.command(rich_help_panel=PANEL)
    def predict(
        run: FinishedRun,
        paths: Annotated[
            list[str] | None,
            typer.Argument(metavar="PATHS…", help="Image files, folders of them, - for a list on standard input."),
        ] = None,
        listing: Annotated[
            str | None, typer.Option("--from", metavar="FILE", help="A list of paths, one a line; - is a pipe.")
        ] = None,
        to: Annotated[str, typer.Option("--to", metavar="FILE", help="File to write; - is standard output.")] = "-",
        form: Annotated[
            str | None,
            typer.Option("--format", metavar="csv|tsv|jsonl", help="Default: by the end of --to, else csv."),
        ] = None,
        device: Device = "auto",
        batch: Annotated[int, typer.Option("--batch", min=0, max=65536, help="Images at once; 0 chooses.")] = 0,
        overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file --to.")] = False,
    ) -> None:
        """Say of later images which class of RUN each belongs to, all edits made, in the columns of discovery.csv."""
        with plain_errors():
            from autonovel.commands.predict import predict_files

            predict_files(run, paths or [], listing, to, form, device, batch, overwrite)
