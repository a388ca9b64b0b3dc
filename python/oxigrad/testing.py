"""Checks of derivatives and of update rules, for tests."""

import functools
import importlib.util
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oxigrad import tree, xp
from oxigrad._core import is_inexact
from oxigrad._names import check_callable, without
from oxigrad.autodiff.transforms import jvp, vjp
from oxigrad.ops.backends import device_of, dtype_name, is_array, is_complex, namespace
from oxigrad.ops.core.aliasing import lending
from oxigrad.optim.rule_optimizer import defined
from oxigrad.step.parameters.decay import decay_factors

__all__ = ["check_grads", "check_rule"]

if not TYPE_CHECKING:  # to type checkers, a name that is not there is an error
    __dir__, __getattr__ = without(__name__, __all__)


def _random_like(values: Any, generator: "np.random.Generator") -> Any:
    def draw(leaf: Any) -> Any:
        if is_inexact(leaf):
            library = namespace(leaf)
            noise = generator.standard_normal(tuple(leaf.shape))
            if is_complex(leaf):
                noise = noise + 1j * generator.standard_normal(tuple(leaf.shape))
            return library.astype(library.asarray(noise, device=device_of(leaf)), leaf.dtype)
        if isinstance(leaf, complex):
            return complex(*generator.standard_normal(2).tolist())
        return float(generator.standard_normal()) if isinstance(leaf, float) else leaf

    return tree.map(draw, values)


def _shifted(values: Any, direction: Any, by: float) -> Any:
    def shift(leaf: Any, along: Any) -> Any:
        return leaf + by * along if is_inexact(leaf) or isinstance(leaf, (float, complex)) else leaf

    return tree.map(shift, values, direction)


def _inner(a: Any, b: Any) -> float:
    """The sum of products; its real part, where they are complex. Raises `AssertionError` where shapes differ."""

    def product(x: Any, y: Any) -> float:
        if not (is_inexact(x) or isinstance(x, (float, complex))):
            return 0.0
        shapes = [tuple(getattr(value, "shape", ())) for value in (x, y)]
        if shapes[0] != shapes[1]:
            raise AssertionError(
                f"found shapes {shapes[0]} and {shapes[1]} of a value and its derivative, expected the same"
            )
        total = xp.sum(x * y) if is_array(x) else x * y
        return float(xp.real(total) if is_complex(total) else total)

    return sum(product(x, y) for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True))


# The derivative in each mode as a function, to be differentiated for the next order.
_MODES: dict[str, Callable[..., Any]] = {
    "fwd": lambda f, direction, cotangent: lambda *primals: jvp(f, primals, direction)[1],
    "rev": lambda f, direction, cotangent: lambda *primals: vjp(f, *primals)[1](cotangent),
}


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    *,
    step: float = 1e-5,
    tolerance: float = 1e-6,
    seed: int = 0,
) -> None:
    """Checks derivatives of ``f`` at ``args`` by central differences, along random directions, up to ``order``.

    Args:
        f: function of the arguments; it must be smooth within ``step`` of the point.
        args: floats, complex numbers, float64 or complex128 arrays, or trees of them; complex ones are perturbed in
            complex directions.
        order: largest order of the derivatives that are checked.
        modes: "fwd", "rev" or both; every sequence of them is checked, such as forward over reverse.
        step: distance of the two points of a central difference.
        tolerance: largest difference of both numbers, relative to the larger one, or to 1 if that is larger.
        seed: seed of the random directions.

    Raises `AssertionError` with both numbers, the argument, its element and the sequence of modes where they differ,
    and where a derivative has another shape than its value.

    >>> check_grads(lambda x: x**3, (2.0,))
    """
    check_callable(f, "check_grads")
    if not isinstance(args, (tuple, list)):
        kind = type(args).__name__
        raise TypeError(f"check_grads: args is {kind}: expected a tuple, one for each argument: check_grads(f, (x,))")
    if isinstance(modes, str) or not modes or set(modes) - set(_MODES):
        raise ValueError(f"modes is {modes!r}: expected a tuple of 'fwd' and 'rev'")
    if isinstance(order, bool) or order not in range(1, 1000):
        raise ValueError(f"order is {order!r}: expected a whole number, at least 1")
    if not (0 < step < math.inf and 0 <= tolerance < math.inf):
        raise ValueError(f"step is {step!r}, tolerance {tolerance!r}: expected positive numbers")
    _check(f, tuple(args), order, tuple(modes), (), (step, tolerance, seed))


