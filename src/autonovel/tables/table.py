"""Results of many runs as one table beside the paper's."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autonovel.errors import UsageError
from autonovel.evaluation import HELD_OUT, MATCHED_EACH
from autonovel.labels import GROWN, LABELS, label_of, with_labels_first
from autonovel.storage.documents import read_json
from autonovel.storage.shapes import Shape, checked, interpreting, kept_results, read_results
from autonovel.studies.side_by_side import LOG
from autonovel.tables import paper
from autonovel.tables.as_today import as_today, published_as
from autonovel.tables.departures import departures
from autonovel.tables.edited import told_apart
from autonovel.tables.markdown import grid
from autonovel.tables.naming import Results, commit_of, name_of, name_then, names_of, version_of
from autonovel.tables.other_images import IMAGES, same_images, told_apart_by_images
from autonovel.tables.other_images import LEGEND as OF_IMAGES
from autonovel.tables.part_table import part_table
from autonovel.tables.row import HEADER, Row, spread
from autonovel.tables.versions import Versions
from autonovel.words import counted

OLD_NEW_ALL = "joint classifier, old / new / all"
LEGEND = (
    "Accuracy in per cent: mean ± standard deviation over the seeds. Old / new / all of joint classifiers are "
    f"{MATCHED_EACH}, on {HELD_OUT} unless the row says otherwise. A run's time counts all stages that its result "
    "needs, also those that it took over from another run (a mean over parts has what these took, from start to end); "
    "most ran beside others on one device."
)
SHARED_STAGES = ("rotation", "prototypical", "supervised")  # by the names under which results have their seconds
NOT_RUN = "not-run.json"  # beside results: rows of the paper's benchmarks that nobody has run yet, and why
UNRUN: Shape = {
    "recipe": str,
    "why": str,
    "systems": [str],
    "changes": [str],
    "instead": str,
}  # what such a document says
RUN = "run"  # number of the run that a part of results is of


@dataclass(frozen=True)
class Unrun:
    """A recipe of which numbers of the paper have none of ours beside them yet.

    Attributes:
        recipe: its name.
        why: they were not run.
        systems: whose rows are meant (none named: all that the paper has).
        changes: which of the recipe's variants, by their changed settings, are meant (none named: all that it has).
        instead: what stands in the place of our numbers.
    """

    recipe: str
    why: str
    systems: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    instead: str = "not run"

    @property
    def names(self) -> list[str]:
        """Return what the rows that are meant are called."""
        return [f"{self.recipe} {changes}".rstrip() for changes in self.changes or paper.VARIANTS]


def collect(paths: Sequence[Path]) -> list[Results]:
    """Return the results at ``paths``: run folders, results files, or folders that hold such.

    What their recipe says otherwise today, or in others of these results, counts as changed, for each of their systems;
    so do images of a person's own that are not those of others.
    """
    found: dict[Path, Results] = {}
    for path in paths:
        if path.suffix == LOG and path.is_file():  # of runs beside each other, where a shell has named all there is
            continue
        files = [path] if path.is_file() else _files(path)
        if not files:
            raise UsageError(f"{path} holds no results. Give run folders, or a folder of seed-N.json files.")
        found |= {file.resolve(): read_results(file) for file in files}  # a run named twice counts once
    runs = [results | {RUN: number} for number, results in enumerate(found.values())]
    return told_apart_by_images(told_apart([part for results in runs for part in as_today(results)]))


def _files(folder: Path) -> list[Path]:
    if (folder / "results.json").exists():
        return [folder / "results.json"]
    return sorted([*folder.glob("*/results.json"), *kept_results(folder)])


def unrun(paths: Sequence[Path]) -> list[Unrun]:
    """Return what folders of results say was not run."""
    found = [file for path in paths if path.is_dir() for file in (*path.glob(NOT_RUN), *path.glob(f"*/{NOT_RUN}"))]
    told = [checked(file, read_json(file), UNRUN, ("recipe", "why")) for file in sorted(found)]
    return [
        Unrun(
            recipe=one["recipe"],
            why=one["why"],
            systems=tuple(one.get("systems", ())),
            changes=tuple(one.get("changes", ())),
            instead=one.get("instead", Unrun.instead),
        )
        for one in told
    ]


def unrun_rows(not_run: Iterable[Unrun], results: Sequence[Results]) -> list[Row]:
    """Return a row for every number of the paper that is meant, unless results stand beside it."""
    there = {(row.recipe, row.system) for row in rows(results)}
    out = []
    for one in not_run:
        systems = [system for system in LABELS if not one.systems or system in one.systems]
        for name in one.names:
            changes = name.partition(" ")[2]
            told = {LABELS[system]: str(paper.accuracy(one.recipe, changes, system) or "") for system in systems}
            for system in systems:
                label = joint_label(system)
                told[label] = " / ".join(map(str, paper.old_new_all(one.recipe, changes, system) or ()))
            wanted = {label: text for label, text in told.items() if text and (name, label) not in there}
            out += [Row(name, label, text, one.instead, {}, (), (), "", "") for label, text in wanted.items()]
    return out


def rows(results: Sequence[Results]) -> list[Row]:
    """Return a row per recipe and system, and two for each joint classifier: old / new / all, and its ACC."""
    with interpreting("one of the results"):
        return _rows(results)


def _rows(results: Sequence[Results]) -> list[Row]:
    out = []
    for recipe in names_of(results):
        runs = sorted((r for r in results if name_of(r) == recipe), key=lambda r: int(r["seed"]))
        systems = with_labels_first(system for r in runs for system in r["systems"])
        for system in systems:
            scored = [r for r in runs if (r["systems"].get(system) or {}).get("acc") is not None]
            if scored:
                _refuse_repeated_seeds(recipe, scored)
                out.append(_accuracy_row(recipe, system, scored))
        for system in systems:
            joint = [r for r in runs if _joint(r, system)]
            if joint:
                out.append(_joint_row(recipe, system, joint))
            on_unlabelled = [r for r in joint if "unlabelled" in (_joint(r, system) or {})]
            if on_unlabelled:
                out.append(_unlabelled_row(recipe, system, on_unlabelled))
    return out


def _refuse_repeated_seeds(recipe: str, runs: list[Results]) -> None:
    """One seed measured twice is not two samples."""
    seeds = [int(r["seed"]) for r in runs]
    repeated = sorted({seed for seed in seeds if seeds.count(seed) > 1})
    if repeated:
        twice = [r for r in runs if int(r["seed"]) in repeated]
        raise UsageError(
            f"seed {', '.join(map(str, repeated))} of {recipe} is there more than once{same_images(twice)}, perhaps "
            "under the name of a setting that the recipe has itself today; name only one run of each seed."
        )


def _accuracy_row(recipe: str, system: str, runs: list[Results]) -> Row:
    values = {key: [100 * r["systems"][system][key] for r in runs] for key in ("acc", "nmi", "ari")}
    published = paper.accuracy(*_in_the_paper(recipe, runs, system), system)
    return _row(recipe, system, label_of(system), str(published or "–"), spread(values["acc"]), values, runs)


def _in_the_paper(recipe: str, runs: list[Results], system: str) -> tuple[str, str]:
    """Return the recipe, and what was changed in it, of which the paper may have a number to stand beside the runs."""
    name = runs[0]["recipe"]
    changes = (name_then(runs) or recipe).removeprefix(name).strip()
    return published_as(name, changes, runs[0].get("settings"), system)


def _joint(results: Results, system: str) -> dict[str, Any] | None:
    """Return old / new / all of a system; older results have them of one system only."""
    older = {GROWN: results.get("incremental")}
    found: dict[str, Any] | None = (results.get("joint_classifiers") or older).get(system)
    return found


def joint_label(system: str, split: str = HELD_OUT) -> str:
    """Return what the row of a joint classifier's old / new / all is called."""
    return f"{_whose(system)}{OLD_NEW_ALL}{'' if split == HELD_OUT else f', on {split}'}"


