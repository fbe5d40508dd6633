"""The command that most people come for; as late to import as all others."""

from pathlib import Path
from typing import Annotated

import typer

from autonovel.cli.errors import plain_errors
from autonovel.cli.options import Device, KeepGoing, Overwrite, Resume, Seed, Sets


def add_discover_command(app: typer.Typer) -> None:
    """Add the command to ``app``."""

    @app.command()
    def discover(
        place: Annotated[Path, typer.Argument(metavar="DIR|TABLE", help="Folder of images, or table path,label.")],
        new_classes: Annotated[
            str, typer.Option("--new-classes", metavar="N|auto", help="Number of new classes; auto estimates it.")
        ] = "auto",
        quick: Annotated[bool, typer.Option("--quick", help="Features and k-means alone: a first look.")] = False,
        size: Annotated[
            int, typer.Option("--size", min=0, max=2048, help="Side in pixels to which images are scaled; 0 chooses.")
        ] = 0,
        backbone: Annotated[
            str,
            typer.Option(
                "--backbone",
                metavar="NAME",
                help="efficientnet-lite0 (pretrained), hf:NAME_OR_FOLDER (a pretrained model for transformers: DINOv2, "
                "ViT, ResNet, …), resnet18 or small.",
            ),
        ] = "",
        pretraining: Annotated[
            str, typer.Option("--pretraining", metavar="KIND", help="From scratch: rotation, supervised or none.")
        ] = "",
        weights: Annotated[
            Path | None, typer.Option("--weights", help="Safetensors file of a trunk to start from.")
        ] = None,
        method: Annotated[
            str, typer.Option("--method", metavar="NAME|auto", help="auto tries out on known classes what works.")
        ] = "auto",
        truth: Annotated[
            Path | None, typer.Option("--truth", help="CSV path,label of unlabelled images, for scoring alone.")
        ] = None,
        recipe: Annotated[
            str, typer.Option("--recipe", metavar="NAME|FILE", help="Instead of what fits the images best.")
        ] = "",
        out: Annotated[Path | None, typer.Option("--out", help="Run folder. Default: runs/NAME-seedN.")] = None,
        seed: Seed = 0,
        sets: Sets = None,
        device: Device = "auto",
        resume: Resume = False,
        overwrite: Overwrite = False,
        keep_going: KeepGoing = False,
    ) -> None:
        """Find new classes in your own pictures: sub-folders of DIR are known classes, the rest is to be discovered."""
        with plain_errors():
            from autonovel.commands.discover import discover as run
            from autonovel.manner import Manner
            from autonovel.planning import Wish

            wish = Wish(new_classes, quick, size, backbone, pretraining, weights, method, truth, recipe)
            run(place, wish, out, seed, sets or [], Manner(device, resume, overwrite, keep_going))
