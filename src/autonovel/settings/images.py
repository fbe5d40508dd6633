"""What is run, on which images, seen through which network and which views."""

from dataclasses import dataclass, replace

from autonovel.errors import UsageError
from autonovel.settings.section import Section, setting


@dataclass(frozen=True, kw_only=True)
class Run(Section):
    """What is run and reported."""

    systems: tuple[str, ...] = setting(
        ("rankstats",), "systems to run and compare; the first is the one whose classes are delivered"
    )
    trials: int = setting(0, "times that some known classes play new ones, to choose which of the systems delivers "
                          "(0: the first)", low=0)  # fmt: skip
    parallel: bool = setting(False, "train the systems' last stages as processes beside each other (CPU only)")
    checkpoint_seconds: float = setting(20.0, "seconds between checkpoints inside a stage", low=0)
    cuda_graphs: bool = setting(True, "on a CUDA device, record each step as a graph and replay it")
    report: bool = setting(True, "draw the report at the end; off where only the numbers matter")
    map_points: int = setting(2000, "images on the report's t-SNE map", low=10)


OF_FILES = ("folder", "table", "shards")  # sources of image files of a person's own
OWN_SOURCES = (*OF_FILES, "arrays")  # of which one name may stand for any images


@dataclass(frozen=True, kw_only=True)
class Data(Section):
    """Which images."""

    source: str = setting("arrays", "where images come from: a benchmark, the embedded sample, a folder of images, "
                          "a table of them, tar shards, or the caller's arrays",
                          choices=("arrays", "sample", "cifar10", "cifar100", "svhn", "omniglot", "imagenet", "folder",
                                   "table", "shards"))  # fmt: skip
    path: str = setting("", "folder of the benchmark's files or of images, or table of images (--data)")
    alphabet: str = setting("", "evaluation alphabet whose characters are the new classes (omniglot)")
    subset: str = setting("", "which 30 of the 118 unlabelled classes are the new ones (imagenet)",
                          choices=("", "A", "B", "C"))  # fmt: skip
    known: tuple[str, ...] = setting((), "names of the known classes")
    first_known: int = setting(0, "instead of naming them, take this many classes of the source as known", low=0)
    new: tuple[str, ...] = setting((), "names of the new classes, all others being left out (none named: all "
                                   "others); where no known ones are chosen, every other class is known")  # fmt: skip
    first_new: int = setting(0, "instead of naming them, take this many classes after the known ones as new", low=0)
    per_class: int = setting(0, "keep only this many images of each class, for a quick trial (0: all)", low=0)
    size: int = setting(0, "side to which images are resized (0: left as they are); of those that are not square, the "
                        "central square is", low=0)  # fmt: skip
    white: int = setting(0, "of image files in grey of more than 8 bits, the value that is white, such as 4095 of 12 "
                         "bits in a 16-bit file (0: 65535; of floats 1, 255 or 65535, whichever holds the brightest)",
                         low=0)  # fmt: skip
    truth: str = setting("", "CSV of path and label of unlabelled image files, for scoring alone (default: truth.csv "
                         "in their folder, if there is one)")  # fmt: skip
    labels: str = setting("", "CSV of id and label that a person gave later, laid over what the source says; a "
                          "relative path is looked for in the run folder (refine writes it)")  # fmt: skip
    loader: str = setting("auto", "resident: all images decoded, on the device; streaming: batch by batch; auto: "
                          "resident where they fit", choices=("auto", "resident", "streaming"))  # fmt: skip
    workers: int = setting(0, "processes that decode image files (0: one per core)", low=0, high=256)
    cache: str = setting("auto", "folder that keeps decoded images while streaming; auto: in the run folder where they "
                         "fit, until the run is done; off: none")  # fmt: skip
    test_fraction: float = setting(0.0, "share of each class held out from training for the test scores",
                                   low=0.0, high=0.9)  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.white and self.source not in OF_FILES:
            raise UsageError(
                f"white is {self.white}, but source is {self.source}: only of image files ({', '.join(OF_FILES)}) "
                "can it be said which value is white. Leave it at 0."
            )
        for one, other in (("known", "first_known"), ("new", "first_new")):
            if getattr(self, one) and getattr(self, other):
                raise UsageError(f"{one} and {other} are both set; choose one of them (the other empty or 0).")