def _joint_row(recipe: str, system: str, runs: list[Results]) -> Row:
    found = [joint for r in runs if (joint := _joint(r, system))]
    scores = [joint["protocols"][MATCHED_EACH] for joint in found]
    parts = {key: [100 * score[key] for score in scores] for key in ("old", "new", "all")}
    published = paper.old_new_all(*_in_the_paper(recipe, runs, system), system)
    told = " / ".join(map(str, published)) if published else "–"
    splits = ", ".join(sorted({joint["split"] for joint in found}))
    return _row(recipe, system, joint_label(system, splits), told, " / ".join(map(spread, parts.values())), parts, runs)


def _unlabelled_row(recipe: str, system: str, runs: list[Results]) -> Row:
    """Return the row of a joint classifier on the images on which the head of the new classes is judged."""
    found = [joint["unlabelled"] for r in runs if (joint := _joint(r, system))]
    values = {key: [100 * one[key] for one in found] for key in ("acc", "taken_for_known")}
    ours = f"{spread(values['acc'])}; {spread(values['taken_for_known'])} % taken for known classes"
    label = f"{_whose(system)}joint classifier, on the unlabelled images"
    return _row(recipe, system, label, "–", ours, values, runs)


def _whose(system: str) -> str:
    return "" if system == GROWN else f"{label_of(system)}: "


