"""Derivatives inside and around `vmap`, beside a loop over the examples: every function, with batched and unbatched arguments.

A *problem* is a function of a vector ``s`` of two numbers, which moves the batched arguments and the unbatched ones: the outer
transforms differentiate by it. Inside, the function of the table is differentiated by some of its arguments; the others are closed
over. So each argument is batched or not, and differentiated inside or not.
"""

from __future__ import annotations

import functools
import itertools
import tracemalloc
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import forms
import function_table
import oxigrad as ox
from cases import CASES as ELEMENTARY
from cases import Case, normal
from cases_linalg import CASES as LINALG
from libraries import LACKING, function_of, host
from oxigrad import tree, xp

# Functions that depend on the values, which tests of `vmap` alone have.
REFUSED = set("unique_all unique_counts unique_inverse unique_values odeint".split())
# Of a case without a derivative of the third order, or whose derivatives take seconds.
SLOW = set("svdvals solve_sylvester eig expm sqrtm cofactor".split())
CASES = {case.name: case for case in (*ELEMENTARY, *LINALG) if case.args and function_of(case.name) not in REFUSED}
FIRST = list({function_of(name): name for name in reversed(CASES)}.values())
EXAMPLES = (1.0, 0.95)


def real(x: Any) -> Any:
    """A real number of each element."""
    return xp.real(x * (1.0 + 0.5j)) if "complex" in str(getattr(x, "dtype", "")) else x


def loss(result: Any) -> Any:
    """A real number of all results."""
    leaves = [xp.asarray(leaf) for leaf in tree.leaves(result) if leaf is not None]
    return sum((1.0 + 0.3 * at) * xp.sum(xp.sin(real(leaf))) for at, leaf in enumerate(leaves))


# --- transforms ----------------------------------------------------------------------------------------------------------


def _jvp(f: Callable[..., Any], at: tuple[int, ...]) -> Callable[..., Any]:
    def pushed(*args: Any) -> Any:
        def of_chosen(*parts: Any) -> Any:
            whole = dict(zip(at, parts, strict=True))
            return f(*(whole.get(k, arg) for k, arg in enumerate(args)))

        chosen = tuple(args[k] for k in at)
        return ox.jvp(of_chosen, chosen, tuple(xp.ones_like(part) * 0.7 for part in chosen))[1]

    return pushed


INNER: dict[str, Callable[..., Any]] = {"grad": ox.grad, "jvp": _jvp, "hessian": ox.hessian}
OUTER: dict[str, Callable[..., Any]] = {
    "none": lambda f, s, t: f(s),
    "grad": lambda f, s, t: ox.grad(lambda s: loss(f(s)))(s),
    "jvp": lambda f, s, t: ox.jvp(f, (s,), (t,))[1],
    "hessian": lambda f, s, t: ox.hessian(lambda s: loss(f(s)))(s),
}
PAIRS = list(itertools.product(INNER, [*OUTER, "vmap"]))


class Problem:
    """A function of the table with these arguments batched, and these differentiated inside."""

    def __init__(self, case: Case, batched: Iterable[bool], at: Iterable[int], asarray: Callable[..., Any]) -> None:
        self.flags, self._at, self._f = (True, *batched), tuple(k + 1 for k in at), case.function
        self._tolerance = 1e-8 if function_of(case.name) == "solve_banded" else 1e-10  # whose matrix is ill-conditioned
        self._asarray, self._points = asarray, [asarray(np.array([0.6, 1.1]))]
        self._directions = [asarray(np.ones(2))]
        for k, (arg, flag) in enumerate(zip(case.args, self.flags[1:], strict=True)):
            arg = np.asarray(arg)
            direction = 0.1 * normal(*arg.shape, seed=11 + k)
            self._points.append(asarray(np.stack([arg * weight for weight in EXAMPLES]) if flag else arg))
            self._directions.append(asarray(np.stack([direction, 0.5 * direction]) if flag else direction))

    def _args(self, s: Any) -> list[Any]:
        parts = zip(self._points, self._directions, self.flags, strict=True)
        return [point + s[0 if flag else 1] * direction for point, direction, flag in parts]

    def _inside(self, inner: str) -> Callable[..., Any]:
        def f(factor: Any, *args: Any) -> Any:  # the factor is batched where nothing else is
            return loss(self._f(*args)) * xp.sin(factor)

        return INNER[inner](f, self._at)

    def by_vmap(self, inner: str, s: Any) -> Any:
        """The results of the inner transform for all examples."""
        return ox.vmap(self._inside(inner), tuple(0 if flag else None for flag in self.flags))(*self._args(s))

    def by_loop(self, inner: str, s: Any) -> Any:
        """The same, one by one."""
        f, args = self._inside(inner), self._args(s)
        chosen = [[arg[k, ...] if flag else arg for arg, flag in zip(args, self.flags, strict=True)] for k in (0, 1)]
        return tree.map(lambda *parts: xp.stack(list(map(xp.asarray, parts))), *(f(*each) for each in chosen))

    def fault(self, inner: str, outer: str) -> str:
        """The fault of a pair of transforms; empty if there is none."""
        s, t = self._asarray(np.zeros(2)), self._asarray(np.array([1.0, 0.7]))
        own, by_loop = functools.partial(self.by_vmap, inner), functools.partial(self.by_loop, inner)
        try:
            if outer == "vmap":
                several = self._asarray(np.array([[0.0, 0.0], [0.01, 0.02]]))
                wanted = tree.map(lambda *parts: xp.stack(list(parts)), *map(by_loop, several))
                return difference(ox.vmap(own)(several), wanted, self._tolerance)
            return difference(OUTER[outer](own, s, t), OUTER[outer](by_loop, s, t), self._tolerance)
        except Exception as error:  # noqa: BLE001 - any is a fault
            return f"{type(error).__name__}: {error}"


