"""`oxigrad.autograd` beside HIPS autograd: names, values and derivatives, and programs that import autograd."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
import oxigrad.autograd as ours
import oxigrad.autograd.numpy as anp
import oxigrad.autograd.scipy as asp
from oxigrad.autograd import core, extend, tracer
from oxigrad.autograd.misc import const_graph, fixed_points, flatten, optimizers
from oxigrad.autograd.numpy import numpy_vjps
from oxigrad.autograd.test_util import check_equivalent, check_grads, combo_check

RNG = np.random.default_rng(0)
MODULES = """numpy numpy.linalg numpy.fft numpy.random scipy scipy.special scipy.stats scipy.integrate extend tracer builtins misc
    misc.flatten misc.optimizers misc.fixed_points differential_operators test_util wrap_util""".split()
# Names of autograd's modules that are imports of theirs, or parts of its own graph, boxes and rules.
INTERNAL = set(
    """Box SparseObject JVPNode VJPNode Node TraceStack trace trace_stack trace_primitives_map box_types box_type_mappings new_box
    toposort find_top_boxed_args notrace_primitives ContainerVSpace DictVSpace ListVSpace NamedTupleVSpace SequenceVSpace TupleVSpace
    VSpace DictMeta ListMeta TupleMeta container_take container_untake dict_ isinstance_ list_ tuple_ type_ make_sequence
    sequence_extend_left sequence_extend_right grad_container_take fwd_grad_make_sequence grad_sequence_extend_left
    grad_sequence_extend_right autograd contextmanager defaultdict OrderedDict atuple partial repeat product np npr npo anp ffto npla
    warnings builtins wraps wrap_nary_f unflatten_optimizer fixed_point_vjp tuple subvals vspace make_vjp type flatten primitive defvjp
    defjvp defvjp_argnum defjvp_argnum defvjp_argnums defjvp_argnums notrace_primitive metadata match_complex func T add2d
    scipy argnums_unpack grad_odeint inv_root_pi root_pi repeat_to_match_shape unbroadcast_f custom_where c_class r_class
    notrace_functions numpy_jvps numpy_vspaces numpy_boxes numpy_version parse_einsum_input wrap_if_boxes_inside wrap_intdtype
    wrap_namespace truncate_pad norm_vjp norm_jvp""".split()
)
PREFIXES = ("grad_", "make_", "check_even", "check_no", "fwd_", "get_fft", "fft_", "rfft_grad", "irfft_grad")


@pytest.fixture
def theirs(library: Callable[[str], ModuleType]) -> ModuleType:
    """HIPS autograd."""
    return library("autograd")


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_there(theirs: ModuleType, name: str) -> None:
    if name.startswith("scipy"):
        pytest.importorskip("scipy")
    of_theirs, of_ours = (importlib.import_module(f"{package}.{name}") for package in ("autograd", "oxigrad.autograd"))
    public = {each for each in dir(of_theirs) if not each.startswith(("_", *PREFIXES))} - INTERNAL
    assert public
    assert {each for each in public if not hasattr(of_ours, each)} == set()


def test_modules_are_attributes_of_their_packages() -> None:
    for name in [
        *(each for each in MODULES if each != "misc.flatten"),
        "util",
        "misc.tracers",
        "scipy.stats.norm",
        "numpy.numpy_boxes",
        "numpy.numpy_vspaces",
    ]:
        module = importlib.import_module(f"oxigrad.autograd.{name}")
        assert functools.reduce(getattr, name.split("."), ours) is module
    assert core.getval is tracer.getval and core.isbox is tracer.isbox


def test_every_name_for_extensions_is_there(theirs: ModuleType) -> None:
    of_theirs = importlib.import_module("autograd.extend")
    assert {name for name in dir(of_theirs) if not name.startswith("__") and not hasattr(extend, name)} == set()


X, Z, M = RNG.normal(size=4), RNG.normal(size=3) + 1j * RNG.normal(size=3), RNG.normal(size=(3, 3))
# Functions of the package and an array, of numbers: real ones of real and of complex arguments.
REAL: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "tanh": (lambda np, x: np.sum(np.tanh(x) ** 2), X),
    "nested lists": (lambda np, x: np.linalg.det(np.array([[x[0], x[1]], [x[2], 2.0]])), X),
    "concatenate": (lambda np, x: np.sum(np.concatenate([x, x[:2] ** 2]) ** 2), X),
    "stack and einsum": (lambda np, x: np.einsum("ij,kj->", np.stack([x, x**2]), np.vstack([x, x])), X),
    "full": (lambda np, x: np.sum(np.full((2, 4), x[0]) ** 2 * x) * np.full((), x[1], dtype=float), X),
    "where": (lambda np, x: np.sum(np.where(x > 0, x**3, np.exp(x))), X),
    "inverse": (lambda np, x: np.trace(np.linalg.inv(x @ x.T + np.eye(3))), M),
    "eigh": (lambda np, x: np.linalg.eigh(x + x.T)[0][0], M),
    "fft": (lambda np, x: np.sum(np.abs(np.fft.fft(x)) ** 2), X),
    "complex": (lambda np, z: np.sum(np.real(z * z) + np.abs(z) ** 2), Z),
    "imaginary": (lambda np, z: np.imag(np.sum(np.exp(z))), Z),
}


@pytest.mark.parametrize("name", REAL)
def test_gradients_are_autograd_s(theirs: ModuleType, name: str) -> None:
    f, x = REAL[name]
    their_numpy = importlib.import_module("autograd.numpy")
    np.testing.assert_allclose(
        ours.grad(lambda x: f(anp, x))(x), theirs.grad(lambda x: f(their_numpy, x))(x), rtol=1e-10, atol=1e-12
    )


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "jacobian": lambda ag, np: ag.jacobian(lambda x: np.array([x[0] * x[1], np.sin(x[2])]))(X),
    "hessian": lambda ag, np: ag.hessian(lambda x: np.prod(x))(X),
    "elementwise_grad": lambda ag, np: ag.elementwise_grad(np.tanh)(X),
    "deriv": lambda ag, np: ag.deriv(lambda x: x**3)(2.0),
    "holomorphic_grad": lambda ag, np: ag.holomorphic_grad(lambda z: z**3)(1.0 + 2.0j),
    "grad_and_aux": lambda ag, np: ag.grad_and_aux(lambda x: (np.sum(x**2), 3.0))(X)[0],
    "value_and_grad": lambda ag, np: ag.value_and_grad(lambda x: np.sum(x**2))(X)[1],
    "grad_named": lambda ag, np: ag.grad_named(lambda a, b: a * b**2, "b")(3.0, 2.0),
    "several arguments": lambda ag, np: np.stack(ag.grad(lambda a, b, c: a * b**2 * c, (2, 1))(3.0, 2.0, 5.0)),
    "make_hvp": lambda ag, np: ag.make_hvp(lambda x: np.sum(x**4))(X)[0](X),
    "hessian_vector_product": lambda ag, np: ag.hessian_vector_product(lambda x: np.sum(x**4))(X, X),
    "vector_jacobian_product": lambda ag, np: ag.vector_jacobian_product(lambda x: x**2)(X, X),
    "make_ggnvp": lambda ag, np: ag.make_ggnvp(lambda x: np.tanh(x))(X)(X),
    "make_vjp": lambda ag, np: ag.make_vjp(lambda x: np.exp(x))(X)[0](X),
    "make_jvp": lambda ag, np: ag.make_jvp(lambda x: np.exp(x))(X)(X)[1],
    "trees": lambda ag, np: ag.grad(lambda t: t["a"][0] * t["b"] ** 2)({"a": [2.0], "b": 3.0})["b"],
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_autograd_s(theirs: ModuleType, name: str) -> None:
    expected = OPERATORS[name](theirs, importlib.import_module("autograd.numpy"))
    np.testing.assert_allclose(OPERATORS[name](ours, anp), expected, rtol=1e-10, atol=1e-12)


def test_lists_of_variables_are_arrays() -> None:
    def f(x: Any) -> Any:
        return anp.sum([x[0] * x[1], x[2]]) + anp.dot([x[0], x[3]], anp.array([x[1], 2.0]))

    np.testing.assert_allclose(ours.grad(f)(X), [2.0 * X[1], 2.0 * X[0], 1.0, 2.0])
    rows = ours.jacobian(lambda x: anp.array([[x[0], 1.0], [x[1], x[0]]], ndmin=3))(X)
    assert rows.shape == (1, 2, 2, 4) and rows.sum() == 3.0
    assert ours.grad(lambda x: anp.array([x, 1.0], dtype=np.float32)[0])(2.0) == 1.0


def test_a_gradient_of_no_scalar_is_refused() -> None:
    with pytest.raises(TypeError, match=r"grad applies to real scalar functions: found a value of shape \(4,\)"):
        ours.grad(lambda x: x)(X)
    with pytest.warns(UserWarning, match="independent of input"):
        assert ours.grad(lambda x: 1.0)(2.0) == 0.0


def test_multigrad_dict() -> None:
    assert ours.multigrad_dict(lambda a, b=2.0: a * b)(3.0) == {"a": 2.0, "b": 3.0}


# --- primitives ----------------------------------------------------------------------------------------------------------


def cube() -> Callable[..., Any]:
    """A primitive that checks that it gets plain values."""

    @extend.primitive
    def cube(x: Any, *, scale: float = 1.0) -> Any:
        assert not tracer.isbox(x)
        return scale * x**3

    extend.defvjp(cube, lambda ans, x, scale=1.0: lambda g: g * scale * 3.0 * x**2)
    return cube


def test_a_primitive_has_derivatives_of_both_orders() -> None:
    f = cube()
    assert ours.grad(f)(2.0) == 12.0
    assert ours.grad(ours.grad(f))(2.0) == 12.0
    assert f.fun(2.0) == 8.0
    np.testing.assert_allclose(ours.elementwise_grad(lambda x: f(x, scale=2.0))(X), 6.0 * X**2)
    check_grads(lambda x: anp.sum(f(anp.sin(x))), modes=["rev"])(X)


def test_a_primitive_has_jvps() -> None:
    f = cube()
    extend.defjvp(f, lambda g, ans, x: g * 3.0 * x**2)
    check_grads(f)(X)

    @extend.primitive
    def product(a: Any, b: Any) -> Any:
        return a * b

    extend.defvjp(product, lambda ans, a, b: lambda g: g * b, lambda ans, a, b: lambda g: g * a)
    extend.defjvp(product, "same", "same")
    check_grads(product, (0, 1))(1.5, -2.0)
    extend.def_linear(product)
    check_grads(product, (0, 1))(1.5, -2.0)


def test_rules_for_chosen_arguments() -> None:
    @extend.primitive
    def scaled(name: str, x: Any, y: Any) -> Any:
        return x * y

    extend.defvjp(scaled, lambda ans, name, x, y: lambda g: g * y, None, argnums=(1, 2))
    assert ours.grad(scaled, (1, 2))("by name", 2.0, 5.0) == (5.0, 0.0)
    extend.defvjp_argnums(scaled, lambda argnums, ans, args, kwargs: lambda g: [g * 10.0 * at for at in argnums])
    assert ours.grad(scaled, (1, 2))("by name", 2.0, 5.0) == (10.0, 20.0)
    extend.defvjp_argnum(scaled, lambda argnum, ans, args, kwargs: lambda g: g * argnum)
    assert ours.grad(scaled, (1, 2))("by name", 2.0, 5.0) == (1.0, 2.0)


def test_a_primitive_of_trees() -> None:
    @extend.primitive
    def swapped(pair: Any) -> Any:
        return {"first": pair[1], "second": pair[0] * 2.0}

    extend.defvjp(swapped, lambda ans, pair: lambda g: [g["second"] * 2.0, g["first"]])
    gradient = ours.grad(lambda pair: anp.sum(swapped(pair)["second"]) + 3.0 * swapped(pair)["first"])([X, 1.0])
    np.testing.assert_array_equal(gradient[0], 2.0 * np.ones(4))
    assert gradient[1] == 3.0


def test_a_primitive_is_called_for_each_example_of_a_batch() -> None:
    f = cube()
    np.testing.assert_allclose(ox.vmap(f)(X), X**3)
    np.testing.assert_allclose(ox.vmap(ox.grad(f))(X), 3.0 * X**2)


def test_lists_of_values_of_a_batch_are_arrays() -> None:
    batch = RNG.normal(size=(3, 2))
    doubled = ox.vmap(lambda x: anp.array([[x[0], 1.0], [2.0 * x[1], x[0]]]))(batch)
    np.testing.assert_array_equal(doubled[:, 1], np.stack([2.0 * batch[:, 1], batch[:, 0]], axis=1))
    np.testing.assert_array_equal(ox.vmap(lambda x: anp.sum([x[0], x[1]]))(batch), batch[:, 0] + batch[:, 1])
    np.testing.assert_array_equal(ox.vmap(lambda x: anp.full(2, x[0]))(batch), batch[:, :1] * np.ones(2))


def test_a_primitive_without_a_rule_says_so() -> None:
    f = extend.primitive(lambda x: 2.0 * x)
    with pytest.raises(NotImplementedError, match=r"found no VJP, expected defvjp"):
        ours.grad(f)(1.0)
    extend.defvjp(f, lambda ans, x: lambda g: g, argnums=(1,))
    with pytest.raises(NotImplementedError, match="found no VJP for argument 0"):
        ours.grad(f)(1.0)


def test_broadcast_cotangents_are_summed() -> None:
    @extend.primitive
    def add(a: Any, b: Any) -> Any:
        return a + b

    extend.defvjp(
        add,
        lambda ans, a, b: numpy_vjps.unbroadcast_f(a, lambda g: g),
        lambda ans, a, b: numpy_vjps.unbroadcast_f(b, lambda g: g),
    )
    a, b = np.ones((2, 3)), np.ones(3)
    np.testing.assert_array_equal(ours.grad(lambda b: anp.sum(add(a, b)))(b), [2.0, 2.0, 2.0])
    assert ours.grad(lambda c: anp.sum(add(a, c)))(1.0) == 6.0


def test_values_of_variables() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append((tracer.isbox(x), tracer.getval(x), x._value, isinstance(x, anp.numpy_boxes.ArrayBox)))
        plain = tracer.notrace_primitive(np.floor)(x)
        assert not tracer.isbox(plain)
        assert ours.isinstance(x, float) and ours.type(x) is float
        return x * plain

    assert ours.grad(f)(2.5) == 2.0
    assert seen == [(True, 2.5, 2.5, True)]
    assert not isinstance(2.5, tracer.Box)
    of_nested: list[Any] = []
    ours.grad(lambda x: ours.grad(lambda y: of_nested.append(tracer.getval(x * y)) or x * y)(x))(3.0)
    assert of_nested == [9.0]


class Units(np.ndarray):
    """An array as a library extends them: ufuncs give arrays of the class, and know no variables."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = tuple(each.view(np.ndarray) for each in kwargs.pop("out", ()))
        plain = [each.view(np.ndarray) if isinstance(each, Units) else each for each in inputs]
        if not all(isinstance(each, (np.ndarray, float, int)) for each in plain):
            return NotImplemented
        return getattr(ufunc, method)(*plain, **kwargs, **({"out": out} if out else {})).view(Units)


