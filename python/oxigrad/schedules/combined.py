"""Schedules composed of others: joined, held for several steps, clipped; and common schedules built from these."""

import bisect
import dataclasses
import math
from collections.abc import Callable, Sequence

from oxigrad import xp
from oxigrad._typing import Array
from oxigrad.schedules.base import Schedule, Term, number_at, term, value_at
from oxigrad.schedules.curves import cosine, exponential, inverse_power, linear, one_minus_sqrt
from oxigrad.schedules.numbers import count_steps, finite, number, numbers, positive

__all__ = [
    "clip",
    "cooldown",
    "inverse_time",
    "join",
    "multistep",
    "noam",
    "one_cycle",
    "piecewise",
    "rsqrt",
    "staircase",
    "step",
    "warmup",
    "warmup_cosine",
    "wsd",
]


@dataclasses.dataclass(frozen=True)
class join(Schedule):
    """Schedules in sequence: at each of the ascending ``boundaries`` the next one starts, at its own step 0.

    Args:
        schedules: schedules or numbers, in their order.
        boundaries: ascending steps at which the next schedule starts.

    The schedules may be numbers and any functions of the step. For a scalar step only the schedule of that step is
    called. For an array of steps all are called, each with steps within its own range.

    >>> schedule = join((0.5, linear(1.0, 0.0, 10)), (3,))
    >>> schedule(2), schedule(3), schedule(8)
    (0.5, 1.0, 0.5)
    """

    schedules: tuple[Term, ...]
    boundaries: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.schedules) != len(self.boundaries) + 1 or list(self.boundaries) != sorted(set(self.boundaries)):
            raise ValueError("join: expected ascending boundaries, and one more schedule than boundaries")
        if self.boundaries and not 0 <= self.boundaries[0] <= self.boundaries[-1] < math.inf:
            raise ValueError(f"boundaries is {self.boundaries}: expected finite, non-negative steps")

    def at(self, step: Array) -> Array:
        starts = (0, *self.boundaries)
        if isinstance(step, (int, float)):
            which = bisect.bisect_right(self.boundaries, step)
            return value_at(self.schedules[which], step - starts[which])
        value = None
        for schedule, start, end in zip(self.schedules, starts, (*self.boundaries, None), strict=True):
            since = step - start if value is None else xp.maximum(step - start, 0.0)
            part = value_at(schedule, since if end is None else xp.minimum(since, end - start))
            part = part + 0.0 * since if isinstance(part, (int, float)) else part  # in the dtype of the steps
            value = part if value is None else xp.where(step < start, value, part)
        return value


@dataclasses.dataclass(frozen=True)
class staircase(Schedule, steps="every"):
    """``term(floor(step / every))``: each value of the schedule ``term`` is held for ``every`` steps.

    Args:
        term: schedule or number of which values are held.
        every: number of steps for which a value is held.

    With ``every`` the number of batches in an epoch, ``term`` is a function of the epoch.

    >>> schedule = staircase(linear(1.0, 0.0, 4), every=100)
    >>> schedule(99), schedule(100), schedule(399), schedule(400)
    (1.0, 0.75, 0.25, 0.0)
    """

    term: Term
    every: float

    def at(self, step: Array) -> Array:
        count = step / self.every
        count = math.floor(count) if isinstance(step, (int, float)) else xp.floor(count)
        return value_at(self.term, count)


@dataclasses.dataclass(frozen=True)
class clip(Schedule, infinite="minimum maximum"):
    """A schedule clipped to ``[minimum, maximum]``; None means no bound.

    Args:
        term: schedule or number whose values are clipped.
        minimum: lower bound of the values; None has no bound.
        maximum: upper bound of the values; None has no bound.

    >>> schedule = clip(linear(1.0, 0.0, 10), minimum=0.25)
    >>> schedule(5), schedule(9)
    (0.5, 0.25)
    """

    term: Term
    minimum: float | None = None
    maximum: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ValueError(f"minimum is {self.minimum}: expected at most maximum, {self.maximum}")

    def at(self, step: Array) -> Array:
        value = value_at(self.term, step)
        value = value if self.minimum is None else xp.maximum(value, self.minimum)
        return value if self.maximum is None else xp.minimum(value, self.maximum)


# --- interpolation ----------------------------------------------------------------------------------------------------