def difference(found: Any, wanted: Any, tolerance: float = 1e-10) -> str:
    """The difference of two trees by more than rounding; empty if there is none."""
    found, wanted = list(map(host, tree.leaves(found))), list(map(host, tree.leaves(wanted)))
    if [x.shape for x in found] != [x.shape for x in wanted]:
        return f"shapes {[x.shape for x in found]} in place of {[x.shape for x in wanted]}"
    for one, other in zip(found, wanted, strict=True):
        size = max(1.0, float(np.max(np.abs(other), initial=0.0)))
        if not np.allclose(one, other, rtol=tolerance, atol=tolerance * size, equal_nan=True):
            return f"{one} in place of {other}"
    return ""


def roles(count: int) -> Iterator[tuple[tuple[bool, ...], tuple[int, ...]]]:
    """The arguments that are batched, and those that are differentiated inside; of three or more only the first against the rest."""
    everything, first, rest = tuple(range(count)), (0,), tuple(range(1, count))
    yield (True,) * count, everything
    yield (False,) * count, everything
    if count > 1:
        for flag, at in itertools.product((True, False), (first, rest)):
            yield (flag, *(not flag,) * (count - 1)), at


def faults(name: str, pairs: Sequence[tuple[str, str]], asarray: Callable[..., Any], turn: int = 0) -> list[str]:
    """The faults of a case: of pairs in turns over the roles of its arguments, in the second turn from the next pair on."""
    case, found = CASES[name], []
    patterns = list(roles(len(case.args)))
    turns = itertools.islice(itertools.cycle(pairs), turn * len(patterns), None)
    for (batched, at), (inner, outer) in zip(patterns, turns, strict=False):
        what = Problem(case, batched, at, asarray).fault(inner, outer)
        if what:
            found.append(f"batched {batched}, by {at}, {inner} inside of {outer}: {what[:300]}")
    return found


def pairs_of(name: str, at: int) -> list[tuple[str, str]]:
    """The pairs of transforms, from another one on for each case; without Hessians where they take seconds."""
    turned = PAIRS[at * 4 % len(PAIRS) :] + PAIRS[: at * 4 % len(PAIRS)]
    is_short = function_of(name) in SLOW or "complex" in name  # a complex argument has no Hessian
    return [pair for pair in turned if not is_short or "hessian" not in pair]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.one_in(6)
def test_derivatives_around_vmap_of_derivatives(name: str, turn: int) -> None:
    found = faults(name, pairs_of(name, list(CASES).index(name)), np.array, turn)
    assert not found, "\n".join(found)


# Ops whose rules read values of two arguments, or that move, join and select elements.
OPS = """multiply divide pow atan2 hypot logaddexp where maximum copysign clip-arrays matmul matmul-vector vector-matmul concat stack
sum-axis max-axis take_along_axis index-integers solve call tensordot einsum vecdot outer""".split()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pair", PAIRS, ids="-in-".join)
@pytest.mark.parametrize("name", [name for name in OPS if name in CASES])
def test_every_pair_of_transforms_and_roles(name: str, pair: tuple[str, str]) -> None:
    case, found = CASES[name], []
    for batched, at in roles(len(case.args)):
        if what := Problem(case, batched, at, np.array).fault(*pair):
            found.append(f"{batched}, {at}: {what[:300]}")
    assert not found, "\n".join(found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", [name for name in FIRST if ("torch", name) not in LACKING and function_of(name) not in SLOW]
)
@pytest.mark.one_in(6)
def test_derivatives_around_vmap_over_torch(name: str, library) -> None:
    torch = library("torch")
    found = faults(name, pairs_of(name, [*FIRST].index(name)), lambda values: torch.asarray(np.array(values)))
    assert not found, "\n".join(found)


