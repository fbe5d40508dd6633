"""Discoverer: the scikit-learn face of the pipeline."""

import shutil
import tempfile
import warnings
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import NotFittedError

from autonovel import device as devices
from autonovel import discovery, pipeline, recipe, record
from autonovel.counting import counting
from autonovel.data import ImageSet, image_set
from autonovel.data.checks import check_problem
from autonovel.data.prepare import prepare
from autonovel.delivered import load_model
from autonovel.editing.edited import EditedRun
from autonovel.editing.sorting import UNREADABLE
from autonovel.embedding import Embedding
from autonovel.errors import RunFolderError, UsageError
from autonovel.job import Job
from autonovel.networks import Model
from autonovel.predicting.answers import Answers, Floats, Integers
from autonovel.predicting.judging import judge_all, judge_arrays, paths_of
from autonovel.settings import Recipe
from autonovel.storage import writing
from autonovel.storage.folder_lock import LOCK
from autonovel.storage.run_folder import RunFolder
from autonovel.training.display import Display, Silent


class Discoverer(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Finds new classes among unlabelled images, guided by labelled images of other classes.

    Args:
        n_new: number of new classes, or ``auto`` to estimate it (``[count]`` in the recipe says how).
        recipe: name of a recipe, or path to a TOML file.  ``demo`` suits small images on a CPU.
        method: ``rankstats-incremental``, ``kcl``, ``mcl`` or ``dtc`` (which end with one classifier for old and new
            classes), ``rankstats`` or ``kmeans``.
        settings: overrides by dotted name, such as ``{"joint.epochs": 30}``.
        seed: of every random draw.
        device: ``cpu``, ``cuda``, ``mps`` or ``auto``.
        out: run folder to keep; a temporary one if None.
        resume: go on with the run in ``out``.
        overwrite: replace the run in ``out``.
        keep_going: train on after a collapse.
        verbose: show progress.

    Attributes:
        labels_: class of every image of ``fit``, in input order, as its position in ``classes_``: labelled
            images keep their class, the others get one of the new classes, which are ordered by size.
        probabilities_: n×(known + new) probabilities behind ``labels_``.
        embedding_: n×d features.
        classes_: names of all classes by number.
        n_new_: number of new classes.
        discovery_: everything known of every image, as in ``discovery.csv``.

    Example:
        >>> import numpy as np
        >>> from autonovel import Discoverer
        >>> images = np.random.default_rng(0).integers(0, 255, (90, 12, 12), dtype=np.uint8)
        >>> y = np.repeat([0, 1, -1], 30)
        >>> quick = {"pretrain.epochs": 1, "supervised.epochs": 1, "joint.epochs": 1,
        ...          "pretrain.batch_size": 30, "supervised.batch_size": 30, "joint.batch_size": 20}
        >>> found = Discoverer(n_new=2, settings=quick, keep_going=True, verbose=False).fit(images, y)
        >>> found.labels_.shape, list(found.classes_)
        ((90,), ['0', '1', 'new-1', 'new-2'])
    """

    def __init__(
        self,
        *,
        n_new: int | str = 2,
        recipe: str = "demo",
        method: str = "rankstats-incremental",
        settings: Mapping[str, Any] | None = None,
        seed: int = 0,
        device: str = "auto",
        out: str | Path | None = None,
        resume: bool = False,
        overwrite: bool = False,
        keep_going: bool = False,
        verbose: bool = True,
    ) -> None:
        self.n_new = n_new
        self.recipe = recipe
        self.method = method
        self.settings = settings
        self.seed = seed
        self.device = device
        self.out = out
        self.resume = resume
        self.overwrite = overwrite
        self.keep_going = keep_going
        self.verbose = verbose

    def fit(self, images: Any, y: Any) -> "Discoverer":
        """Learn from labelled and unlabelled images.

        Args:
            images: n×h×w, n×h×w×c or n×c×h×w; integers 0–255 or floats in [0, 1].  Where ``data.size`` scales them,
                the central square is taken of those that are not square.
            y: one label per image, an integer or a name; −1, None or "" for unlabelled.
        """
        train = image_set(images, y)
        loaded, seed = self._checked_settings(), _integer("seed", self.seed)
        settings = loaded.recipe
        n_new = counting.wanted(settings, 0 if self.n_new == counting.AUTO else _integer("n_new", self.n_new))
        check_problem(train, n_new, settings)
        chosen = devices.pick(self.device)
        folder = Path(self.out) if self.out is not None else self._temporary_folder()
        going_on = self.resume and folder.exists()
        if not (self.resume or self.overwrite) and (folder / "run.json").exists():
            raise UsageError(f"{folder} holds a run already. Set resume=True, overwrite=True, or another out.")
        locked = RunFolder.resume(folder) if going_on else RunFolder.create(folder, self.overwrite)
        with locked, _display(self.verbose) as display:
            train = prepare(train, settings.data, folder, chosen, display)
            record.begin(folder, settings, seed, chosen, train, n_new, ["Discoverer.fit"], loaded.changed)
            if record.finished(folder):
                display.say(f"{folder} is finished; nothing was left to do.")
                return self._take_run(folder)
            job = Job(settings, train, None, n_new, seed, chosen, folder, display, self.keep_going)
            outcome = pipeline.run(job)
            assert outcome is not None  # all stages were asked for
            if self.out is not None:
                display.say(f"Wrote {folder}.")
        self._folder = folder
        self._take_model(outcome.model, settings, outcome.discovery.names, train.n_known, list(train.images.shape))
        self._take_answers(train, outcome.embedding)
        if outcome.failures:
            raise outcome.failures[0]
        return self

    def fit_predict(self, images: Any, y: Any) -> NDArray[np.int64]:
        """Return the class number of every image of ``fit(images, y)``."""
        return self.fit(images, y).labels_

    def _checked_settings(self) -> recipe.Loaded:
        """Return the recipe under this object's settings; images come from the caller, whatever the recipe's source."""
        given = {} if self.settings is None else self.settings
        if not isinstance(given, Mapping):
            raise UsageError(f"settings is {given!r}; give a dict such as {{'joint.epochs': 30}}.")
        misplaced = [key for key in given if str(key).startswith("data.") and key not in ("data.size", "data.loader")]
        if misplaced:
            raise UsageError(
                f"settings names {', '.join(misplaced)}, which choose a recipe's own images; here images and labels "
                "are what fit is given. Only data.size and data.loader have a meaning here."
            )
        if self.resume and self.out is None:
            raise UsageError("resume=True needs the folder of the run to go on with: give out=….")
        if self.resume and self.overwrite:
            raise UsageError("resume=True keeps the run in out and overwrite=True replaces it; give one of them.")
        own = {"data.source": "arrays", "data.known": [], "data.first_known": 0, "data.per_class": 0,
               "data.test_fraction": 0.0, "data.truth": "", "run.systems": [self.method]}  # fmt: skip
        if "count.new_classes" in given:
            raise UsageError("settings names count.new_classes; give the number of new classes, or auto, as n_new=….")
        own["count.new_classes"] = counting.AUTO if self.n_new == counting.AUTO else ""
        return recipe.load(str(self.recipe), own | dict(given))

    def _temporary_folder(self) -> Path:
        """Return a folder that lives as long as this object."""
        parent = tempfile.mkdtemp(prefix="autonovel-")
        weakref.finalize(self, shutil.rmtree, parent, ignore_errors=True)
        return Path(parent) / "run"

    def _take_model(
        self, model: Model, settings: Recipe, names: tuple[str, ...], n_known: int, shape: list[int]
    ) -> None:
        self._model, self._settings, self._shape = model, settings, shape
        self._answers = Answers.found(names, n_known)
        self.classes_ = np.array(names)
        self.n_new_ = len(names) - n_known

    def _take_edits(self, run: EditedRun) -> None:
        """Let answers and labels be those that a person's corrections of the run make of them."""
        sorting = run.sorting
        self.classes_ = np.array([sorting.names.get(number, "") for number in range(sorting.next_number)])
        self.n_new_ = len(sorting.names) - sorting.n_known
        self.labels_: NDArray[np.int64] = sorting.class_of[run.seen]
        self._answers = Answers.corrected(sorting)

    def _take_answers(self, train: ImageSet, embedding: Embedding) -> None:
        self.discovery_ = discovery.discover(train, embedding)
        self.labels_ = self.discovery_.class_id.numpy()
        self.probabilities_ = discovery.class_probabilities(train, embedding).numpy()
        self.embedding_ = embedding.z.numpy()

    def _embed(self, images: Any) -> tuple[Embedding, Integers, int]:
        """Return what the model says of images, which of them it could see, and how many there are."""
        if not hasattr(self, "_model"):
            raise NotFittedError("this Discoverer is not fitted. Call fit(images, y), or Discoverer.load(folder).")
        with devices.torch_settings(self._model.precision):
            return self._judge(images)

    def _judge(self, images: Any) -> tuple[Embedding, Integers, int]:
        if (paths := paths_of(images)) is not None:
            return *judge_all(self._model, paths, self._settings.data, self._shape), len(paths)
        found = judge_arrays(self._model, images, self._settings.data, self._shape)
        return found, np.arange(len(found.z)), len(found.z)

    def predict(self, images: Any) -> Integers:
        """Return the class of each image, among known and new ones alike, as its position in ``classes_``.

        −1 stands for a class that a person marked as junk, −2 for a file that cannot be read.

        Args:
            images: an array as for ``fit``, or the path of an image file, or a list of paths.  Files and arrays are
                treated alike: their central square, at the size the model was fitted on.  (A model that was fitted on
                arrays which are not square takes arrays of that size alone.)
        """
        p, seen, n = self._judged(images)
        best = np.full(n, UNREADABLE, dtype=np.int64)
        best[seen] = self._answers.best(p)
        return best

    def predict_proba(self, images: Any) -> Floats:
        """Return n×(known + new) class probabilities from the joint head.

        Without incremental learning there is no joint head: the answer is then among the new classes
        only, and a warning says so.  What a row lacks to 1 is the probability of classes marked as junk; the row of a
        file that cannot be read is not a number.
        """
        p, seen, n = self._judged(images)
        return _spread(p[:, :-1], seen, n)

    def _judged(self, images: Any) -> tuple[Floats, Integers, int]:
        """Return the probabilities of the classes and of junk, of which images, and how many images there are."""
        found, seen, n = self._embed(images)
        if not self._answers.joint(found):
            warnings.warn(
                f"method {self.method!r} has no head for known and new classes together; "
                "predicting among new ones only",
                stacklevel=3,
            )
        return self._answers.probabilities(found), seen, n

    def transform(self, images: Any) -> Floats:
        """Return the n×d features of images."""
        found, seen, n = self._embed(images)
        return _spread(found.z.numpy(), seen, n)

    def save(self, folder: str | Path) -> None:
        """Copy the run folder of this fit to ``folder``, which must not exist."""
        if not hasattr(self, "_folder"):
            raise NotFittedError("nothing to save: this Discoverer has not been fitted.")
        target = Path(folder)
        if target.exists():
            raise UsageError(f"{target} already exists. Choose another folder.")
        if not self._folder.is_dir():
            raise RunFolderError(f"the run folder {self._folder} of this fit is gone; there is nothing to save.")
        try:
            with writing.replacing_folder(target) as beside:
                writing.copy_tree(self._folder, beside, LOCK.__eq__)
        except OSError as error:
            raise RunFolderError(
                f"cannot write {target}: {error.strerror or error}. Free space or choose another folder."
            ) from error

    @classmethod
    def load(cls, folder: str | Path) -> "Discoverer":
        """Return a Discoverer that predicts with the model of the finished run at ``folder``.

        Where a person has corrected the run, ``labels_``, ``classes_`` (by number; gone classes have no name),
        ``predict`` and ``predict_proba`` follow the corrections; ``discovery_`` and ``probabilities_`` stay as found.
        """
        path = Path(folder)
        facts = record.finished_facts(path)
        n_new, name = facts.get("n_new") or 2, facts["recipe"]["name"]
        return cls(n_new=n_new, recipe=name, method=facts["primary"], seed=facts["seed"], out=path)._take_run(path)

    def _take_run(self, folder: Path) -> "Discoverer":
        """Be as after the fit that the finished run at ``folder`` was, and after all corrections since."""
        facts = record.finished_facts(folder)
        self._folder = folder
        train, names = discovery.read(folder)
        self._take_model(load_model(folder), recipe.restore(facts["recipe"]), names, train.n_known, facts["images"])
        self._take_answers(train, Embedding.load(folder / "embedding.safetensors"))
        run = EditedRun(folder)
        if run.n_edits:
            self._take_edits(run)
        return self


def _spread(values: Floats, rows: Integers, n: int) -> Floats:
    """Return n rows of which ``rows`` are ``values`` and the others not a number."""
    if len(rows) == n:
        return np.ascontiguousarray(values)
    out = np.full((n, values.shape[1]), np.nan, dtype=np.float32)
    out[rows] = values
    return out


def _integer(name: str, value: Any) -> int:
    """Return a parameter that must be a whole number from 0 on, and no larger than a run's documents hold."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < 2**63:
        auto = ", or 'auto'" if name == "n_new" else ""
        raise UsageError(f"{name} is {value!r}; give a whole number from 0 on, less than 2 to the 63rd{auto}.")
    return int(value)


class _display:  # noqa: N801 - reads as a function at its one call
    """A display for the length of a ``with`` block."""

    def __init__(self, verbose: bool) -> None:
        self.verbose = verbose

    def __enter__(self) -> Display:
        if not self.verbose:
            return Silent()
        from rich.console import Console

        from autonovel.terminal import TerminalDisplay

        self.shown = TerminalDisplay(Console())
        return self.shown

    def __exit__(self, *_: object) -> None:
        if self.verbose:
            self.shown.close()
