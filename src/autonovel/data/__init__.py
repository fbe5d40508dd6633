"""Images: sources, the ImageSet they become, splits, samplers and loaders."""

from autonovel.data.arrays import image_set, image_tensor
from autonovel.data.imageset import ImageSet, channel_statistics, resize
from autonovel.data.loaders import Batch, Loader, Resident, Streaming, loader
from autonovel.data.samplers import ByClass, Fixed, Merged, Sampler, share_of
from autonovel.data.splits import LabelledImages, hold_out, known_and_new

__all__ = [
    "Batch",
    "ByClass",
    "Fixed",
    "ImageSet",
    "LabelledImages",
    "Loader",
    "Merged",
    "Resident",
    "Sampler",
    "Streaming",
    "channel_statistics",
    "hold_out",
    "image_set",
    "image_tensor",
    "known_and_new",
    "loader",
    "resize",
    "share_of",
]
