"""Short names for rows of a recipe as it once was: a letter stands for the settings it had then."""

from collections.abc import Sequence
from dataclasses import replace

from autonovel.tables.naming import in_order
from autonovel.tables.row import Row


class Versions:
    """Letters for earlier versions of recipes that differ from today's in more than one setting."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._letters: dict[str, dict[str, str]] = {}
        for row in rows:
            if row.since.count("=") > 1:
                of_recipe = self._letters.setdefault(row.recipe.split()[0], {})
                of_recipe.setdefault(row.since, chr(ord("a") + len(of_recipe)))

    def named(self, rows: Sequence[Row]) -> list[Row]:
        """Return rows by their short names, and in the order of these."""
        short = [replace(row, recipe=self._name(row)) for row in rows]
        order = in_order({row.recipe for row in short})
        return sorted(short, key=lambda row: order.index(row.recipe))

    def _name(self, row: Row) -> str:
        recipe, _, _ = row.recipe.partition(" ")
        letter = self._letters.get(recipe, {}).get(row.since)
        return f"{recipe} ({letter}){row.given.removeprefix(recipe)}" if letter else row.recipe

    def told(self) -> list[str]:
        """Return, in lines of Markdown, what the letters stand for."""
        lines = [
            f"- `{recipe}` ({letter}): {settings}"
            for recipe, versions in self._letters.items()
            for settings, letter in versions.items()
        ]
        told = "A letter stands for a recipe as it once was, with these settings:"
        return ["", told, "", *lines] if lines else []
