"""The command that goes on from a corrected run; as late to import as all others."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

import typer

from autonovel.cli_corrections import PANEL, Data, Run


def add_refine_command(app: typer.Typer, plain_errors: Callable[[], AbstractContextManager[None]]) -> None:
    """Add the command to ``app``; ``plain_errors`` turns our errors into one line and an exit code."""

    @app.command(rich_help_panel=PANEL)
    def refine(
        run: Run,
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
        seed: Annotated[int | None, typer.Option("--seed", min=0, help="Default: that of RUN.")] = None,
        sets: Annotated[
            list[str] | None, typer.Option("--set", metavar="STAGE.KEY=VALUE", help="Override a setting; repeatable.")
        ] = None,
        device: Annotated[str, typer.Option("--device", help="cpu, cuda, mps or auto.")] = "auto",
        data: Data = None,
        resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
        overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in --out.")] = False,
        keep_going: Annotated[bool, typer.Option("--keep-going", help="Train on after a collapse.")] = False,
    ) -> None:
        """Let the new classes of RUN that have a name by now become known, and train on from its model in a new run."""
        with plain_errors():
            from autonovel.refine_command import refine as go_on

            go_on(
                run, confirm or [], every, new_classes, out, seed, sets or [], device, data, resume, overwrite,
                keep_going,
            )  # fmt: skip
