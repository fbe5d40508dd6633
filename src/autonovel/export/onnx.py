"""ONNX: the delivered model as one graph, from raw pixels to the probabilities of the classes as corrected.

Input ``images``: uint8, n×channels×height×width, any n.  Output ``probabilities``: n×classes, in the order of the
metadata's ``classes``.  Normalisation and what edits make of the model's answers are inside the graph; cutting out the
central square of a picture and resizing it to the size in the metadata is not.
"""

import contextlib
import io
import json
import logging
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from autonovel import __version__, recipe
from autonovel.delivered import load_model
from autonovel.editing.sorting import JUNK, JUNK_NAME, Sorting
from autonovel.errors import AutonovelError, UsageError
from autonovel.export.job import Export
from autonovel.extras import installing
from autonovel.networks import Model, heads
from autonovel.storage import writing

TOLERANCE = 1e-4


class FromPixels(nn.Module):
    """uint8 images → probabilities of the classes in force."""

    answers: Tensor

    def __init__(self, model: Model, n_known: int, answers: Tensor) -> None:
        super().__init__()
        self.model = model
        head = model.heads["known"]
        assert isinstance(head, heads.ClassHead)
        self.joint = head.out_features > n_known or len(answers) == n_known  # the latter: there are no new classes
        self.n_known = n_known
        self.register_buffer("answers", answers)

    def forward(self, images: Tensor) -> Tensor:
        """Return n×classes probabilities, those of the joint head; without one, among the new classes alone."""
        z = self.model.features(images.float() / 255)
        p = self.model.logits(z, "known" if self.joint else "new").softmax(dim=1)
        return p @ (self.answers if self.joint else self.answers[self.n_known :])


def write(job: Export, path: Path) -> str:
    """Write the model to ``path``, and check what onnxruntime makes of it against torch."""
    try:
        import onnx
        import onnxruntime
        import onnxscript  # noqa: F401 - torch's exporter needs it
    except ImportError as error:
        raise UsageError(
            f"the export to ONNX needs the package {error.name}. Install it with: {installing('onnx')}."
        ) from error
    names, answers = columns(job.run.sorting)
    shape = (int(job.run.facts["images"][1]), *_size(job))
    network = FromPixels(load_model(job.run.folder), job.run.sorting.n_known, answers).eval()
    rng = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (3, *shape), generator=rng, dtype=torch.uint8)
    graph = onnx.load_from_string(_exported(network, images[:2]))
    _anonymous(graph)
    about = {
        "classes": json.dumps(names, ensure_ascii=False),
        "input": f"uint8 RGB or grey pixels 0-255, n x {shape[0]} x {shape[1]} x {shape[2]}; "
        "take the central square of a picture and resize it before, normalisation is inside",
        "known_classes": str(job.run.sorting.n_known),
        "joint_head": str(network.joint).lower(),
        "edits": str(job.run.n_edits),
        "producer": f"autonovel {__version__}",
    }
    onnx.helper.set_model_props(graph, about)
    onnx.checker.check_model(graph)
    content = graph.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    found = torch.from_numpy(session.run(None, {"images": images.numpy()})[0])
    with torch.no_grad():
        difference = float((found - network(images)).abs().max())
    if difference > TOLERANCE:
        raise AutonovelError(f"the exported model differs from torch by {difference:.1e}, so nothing was written.")
    writing.replace_file(path, content)
    only = "" if network.joint else " It has no joint head, so it answers among the new classes only."
    size = f"{len(content) / 2**20:.1f} MiB"
    return f"{len(names)} classes, {size}; onnxruntime agrees with torch to {difference:.0e}.{only}"


def columns(sorting: Sorting) -> tuple[list[str], Tensor]:
    """Return the names of the output's classes, and the matrix that turns the model's probabilities into theirs."""
    numbers = sorted(set(sorting.names) & set(sorting.answers))
    names = [sorting.names[number] for number in numbers]
    if JUNK in sorting.answers:
        numbers, names = [*numbers, JUNK], [*names, JUNK_NAME]
    return names, torch.from_numpy(sorting.answer_matrix()[:, numbers])


def _size(job: Export) -> tuple[int, int]:
    side = recipe.restore(job.run.facts["recipe"]).data.size
    height, width = job.run.facts["images"][2:]
    return (side, side) if side else (int(height), int(width))


def _exported(network: nn.Module, images: Tensor) -> bytes:
    """Return the graph that torch makes of ``network``, for any number of images."""
    batch = torch.export.Dim("batch", min=1, max=65536)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            network,
            (images,),
            dynamo=True,
            dynamic_shapes={"images": {0: batch}},
            input_names=["images"],
            output_names=["probabilities"],
            verbose=False,
        )
    assert program is not None
    return bytes(program.model_proto.SerializeToString())


def _anonymous(graph: Any) -> None:
    """Delete what the exporter notes of the files that the network's code came from."""
    graph.doc_string = ""
    del graph.metadata_props[:]
    parts = [graph.graph, *graph.functions]
    for part in parts:
        part.doc_string = ""
        del part.metadata_props[:]
        for node in part.node:
            node.doc_string = ""
            del node.metadata_props[:]
    for value in (*graph.graph.initializer, *graph.graph.value_info, *graph.graph.input, *graph.graph.output):
        value.doc_string = ""
        del value.metadata_props[:]
