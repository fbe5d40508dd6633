"""A whole run: all sections together."""

import re
from dataclasses import dataclass, field

from autonovel.errors import UsageError
from autonovel.labels import GROWN, KNOWN_ONLY, LABELS, PIXELS, PLAIN
from autonovel.settings.compared import Centres, Dtc, Linear, PairClustering, Similarity
from autonovel.settings.counting import Count
from autonovel.settings.images import Data, Network, Run
from autonovel.settings.section import Section, setting
from autonovel.settings.stages import Joint, Pretrain, Supervised

SENTENCES = ("about", "departures", "minutes")  # what a recipe says of itself; nothing that is computed depends on it


@dataclass(frozen=True, kw_only=True)
class Recipe(Section):
    """A whole run."""

    name: str = field(default="defaults", metadata={"doc": "name of the recipe"})
    preset: str = setting("", "a named set of switches: code (as published), paper (as printed), or none",
                          choices=("", "code", "paper"))  # fmt: skip
    about: str = field(default="", metadata={"doc": "what it is, in a sentence"})
    departures: tuple[str, ...] = field(default=(), metadata={"doc": "where it departs from the paper"})
    minutes: str = field(default="", metadata={"doc": "how long it takes, and on what"})
    run: Run = field(default_factory=Run)
    data: Data = field(default_factory=Data)
    network: Network = field(default_factory=Network)
    pretrain: Pretrain = field(default_factory=Pretrain)
    supervised: Supervised = field(default_factory=Supervised)
    joint: Joint = field(default_factory=Joint)
    count: Count = field(default_factory=Count)
    incremental: Joint = field(default_factory=Joint)  # joint training with incremental learning; as joint unless set
    similarity: Similarity = field(default_factory=Similarity)
    kcl: PairClustering = field(default_factory=PairClustering)
    mcl: PairClustering = field(default_factory=PairClustering)  # as kcl unless set
    dtc: Dtc = field(default_factory=Dtc)
    linear: Linear = field(default_factory=Linear)
    centres: Centres = field(default_factory=Centres)

    @property
    def joint_sections(self) -> dict[str, Joint]:
        """Return the settings of all joint training that this run's systems do, by section."""
        grown = GROWN in self.run.systems
        plain = PLAIN in self.run.systems or (grown and self.incremental.after == "joint")
        return ({"joint": self.joint} if plain else {}) | ({"incremental": self.incremental} if grown else {})

    @property
    def starts_from_a_classifier(self) -> bool:
        """Return whether the head of the known classes comes from the file of weights: no stage 2 teaches one."""
        return self.pretrain.kind == "weights" and not self.supervised.epochs

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.name.strip(".") or re.search(r"[/\\\x00-\x1f]", self.name):
            raise UsageError(f"name is {self.name!r}; run folders are called by it: give it letters, and no slashes.")
        if self.pretrain.kind == "supervised" and not self.supervised.epochs:
            raise UsageError(
                "pretrain.kind is supervised, but supervised.epochs is 0: nothing would be pretrained. Give it epochs, "
                "such as --set supervised.epochs=100, or another pretrain.kind."
            )
        systems = self.run.systems
        if not systems or systems[0] == PIXELS:
            raise UsageError(
                f"run.systems is {list(systems)}; its first system delivers the model, so it must be one that has a "
                f"model: {', '.join(name for name in LABELS if name != PIXELS)}."
            )
        if KNOWN_ONLY in systems and len(systems) > 1:
            raise UsageError(
                f"run.systems is {list(systems)}; {KNOWN_ONLY} discovers nothing and cannot be compared with others. "
                "Name it alone, or leave it out."
            )
        if KNOWN_ONLY in systems and not self.supervised.epochs:
            raise UsageError(
                f"run.systems is {KNOWN_ONLY}, which stage 2 trains, but supervised.epochs is 0. Give stage 2 some "
                "epochs, such as --set supervised.epochs=10."
            )
        if len(set(systems)) < len(systems):
            raise UsageError(f"run.systems is {list(systems)}; name each system once.")
