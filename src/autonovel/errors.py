"""Errors of our own type: each says what was found, what is needed and how to fix it."""


class AutonovelError(Exception):
    """Base of all errors the package raises on purpose; ``exit_code`` is the command's."""

    exit_code = 1


class UsageError(AutonovelError):
    """A wrong option, recipe or setting."""

    exit_code = 2


class InputError(UsageError):
    """Images or labels that cannot be learned from."""


class GuardError(AutonovelError):
    """A run that failed its own guards: collapsed, or no longer finite."""

    exit_code = 3
    seen = ""  # what was found, without what to do about it


class RunFolderError(AutonovelError):
    """A run folder that is missing, locked, damaged, or of another format."""

    exit_code = 4
