"""The paper's tables as it prints them: which lines and columns, and the run that each line asks for."""

from dataclasses import dataclass, replace

from autonovel import recipe
from autonovel.labels import GROWN, LABELS, PLAIN
from autonovel.studies.variants import ABLATIONS, SWEPT
from autonovel.tables import paper
from autonovel.tables.naming import changes_in_words

TITLES = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "svhn": "SVHN",
    "omniglot": "OmniGlot",
    "imagenet": "ImageNet",
}
SMALL = ("cifar10", "cifar100", "svhn")
LARGE = ("omniglot", "imagenet")
COMPARED = ("kmeans", "kcl", "mcl", "dtc")


@dataclass(frozen=True)
class Line:
    """One line of a table: a system under a recipe with some settings changed.

    Attributes:
        title: what the line is called.
        system: that was measured.
        changes: settings changed in the recipe, as the table of all results names them.
        full: whether the recipe of full length is meant, not the fast one.
        only: the datasets on which it is meant to be run; none named: all.
        asked: whether it stands there even if nobody has run it.
    """

    title: str
    system: str = "rankstats"
    changes: str = ""
    full: bool = False
    only: tuple[str, ...] = ()
    asked: bool = True

    @property
    def of_the_method(self) -> bool:
        """Return whether it is what the paper's own method reaches, with nothing taken away or added."""
        return self.system in (PLAIN, GROWN) and self.changes in ("", "preset=paper")

    def has_run(self, dataset: str) -> bool:
        """Return whether it is another run than that of the fast line, where there is one recipe alone."""
        return not self.full or f"{dataset}-fast" in recipe.names()

    def run_name(self, dataset: str) -> str:
        """Return the name under which the table of all results has this line's run on a dataset."""
        name = dataset if self.full or f"{dataset}-fast" not in recipe.names() else f"{dataset}-fast"
        return f"{name} {self.changes}".rstrip()


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper.

    Attributes:
        title: what it shows.
        datasets: its columns.
        lines: its rows.
        of_joint: old / new / all of joint classifiers, instead of the accuracy on the unlabelled images.
    """

    title: str
    datasets: tuple[str, ...]
    lines: tuple[Line, ...]
    of_joint: bool = False


@dataclass(frozen=True)
class Sweep:
    """A setting over which ranking statistics were run: the paper has a figure of k, without numbers.

    Attributes:
        title: what the table shows.
        word: for the setting.
        setting: its name.
        values: that were run, one by one.
    """

    title: str
    word: str
    setting: str
    values: tuple[int, ...]


def _all_lengths(title: str, system: str) -> tuple[Line, ...]:
    """Return a system's line, and those of runs at full length."""
    return (
        Line(title, system),
        Line(f"{title}, *full length*", system, full=True),
        Line(f"{title}, *full length*, formulas as printed", system, "preset=paper", full=True, only=("cifar10",)),
    )


WITHOUT_SELF_SUPERVISION = tuple(
    Line(f"{LABELS[system]}, without self-supervision", system, paper.FROM_SCRATCH) for system in COMPARED
)
BASELINES = tuple(Line(LABELS[system], system) for system in COMPARED)
BASELINES_IN_FULL = tuple(
    Line(f"{LABELS[system]}, *full length*", system, full=True, asked=False) for system in COMPARED
)
OURS = _all_lengths("ranking statistics", "rankstats")
INCREMENTAL = _all_lengths("with incremental learning", "rankstats-incremental")
IN_FULL = (OURS[1], INCREMENTAL[1], OURS[2], INCREMENTAL[2])
OF_UNKNOWN_NUMBER = tuple(
    Line(f"{LABELS[system]}, {whose} estimates", system, changes)
    for whose, changes in (("DTC's stored", paper.WITH_STORED_ESTIMATES), ("our", paper.OUR_ESTIMATES))
    for system in (*COMPARED[1:], "rankstats")
)
ABLATION_TITLES = {  # by the names of the variants
    "without-consistency": "without consistency",
    "without-consistency-one-view": "the same, pairs of one view",
    "without-ce": "without CE",
    "without-bce": "without BCE",
    "without-self-supervision": "without self-supervision",
}
WITHOUT_A_PART = tuple(Line(ABLATION_TITLES[one.name], changes=changes_in_words(one.settings)) for one in ABLATIONS)
TABLES = (
    PaperTable(
        "Novel category discovery",
        SMALL,
        (*WITHOUT_SELF_SUPERVISION, *BASELINES, OURS[0], INCREMENTAL[0], *BASELINES_IN_FULL, *IN_FULL),
    ),
    PaperTable(
        "Novel category discovery, OmniGlot and ImageNet",
        LARGE,
        (*BASELINES, *BASELINES_IN_FULL, OURS[0], replace(OURS[1], only=("omniglot",))),
    ),
    PaperTable("Unknown number of new classes", LARGE, OF_UNKNOWN_NUMBER),
    PaperTable("What each part does", SMALL, (*WITHOUT_A_PART, OURS[0])),
    PaperTable("Incremental learning: old / new / all on the test images", SMALL, (*BASELINES[1:], *INCREMENTAL), True),
)
SWEEPS = (
    Sweep("Ranking statistics with other k", "k", SWEPT["k"], (1, 2, 3, 5, 7, 10, 15, 20, 50)),
    Sweep("Ranking statistics with pairs compared in other groups", "images a group", SWEPT["group"], (8, 16, 32, 64)),
)
