"""L-BFGS: quasi-Newton steps from the last changes of the gradient, with a line search.

The loss is evaluated on copies of the model that hold trial parameters; the model itself is changed once, at the end.
"""

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from oxigrad import tree, xp
from oxigrad._core import RuleError
from oxigrad._names import check_callable
from oxigrad._typing import Array, R, T, Tree
from oxigrad.autodiff.transforms import value_and_grad
from oxigrad.ops.backends import device_of, fetched, namespace
from oxigrad.optim.closures.line_search import Point, strong_wolfe
from oxigrad.optim.losses import dependent, minimized_with_aux
from oxigrad.optim.rule_optimizer import RuleOptimizer, register
from oxigrad.rules.core import rule
from oxigrad.rules.core.ranges import Count, NonNegative
from oxigrad.step import changes
from oxigrad.step.plan.gradients import read_gradients
from oxigrad.step.plan.plan import Plan

# Pairs of a step and a change of the gradient with a product up to this bound are discarded: their curvature is noise.
_LEAST_CURVATURE = 1e-10

# A vector: one array for each parameter.
Arrays = list[Any]


def rows(xp: Any, p: Array, history: int) -> Array:
    """The initial value of a slot of ``history`` arrays of the parameter's shape, the latest last: zeros."""
    shape = (history, *p.shape)
    return namespace(p).zeros(shape, dtype=p.dtype, device=device_of(p))


def lbfgs(
    xp: Any,
    p: Array,
    g: Array,
    gradient: Array,
    move: Array,
    steps: Array = rows,
    changes: Array = rows,
    *,
    learning_rate: Annotated[
        NonNegative, "First trial length of the line search, or the length of a move without one."
    ] = 1.0,
    max_iterations: Annotated[Count, "Largest number of iterations of one ``minimize``."] = 20,
    max_evaluations: Annotated[
        Count | None, "Largest number of evaluations of the loss; None is 5/4 of ``max_iterations``."
    ] = None,
    tolerance_gradient: Annotated[NonNegative, "Largest element of the gradient at which iterations end."] = 1e-7,
    tolerance_change: Annotated[
        NonNegative, "Change of the loss, or of the parameters, at which iterations end."
    ] = 1e-9,
    history: Annotated[Count, "Number of past steps that approximate the Hessian, each two slots."] = 10,
    line_search: Annotated[
        Literal["strong_wolfe", None], 'Line search: "strong_wolfe", or None for moves of a fixed length.'
    ] = "strong_wolfe",
) -> Array:
    """L-BFGS, for deterministic losses, as in torch.optim.LBFGS.

    The algorithm is of Liu and Nocedal 1989; see Nocedal and Wright 2006, algorithms 7.4 and 7.5.

    Each `minimize` makes up to ``max_iterations`` iterations with up to ``max_evaluations`` evaluations of the loss
    (None: 5/4 of ``max_iterations``). It stops earlier where the largest element of the gradient is at most
    ``tolerance_gradient``, or the largest element of a move or the change of the loss is at most ``tolerance_change``.
    ``line_search`` is "strong_wolfe", or None for moves of ``learning_rate`` times the direction, the first one
    shortened. The defaults are a line search and a ``history`` of 10, as in SciPy and optax; torch has no line search
    by default, and a history of 100.

    One step of the optimizer is one `minimize`; `update` and `apply`, which have no loss, raise `RuleError`. Where the
    loss raises, nothing is changed. The value of the loss is read as a number, so that `minimize` cannot be traced.
    """
    raise RuleError("L-BFGS evaluates the loss several times a step: call minimize(loss, model)")


def _number(x: Any) -> float:
    """The number in an array without axes; waits for the device."""
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
    """The last steps and changes of the gradient, which approximate the inverse Hessian."""

    def __init__(self, history: int) -> None:
        self.history = history
        self.pairs: list[tuple[Arrays, Arrays, float]] = []
        self._scale = 1.0

    def add(self, step: Arrays, change: Arrays) -> None:
        """Appends a step and the change of the gradient, and drops the oldest pair."""
        product = _dot(step, change)
        if product > _LEAST_CURVATURE:
            self.pairs = [*self.pairs, (step, change, product)][-self.history :]
            self._scale = product / _dot(change, change)

    def direction(self, gradient: Arrays) -> Arrays:
        """The quasi-Newton direction: minus the product of the approximate inverse Hessian and the gradient."""
        vector, factors = [-x for x in gradient], []
        for step, change, product in reversed(self.pairs):
            factors.append(_dot(step, vector) / product)
            vector = _plus(vector, -factors[-1], change)
        vector = [self._scale * x for x in vector]
        for (step, change, product), factor in zip(self.pairs, reversed(factors), strict=True):
            vector = _plus(vector, factor - _dot(change, vector) / product, step)
        return vector


