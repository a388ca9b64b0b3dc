"""Schedules with a closed formula, each written out: a step calls no other function for one."""

import dataclasses
import math

from oxigrad import xp
from oxigrad._typing import Array
from oxigrad.schedules.base import Schedule

__all__ = [
    "constant",
    "cosine",
    "cosine_restarts",
    "cyclic",
    "exponential",
    "inverse_power",
    "linear",
    "one_minus_sqrt",
    "polynomial",
    "rex",
]


def _power(base: float, exponent: Array) -> Array:
    """``base ** exponent`` for a positive base: infinite on overflow, as for arrays, where Python's numbers raise."""
    try:
        return base**exponent
    except OverflowError:
        return math.inf


@dataclasses.dataclass(frozen=True)
class constant(Schedule, infinite="value"):
    """The constant ``value``.

    Args:
        value: value of the schedule at every step.

    >>> constant(0.1)(1000)
    0.1
    """

    value: float

    def at(self, step: Array) -> Array:
        return self.value


# --- decay to a final value -------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class linear(Schedule, steps="steps"):
    """From ``initial`` to ``final`` over ``steps`` steps, then ``final``.

    Args:
        initial: value at step 0, where the schedule starts.
        final: value from the end of the schedule on.
        steps: number of steps until the final value is reached.

    >>> schedule = linear(1.0, 0.0, 4)
    >>> schedule(0), schedule(1), schedule(4), schedule(9)
    (1.0, 0.75, 0.0, 0.0)
    """

    initial: float
    final: float
    steps: float

    def at(self, step: Array) -> Array:
        progress = xp.minimum(1.0, xp.maximum(0.0, step / self.steps))
        return self.initial * (1.0 - progress) + self.final * progress


@dataclasses.dataclass(frozen=True)
class polynomial(Schedule, positive="power", steps="steps"):
    """``final + (initial - final) * (1 - step / steps) ** power`` for ``steps`` steps, then ``final``.

    Args:
        initial: value at step 0, where the schedule starts.
        steps: number of steps until the final value is reached.
        final: value from the end of the schedule on.
        power: exponent of the remaining share; 1 is linear.

    >>> schedule = polynomial(1.0, 10, power=2.0)
    >>> schedule(0), schedule(5), schedule(10)
    (1.0, 0.25, 0.0)
    """

    initial: float
    steps: float
    final: float = 0.0
    power: float = 1.0

    def at(self, step: Array) -> Array:
        share = (1.0 - xp.minimum(1.0, xp.maximum(0.0, step / self.steps))) ** self.power
        return self.initial * share + self.final * (1.0 - share)


@dataclasses.dataclass(frozen=True)
class cosine(Schedule, positive="power", steps="steps"):
    """Half a cosine wave from ``initial`` to ``final`` over ``steps`` steps, then ``final``.

    Args:
        initial: value at step 0, where the schedule starts.
        steps: number of steps until the final value is reached.
        final: value from the end of the schedule on.
        power: exponent of the cosine wave; 1 is the plain wave.

    Loshchilov and Hutter 2017. The value is ``final + (initial - final) * (0.5 + 0.5 * cos(pi * step / steps)) **
    power``. optax and Keras define the final value as a fraction ``alpha`` of the initial one. torch's
    ``CosineAnnealingLR`` increases again after ``T_max`` steps, as ``join((cosine(a, n, b), cosine(b, n, a)), (n,))``
    does.

    >>> schedule = cosine(2.0, 10, final=1.0)
    >>> schedule(0), round(schedule(5), 6), schedule(10), schedule(11)
    (2.0, 1.5, 1.0, 1.0)
    """

    initial: float
    steps: float
    final: float = 0.0
    power: float = 1.0

    def at(self, step: Array) -> Array:
        share = 0.5 * (1.0 + xp.cos(math.pi * xp.minimum(1.0, xp.maximum(0.0, step / self.steps))))
        share = share if self.power == 1 else share**self.power
        return self.initial * share + self.final * (1.0 - share)


