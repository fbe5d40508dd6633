"""What a report of many images costs: `python benchmarks/report.py` prints build time, bytes and time to open.

The run is made up: small generated colour pictures as JPEG files, a fake embedding, no training; everything the report
reads is written as a run writes it.  Measured, in this order: the t-SNE map alone, the report at the end of a run
without it (images in memory), the same by `autonovel report` (images in files), the bytes of the page and of what it
loads for its first view, the time until that is there in Chromium without a window, and what the console says.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import torch
from PIL import Image

from autonovel import discovery, kept, recipe, record, scoring
from autonovel.data import ImageSet
from autonovel.embedding import Embedding
from autonovel.report.build import PAGE, write_report
from autonovel.report.command import write_corrected_report
from autonovel.report.tsne import tsne_map
from autonovel.storage.documents import write_json
from autonovel.training.display import Silent

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

KNOWN, NEW, FEATURES = 5, 5, 128


def pictures(n: int, side: int, rng: np.random.Generator) -> torch.Tensor:
    """Return n×3×side×side smooth random colour pictures with a little noise."""
    coarse = rng.integers(0, 256, (n, 4, 4, 3), dtype=np.uint8)
    out = np.empty((n, side, side, 3), np.uint8)
    for number in range(n):
        out[number] = np.asarray(Image.fromarray(coarse[number]).resize((side, side), Image.Resampling.BICUBIC))
    noise = rng.integers(-10, 11, out.shape, dtype=np.int16)
    return torch.from_numpy(np.clip(out + noise, 0, 255).astype(np.uint8)).permute(0, 3, 1, 2).contiguous()


def write_files(images: ImageSet, folder: Path) -> None:
    """Write the images as JPEG files under their ids."""
    for part in {name.split("/")[0] for name in images.ids}:
        (folder / part).mkdir(parents=True, exist_ok=True)
    for name, image in zip(images.ids, images.images.permute(0, 2, 3, 1).numpy(), strict=True):
        Image.fromarray(image).save(folder / name, quality=90)


def made_up_run(folder: Path, n: int, side: int = 32) -> tuple[ImageSet, Embedding]:
    """Write a finished run of ``n`` images, half of them labelled, and return its images and embedding."""
    rng = np.random.default_rng(0)
    truth = torch.from_numpy(rng.integers(0, KNOWN + NEW, n))
    images = ImageSet(
        images=pictures(n, side, rng),
        y=torch.where(truth < KNOWN, truth, -1),
        ids=tuple(f"part-{number % 40:02d}/image-{number:06d}.jpg" for number in range(n)),
        class_names=tuple(f"known-{number}" for number in range(KNOWN)),
        truth=truth,
        new_names=tuple(f"hidden-{number}" for number in range(NEW)),
        ids_are_paths=True,
    )
    write_files(images, folder.parent / "images")
    centres = torch.from_numpy(rng.normal(0, 3, (KNOWN + NEW, FEATURES))).float()
    z = centres[truth] + torch.from_numpy(rng.normal(0, 2.5, (n, FEATURES))).float()
    logits = -torch.cdist(z, centres) / 4
    order = discovery.by_size(images, logits[:, KNOWN:])
    found = Embedding(z, logits[:, KNOWN:].softmax(1), logits[:, :KNOWN].softmax(1)).reordered(order, KNOWN)
    folder.mkdir(parents=True, exist_ok=True)
    changes = [
        'run.systems=["rankstats"]',
        'data.source="folder"',
        f"data.path={json.dumps(str(folder.parent / 'images'))}",
    ]
    settings = recipe.load("demo", changes).recipe
    record.begin(folder, settings, 0, torch.device("cpu"), images, NEW, ["autonovel", "run", "made-up"], {})
    discovery.discover(images, found).save(folder)
    found.save(folder / "embedding.safetensors")
    kept.save_truth(folder, images)
    one = {"rankstats": scoring.system_record(found, 1.0, images, None, None)}
    write_json(folder / "results.json", scoring.results(folder, one, {"rankstats": 1.0, "total": 1.0}))
    record.finish(folder, torch.device("cpu"))
    return images, found


def first_view(page: Path, profile: Path) -> dict[str, Any]:
    """Open the page in Chromium; return seconds until it is drawn, bytes of all it loaded, and complaints."""
    from browser import browsing

    with browsing(profile) as tab:
        tab.look()
        begun = time.monotonic()
        tab.open(page.resolve().as_uri())
        tab.wait("document.querySelector('.thumbnails i') && document.querySelector('#legend button')")
        seconds = time.monotonic() - begun
        by_browser = tab.value("performance.getEntriesByType('navigation')[0].loadEventEnd / 1000")
        first = _size(tab.requests)
        for _ in range(40):  # through the whole overview, so that all it shows is loaded
            tab.value("scrollBy({ top: 800, behavior: 'instant' })")
        tab.wait("scrollY + innerHeight > document.documentElement.scrollHeight - 2")
        time.sleep(0.5)  # what has come into view last is on its way
        tab.value("0")  # hears what was loaded meanwhile
        overview = _size(tab.requests)
        begun = time.monotonic()
        tab.value("location.hash = '#/class/' + data.classes[0].number")
        tab.wait("document.querySelectorAll('#class-tiles .tile').length > 20")
        opened = time.monotonic() - begun
        return {"seconds": seconds, "load_event": by_browser, "bytes": first, "overview_bytes": overview,
                "class_page_seconds": opened, "complaints": tab.complaints}  # fmt: skip


def _size(addresses: list[str]) -> int:
    """Return the bytes of all files that were loaded."""
    files = {unquote(urlsplit(one).path) for one in addresses if one.startswith("file:")}
    return sum(Path(file).stat().st_size for file in files)


def measure(n: int, folder: Path, points: int = 2000) -> dict[str, Any]:
    """Return all measurements for a run of ``n`` images under ``folder``."""
    run = folder / "run"
    images, embedding = made_up_run(run, n)
    begun = time.monotonic()
    tsne_map(embedding.z, points, run)
    tsne = time.monotonic() - begun
    results = json.loads((run / "results.json").read_text())
    begun = time.monotonic()
    write_report(run, images, embedding, discovery.discover(images, embedding), results, points)
    build = time.monotonic() - begun
    begun = time.monotonic()
    write_corrected_report(run, folder / "again" / PAGE, None, None, 0, Silent())
    again = time.monotonic() - begun
    page = run / PAGE
    everything = sum(path.stat().st_size for path in (page, *page.with_suffix("").rglob("*")) if path.is_file())
    view = first_view(page, folder / "profile")
    return {"images": n, "tsne_seconds": tsne, "build_seconds": build, "report_command_seconds": again,
            "page_bytes": page.stat().st_size, "all_bytes": everything, "first_view": view}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--keep", type=Path, help="folder to make everything in, and leave it there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = measure(arguments.images, arguments.keep or Path(place))
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
