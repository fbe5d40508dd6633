"""k-means on a pretrained network's own features, as a system like the others."""

from pathlib import Path

import pytest
import torch

from autonovel import networks, recipe
from autonovel.data import ImageSet
from autonovel.data.checks import check_problem
from autonovel.delivered import load_model
from autonovel.errors import UsageError
from autonovel.evaluation import accuracy
from autonovel.job import Job
from autonovel.methods.pretrained_kmeans import own_features
from autonovel.networks import Adapted
from autonovel.storage.run_folder import RunFolder
from autonovel.systems import Found, run_system
from autonovel.training.display import Silent

PHOTOS = recipe.load("photos", {"supervised.epochs": 1, "run.systems": ["kmeans-pretrained"], "run.trials": 0}).recipe


def cached_classes(n_known: int = 2, n_new: int = 3, each: int = 20, views: int = 2) -> ImageSet:
    """Return features as a pretrained network would give them: a direction per class, and noise."""
    rng = torch.Generator().manual_seed(0)
    truth = torch.arange(n_known + n_new).repeat_interleave(each)
    means = torch.randn(n_known + n_new, 1280, generator=rng).relu()
    x = (means[truth][:, None] + 0.5 * torch.randn(len(truth), views, 1280, generator=rng)).relu()
    x = torch.nn.functional.normalize(x, dim=2).half()
    names = tuple(f"k{number}" for number in range(n_known))
    return ImageSet(x, torch.where(truth < n_known, truth, -1), tuple(map(str, range(len(truth)))), names, truth)


def found_by(images: ImageSet, folder: Path, n_new: int = 3) -> Found:
    job = Job(PHOTOS, images, None, n_new, 0, torch.device("cpu"), folder, Silent())
    return run_system(job, "kmeans-pretrained", folder)


def test_it_finds_classes_that_the_features_separate_and_tells_them_from_known_ones(tmp_path: Path) -> None:
    images = cached_classes()
    found = found_by(images, tmp_path)
    assert images.truth is not None
    new = found.embedding.p_new[images.unlabelled]
    assert accuracy(images.truth[images.unlabelled].numpy(), new.argmax(dim=1).numpy()) == 1
    assert float(new.amax(dim=1).mean()) > 0.8  # confident where the classes are far apart
    joint = found.embedding.p_known
    assert joint.shape[1] == 5 and torch.equal(joint[:40].argmax(dim=1), images.y[:40])
    assert bool((joint[40:].argmax(dim=1) >= 2).all())
    # the rows of the new classes in both heads are the same, in the same order
    torch.testing.assert_close(joint[40:].argmax(dim=1) - 2, new.argmax(dim=1))


def test_the_adapter_is_left_out_of_the_delivered_model_which_can_be_read_back(tmp_path: Path) -> None:
    from autonovel import record
    from autonovel.training import checkpoint

    images = cached_classes()
    found = found_by(images, tmp_path / "work")
    assert isinstance(found.model.trunk, Adapted) and found.model.trunk.n_features == 1280
    with RunFolder.create(tmp_path / "run"):
        record.begin(tmp_path / "run", PHOTOS, 0, torch.device("cpu"), images, 3, ["test"], {})
        checkpoint.save_model(tmp_path / "run" / "model.safetensors", found.model)
    model = load_model(tmp_path / "run")
    pixels = torch.rand(2, 3, 40, 40)
    with torch.no_grad():
        assert model.features(pixels).shape == (2, 1280)
        torch.testing.assert_close(model(pixels, "known"), found.model.eval()(pixels, "known"))


def test_own_features_are_those_below_the_adapter_averaged_over_views() -> None:
    images = cached_classes(views=3)
    model = networks.build(PHOTOS.network, 3, torch.zeros(3), torch.ones(3), 0)
    assert isinstance(images.images, torch.Tensor)
    mean = images.images.float().mean(dim=1)
    torch.testing.assert_close(own_features(model, images), mean / mean.norm(dim=1, keepdim=True))
    pixels = torch.randint(0, 256, (4, 3, 40, 40), dtype=torch.uint8)
    few = ImageSet(pixels, torch.tensor([0, 1, -1, -1]), tuple("abcd"), ("x", "y"))
    assert own_features(model.eval(), few).shape == (4, 1280)
    assert model.trunk.n_features == PHOTOS.network.adapter  # the model itself is as it was


def test_it_needs_a_pretrained_network() -> None:
    demo = recipe.load("demo", {"run.systems": ["kmeans-pretrained"]}).recipe
    with pytest.raises(UsageError, match=r"pretrain\.kind is rotation"):
        check_problem(cached_classes(), 3, demo)
