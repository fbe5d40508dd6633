"""A grown head that favours neither known nor new classes."""

import copy
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from autonovel.embedding import features
from autonovel.methods import rankstats
from autonovel.methods import rebalance as rebalancing
from autonovel.methods.rankstats import Joint
from autonovel.methods.rebalance import best_shift, log_odds, rebalance
from autonovel.networks import Model, heads
from every_stage import N_KNOWN, N_NEW, equal, ready, some_images, train


def scattered(centre: float, n: int, seed: int) -> torch.Tensor:
    return centre + 2 * torch.randn(n, generator=torch.Generator().manual_seed(seed))


def expected_errors(known: torch.Tensor, new: torch.Tensor, b: float, weight: float = 0.5) -> float:
    """The weighted sum of both shares, one image after another."""
    wrong = [1 / (1 + math.exp(-o - b)) for o in known.tolist()]
    missed = [1 / (1 + math.exp(o + b)) for o in new.tolist()]
    return weight * sum(wrong) / len(wrong) + (1 - weight) * sum(missed) / len(missed)


@pytest.mark.parametrize("weight", [0.5, 0.8, 0.3])
@pytest.mark.parametrize(("known", "new"), [(-6.0, -1.0), (-1.0, 8.0), (-9.0, -3.0)])
def test_no_other_shift_has_fewer_errors(known: float, new: float, weight: float) -> None:
    """However many images there are of each kind."""
    of_known, of_new = scattered(known, 300, 0), scattered(new, 40, 1)
    least = min((b / 20 for b in range(-300, 300)), key=lambda b: expected_errors(of_known, of_new, b, weight))
    found = best_shift(of_known, of_new, weight)
    assert found == pytest.approx(least, abs=0.05)
    assert expected_errors(of_known, of_new, found, weight) <= expected_errors(of_known, of_new, least, weight) + 1e-9


@pytest.mark.parametrize(("by", "n_new", "weight"), [("kinds", 6, 0.5), ("classes", 6, 0.25), ("classes", 2, 0.5)])
def test_kinds_weigh_alike_or_classes_do(by: str, n_new: int, weight: float, monkeypatch: pytest.MonkeyPatch) -> None:
    weights: list[float] = []
    monkeypatch.setattr(rebalancing, "best_shift", lambda known, new, weight: weights.append(weight) or 0.0)
    rebalance(grown(), some_images(), N_KNOWN, n_new, by)
    assert weights == [weight]


@pytest.mark.parametrize("hidden", [1, 3])
def test_known_images_among_the_unlabelled_do_not_move_it(hidden: int) -> None:
    known, new = scattered(-5.0, 200, 0), scattered(0.0, 200, 1)
    pile = torch.cat([new, *[known] * hidden])
    assert best_shift(known, pile) == pytest.approx(best_shift(known, new), abs=1e-3)


@pytest.mark.parametrize(("known", "new"), [(-8.0, -8.0), (-1.0, -1.5), (3.0, -4.0)])
def test_kinds_that_no_shift_can_part_are_left_alone(known: float, new: float) -> None:
    """As in a pile without new classes: else all images would be called new, or none."""
    for weight in (0.5, 0.8, 0.2):
        assert best_shift(scattered(known, 300, 0), scattered(new, 300, 1), weight) == 0.0


def test_kinds_that_no_shift_can_mistake_are_parted_in_the_middle() -> None:
    assert best_shift(torch.tensor([-1000.0, -900.0]), torch.tensor([500.0, 700.0])) == pytest.approx(200.0, abs=5.0)


def test_of_very_many_images_some_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    known, new = scattered(-5.0, 3000, 0), scattered(0.0, 1000, 1)
    of_all = best_shift(known, new)
    monkeypatch.setattr(rebalancing, "ENOUGH", 500)
    assert best_shift(known, new) == pytest.approx(of_all, abs=0.1)


