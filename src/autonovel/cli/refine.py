"""The command that goes on from a corrected run; as late to import as all others."""

from pathlib import Path
from typing import Annotated

import typer

from autonovel.cli.errors import plain_errors
from autonovel.cli.options import PANEL, SEEDS, Device, FinishedRun, KeepGoing, Moved, Overwrite, Resume, Sets


def add_refine_command(app: typer.Typer) -> None:
    """Add the command to ``app``."""

    @app.command(rich_help_panel=PANEL)
    def refine(
        run: FinishedRun,
        confirm: Annotated[
            list[str] | None,
            typer.Option("--confirm", metavar="CLASS", help="A new class, besides those with a name; repeatable."),
        ] = None,
        every: Annotated[bool, typer.Option("--all", help="Confirm every new class.")] = False,
        new_classes: Annotated[
            str,
            typer.Option("--new-classes", metavar="N|auto", help="Classes still to be discovered. Default: the rest."),
        ] = "",
        out: Annotated[Path | None, typer.Option("--out", help="New run folder. Default: RUN-refined.")] = None,
        seed: Annotated[int | None, typer.Option("--seed", **SEEDS, help="Default: that of RUN.")] = None,
        sets: Sets = None,
        device: Device = "auto",
        data: Moved = None,
        resume: Resume = False,
        overwrite: Overwrite = False,
        keep_going: KeepGoing = False,
    ) -> None:
        """Let the new classes of RUN that have a name by now become known, and train on from its model in a new run."""
        with plain_errors():
            from autonovel.commands.refine import refine as go_on

            go_on(
                run, confirm or [], every, new_classes, out, seed, sets or [], device, data, resume, overwrite,
                keep_going,
            )  # fmt: skip
