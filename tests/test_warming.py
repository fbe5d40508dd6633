"""A GPU and its compiler are made ready while images are read."""

import threading

import pytest
import torch

from autonovel import recipe
from autonovel.training import warming

CUDA = torch.device("cuda")


def warmers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "warming"]


def test_a_cpu_needs_none() -> None:
    with warming.warming(torch.device("cpu"), compiling=True):
        assert not warmers()


def test_it_works_beside_and_is_done_before_what_comes_after(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, done = threading.Event(), []
    monkeypatch.setattr(warming, "_warm", lambda device, compiling: done.append((reading.wait(30), device, compiling)))
    with warming.warming(CUDA, compiling=True):
        assert not done
        reading.set()
    assert done == [(True, CUDA, True)]


def test_an_error_while_reading_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = threading.Event()
    monkeypatch.setattr(warming, "_warm", lambda device, compiling: hanging.wait(30))
    with pytest.raises(OSError, match="damaged"), warming.warming(CUDA, compiling=False):
        raise OSError("damaged")
    assert [thread.daemon for thread in warmers()] == [True]
    hanging.set()


@pytest.mark.skipif(torch.cuda.is_available(), reason="nothing fails here")
def test_what_cannot_be_made_ready_is_left_to_training() -> None:
    with warming.warming(CUDA, compiling=True):
        pass
    assert not warmers()


def test_the_compiler_is_for_recipes_that_compile() -> None:
    assert warming.compiles(recipe.load("svhn-fast", []).recipe)
    assert not warming.compiles(recipe.load("svhn-fast", ["pretrain.compile=false"]).recipe)
    assert not warming.compiles(recipe.load("svhn-fast", ["run.cuda_graphs=false"]).recipe)