def _is_near(value: float, expected: float, tolerance: float) -> bool:
    return abs(expected - value) <= tolerance * max(1.0, abs(expected), abs(value))


def _where(along: Any, values: Any) -> Any:
    """The values, with zeros where ``along`` has zeros: the others may be infinite or NaN."""

    def chosen(x: Any, value: Any) -> Any:
        if isinstance(x, (float, complex)):
            return value if x else 0.0
        is_alike = is_inexact(x) and tuple(x.shape) == tuple(getattr(value, "shape", ()))
        return xp.where(x == 0, 0.0 * x, value) if is_alike else value

    return tree.map(chosen, along, values)


def _place(args: tuple[Any, ...], direction: Any, error: Callable[[Any], float]) -> tuple[str, Any]:
    """The argument and the element with an error, and the direction of one there.

    No text where halves cannot be told apart.

    An error is summed over all elements. The half of the elements with the larger error is divided again.
    """
    start, stop = 0, sum(map(_size, tree.leaves(args)))
    while stop - start > 1:
        middle = (start + stop) // 2
        spans = (start, middle), (middle, stop)
        first, second = (abs(error(_part(direction, *span))) for span in spans)
        if first == second or (math.isnan(first) and math.isnan(second)):
            return "", direction
        start, stop = spans[math.isnan(second) or first < second]
    ones = tree.map(lambda leaf: 0.0 * leaf + 1.0 if _size(leaf) else leaf, direction)
    return f"{_name(args, start)}: ", _part(ones, start, stop)


def _size(leaf: Any) -> int:
    """The number of elements of a leaf that are differentiated."""
    return math.prod(leaf.shape) if is_inexact(leaf) else int(isinstance(leaf, (float, complex)))


def _part(direction: Any, start: int, stop: int) -> Any:
    """The direction with zeros at all elements but those from ``start`` to ``stop``, counted over all leaves."""
    at = 0

    def part(leaf: Any) -> Any:
        nonlocal at
        size, first = _size(leaf), at
        at += size
        if not size:
            return leaf
        mask = (np.arange(first, first + size) >= start) & (np.arange(first, first + size) < stop)
        if isinstance(leaf, (float, complex)):
            return leaf if mask[0] else 0.0
        shaped = namespace(leaf).asarray(mask.reshape(tuple(leaf.shape)), device=device_of(leaf))
        return xp.where(shaped, leaf, 0.0 * leaf)

    return tree.map(part, direction)


def _name(args: tuple[Any, ...], number: int) -> str:
    """The argument and the element with this number among all elements."""
    for position, argument in enumerate(args):
        leaves, structure = tree.flatten(argument)
        for i, leaf in enumerate(leaves):
            if number < (size := _size(leaf)):
                path, shape = str(structure.path(i)), () if isinstance(leaf, (float, complex)) else tuple(leaf.shape)
                element = [int(index) for index in np.unravel_index(number, shape)] if shape else ""
                return f"argument {position}{path and f', {path}'}{element and f', element {element}'}"
            number -= size
    return "a constant"


def _check(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    order: int,
    modes: tuple[str, ...],
    taken: tuple[str, ...],
    settings: tuple[float, float, int],
) -> None:
    step, tolerance, seed = settings
    generator = np.random.default_rng(seed)
    cotangent, direction = _random_like(vjp(f, *args)[0], generator), _random_like(args, generator)

    def numeric(along: Any) -> float:
        ahead, behind = f(*_shifted(args, along, step)), f(*_shifted(args, along, -step))
        return (_inner(cotangent, ahead) - _inner(cotangent, behind)) / (2 * step)

    expected = numeric(direction)
    for mode in modes:
        path = " over ".join((mode, *taken))
        derivative = _MODES[mode](f, direction, cotangent)
        products = derivative(*args)

        def analytic(along: Any, mode: str = mode, products: Any = products) -> float:
            if mode == "rev":
                return _inner(_where(along, products), along)
            return _inner(cotangent, products if along is direction else _MODES["fwd"](f, along, cotangent)(*args))

        if not _is_near(value := analytic(direction), expected, tolerance):
            place, along = _place(args, direction, lambda along: analytic(along) - numeric(along))
            if place and not _is_near(analytic(along), numeric(along), tolerance):
                value, expected = analytic(along), numeric(along)
            raise AssertionError(f"{place}derivative {value!r} by {path}, central difference {expected!r}")
        if order > 1:
            _check(derivative, args, order - 1, modes, (mode, *taken), (step, tolerance * 10, seed + 1))


