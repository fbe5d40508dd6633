"""The commands that look at, correct and export a finished run; as thin and as late to import as all others."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autonovel.cli.errors import plain_errors
from autonovel.cli.options import PANEL, AsJson, FinishedRun, Moved

if TYPE_CHECKING:
    from autonovel.editing.edited import EditedRun

Class = Annotated[str, typer.Argument(metavar="CLASS", help="Name or number of a class.", show_default=False)]
Images = Annotated[
    list[str],
    typer.Argument(metavar="IMAGE…", help="Ids of images, as in discovery.csv.", show_default=False),
]


def add_correction_commands(app: typer.Typer) -> None:
    """Add the commands to ``app``."""

    @contextmanager
    def correcting(run: Path) -> Iterator["EditedRun"]:
        with plain_errors():
            from autonovel.commands.corrections import Correction

            with Correction(run) as edited:
                yield edited

    @app.command(rich_help_panel=PANEL)
    def review(
        run: FinishedRun,
        data: Moved = None,
        port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any that is free.")] = 0,
        browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    ) -> None:
        """Show RUN in a browser, where classes can be renamed, merged, split and corrected. Local to this machine."""
        with plain_errors():
            from autonovel.review import serve

            serve(run, data, port, browser)

    @app.command(rich_help_panel=PANEL)
    def rename(
        run: FinishedRun, name: Class, to: Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
    ) -> None:
        """Give a new class of RUN, or one that refine made known, another name."""
        with correcting(run) as edited:
            edited.rename(name, to)

    @app.command(rich_help_panel=PANEL)
    def merge(
        run: FinishedRun,
        into: Annotated[str, typer.Argument(metavar="INTO", help="Class that stays.", show_default=False)],
        others: Annotated[list[str], typer.Argument(metavar="CLASS…", help="Classes that go.", show_default=False)],
    ) -> None:
        """Put all images of one or more new classes of RUN into the class INTO."""
        with correcting(run) as edited:
            edited.merge(into, *others)

    @app.command(rich_help_panel=PANEL)
    def split(
        run: FinishedRun,
        name: Class,
        images: Annotated[
            list[str] | None,
            typer.Option("--images", "--image", metavar="ID", help="Id to split off; repeatable. Default: by k-means."),
        ] = None,
        to: Annotated[str | None, typer.Option("--name", help="Name of the part split off. Default: new-N.")] = None,
    ) -> None:
        """Make a class of its own of some images of a class of RUN."""
        with correcting(run) as edited:
            edited.split(name, images, to)

    @app.command(rich_help_panel=PANEL)
    def move(
        run: FinishedRun,
        images: Images,
        to: Annotated[str, typer.Option("--to", metavar="CLASS", help="Class that gets them.", show_default=False)],
    ) -> None:
        """Move images of RUN into another class."""
        with correcting(run) as edited:
            edited.move(images, to)

    @app.command(rich_help_panel=PANEL)
    def junk(
        run: FinishedRun,
        images: Annotated[list[str] | None, typer.Argument(metavar="[IMAGE…]", help="Ids of images.")] = None,
        name: Annotated[str | None, typer.Option("--class", metavar="CLASS", help="A whole new class.")] = None,
    ) -> None:
        """Mark images of RUN, or a whole new class, as belonging nowhere."""
        with plain_errors():
            from autonovel.commands.corrections import one_of

            one_of(images, name)
        with correcting(run) as edited:
            edited.junk(images or []) if name is None else edited.junk_class(name)

    @app.command(rich_help_panel=PANEL)
    def undo(run: FinishedRun) -> None:
        """Take back the last edit of RUN that is in force."""
        with correcting(run) as edited:
            edited.undo()

    @app.command(rich_help_panel=PANEL)
    def edits(run: FinishedRun, as_json: AsJson = False) -> None:
        """List the edits of RUN and the classes as they are now."""
        with plain_errors():
            from autonovel.commands.corrections import list_edits

            list_edits(run, as_json)

    @app.command(rich_help_panel=PANEL)
    def export(
        run: FinishedRun,
        dest: Annotated[Path, typer.Argument(metavar="DEST", help="File or folder to write.", show_default=False)],
        to: Annotated[
            str, typer.Option("--to", help="csv, folders, fiftyone, labelstudio or onnx.", show_default=False)
        ],
        files: Annotated[
            str, typer.Option("--files", help="How image files get there: copy, hardlink or symlink.")
        ] = "copy",
        data: Moved = None,
        overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the export at DEST.")] = False,
    ) -> None:
        """Write the classes of RUN, all edits made, in a form that other programs read."""
        with plain_errors():
            from autonovel.export import export_run

            export_run(run, to, dest, files, data, overwrite)