def held(value: Any, *_: Any) -> Any:
    if np.any(np.asarray(value) < 0.0):
        raise ValueError("negative")
    return anp.numpy_boxes.ArrayBox(value)


tracer.Box.type_mappings[Units] = held


@pytest.fixture
def units() -> np.ndarray:
    return np.array([1.0, 2.0, 3.0]).view(Units)


def test_registered_arrays_compute_with_variables(units: np.ndarray) -> None:
    def f(x: Any) -> Any:
        return anp.sum(x * units + units * x) + anp.einsum("i,i->", units, x) + anp.sum(anp.stack([x, units]) ** 2)

    np.testing.assert_array_equal(ours.grad(f)(np.ones(3)), [5.0, 8.0, 11.0])
    assert type(units * 2.0) is Units
    gradient = ours.grad(f)(units)
    np.testing.assert_array_equal(gradient, [5.0, 10.0, 15.0])
    assert type(gradient) is np.ndarray
    with pytest.raises(ValueError, match="negative"):
        ours.grad(f)(-units)


def test_registered_arrays_are_added_to_in_place(units: np.ndarray) -> None:
    def f(phase: Any) -> Any:
        phi = units
        phi += phase
        phase += units
        return anp.sum(phi * phase)

    # d/dp of the sum of (u + p)^2
    np.testing.assert_array_equal(ours.grad(f)(np.ones(3)), [4.0, 6.0, 8.0])
    np.testing.assert_array_equal(units, [1.0, 2.0, 3.0])


