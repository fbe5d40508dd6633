"""The commands that run recipes: the demo, one run, runs over seeds, a count; as late to import as all others."""

from pathlib import Path
from typing import Annotated

import typer

from autonovel.cli.errors import plain_errors
from autonovel.cli.options import (
    SEEDS,
    AsJson,
    Benchmark,
    Device,
    KeepGoing,
    Methods,
    NewClasses,
    NoSelfSupervision,
    Out,
    Overwrite,
    RecipeName,
    Resume,
    Seed,
    Sets,
    Stages,
)
from autonovel.errors import UsageError
from autonovel.launch import launch


def add_demo_command(app: typer.Typer) -> None:
    """Add ``demo``, which comes first, to ``app``."""

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
        with plain_errors():
            from autonovel.manner import Manner
            from autonovel.outcome import next_steps

            if compare:
                from autonovel.studies.comparison import compare_systems as run_recipe
            else:
                from autonovel.commands.training import run_recipe

            asked = _changes(sets, None, new_classes)
            made = run_recipe("demo", out, seed, asked, Manner(device, resume, overwrite, keep_going))
            if launch().rank == 0:
                typer.echo("\n".join(next_steps(made)))


def add_run_commands(app: typer.Typer) -> None:
    """Add ``run``, ``reproduce`` and ``count`` to ``app``."""

    @app.command()
    def run(
        recipe: RecipeName,
        data: Benchmark = None,
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
        with plain_errors():
            from autonovel.commands.training import run_recipe
            from autonovel.manner import Manner
            from autonovel.studies.variants import of_systems, refuse_said_twice

            manner = Manner(device, resume, overwrite, keep_going, _stages(stages))
            systems = of_systems(method or [], not no_self_supervision)
            refuse_said_twice(systems, sets or [])
            run_recipe(recipe, out, seed, _changes(sets, data, new_classes), manner, systems, together=True)

    @app.command()
    def reproduce(
        recipe: RecipeName,
        data: Benchmark = None,
        seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds.")] = 1,
        first_seed: Annotated[int, typer.Option("--first-seed", **SEEDS, help="The first seed; others follow it.")] = 0,
        out: Annotated[Path, typer.Option("--out", help="Folder for the run folders RECIPE-seedN.")] = Path("runs"),
        ablations: Annotated[
            bool,
            typer.Option("--ablations", help="Also without consistency, cross-entropy, pair loss, self-supervision."),
        ] = False,
        sweep_k: Annotated[
            str, typer.Option("--sweep-k", metavar="K,K,…", help="Also with other sizes k of the compared sets.")
        ] = "",
        sweep_group: Annotated[
            str,
            typer.Option(
                "--sweep-group", metavar="N,N,…", help="Also with pairs compared in groups of so many images."
            ),
        ] = "",
        sets: Sets = None,
        device: Device = "auto",
        keep_going: KeepGoing = False,
        stages: Stages = "1,2,3",
        new_classes: NewClasses = "",
        method: Methods = None,
        no_self_supervision: NoSelfSupervision = False,
        label: Annotated[
            str,
            typer.Option("--label", help="Name of what --set changes: part of the run folders' names, beside others."),
        ] = "",
        beside: Annotated[
            int,
            typer.Option("--beside", min=1, help="Runs at a time: of omniglot or imagenet parts, else seeds."),
        ] = 1,
    ) -> None:
        """Run RECIPE on several seeds and print the table beside the paper's; finished and begun runs are taken up.

        Variants of one seed share stages 1 and 2 where these are the same.
        """
        with plain_errors():
            from autonovel.commands.reproduce import reproduce_recipe
            from autonovel.manner import Manner
            from autonovel.studies import variants

            compared = (
                *(variants.ABLATIONS if ablations else ()),
                *variants.sweep("k", _whole_numbers("--sweep-k", sweep_k)),
                *variants.sweep("group", _whole_numbers("--sweep-group", sweep_group)),
            )
            # of other systems or numbers of classes there are run folders of their own; of a study, all have the same
            number = "" if compared else new_classes
            systems = variants.of_systems(method or [], not no_self_supervision, number, label)
            changes = _changes(sets, data, new_classes if compared else "")
            manner = Manner(device, keep_going=keep_going, stages=_stages(stages))
            numbers = range(first_seed, first_seed + seeds)
            reproduce_recipe(recipe, numbers, out, changes, manner, compared, systems, beside)

    @app.command()
    def count(
        target: Annotated[str, typer.Argument(metavar="RUN|RECIPE", help="Folder of a run, or a recipe to start one.")],
        data: Annotated[Path | None, typer.Option("--data", help="Folder of the images.")] = None,
        out: Annotated[
            Path | None, typer.Option("--out", help="Run folder for RECIPE. Default: runs/RECIPE-seedN.")
        ] = None,
        seed: Annotated[int | None, typer.Option("--seed", **SEEDS, help="Seed for RECIPE. Default: 0.")] = None,
        sets: Sets = None,
        device: Device = "auto",
        as_json: AsJson = False,
    ) -> None:
        """Estimate how many new classes there are, in a finished or begun RUN or from a RECIPE.

        Stage 1 is the run's own. Where there are six known classes or more, some of them play new ones, and stage 2 is
        trained anew without them; not so where stage 1 was told their labels (pretrain.label_weight).
        """
        with plain_errors():
            from autonovel.commands.count import count_classes

            count_classes(target, data, out, seed, sets or [], device, as_json)


def _changes(sets: list[str] | None, data: Path | None = None, new_classes: str = "") -> list[str]:
    """Return the settings that options of their own stand for, then those of --set, which win."""
    from autonovel.setting_values import as_override

    own = [as_override("data.path", str(data))] if data else []
    return own + ([as_override("count.new_classes", new_classes)] if new_classes else []) + (sets or [])


def _whole_numbers(option: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() and len(part) < 7 and int(part) > 0 for part in parts):
        raise UsageError(f"{option} is {text!r}; give whole numbers with commas between them, such as 1,5,10.")
    return [int(part) for part in parts]


def _stages(text: str) -> tuple[int, ...]:
    from autonovel.settings import ALL_STAGES

    chosen = tuple(sorted(set(_whole_numbers("--stages", text))))
    if not chosen or not set(chosen) <= set(ALL_STAGES):
        raise UsageError(f"--stages is {text!r}; choose among 1 (rotation), 2 (supervised) and 3 (joint), such as 1,2.")
    return chosen
