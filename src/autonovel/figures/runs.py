"""The runs that figures are drawn from: what they were, and which of their files are there."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autonovel import recipe
from autonovel.errors import UsageError
from autonovel.kept import Truth, load_truth
from autonovel.labels import GROWN, LABELS, PLAIN
from autonovel.stage_names import JOINT, JOINT_FIRST
from autonovel.storage.documents import read_json
from autonovel.storage.journal import Journal
from autonovel.storage.run_folder import system_folder
from autonovel.storage.shapes import RESULTS, checked, kept_results, read_results, run_facts
from autonovel.studies.parts import RESULTS as MEAN
from autonovel.studies.side_by_side import LOG
from autonovel.studies.variants import ABLATIONS, SWEPT, with_effect
from autonovel.tables.as_today import as_today, recipe_today
from autonovel.tables.edited import Version, beyond_the_recipe, said_otherwise, versions
from autonovel.tables.naming import changes_in_words
from autonovel.tables.other_images import CHECKSUM, images_told
from autonovel.words import short_commit

VARIED = {*SWEPT.values()} | {key for variant in ABLATIONS for key in variant.settings}


@dataclass(frozen=True)
class Run:
    """A run folder, or what was kept of one.

    Attributes:
        folder: where it is; where results alone were kept, there is none.
        settings: all settings by dotted name.
        changed: those given other values than the recipe has, as far as they matter for the results.
        seed: its seed.
        primary: its primary system.
        results: ``results.json``; None if the run is not finished.
        earlier: where the recipe has changed since, the commit at which it was as here, and what the caller changed in
            it beside what studies vary.
        images: the checksum of images of a person's own, where it was kept.
    """

    folder: Path
    settings: dict[str, Any]
    changed: dict[str, Any]
    seed: int
    primary: str
    results: dict[str, Any] | None
    earlier: tuple[str, str] | None = None
    images: str | None = None

    @property
    def recipe(self) -> str:
        """Return the name of the recipe."""
        return str(self.settings["name"])

    @property
    def map_points(self) -> int:
        """Return how many images a map shows."""
        return int(self.settings["run.map_points"])

    @property
    def systems(self) -> tuple[str, ...]:
        """Return the names of its systems."""
        return tuple((self.results or {}).get("systems") or self.settings.get("run.systems", (PLAIN,)))

    @property
    def rankstats(self) -> list[str]:
        """Return its systems of ranking statistics; the figures of one seed are about these."""
        return [system for system in (PLAIN, GROWN) if system in self.settings.get("run.systems", (PLAIN,))]

    def system(self, name: str) -> Path | None:
        """Return the folder in which system ``name`` left its stages, journal and embedding; None without it."""
        place = system_folder(self.folder, name, self.primary)
        return place if name == self.primary or place.is_dir() else None

    def embedding(self, name: str) -> Path | None:
        """Return the file with what system ``name`` says of all images; None if it was not kept."""
        place = self.system(name)
        path = place / "embedding.safetensors" if place else None
        return path if path and path.exists() else None

    def joint_epochs(self, name: str) -> list[dict[str, Any]]:
        """Return the journal of the joint training of system ``name``, a line per epoch."""
        place = self.system(name)
        lines = Journal(place / "metrics.jsonl").lines if place else []
        return [line for line in lines if line.get("stage") == self.joint_stage(name)]

    def joint_stage(self, name: str) -> str:
        """Return the stage that is the joint training of system ``name``."""
        return JOINT_FIRST if name == GROWN and self._grows_after else JOINT

    def epochs(self, name: str) -> int:
        """Return how many epochs system ``name`` learned known and new classes together."""
        plain, grown = (int(self.settings[f"{section}.epochs"]) for section in ("joint", "incremental"))
        return plain if name == PLAIN else grown + plain * self._grows_after

    @property
    def _grows_after(self) -> bool:
        return bool(self.settings.get("incremental.after") == "joint")

    def accuracy(self, name: str) -> float | None:
        """Return the ACC of system ``name`` in per cent; None where nobody knows."""
        scores = ((self.results or {}).get("systems") or {}).get(name) or {}
        return 100 * scores["acc"] if "acc" in scores else None

    def truth(self) -> Truth | None:
        """Return the true classes of its images, if they are known."""
        return load_truth(self.folder)


def collect(paths: Sequence[Path]) -> list[Run]:
    """Return the runs at ``paths``: run folders, or folders that hold such or the results of runs."""
    found: dict[Path, list[Run]] = {}  # a run named twice counts once
    for path in paths:
        if path.suffix == LOG and path.is_file():  # of runs beside each other, where a shell has named all there is
            continue
        if (path / "run.json").exists():
            folders, files = [path], kept_results(path)
        elif (path / MEAN).exists():  # whose parts are no runs of a study
            folders, files = [], [path / MEAN]
        else:
            folders = sorted(run.parent for run in path.glob("*/run.json"))
            means = [mean for mean in sorted(path.glob(f"*/{MEAN}")) if mean.parent not in folders]
            files = [*kept_results(path), *means]
        if not folders and not files:
            raise UsageError(
                f"{path} holds no run. Give run folders, such as runs/demo-seed0, or a folder of them or of results "
                "(seed-N.json)."
            )
        found |= {folder.resolve(): [_read(folder)] for folder in folders}
        found |= {file.resolve(): [_of_results(file, part) for part in as_today(read_results(file))] for file in files}
    return _told_apart(list(itertools.chain(*found.values())))


def _told_apart(runs: list[Run]) -> list[Run]:
    """Return ``runs``, with what others of their name have otherwise as changed.

    That is what a recipe outside the package says, and which images of a person's own there are.
    """
    of_recipe = versions((run.recipe, run.settings, run.changed) for run in runs)
    held = [_held_against(run, of_recipe[run.recipe]) if run.recipe in of_recipe else run for run in runs]
    told = images_told([(run.recipe, run.changed, run.images) for run in held])
    return [_on(run, images) if images else run for run, images in zip(held, told, strict=True)]


def _on(run: Run, images: dict[str, str]) -> Run:
    earlier = run.earlier and (run.earlier[0], f"{run.earlier[1]} {changes_in_words(images)}".lstrip())
    return replace(run, changed=run.changed | images, earlier=earlier)


def _held_against(run: Run, others: list[Version]) -> Run:
    usual = recipe.default_values()  # of what studies vary: the full method
    given = beyond_the_recipe(run.settings, run.changed, others)
    otherwise = said_otherwise(run.settings, given, others, run.systems)
    return replace(run, changed=given | {k: v for k, v in otherwise.items() if k not in VARIED or v != usual[k]})


def _of_results(file: Path, results: dict[str, Any]) -> Run:
    """Return a run of which nothing but its results was kept; they allow the figures of accuracies."""
    changed, preset = results.get("changed") or {}, results.get("preset")
    systems = list(results["systems"])
    try:
        own = recipe_today(results["recipe"], preset)
    except UsageError:  # a recipe of somebody else: what it said is known as far as results depend on it
        own = {"name": results["recipe"]} | (results.get("settings") or {})
    return Run(
        folder=file.with_suffix(""),
        settings=own | changed | {"run.systems": systems},
        changed=with_effect(changed),
        seed=results["seed"],
        primary=str(results.get("primary") or next(iter(systems), PLAIN)),
        results=results,
        earlier=_earlier(results, results.get("commit")),
        images=results.get(CHECKSUM),
    )


def _in_common(changed: Mapping[str, Any]) -> str:
    """Return the changed settings that a study's runs have in common, in words."""
    return changes_in_words({key: value for key, value in changed.items() if key not in VARIED})


