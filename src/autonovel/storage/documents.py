"""The documents of a run folder, replaced atomically; every write is done by ``writing``."""

import json
from pathlib import Path
from typing import Any

from autonovel.errors import RunFolderError, writes_explained
from autonovel.storage import writing
from autonovel.storage.folder_lock import check_still_there


def replace_file(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` in one step: readers see the old file or the new one, never a part."""
    check_still_there(path)
    with writes_explained(path):
        writing.replace_file(path, content)


def write_json(path: Path, content: Any) -> None:
    """Put ``content`` at ``path`` as readable JSON, atomically."""
    replace_file(path, (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """Return the JSON document at ``path``, or say why it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunFolderError(f"{path} is missing; is {path.parent} the folder of a finished run?") from error
    except (OSError, ValueError, RecursionError) as error:
        raise RunFolderError(f"{path} cannot be read ({error}). Restore it, or start anew with --overwrite.") from error
