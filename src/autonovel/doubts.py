"""What a person should be told about a run that went through, but went badly."""

from pathlib import Path

from torch import Tensor

from autonovel.data.streamed import FilePixels
from autonovel.embedding import Embedding
from autonovel.job import Job
from autonovel.settings import OF_FILES
from autonovel.storage.journal import Journal
from autonovel.training.checkpoint import known_head

FEW = 0.1  # share of unlabelled images below which a joint classifier has not learned the new classes
DARK = 63  # of 255, that a set of pictures should have something above: 14 bits in a 16-bit file have nothing
GUESSING = 0.5  # share of rotations told rightly below which stage 1 has learned little; a guess has 0.25


def tell_of_the_first_classifier(job: Job) -> None:
    """Say whether the file of weights has a classifier of the known classes, where no stage 2 teaches one."""
    if job.recipe.starts_from_a_classifier:
        path = job.recipe.pretrain.weights
        head = known_head(Path(path), job.train.n_known)
        job.display.say(
            f"The classifier of the {job.train.n_known} known classes starts from {path}."
            if head is not None
            else f"Beware: {path} has no classifier of {job.train.n_known} classes, so that of the known classes "
            "starts at random. Give a file that has one, or train stage 2 (--set supervised.epochs=…)."
        )


def tell_of_dark_pictures(job: Job) -> None:
    """Say so if all pictures are nearly black, as cameras' 12 bits in files of 16 are."""
    data, images = job.recipe.data, job.train.images
    if data.source not in OF_FILES or data.white or len(images) == 0:
        return
    if isinstance(images, Tensor):
        top = int(images.max())
    elif isinstance(images, FilePixels) and images.counts is not None:
        top = int(images.counts.any(dim=0).nonzero().max())
    else:
        return
    if top <= DARK:
        job.display.say(
            f"Beware: no picture is brighter than {top} of 255. If they are grey of more than 8 bits, say which value "
            "is white, such as --set data.white=4095 of 12 bits in files of 16, or 16383 of 14; as they are, most of "
            "what they show is lost."
        )


def tell_of_rotations_not_learned(job: Job) -> None:
    """Say so if stage 1 could not tell how far images were turned: then they have no upright, or it was too short."""
    told = [line for line in Journal(job.folder / "metrics.jsonl").lines if line.get("stage") == "1-rotation"]
    accuracy = told[-1].get("accuracy") if told else None
    right = None if accuracy is None else 100 * accuracy
    if right is not None and right < 100 * GUESSING:
        job.display.say(
            f"Beware: stage 1 tells only {right:.0f} % of rotations rightly (guessing: 25 %). Pictures without "
            "an upright, such as cells or aerial photos, cannot be learned that way. Start from a pretrained network "
            "(autonovel discover DIR --backbone efficientnet-lite0), or from the known classes alone (--pretraining "
            "supervised), or train stage 1 for longer (--set pretrain.epochs=…)."
        )


def tell_of_a_blind_classifier(job: Job, primary: str, embedding: Embedding) -> None:
    """Say so if the joint classifier puts nearly no unlabelled image into a new class: it was trained too little."""
    if embedding.is_grown(job.train.n_known):
        answers = embedding.p_known[job.train.unlabelled].argmax(dim=1)
        share = float((answers >= job.train.n_known).float().mean())
        if share < FEW:
            other = "centres" if primary == "kmeans-pretrained" else "linear"
            section = "incremental" if primary.startswith("rankstats") else other
            job.display.say(
                f"Beware: the joint classifier puts only {100 * share:.1f} % of unlabelled images into new classes. "
                "The new classes themselves stand in discovery.csv; to predict with it, train longer "
                f"({section}.epochs)."
            )
