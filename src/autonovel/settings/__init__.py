"""Every setting of a run, typed, with its meaning and where its default comes from.

``autonovel show`` prints this page for a recipe; ``recipe.py`` reads and checks values for it.
"""

from autonovel.settings.compared import Centres, Dtc, Linear, PairClustering, Similarity
from autonovel.settings.counting import Count
from autonovel.settings.images import OF_FILES, OWN_SOURCES, PLACES, WHICH_IMAGES, Augment, Data, Network, Run
from autonovel.settings.recipe import SENTENCES, Recipe
from autonovel.settings.section import Section
from autonovel.settings.stages import ALL_STAGES, FROZEN, Joint, Pretrain, Stage, Supervised

__all__ = [
    "ALL_STAGES", "FROZEN", "OF_FILES", "OWN_SOURCES", "PLACES", "SENTENCES", "WHICH_IMAGES", "Augment", "Centres",
    "Count", "Data", "Dtc", "Joint", "Linear", "Network", "PairClustering", "Pretrain", "Recipe", "Run", "Section",
    "Similarity", "Stage", "Supervised",
]  # fmt: skip
