"""The paper's figure of the features during training: new classes that come apart, epoch by epoch."""

from typing import Any

import numpy as np
import torch

from autonovel.embedding import Embedding
from autonovel.figures import style
from autonovel.figures.figure import CannotDrawError, Drawn, Tick
from autonovel.figures.maps import comparable, true_classes
from autonovel.figures.neighbours import NEAREST, neighbour_counts, purity
from autonovel.figures.runs import Run, Study
from autonovel.kept import KeptFeatures, Truth, kept_features
from autonovel.labels import GROWN, LABELS, PLAIN
from autonovel.report.tsne import sample
from autonovel.words import count

NAME = "training-tsne"


def draw(study: Study, tick: Tick) -> Drawn:
    """Return maps of the unlabelled images at the kept epochs and at the end, of the first seed that kept some."""
    run, system, truth = _source(study)
    moments = _moments(run, system)
    classes = truth.truth[moments[0].rows]
    chosen = sample(len(classes), run.map_points)
    maps = comparable([moment.z for moment in moments], chosen, NAME, tick)
    everyone, counts = torch.arange(len(classes)), []
    for number, moment in enumerate(moments):
        tick(f"{NAME}: neighbours", number, len(moments))
        counts.append(neighbour_counts(moment.z, classes, len(truth.names), everyone))
    tick(f"{NAME}: neighbours", len(moments), len(moments))
    pure = [purity(c) for c in counts]
    titles = [_title(moment.epoch, number == len(moments) - 1) for number, moment in enumerate(moments)]
    picture = _picture(maps, titles, pure, classes.numpy()[chosen], truth)
    shown = "all" if len(chosen) == len(classes) else f"a random {count(len(chosen))} of the"
    caption = (
        f"How the new classes come apart in joint training ({study.label}, {LABELS[system]}, seed {run.seed}): t-SNE "
        f"of the features of {shown} {count(len(classes))} unlabelled images, without augmentation, coloured by their "
        "true class, which the method never sees. Every map starts from the layout of the one before it. Under each: "
        f"the share of an image's {NEAREST} nearest neighbours in feature space (not on the map) that are of its own "
        f"class, over all unlabelled images: {', '.join(f'{100 * p:.1f} %' for p in pure)}."
    )
    numbers = {
        "run": str(run.folder), "recipe": study.label, "seed": run.seed, "system": system, "images": len(chosen),
        "of": len(classes), "epochs": [m.epoch for m in moments], "same_class_neighbours": pure,
        "neighbours": NEAREST,
    }  # fmt: skip
    return Drawn(NAME, caption, numbers, picture)


def _source(study: Study) -> tuple[Run, str, Truth]:
    for run in study.only():
        for system in (PLAIN, GROWN):
            place = run.system(system)
            kept = place / "stages" / run.joint_stage(system) if place else None
            if kept and run.embedding(system) and any(kept.glob("embedding-epoch-*")):
                return run, system, true_classes(run)
    raise CannotDrawError(
        "no finished run of the unchanged recipe has kept features. Run it with "
        "--set joint.keep_embeddings_at=[0,30,90] (or other epochs)."
    )


def _moments(run: Run, system: str) -> list[KeptFeatures]:
    """Return the kept features and, as the last, those at the end."""
    place, path = run.system(system), run.embedding(system)
    assert place is not None and path is not None
    last = run.epochs(system)
    kept = [moment for moment in kept_features(place / "stages" / run.joint_stage(system)) if moment.epoch < last]
    if not kept:
        raise CannotDrawError(
            f"{place} kept features at its end alone. Set joint.keep_embeddings_at to earlier epochs."
        )
    rows = kept[0].rows
    return [*kept, KeptFeatures(Embedding.load(path).z[rows], rows, last)]


def _title(epoch: int, end: bool) -> str:
    if epoch == 0:
        return "start of joint training"
    return f"epoch {epoch} (end)" if end else f"epoch {epoch}"


def _picture(maps: list[Any], titles: list[str], pure: list[float], of: Any, truth: Truth) -> Any:
    import matplotlib

    shown = np.unique(of)
    colours = dict(zip(shown.tolist(), style.colours(len(shown)), strict=True))
    with matplotlib.rc_context(style.SETTINGS):
        figure, axes = style.panels(len(maps), 2.6, 3.3 + 0.2 * (len(shown) // 10))
        size = 5.0 if len(of) > 1000 else 9.0
        order = np.random.default_rng(0).permutation(len(of))  # so that no class lies on top of the others
        for panel, flat, title, share in zip(axes, maps, titles, pure, strict=True):
            style.scatter(panel, flat[order], of[order], colours, size)
            panel.set_title(title)
            panel.set_xlabel(f"neighbours of the same class: {100 * share:.1f} %", color=style.SOFT, fontsize=8)
            style.bare(panel, flat)
        style.label_groups(axes[-1], maps[-1], of, truth.names)
        style.class_legend(figure, [(truth.names[n], colours[n], style.mark(i)) for i, n in enumerate(shown.tolist())])
    return figure
