"""What is kept of the systems of a run: their scores, and ``results.json``, which says all that a table quotes."""

from pathlib import Path
from typing import Any

from torch import Tensor

from autonovel import evaluation, recipe
from autonovel.data import ImageSet
from autonovel.embedding import Embedding
from autonovel.storage.run_folder import FORMAT, check_format
from autonovel.tables.as_today import settings_held


def cluster_scores(images: ImageSet, clusters: Tensor) -> dict[str, float] | None:
    """Return ACC, NMI and ARI of the unlabelled images' clusters, or None where nobody knows the truth."""
    if images.truth is None:
        return None
    return evaluation.score(images.truth[images.unlabelled].numpy(), clusters.numpy()).as_dict()


def system_scores(images: ImageSet, embedding: Embedding) -> dict[str, float] | None:
    """Return the scores of a system by its head of the new classes, the paper's headline protocol; None without any."""
    if not embedding.p_new.shape[1]:
        return None
    return cluster_scores(images, embedding.p_new[images.unlabelled].argmax(dim=1))


def judges_of_joint(
    train: ImageSet, on_train: Embedding, test: ImageSet | None, on_test: Embedding | None
) -> tuple[ImageSet, Embedding, str]:
    """Return the images that a grown head is judged on, what the model says of them, and what to call them."""
    if test is not None and on_test is not None:
        return test, on_test, evaluation.HELD_OUT
    return train, on_train, "the training images (none were held out)"


def joint_scores(
    train: ImageSet, on_train: Embedding, test: ImageSet | None = None, on_test: Embedding | None = None
) -> dict[str, Any] | None:
    """Return old / new / all accuracies of a grown head, on the test images if some were held out.

    None without truth, without a grown head, or without images of both kinds.  The split is named, so that nobody
    mistakes one for the other.  Beside them, where the truth of the unlabelled training images is known, what the grown
    head makes of these, on which the head of the new classes is judged.
    """
    images, embedding, split = judges_of_joint(train, on_train, test, on_test)
    if images.truth is None or not embedding.is_grown(images.n_known):
        return None
    old = images.truth < images.n_known
    if old.all() or not old.any():  # nothing to compare, such as a test set of known classes alone
        return None
    found = evaluation.incremental(images.truth.numpy(), embedding.p_known.argmax(dim=1).numpy(), images.n_known)
    told = {"split": split, "protocols": {name: value.as_dict() for name, value in found.items()}}
    return told | ({"unlabelled": _of_unlabelled(train, on_train)} if train.truth is not None else {})


def _of_unlabelled(train: ImageSet, on_train: Embedding) -> dict[str, float]:
    """Return ACC of a grown head on the unlabelled images, and the share of them it wrongly takes for known classes.

    Outputs of new classes are matched to new classes alone; a known class is right where the image is truly of it, as
    in piles of one's own pictures.
    """
    assert train.truth is not None
    truth = train.truth[train.unlabelled].numpy()
    predicted = on_train.p_known[train.unlabelled].argmax(dim=1).numpy()
    mapping = evaluation.plain_and_matched(truth, predicted, train.n_known)
    right = evaluation.right_under(mapping, truth, predicted)
    return {"acc": float(right.mean()), "taken_for_known": float((~right & (predicted < train.n_known)).mean())}


def system_record(
    on_train: Embedding, seconds: float, train: ImageSet, test: ImageSet | None, on_test: Embedding | None
) -> dict[str, Any]:
    """Return what is kept of one system: its scores, the time it took, and old / new / all of a grown head."""
    scores = system_scores(train, on_train)
    return {"scores": scores, "seconds": seconds, "incremental": joint_scores(train, on_train, test, on_test)}


def results(folder: Path, records: dict[str, dict[str, Any]], seconds: dict[str, float]) -> dict[str, Any]:
    """Return the content of ``results.json``, which says all a table needs to quote it.

    ``incremental``, old / new / all, is that of the first system with a grown head; ``joint_classifiers`` has it
    of every system.  ``seconds`` may still be filled in.
    """
    facts = check_format(folder)
    settings = recipe.restore(facts["recipe"])
    joint = [content["incremental"] for content in records.values() if content["incremental"]]
    return {
        "format": FORMAT,
        "recipe": settings.name,
        "preset": settings.preset,
        "seed": facts["seed"],
        "primary": facts["primary"],
        "epoch": "last",
        "systems": {name: content["scores"] for name, content in records.items()},
        "incremental": joint[0] if joint else None,
        "n_new": facts["n_new"],
        "joint_classifiers": {name: content["incremental"] for name, content in records.items()},
        "seconds": seconds,
        "parts": len(facts["parts"]),
        "departures": list(settings.departures),
        "changed": facts["changed"],
        "source_digest": facts.get("source_digest"),
        "settings": settings_held(settings),
        **{key: facts[key] for key in ("hardware", "threads", "versions", "commit", "platform")},
    }