@dataclasses.dataclass(frozen=True)
class one_minus_sqrt(Schedule, steps="steps"):
    """``final + (initial - final) * (1 - sqrt(step / steps))``, then ``final``: the cooldown of Hägele et al. 2024.

    Args:
        initial: value at step 0, where the schedule starts.
        steps: number of steps until the final value is reached.
        final: value from the end of the schedule on.

    >>> schedule = one_minus_sqrt(1.0, 100)
    >>> schedule(0), schedule(25), schedule(100)
    (1.0, 0.5, 0.0)
    """

    initial: float
    steps: float
    final: float = 0.0

    def at(self, step: Array) -> Array:
        share = 1.0 - xp.sqrt(xp.minimum(1.0, xp.maximum(0.0, step / self.steps)))
        return self.initial * share + self.final * (1.0 - share)


@dataclasses.dataclass(frozen=True)
class rex(Schedule, steps="steps"):
    """``final + (initial - final) * (1 - x) / (1 - beta * x)`` with ``x = step / steps``, then ``final``.

    Args:
        initial: value at step 0, where the schedule starts.
        steps: number of steps until the final value is reached.
        final: value from the end of the schedule on.
        beta: shape of the curve in [0, 1); larger values decay later.

    Chen et al. 2021 use ``beta=0.5``, which is ``(1 - x) / (1/2 + (1 - x) / 2)``. A ``beta`` of 0 is linear, and larger
    values decay later.

    >>> schedule = rex(1.0, 10)
    >>> schedule(0), round(schedule(5), 6), schedule(10)
    (1.0, 0.666667, 0.0)
    """

    initial: float
    steps: float
    final: float = 0.0
    beta: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.beta < 1:
            raise ValueError(f"beta is {self.beta}: expected a number in [0, 1)")

    def at(self, step: Array) -> Array:
        progress = xp.minimum(1.0, xp.maximum(0.0, step / self.steps))
        share = (1.0 - progress) / (1.0 - self.beta * progress)
        return self.initial * share + self.final * (1.0 - share)


# --- decay without end ------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class exponential(Schedule, positive="rate", steps="steps"):
    """``initial * rate ** (step / steps)``.

    Args:
        initial: value at step 0, where the schedule starts.
        rate: factor by which the value falls in ``steps`` steps.
        steps: number of steps to which ``rate`` refers.

    For optax's ``end_value``, use `clip`; for ``staircase=True`` of optax and Keras, use `staircase`:
    ``staircase(exponential(initial, rate), steps)``.

    >>> schedule = exponential(0.1, 0.5, steps=10)
    >>> schedule(0), schedule(10), schedule(20)
    (0.1, 0.05, 0.025)
    """

    initial: float
    rate: float
    steps: float = 1

    def at(self, step: Array) -> Array:
        return self.initial * _power(self.rate, step / self.steps)


@dataclasses.dataclass(frozen=True)
class inverse_power(Schedule, positive="gamma"):
    """``initial / (1 + gamma * (step + offset)) ** power`` (Bottou 2012).

    Args:
        initial: value at step 0, where the schedule starts.
        gamma: speed of the decay in one step.
        power: exponent of the decay.
        offset: number of steps that are added to the step.

    torch's ``ASGD`` uses gamma = lambd * lr and power = alpha. For steps counted from 1, as in swift-apis' ``lr / (1 +
    decay * step)``, set ``offset=1``.

    >>> schedule = inverse_power(0.1, gamma=0.5, power=1.0)
    >>> schedule(0), schedule(2), schedule(18)
    (0.1, 0.05, 0.01)
    """

    initial: float
    gamma: float
    power: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1.0 + self.gamma * self.offset > 0:
            raise ValueError(f"offset is {self.offset}: expected 1 + gamma * offset to be positive")

    def at(self, step: Array) -> Array:
        return self.initial / (1.0 + self.gamma * (step + self.offset)) ** self.power


