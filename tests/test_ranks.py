"""Several processes, started by torchrun, do what one process does."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from autonovel import recipe, settings
from autonovel.commands.predict import predict_files
from autonovel.data import ByClass, Fixed, ImageSet, Merged, share_of, sources
from autonovel.errors import UsageError
from autonovel.launch import Launch, check_command, launch, started_again
from autonovel.methods.similarity import LearnSimilarity, network_of
from autonovel.methods.supervised import Supervised
from autonovel.networks import build
from autonovel.training import batch_statistics
from autonovel.training.ranks import ALONE, Ranks
from runs import TINY, autonovel, environment, journal

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
            "--monitor-interval", "0.1"]  # fmt: skip
WORKER = Path(__file__).parent / "ranks_worker.py"
CLOSE = 1e-5


def torchrun(*arguments: object, restarts: int = 0) -> subprocess.Popen[str]:
    """Start two processes of a script, or of ``-m autonovel``."""
    options = ["--max-restarts", str(restarts)]
    return subprocess.Popen(
        TORCHRUN + options + list(map(str, arguments)),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip


def finished(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    out, err = process.communicate(timeout=240)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def together(*arguments: object) -> subprocess.CompletedProcess[str]:
    return finished(torchrun("-m", "autonovel", *arguments))


def digits() -> torch.Tensor:
    """Return the images of the tiny recipe."""
    images = sources.load(recipe.load(str(TINY)).recipe, 0, Path())[0].resized(12).images
    assert isinstance(images, torch.Tensor)
    return images


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a trunk whose BatchNorm, which stays fixed, has the statistics of digits."""
    model = build("small", 1, torch.tensor([0.13]), torch.tensor([0.3]), 0)
    for layer in model.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.momentum = 1.0
    with torch.no_grad():
        model.train().features(digits().float() / 255)
    path = tmp_path_factory.mktemp("weights") / "trunk.safetensors"
    save_file({name: value.contiguous() for name, value in model.trunk.state_dict().items()}, path)
    return path


def command(weights: Path, out: Path, seed: int) -> list[object]:
    """Return a run of stages 2 and 3, and of k-means, in which nothing depends on who trains beside whom.

    It learns slowly: at a higher rate the least difference grows from step to step.
    """
    changes: dict[str, Any] = {
        "run.systems": ["rankstats-incremental", "kmeans"], "run.report": False, "run.parallel": False,
        "pretrain.kind": "weights", "pretrain.weights": str(weights), "supervised.epochs": 3, "supervised.lr": 2e-4,
        "joint.epochs": 3, "joint.lr": 1e-4, "joint.k": 3, "joint.weight": 1.0, "joint.keep_embeddings_at": [3],
        "supervised.frozen_batchnorm": "everywhere", "joint.frozen_batchnorm": "everywhere",
    }  # fmt: skip
    sets = [word for key, value in changes.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    return ["run", TINY, "--out", out, "--device", "cpu", "--seed", seed, *sets]


@dataclass(frozen=True)
class Both:
    """The same run by one process and by two."""

    seed: int
    one: Path
    two: Path


@pytest.fixture(scope="module")
def both(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Both:
    """Return runs of the first seed of which rounding turns no decision round (see the worker), or of the last."""
    for seed in range(3):
        found = Both(seed, *(tmp_path_factory.mktemp(name) / "run" for name in ("one", "two")))
        alone = autonovel(*command(weights, found.one, seed))
        assert alone.returncode == 0, alone.stderr
        done = together(*command(weights, found.two, seed))
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("2-supervised: done") == 1, "one process speaks"
        if close(*(journal(run / "metrics.jsonl") for run in (found.one, found.two))):
            break
    return found


def answers(run: Path) -> list[tuple[str, str]]:
    with (run / "discovery.csv").open() as file:
        return [(row["id"], row["class_name"]) for row in csv.DictReader(file)]


def close(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> bool:
    """Tell whether two journals have the same numbers, up to rounding."""
    assert [line.keys() for line in one] == [line.keys() for line in two]
    pairs = [(a[key], b[key]) for a, b in zip(one, two, strict=True) for key in a if key != "stage"]
    return all(torch.allclose(torch.tensor(a), torch.tensor(b), rtol=0, atol=CLOSE) for a, b in pairs)


@pytest.mark.slow
def test_every_stage_is_the_same_in_two_processes() -> None:
    done = finished(torchrun(WORKER))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("local pairs")["bce apart"] > 1e-3, "fewer pairs are another loss"
    assert len(found) >= 12
    for name, apart in found.items():
        assert apart.pop("predictions", 0) == 0, name
        assert max(apart.values()) < CLOSE, (name, apart)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_every_stage_is_the_same_in_two_processes_on_a_gpu() -> None:
    done = finished(torchrun(WORKER, "cuda"))  # they share it where there is only one
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert all(apart["losses"] < 1e-3 for name, apart in found.items() if name != "local pairs"), found


@pytest.mark.slow
def test_two_processes_end_with_the_losses_and_predictions_of_one(both: Both) -> None:
    one, two = both.one, both.two
    assert close(journal(one / "metrics.jsonl"), journal(two / "metrics.jsonl"))
    assert len(set(answers(one))) > 1 and answers(one) == answers(two)
    first, second = (load_file(run / "model.safetensors") for run in (one, two))
    assert all(torch.allclose(first[name], second[name], atol=CLOSE) for name in first)
    results = [json.loads((run / "results.json").read_text()) for run in (one, two)]
    assert results[0]["systems"] == results[1]["systems"]
    about = json.loads((two / "run.json").read_text())["parts"][0]
    assert about["processes"] == 2 and "processes" not in json.loads((one / "run.json").read_text())["parts"][0]
    kept = [next(run.rglob("embedding-epoch-003.safetensors")) for run in (one, two)]
    assert torch.allclose(load_file(kept[0])["z"].float(), load_file(kept[1])["z"].float(), atol=1e-2)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for the processes in /proc")
@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.full), 1])
def test_a_killed_process_is_started_again_and_changes_nothing(
    weights: Path, both: Both, tmp_path: Path, rank: int
) -> None:
    folder, two = tmp_path / "run", both.two
    process = torchrun("-m", "autonovel", *command(weights, folder, both.seed), restarts=1)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        lines = (folder / "metrics.jsonl").read_text() if (folder / "metrics.jsonl").exists() else ""
        if '"stage": "3-joint", "epoch": 1' in lines:
            os.kill(worker(process.pid, rank), signal.SIGKILL)
            break
        time.sleep(0.005)
    done = finished(process)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, "a process that lost another one says so in a line"
    assert "3-joint rankstats-incremental: 30 steps, of which" in done.stdout
    assert len(json.loads((folder / "run.json").read_text())["parts"]) == 2
    assert journal(folder / "metrics.jsonl") == journal(two / "metrics.jsonl")
    for name in ("model.safetensors", "embedding.safetensors", "discovery.csv"):
        assert (folder / name).read_bytes() == (two / name).read_bytes(), name


