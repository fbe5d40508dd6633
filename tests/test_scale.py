"""The page about very many images is made from measured unit costs, by arithmetic that can be checked by hand."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def scale() -> ModuleType:
    found = importlib.util.spec_from_file_location("scale", ROOT / "benchmarks" / "scale.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["scale"] = module
    found.loader.exec_module(module)
    return module


def test_the_page_has_the_tables_of_the_measured_files(scale: ModuleType) -> None:
    assert scale.tables() in (ROOT / "docs" / "scale.md").read_text(), "run `python benchmarks/scale.py --write`"


def test_hours_are_images_by_the_slowest_rate(scale: ModuleType) -> None:
    figures = {
        "jpeg_bytes": 100_000, "listing_per_s": 1e6, "bytes_per_listed_file": 200, "decode_per_s": 1000,
        "decode_per_s_and_process": 250, "decode_processor_ms": 3.0, "joint_from_memory": 1, "joint_from_files": 1,
        "joint": {"ours": 500, "bare": 400, "ratio": 1.25}, "supervised": 2000, "embedding": 4000,
        "bytes_read_per_step": 51_200_000, "bytes_to_device_per_step": 100_663_296,
        "clustering": {"kmeans_rows": 200_000, "kmeans_s": 100, "count_rows": 30_000, "count_s": 360},
    }  # fmt: skip
    measured = {
        "device": "a machine", "cores": 4, "versions": {"torch": "2"}, "figures": figures,
        "settings": {"side": 256, "crop": 224, "batch": 512, "known": 882, "new": 30},
    }  # fmt: skip
    told = "\n".join(scale.table(measured, 3_600_000))
    assert "| first look at them | 4 M | 1,000.0 | decoding | 1.0 |" in told
    assert "| stage 2, an epoch | 3 M | 1,000.0 | decoding | 0.9 |" in told
    assert "| stage 3, an epoch | 4 M | 500.0 | the device | 2.4 |" in told  # 0.9 x 4/3 of the images
    assert "90 + 90 epochs of the recipe | | | | 299 |" in told  # 0.001 + 1 + 90 x (0.9 + 2.4) + 1
    assert "Processes that decode as fast as stage 3 trains: 2." in told
    assert "| k-means of a sample | 0.2 M | 2,000.0 | the processor | 0.028 |" in told
    assert "| count of a sample, without halves | 0.03 M | 83.3 | the processor | 0.1 |" in told
    assert "| JPEGs read | 51.20 |" in told and "| pixels to the device | 100.66 |" in told
    assert "gathered by each | 2.10 |" in told  # two views x 512 images x 512 features x 4 bytes
    assert "gradients of 8.9 million parameters, averaged | 35.45 |" in told  # block 4, and heads of 882 + 30 classes
    assert "| pixels moved to the device in a pass | 196,608 | 708 GB |" in told
    assert "| features and probabilities, held and written at the end | 5,696 | 21 GB |" in told