# --- cycles -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class cosine_restarts(Schedule, positive="decay", steps="steps"):
    """`cosine` from ``initial`` to ``final``, restarted periodically.

    Args:
        initial: value at step 0, where the schedule starts.
        steps: number of steps of the first cycle.
        growth: factor of the length of each further cycle.
        final: value at the end of each cycle.
        decay: factor of the height of each further cycle.

    SGDR: Loshchilov and Hutter 2017. The first cycle takes ``steps`` steps; each further one is ``growth`` times longer
    (torch's ``T_mult``, Keras' ``t_mul``). Its height above ``final`` is multiplied by ``decay`` (Keras' ``m_mul``; its
    cycles end at ``alpha * initial``).

    >>> schedule = cosine_restarts(1.0, 10, growth=2)
    >>> [round(schedule(step), 6) for step in (0, 5, 10, 20, 30)]
    [1.0, 0.5, 1.0, 0.5, 1.0]
    """

    initial: float
    steps: float
    growth: float = 1.0
    final: float = 0.0
    decay: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.growth >= 1:
            raise ValueError(f"growth is {self.growth}: expected at least 1")

    def _start(self, wave: Array) -> Array:
        """The first step of a cycle: the sum of the lengths of the cycles before it."""
        if self.growth == 1:
            return self.steps * wave
        return self.steps * (self.growth**wave - 1.0) / (self.growth - 1.0)

    def _wave(self, step: Array) -> Array:
        """The number of completed cycles."""
        if self.growth == 1:
            return xp.floor(step / self.steps)
        wave = xp.floor(xp.log1p(step * ((self.growth - 1.0) / self.steps)) / math.log(self.growth))
        wave = xp.where(self._start(wave + 1.0) <= step, wave + 1.0, wave)  # correct a logarithm that was rounded down,
        return xp.where(self._start(wave) > step, wave - 1.0, wave)  # or up

    def at(self, step: Array) -> Array:
        wave = self._wave(step)
        start, end = self._start(wave), self._start(wave + 1.0)
        share = 0.5 * (1.0 + xp.cos(math.pi * ((step - start) / (end - start))))
        share = share if self.decay == 1 else share * _power(self.decay, wave)
        return self.initial * share + self.final * (1.0 - share)


_CYCLES = ("triangular", "triangular2", "exp_range")


@dataclasses.dataclass(frozen=True)
class cyclic(Schedule, positive="gamma", steps="up down"):
    """Periodic: from ``low`` to ``high`` in ``up`` steps, and back in ``down`` steps (None: ``up``) (Smith 2017).

    Args:
        low: smallest value, at the start of a cycle.
        high: largest value of the first cycle.
        up: number of steps of the rise.
        down: number of steps of the fall; None is ``up``.
        mode: height of the cycles: "triangular", "triangular2" or "exp_range".
        gamma: factor of the height in each step, for "exp_range".

    ``mode`` determines the height above ``low``, as in torch's ``CyclicLR``: constant ("triangular"), halved in each
    cycle ("triangular2"), or multiplied by ``gamma ** step`` ("exp_range"). Instead of ``scale_fn``, multiply
    schedules. torch cycles the momentum in the opposite direction: ``cyclic(max_momentum, base_momentum, up, down)``.

    >>> schedule = cyclic(0.0, 1.0, up=4, mode="triangular2")
    >>> [schedule(step) for step in (0, 2, 4, 8, 12, 16)]
    [0.0, 0.5, 1.0, 0.0, 0.5, 0.0]
    """

    low: float
    high: float
    up: float
    down: float | None = None
    mode: str = "triangular"
    gamma: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode not in _CYCLES:
            raise ValueError(f"mode is {self.mode!r}: expected one of {', '.join(_CYCLES)}")

    @property
    def _down(self) -> float:
        return self.up if self.down is None else self.down

    def at(self, step: Array) -> Array:
        down = self._down
        period = self.up + down
        cycle = xp.floor(step / period)
        since = step - cycle * period
        height = xp.minimum(since / self.up, (period - since) / down)
        if self.mode == "triangular2":
            height = height * 0.5**cycle
        elif self.mode == "exp_range":
            height = height * _power(self.gamma, step)
        return self.high * height + self.low * (1.0 - height)
