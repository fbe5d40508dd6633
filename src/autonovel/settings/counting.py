"""How the new classes are counted."""

from dataclasses import Field, dataclass
from typing import Any

from autonovel.errors import UsageError
from autonovel.settings.section import DTC, Section, setting


@dataclass(frozen=True, kw_only=True)
class Count(Section):
    """How many new classes there are."""

    new_classes: str = setting("", "number of new classes: a number, auto (estimate it), published (DTC's stored "
                               "estimate, where there is one), or empty (what the source of images says: a benchmark, "
                               "or class folders, but never a table of truth)")  # fmt: skip
    most: int = setting(100, "largest number of new classes considered", DTC, low=2)
    features: str = setting("metric", "metric: features of stages 1 and 2, scaled by how images of one known class "
                            "differ; pretrained: likewise, of stage 1 alone; plain: those of stage 2 as they are",
                            choices=("metric", "pretrained", "plain"))  # fmt: skip
    criterion: str = setting("silhouette", "silhouette: the count where clusters of k-means are clearest and known "
                             "classes that play new ones are found again best; icl: the count of round Gaussians "
                             "of one width, along Ward's tree, whose completed likelihood is highest",
                             "silhouette: " + DTC + "; icl: Biernacki, Celeux and Govaert 2000",
                             choices=("silhouette", "icl"))  # fmt: skip
    dimensions: int = setting(0, "directions of largest variance kept before the scaling, where features are many and "
                              "known images few (0: all)", low=0)  # fmt: skip
    shrinkage: float = setting(0.1, "share of the covariance inside known classes that is replaced by its mean "
                               "variance (metric)", low=0, high=1)  # fmt: skip
    directions: int = setting(0, "directions kept, those along which known classes lie farthest apart (metric; 0: all)",
                              low=0)  # fmt: skip
    probes: str = setting("random", "known classes that play new ones: a random share; held-out: each group of "
                          "pretrain.held_out in turn, and the mean of what they say, rounded up; with icl they are "
                          "counted like the new ones, and how far that is off gives the range",
                          choices=("random", "held-out"))  # fmt: skip
    probe_share: float = setting(0.125, "share of the known classes that play new ones, at least four (0: none, "
                                 "the silhouette alone decides)",
                                 "10 of 80 classes in " + DTC, low=0, high=0.9)  # fmt: skip
    anchor_share: float = setting(0.6, "share of those whose images are held in their clusters", DTC, low=0, high=0.9)
    size_ratio: float = setting(0.01, "a cluster below this share of the largest does not count", DTC, low=0, high=1)
    majority: bool = setting(True, "a cluster counts only if it holds more unlabelled images than images of known "
                             "classes that play new ones (DTC: it counts all the same)")  # fmt: skip
    restarts: int = setting(10, "clusterings to choose from at each candidate", DTC, low=1)
    iterations: int = setting(100, "of each clustering, at most", DTC, low=1)
    tol: float = setting(1e-4, "movement of the centres, relative to the variance, at which a clustering rests", DTC,
                         low=0)  # fmt: skip
    standard_errors: float = setting(0.0, "take the least count whose silhouette is lower than the highest by at most "
                                     "so many of its standard errors", low=0)  # fmt: skip
    search: str = setting("coarse-to-fine", "coarse-to-fine: only where the curves are high; exhaustive: every count",
                          choices=("coarse-to-fine", "exhaustive"))  # fmt: skip
    few_restarts: int = setting(2, "restarts while the search only looks where the curves are high", low=1)
    images: int = setting(30_000, "unlabelled images that are counted, drawn at random where there are more", low=10)
    sample: int = setting(3000, "images whose silhouette is averaged, each against all others", low=2)
    spare: float = setting(0.0, "share of classes that training gets beyond the estimate (new_classes = auto): one too "
                           "many leaves a class small or splits one, one too few merges two for good", low=0,
                           high=1)  # fmt: skip
    halves: int = setting(6, "halves of the unlabelled images on which the count is repeated, for its range", low=0)

    def check(self, f: "Field[Any]", value: Any) -> None:
        """Say so if ``value`` is nothing that the setting ``f`` can have, such as a number of classes in letters."""
        super().check(f, value)
        if f.name != "new_classes" or value in ("", "auto", "published"):
            return
        if not (value.isdecimal() and len(value) < 7 and int(value) >= 2):
            raise UsageError(f"new_classes is {value!r}; give a whole number from 2 on, or auto, or published.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.criterion == "icl" and self.standard_errors:
            raise UsageError(
                f"standard_errors is {self.standard_errors}, but criterion is icl, which has none. Set "
                "standard_errors to 0, or criterion to silhouette."
            )