def test_a_subclass_of_boxes_makes_what_variables_hold() -> None:
    class Box(anp.numpy_boxes.ArrayBox):
        def __mul__(self, other: Any) -> Any:
            return NotImplemented

    np.testing.assert_array_equal(Box(np.ones(2)) * 2.0, [2.0, 2.0])


def test_variables_are_values_after_their_call() -> None:
    """A library may keep variables of a call, and compute with them in a rule of the backward pass."""
    kept: list[Any] = []

    @extend.primitive
    def cube(x: Any) -> Any:
        return x**3

    extend.defvjp(cube, lambda ans, x: lambda g: g * 3.0 * (kept[-1] + 0.0) ** 2)

    def f(x: Any) -> Any:
        kept.append(x)
        return anp.sum(cube(x))

    np.testing.assert_array_equal(ours.grad(f)(np.array([1.0, 2.0])), [3.0, 12.0])
    assert ours.grad(f)(2.0) == 12.0
    assert not tracer.isbox(kept[-1] * 2.0) and kept[-1] * 2.0 == 4.0 and -kept[-1] == -2.0
    assert ours.grad(ours.grad(f))(2.0) == 12.0


def test_a_vjp_of_a_list_may_be_an_array() -> None:
    @extend.primitive
    def weighted(pair: Any) -> Any:
        return 2.0 * pair[0] + 3.0 * pair[1]

    extend.defvjp(weighted, lambda ans, pair: lambda g: g * np.array([2.0, 3.0]))
    assert ours.grad(lambda x: weighted([x, x * x]))(5.0) == 32.0


