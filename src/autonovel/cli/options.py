"""Arguments and options that several commands have, each with its words in one place."""

from pathlib import Path
from typing import Annotated, Any

import typer

PANEL = "Look, correct, export"

FinishedRun = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.", show_default=False)]
Moved = Annotated[Path | None, typer.Option("--data", help="Folder of the images, if they were moved.")]
Benchmark = Annotated[Path | None, typer.Option("--data", help="Folder of the benchmark's files.")]
RecipeName = Annotated[str, typer.Argument(help="Name of a recipe, or path to a TOML file.")]
Out = Annotated[Path | None, typer.Option("--out", help="Run folder. Default: runs/RECIPE-seedN.")]
SEEDS: Any = {"min": 0, "max": 2**62}  # a run's documents hold numbers to 2**63, and more seeds may follow the first
Seed = Annotated[int, typer.Option("--seed", **SEEDS, help="Seed of every random draw.")]
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
