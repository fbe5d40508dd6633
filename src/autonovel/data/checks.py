"""Questions asked of images, labels and recipe before any training: each failure is one clear error."""

from pathlib import Path

import torch

from autonovel.data.groups import groups, labels_without
from autonovel.data.imageset import ImageSet
from autonovel.data.sizes import check_sizes
from autonovel.errors import InputError, UsageError
from autonovel.labels import KNOWN_ONLY
from autonovel.networks import PRETRAINED, Trunk, hf, make_trunk
from autonovel.settings import Joint, Pretrain, Recipe, Stage


def check_problem(images: ImageSet, n_new: int | None, recipe: Recipe, seen: bool = False) -> None:
    """Raise an error if ``recipe`` cannot discover ``n_new`` classes (None: still to be counted) in ``images``.

    Images already ``seen`` as training sees them have been through the questions about their shape.
    """
    weights = recipe.pretrain.weights
    if recipe.pretrain.reads_weights and not (weights and Path(weights).is_file()):
        raise UsageError(
            f"pretrain.weights is {recipe.pretrain.weights!r}, which is not a file. Give a safetensors file "
            "of a trunk, such as model.safetensors of a finished run."
        )
    _check_network(recipe)
    at_least = 2 if n_new is None else n_new
    if recipe.run.systems == (KNOWN_ONLY,):
        _check_nothing_to_discover(images, n_new)
    else:
        _check_classes(images, at_least)
    _check_batches(images, recipe)
    _check_clusters(images, at_least, recipe)
    if not seen:
        _check_shapes(images, recipe)


def _check_network(recipe: Recipe) -> None:
    network, kind = recipe.network, recipe.pretrain.kind
    has_weights = network.name in PRETRAINED
    _check_hf(recipe)
    if kind == "imagenet" and not has_weights:
        raise UsageError(
            f"pretrain.kind is imagenet, but network {network.name} comes without weights. Choose a network that has "
            f"them ({', '.join(PRETRAINED)}), or another kind."
        )
    if (network.adapter or network.unit_length or network.cached_views) and not has_weights:
        raise UsageError(
            f"network.adapter, unit_length and cached_views are for a pretrained network ({', '.join(PRETRAINED)}), "
            f"not for {network.name}. Leave them out."
        )
    if "kmeans-pretrained" in recipe.run.systems and kind != "imagenet":
        raise UsageError(
            "kmeans-pretrained clusters the features of a pretrained network, but pretrain.kind is "
            f"{kind}. Choose a recipe with such a network (photos), or the system kmeans."
        )
    stages: dict[str, Stage] = {"supervised": recipe.supervised, **_joint_sections(recipe)}
    stages |= {name: stage for name, stage in clustering_sections(recipe).items() if name != "linear"}
    odd = [name for name, stage in stages.items() if stage.augment.cached != bool(network.cached_views)]
    if odd:
        raise UsageError(
            f"network.cached_views is {network.cached_views}, but {odd[0]}.augment.cached is "
            f"{str(not network.cached_views).lower()}: views are picked where they were computed. Set both, or neither."
        )
    if network.cached_views and (kind != "imagenet" or not network.adapter):
        raise UsageError(
            "network.cached_views needs pretrain.kind imagenet and a network.adapter that is trained on them."
        )


def _check_nothing_to_discover(images: ImageSet, n_new: int | None) -> None:
    _check_known(images)
    unlabelled = images.unlabelled.nonzero()[:, 0].tolist()
    if unlabelled or n_new != 0:
        such = f" (such as {images.ids[unlabelled[0]]})" if unlabelled else ""
        asked = "the number of" if n_new is None else n_new
        raise UsageError(
            f"run.systems is {KNOWN_ONLY}, which discovers nothing, but {len(unlabelled):,} images are "
            f"unlabelled{such} and {asked} new classes asked for. Choose another system."
        )


def _check_hf(recipe: Recipe) -> None:
    network, kind = recipe.network, recipe.pretrain.kind
    if network.model and network.name != hf.NAME:
        raise UsageError(f"network.model is for network.name hf, not for {network.name}. Leave it out, or set both.")
    if network.name == hf.NAME and kind != "imagenet":
        raise UsageError(f"network hf is there for its weights, but pretrain.kind is {kind}. Set it to imagenet.")
    by_value = [name for name, joint in _joint_sections(recipe).items() if joint.bce and joint.rank_by == "value"]
    if network.name == hf.NAME and not network.adapter and by_value:
        raise UsageError(
            f"features of network hf can be negative, but {by_value[0]}.rank_by is value. Set it to magnitude, or set "
            "network.adapter, whose features are not negative."
        )


