"""Variants of a recipe that a study compares: the paper's ablations, its sweep over k, and other systems."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autonovel.run_folder import check_format, replace_file
from autonovel.settings import PLACES

FULL = "full"
SHARED_SECTIONS = ("data.", "network.", "pretrain.", "supervised.")
# settings of what is run, shown and kept beside; results are the same under any of them
WITHOUT_EFFECT = (
    "run.", "joint.watch", "joint.keep_embeddings_at", "incremental.watch", "incremental.keep_embeddings_at",
)  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """A recipe with a few settings changed."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)


FULL_VARIANT = Variant(FULL)
WITHOUT_SELF_SUPERVISION = Variant("without-self-supervision", {"pretrain.kind": "supervised"})

# the demo's comparison, the delivered system first
EVERY_SYSTEM = ("rankstats-incremental", "rankstats", "dtc", "kcl", "mcl", "kmeans", "kmeans-pixels")

# "Without consistency" is run with both kinds of pair loss: the diagonal of the two-view loss compares two
# views of one image and so is itself a consistency term.
ABLATIONS = (
    Variant("without-consistency", {"joint.consistency": False}),
    Variant("without-consistency-one-view", {"joint.consistency": False, "joint.bce_views": "one"}),
    Variant("without-ce", {"joint.ce": False}),
    Variant("without-bce", {"joint.bce": False}),
    WITHOUT_SELF_SUPERVISION,
)


def sweep_k(values: Iterable[int]) -> tuple[Variant, ...]:
    """Return a variant for each size k of the compared sets."""
    return tuple(Variant(f"k{k}", {"joint.k": k}) for k in values)


def of_systems(methods: Sequence[str], self_supervision: bool = True) -> Variant:
    """Return the recipe with other systems, and with or without the self-supervised start; the first one delivers."""
    settings = {"run.systems": list(methods)} if methods else {}
    start = () if self_supervision else (WITHOUT_SELF_SUPERVISION,)
    name = "-".join([*methods, *(variant.name for variant in start)])
    return Variant(name or FULL, settings | {key: v for variant in start for key, v in variant.settings.items()})


def siblings(folder: Path) -> list[Path]:
    """Return the other runs beside the one at ``folder``, which may have trained the stages it needs."""
    return [path.parent for path in sorted(folder.parent.glob("*/run.json")) if path.parent != folder]


def folder_name(recipe: str, variant: Variant, seed: int) -> str:
    """Return the name of the run folder of a variant."""
    middle = "" if variant.name == FULL else f"-{variant.name}"
    return f"{recipe}{middle}-seed{seed}"


def may_share(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two runs (their ``run.json``) have stages 1 and 2 in common."""
    keys = {key for facts in (one, other) for key in facts["recipe"] if key.startswith(SHARED_SECTIONS)}
    same = all(one["recipe"].get(key) == other["recipe"].get(key) for key in keys if key not in PLACES)
    return same and all(one[key] == other[key] for key in ("seed", "digest", "device"))


def adopt_stages(folder: Path, base: Path) -> list[str]:
    """Copy the finished stages 1 and 2 of the run at ``base`` into the one at ``folder``, if they may share them.

    So is the count of the new classes, which rests on these stages.  Returns the names of the stages taken over.
    """
    if folder == base or not (base / "run.json").exists() or not may_share(check_format(folder), check_format(base)):
        return []
    _adopt_count(folder, base)
    taken = []
    for stage in sorted((base / "stages").glob("[12]-*")):
        target = folder / "stages" / stage.name
        if (stage / "stage.json").exists() and not (target / "stage.json").exists():
            for name in ("model.safetensors", "stage.json"):  # the mark of a finished stage goes last
                replace_file(target / name, (stage / name).read_bytes())
            taken.append(stage.name)
    return taken


def _adopt_count(folder: Path, base: Path) -> None:
    one, other = (
        {key: value for key, value in check_format(path)["recipe"].items() if key.startswith("count.")}
        for path in (folder, base)
    )
    if one == other and (base / "count.json").exists() and not (folder / "count.json").exists():
        for name in ("count.png", "count.json"):
            if (base / name).exists():
                replace_file(folder / name, (base / name).read_bytes())