def subclass_of_nodes() -> None:
    class Node(tracer.Node): ...

    Node()


@pytest.mark.parametrize(
    "use", [lambda: core.VJPNode.new_root(), lambda: tracer.new_box(1.0, 0, None), subclass_of_nodes]
)
def test_parts_of_autograd_s_graph_are_refused_at_their_use(use: Callable[[], Any]) -> None:
    with pytest.raises(NotImplementedError, match="found a use of autograd's graph"):
        use()


# --- spaces, containers, SciPy, programs ---------------------------------------------------------------------------------


def test_spaces() -> None:
    space = core.vspace({"a": 1.0, "b": np.zeros((2, 1), complex)})
    assert space.size == 5 == len([*space.standard_basis()])
    assert space == core.vspace({"a": 2.0, "b": np.ones((2, 1), complex)}) != core.vspace({"a": 2.0})
    x = space.randn()
    assert space.inner_prod(x, x) == pytest.approx(x["a"] ** 2 + np.sum(np.abs(x["b"]) ** 2))
    np.testing.assert_array_equal(space.covector(x)["b"], x["b"].conj())
    check_equivalent(space.add(x, space.scalar_mul(x, -1.0)), space.zeros())
    with pytest.raises(TypeError, match="found a str"):
        core.vspace("x")
    with pytest.raises(AssertionError):
        check_equivalent(1.0, 2.0)