def _check_classes(images: ImageSet, n_new: int) -> None:
    if len(images) == 0:
        raise InputError("there are no images; at least two known classes and some unlabelled images are needed.")
    _check_known(images)
    unlabelled = int(images.unlabelled.sum())
    if unlabelled == 0:
        raise InputError(
            "no image is unlabelled, so there is nothing to discover. Mark unlabelled images with the label -1."
        )
    if n_new < 2:
        problem = f"is {n_new}; it must be at least 2" if n_new else "is not known"
        if images.new_names and not n_new:
            problem += f" (the {len(images.new_names)} of the true classes are for scoring alone)"
        raise InputError(
            f"the number of new classes {problem}. Give it with --new-classes N (n_new in Python), or let it be "
            "estimated: --new-classes auto."
        )
    if n_new > unlabelled:
        raise InputError(
            f"{n_new} new classes are asked for, but there are only {unlabelled} unlabelled images. Ask for fewer."
        )


def _check_known(images: ImageSet) -> None:
    labelled = images.y[images.y >= 0]
    found = len(labelled.unique())
    if found < 2:
        raise InputError(
            f"{found} known class{'' if found == 1 else 'es'} found among the labels; at least two are needed, "
            "since the known classes teach what makes a class. Label images of at least two classes."
        )


def _check_batches(images: ImageSet, recipe: Recipe) -> None:
    unlabelled = int(images.unlabelled.sum())
    labelled = len(images) - unlabelled
    wanted = []
    if recipe.pretrain.kind == "rotation":
        seen = (labelled, "labelled images") if recipe.pretrain.labelled_only else (len(images), "images")
        wanted.append(("pretrain.batch_size", recipe.pretrain.batch_size, *seen))
    if recipe.pretrain.kind == "prototypical":
        _check_episodes(images, recipe.pretrain)
    if recipe.supervised.epochs:
        wanted.append(("supervised.batch_size", recipe.supervised.batch_size, labelled, "labelled images"))
    for section, joint in _joint_sections(recipe).items():
        wanted += _joint_batches(section, joint, labelled, unlabelled)
    for section, stage in clustering_sections(recipe).items():
        there, kind = {
            "similarity": (labelled, "labelled images"),
            "linear": (len(images), "images"),
            "centres": (len(images), "images"),
        }.get(section, (unlabelled, "unlabelled images"))
        wanted.append((f"{section}.batch_size", stage.batch_size, there, kind))
    for name, size, there, kind in wanted:
        if size > there:
            raise InputError(
                f"{name} asks for {size} images a batch, but there are only {there} {kind}. "
                f"Give more images, or a smaller batch (--set {name.split()[-1]}=…)."
            )


def _check_episodes(images: ImageSet, s: Pretrain) -> None:
    """Ask whether episodes of prototypical pretraining can be made of the known classes."""
    strange = [group for group, members in groups(images.class_names, s.held_out).items() if not members]
    if strange:
        raise UsageError(
            f"pretrain.held_out names {', '.join(strange)}, but no known class is called {strange[0]}/…. "
            "Name groups as they stand before the / in names of known classes."
        )
    left = len(labels_without(images, s.held_out).unique()) - 1
    if s.classes_per_batch > left:
        raise InputError(
            f"pretrain.classes_per_batch is {s.classes_per_batch}, but only {left} known classes can teach. "
            "Choose fewer, or hold fewer out (pretrain.held_out)."
        )
    each = s.batch_size // s.classes_per_batch
    if each <= s.support:
        raise UsageError(
            f"pretrain.batch_size is {s.batch_size} for {s.classes_per_batch} classes: {each} images of each, of which "
            f"pretrain.support takes {s.support}; none is left to be told. Choose a larger batch."
        )


def _joint_sections(recipe: Recipe) -> dict[str, Joint]:
    """Return the settings of joint training that this run uses, by the section in which a user finds them."""
    used = recipe.joint_sections
    return {"joint" if joint == recipe.joint else section: joint for section, joint in used.items()}