# --- rules ------------------------------------------------------------------------------------------------------------

# The default tolerance of each dtype, relative to the largest element of an array.
_TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 3e-2, "bfloat16": 0.2}
# Sizes of gradients for which results must be finite: zeros test for division of zero by zero, the others for overflow
# and underflow.
_SIZES = (0.0, 1e-3, 1.0, 1e3)


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


# The kinds of memory of parameters, each updated by a different executor.
_MEMORY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "an array": lambda x: x,
    "a strided array": lambda x: np.stack([x, x], axis=-1)[..., 0],
    "a read-only array": _read_only,
}


def check_rule(
    rule: Callable[..., Any],
    *,
    elementwise: bool | None = None,
    shapes: Sequence[tuple[int, ...]] = ((), (5,), (3, 4)),
    steps: int = 3,
    tolerances: Mapping[str, float] | None = None,
    seed: int = 0,
    **hyperparameters: Any,
) -> None:
    """Checks an update rule, as `oxigrad.optim.define` takes it, with defaults or other values of hyperparameters.

    Args:
        rule: update rule ``(xp, p, g, *slots, *, step, ...)``.
        elementwise: true demands a fused kernel, False calls the rule on arrays, None decides.
        shapes: shapes of the parameters of the test.
        steps: number of updates with random gradients.
        tolerances: largest errors by the name of the dtype, relative to the largest element of an array.
        seed: seed of the random parameters and gradients.
        **hyperparameters: values of the rule's hyperparameters, by keyword.

    These are checked:

    * With ``elementwise=True``, it can be traced into a kernel; by default it may be called on arrays instead, as by
      `oxigrad.optim.define`.
    * Called on arrays, it writes none of its arguments, and returns the parameter and every slot in the shape that
      they have and in a real floating-point dtype, which is then cast to theirs.
    * Its results are finite, for gradients of zeros and of sizes from 1e-3 to 1e3.
    * Every executor (kernels over contiguous, strided and read-only arrays, and the rule on arrays) gives the results
      of float64 arrays, in float64, float32, float16 and, where ml_dtypes is installed, bfloat16.
    * For an elementwise rule, a step with a zero gradient multiplies each slot by the decay that it declares.

    Raises `RuleError` or `TypeError` where the rule cannot be defined or writes an argument, and `AssertionError` with
    the rule, the parameter or slot, the dtype and the step where a check fails.

    >>> def sign_descent(xp, p, g, *, learning_rate=0.01):
    ...     return p - learning_rate * xp.sign(g)
    >>> check_rule(sign_descent)
    >>> check_rule(lambda xp, p, g, v, *, rate=0.1: (p - rate * g / v, v))
    Traceback (most recent call last):
    AssertionError: <lambda>: the parameter is not finite after step 1, for float64 gradients of size 0.0
    """
    check_callable(rule, "check_rule")
    name = getattr(rule, "__name__", "rule")
    limits = {**_TOLERANCES, **(tolerances or {})}
    if unknown := limits.keys() - _TOLERANCES.keys():
        raise ValueError(f"tolerances has {', '.join(sorted(unknown))}: expected {', '.join(_TOLERANCES)}")
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ValueError(f"steps is {steps!r}: expected a whole number, at least 1")
    # Of the rule's module, so that a later definition there may have its name.
    module = getattr(rule, "__module__", "__main__")
    kinds = {"the rule on": defined(_checked(rule, name), name, module, elementwise=False, average=None)}
    checked = defined(rule, name, module, elementwise=elementwise, average=None)
    if checked._rule.elementwise:
        kinds["a kernel over"] = checked
        _check_decays(checked(**hyperparameters))
    dtypes = ["float64", "float32", "float16"] + ["bfloat16"] * (importlib.util.find_spec("ml_dtypes") is not None)
    for dtype in dtypes[:2]:
        for size in _SIZES:
            inputs = _inputs(shapes, steps, dtype, seed, size)
            for step, arrays in enumerate(
                _run(kinds["the rule on"](**hyperparameters), inputs, dtype, _MEMORY["an array"]), 1
            ):
                for what, array in arrays.items():
                    if not np.isfinite(array).all():
                        where = f"after step {step}, for {dtype} gradients of size {size}"
                        raise AssertionError(f"{name}: the {what.partition(' of ')[0]} is not finite {where}")
    for dtype in dtypes:
        inputs = _inputs(shapes, steps, dtype, seed, 1.0)
        expected = list(_run(kinds["the rule on"](**hyperparameters), inputs, "float64", _MEMORY["an array"]))
        for (kind, make), (memory, placed) in ((k, m) for k in kinds.items() for m in _MEMORY.items()):
            outputs = _run(make(**hyperparameters), inputs, dtype, placed)
            _compare(f"{name}: {kind} {memory} of {dtype}", outputs, expected, limits[dtype])