class _Problem:
    """The loss as a function of the parameters; counts its evaluations."""

    def __init__(self, compute: Callable[[Any], tuple[Any, Any]], plan: Plan, leaves: list[Array]) -> None:
        self._compute = compute
        self._plan = plan
        self._leaves = leaves
        self.evaluations = 0

    @property
    def parameters(self) -> Arrays:
        """The parameters of the model."""
        return [self._leaves[p.index] for p in self._plan.parameters]

    def filled(self, parameters: Arrays) -> list[Any]:
        """The leaves of the model with these parameters."""
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
        gradients = read_gradients(self._plan, grads)
        return value, [gradients[p.index] for p in self._plan.parameters]


class _Descent:
    """The state of one `minimize`: the current parameters and gradient, and the curvature pairs."""

    def __init__(self, problem: _Problem, slots: Sequence[dict[str, Any]], values: dict[str, Any]) -> None:
        self._problem = problem
        self._values = values
        self.parameters = problem.parameters
        self.loss, self.gradient = problem(self.parameters)
        self.value = _number(self.loss)
        # The last move and the gradient before it, which are not among the curvature pairs yet.
        self.move: Arrays | None = [of_parameter["move"] for of_parameter in slots]
        self.before = [of_parameter["gradient"] for of_parameter in slots]
        if _largest(self.move) == 0.0:
            self.move = None
        self.curvature = Curvature(slots[0]["steps"].shape[0])
        for k in range(slots[0]["steps"].shape[0]):
            self.curvature.add(
                [of_parameter["steps"][k, ...] for of_parameter in slots],
                [of_parameter["changes"][k, ...] for of_parameter in slots],
            )

    @property
    def suspects(self) -> Arrays:
        """For each parameter, an array that is finite only if the parameter and its gradient are."""
        pairs = zip(self.gradient, self.parameters, strict=True)
        return [p if _are_finite([g]) else g for g, p in pairs]

    @property
    def is_finite(self) -> bool:
        """Whether all gradients and parameters are finite."""
        return _are_finite(self.suspects)

    def run(self) -> None:
        """Runs the iterations."""
        limit, tolerance = self._values["max_iterations"], self._values["tolerance_change"]
        evaluations = self._values["max_evaluations"]
        evaluations = limit * 5 // 4 if evaluations is None else evaluations
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
        """Makes one move; returns False where the directional derivative is above minus the tolerance."""
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
        """The slots of each parameter, for the next `minimize`."""
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
    """Base class of optimizers that evaluate the loss several times a step: they have `minimize`, and no `update`."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        if others := sorted(self._options().keys() - {"groups", "dtype", "nonfinite"}):
            raise ValueError(
                f"{self.name}: {', '.join(others)} cannot be set: the loss is evaluated several times a step"
            )

    def minimize(
        self,
        loss: Callable[[T], R],
        model: T,
        *,
        record: bool = False,
        in_backward: bool = False,
        has_aux: bool = False,
    ) -> R:
        """Takes one step, of up to ``max_iterations`` iterations, in place; returns the value of the loss before it.

        With ``record``, value and gradient of the loss are recorded and replayed: see `Optimizer.minimize`.

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
        check_callable(loss, "minimize")
        if has_aux:
            return minimized_with_aux(self.minimize, loss, model, record=record, in_backward=in_backward)
        if in_backward:
            self._refuse_in_backward(record=record)
        with self._lock.stepping():
            plan, leaves = changes.begin(self._stepper, model)
            if len(set(plan.groups)) > 1:
                raise ValueError(
                    f"{self.name}: found groups with hyperparameters: expected None, which freezes, for every group"
                )
            group = plan.groups[0]
            if group.value("line_search") not in ("strong_wolfe", None):
                raise ValueError(f"line_search is {group.value('line_search')!r}: expected 'strong_wolfe' or None")
            problem = _Problem(self._evaluation(loss, record=record), plan, leaves)
            slots = [self._stepper.slots[p.text] for p in plan.parameters]
            descent = _Descent(problem, slots, {**group.flags, **group.numbers(self.step)})
            first = descent.loss
            if self.nonfinite == "propagate" or descent.is_finite:
                descent.run()
            if self.nonfinite == "propagate" or descent.is_finite:
                changes.finish(self._stepper, plan, leaves, model, descent.parameters, descent.slots())
            else:
                self._stepper.skip(plan, model, problem.filled(descent.suspects))
            return first

    def _evaluation(self, loss: Callable[[Tree], Array], *, record: bool = False) -> Callable[[Tree], tuple[Any, Any]]:
        """The function of a model that returns the loss and its gradient."""
        eager, recorded = value_and_grad(lambda model: dependent(loss(model))), self._recorded_losses

        def evaluate(model: Tree) -> tuple[Any, Any]:
            return recorded.value_and_grad(loss, model) if record else eager(model)

        return evaluate


LBFGS = register(
    rule.read(lbfgs, elementwise=False),
    "LBFGS",
    ClosureOptimizer,
    {"nonfinite": "propagate", "groups": None, "dtype": None},
    module="oxigrad.optim",
)
