"""What a run over very many images would take, worked out from unit costs that benchmarks/imagenet.py measured.

`python benchmarks/scale.py` prints the tables of docs/scale.md, one for each file in benchmarks/unit-costs;
`python benchmarks/scale.py --write` puts them into that page.  Nothing here was run at that size: every hour is a
number of images divided by a measured rate, on one machine like that of the measurement.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autonovel import networks, recipe
from autonovel.methods.rankstats import Joint
from autonovel.networks.imagenet_resnet import statistics as channel_constants

ROOT = Path(__file__).resolve().parents[1]
COSTS, PAGE = ROOT / "benchmarks" / "unit-costs", ROOT / "docs" / "scale.md"
BEGIN, END = "<!-- tables: python benchmarks/scale.py --write -->", "<!-- end of the tables -->"
LABELLED = 0.9  # of the images; of ImageNet's with one subset it is 0.97
HOUR = 3600


def phases(figures: Mapping[str, Any], images: int) -> dict[str, tuple[float, dict[str, float]]]:
    """Return how many images each phase handles, and the rates (images per second) that bound it, by their names."""
    labelled = LABELLED * images
    made = recipe.load("imagenet").recipe.joint
    decode = {"decoding": figures["decode_per_s"]}
    return {
        "listing the files": (images, {"the file system": figures["listing_per_s"]}),
        "first look at them": (images, decode),
        "stage 2, an epoch": (labelled, decode | {"the device": figures["supervised"]}),
        "stage 3, an epoch": (
            labelled * made.batch_size / made.labelled_per_batch,
            decode | {"the device": figures["joint"]["ours"]},
        ),
        "features of all": (images, decode | {"the device": figures["embedding"]}),
    }


def table(measured: Mapping[str, Any], images: int) -> list[str]:
    """Return Markdown: the machine, hours by phase, and bytes."""
    figures, sizes = measured["figures"], measured["settings"]
    load = measured.get("load_average")
    busy = f", load average {load:.1f} at the start" if load is not None else ""
    lines = [
        f"#### {measured['device']}",
        "",
        f"{measured['cores']} cores{busy}; torch {measured['versions']['torch']}; images of {sizes['side']}×"
        f"{sizes['side']}, views of {sizes['crop']}×{sizes['crop']}, batches of {sizes['batch']}; JPEGs of "
        f"{figures['jpeg_bytes'] / 1e3:.0f} kB. Stage 3 with all images on the device: "
        f"{figures['joint']['ours']:,.1f} images/s, a bare loop {figures['joint']['bare']:,.1f} (ratio "
        f"{figures['joint']['ratio']:.2f}); from the host's memory {figures['joint_from_memory']:,.1f}, from JPEGs "
        f"{figures['joint_from_files']:,.1f}. Decoding: {figures['decode_per_s']:,.0f} images/s, "
        f"{figures['decode_per_s_and_process']:,.0f} per process; {figures['decode_processor_ms']:.1f} ms of a "
        "processor for each image.",
        "",
        f"| {images / 1e6:,.0f} million images | images handled | images/s | bound by | hours |",
        "|---|---|---|---|---|",
    ]
    hours = {}
    for name, (count, rates) in phases(figures, images).items():
        slowest = min(rates, key=lambda kind: rates[kind])
        hours[name] = count / rates[slowest] / HOUR
        lines.append(f"| {name} | {count / 1e6:,.0f} M | {rates[slowest]:,.1f} | {slowest} | {hours[name]:,.1f} |")
    if "clustering" in figures:
        lines += [_sampled(what, figures["clustering"]) for what in ("kmeans", "count")]
    made = recipe.load("imagenet").recipe
    epochs = {"stage 2, an epoch": made.supervised.epochs, "stage 3, an epoch": made.joint.epochs}
    total = sum(took * epochs.get(name, 1) for name, took in hours.items())
    lines.append(
        f"| all, with the {made.supervised.epochs} + {made.joint.epochs} epochs of the recipe | | | | {total:,.0f} |"
    )
    wanted = figures["joint"]["ours"] / figures["decode_per_s_and_process"]
    lines += ["", f"Processes that decode as fast as stage 3 trains: {max(wanted, 1):,.0f}.", ""]
    if "clustering" not in figures:
        lines += ["k-means and the count of a sample were not measured on this machine.", ""]
    return [*lines, *amounts(figures, sizes, images), "", *moved(figures, sizes)]


def _sampled(what: str, measured: Mapping[str, float]) -> str:
    """Return the row of a clustering that takes a sample of the embeddings, however many there are."""
    rows, took = measured[f"{what}_rows"], measured[f"{what}_s"]
    title = {"kmeans": "k-means of a sample", "count": "count of a sample, without halves"}[what]
    return f"| {title} | {rows / 1e6:,.2g} M | {rows / took:,.1f} | the processor | {took / HOUR:,.2g} |"


def moved(figures: Mapping[str, Any], sizes: Mapping[str, Any]) -> list[str]:
    """Return Markdown: the bytes of one step of stage 3, on its way and between processes."""
    made = recipe.load("imagenet").recipe
    stage = Joint(made.joint, sizes["known"], sizes["new"], 0)
    model = networks.build(made.network, 3, *channel_constants(3), seed=0)
    stage.prepare(model)
    learned = sum(p.numel() for p in model.parameters() if p.requires_grad)
    rows = {
        "JPEGs read": figures["bytes_read_per_step"],
        "pixels to the device": figures["bytes_to_device_per_step"],
        "between processes: features of both views, gathered by each": 2 * 4 * sizes["batch"] * model.trunk.n_features,
        f"between processes: gradients of {learned / 1e6:.1f} million parameters, averaged": 4 * learned,
    }
    lines = ["| bytes of a step of stage 3 | MB |", "|---|---|"]
    return lines + [f"| {name} | {each / 1e6:,.2f} |" for name, each in rows.items()]


def amounts(figures: Mapping[str, Any], sizes: Mapping[str, Any], images: int) -> list[str]:
    """Return Markdown: what is read, moved and held."""
    pixels, outputs = 3 * sizes["side"] ** 2, 4 * (512 + sizes["known"] + sizes["new"])
    rows = {
        "JPEGs read in a pass": figures["jpeg_bytes"],
        "pixels moved to the device in a pass": pixels,
        "memory of the list of files": figures["bytes_per_listed_file"],
        "features and probabilities, held and written at the end": outputs,
    }
    lines = ["| amount | bytes an image | all |", "|---|---|---|"]
    return lines + [f"| {name} | {each:,.0f} | {each * images / 1e9:,.0f} GB |" for name, each in rows.items()]


def tables(images: int = 100_000_000) -> str:
    """Return the tables of all measured machines."""
    found = [json.loads(file.read_text()) for file in sorted(COSTS.glob("*.json"))]
    return "\n".join("\n".join([*table(measured, images), ""]) for measured in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=100_000_000)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scale.md")
    arguments = parser.parse_args()
    made = tables(arguments.images)
    if not arguments.write:
        print(made)
        return
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{made}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