def _check_decays(opt: Any) -> None:
    values = opt.hyperparameters
    rule = opt._rule.without([slot for slot, asks in opt._rule.optional if not values[asks]])
    factors = decay_factors(rule, {name: value for name, value in values.items() if not callable(value)})
    for slot in rule.slots:
        if slot.decay is not None and factors.get(slot.name, slot.decay) is None:
            raise AssertionError(
                f"{rule.name}: a step with a zero gradient does not multiply the slot {slot.name} by its decay "
                f"{slot.decay}"
            )


def _inputs(
    shapes: Sequence[tuple[int, ...]], steps: int, dtype: str, seed: int, size: float
) -> list[list[np.ndarray]]:
    """Parameters, then their gradients of each step: values of ``dtype``, in float64."""
    generator = np.random.default_rng(seed)
    drawn = [[generator.standard_normal(shape) for shape in shapes] for _ in range(steps + 1)]
    return [[_cast(x * (size if at else 1.0), dtype).astype(np.float64) for x in row] for at, row in enumerate(drawn)]


def _cast(x: Any, dtype: str) -> np.ndarray:
    if dtype == "bfloat16":
        importlib.import_module("ml_dtypes")
    return np.asarray(x).astype(dtype)


def _run(
    opt: Any, inputs: Sequence[Sequence[np.ndarray]], dtype: str, placed: Callable[[np.ndarray], np.ndarray]
) -> Iterator[dict[str, np.ndarray]]:
    """The parameters and slots after each step, in float64, by name."""
    model = {f"w{at}": placed(_cast(x, dtype)) for at, x in enumerate(inputs[0])}
    for gradients in inputs[1:]:
        model = opt.update(model, {f"w{at}": _cast(g, dtype) for at, g in enumerate(gradients)}, loss=1.5)
        arrays = {f"parameter of shape {x.shape}": x for x in model.values()}
        for path, x in model.items():
            arrays |= {f"slot {slot} of shape {x.shape}": value for slot, value in opt.slots[path].items()}
        yield {what: np.array(value, np.float64) for what, value in arrays.items() if value is not None}


def _compare(
    where: str, outputs: Iterator[dict[str, np.ndarray]], expected: Sequence[dict[str, np.ndarray]], tolerance: float
) -> None:
    for step, (arrays, reference) in enumerate(zip(outputs, expected, strict=True), 1):
        for what, array in arrays.items():
            scale = np.max(np.abs(reference[what]), initial=0.0)
            error = np.max(np.abs(array - reference[what]), initial=0.0)
            if not error <= tolerance * scale + np.finfo(np.float64).tiny:
                difference = f"an error of {error / max(scale, 1e-300):.1e}, above {tolerance:.0e}"
                raise AssertionError(f"{where}: the {what} has {difference} relative to float64, after step {step}")


def _checked(rule: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The rule on arrays.

    Checks that its results have the same shapes, and real dtypes. It raises `RuleError` where it writes an argument.
    """
    lent = lending(rule, f"the rule {name}")
    names = ["parameter", *(f"slot {p}" for p in list(inspect.signature(rule).parameters)[3:])]

    @functools.wraps(rule)
    def called(xp: Any, p: Any, g: Any, *slots: Any, **named: Any) -> Any:
        try:
            outputs = lent(xp, p, g, *slots, **named)
        except LookupError as error:
            error.add_note(f"{name}: called with a parameter of shape {tuple(p.shape)}; shapes=... gives others")
            raise
        listed = outputs if isinstance(outputs, list) else [outputs]
        for what, old, new in zip(names, (p, *slots), listed, strict=False):
            if is_array(old) and is_array(new):
                if tuple(new.shape) != tuple(old.shape):
                    shapes = f"shape {tuple(new.shape)}: expected {tuple(old.shape)}"
                    raise AssertionError(f"{name}: it returned the {what} with {shapes}")
                if not is_inexact(new) or is_complex(new):
                    dtype = f"dtype {dtype_name(new.dtype)}: expected a real floating-point dtype"
                    raise AssertionError(f"{name}: it returned the {what} with {dtype}")
        return outputs

    return called