_INTERPOLATIONS: dict[str, Callable[[float, float, float], Schedule]] = {
    "linear": linear,
    "cosine": lambda initial, final, steps: cosine(initial, steps, final),
    "sqrt": lambda initial, final, steps: one_minus_sqrt(initial, steps, final),
}


def _between(interpolation: str, initial: float, final: float, steps: float) -> Schedule:
    if interpolation not in _INTERPOLATIONS:
        raise ValueError(f"interpolation is {interpolation!r}: expected one of {', '.join(_INTERPOLATIONS)}")
    return _INTERPOLATIONS[interpolation](initial, final, steps)


def piecewise(values: Sequence[float], boundaries: Sequence[float], interpolation: str = "constant") -> Schedule:
    """Interpolation of ``values``: the first at step 0, each other one at its boundary, and the last from then on.

    Args:
        values: values at step 0 and at each boundary.
        boundaries: ascending steps, one fewer than values.
        interpolation: curve between values: "constant", "linear" or "cosine".

    There is one more value than boundaries. ``interpolation`` between them is "constant", "linear" or "cosine".

    optax's ``boundaries_and_scales`` holds factors relative to the previous value; ``values`` holds the values.

    >>> schedule = piecewise((0.0, 1.0, 0.5), (10, 20), "linear")
    >>> schedule(0), schedule(5), schedule(10), schedule(15), schedule(30)
    (0.0, 0.5, 1.0, 0.75, 0.5)
    """
    values, boundaries = numbers("values", values), numbers("boundaries", boundaries)
    if len(values) != len(boundaries) + 1:
        raise ValueError(
            f"found {len(values)} values for {len(boundaries)} boundaries: expected one more value than boundaries"
        )
    if interpolation != "constant" and interpolation not in _INTERPOLATIONS:
        names = ", ".join(("constant", *_INTERPOLATIONS))
        raise ValueError(f"interpolation is {interpolation!r}: expected one of {names}")
    if interpolation == "constant":
        return join(tuple(values), tuple(boundaries))
    knots = zip((0, *boundaries), boundaries, values, values[1:], strict=False)
    pieces = [_between(interpolation, initial, final, end - start) for start, end, initial, final in knots]
    return join((*pieces, values[-1]), tuple(boundaries))


def _value(schedule: Term, step: float, whose: str) -> Array:
    """The value of the argument ``schedule`` of a composition at a step."""
    try:
        schedule = term(schedule)
    except TypeError as error:
        raise TypeError(f"{whose}: schedule: {error}") from None
    value = number_at(schedule, step)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{whose}: schedule is {value} at step {step}: expected a finite number")
    return value


def warmup(schedule: Term, steps: float, initial: float = 0.0, interpolation: str = "linear") -> Schedule:
    """From ``initial`` to the first value of a schedule in ``steps`` steps, then that schedule from its own step 0.

    Args:
        schedule: schedule or number after the warm-up.
        steps: number of steps of the warm-up.
        initial: value at step 0, where the schedule starts.
        interpolation: curve between the two values: "linear", "cosine" or "sqrt".

    ``linear(0.0, 1.0, steps) * schedule`` is the other common warm-up, during which the schedule already advances.

    >>> schedule = warmup(linear(1.0, 0.0, 10), 4)
    >>> schedule(0), schedule(2), schedule(4), schedule(9)
    (0.0, 0.5, 1.0, 0.5)
    """
    count_steps(steps=steps)
    finite(initial=initial)
    return join((_between(interpolation, initial, _value(schedule, 0, "warmup"), steps), schedule), (steps,))


def cooldown(schedule: Term, start: float, steps: float, final: float = 0.0, interpolation: str = "linear") -> Schedule:
    """A schedule up to the step ``start``, then a decay to ``final`` over ``steps`` steps, then ``final``.

    Args:
        schedule: schedule or number before the cooldown.
        start: step at which the cooldown begins.
        steps: number of steps of the cooldown.
        final: value from the end of the schedule on.
        interpolation: curve between the two values: "linear", "cosine" or "sqrt".

    The decay starts from the value of the schedule at ``start``. ``interpolation`` is "linear", "cosine", or "sqrt"
    (`one_minus_sqrt`). With "cosine" it is torch's ``SWALR`` from its first step on (Izmailov et al. 2018).

    >>> schedule = cooldown(0.5, start=100, steps=10)
    >>> schedule(0), schedule(100), schedule(105), schedule(110)
    (0.5, 0.5, 0.25, 0.0)
    """
    count_steps(start=start, steps=steps)
    finite(final=final)
    return join((schedule, _between(interpolation, _value(schedule, start, "cooldown"), final, steps)), (start,))


