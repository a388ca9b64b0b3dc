"""L-BFGS: steps along a quasi-Newton direction computed from the last changes of the gradient, with a line search.

The loss is evaluated on copies of the model that hold trial parameters; the model itself is changed once, at the end.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

from oxigrad import tree, xp
from oxigrad._core import RuleError
from oxigrad.autodiff.transforms import value_and_grad
from oxigrad.ops.backends import device_of, fetched, namespace
from oxigrad.optim.line_search import Point, strong_wolfe
from oxigrad.optim.rule_optimizer import RuleOptimizer, register
from oxigrad.rules import rule
from oxigrad.rules.ranges import Count, NonNegative
from oxigrad.stepping.plan import Plan

# Pairs of a step and a change of the gradient whose product is not above this say nothing of the curvature.
_LEAST_CURVATURE = 1e-10

# One array for each parameter: what a vector is made of here.
Arrays = list[Any]


def rows(xp, p, history):
    """A slot of ``history`` arrays like the parameter, the latest last."""
    shape = (int(history), *p.shape)
    return namespace(p).zeros(shape, dtype=p.dtype, device=device_of(p))


def lbfgs(
    xp,
    p,
    g,
    gradient,
    move,
    steps=rows,
    changes=rows,
    *,
    learning_rate: NonNegative = 1.0,
    max_iterations: Count = 20,
    max_evaluations: Count | None = None,
    tolerance_gradient: NonNegative = 1e-7,
    tolerance_change: NonNegative = 1e-9,
    history: Count = 10,
    line_search: Literal["strong_wolfe", None] = "strong_wolfe",
):
    """L-BFGS (Liu and Nocedal 1989; Nocedal and Wright 2006, algorithms 7.4 and 7.5), as in torch.optim.LBFGS: for a loss without noise.

    Each `minimize` makes up to ``max_iterations`` iterations with up to ``max_evaluations`` of the loss (None: 5/4 as
    many), and ends before where the largest element of the gradient is at most ``tolerance_gradient``, or that of a
    move, or the change of the loss, at most ``tolerance_change``. ``line_search`` is "strong_wolfe", or None for moves
    of ``learning_rate`` times the direction, the first one shortened. Here it searches by default and keeps a
    ``history`` of 10, as SciPy and optax; torch does not search, and keeps 100.

    One step of the optimizer is one `minimize`; `update` and `apply`, which have no loss, raise `RuleError`. A loss that
    raises leaves everything as it was. Its value is read as a number, so `minimize` cannot be traced.
    """
    raise RuleError("L-BFGS evaluates the loss at points that it chooses: call minimize(loss, model)")


def _number(x: Any) -> float:
    """A number of an array without axes, which is waited for."""
    return float(fetched(x))


def _dot(a: Arrays, b: Arrays) -> float:
    return math.fsum(_number(xp.sum(x * y)) for x, y in zip(a, b, strict=True))


def _largest(a: Arrays) -> float:
    return max((_number(xp.max(xp.abs(x))) for x in a if 0 not in x.shape), default=0.0)


def _are_finite(a: Arrays) -> bool:
    return all(bool(fetched(xp.all(xp.isfinite(x)))) for x in a)


def _plus(a: Arrays, factor: float, b: Arrays) -> Arrays:
    return [x + factor * y for x, y in zip(a, b, strict=True)]


class Curvature:
    """The last steps and changes of the gradient, by which the inverse of the Hessian is approximated."""

    def __init__(self, history: int) -> None:
        self.history = history
        self.pairs: list[tuple[Arrays, Arrays, float]] = []
        self._scale = 1.0

    def add(self, step: Arrays, change: Arrays) -> None:
        """Takes in a step and the change of the gradient; forgets the oldest."""
        product = _dot(step, change)
        if product > _LEAST_CURVATURE:
            self.pairs = [*self.pairs, (step, change, product)][-self.history :]
            self._scale = product / _dot(change, change)

    def direction(self, gradient: Arrays) -> Arrays:
        """Minus the product of the inverse Hessian and the gradient."""
        found, factors = [-x for x in gradient], []
        for step, change, product in reversed(self.pairs):
            factors.append(_dot(step, found) / product)
            found = _plus(found, -factors[-1], change)
        found = [self._scale * x for x in found]
        for (step, change, product), factor in zip(self.pairs, reversed(factors), strict=True):
            found = _plus(found, factor - _dot(change, found) / product, step)
        return found


class _Problem:
    """The loss as a function of the parameters alone; counts how often it is evaluated."""

    def __init__(self, compute: Callable[[Any], tuple[Any, Any]], plan: Plan, leaves: list[Any]) -> None:
        self._compute = compute
        self._plan = plan
        self._leaves = leaves
        self.evaluations = 0

    @property
    def parameters(self) -> Arrays:
        """The parameters as they are in the model."""
        return [self._leaves[p.index] for p in self._plan.parameters]

    def filled(self, parameters: Arrays) -> list[Any]:
        """The leaves of the model with other parameters."""
        filled = list(self._leaves)
        for p, array in zip(self._plan.parameters, parameters, strict=True):
            for i in (p.index, *p.tied):
                filled[i] = array
        return filled

    def __call__(self, parameters: Arrays) -> tuple[Any, Arrays]:
        """The loss and its gradient."""
        filled = self.filled(parameters)
        self.evaluations += 1
        value, grads = self._compute(tree.unflatten(self._plan.structure, filled))
        given = self._plan.gradients(filled, grads)
        return value, [given[p.index] for p in self._plan.parameters]


class _Descent:
    """One `minimize`: the current parameters and gradient, and the curvature from earlier iterations."""

    def __init__(self, problem: _Problem, slots: Sequence[dict[str, Any]], values: dict[str, Any]) -> None:
        self._problem = problem
        self._values = values
        self.parameters = problem.parameters
        self.loss, self.gradient = problem(self.parameters)
        self.value = _number(self.loss)
        # The last move and the gradient before it, which the curvature does not include yet.
        self.move: Arrays | None = [own["move"] for own in slots]
        self.before = [own["gradient"] for own in slots]
        if _largest(self.move) == 0.0:
            self.move = None
        self.curvature = Curvature(slots[0]["steps"].shape[0])
        for k in range(slots[0]["steps"].shape[0]):
            self.curvature.add([own["steps"][k, ...] for own in slots], [own["changes"][k, ...] for own in slots])

    @property
    def suspects(self) -> Arrays:
        """An array for each parameter, which is not finite if the parameter or its gradient is not."""
        pairs = zip(self.gradient, self.parameters, strict=True)
        return [p if _are_finite([g]) else g for g, p in pairs]

    @property
    def is_finite(self) -> bool:
        """Whether the gradient and the parameters are."""
        return _are_finite(self.suspects)

    def run(self) -> None:
        """Runs the iterations."""
        limit, tolerance = int(self._values["max_iterations"]), self._values["tolerance_change"]
        evaluations = self._values["max_evaluations"]
        evaluations = limit * 5 // 4 if evaluations is None else int(evaluations)
        for iteration in range(1, limit + 1):
            if _largest(self.gradient) <= self._values["tolerance_gradient"]:
                return
            last = self.value
            if not self._iterate(evaluations, is_last=iteration == limit):
                return
            if self._problem.evaluations >= evaluations or abs(self.value - last) < tolerance:
                return
            if self.move is None or _largest(self.move) <= tolerance:
                return

    def _iterate(self, evaluations: int, *, is_last: bool) -> bool:
        """One move; False where the direction does not lead down by more than the tolerance."""
        length = self._values["learning_rate"]
        if self.move is not None:
            self.curvature.add(self.move, _plus(self.gradient, -1.0, self.before))
        elif not self.curvature.pairs:
            length *= min(1.0, 1.0 / math.fsum(_number(xp.sum(xp.abs(g))) for g in self.gradient))
        self.move, self.before = None, self.gradient
        direction = self.curvature.direction(self.gradient)
        slope = _dot(self.gradient, direction)
        if slope > -self._values["tolerance_change"]:
            return False
        start, begin = Point(0.0, self.value, slope, self.gradient), self.parameters

        def evaluate(length: float) -> Point:
            loss, gradient = self._problem(_plus(begin, length, direction))
            value = _number(loss)
            return Point(length, value if math.isfinite(value) else math.inf, _dot(gradient, direction), gradient)

        point = None
        if self._values["line_search"] is not None:
            width = self._values["tolerance_change"] / _largest(direction)
            left = evaluations - self._problem.evaluations
            point = strong_wolfe(evaluate, start, length, evaluations=left, width=width)
        elif not is_last:
            point = evaluate(length)
        if point is not None:
            length, self.value, _, self.gradient = point
        self.move = [length * d for d in direction]
        self.parameters = _plus(begin, length, direction)
        return True

    def slots(self) -> list[dict[str, Any]]:
        """The slots of each parameter, for the next time."""
        move = [xp.zeros_like(p) for p in self.parameters] if self.move is None else self.move
        steps, changes, _ = zip(*self.curvature.pairs, strict=True) if self.curvature.pairs else ((), (), ())
        history = self.curvature.history

        def stacked(arrays: Sequence[Any], like: Any) -> Any:
            padding = [xp.zeros_like(like)] * (history - len(arrays))
            return xp.stack([*padding, *arrays])

        return [
            {
                "move": move[i],
                "gradient": self.before[i],
                "steps": stacked([step[i] for step in steps], p),
                "changes": stacked([change[i] for change in changes], p),
            }
            for i, p in enumerate(self.parameters)
        ]


class ClosureOptimizer(RuleOptimizer):
    """Base class of optimizers that evaluate the loss at points of their choice: they have `minimize`, and no `update`."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        if others := sorted(self._options().keys() - {"groups", "dtype", "nonfinite"}):
            raise ValueError(
                f"{self.name}: {', '.join(others)} cannot be set: the loss is evaluated several times a step"
            )

    def minimize(self, loss: Callable[[Any], Any], model: Any) -> Any:
        """Takes one step, of many iterations, in place; returns the value of the loss before it.

        Raises `StructureError`, before anything is changed, where a parameter can neither be written nor replaced in
        ``model`` itself.

        >>> import numpy as np
        >>> from oxigrad import optim
        >>> model = {"x": np.array([-1.0, 2.0])}
        >>> rosenbrock = lambda m: 100 * (m["x"][1] - m["x"][0] ** 2) ** 2 + (1 - m["x"][0]) ** 2
        >>> value = optim.LBFGS(max_iterations=100).minimize(rosenbrock, model)
        >>> np.round(model["x"], 4)
        array([1., 1.])
        """
        with self._lock.stepping():
            plan, leaves = self._stepper.begin(model)
            if len(plan.groups) > 1:
                raise ValueError(f"{self.name}: groups may freeze parameters; all others have the same hyperparameters")
            group = plan.groups[0]
            if group.value("line_search") not in ("strong_wolfe", None):
                raise ValueError(f"line_search is {group.value('line_search')!r}: expected 'strong_wolfe' or None")
            problem = _Problem(value_and_grad(loss), plan, leaves)
            slots = [self._stepper.slots[p.text] for p in plan.parameters]
            descent = _Descent(problem, slots, {**group.flags, **group.numbers(self.step)})
            first = descent.loss
            if self.nonfinite == "propagate" or descent.is_finite:
                descent.run()
            if self.nonfinite == "propagate" or descent.is_finite:
                self._stepper.finish(plan, leaves, model, descent.parameters, descent.slots())
            else:
                self._stepper.skip(plan, model, problem.filled(descent.suspects))
            return first


LBFGS = register(
    rule.read(lbfgs, elementwise=False),
    "LBFGS",
    ClosureOptimizer,
    {"nonfinite": "propagate", "groups": None, "dtype": None},
    module="oxigrad.optim",
)
