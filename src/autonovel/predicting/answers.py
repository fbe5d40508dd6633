"""What a model's probabilities of later images mean: classes as they are now, corrections by a person included."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from autonovel.editing.sorting import JUNK, Sorting
from autonovel.embedding import Embedding

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Answers:
    """The classes a model answers with.

    Attributes:
        names: name of each class by number; numbers of classes that are gone are missing.
        n_known: classes 0 … n_known − 1 are known.
        matrix: zeros and ones (``Sorting.answer_matrix``); None where nobody has corrected anything.
    """

    names: Mapping[int, str]
    n_known: int
    matrix: Floats | None = None

    @classmethod
    def found(cls, names: Sequence[str], n_known: int) -> "Answers":
        """Return the answers of a run as it was found."""
        return cls(dict(enumerate(names)), n_known)

    @classmethod
    def corrected(cls, sorting: Sorting) -> "Answers":
        """Return the answers of a run that a person has corrected."""
        return cls(sorting.names, sorting.n_known, sorting.answer_matrix())

    def joint(self, found: Embedding) -> bool:
        """Tell whether one head knows both known and new classes (or there are no new ones)."""
        return found.is_grown(self.n_known) or found.p_new.shape[1] == 0

    def probabilities(self, found: Embedding) -> Floats:
        """Return n×(classes by number + 1) probabilities; the last column is junk.

        They come from the joint head, or, without one, from the head of the new classes.
        """
        p = found.p_known
        if not self.joint(found):
            p = torch.cat([torch.zeros(len(found.z), self.n_known), found.p_new], dim=1)
        if self.matrix is None:
            return np.pad(p.numpy(), ((0, 0), (0, 1)))
        return np.asarray(p.numpy() @ self.matrix)

    def best(self, p: Floats) -> Integers:
        """Return the number of the most probable class of each row of ``probabilities``, ``JUNK`` included."""
        best: Integers = p[:, :-1].argmax(axis=1)
        best[p[:, -1] > p[:, :-1].max(axis=1)] = JUNK
        return best


class Distances:
    """How far the training images of each class lie from its centre, to say how unusual a later image is.

    Args:
        z: n×d features of the training images.
        class_of: class number of each; negative for none.
    """

    def __init__(self, z: Tensor, class_of: Integers) -> None:
        self.centres: dict[int, Floats] = {}
        self.sorted: dict[int, Floats] = {}
        features = z.numpy()
        for number in np.unique(class_of[class_of >= 0]).tolist():
            members = features[class_of == number]
            self.centres[number] = members.mean(axis=0)
            self.sorted[number] = np.sort(np.linalg.norm(members - self.centres[number], axis=1))

    def ranks(self, z: Tensor, class_of: Integers) -> NDArray[np.float64]:
        """Return the share of training images of the same class that are nearer to its centre, 0 (central) to 1.

        As ``outlier`` of a training image, whose own rank it is; not a number where a class has no training image.
        """
        out = np.full(len(class_of), np.nan)
        features = z.numpy()
        for number in np.unique(class_of).tolist():
            if number in self.centres:
                rows = np.flatnonzero(class_of == number)
                distance = np.linalg.norm(features[rows] - self.centres[number], axis=1)
                most = max(len(self.sorted[number]) - 1, 1)
                out[rows] = np.minimum(np.searchsorted(self.sorted[number], distance), most) / most
        return out