def _row(
    recipe: str, system: str, label: str, told: str, ours: str, values: dict[str, list[float]], runs: list[Results]
) -> Row:
    return Row(
        recipe=recipe,
        system=label,
        paper=told,
        ours=ours,
        values=values,
        seeds=tuple(int(r["seed"]) for r in runs),
        seconds=tuple(_seconds(r, system) for r in runs),
        hardware=", ".join(sorted({str(r.get("hardware")) for r in runs})),
        commit=", ".join(sorted({commit_of(r) for r in runs})),
        given=name_then(runs),
        since=version_of(runs),
    )


def _seconds(results: Results, system: str) -> float:
    """Return the time a run has taken, or that of all stages of one of its systems, which others may have trained."""
    spent = results["seconds"]
    own = sum(float(spent.get(stage, 0)) for stage in (*SHARED_STAGES, system))
    return float(results.get("wall_seconds", max(float(spent["total"]), own)))


def markdown(results: Sequence[Results], not_run: Sequence[Unrun] = ()) -> str:
    """Return the table, under it where each recipe departs from the paper, and benchmarks part by part.

    ``not_run`` are recipes of which rows of the paper stand there without ours.
    """
    found = rows(results)
    versions = Versions(found)
    shown = versions.named(found)
    lines = [LEGEND, "", *grid(HEADER, [row.cells() for row in (*shown, *unrun_rows(not_run, results))])]
    lines += ["", OF_IMAGES] if any(IMAGES in (r.get("changed") or {}) for r in results) else []
    lines += [*_unscored(results), *versions.told(), *reasons(not_run, results), *departures(results)]
    in_parts = [r for r in results if r.get("each")]
    for name in names_of(in_parts):
        lines += part_table(name, [r for r in in_parts if name_of(r) == name])
    return "\n".join(lines)


def _unscored(results: Sequence[Results]) -> list[str]:
    """Return, in lines of Markdown, how many runs have no row, since nobody knows what would be right."""
    scores = [(r.get(RUN, place), scores) for place, r in enumerate(results) for scores in r["systems"].values()]
    runs = {run for run, _ in scores}
    without = len(runs - {run for run, of_system in scores if (of_system or {}).get("acc") is not None})
    told = f"{without} of {counted(len(runs), 'run', 'runs')} without scores: the true classes of the unlabelled"
    return ["", f"{told} images are not known. A truth.csv among them, or --truth FILE, gives them."] if without else []


def reasons(not_run: Iterable[Unrun], results: Sequence[Results]) -> list[str]:
    """Return, in lines of Markdown, why rows of the paper have none of ours; what was run meanwhile needs no reason."""
    left = [one for one in not_run if unrun_rows([one], results)]
    return [
        line
        for one in left
        for line in ("", f"Rows of `{one.recipe}` that have no number of ours ({one.instead}): {one.why}")
    ]


def as_json(results: Sequence[Results], not_run: Sequence[Unrun] = ()) -> list[dict[str, Any]]:
    """Return the rows as plain data, numbers unrounded; those that were not run have no seeds."""
    departed = {name_of(r): r.get("departures") or [] for r in results}
    return [
        {
            "recipe": r.recipe,
            "given": r.given or r.recipe,
            "system": r.system,
            "paper": None if r.paper == "–" else r.paper,
            "values": r.values,
            "seeds": list(r.seeds),
            "seconds": list(r.seconds),
            "hardware": r.hardware,
            "commit": r.commit,
            "departures": departed.get(r.recipe, []),
        }
        for r in (*rows(results), *unrun_rows(not_run, results))
    ]
