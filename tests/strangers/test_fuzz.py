"""Every reader of outside data, with a few changed documents each; ``make fuzz`` tries many."""

from pathlib import Path

import pytest
from fuzz import Tried, attempt, examine
from outside import Parser, parsers

FEW = 12
SEED = 20
NAMES = (
    "recipe (TOML)", "--set", "table (CSV)", "table (Parquet)", "truth.csv", "labels.csv", "list of paths",
    "CIFAR batch (pickle)", "CIFAR archive (tar.gz)", "CIFAR archive (its tar)", "SVHN (.mat)", "Omniglot (zip)",
    "shards (tar)", "images: JPEG", "images: PNG", "images: TIFF", "images: WebP, BMP and GIF", "run.json",
    "results.json", "metrics.jsonl", "discovery.csv", "classes.json", "edits.jsonl", "refined.json",
    "model.safetensors", "embedding.safetensors", "truth.safetensors", "kept features", "assignments.safetensors",
    "checkpoint.safetensors", "config.json of transformers", "preprocessor_config.json", "survey (cache)",
    "HTTP requests", "edits over HTTP",
)  # fmt: skip


@pytest.fixture(scope="module")
def all_parsers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Parser]:
    return {parser.name: parser for parser in parsers(tmp_path_factory.mktemp("fuzz"))}


def test_none_is_left_out(all_parsers: dict[str, Parser]) -> None:
    assert tuple(all_parsers) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_whole_documents_are_read_and_changed_ones_read_or_refused(name: str, all_parsers: dict[str, Parser]) -> None:
    parser, tried = all_parsers[name], Tried(name)
    for content in parser.seeds:
        attempt(parser, content, tried)
    assert tried.read, "no document to begin from is whole"
    examine(parser, FEW, SEED, tried)
    assert not tried.crashes, {where: words for where, (words, _) in tried.crashes.items()}
    assert tried.examples >= FEW


def test_a_reader_that_is_not_ready_is_found_out(tmp_path: Path) -> None:
    tried = Tried("careless")
    examine(Parser("careless", "bytes", [b"0", b"12"], lambda content: int(content)), 50, SEED, tried)
    assert any(where.startswith("ValueError at") for where in tried.crashes)
