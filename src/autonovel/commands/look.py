"""What the commands do that look at something: results, recipes, tables, figures, datasets."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from autonovel import recipe
from autonovel.errors import UsageError
from autonovel.labels import label_of
from autonovel.storage.shapes import interpreting
from autonovel.training.display import Silent
from autonovel.visible import visible
from autonovel.words import listed, on_unlabelled

OWN_IMAGES = ("folder", "table")  # instead of the name of a benchmark


def print_results(console: Console, results: dict[str, Any], folder: Path) -> None:
    """Print the scores of all systems of the run in ``folder``, and old / new / all of the joint classifier."""
    from autonovel.editing.edited import EDITS, open_run

    named_anew = results.get("agreement") and (folder / EDITS).exists()
    renamed = open_run(folder).renamed if named_anew else {}
    with interpreting("results.json"):
        _print_results(console, results, renamed)


def _print_results(console: Console, results: dict[str, Any], renamed: Mapping[str, str]) -> None:
    measures = ("acc", "nmi", "ari") if any(results["systems"].values()) else ()  # none where nobody knows the truth
    scored = [f"{measure.upper()} %" for measure in measures]
    table = Table("system", *scored, "seconds", title=f"New classes, seed {results['seed']}")
    for column in table.columns[1:]:
        column.justify = "right"
    for name in reversed(results["systems"]):
        scores = results["systems"][name] or {}
        cells = [f"{100 * scores[key]:.1f}" if key in scores else "–" for key in measures]
        table.add_row(Text(label_of(name)), *cells, f"{results['seconds'][name]:.1f}")
    console.print(table)
    seconds, stages = results["seconds"], ("rotation", "prototypical", "supervised")
    shared = " + ".join(f"{stage} {seconds[stage]:.1f}" for stage in stages if stage in seconds)
    console.print(
        f"Shared stages (s): {shared or 'none'}; total {results['seconds']['total']:.1f} s, "
        "in which systems trained side by side overlap.",
        highlight=False,
        soft_wrap=not console.is_terminal,
    )
    if results.get("agreement"):
        from autonovel.agreement import told

        now = told(results["agreement"], renamed)
        console.print(now, highlight=False, markup=False, soft_wrap=not console.is_terminal)
    joint = results["incremental"]
    if joint:
        old = Table(
            "protocol", "old %", "new %", "all %", title=f"One classifier for old and new classes, on {joint['split']}"
        )
        for name, values in joint["protocols"].items():
            old.add_row(name, *(f"{100 * values[key]:.1f}" for key in ("old", "new", "all")))
        console.print(old)
    if joint and "unlabelled" in joint:
        console.print(on_unlabelled(joint["unlabelled"]), highlight=False, soft_wrap=not console.is_terminal)
    _print_joint_classifiers(console, results.get("joint_classifiers") or {})


def _print_joint_classifiers(console: Console, joint: dict[str, Any]) -> None:
    """Print old / new / all of every system that has them, if several have."""
    found = {name: content for name, content in joint.items() if content}
    if len(found) > 1:
        from autonovel.evaluation import MATCHED_EACH

        table = Table("system", "old %", "new %", "all %", title=f"The same for every system, {MATCHED_EACH}")
        for name in reversed(found):
            values = found[name]["protocols"][MATCHED_EACH]
            table.add_row(Text(label_of(name)), *(f"{100 * values[key]:.1f}" for key in ("old", "new", "all")))
        console.print(table)


def evaluate_run(path: Path, data: Path | None, device: str, classes: bool, as_json: bool) -> None:
    """Let the delivered model of a finished run judge its images anew; print the scores, and how every class fares."""
    from autonovel import class_tables, record, sameness, scoring
    from autonovel import device as devices
    from autonovel.data import sources
    from autonovel.data.prepare import adopt_surveys, prepare_both
    from autonovel.delivered import load_model
    from autonovel.embedding import embed
    from autonovel.places import images_now
    from autonovel.storage.shapes import read_results

    facts = record.finished_facts(path)
    settings = images_now(path, facts, data)
    if settings.data.source == "arrays":
        raise UsageError(f"the images of {path} came from Python and are not at hand; use Discoverer.load.")
    chosen = devices.pick(device)
    train, test, _ = sources.load(settings, int(facts["seed"]), path)
    once = replace(settings.data, cache="off" if settings.data.cache == "auto" else settings.data.cache)
    model = load_model(path).to(chosen)
    model.precision = devices.precision(settings.network.precision, chosen)
    results = read_results(path / "results.json")
    with tempfile.TemporaryDirectory() as own, devices.torch_settings(model.precision):
        adopt_surveys(Path(own), [path])  # the run folder itself may be another's to write to
        train, test = prepare_both(train, test, once, Path(own), chosen, Silent())
        sameness.check_same_images(path, facts, train, settings)
        train, test = train.resized(settings.data.size), test.resized(settings.data.size) if test else None
        found = embed(model, train.images)
        judged = test if found.is_grown(train.n_known) else None  # test images judge a grown head alone
        on_judged = embed(model, judged.images) if judged else None
    results["systems"][facts["primary"]] = scoring.system_scores(train, found)
    joint = scoring.joint_scores(train, found, judged, on_judged)
    results["incremental"] = joint or results.get("incremental")
    if joint:
        results["joint_classifiers"] = (results.get("joint_classifiers") or {}) | {facts["primary"]: joint}
    by_class = class_tables.of_run(path, train, found, judged, on_judged) if classes else {}
    if as_json:
        print(json.dumps(results | ({"classes": by_class} if classes else {}), indent=2))
    else:
        console = Console()
        print_results(console, results, path)
        class_tables.print_class_tables(console, by_class)


def show_recipe(name: str, sets: list[str], as_json: bool) -> None:
    """Print every setting with its value, its meaning and where the value comes from."""
    loaded = recipe.load(name, sets)
    meaning = recipe.documentation()
    values = recipe.flatten(loaded.recipe)
    if as_json:
        rows = {key: {"value": v, "source": loaded.sources[key], "meaning": meaning[key]} for key, v in values.items()}
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    shown = {key: value for key, value in values.items() if loaded.sources[key] not in (recipe.AS_JOINT, recipe.AS_KCL)}
    console = Console()
    if console.is_terminal:
        table = Table("setting", "value", "source", "meaning", title=f"Recipe {loaded.recipe.name}")
        for key, value in shown.items():
            table.add_row(key, json.dumps(value, ensure_ascii=False), loaded.sources[key], meaning[key])
        console.print(table)
    else:  # one line each, for grep
        for key, value in shown.items():
            print(f"{key} = {json.dumps(value, ensure_ascii=False)}  # {loaded.sources[key]}; {meaning[key]}")
    print("[incremental] is as [joint], and [mcl] as [kcl], in everything that is not shown.")


def print_table(paths: list[Path], as_json: bool, as_paper: bool = False) -> None:
    """Print the results of many runs beside the paper's, as Markdown or JSON, or as the paper's own tables."""
    from autonovel.tables import paper_tables, table

    if as_json and as_paper:
        raise UsageError("--paper prints tables for people to read; for every number, give --json without it.")
    results, not_run = table.collect(paths), table.unrun(paths)
    if as_paper:
        print(paper_tables.markdown(results, not_run))
        return
    print(json.dumps(table.as_json(results, not_run), indent=2) if as_json else table.markdown(results, not_run))


def draw_figures(paths: list[Path], to: Path, pair: str) -> None:
    """Draw the figures that the runs at ``paths`` allow, with progress; say what was written and what was left out."""
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    from autonovel.figures import write_figures

    classes = tuple(name.strip() for name in pair.split(",")) if pair else None
    if classes is not None and (len(set(classes)) != 2 or len(classes) != 2 or not all(classes)):
        raise UsageError(f"--pair is {pair!r}; name two classes with a comma between them, such as cat,dog.")
    console = Console()
    with Progress(TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), console=console) as bars:
        tasks: dict[str, TaskID] = {}

        def tick(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done)

        written = write_figures(paths, to, tick, (classes[0], classes[1]) if classes else None)
    for name, files in written.files.items():
        console.print(f"{', '.join(str(to / file) for file in files)}\n  {written.captions[name]}", highlight=False,
                      soft_wrap=True, markup=False)  # fmt: skip
    for reason, names in written.why_left_out().items():
        what = f"{listed(names, most=3)} {'was' if len(names) == 1 else 'were'}"
        console.print(f"{what} left out: {reason}", highlight=False, soft_wrap=True, markup=False)
    others = ", and the name of every figure that was left out," if written.left_out else ""
    console.print(
        f"The numbers behind them{others} are in {to / 'figures.json'}.", highlight=False, soft_wrap=True, markup=False
    )
    if not written.files:
        raise UsageError("none of the figures can be drawn from these runs; the reasons are above.")


def fetch_dataset(name: str, to: Path) -> None:
    """Download the official files of a dataset, with progress, and say where they are and under which terms."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from autonovel.data import catalogue, fetch

    dataset = catalogue.find(name)
    console = Console()
    console.print(f"{dataset.title}: {dataset.page}\nTerms of use: {dataset.terms}", highlight=False, soft_wrap=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as bars:
        tasks = {file.name: bars.add_task(file.name, total=None) for file in dataset.files}
        files = fetch.fetch(
            dataset, to, lambda file, done, total: bars.update(tasks[file], completed=done, total=total)
        )
    for file in files:
        console.print(f"{file}: there, checksum right", highlight=False, soft_wrap=True)


def check_dataset(name: str, folder: Path, as_json: bool) -> bool:
    """Print what of a dataset, or of a person's own images, is at ``folder``; return whether it is fit for use."""
    from autonovel.data import inspect

    if name in OWN_IMAGES:
        return _check_images(folder, as_json)
    report = inspect.check(name, folder)
    if as_json:
        print(json.dumps(asdict(report) | {"complete": report.complete}, indent=2, default=str))
    else:
        Console().print("\n".join(inspect.describe(report)), highlight=False, soft_wrap=True, markup=False)
    return report.complete


def _check_images(place: Path, as_json: bool) -> bool:
    """Print the inventory of a folder or table of images; return whether any can be read."""
    from autonovel.data.inventory import inventory_of
    from autonovel.terminal import TerminalDisplay

    display = TerminalDisplay(Console(stderr=True))
    try:
        found = inventory_of(place, display if display.console.is_terminal else Silent())
    finally:
        display.close()
    if as_json:
        print(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
    else:
        Console().print(visible("\n".join(found.told())), highlight=False, soft_wrap=True, markup=False)
    return found.images > 0
