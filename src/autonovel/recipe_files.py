"""Recipes as they are written: TOML files of the package or of a caller, each of which may extend another one."""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from autonovel.errors import UsageError
from autonovel.setting_values import nearest

Flat = dict[str, Any]
EXTENDS = "extends"


@dataclass(frozen=True)
class Document:
    """What one file says.

    Attributes:
        name: as it was asked for: that of a recipe of the package, or a path.
        values: settings by their dotted names.
        comments: what stands behind a setting, by its name.
        extends: the recipe it extends, or nothing.
    """

    name: str
    values: Flat
    comments: dict[str, str]
    extends: str

    def origin(self, key: str) -> str:
        """Return where one of its values comes from."""
        return self.comments.get(key, f"recipe {self.values['name']}")


def names() -> list[str]:
    """Return the names of the recipes inside the package."""
    folder = resources.files("autonovel") / "recipes"
    return sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml"))


def read(name: str) -> Document:
    """Return the recipe ``name`` (of the package, or a path to a TOML file) as it is written."""
    label, text = _text(name)
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is one; so is a number of thousands of digits
        raise UsageError(f"recipe {name} is not valid TOML: {error}.") from error
    base = table.pop(EXTENDS, "")
    values = _flatten(table)
    values.setdefault("name", label)
    if not isinstance(base, str):
        raise UsageError(f"recipe {name}: {EXTENDS} is {base!r}; name a recipe, or the path of a TOML file.")
    if base.endswith(".toml"):  # from where the file lies that says so
        base = os.path.join(os.path.dirname(name), base)
    return Document(name, values, _comments(text), base)


def line(name: str) -> list[Document]:
    """Return the recipe ``name`` behind all that it extends, the one that extends nothing first."""
    found = [read(name)]
    while base := found[0].extends:
        if _place(base) in [_place(document.name) for document in found]:
            circle = ", ".join([*(document.name for document in reversed(found)), base])
            raise UsageError(f"recipes extend each other in a circle: {circle}.")
        try:
            found.insert(0, read(base))
        except UsageError as error:
            beside = os.path.join(os.path.dirname(found[0].name), f"{base}.toml")
            meant = f' Of the file {beside} say extends = "{base}.toml".' if os.path.isfile(beside) else ""
            raise UsageError(f"recipe {found[0].name} extends {base}: {error}{meant}") from error
    return found


def _place(name: str) -> str:
    """Return what two names of one recipe have in common."""
    try:
        return os.path.realpath(name) if name.endswith(".toml") else name
    except ValueError:  # no file can have such a name
        return name


def _text(name: str) -> tuple[str, str]:
    if name.endswith(".toml"):
        path = Path(name)
        try:
            if path.is_file():
                return path.stem, path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"recipe {name} is not UTF-8 text: {error}.") from error
        except OSError as error:
            raise UsageError(f"recipe {name} cannot be read: {error.strerror}.") from error
        raise UsageError(f"no recipe file {name}. Give a path to a TOML file, or one of: {', '.join(names())}.")
    if name not in names():
        raise UsageError(f"no recipe named {name!r}.{nearest(name, names())} Recipes: {', '.join(names())}.")
    text = (resources.files("autonovel") / "recipes" / f"{name}.toml").read_text(encoding="utf-8")
    return name, text


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Flat:
    out: Flat = {}
    for key, value in table.items():
        out |= _flatten(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value}
    return out


# a dotted key, a value in which quoted strings may hold a #, and the comment behind it
_COMMENTED = re.compile(r"""\s*([\w.-]+)\s*=(?:"[^"]*"|'[^']*'|[^#"'])*#\s*(.+)$""")


def _comments(text: str) -> dict[str, str]:
    """Return the comment behind each ``key = value  # source`` line by dotted name."""
    out, section = {}, ""
    for row in text.splitlines():
        if header := re.match(r"\s*\[([\w.-]+)\]", row):
            section = header[1] + "."
        elif entry := _COMMENTED.match(row):
            out[section + entry[1]] = entry[2].strip()
    return out
