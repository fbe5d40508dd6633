"""``autonovel demo --compare``: every system of the paper on one set of images, one table, one bar chart."""

from pathlib import Path

from rich.console import Console

from autonovel import recipe
from autonovel.commands.training import run_recipe
from autonovel.errors import AutonovelError
from autonovel.manner import Manner
from autonovel.studies.variants import EVERY_SYSTEM, Variant, folder_name, refuse_said_twice

CHART = ("systems.png", "systems.svg")
COMPARISON = Variant("compare", {"run.systems": list(EVERY_SYSTEM)})


def compare_systems(
    name: str,
    out: Path | None,
    seed: int,
    sets: list[str],
    manner: Manner,
) -> Path:
    """Run a recipe with every system, and draw the bar chart into the run folder, which is returned.

    The chart is drawn of what there is, also where one of the systems failed.
    """
    refuse_said_twice(COMPARISON, sets)
    folder = out or Path("runs") / folder_name(recipe.load(name, sets).recipe.name, COMPARISON, seed)
    before = _written(folder)
    try:
        run_recipe(name, folder, seed, sets, manner, COMPARISON)
    finally:
        if _written(folder) != before or (before and not _drawn(folder)):  # killed while it was drawn, the time before
            draw_comparison(folder, Console())
    return folder


def _written(folder: Path) -> int | None:
    """Return when the results in ``folder`` were written; None where there are none."""
    results = folder / "results.json"
    return results.stat().st_mtime_ns if results.exists() else None


def _drawn(folder: Path) -> bool:
    return all((folder / name).exists() for name in CHART)


def draw_comparison(folder: Path, console: Console) -> None:
    """Write the bar chart of the systems of one run; its drawing library may be missing where a run only trains."""
    try:
        from autonovel.figures import comparison
        from autonovel.figures.runs import collect, studies

        (study,) = studies(collect([folder]))
        files = comparison.draw(study).save(folder)
        console.print(
            f"Drew {', '.join(str(folder / file) for file in files)}.", highlight=False, soft_wrap=True, markup=False
        )
    except ImportError as error:
        console.print(f"No bar chart was drawn: it needs the package {error.name}.", highlight=False)
    except AutonovelError as error:
        console.print(f"No bar chart was drawn: {error}", highlight=False, soft_wrap=True, markup=False)