def worker(parent: int, rank: int) -> int:
    """Return the process of ``rank`` that torchrun, ``parent``, has started."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            of = int((place / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if of == parent and f"RANK={rank}".encode() in (place / "environ").read_bytes().split(b"\0"):
                return int(place.name)
        except (OSError, IndexError):
            continue
    raise AssertionError(f"no process of rank {rank}")


@pytest.mark.slow
def test_predict_gives_each_file_once_and_in_order(both: Both, tmp_path: Path) -> None:
    files = tmp_path / "later"
    files.mkdir()
    pixels = digits()[::8, 0].numpy()
    for number, picture in enumerate(pixels):
        Image.fromarray(picture).save(files / f"{number:03d}.png")
    (files / "020.png").write_bytes(b"no image")
    predict_files(both.two, [str(files)], None, str(tmp_path / "alone.csv"), None, "cpu", 7, False)
    done = together("predict", both.two, files, "--batch", "7", "--device", "cpu", "--to", tmp_path / "together.csv")
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "alone.csv").read_text()
    assert rows.count("\n") == len(pixels) + 1 and "unreadable" in rows
    assert (tmp_path / "together.csv").read_text() == rows
    assert done.stderr.count("Wrote") == 1


@pytest.mark.full
def test_errors_are_told_once(weights: Path, tmp_path: Path) -> None:
    odd = together(*command(weights, tmp_path / "run", 0), "--set", "joint.labelled_per_batch=15")
    assert odd.returncode == 1  # torchrun's own, whatever its processes say
    assert odd.stderr.count("error: ") == 1
    assert "15 labelled images (labelled_per_batch), which 2 processes cannot share equally" in odd.stderr
    assert "such as 16" in odd.stderr
    assert not (tmp_path / "run").exists(), "nothing is begun that could not be finished"
    assert not any(line.startswith("[rank") for line in odd.stderr.splitlines()), "no traceback of a process"


def test_shares_make_up_the_batch() -> None:
    y = torch.tensor([0, 1, 2, 3] * 10)
    whole = {
        "merged": Merged(torch.arange(40), 12, 0, 1),
        "fixed": Fixed(torch.arange(20), torch.arange(20, 40), 4, 8, 0, 1),
        "classes": ByClass(y, 3, 12, 0, 1),
    }
    for name, sampler in whole.items():
        batches, parts = sampler.epoch(1), []
        for rank in range(4):
            ranks = Ranks(Launch(rank=rank, world=4))
            share = share_of(sampler, ranks, "2-supervised")
            assert share.steps_per_epoch == sampler.steps_per_epoch
            assert torch.equal(share.epoch(1), ranks.share(batches)), name
            parts.append(share.epoch(1))
        together = torch.stack(parts).permute(1, 2, 0).flatten(1)  # as Ranks.whole puts them
        assert torch.equal(together, batches), name
        assert share_of(sampler, ALONE, "2-supervised") is sampler


@pytest.mark.parametrize(
    ("sampler", "found"),
    [
        (Merged(torch.arange(40), 10, 0, 1), "10 images"),
        (Fixed(torch.arange(20), torch.arange(20, 40), 4, 6, 0, 1), "6 unlabelled images"),
        (ByClass(torch.tensor([0, 1, 2] * 10), 3, 9, 0, 1), "3 classes, 3 of each"),
    ],
)
def test_batches_that_cannot_be_shared_are_refused(sampler: Any, found: str) -> None:
    with pytest.raises(UsageError, match=f"{found}.* which 4 processes cannot share equally.* multiple of 4"):
        share_of(sampler, Ranks(Launch(world=4)), "2-supervised")


def test_a_sampler_without_ranks_is_refused() -> None:
    class Own:
        steps_per_epoch = 1

        def epoch(self, number: int) -> torch.Tensor:
            return torch.zeros(1, 2)

    with pytest.raises(UsageError, match="Own has no rank and world"):
        share_of(Own(), Ranks(Launch(world=2)), "3-own")


def test_alone_everything_is_as_it_is() -> None:
    x = torch.randn(6, 2, requires_grad=True)
    assert ALONE.whole(x, 3) is x
    assert torch.equal(ALONE.share(torch.arange(6)), torch.arange(6))
    assert ALONE.lead(lambda: 3) == 3 and ALONE.alone(lambda: 4) == 4 and ALONE.collect(5) == [5]
    assert ALONE.part_of(1000, 512) == range(1000)
    assert torch.equal(ALONE.one_share(2, torch.device("cpu")), torch.ones(2, 2))
    ALONE.leave()


@pytest.mark.parametrize(("n", "chunk", "world"), [(0, 512, 2), (1, 512, 3), (1030, 512, 2), (100, 1, 3), (5, 2, 4)])
def test_parts_of_a_set_are_whole_chunks_and_cover_it_once(n: int, chunk: int, world: int) -> None:
    parts = [Ranks(Launch(rank=rank, world=world)).part_of(n, chunk) for rank in range(world)]
    assert [row for part in parts for row in part] == list(range(n))
    assert all(part.start % chunk == 0 for part in parts if len(part))


def test_what_torchrun_says() -> None:
    assert launch({}) == Launch()
    assert launch({"WORLD_SIZE": "4", "RANK": "2"}) == Launch(), "only torchrun starts several"
    said = {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    here = launch(said)
    assert (here.rank, here.world, here.local_rank, here.local_world) == (3, 4, 1, 2) and here.name


def test_other_commands_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "2", "RANK": "0"}.items():
        monkeypatch.setenv(key, value)
    check_command("run")
    check_command("predict")
    with pytest.raises(UsageError, match="2 processes, and autonovel refine is done by one"):
        check_command("refine")


def test_only_the_same_torchrun_goes_on_by_itself(tmp_path: Path) -> None:
    here = Launch(world=2, name="host:1")
    assert not started_again(tmp_path, here), "nothing was begun"
    (tmp_path / "run.json").write_text(json.dumps({"parts": [{"launch": "host:1"}]}))
    assert started_again(tmp_path, here)
    assert not started_again(tmp_path, replace(here, name="host:2")), "somebody else's run is not touched"
    assert not started_again(tmp_path, Launch()), "nor is any without torchrun"
    for damaged in ("torn", "[]", '{"parts": ["x"]}', '{"parts": []}'):
        (tmp_path / "run.json").write_text(damaged)
        assert not started_again(tmp_path, here)


def test_statistics_of_whole_batches_are_for_trunks_alone() -> None:
    model = build(settings.Network(name="small", head_width=8), 1, torch.tensor([0.5]), torch.tensor([0.3]), 0)
    Supervised(settings.Supervised(), 3, 0, whole_network=True).prepare(model)
    LearnSimilarity(settings.Similarity(frozen=("stem",)), 3, 3, 0).prepare(model)
    x = torch.rand(4, 1, 8, 8)
    before, expected = set(model.state_dict()), model.eval()(x, "known")
    batch_statistics.synchronise(model)
    assert set(model.state_dict()) == before and torch.equal(model(x, "known"), expected)
    network = network_of(model)
    for trunk in (model.trunk, network.trunk):
        layers = [layer for layer in trunk.modules() if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)]
        assert len(layers) == 7 and all(isinstance(layer, torch.nn.SyncBatchNorm) for layer in layers)
    assert type(network.head.norm) is type(model.heads["known"].norm) is torch.nn.BatchNorm1d
    assert not any(p.requires_grad for p in network.trunk.blocks["stem"].parameters())


def test_fixed_statistics_everywhere(make_images: Any) -> None:
    images: ImageSet = make_images()
    model = build("small", 1, torch.tensor([0.5]), torch.tensor([0.3]), 0)
    model.trunk.freeze(("stem",), "everywhere")
    before = {name: value.clone() for name, value in model.state_dict().items() if "running" in name}
    model.train()
    model.features(images.images[:4].float() / 255)  # type: ignore[index]
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())
    assert any(p.requires_grad for p in model.trunk.blocks["block1"].parameters())
    model.trunk.freeze(("stem",), "eval")
    model.train().features(images.images[:4].float() / 255)  # type: ignore[index]
    changed = [name for name, value in before.items() if not torch.equal(model.state_dict()[name], value)]
    assert changed and not any("stem" in name for name in changed)
