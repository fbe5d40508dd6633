"""The command line: parse, call one function, print what was written.

Nothing heavy is imported until a command needs it, so that ``--help`` answers at once.
"""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from autonovel import __version__, stopping
from autonovel.cli_corrections import add_correction_commands
from autonovel.cli_data import add_data_commands
from autonovel.cli_discover import add_discover_command
from autonovel.cli_refine import add_refine_command
from autonovel.cli_report import add_report_command
from autonovel.cli_use import add_use_commands
from autonovel.errors import AutonovelError, UsageError
from autonovel.launch import check_command, end_at_once, launch
from autonovel.visible import visible

EXIT_CODES = (
    "Exit codes: 0 done; 1 unexpected error; 2 wrong usage or input; 3 the run failed its own guards "
    "(collapsed, or no longer finite); 4 the run folder is missing, locked or damaged; 130 interrupted; 143 terminated."
)
INTERRUPTED = 130

app = typer.Typer(
    name="autonovel",
    help="Discover new visual categories among unlabelled images, guided by known ones.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Out = Annotated[Path | None, typer.Option("--out", help="Run folder. Default: runs/RECIPE-seedN.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of every random draw.")]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="STAGE.KEY=VALUE", help="Override a setting; repeatable.")
]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, mps or auto.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the run in --out.")]
KeepGoing = Annotated[bool, typer.Option("--keep-going", help="Train on after a collapse.")]
Stages = Annotated[
    str, typer.Option("--stages", metavar="N,N,…", help="Train only these stages now; a later command goes on.")
]
NewClasses = Annotated[
    str,
    typer.Option("--new-classes", metavar="N|auto", help="Number of new classes; auto estimates it; published: DTC's."),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        help="Instead of the recipe's systems, run this one (kmeans, kcl, mcl, dtc, rankstats, …); repeatable, the "
        "first one delivers.",
    ),
]
NoSelfSupervision = Annotated[
    bool, typer.Option("--no-self-supervision", help="Start from a network trained on the labelled images alone.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def main() -> None:
    """Run the command line."""
    if launch().world == 1:
        app()
        return
    try:
        app()
    except SystemExit as end:
        end_at_once(end.code)


@contextlib.contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn our own errors, and being asked to end, into one line on standard error and an exit code."""
    with stopping.heeded():
        try:
            yield
        except AutonovelError as error:
            ended = stopping.asked() and error.exit_code != INTERRUPTED  # a child that was stopped with us died first
            if ended:
                _say_stopped()
            else:
                _tell(error)
            raise typer.Exit(stopping.exit_code() if stopping.asked() else error.exit_code) from None
        except (Exception, KeyboardInterrupt) as error:
            if not (stopping.asked() or isinstance(error, KeyboardInterrupt)):
                raise
            _say_stopped()
            raise typer.Exit(stopping.exit_code()) from None


def _say_stopped() -> None:
    """Say that the command was asked to end; of several processes, the first one does."""
    if launch().rank == 0:
        typer.echo(stopping.in_words(sys.argv[1:]), err=True)


def _tell(error: AutonovelError) -> None:
    """Print an error; of several processes, one of them does, and of being stopped the first one."""
    if error.exit_code == INTERRUPTED and launch().rank:
        return

    def tell(error: AutonovelError) -> None:
        typer.echo(f"error: {visible(str(error))}", err=True)

    if launch().world == 1:
        tell(error)
    else:
        from autonovel.training.ranks import tell_once

        tell_once(error, tell)


def _changes(sets: list[str] | None, data: Path | None = None, new_classes: str = "") -> list[str]:
    """Return the settings that options of their own stand for, then those of --set, which win."""
    own = [f"data.path={data}"] if data else []
    return own + ([f"count.new_classes={new_classes}"] if new_classes else []) + (sets or [])


def _whole_numbers(option: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() and 0 < int(part) < 10**6 for part in parts):
        raise UsageError(f"{option} is {text!r}; give whole numbers with commas between them, such as 1,5,10.")
    return [int(part) for part in parts]


def _stages(text: str) -> tuple[int, ...]:
    from autonovel.settings import ALL_STAGES

    chosen = tuple(sorted(set(_whole_numbers("--stages", text))))
    if not chosen or not set(chosen) <= set(ALL_STAGES):
        raise UsageError(f"--stages is {text!r}; choose among 1 (rotation), 2 (supervised) and 3 (joint), such as 1,2.")
    return chosen


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
    with _plain_errors():
        check_command(context.invoked_subcommand)


@app.command()
def demo(
    out: Out = None,
    seed: Seed = 0,
    sets: Sets = None,
    device: Device = "cpu",
    resume: Resume = False,
    overwrite: Overwrite = False,
    keep_going: KeepGoing = False,
    new_classes: NewClasses = "",
    compare: Annotated[
        bool, typer.Option("--compare", help="With every system the paper compares with, and a bar chart.")
    ] = False,
) -> None:
    """Show the whole method on 5,000 digits: 0-4 known, 5-9 to be discovered. Two minutes, no GPU, no data."""
    from autonovel.outcome import next_steps

    with _plain_errors():
        if compare:
            from autonovel.comparison import compare_systems as run_recipe
        else:
            from autonovel.commands import run_recipe

        made = run_recipe("demo", out, seed, _changes(sets, None, new_classes), device, resume, overwrite, keep_going)
        if launch().rank == 0:
            typer.echo("\n".join(next_steps(made)))


add_discover_command(app, _plain_errors)


@app.command()
def run(
    recipe: Annotated[str, typer.Argument(help="Name of a recipe, or path to a TOML file.")],
    data: Annotated[Path | None, typer.Option("--data", help="Folder of the benchmark's files.")] = None,
    out: Out = None,
    seed: Seed = 0,
    sets: Sets = None,
    device: Device = "auto",
    resume: Resume = False,
    overwrite: Overwrite = False,
    keep_going: KeepGoing = False,
    stages: Stages = "1,2,3",
    new_classes: NewClasses = "",
    method: Methods = None,
    no_self_supervision: NoSelfSupervision = False,
) -> None:
    """Run RECIPE on its source of images."""
    with _plain_errors():
        from autonovel.commands import run_recipe
        from autonovel.variants import of_systems

        run_recipe(
            recipe, out, seed, _changes(sets, data, new_classes), device, resume, overwrite, keep_going,
            stages=_stages(stages), variant=of_systems(method or [], not no_self_supervision), together=True,
        )  # fmt: skip


@app.command()
def reproduce(
    recipe: Annotated[str, typer.Argument(help="Name of a recipe, or path to a TOML file.")],
    data: Annotated[Path | None, typer.Option("--data", help="Folder of the benchmark's files.")] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds, from 0 on.")] = 1,
    out: Annotated[Path, typer.Option("--out", help="Folder for the run folders RECIPE-seedN.")] = Path("runs"),
    ablations: Annotated[
        bool, typer.Option("--ablations", help="Also without consistency, cross-entropy, pair loss, self-supervision.")
    ] = False,
    sweep_k: Annotated[
        str, typer.Option("--sweep-k", metavar="K,K,…", help="Also with other sizes k of the compared sets.")
    ] = "",
    sets: Sets = None,
    device: Device = "auto",
    keep_going: KeepGoing = False,
    stages: Stages = "1,2,3",
    new_classes: NewClasses = "",
    method: Methods = None,
    no_self_supervision: NoSelfSupervision = False,
    beside: Annotated[
        int, typer.Option("--beside", min=1, help="Runs at a time, where a benchmark is the mean over many (omniglot).")
    ] = 1,
) -> None:
    """Run RECIPE on several seeds and print the table beside the paper's; finished and begun runs are taken up.

    Variants of one seed share stages 1 and 2 where these are the same.
    """
    with _plain_errors():
        from autonovel import variants
        from autonovel.commands import reproduce_recipe

        compared = (variants.ABLATIONS if ablations else ()) + variants.sweep_k(_whole_numbers("--sweep-k", sweep_k))
        # of other systems or numbers of classes there are run folders of their own; of a study, all have the same
        systems = variants.of_systems(method or [], not no_self_supervision, "" if compared else new_classes)
        changes, chosen = _changes(sets, data, new_classes if compared else ""), _stages(stages)
        reproduce_recipe(recipe, seeds, out, changes, device, keep_going, compared, chosen, systems, beside)


@app.command()
def count(
    target: Annotated[str, typer.Argument(metavar="RUN|RECIPE", help="Folder of a run, or a recipe to start one.")],
    data: Annotated[Path | None, typer.Option("--data", help="Folder of the images.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Run folder for RECIPE. Default: runs/RECIPE-seedN.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed for RECIPE. Default: 0.")] = None,
    sets: Sets = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Estimate how many new classes there are, in a finished or begun RUN or from a RECIPE.

    Stage 1 is the run's own. Where there are six known classes or more, some of them play new ones, and stage 2 is
    trained anew without them.
    """
    with _plain_errors():
        from autonovel.count_command import count_classes

        count_classes(target, data, out, seed, sets or [], device, as_json)


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    data: Annotated[Path | None, typer.Option("--data", help="Folder of the images, if they were moved.")] = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Let the delivered model of RUN judge its images again, and score it under every protocol."""
    with _plain_errors():
        from autonovel.look_commands import evaluate_run

        evaluate_run(run, data, device, as_json)


@app.command()
def show(
    recipe: Annotated[str, typer.Argument(help="Name of a recipe, or path to a TOML file.")],
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Show every setting of RECIPE with its meaning and its source."""
    with _plain_errors():
        from autonovel.look_commands import show_recipe

        show_recipe(recipe, sets or [], as_json)


@app.command()
def table(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of results.")], as_json: AsJson = False
) -> None:
    """Print the results of RUNS beside the paper's: mean and deviation over seeds, time, hardware, commit."""
    with _plain_errors():
        from autonovel.look_commands import print_table

        print_table(runs, as_json)


@app.command()
def figures(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold such.")],
    to: Annotated[Path, typer.Option("--to", help="Folder for pictures, captions and numbers.")] = Path("figures"),
    pair: Annotated[
        str, typer.Option("--pair", metavar="A,B", help="Two classes whose overlap is told. Default: the largest.")
    ] = "",
) -> None:
    """Draw the figures of the paper that RUNS allow, and say which they do not."""
    with _plain_errors():
        from autonovel.look_commands import draw_figures

        draw_figures(runs, to, pair)


@app.command()
def doctor() -> None:
    """Show versions and devices, and test the objectives against naive loops."""
    with _plain_errors():
        from autonovel.doctor import examine

        if not examine():
            raise typer.Exit(1)


add_data_commands(app, _plain_errors)
add_report_command(app, _plain_errors)
add_correction_commands(app, _plain_errors)
add_refine_command(app, _plain_errors)
add_use_commands(app, _plain_errors)


@app.command("train-system", hidden=True)
def train_system(run: Path, name: str, keep_going: KeepGoing = False) -> None:
    """Train one system of a comparison for the process that started this one."""
    from autonovel.companion import EventDisplay, die_with_parent

    die_with_parent()
    display = EventDisplay()
    try:
        from autonovel.commands import train_side_system

        train_side_system(run, name, display, keep_going)
    except AutonovelError as error:
        display.error(str(error), error.exit_code)
        sys.exit(error.exit_code)