# where images lie and how they come to the device: nothing of it changes a result
PLACES = ("data.path", "data.loader", "data.workers", "data.cache")

# which images of a source are known, new or there at all: of another source it says nothing
WHICH_IMAGES = (
    "data.known", "data.first_known", "data.new", "data.first_new", "data.per_class", "data.alphabet", "data.subset",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Network(Section):
    """Which feature extractor."""

    name: str = setting("resnet18", "feature extractor", "paper, section 3.1",
                        choices=("resnet18", "small", "vgg", "resnet18-imagenet", "efficientnet-lite0",
                                 "hf"))  # fmt: skip
    side: int = setting(0, "pixels a side to which the network shrinks larger images, averaging (0: it takes them as "
                        "they are); a random view that is no larger it takes as it is", low=0)  # fmt: skip
    crop: int = setting(0, "pixels a side of the central square of an image that the network sees (0: all of it); a "
                        "random view that is no larger it sees whole", low=0)  # fmt: skip
    normalise: str = setting("own", "channel means and deviations that images are normalised by: their own, or those "
                             "of ImageNet", choices=("own", "imagenet"))  # fmt: skip
    head_width: int = setting(0, "units of a hidden layer (linear, BatchNorm, ReLU) inside each head (0: none)", low=0)
    model: str = setting("", "pretrained model for name = hf: its name on the Hugging Face hub, or a folder that "
                         "save_pretrained of transformers wrote")  # fmt: skip
    adapter: int = setting(0, "width of the trainable layer on top of a pretrained network (0: none)", low=0)
    unit_length: bool = setting(False, "scale the features of a pretrained network to unit length")
    cached_views: int = setting(0, "compute a pretrained network's features once, of each image and of random views "
                                "(pretrain.augment), so many in all (0: anew in every step)", low=0)  # fmt: skip
    precision: str = setting("auto", "trunk arithmetic; auto: bf16 on a GPU that has it, else float32",
                             choices=("auto", "float32", "bf16"))  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Augment(Section):
    """What a random view of an image is."""

    crop: int = setting(0, "random crop after padding by this many black pixels", low=0)
    reflect_shift: int = setting(0, "random shift by up to this many pixels, border mirrored", low=0)
    flip: bool = setting(False, "mirror left to right with probability 1/2")
    rotate: float = setting(0.0, "largest random rotation in radians", low=0)
    shear: float = setting(0.0, "largest random shear in radians", low=0, high=1.5)
    scale: float = setting(0.0, "largest random relative change of size", low=0, high=0.9)
    shift: float = setting(0.0, "largest random shift in pixels, black outside", low=0)
    resized_crop: float = setting(1.0, "smallest share of the image in a random crop, resized to its size", low=0.01,
                                  high=1.0)  # fmt: skip
    aspect: float = setting(1.0, "largest ratio of the sides of that crop (1: it is a square)", low=1.0, high=4.0)
    side: int = setting(
        0, "pixels a side to which that crop is resized, averaged where it has more (0: the image's)", low=0
    )
    brightness: float = setting(0.0, "largest random relative change of brightness", low=0, high=1)
    contrast: float = setting(0.0, "largest random relative change of contrast", low=0, high=1)
    saturation: float = setting(0.0, "largest random relative change of the strength of colours", low=0, high=1)
    grey: float = setting(0.0, "share of views in shades of grey", low=0, high=1)
    cached: bool = setting(False, "pick one of the cached views (network.cached_views)")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.aspect > 1 and self.resized_crop == 1:
            raise UsageError(
                f"aspect is {self.aspect}, but resized_crop is 1: all of an image has no other shape than its own. Set "
                "resized_crop below 1, or aspect to 1."
            )
        if self.cached and replace(self, cached=False) != Augment():
            raise UsageError(
                "augment.cached picks among views that were computed beforehand, drawn as pretrain.augment says: no "
                "other setting of augment has an effect beside it. Leave them out, or set augment.cached=false."
            )
