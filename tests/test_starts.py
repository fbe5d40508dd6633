"""Several starts of the head of the new classes: what each learns, what the features learn, which one stays."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from autonovel import draws
from autonovel.methods.new_heads import outputs, tightest
from autonovel.methods.rankstats import Joint
from autonovel.networks import heads
from autonovel.networks.candidates import Candidates
from autonovel.objectives import consistency
from autonovel.settings import Joint as Settings
from every_stage import equal, ready, some_images, train

N, D, C = 10, 6, 3


def three(width: int = 0) -> Candidates:
    return Candidates([heads.class_head(D, C, width, draws.generator(5, number)) for number in range(3)])


def views() -> tuple[Tensor, Tensor]:
    rng = draws.generator(7)
    z, z_hat = torch.randn(2, N, D, generator=rng)
    return z.requires_grad_(), z_hat.requires_grad_()


def unlike(p: Tensor, p_hat: Tensor) -> Tensor:
    return consistency(p, p_hat) + (p * p_hat).sum(dim=1).mean()


class Holder(nn.Module):
    """As much of a model as the heads are asked for."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.heads = nn.ModuleDict({"new": head})


def alone(head: nn.Module) -> tuple[float, list[Tensor], Tensor]:
    """Return the loss of one head, its gradients, and that of the features, when there is no other."""
    head.zero_grad()
    z, z_hat = views()
    loss = outputs(Holder(head), z, z_hat).over(unlike)  # type: ignore[arg-type]
    loss.backward()
    assert z.grad is not None
    return loss.item(), [p.grad.clone() for p in head.parameters() if p.grad is not None], z.grad


@pytest.mark.parametrize("width", [0, 4])
@pytest.mark.parametrize("chosen", [None, 1])
def test_each_start_learns_as_if_alone_and_the_features_from_their_share(width: int, chosen: int | None) -> None:
    many = three(width)
    apart = [alone(head) for head in many.starts]
    if chosen is not None:
        many.choose(chosen)
    loss, gradients, of_features = alone(many)
    shares = [1 / 3] * 3 if chosen is None else [float(number == chosen) for number in range(3)]
    assert loss == pytest.approx(sum(share * one[0] for share, one in zip(shares, apart, strict=True)), rel=1e-5)
    learning = [1.0 if chosen is None or number == chosen else 0.0 for number in range(3)]
    wanted = [learns * g for learns, (_, own, _) in zip(learning, apart, strict=True) for g in own]
    for found, own in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(found, own, rtol=1e-4, atol=1e-7)
    mean = sum(share * one[2] for share, one in zip(shares, apart, strict=True))
    torch.testing.assert_close(of_features, mean, rtol=1e-4, atol=1e-7)


def test_the_chosen_start_speaks_for_all() -> None:
    many, (z, z_hat) = three(), views()
    assert not many.chosen and many.best is many.starts[0]
    assert torch.equal(many(z), many.starts[0](z))
    assert outputs(Holder(many), z, z_hat).decided == 0  # type: ignore[arg-type]
    many.choose(2)
    assert many.chosen and many.best is many.starts[2]
    assert torch.equal(many(z), many.starts[2](z))
    said = outputs(Holder(many), z, z_hat)  # type: ignore[arg-type]
    assert said.decided == 1
    torch.testing.assert_close(said.logits, many.starts[2](z))


def test_a_start_that_was_not_chosen_cannot_spoil_the_one_that_was() -> None:
    many, (z, z_hat) = three(), views()
    many.choose(1)
    with torch.no_grad():
        next(many.starts[0].parameters()).fill_(torch.nan)
    said = outputs(Holder(many), z, z_hat)  # type: ignore[arg-type]
    loss = said.over(unlike)
    loss.backward()
    assert z.grad is not None
    assert torch.isfinite(loss) and torch.isfinite(z.grad).all() and torch.isfinite(said.logits).all()


def test_the_tightest_classes_have_the_least_squares_around_their_means() -> None:
    z = torch.randn(40, D, generator=draws.generator(9)) + 3 * torch.eye(D)[torch.arange(40) % C]
    for seed in range(20):
        many = Candidates([heads.class_head(D, C, 0, draws.generator(seed, number)) for number in range(4)])
        squares = []
        for head in many.starts:
            y = head(z).argmax(dim=1)
            squares.append(sum(float((z[y == c] - z[y == c].mean(dim=0)).square().sum()) for c in y.unique()))
        assert tightest(many, z) == squares.index(min(squares))


def test_one_head_stays_chosen_on_the_way_and_the_first_start_is_that_of_a_head_alone() -> None:
    model, stage = ready("starts", epochs=4)
    assert isinstance(stage, Joint)
    stage.prepare(model)
    many = model.heads["new"]
    assert isinstance(many, Candidates) and len(many.starts) == 3
    only, other = ready("joint", epochs=4)
    other.prepare(only)
    assert equal(many.starts[0].state_dict(), only.heads["new"].state_dict())
    assert not equal(many.starts[0].state_dict(), many.starts[1].state_dict())
    for epoch in range(2):
        stage.before_epoch(model, some_images(), epoch)
        assert not many.chosen
    stage.before_epoch(model, some_images(), 2)
    assert many.chosen
    best = many.best
    stage.conclude(model, some_images())
    assert model.heads["new"] is best


def test_without_time_for_it_the_choice_comes_at_the_end() -> None:
    model, stage = ready("starts", epochs=1)
    assert isinstance(stage, Joint)
    stage.prepare(model)
    stage.before_epoch(model, some_images(), 0)
    stage.conclude(model, some_images())
    assert isinstance(model.heads["new"], heads.ClassHead)


def test_a_finished_stage_is_taken_up_with_the_same_head(tmp_path: Path) -> None:
    made = train(tmp_path, "starts", epochs=3)
    assert not any("starts" in name for name in made)
    assert equal(made, train(tmp_path, "starts", epochs=3))


@pytest.mark.parametrize(
    ("per_class", "n_new", "group"),
    [(2.5, 20, 43), (2.5, 26, 64), (2.5, 47, 128), (1.25, 26, 32), (0.01, 5, 1), (100, 5, 128), (0, 5, 0)],
)
def test_groups_grow_with_the_number_of_new_classes(per_class: float, n_new: int, group: int) -> None:
    settings = Settings(batch_size=196, labelled_per_batch=68, group_per_class=per_class)
    assert Joint(settings, 10, n_new, 0).group == group
    merged = replace(settings, batch="merged", labelled_per_batch=0)
    assert Joint(merged, 10, n_new, 0).group == (round(max(1, per_class * n_new)) if per_class else 0)


def test_a_group_in_images_goes_before_one_in_images_a_class() -> None:
    assert Joint(Settings(group=8, group_per_class=1.5), 10, 20, 0).group == 8