def test_wrong_derivatives_are_found() -> None:
    f = extend.primitive(lambda x: x * 2.0)
    extend.defvjp(f, lambda ans, x: lambda g: g * 2.001)
    with pytest.raises(AssertionError, match="derivative .* by rev, central difference"):
        check_grads(f, modes=["rev"])(1.0)
    with pytest.raises(ValueError, match="modes is"):
        check_grads(f, modes=["forward"])(1.0)
    # A wrong tangent, a wrong second argument, and a first derivative without its own derivative.
    extend.defvjp(f, lambda ans, x: lambda g: g * 2.0)
    extend.defjvp(f, lambda g, ans, x: g * 2.001)
    check_grads(f, modes=["rev"])(1.0)
    with pytest.raises(AssertionError, match="derivative .* by fwd, central difference"):
        check_grads(f)(X)
    product = extend.primitive(lambda x, y: x * y)
    extend.defvjp(product, lambda ans, x, y: lambda g: g * y, lambda ans, x, y: lambda g: g * y)
    with pytest.raises(AssertionError, match="derivative .* by rev, central difference"):
        check_grads(product, (0, 1), modes=["rev"])(1.5, 2.0)
    cube = extend.primitive(lambda x: x**3)
    extend.defvjp(cube, lambda ans, x: lambda g: g * 3.0 * tracer.getval(x) ** 2)
    check_grads(cube, modes=["rev"], order=1)(1.5)
    with pytest.raises(AssertionError, match="by rev over rev, central difference"):
        check_grads(cube, modes=["rev"])(1.5)
    combo_check(lambda a, b=1.0: a * b, (0,))([1.0, X], b=[2.0, 3.0])