# --- memory ------------------------------------------------------------------------------------------------------------


def _peak(f: Callable[..., Any], *args: Any) -> int:
    f(*args)
    tracemalloc.start()
    try:
        f(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("what", ["laplacian", "hessian", "penalty"])
def test_memory_grows_with_the_number_of_examples(what: str) -> None:
    p = [normal(2, 8), normal(8), normal(8, 8, seed=1), normal(8, seed=2)]

    def net(p: Any, x: Any) -> Any:
        return xp.sum(xp.tanh(xp.tanh(x @ p[0] + p[1]) @ p[2]) * p[3])

    def at_point(p: Any, x: Any) -> Any:
        if what == "hessian":
            return xp.sum(ox.hessian(net, 1)(p, x) ** 2)
        if what == "penalty":
            return xp.sum(ox.grad(net, 1)(p, x) ** 2)
        return sum(ox.grad(lambda x, k=k: ox.grad(net, 1)(p, x)[k])(x)[k] for k in range(2))

    def total(x: Any) -> Callable[..., Any]:
        return ox.grad(lambda p: xp.mean(ox.vmap(at_point, (None, 0))(p, x)))

    few, many = normal(64, 2, seed=3), normal(256, 2, seed=3)
    assert _peak(total(many), p) < 5 * _peak(total(few), p)
    loop = ox.grad(lambda p: sum(at_point(p, x) for x in few[:8]) / 8)
    assert not difference(total(few[:8])(p), loop(p))


# --- functions that are called for each example, or refused ----------------------------------------------------------------


def _by_loop(f: Callable[..., Any], axes: tuple[int | None, int | None]) -> Callable[..., Any]:
    def looped(*args: Any) -> Any:
        each = [[arg[k] if axis == 0 else arg for arg, axis in zip(args, axes, strict=True)] for k in range(3)]
        return xp.stack([f(*chosen) for chosen in each])

    return looped


def _host_rule(library: Any) -> Callable[..., Any]:
    return ox.custom_vjp(
        lambda x, w: np.asarray(x) ** 3 * np.asarray(w), lambda g, y, x, w: (g * 3.0 * x * x * w, g * x**3)
    )


def _residuals(library: Any) -> Callable[..., Any]:
    f = ox.custom_vjp(lambda x, w: x**3 * w)
    f.defvjp(lambda x, w: (x**3 * w, (x, w)), lambda r, g: (g * 2.0 * r[1], g * 5.0 * r[0]))  # another derivative
    return f


def _root(x: Any, w: Any) -> Any:
    """The real number y with y**3 + w**2 y = x."""
    y = np.cbrt(x)
    for _ in range(60):
        y = y - (y**3 + w * w * y - x) / (3.0 * y * y + w * w)
    return y


def _of_torch(library: Any) -> Callable[..., Any]:
    torch = library("torch")
    return library("oxigrad.interop.torch").from_torch(lambda x, w: torch.sin(x * w) * x**2)


def _of_jax(library: Any) -> Callable[..., Any]:
    library("jax").config.update("jax_enable_x64", True)
    return library("oxigrad.interop.jax").from_jax(lambda x, w: library("jax.numpy").sin(x * w) * x**2)


def _moved(f: Callable[..., Any], args: tuple[Any, Any]) -> Callable[[Any], Any]:
    """The function of two arguments as one of a number that moves both."""
    return lambda s: f(args[0] + 0.1 * s, args[1] - s)


CALLED: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "checkpoint": lambda library: ox.checkpoint(lambda x, w: xp.sin(x * w) * x),
    "rule over arrays": _host_rule,
    "residuals": _residuals,
    "implicit": lambda library: ox.implicit(lambda y, x, w: y**3 + w * w * y - x, _root),
    "torch": _of_torch,
    "jax": _of_jax,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLED)
def test_functions_that_are_called_for_each_example(name: str, library) -> None:
    f = CALLED[name](library)
    x, w = np.array([[1.0, 2.0], [3.0, 0.5], [0.3, 0.7]]), np.array([0.5, -0.3])
    scalar = lambda x, w: xp.sum(xp.sin(f(x, w)))  # noqa: E731
    insides = [f, ox.grad(scalar), ox.grad(scalar, 1), lambda x, w: ox.jvp(lambda x: f(x, w), (x,), (x,))[1]]
    insides += [ox.hessian(scalar)]
    for inside in insides if name != "jax" else insides[1:3]:
        for axes, args in (((0, None), (x, w)), ((None, 0), (w + 1.3, x)), ((0, 0), (x, x[::-1].copy()))):
            own, wanted = (_moved(h, args) for h in (ox.vmap(inside, axes), _by_loop(inside, axes)))
            for outer in ("none", "grad", "jvp"):
                assert not difference(OUTER[outer](own, 0.0, 1.0), OUTER[outer](wanted, 0.0, 1.0)), (axes, outer)


