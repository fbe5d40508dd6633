"""The commands that look at runs, recipes and this machine; as thin and as late to import as all others."""

from pathlib import Path
from typing import Annotated

import typer

from autonovel.cli.errors import plain_errors
from autonovel.cli.options import AsJson, Device, Moved, RecipeName, Sets


def add_look_commands(app: typer.Typer) -> None:
    """Add ``evaluate``, ``show``, ``table``, ``figures`` and ``doctor`` to ``app``."""

    @app.command()
    def evaluate(
        run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
        data: Moved = None,
        device: Device = "auto",
        classes: Annotated[
            bool, typer.Option("--classes", help="Also how every true class fares, and what it is taken for.")
        ] = False,
        as_json: AsJson = False,
    ) -> None:
        """Let the delivered model of RUN judge its images again, and score it under every protocol."""
        with plain_errors():
            from autonovel.commands.look import evaluate_run

            evaluate_run(run, data, device, classes, as_json)

    @app.command()
    def show(
        recipe: RecipeName,
        sets: Sets = None,
        as_json: AsJson = False,
    ) -> None:
        """Show every setting of RECIPE with its meaning and its source."""
        with plain_errors():
            from autonovel.commands.look import show_recipe

            show_recipe(recipe, sets or [], as_json)

    @app.command()
    def table(
        runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of results.")],
        as_json: AsJson = False,
        as_paper: Annotated[
            bool, typer.Option("--paper", help="As the paper's own tables, ours beside each of its numbers.")
        ] = False,
    ) -> None:
        """Print the results of RUNS beside the paper's: mean and deviation over seeds, time, hardware, commit."""
        with plain_errors():
            from autonovel.commands.look import print_table

            print_table(runs, as_json, as_paper)

    @app.command()
    def figures(
        runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of such or of seed-N.json.")],
        to: Annotated[Path, typer.Option("--to", help="Folder for pictures, captions and numbers.")] = Path("figures"),
        pair: Annotated[
            str, typer.Option("--pair", metavar="A,B", help="Two classes whose overlap is told. Default: the largest.")
        ] = "",
    ) -> None:
        """Draw the figures of the paper that RUNS allow, and say which they do not."""
        with plain_errors():
            from autonovel.commands.look import draw_figures

            draw_figures(runs, to, pair)

    @app.command()
    def doctor() -> None:
        """Show versions and devices, and test the objectives against naive loops."""
        with plain_errors():
            from autonovel.commands.doctor import examine

            if not examine():
                raise typer.Exit(1)