def test_the_odds_are_those_of_all_new_classes_against_all_known_ones() -> None:
    logits = torch.tensor([[0.2, -1.0, 2.0, 0.3, 0.1]])
    p = logits.softmax(dim=1)[0]
    assert log_odds(logits, 3).item() == pytest.approx(((p[3] + p[4]) / p[:3].sum()).log().item(), abs=1e-6)


def grown(hidden: int = 0) -> Model:
    """Return a model whose grown head, of two layers if ``hidden``, parts the kinds and yet calls all images known."""
    model, stage = ready("incremental")
    stage.prepare(model)
    images = some_images()
    z = features(model, images.images)
    if hidden:
        last = heads.linear_head(hidden, N_KNOWN + N_NEW, torch.Generator().manual_seed(0))
        model.heads["known"] = heads.TwoLayerHead(model.trunk.n_features, hidden, last)
        first: torch.nn.Module = model.heads["known"].first  # type: ignore[assignment]
        z = first(z).relu()
    layer = heads.last_layer(model.heads["known"])
    with torch.no_grad():
        apart = z[images.unlabelled].mean(dim=0) - z[~images.unlabelled].mean(dim=0)
        layer.weight.zero_()
        layer.weight[N_KNOWN:] = 50 * apart / apart.norm().square()
        layer.bias.zero_()
        layer.bias[N_KNOWN:] = -200.0
    return model.eval()


def errors(model: Model) -> float:
    images = some_images()
    odds = log_odds(model.logits(features(model, images.images), "known"), N_KNOWN).detach()
    return expected_errors(odds[~images.unlabelled], odds[images.unlabelled], 0.0)


def test_fewer_errors_afterwards_and_nothing_else_has_changed() -> None:
    model = grown()
    before, wrong = copy.deepcopy(model.state_dict()), errors(model)
    rebalance(model, some_images(), N_KNOWN, N_NEW, "kinds")
    assert errors(model) < 0.5 * wrong
    after = model.state_dict()
    moved = [key for key, value in after.items() if not torch.equal(value, before[key])]
    assert moved == ["heads.known.bias"]
    shift = after[moved[0]] - before[moved[0]]
    assert torch.equal(shift[:N_KNOWN], torch.zeros(N_KNOWN))
    assert torch.allclose(shift[N_KNOWN:], shift[N_KNOWN].expand(N_NEW))


def test_the_stage_ends_with_it_where_the_setting_says_so(tmp_path: Path) -> None:
    """Its file has the head as trained: what a run that is taken up again concludes, it concludes from that."""
    plain = train(tmp_path / "plain", "incremental")
    shifted = train(tmp_path / "shifted", "rebalanced")
    assert [key for key in shifted if not torch.equal(shifted[key], plain[key])] == ["heads.known.bias"]
    kept = load_file(tmp_path / "shifted" / "stages" / "3-joint" / "model.safetensors")
    assert torch.equal(kept["heads.known.bias"], plain["heads.known.bias"])
    assert equal(train(tmp_path / "shifted", "rebalanced"), shifted)


def test_a_head_that_is_not_grown_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(rankstats, "rebalance", lambda *arguments: asked.append(arguments))
    for name, times in (("joint", 0), ("incremental", 1)):
        model, stage = ready(name, rebalance=True, rebalance_by="classes")
        assert isinstance(stage, Joint)
        stage.prepare(model)
        stage.conclude(model, some_images())
        assert len(asked) == times
    assert asked[0][2:] == (N_KNOWN, N_NEW, "classes")


def test_of_a_head_of_two_layers_the_last_one_is_shifted() -> None:
    model = grown(hidden=8)
    before = copy.deepcopy(model.state_dict())
    rebalance(model, some_images(), N_KNOWN, N_NEW, "kinds")
    moved = [key for key, value in model.state_dict().items() if not torch.equal(value, before[key])]
    assert moved == ["heads.known.last.bias"]
