"""The command line: parse, call one function, print what was written.

Nothing heavy is imported until a command needs it, so that ``--help`` answers at once.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from autonovel import __version__
from autonovel.cli.corrections import add_correction_commands
from autonovel.cli.data import add_data_commands
from autonovel.cli.discover import add_discover_command
from autonovel.cli.errors import plain_errors
from autonovel.cli.look import add_look_commands
from autonovel.cli.options import KeepGoing
from autonovel.cli.refine import add_refine_command
from autonovel.cli.report import add_report_command
from autonovel.cli.run import add_demo_command, add_run_commands
from autonovel.cli.use import add_use_commands
from autonovel.errors import AutonovelError
from autonovel.launch import check_command, end_at_once, launch

EXIT_CODES = (
    "Exit codes: 0 done; 1 unexpected error; 2 wrong usage or input; 3 the run failed its own guards "
    "(collapsed, or no longer finite); 4 the run folder is missing, locked or damaged; 130 interrupted; 143 terminated."
)

app = typer.Typer(
    name="autonovel",
    help="Discover new visual categories among unlabelled images, guided by known ones.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line."""
    if launch().world == 1:
        app()
        return
    try:
        app()
    except SystemExit as end:
        end_at_once(end.code)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"autonovel {__version__}")
        raise typer.Exit()


@app.callback()
def _top(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    with plain_errors():
        check_command(context.invoked_subcommand)


# in the order in which the help lists them
add_demo_command(app)
add_discover_command(app)
add_run_commands(app)
add_look_commands(app)
add_data_commands(app)
add_report_command(app)
add_correction_commands(app)
add_refine_command(app)
add_use_commands(app)


@app.command("train-system", hidden=True)
def train_system(run: Path, name: str, keep_going: KeepGoing = False) -> None:
    """Train one system of a comparison for the process that started this one."""
    from autonovel.companion import EventDisplay, die_with_parent

    die_with_parent()
    display = EventDisplay()
    try:
        from autonovel.commands.training import train_side_system

        train_side_system(run, name, display, keep_going)
    except AutonovelError as error:
        display.error(str(error), error.exit_code)
        sys.exit(error.exit_code)
