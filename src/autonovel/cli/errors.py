"""How every command ends that cannot go on: one line on standard error and an exit code."""

import contextlib
import sys
from collections.abc import Iterator

import typer

from autonovel import stopping
from autonovel.errors import AutonovelError
from autonovel.launch import launch
from autonovel.visible import visible

INTERRUPTED = 130


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
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