# --- common schedules -------------------------------------------------------------------------------------------------


def step(initial: float, every: float, factor: float = 0.1) -> Schedule:
    """``initial``, multiplied by ``factor`` after every ``every`` steps.

    Args:
        initial: value at step 0, where the schedule starts.
        every: number of steps between two reductions.
        factor: factor of each reduction.

    >>> schedule = step(1.0, every=30, factor=0.5)
    >>> schedule(29), schedule(30), schedule(60)
    (1.0, 0.5, 0.25)
    """
    finite(initial=initial)
    positive(factor=factor)
    return staircase(exponential(initial, factor), every)


def multistep(initial: float, milestones: Sequence[float], factor: float = 0.1) -> Schedule:
    """``initial``, multiplied by ``factor`` at each of the ascending milestones; repeated ones count repeatedly.

    Args:
        initial: value at step 0, where the schedule starts.
        milestones: ascending steps at which the value is multiplied.
        factor: factor at each milestone.

    >>> schedule = multistep(1.0, (30, 80), factor=0.5)
    >>> schedule(29), schedule(30), schedule(80)
    (1.0, 0.5, 0.25)
    """
    milestones = numbers("milestones", milestones)
    finite(initial=initial, factor=factor)
    if milestones != sorted(milestones):
        raise ValueError(f"milestones is {milestones}: expected ascending steps")
    counts = {milestone: count for count, milestone in enumerate(milestones, 1)}
    return piecewise([initial, *(initial * factor**count for count in counts.values())], list(counts))


def inverse_time(initial: float, rate: float, steps: float = 1) -> Schedule:
    """``initial / (1 + rate * step / steps)``, as Keras' ``InverseTimeDecay``: `inverse_power` with the power 1.

    Args:
        initial: value at step 0, where the schedule starts.
        rate: speed of the decay: the share lost in the first ``steps`` steps, roughly.
        steps: number of steps to which ``rate`` refers.

    >>> schedule = inverse_time(1.0, rate=0.5, steps=10)
    >>> schedule(0), schedule(20)
    (1.0, 0.5)
    """
    finite(initial=initial)
    positive(rate=rate)
    count_steps(steps=steps)
    return inverse_power(initial, rate / steps)


def rsqrt(peak: float, warmup: float) -> Schedule:
    """Linear from 0 to ``peak`` over the first ``warmup`` steps, then ``peak * sqrt(warmup / step)``.

    Args:
        peak: largest value, at the end of the warm-up.
        warmup: number of steps of the linear warm-up.

    >>> schedule = rsqrt(1.0, 100)
    >>> schedule(0), schedule(50), schedule(100), schedule(400)
    (0.0, 0.5, 1.0, 0.5)
    """
    finite(peak=peak)
    count_steps(warmup=warmup)
    return join((linear(0.0, peak, warmup), inverse_power(peak, 1.0 / warmup, 0.5)), (warmup,))


def noam(width: float, warmup: float, scale: float = 1.0) -> Schedule:
    """The schedule of Vaswani et al. 2017: ``scale * width ** -0.5 * min(n ** -0.5, n * warmup ** -1.5)``.

    Args:
        width: width of the model, ``d_model`` in the paper.
        warmup: number of steps of the linear warm-up.
        scale: factor of all values.

    ``n`` is ``step + 1``. The maximum, ``scale / sqrt(width * warmup)``, is at step ``warmup - 1``.

    >>> schedule = noam(512, 4000)
    >>> round(schedule(0), 9), round(schedule(3999), 9), round(schedule(15999), 9)
    (1.75e-07, 0.000698771, 0.000349386)
    """
    finite(scale=scale)
    positive(width=width)
    count_steps(warmup=warmup)
    peak = scale / math.sqrt(width * warmup)
    decay = inverse_power(peak, 1.0 / warmup, 0.5)
    return decay if warmup == 1 else join((linear(peak / warmup, peak, warmup - 1), decay), (warmup - 1,))


