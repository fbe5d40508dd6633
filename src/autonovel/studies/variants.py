"""Variants of a recipe that a study compares: the paper's ablations, sweeps over k and groups, and other systems."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autonovel import recipe
from autonovel.errors import RunFolderError, UsageError
from autonovel.labels import GROWN, PIXELS, PLAIN
from autonovel.settings import PLACES, Recipe
from autonovel.stage_names import JOINT, JOINT_FIRST, SIMILARITY
from autonovel.storage.documents import read_json, replace_file
from autonovel.storage.run_folder import FINISHED, check_format, system_folder
from autonovel.storage.shapes import run_facts

FULL = "full"
WHICH_ARE_NEW = ("data.alphabet", "data.subset")
KEPT = "joint.keep_embeddings_at"
PROBES = "probes.json"  # in the folder count, which classes its stage 2 was not taught
STAGE_1 = ("data.", "network.", "pretrain.")  # sections of a recipe that it depends on
STAGES_1_AND_2 = (*STAGE_1, "supervised.")
BY_SIMILARITY = ("kcl", "mcl")  # systems that learn the same similarity network
BY_JOINT = (PLAIN, GROWN)  # systems that can begin with the same joint training
# settings of what is run, shown and kept beside; results are the same under any of them
WITHOUT_EFFECT = (
    "run.", "joint.watch", "joint.keep_embeddings_at", "incremental.watch", "incremental.keep_embeddings_at",
)  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """A recipe with a few settings changed."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def overrides(self) -> list[str]:
        """Return the changed settings as ``--set`` takes them."""
        return [f"{key}={json.dumps(value)}" for key, value in self.settings.items()]


FULL_VARIANT = Variant(FULL)
WITHOUT_SELF_SUPERVISION = Variant("without-self-supervision", {"pretrain.kind": "supervised"})

# settings a study sweeps over: the size k of the compared sets, and how many images are compared with each other
SWEPT = {"k": "joint.k", "group": "joint.group"}

# the demo's comparison, the delivered system first
EVERY_SYSTEM = ("rankstats-incremental", "rankstats", "dtc", "kcl", "mcl", "kmeans", PIXELS)

# "Without consistency" is run with both kinds of pair loss: the diagonal of the two-view loss compares two
# views of one image and so is itself a consistency term.
ABLATIONS = (
    Variant("without-consistency", {"joint.consistency": False}),
    Variant("without-consistency-one-view", {"joint.consistency": False, "joint.bce_views": "one"}),
    Variant("without-ce", {"joint.ce": False}),
    Variant("without-bce", {"joint.bce": False}),
    WITHOUT_SELF_SUPERVISION,
)


def that_apply(variants: Sequence[Variant], pretraining: str) -> tuple[Variant, ...]:
    """Return the variants that make sense of a recipe: what does not begin by self-supervision cannot go without it."""
    return tuple(one for one in variants if one != WITHOUT_SELF_SUPERVISION or pretraining == "rotation")


def that_differ(variants: Sequence[Variant], settings: Recipe) -> tuple[Variant, ...]:
    """Return the variants that are not the recipe itself, whose run a sweep that names its value would only repeat."""
    own = recipe.flatten(settings)
    return tuple(one for one in variants if any(own[key] != value for key, value in one.settings.items()))


def sweep(word: str, values: Iterable[int]) -> tuple[Variant, ...]:
    """Return a variant for each value of a setting, which ``word`` stands for (``SWEPT``)."""
    return tuple(Variant(f"{word}{value}", {SWEPT[word]: value}) for value in dict.fromkeys(values))


def of_systems(
    methods: Sequence[str], self_supervision: bool = True, new_classes: str = "", label: str = ""
) -> Variant:
    """Return the recipe with other systems, of which the first one delivers.

    Args:
        methods: their names; none: those of the recipe.
        self_supervision: with the self-supervised start, or without.
        new_classes: their number, or how to come by it; empty: as the recipe says.
        label: what the user calls a recipe with settings changed; empty: it has no name.
    """
    if re.fullmatch(r"[\w.-]*", label) is None:
        raise UsageError(f"--label is {label!r}; it becomes part of a folder's name: letters, digits, and . _ - in it.")
    parts = [Variant("-".join(methods), {"run.systems": list(methods)})] if methods else []
    parts += [] if self_supervision else [WITHOUT_SELF_SUPERVISION]
    parts += [Variant(f"{new_classes}-new-classes", {"count.new_classes": new_classes})] if new_classes else []
    parts += [Variant(label)] if label else []
    settings = {key: value for part in parts for key, value in part.settings.items()}
    return Variant("-".join(part.name for part in parts) or FULL, settings)