def _calls() -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    for section in function_table.SECTIONS:
        space = section.spaces[next(iter(section.spaces))]
        for form in section.forms:
            if not form.refused and not form.reason:
                f, args = forms.function(form.calls[0], {**space, "xp": xp})
                yield f"{form.name}: {form.calls[0]}", f, tuple(map(np.asarray, args))


def test_every_form_is_that_of_each_example_or_refused() -> None:
    wrong, refused, right = [], [], 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, f, args in _calls():
            if not args or name.startswith("linspace"):
                continue
            each = [[x if x.dtype.kind in "iub" else x * weight for x in args] for weight in EXAMPLES]
            at = tuple(k for k, x in enumerate(args) if x.dtype.kind in "fc")
            total = lambda *args, f=f: loss(f(*args))  # noqa: E731
            wanted = tree.map(lambda *parts: np.stack(parts), *(ox.grad(total, at)(*one) for one in each))
            batch = [np.stack(parts) for parts in zip(*each, strict=True)]
            try:
                what = difference(ox.vmap(ox.grad(total, at))(*batch), wanted)
            except (TypeError, AttributeError) as error:
                (refused if str(error).startswith("vmap") else wrong).append(f"{name}: {error}")
            except Exception as error:  # noqa: BLE001 - any is a fault
                wrong.append(f"{name}: {type(error).__name__} {error}")
            else:
                right += not what
                wrong += [f"{name}: {what}"] if what else []
    assert not wrong, "\n".join(wrong)
    assert right > 3 * len(refused)


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda x: ox.scipy.root(lambda y: y - x, np.zeros(3)).x, "root"),
        (lambda x: ox.scipy.minimize(lambda y: xp.sum((y - x) ** 2), np.zeros(3)).x, "minimize"),
        (lambda x: ox.scipy.least_squares(lambda y: y - x, np.zeros(3)).x, "least_squares"),
    ],
)
def test_a_function_without_a_batching_rule_is_refused_by_name(f: Callable[..., Any], name: str) -> None:
    with pytest.raises(TypeError, match=f"vmap: {name} has no batching rule"):
        ox.vmap(f)(np.array([[1.0, 2.0, 0.1], [3.0, 0.5, 2.0]]))


def test_a_step_whose_gradients_are_batched_and_parameters_not_is_refused() -> None:
    opt, x = ox.optim.SGD(0.1), np.array([[1.0, 2.0], [3.0, 0.5]])

    def trained(x: Any) -> Any:
        return opt.minimize(lambda model: xp.sum((model["w"] - x) ** 2), {"w": np.zeros(2)})

    with pytest.raises(ox.ArrayMemoryError, match="w: the gradient differs between the examples of a vmap"):
        ox.vmap(trained)(x)
    updated = ox.vmap(lambda x: opt.update({"w": x * 1.0}, {"w": x})["w"])(x)
    np.testing.assert_allclose(updated, 0.9 * x)


def test_a_batched_value_assigned_to_a_variable_of_an_outer_function_is_refused() -> None:
    def f(w: Any) -> Any:
        def inside(x: Any) -> Any:
            w[0] = x
            return xp.sum(w)

        return xp.sum(ox.vmap(inside)(np.ones(3)))

    with pytest.raises(ox.DerivativeError, match="differs between the examples of an inner vmap"):
        ox.grad(f)(np.ones(2))


# --- keys that differ between examples --------------------------------------------------------------------------------------

KEYS: dict[str, Callable[..., Any]] = {
    "take": lambda w, i: xp.sum(xp.sin(xp.take(w, i)) ** 2),
    "take_along_axis": lambda w, i: xp.sum(xp.sin(xp.take_along_axis(w * w, xp.reshape(i, (1,)), axis=0))),
    "sort": lambda w, i: xp.sum(xp.sort(w * xp.astype(i, np.float64))[:2] ** 3),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_that_differ_between_examples(name: str) -> None:
    f, where = KEYS[name], np.array([2, 0, 3])
    insides = [f, ox.grad(f), ox.hessian(f), lambda w, i: ox.jvp(lambda w: f(w, i), (w,), (w,))[1]]
    for inside in [*insides, ox.grad(lambda w, i: xp.sum(ox.grad(f)(w, i) ** 2))]:
        for outer, (w, axis) in itertools.product(OUTER, ((normal(4), None), (normal(3, 4), 0))):
            own, wanted = (
                OUTER[outer](lambda w, h=h, axis=axis: h(inside, (axis, 0))(w, where), w, w)  # noqa: B023
                for h in (ox.vmap, _by_loop)
            )
            assert not difference(own, wanted), (name, outer, axis)