def warmup_cosine(
    peak: float, warmup: float, steps: float, final: float = 0.0, initial: float = 0.0, power: float = 1.0
) -> Schedule:
    """Linear from ``initial`` to ``peak`` over ``warmup`` steps, then `cosine` to ``final`` at step ``steps``.

    Args:
        peak: largest value, at the end of the warm-up.
        warmup: number of steps of the linear warm-up.
        steps: step at which the final value is reached.
        final: value from the end of the schedule on.
        initial: value at step 0, where the schedule starts.
        power: exponent of the cosine wave.

    >>> schedule = warmup_cosine(0.1, warmup=10, steps=110)
    >>> schedule(0), schedule(10), round(schedule(60), 6), schedule(110)
    (0.0, 0.1, 0.05, 0.0)
    """
    finite(peak=peak, final=final, initial=initial)
    positive(power=power)
    count_steps(warmup=warmup, steps=steps)
    if not steps > warmup:
        raise ValueError(f"steps is {steps}: expected more than warmup, {warmup}")
    return join((linear(initial, peak, warmup), cosine(peak, steps - warmup, final, power)), (warmup,))


def one_cycle(
    peak: float,
    steps: float,
    warmup: float | None = None,
    back: float | None = None,
    initial: float | None = None,
    final: float | None = None,
    interpolation: str = "cosine",
) -> Schedule:
    """From ``initial`` up to ``peak`` at step ``warmup``, then down to ``final`` at step ``steps``.

    Args:
        peak: largest value, at the end of the warm-up.
        steps: step at which the final value is reached.
        warmup: number of steps up to the peak; by default 0.3 of all.
        back: step at which the value is ``initial`` again, for three phases; None has two.
        initial: value at step 0; by default ``peak / 25``.
        final: value at the end; by default ``initial / 10000``.
        interpolation: curve between the two values: "linear", "cosine" or "sqrt".

    Smith and Topin 2018. With ``back`` there are three phases: the value is ``initial`` again at that step. Defaults
    are torch's and optax's: ``warmup`` is 0.3 of the steps, ``initial`` is ``peak / 25``, ``final`` is
    ``initial / 10000``.

    torch's ``OneCycleLR(total_steps=n)`` is ``steps=n - 1``, ``warmup=pct_start * n - 1``, and ``back=2 * warmup`` for
    ``three_phase``. optax's is ``steps=n``, ``warmup=int(pct_start * n)``, and, if linear, ``back=int(pct_final * n)``.
    torch cycles the momentum in the opposite direction: ``one_cycle(0.85, steps, warmup, initial=0.95, final=0.95)``.

    >>> schedule = one_cycle(1.0, 100, interpolation="linear")
    >>> schedule(0), schedule(30), round(schedule(65), 6), schedule(100)
    (0.04, 1.0, 0.500002, 4e-06)
    """
    count_steps(steps=steps)
    optional = {"warmup": warmup, "back": back, "initial": initial, "final": final}
    finite(peak=peak, **{name: value for name, value in optional.items() if value is not None})
    warmup = 0.3 * steps if warmup is None else warmup
    initial = peak / 25 if initial is None else initial
    final = initial / 1e4 if final is None else final
    values, boundaries = [initial, peak, initial, final], [warmup, back, steps]
    if back is None:
        del values[2], boundaries[1]
    boundaries = [number(end) for end in boundaries]
    ascending = [0, *boundaries]
    if ascending != sorted(set(ascending)):
        raise ValueError(f"one_cycle: the phases end at steps {boundaries}: expected ascending steps from 0")
    return piecewise(values, boundaries, interpolation)


def wsd(
    peak: float, warmup: float, stable: float, decay: float, final: float = 0.0, interpolation: str = "linear"
) -> Schedule:
    """Warm-up, stable, decay: ``warmup`` steps up from 0, ``stable`` steps at ``peak``, ``decay`` steps to ``final``.

    Args:
        peak: value of the stable phase.
        warmup: number of steps of the linear warm-up.
        stable: number of steps at the peak.
        decay: number of steps of the decay.
        final: value from the end of the schedule on.
        interpolation: curve between the two values: "linear", "cosine" or "sqrt".

    See Hu et al. 2024. The decay is "linear", "cosine" or "sqrt" (`one_minus_sqrt`).

    >>> schedule = wsd(1.0, warmup=10, stable=80, decay=10)
    >>> schedule(5), schedule(10), schedule(90), schedule(95), schedule(100)
    (0.5, 1.0, 1.0, 0.5, 0.0)
    """
    finite(peak=peak, final=final)
    count_steps(warmup=warmup, stable=stable, decay=decay)
    end = warmup + stable
    return join((linear(0.0, peak, warmup), peak, _between(interpolation, peak, final, decay)), (warmup, end))
