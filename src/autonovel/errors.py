"""Errors of our own type: each says what was found, what is needed and how to fix it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

FREE_SPACE = "Free space, make it writable, or take another folder (--out); what was finished before is kept."


class AutonovelError(Exception):
    """Base of all errors the package raises on purpose; ``exit_code`` is the command's."""

    exit_code = 1
    delivered = False  # whether a run was delivered all the same: another system of its comparison failed


class UsageError(AutonovelError):
    """A wrong option, recipe or setting."""

    exit_code = 2


class InputError(UsageError):
    """Images or labels that cannot be learned from."""


class PicturesLostError(UsageError):
    """A report with pictures would be replaced by one without."""


class GuardError(AutonovelError):
    """A run that failed its own guards: collapsed, or no longer finite."""

    exit_code = 3
    seen = ""  # what was found, without what to do about it


class RunFolderError(AutonovelError):
    """A run folder that is missing, locked, damaged, or of another format."""

    exit_code = 4


@contextlib.contextmanager
def writes_explained(path: Path, advice: str = FREE_SPACE) -> Iterator[None]:
    """Turn the system's refusal to write into an error that says where and what to do."""
    try:
        yield
    except OSError as error:
        raise RunFolderError(f"cannot write {path}: {error.strerror or error}. {advice}") from error
