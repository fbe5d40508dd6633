"""The commands about files of images: benchmarks to download, and what is in a folder."""

from pathlib import Path
from typing import Annotated

import typer

from autonovel.cli.errors import plain_errors
from autonovel.cli.options import AsJson


def add_data_commands(app: typer.Typer) -> None:
    """Add ``data`` to ``app``."""
    data = typer.Typer(help="Download benchmark datasets and look at what is there.", no_args_is_help=True)
    app.add_typer(data, name="data")

    @data.command()
    def fetch(
        name: Annotated[str, typer.Argument(help="cifar10, cifar100, svhn or omniglot; imagenet has to be asked for.")],
        to: Annotated[Path, typer.Option("--to", help="Folder for the files; made if need be.")],
    ) -> None:
        """Download the official files of dataset NAME, going on with what is already there."""
        with plain_errors():
            from autonovel.commands.look import fetch_dataset

            fetch_dataset(name, to)

    @data.command()
    def check(
        name: Annotated[str, typer.Argument(help="A benchmark (cifar10, …), or folder for images of your own.")],
        folder: Annotated[Path, typer.Argument(help="Folder of the files, or a table of images.")],
        as_json: AsJson = False,
    ) -> None:
        """Say what of dataset NAME is in FOLDER: files, checksums, counts; of images of your own, an inventory."""
        with plain_errors():
            from autonovel.commands.look import check_dataset

            if not check_dataset(name, folder, as_json):
                raise typer.Exit(2)