def _earlier(today: Mapping[str, Any], commit: str | None) -> tuple[str, str] | None:
    """Return where a recipe was that has changed since, and what the caller changed in it; None if it has not."""
    differs = with_effect(today.get("changed") or {})
    given = with_effect(today.get("given", differs))
    if not differs.keys() - given.keys() - VARIED:
        return None
    return short_commit(commit), _in_common(given)


def _read(folder: Path) -> Run:
    facts = run_facts(folder, ("recipe", "seed", "primary", "changed"))
    others = [system for system in facts["recipe"].get("run.systems", ()) if system in (PLAIN, GROWN)]
    named = {"recipe": facts["recipe"]["name"], "systems": dict.fromkeys([facts["primary"], *others])}
    today = _united(as_today(named | {"settings": facts["recipe"], "changed": facts["changed"]}))
    results = folder / "results.json"
    return Run(
        folder=folder,
        settings=facts["recipe"],
        changed=with_effect(today["changed"]),
        seed=int(facts["seed"]),
        primary=str(facts["primary"]),
        results=checked(results, read_json(results), RESULTS) if results.exists() else None,
        earlier=_earlier(today, facts.get("commit")),
        images=facts.get(CHECKSUM),
    )


def _united(parts: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what differs from the recipe of today in any of a run's systems, and what of that is the caller's."""
    changed: dict[str, Any] = {}
    given: dict[str, Any] = {}
    for part in parts:
        changed |= part.get("changed") or {}
        given |= part.get("given", part.get("changed")) or {}
    return {"changed": changed, "given": given}


@dataclass(frozen=True)
class Study:
    """Runs of one recipe that differ in nothing but their seed and what ablations and sweeps vary.

    Attributes:
        label: the recipe, with the settings changed in all of the runs.
        runs: seeds in order.
    """

    label: str
    runs: tuple[Run, ...]

    @property
    def short(self) -> str:
        """Return the label; of a recipe that has changed since, the commits instead of all that differs."""
        commits = sorted({run.earlier[0] for run in self.runs if run.earlier})
        if not commits:
            return self.label
        changes = next(run.earlier[1] for run in self.runs if run.earlier)
        return f"{self.runs[0].recipe} at {', '.join(commits)} {changes}".rstrip()

    def only(self, changed: Mapping[str, Any] | None = None) -> list[Run]:
        """Return the runs in which, of what studies vary, exactly ``changed`` was changed (None: nothing).

        A value of ``...`` stands for any.  A system run twice with one seed is an error: these are not two samples.
        Its systems may lie in several runs.
        """
        wanted = changed or {}
        found = [run for run in self.runs if run.rankstats and _matches(run, wanted)]
        return found if ... in wanted.values() else _one_of_each_seed(found, self.label)


def _matches(run: Run, wanted: Mapping[str, Any]) -> bool:
    varied = {key: value for key, value in run.changed.items() if key in VARIED}
    return varied.keys() == wanted.keys() and all(wanted[key] in (..., value) for key, value in varied.items())


def _one_of_each_seed(runs: list[Run], label: str) -> list[Run]:
    first: dict[tuple[int, str], Run] = {}
    for run in runs:
        for system in run.rankstats:
            other = first.setdefault((run.seed, system), run)
            if other is not run:
                raise UsageError(
                    f"{LABELS[system]}, seed {run.seed} of {label}, is there more than once ({other.folder}, "
                    f"{run.folder}); name only one run of each system and seed."
                )
    return runs


def studies(runs: Iterable[Run]) -> list[Study]:
    """Return the runs, sorted into studies."""
    found: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: (run.recipe, run.seed, str(run.folder))):
        found.setdefault(f"{run.recipe} {_in_common(run.changed)}".rstrip(), []).append(run)
    return [Study(label, tuple(members)) for label, members in found.items()]