def refuse_said_twice(variant: Variant, sets: Iterable[str]) -> None:
    """Refuse settings that options of their own (``--method``, say) and ``--set`` give different values."""
    given = recipe.parse_overrides(sets)
    for key, value in variant.settings.items():
        if key in given and given[key] != value:
            raise UsageError(
                f"{key} is {json.dumps(given[key])} by --set and {json.dumps(value)} by another option "
                "(--method, --no-self-supervision, --new-classes or --compare). Give one of them."
            )


def with_effect(changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changed settings that results depend on."""
    return {key: value for key, value in changed.items() if not key.startswith(WITHOUT_EFFECT)}


def siblings(folder: Path) -> list[Path]:
    """Return the other runs beside the one at ``folder``, which may have trained the stages it needs."""
    return [path.parent for path in sorted(folder.parent.glob("*/run.json")) if path.parent != folder]


def folder_name(recipe: str, variant: Variant, seed: int) -> str:
    """Return the name of the run folder of a variant."""
    middle = "" if variant.name == FULL else f"-{variant.name}"
    return f"{recipe}{middle}-seed{seed}"


def may_share(one: dict[str, Any], other: dict[str, Any], sections: tuple[str, ...] = STAGES_1_AND_2) -> bool:
    """Tell whether two runs (their ``run.json``) have stages 1 and 2 in common, or stage 1, by what these depend on.

    Which new classes there are is no matter where neither stage sees their images; the basis tells.
    """
    same = _alike(one, other, sections) and not any(_altered_on_the_way(facts, sections) for facts in (one, other))
    return same and _basis(one) == _basis(other) and all(one[key] == other[key] for key in ("seed", "device"))


def _altered_on_the_way(facts: dict[str, Any], sections: tuple[str, ...]) -> bool:
    """Tell whether settings of a run's first stages were changed under way, after a guard's stop."""
    return any(key.startswith(sections) for part in facts.get("parts", []) for key in part.get("altered", {}))


def _alike(one: dict[str, Any], other: dict[str, Any], sections: tuple[str, ...]) -> bool:
    """Tell whether two runs have the same settings in ``sections``, but for where images lie and which are new."""
    mine, others = (recipe.completed(facts["recipe"]) for facts in (one, other))
    compared = {key for key in {*mine, *others} if key.startswith(sections) and not key.startswith(WITHOUT_EFFECT)}
    compared -= {*PLACES, *WHICH_ARE_NEW}
    return all(mine.get(key) == others.get(key) for key in compared)


def _basis(facts: dict[str, Any]) -> Any:
    return facts.get("basis", facts["digest"])  # runs older than the basis learned from all images


def adopt_stages(folder: Path, base: Path) -> list[str]:
    """Copy the finished stages 1 and 2 of the run at ``base`` into the one at ``folder``, if they may share them.

    So are the count of the new classes, which rests on these stages, the similarity network of KCL and MCL, and the
    joint training that incremental learning comes after. Where only stage 2 differs, stage 1 is shared, or the features
    of a pretrained network. Returns the names of the stages taken over.
    """
    if folder == base or not (base / "run.json").exists():
        return []
    own = check_format(folder)
    try:
        others = run_facts(base, ("recipe", "seed", "device", "digest"))
    except RunFolderError:  # damaged, or another version's: nothing to take over, and no reason to stop
        return []
    if not may_share(own, others, STAGE_1):
        return []
    features = _adopt_features(folder, base) if own["digest"] == others["digest"] else []
    if not may_share(own, others):
        return features + _copied("1-*", folder, base)
    _adopt_count(folder, base)
    _adopt_stage_without_probes(folder, base)
    taken = features + _copied("[12]-*", folder, base)
    learner = next((system for system in own["recipe"]["run.systems"] if system in BY_SIMILARITY), None)
    if learner and _may_share_similarity(own, others) and adopt_similarity(_place_of(folder, learner), base):
        taken.append(SIMILARITY)
    first = _place_of(folder, GROWN) / "stages" / JOINT_FIRST
    if _may_share_joint(own, others) and adopt_joint(first, base):
        taken.append(JOINT_FIRST)
    return taken


def _adopt_features(folder: Path, base: Path) -> list[str]:
    """Copy what a pretrained network said of the images; test images, which no checksum tells apart, it sees again."""
    from autonovel.cached_views import FEATURES

    missing = [
        path for path in sorted((base / FEATURES).glob("images-*")) if not (folder / FEATURES / path.name).exists()
    ]
    for path in missing:
        replace_file(folder / FEATURES / path.name, path.read_bytes())
    return [FEATURES.name] if missing else []


def _copied(pattern: str, folder: Path, base: Path) -> list[str]:
    found = sorted((base / "stages").glob(pattern))
    return [stage.name for stage in found if copy_stage(stage, folder / "stages" / stage.name)]


def copy_stage(stage: Path, target: Path) -> bool:
    """Copy a finished stage to where there is none yet; tell whether that was done."""
    if not (stage / FINISHED).exists() or (target / FINISHED).exists():
        return False
    kept = [path.name for path in sorted(stage.glob("embedding-epoch-*.safetensors"))]  # what it kept for figures
    for name in (*kept, "model.safetensors", FINISHED):  # the mark of a finished stage goes last
        replace_file(target / name, (stage / name).read_bytes())
    return True


def adopt_similarity(folder: Path, base: Path) -> bool:
    """Copy the similarity network that KCL or MCL of the run at ``base`` has learned to ``folder``, a system's own.

    Systems of somebody else may call a stage the same, in which something else is learned: these are not asked.
    """
    places = [_place_of(base, system) / "stages" / SIMILARITY for system in BY_SIMILARITY]
    return any(copy_stage(place, folder / "stages" / SIMILARITY) for place in places)


def adopt_joint(target: Path, base: Path) -> bool:
    """Copy the joint training without incremental learning that ranking statistics have had in the run at ``base``."""
    places = [(PLAIN, JOINT), (GROWN, JOINT_FIRST)]
    return any(copy_stage(_place_of(base, system) / "stages" / stage, target) for system, stage in places)


def _place_of(run: Path, system: str) -> Path:
    """Return where a system of the run at ``run`` has its stages; trials of systems have no ``run.json``."""
    facts = read_json(run / "run.json") if (run / "run.json").exists() else {}
    return system_folder(run, system, facts.get("primary"))


def _may_share_joint(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether a run that shares stages 1 and 2 wants a joint training and would train the other's again.

    Features that it wants kept for figures must have been kept. One that trains ranking statistics without incremental
    learning before takes theirs.
    """
    systems = one["recipe"]["run.systems"]
    wanted = one["recipe"].get("incremental.after") == "joint" and GROWN in systems
    return (
        wanted
        and PLAIN not in systems[: systems.index(GROWN)]
        and {*one["recipe"].get(KEPT, ())} <= {*other["recipe"].get(KEPT, ())}
        and one["n_new"] is not None
        and all(one[key] == other[key] for key in ("digest", "n_new"))
        and _alike(one, other, ("joint.",))
        and not _altered_on_the_way(other, ("joint.",))
    )


def _may_share_similarity(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two runs that share stages 1 and 2 would learn the same similarity network."""
    by_count = one["recipe"]["similarity.batch"] == "classes" and not one["recipe"]["similarity.classes_per_batch"]
    return _alike(one, other, ("similarity.",)) and (
        not by_count or (one["n_new"] is not None and one["n_new"] == other["n_new"])
    )


def _adopt_stage_without_probes(folder: Path, base: Path) -> None:
    """Copy the stage 2 that was trained for the count, on labelled images alone; other probes would be drawn again."""
    note, own = base / "count" / PROBES, folder / "count" / PROBES
    counts = check_format(folder)["recipe"].get("count.new_classes") == "auto"
    if counts and note.exists() and not own.exists():
        for stage in sorted((base / "count" / "stages").glob("2-*")):
            copy_stage(stage, folder / "count" / "stages" / stage.name)
        replace_file(own, note.read_bytes())


def _adopt_count(folder: Path, base: Path) -> None:
    facts = [check_format(path) for path in (folder, base)]
    one, other = ({key: v for key, v in of["recipe"].items() if key.startswith("count.")} for of in facts)
    same_images = facts[0]["digest"] == facts[1]["digest"]
    if same_images and one == other and (base / "count.json").exists() and not (folder / "count.json").exists():
        for name in ("count.png", "count.json"):
            if (base / name).exists():
                replace_file(folder / name, (base / name).read_bytes())
