"""Learning rates as a function of the step."""

from autonovel.settings import Stage


def learning_rate(s: Stage, step: int, steps_per_epoch: int) -> float:
    """Return the learning rate of ``step`` under the settings ``s``."""
    epoch = step / steps_per_epoch
    total = s.epochs * steps_per_epoch
    warm = s.warmup_epochs * steps_per_epoch
    rate = s.lr * _SHAPES[s.schedule](s, epoch, step / max(total, 1))
    return rate * min(1.0, (step + 1) / warm) if warm > 0 else rate


def _constant(s: Stage, epoch: float, done: float) -> float:
    return 1.0


def _step(s: Stage, epoch: float, done: float) -> float:
    return float(s.decay_factor ** ((int(epoch) + s.schedule_ahead) // s.decay_every))


def _multistep(s: Stage, epoch: float, done: float) -> float:
    return float(s.decay_factor ** sum(at <= int(epoch) + s.schedule_ahead for at in s.decay_at))


def _one_cycle(s: Stage, epoch: float, done: float) -> float:
    """Rise linearly to the peak, fall linearly to 0."""
    if done < s.peak_at:
        return done / s.peak_at
    return (1 - done) / max(1 - s.peak_at, 1e-9)


def _tail(s: Stage, epoch: float, done: float) -> float:
    """Hold, then fall linearly to 0 over the last share of the steps."""
    return min(1.0, (1 - done) / s.tail) if s.tail > 0 else 1.0


_SHAPES = {"constant": _constant, "step": _step, "multistep": _multistep, "one-cycle": _one_cycle, "tail": _tail}
