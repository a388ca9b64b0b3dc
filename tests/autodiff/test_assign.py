"""Assignment to variables: values as of NumPy arrays, derivatives, and refusals where memory may be shared."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import oxigrad as ox
from libraries import host
from oxigrad import xp
from oxigrad.testing import check_grads

X = np.random.default_rng(0).uniform(0.5, 2.0, (3, 4))
V = X[0].copy()

# --- programs ----------------------------------------------------------------------------------------------------------


def loop(x: Any) -> Any:
    for i in range(1, x.shape[0]):
        x[i] = x[i] * x[i - 1]
    return x


def substitution(x: Any) -> Any:
    y = x * 0.0
    for i in range(x.shape[0]):
        y[i] = (x[i] - xp.sum(y[:i] * 0.3)) / (1.0 + x[i] * x[i])
    return y


def through_a_view(x: Any) -> Any:
    row = x[0]
    row += 1.0
    row *= 2.0
    x[0] = row
    return x


def rows(x: Any) -> Any:
    y = x * 2.0
    for i, row in enumerate(x):
        y[i] = row * y[i - 1]
    return y


def of_a_view_whose_array_is_gone(x: Any) -> Any:
    y = xp.reshape(x * 2.0, (-1,))
    y[::2] = y[1::2] ** 2
    return y


def augmented(operate: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y, z = x + 0.5, x * 2.0
        kept = y
        y = operate(y, z)
        return kept * y

    return f


def part(operate: Callable[[Any, Any], Any], key: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        x[key] = operate(x[key], 1.5)
        return x * x

    return f


def of_a_view_of_an_output(x: Any) -> Any:
    y = x * 1.0
    np.multiply(x, 2.0, out=y)
    part = y[1:]
    part *= 3.0
    return part


def of_a_view(key: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        x[key] = x[:2]
        return x * x

    return f


PROGRAMS: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "loop": (loop, V),
    "loop of rows": (loop, X),
    "substitution": (substitution, V),
    "through a view": (through_a_view, X),
    "rows": (rows, X),
    "of a view whose array is gone": (of_a_view_whose_array_is_gone, X),
    "of a view of an output": (of_a_view_of_an_output, X),
    **{
        f"whole {name}": (augmented(getattr(operator, name)), X)
        for name in "iadd isub imul itruediv imod ipow ifloordiv".split()
    },
    "whole imatmul": (augmented(operator.imatmul), X[:, :3]),
    **{
        f"part {name} {key}": (part(getattr(operator, name), key), X)
        for name in "iadd isub imul itruediv ipow".split()
        for key in (0, slice(1, None), (..., 2), (slice(None), -1), (1, slice(0, 3, 2)))
    },
    "part by a mask": (part(operator.imul, X > 1.0), X),
    "part by indices": (part(operator.imul, np.array([2, 0])), X),
    "everything": (part(operator.iadd, ...), X),
    "a view by indices": (of_a_view(np.array([2, 0])), X),
    "a view by a mask": (of_a_view(X[:, 0] > X[:, 0].min()), X),
    "a view by a list": (of_a_view([2, 0]), X),
    "a view by another slice": (of_a_view(slice(1, None)), X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_numpy_s_and_derivatives_are_right(name: str) -> None:
    f, x = PROGRAMS[name]
    given, expected = x.copy(), f(x.copy())
    value, _ = ox.vjp(f, given)
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    np.testing.assert_array_equal(given, x)
    check_grads(f, (x,), order=2)
    np.testing.assert_array_equal(given, x)


@pytest.mark.parametrize("name", ["loop", "through a view", "part iadd 0", "part by a mask", "whole imul"])
def test_checkpoint_and_every_jacobian(name: str) -> None:
    f, x = PROGRAMS[name]
    again, given = ox.checkpoint(f), x.copy()
    expected = ox.jacobian(f, mode="forward")(x)
    for g, mode in ((f, "reverse"), (again, "forward"), (again, "reverse")):
        np.testing.assert_allclose(ox.jacobian(g, mode=mode)(given), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(given, x)


def test_a_custom_rule_may_assign() -> None:
    def rule(g: Any, y: Any, x: Any) -> Any:
        pulled = g * 2.0 * x
        pulled[0] = 0.0
        return pulled

    f = ox.custom_vjp(lambda x: x * x, rule)
    np.testing.assert_array_equal(ox.grad(lambda x: xp.sum(f(x)))(V), [0.0, *(2.0 * V[1:])])
    second = ox.grad(lambda x: xp.sum(ox.grad(lambda x: xp.sum(f(x)))(x)))(V)
    np.testing.assert_array_equal(second, [0.0, 2.0, 2.0, 2.0])


def test_any_array_library(asarray) -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        y[1:, ...] = y[:-1, ...] * 2.0
        y[0, ...] *= 3.0
        return xp.sum(y * y)

    np.testing.assert_allclose(host(ox.grad(f)(asarray(X))), ox.grad(f)(X), rtol=1e-12)


def test_under_jax_jit(library) -> None:
    jax = library("jax")
    jax.config.update("jax_enable_x64", True)

    def f(x: Any) -> Any:
        y = x * x
        y[1] = y[0] * x[2]
        return xp.sum(y * x)

    np.testing.assert_allclose(jax.jit(ox.grad(f))(jax.numpy.asarray(V)), ox.grad(f)(V), rtol=1e-12)


# --- random programs ---------------------------------------------------------------------------------------------------

Instruction = tuple[str, int, int, int, float]
VIEWS: list[Callable[[Any, Any], Any]] = [
    lambda lib, x: x[:2],
    lambda lib, x: x[::-1],
    lambda lib, x: x[..., 1:],
    lambda lib, x: lib.reshape(x, (-1,)),
    lambda lib, x: lib.permute_dims(x, tuple(range(x.ndim))[::-1]),
    lambda lib, x: lib.expand_dims(x, axis=0),
    lambda lib, x: lib.flip(x, axis=0),
]
KEYS: list[Callable[[Any], Any]] = [
    lambda x: ...,
    lambda x: slice(1, None),
    lambda x: slice(None, None, -2),
    lambda x: (..., slice(0, 1)),
    lambda x: [0],
    lambda x: np.arange(np.prod(x.shape)).reshape(x.shape) % 2 == 0,
]
OPERATORS = [operator.iadd, operator.isub, operator.imul]


def run(lib: Any, x: Any, program: list[Instruction]) -> Any:
    """Results of a program of instructions on a growing list of arrays."""
    arrays, total = [x], 0.0
    for what, i, j, choice, number in program:
        i, j = i % len(arrays), j % len(arrays)
        a, b = arrays[i], arrays[j]
        key = KEYS[choice % len(KEYS)](a)
        if what == "new":
            arrays.append(lib.tanh(a) * number)
        elif what == "view":
            arrays.append(VIEWS[choice % len(VIEWS)](lib, a))
        elif what == "same":
            arrays.append(lib.asarray(a))
        elif what == "copy":
            arrays.append(lib.asarray(a, copy=True))
        elif what == "assign":
            a[key] = number * lib.tanh(lib.sum(b))
        elif what == "move":
            a[key] = a[key][::-1] * number if a.ndim == 1 else number
        elif what == "whole":
            operate = OPERATORS[choice % 3]
            arrays[i] = operate(a, b if tuple(a.shape) == tuple(b.shape) else number)
        elif what == "part":
            a[key] = OPERATORS[choice % 3](a[key], number)
        else:
            total = total + lib.sum(lib.tanh(a) * number)
    return total + lib.sum(arrays[0] * arrays[0]) + lib.sum(lib.sin(arrays[-1]))


instructions = st.lists(
    st.tuples(
        st.sampled_from("new view view same copy assign move whole part read".split()),
        st.integers(0, 7),
        st.integers(0, 7),
        st.integers(0, 41),
        st.sampled_from([0.5, -0.75, 1.25]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=400, deadline=None)
@given(instructions)
def test_random_programs_give_numpy_s_numbers_or_are_refused(program: list[Instruction]) -> None:
    given = X.copy()
    try:
        value, gradient = ox.value_and_grad(lambda x: run(xp, x, program))(given)
    except ox.ArrayMemoryError:
        assert any(instruction[0] == "view" for instruction in program)
        event("refused")
        return
    event("run")
    np.testing.assert_array_equal(given, X)
    np.testing.assert_allclose(value, run(np, X.copy(), program), rtol=1e-12, atol=1e-12)
    along, step = np.random.default_rng(1).standard_normal(X.shape), 1e-6
    ahead, behind = (run(np, X + sign * step * along, program) for sign in (1.0, -1.0))
    np.testing.assert_allclose(np.sum(gradient * along), (ahead - behind) / (2.0 * step), rtol=1e-5, atol=1e-6)


# --- refusals ----------------------------------------------------------------------------------------------------------


def view_after(view: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = x * 1.0
        seen = view(y)
        y[0] = 1.0
        return xp.sum(seen)

    return f


def base_after(view: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = x * 1.0
        seen = view(y)
        seen *= 2.0
        return xp.sum(y)

    return f


SEEN: dict[str, Callable[[Any], Any]] = {
    "index": lambda x: x[1:],
    "reshape": lambda x: xp.reshape(x, (-1,)),
    "ravel": lambda x: np.ravel(x),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "expand_dims": lambda x: x[None],
    "squeeze": lambda x: xp.squeeze(xp.expand_dims(x, axis=0), axis=0),
    "flip": lambda x: xp.flip(x),
    "real": lambda x: xp.real(x),
    "moveaxis": lambda x: xp.moveaxis(x, 0, 1),
    "split": lambda x: np.split(x, [1])[1],
    "rows": lambda x: list(x)[1],
}


@pytest.mark.parametrize("name", SEEN)
@pytest.mark.parametrize("when", [view_after, base_after])
def test_a_stale_variable_cannot_be_read(name: str, when: Any) -> None:
    with pytest.raises(ox.ArrayMemoryError, match="may share memory"):
        ox.grad(when(SEEN[name]))(X)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[np.array([0, 1])],
        lambda x: x[X > 0.0],
        lambda x: xp.asarray(x, copy=True),
        lambda x: np.copy(x),
        lambda x: xp.clip(x),
        lambda x: xp.tile(x, (1, 1)),
        lambda x: xp.pad(x, 0),
        lambda x: +x,
        lambda x: xp.astype(x, x.dtype),
        lambda x: xp.cumulative_prod(x[:, :1], axis=1),
    ],
)
def test_copies_are_not_refused(view: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(ox.vjp(view_after(view), X)[0], ox.vjp(lambda x: xp.sum(view(x)), X)[0])


def test_the_same_variable_by_another_name_sees_the_change() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        for same in (y, xp.asarray(y), xp.asarray(y, dtype=y.dtype), xp.astype(y, y.dtype, copy=False)):
            same[0] = same[0] * 2.0
            same += 1.0
        return y

    expected = X.copy()
    for _ in range(4):
        expected[0] *= 2.0
        expected += 1.0
    np.testing.assert_allclose(ox.vjp(f, X)[0], expected)


def test_a_broadcast_array_is_copied_first() -> None:
    with pytest.raises(ox.ArrayMemoryError, match="broadcast"):
        ox.grad(lambda x: part(operator.iadd, 0)(xp.broadcast_to(x, (2, 4))))(V)


def test_numbers_have_no_elements_and_get_new_names() -> None:
    def f(x: float) -> Any:
        y = x
        y += 1.0
        y *= x
        return y * x

    assert ox.grad(f)(3.0) == 3 * 3.0**2 + 2 * 3.0
    with pytest.raises(TypeError, match="elements"):
        ox.grad(lambda x: x.__setitem__(0, 1.0))(3.0)


def test_scalars_of_numpy_get_new_names() -> None:
    def f(x: Any) -> Any:
        total = xp.sum(x)
        before = total
        total += x[0]
        return before * total

    np.testing.assert_allclose(ox.vjp(f, V)[0], V.sum() * (V.sum() + V[0]))


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (lambda x: x.__setitem__(0, np.ones(7)), ValueError, "broadcast"),
        (lambda x: x.__setitem__(9, 1.0), IndexError, "bounds"),
        (lambda x: x.__setitem__(0, 1j), ox.DtypeError, "real part"),
        (lambda x: x.__setitem__([0, 0], X[:2]), ValueError, "repeated elements"),
        (lambda x: operator.iadd(x, np.ones((2, 3, 4))), ox.ShapeError, "in place"),
        (lambda x: operator.imul(x, 1j), ox.DtypeError, "real part"),
    ],
)
def test_a_mistake_changes_nothing(change: Any, error: type[Exception], says: str) -> None:
    with ox.Tape() as tape:
        x = tape.watch(X) * 1.0
        with pytest.raises(error, match=says):
            change(x)
        np.testing.assert_array_equal(x.value, X)


def test_an_inner_variable_is_not_assigned_to_an_outer_one() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0

        def inner(z: Any) -> Any:
            y[0] = z[0]
            return xp.sum(y * z)

        return xp.sum(ox.grad(inner)(x))

    with pytest.raises(ox.DerivativeError, match="outer function"):
        ox.grad(f)(V)


def test_an_outer_variable_that_changes_later_is_kept_as_it_was() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        value, pullback = ox.vjp(lambda z: z * y * z, x)
        y[0] = 100.0
        value[1] = 100.0
        return xp.sum(pullback(xp.ones_like(x))[0])  # 2 x * x, whatever y is now

    np.testing.assert_allclose(ox.grad(f)(V), 4.0 * V, rtol=1e-12)


def test_a_tape_returns_the_gradient_of_watched_values() -> None:
    with ox.Tape(forward=True) as tape:
        x = tape.watch(V)
        x[0] = x[1] * 3.0
        y = xp.sum(x * x)
    (gradient,) = tape.gradient(y, [x])
    np.testing.assert_allclose(gradient, [0.0, 20.0 * V[1], 2.0 * V[2], 2.0 * V[3]])
    np.testing.assert_allclose(tape.push([(x, np.ones(4))], [y])[0], np.sum(gradient))
    np.testing.assert_array_equal(x.value, [3.0 * V[1], *V[1:]])
    with pytest.raises(ox.TapeEndedError):
        x[0] = 1.0


def test_a_loop_of_assignments_is_linear_in_the_tape() -> None:
    with ox.Tape() as tape:
        x = tape.watch(V)
        y = x * 1.0
        start = len(tape)
        for i in range(50):
            y[i % 4] = y[(i + 1) % 4] * 1.01
        assert len(tape) - start <= 50 * 8
        total = xp.sum(y)
    np.testing.assert_allclose(tape.gradient(total, [x])[0], ox.grad(lambda x: xp.sum(turned(x)))(V))
    check_grads(turned, (V,))


def turned(x: Any) -> Any:
    y = x * 1.0
    for i in range(50):
        y[i % 4] = y[(i + 1) % 4] * 1.01
    return y
