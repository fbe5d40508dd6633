"""A grown head that is as often wrong about known images as about new ones."""

import copy
from pathlib import Path

import pytest
import torch

from autonovel.embedding import features
from autonovel.methods.even_errors import even_out, even_shift, log_odds
from autonovel.methods.rankstats import Joint
from autonovel.networks import Model, heads
from every_stage import N_KNOWN, N_NEW, equal, ready, some_images, train


def scattered(centre: float, n: int, seed: int) -> torch.Tensor:
    return centre + 2 * torch.randn(n, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("known", "new"), [(-6.0, -1.0), (-1.0, 8.0), (3.0, 3.0)])
def test_the_shift_has_the_least_logistic_loss_of_all(known: float, new: float) -> None:
    """Half the weight on each kind, however many images there are of it."""
    of_known, of_new = scattered(known, 300, 0), scattered(new, 40, 1)
    found = even_shift(of_known, of_new)

    def loss(b: float) -> float:
        wrong = [torch.log1p(torch.exp(o + b)).item() for o in of_known.double()]
        missed = [torch.log1p(torch.exp(-o - b)).item() for o in of_new.double()]
        return sum(wrong) / len(wrong) + sum(missed) / len(missed)

    least = min((b / 100 for b in range(-1500, 1500)), key=loss)
    assert found == pytest.approx(least, abs=0.02)
    shares = torch.sigmoid(of_known + found).mean(), torch.sigmoid(-of_new - found).mean()
    assert shares[0].item() == pytest.approx(shares[1].item(), abs=1e-5)


def test_kinds_that_no_shift_can_mistake_are_parted_in_the_middle() -> None:
    assert even_shift(torch.tensor([-1000.0, -900.0]), torch.tensor([500.0, 700.0])) == pytest.approx(200.0, abs=1.0)


def test_the_odds_are_those_of_all_new_classes_against_all_known_ones() -> None:
    logits = torch.tensor([[0.2, -1.0, 2.0, 0.3, 0.1]])
    p = logits.softmax(dim=1)[0]
    assert log_odds(logits, 3).item() == pytest.approx(((p[3] + p[4]) / p[:3].sum()).log().item(), abs=1e-6)


def grown() -> Model:
    """Return a model that takes nearly all images for known ones."""
    model, stage = ready("incremental")
    stage.prepare(model)
    with torch.no_grad():
        heads.last_layer(model.heads["known"]).bias[N_KNOWN:] -= 5
    return model


def shares(model: Model) -> tuple[float, float]:
    """Return the expected shares of known images taken for new, and of unlabelled ones taken for known."""
    images = some_images()
    odds = log_odds(model.logits(features(model, images.images), "known"), N_KNOWN)
    wrong, missed = torch.sigmoid(odds[~images.unlabelled]), torch.sigmoid(-odds[images.unlabelled])
    return wrong.mean().item(), missed.mean().item()


def test_both_errors_weigh_alike_afterwards_and_nothing_else_has_changed() -> None:
    model = grown()
    before = copy.deepcopy(model.state_dict())
    wrong, missed = shares(model)
    assert missed > wrong + 0.5
    even_out(model, some_images(), N_KNOWN)
    wrong, missed = shares(model)
    assert wrong == pytest.approx(missed, abs=1e-4)
    after = model.state_dict()
    moved = [key for key, value in after.items() if not torch.equal(value, before[key])]
    assert moved == ["heads.known.bias"]
    shift = after[moved[0]] - before[moved[0]]
    assert torch.equal(shift[:N_KNOWN], torch.zeros(N_KNOWN))
    assert torch.allclose(shift[N_KNOWN:], shift[N_KNOWN].expand(N_NEW))


def test_the_stage_ends_with_it_where_the_setting_says_so(tmp_path: Path) -> None:
    """Its file has the head as trained, so that a run taken up again shifts it once, not twice."""
    plain = train(tmp_path / "plain", "incremental")
    even = train(tmp_path / "even", "even errors")
    again = train(tmp_path / "even", "even errors")
    assert equal(even, again)
    assert [key for key in even if not torch.equal(even[key], plain[key])] == ["heads.known.bias"]


def test_a_head_that_is_not_grown_has_nothing_to_shift() -> None:
    model, stage = ready("joint", even_errors=True)
    assert isinstance(stage, Joint) and not stage.incremental
    stage.prepare(model)
    before = copy.deepcopy(model.state_dict())
    stage.conclude(model, some_images())
    assert equal(model.state_dict(), before)