def clustering_sections(recipe: Recipe) -> dict[str, Stage]:
    """Return the settings of KCL, MCL, DTC and k-means on pretrained features that this run uses, by section."""
    used: dict[str, Stage] = {
        name: getattr(recipe, name) for name in ("kcl", "mcl", "dtc") if name in recipe.run.systems
    }
    if "kcl" in used or "mcl" in used:
        used["similarity"] = recipe.similarity
    if used and recipe.linear.epochs:
        used["linear"] = recipe.linear
    if "kmeans-pretrained" in recipe.run.systems:
        used["centres"] = recipe.centres
    return used


def _check_clusters(images: ImageSet, n_new: int, recipe: Recipe) -> None:
    """Ask whether batches of pairs and the numbers of clusters of KCL, MCL and DTC make sense."""
    used = clustering_sections(recipe)
    unlabelled = int(images.unlabelled.sum())
    for section in ("kcl", "mcl", "dtc"):
        clusters = getattr(recipe, section).out_dim
        if section in used and clusters and not n_new <= clusters <= unlabelled:
            raise UsageError(
                f"{section}.out_dim is {clusters}; it must be 0, or at least the number of new classes ({n_new}) and "
                f"at most that of the unlabelled images ({unlabelled})."
            )
    s = recipe.similarity
    if "similarity" in used and s.batch == "classes":
        chosen = s.classes_per_batch or min(n_new, images.n_known)
        if not 2 <= chosen <= images.n_known:
            raise UsageError(
                f"similarity.classes_per_batch is {chosen}; it must be from 2 to the number of known classes "
                f"({images.n_known}), since pairs of one class and of two are compared."
            )
        if s.batch_size // chosen < 2:
            raise UsageError(
                f"similarity.batch_size is {s.batch_size} for {chosen} classes a batch; at least two images of each "
                f"class are needed. Choose {2 * chosen} or more, or fewer classes (similarity.classes_per_batch)."
            )


def _joint_batches(section: str, joint: Joint, labelled: int, unlabelled: int) -> list[tuple[str, int, int, str]]:
    key = f"{section}.batch_size"
    if joint.batch == "merged":
        return [(key, joint.batch_size, labelled + unlabelled, "images")]
    share = joint.labelled_per_batch or joint.batch_size // 2
    if not 0 < share < joint.batch_size:
        raise UsageError(
            f"{section}.labelled_per_batch is {share} of {key} {joint.batch_size}; "
            "a fixed batch needs labelled and unlabelled images both."
        )
    return [
        (f"the labelled part of {key}", share, labelled, "labelled images"),
        (f"the unlabelled part of {key}", joint.batch_size - share, unlabelled, "unlabelled images"),
    ]


def _check_shapes(images: ImageSet, recipe: Recipe) -> None:
    channels, height, width = images.images.shape[1:]
    height, width = (recipe.data.size,) * 2 if recipe.data.size else (height, width)
    if recipe.pretrain.turns and height != width:
        raise InputError(
            f"images of {width}×{height} pixels cannot be turned by 90° in one batch. "
            f"Resize them to a square: --set data.size={min(height, width)}."
        )
    with torch.device("meta"):
        trunk = make_trunk(recipe.network, channels)
    check_sizes(recipe, trunk, channels, height, width)
    joints = _joint_sections(recipe)
    for section, joint in joints.items():
        if joint.bce and joint.k > trunk.n_features:
            raise UsageError(
                f"{section}.k is {joint.k}, but network {recipe.network.name} has only {trunk.n_features} features. "
                "Choose a smaller k (the paper: 5)."
            )
    compared = (stage for name, stage in clustering_sections(recipe).items() if name != "linear")
    for stage in (recipe.pretrain, recipe.supervised, *joints.values(), *compared):
        _check_stage(stage, trunk, min(height, width))


def _check_stage(stage: Stage, trunk: Trunk, side: int) -> None:
    trunk.freeze(stage.frozen)
    if set(trunk.frozen) == set(trunk.blocks):
        raise UsageError(
            f"frozen names all blocks of this network ({', '.join(trunk.blocks)}), so only heads would learn. "
            "Leave at least the last one out."
        )
    shift, side = stage.augment.reflect_shift, stage.augment.side or side
    if shift >= side:
        raise UsageError(
            f"augment.reflect_shift is {shift}, but views have only {side} pixels a side. Choose a smaller shift."
        )