def test_flatten_and_graphs() -> None:
    vector, unflatten = flatten({"a": [], "b": ()})
    assert vector.shape == (0,) and unflatten(vector) == {"a": [], "b": ()}
    flat, unflatten = flatten({"b": [1.0, X], "a": M})
    np.testing.assert_array_equal(flat, [*M.ravel(), 1.0, *X])
    np.testing.assert_array_equal(unflatten(flat)["b"][1], X)
    assert const_graph(lambda a, x: a * x, 2.0)(3.0) == 6.0


@pytest.mark.parametrize("name", ["sgd", "rmsprop", "adam"])
def test_optimizers_are_autograd_s(theirs: ModuleType, name: str) -> None:
    start = {"w": X, "b": [np.array([2.0])]}
    calls: list[tuple[int, Any]] = []

    def gradient(params: Any, i: int) -> Any:
        return {"w": 2.0 * params["w"] + 0.01 * i, "b": [4.0 * params["b"][0] ** 3]}

    found = getattr(optimizers, name)(
        gradient,
        start,
        callback=lambda params, i, g: calls.append((i, params["w"].copy())),
        num_iters=7,
        step_size=0.01,
    )
    expected = getattr(importlib.import_module("autograd.misc.optimizers"), name)(
        gradient, start, num_iters=7, step_size=0.01
    )
    np.testing.assert_allclose(found["w"], expected["w"], rtol=1e-12)
    np.testing.assert_allclose(found["b"][0], expected["b"][0], rtol=1e-12)
    assert [i for i, _ in calls] == [*range(7)] and np.array_equal(calls[0][1], X)


def test_fixed_points() -> None:
    def sqrt(a: Any) -> Any:
        newton = lambda a: lambda x: 0.5 * (x + a / x)  # noqa: E731
        return fixed_points.fixed_point(newton, a, 1.0, lambda x, y: abs(x - y), 1e-10)

    assert sqrt(2.0) == pytest.approx(2.0**0.5)
    assert ours.grad(sqrt)(2.0) == pytest.approx(0.5 * 2.0**-0.5)
    assert ours.grad(ours.grad(sqrt))(2.0) == pytest.approx(-0.25 * 2.0**-1.5)


def test_scipy_s_names() -> None:
    stats = pytest.importorskip("scipy.stats")
    assert asp.stats.norm.cdf(0.3) == stats.norm.cdf(0.3)
    assert ours.grad(asp.stats.norm.cdf)(0.3) == pytest.approx(stats.norm.pdf(0.3))
    assert importlib.import_module("oxigrad.autograd.scipy.stats.norm") is asp.stats.norm
    check_grads(lambda x: asp.special.logsumexp(x) + anp.sum(asp.special.gammaln(x**2 + 1.0)))(X)
    linalg = pytest.importorskip("scipy.linalg")
    expected = np.sum(linalg.cholesky(np.diag(X**2 + 1.0) + 0.1)[0] ** 3)
    factor = lambda x: anp.sum(asp.linalg.cholesky(anp.diag(x**2 + 1.0) + 0.1)[0] ** 3)  # noqa: E731
    assert ours.value_and_grad(factor)(X)[0] == pytest.approx(expected)
    check_grads(factor, modes=["rev"], order=1)(X)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(
    ("shapes", "options"),
    [
        (((3,), (5,)), {}),
        (((5, 4), (2, 3)), {}),
        (((2, 5, 3), (4, 3, 2)), {"axes": ([1], [0]), "dot_axes": ([2], [1])}),
        (((4, 2, 3), (2, 6, 3)), {"axes": ([0], [1]), "dot_axes": ([1], [0])}),
    ],
)
def test_convolutions_are_autograd_s(theirs: ModuleType, mode: str, shapes: Any, options: Any) -> None:
    pytest.importorskip("scipy")
    a, b = (RNG.normal(size=shape) for shape in shapes)
    expected = importlib.import_module("autograd.scipy.signal").convolve(a, b, mode=mode, **options)
    np.testing.assert_allclose(asp.signal.convolve(a, b, mode=mode, **options), expected, rtol=1e-12, atol=1e-12)
    check_grads(lambda a, b: asp.signal.convolve(a, b, mode=mode, **options), (0, 1), order=1)(a, b)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


