"""The command that uses a finished run on later images; as late to import as all others."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Annotated

import typer

from autonovel.cli_corrections import PANEL, Run


def add_use_commands(app: typer.Typer, plain_errors: Callable[[], AbstractContextManager[None]]) -> None:
    """Add the command to ``app``; ``plain_errors`` turns our errors into one line and an exit code."""

    @app.command(rich_help_panel=PANEL)
    def predict(
        run: Run,
        paths: Annotated[
            list[str] | None,
            typer.Argument(metavar="PATHS…", help="Image files, folders of them, - for a list on standard input."),
        ] = None,
        listing: Annotated[
            str | None, typer.Option("--from", metavar="FILE", help="A list of paths, one a line; - is a pipe.")
        ] = None,
        to: Annotated[str, typer.Option("--to", metavar="FILE", help="File to write; - is standard output.")] = "-",
        form: Annotated[
            str | None, typer.Option("--format", metavar="csv|jsonl", help="Default: by the name of --to, else csv.")
        ] = None,
        device: Annotated[str, typer.Option("--device", help="cpu, cuda, mps or auto.")] = "auto",
        batch: Annotated[int, typer.Option("--batch", min=0, max=65536, help="Images at once; 0 chooses.")] = 0,
        overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file --to.")] = False,
    ) -> None:
        """Say of later images which class of RUN each belongs to, all edits made, in the columns of discovery.csv."""
        with plain_errors():
            from autonovel.predict_command import predict_files

            predict_files(run, paths or [], listing, to, form, device, batch, overwrite)