PROGRAM = """
import sys
import autograd
import autograd.numpy as np
from autograd import grad
from autograd.extend import primitive, defvjp
from autograd.misc.optimizers import adam
import autograd.numpy.linalg as linalg
print(autograd.__name__, grad(lambda x: np.sin(x))(0.0), linalg.det(np.eye(2)), sys.argv[1:])
"""


def test_a_program_runs_unchanged(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"{PROGRAM}\nimport beside\nprint(beside.VALUE, sys.path[0] == {str(tmp_path)!r})")
    (tmp_path / "beside.py").write_text("import autograd\nVALUE = autograd.__name__")
    done = run("-m", "oxigrad.autograd", str(program), "--option")
    assert (done.stdout, done.stderr) == ("oxigrad.autograd 1.0 1.0 ['--option']\noxigrad.autograd True\n", "")
    assert run("-m", "oxigrad.autograd").returncode == 1


def test_install_is_refused_after_an_import_of_autograd(theirs: ModuleType) -> None:
    done = run("-c", "import autograd, oxigrad.autograd; oxigrad.autograd.install()")
    assert "ImportError: oxigrad.autograd.install: found autograd imported already" in done.stderr


def test_a_module_that_autograd_lacks_is_named() -> None:
    done = run("-c", "import oxigrad.autograd as a; a.install(); a.install(); import autograd.nothing")
    assert "ModuleNotFoundError: No module named 'oxigrad.autograd.nothing'" in done.stderr


def test_vjps_that_are_no_functions_or_return_nothing_are_refused() -> None:
    for maker, text in [(lambda ans, x: 2.0, "is of type float"), (lambda ans, x: lambda g: None, "returned None")]:
        square = extend.primitive(lambda x: x * x)
        extend.defvjp(square, maker)
        with pytest.raises(TypeError, match=f"the VJP of argument 0 {text}: expected"):
            ours.grad(square)(3.0)
    extend.defvjp(square, None)
    assert ours.grad(square)(3.0) == 0.0


def test_rules_of_functions_with_rules_are_not_replaced() -> None:
    """SurPyval defines the JVP of `expit`, and ceviche the VJP of a function that is no primitive."""
    extend.defjvp(asp.special.expit, lambda g, ans, x: g * 0.0 + 5.0)
    extend.defvjp(np.tanh, lambda ans, x: lambda g: g * 0.0 + 5.0)
    extend.defvjp(lambda x: x, lambda ans, x: lambda g: g * 0.0 + 5.0)
    assert ours.grad(np.tanh)(0.0) == 1.0
    assert ours.grad(asp.special.expit)(0.0) == 0.25
    tanh = extend.primitive(np.tanh)
    extend.defvjp(tanh, lambda ans, x: lambda g: g * 0.0 + 5.0)
    assert ours.grad(tanh)(2.0) == 5.0


@pytest.mark.parametrize("make", [lambda x: ours.make_vjp(anp.sin)(x)[0], lambda x: ours.make_jvp(anp.sin)(x)])
@pytest.mark.parametrize("x", [1.0, np.ones(3)])
def test_complex_vectors_of_real_values_are_refused(make: Callable[[Any], Any], x: Any) -> None:
    with pytest.raises(ox.DtypeError, match="found a complex (cotangent|tangent), expected a real one"):
        make(x)(1j * x)


def test_cotangents_of_real_arguments_are_real(theirs: ModuleType) -> None:
    """Autograd's functions of NumPy that lead to a primitive take the real part."""
    results = []
    for library in (ours, theirs):
        names, anp = library.extend, library.numpy
        f = names.primitive(lambda x: x * (1.0 + 2.0j))
        names.defvjp(f, lambda ans, x: lambda g: g * (1.0 + 2.0j))
        results.append(library.grad(lambda x, f=f, anp=anp: anp.sum(anp.abs(f(anp.sin(x)))))(X))
    np.testing.assert_allclose(*results, rtol=1e-14)
