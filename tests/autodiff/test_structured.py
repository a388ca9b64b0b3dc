"""Derivative rules that the core runs on NumPy arrays as programs: the bits of the Python rule, without a call of Python."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import _core
from oxigrad.autodiff.rules.cotangents import unbroadcast
from oxigrad.autodiff.rules.vjp_rules import TABLE
from oxigrad.ops.core.primitives import along

PACKAGE = str(Path(ox.__file__).parent)
VARIADIC = {name for name, arity in _core.ops() if arity is None}
DTYPES = [np.float16, np.float32, np.float64, np.complex64, np.complex128]

# An op, its array arguments, and its attributes.
Row = tuple[str, tuple[np.ndarray, ...], dict[str, Any]]


def array(*shape: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed + 10 * len(shape))
    values = np.asarray(generator.standard_normal(shape))
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * generator.standard_normal(shape)
    return values.astype(dtype)


def layouts(x: np.ndarray) -> list[np.ndarray]:
    """Arrays of these numbers, or of this shape, that lie in memory in different ways."""
    if not x.ndim:
        return [x, x[()]]
    doubled, swapped = np.repeat(x, 2, axis=-1)[..., ::2], np.ascontiguousarray(x.T).T
    return [x, doubled, swapped, x[::-1], np.broadcast_to(x[:1], x.shape) if x.shape[0] else x]


def python_rule(name: str, which: int, g: Any, args: tuple[Any, ...], y: Any, named: dict[str, Any]) -> Any:
    """The cotangent of an argument by the rule of the table, called as the core calls it."""
    rule = TABLE[name][0 if name in VARIADIC else which]
    assert callable(rule)
    known = {"g": g, "y": y, "which": which, **named}
    names = ["condition", "x1", "x2"] if name == "where" else ["x"] if len(args) == 1 else ["x1", "x2"]
    for arg, called in zip(args, names, strict=False):
        known |= {called: arg, f"{called}_shape": arg.shape, f"{called}_dtype": arg.dtype}
    pulled = rule(**{parameter: known[parameter] for parameter in inspect.signature(rule).parameters})
    return unbroadcast(pulled, args[which].shape, args[which].dtype) if len(args) > 1 else pulled


def own_frames(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """The result of a call, and the functions of this package's Python layer that ran meanwhile."""
    found = []

    def trace(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found.append(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(trace)
    try:
        result = call()
    finally:
        sys.setprofile(before)
    return result, found


def check(row: Row, cotangents: Callable[[np.ndarray], list[np.ndarray]] = layouts, *, is_in_core: bool = True) -> None:
    """Compares the cotangents of the replay with those of the Python rule; with ``is_in_core`` no Python function of ours may run."""
    name, args, named = row
    active = [at for at, arg in enumerate(args) if np.issubdtype(arg.dtype, np.inexact)]
    with ox.Tape() as tape:
        variables = {at: tape.watch(args[at]) for at in active}
        result = _core.record(name, [variables.get(at, arg) for at, arg in enumerate(args)], named)
    y = result.value
    g = array(*y.shape, dtype=y.dtype, seed=5)
    tape.gradient(result, list(variables.values()), g)  # traces the rules, and looks up the functions of NumPy
    for each in cotangents(g):
        pulled, frames = own_frames(lambda each=each: tape.gradient(result, list(variables.values()), each))
        assert frames == [] or not is_in_core
        for at, found in zip(active, pulled, strict=True):
            expected = python_rule(name, at, each, args, y, named)
            assert found.dtype == expected.dtype == args[at].dtype
            assert np.shape(found) == np.shape(expected) == args[at].shape
            assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
            assert type(found) is (type(expected) if found.ndim else found.dtype.type)  # a scalar, as NumPy's sums


REDUCTIONS = {
    (): [None, ()],
    (3,): [None, 0, -1, (0,), ()],
    (2, 3): [None, 0, 1, -1, (0, 1), (-1, 0)],
    (2, 3, 4): [None, 1, (0, 2), (-1,), (0, -2)],
    (2, 0, 3): [None, 0, 1, (1, 2)],
    (40, 50, 20): [None, 0, -1, (0, 2)],
    (1, 5): [0, 1],
}
ROWS = [(shape, axis) for shape, axes in REDUCTIONS.items() for axis in axes]


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value encountered")  # of NumPy's mean itself
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(("shape", "axis"), ROWS, ids=str)
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums(name, shape, axis, keepdims, dtype) -> None:
    x = array(*shape, dtype=dtype)
    for each in layouts(x) if x.size < 100 else [x]:
        check((name, (each,), {"axis": axis, "keepdims": keepdims}))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [row for row in ROWS if 0 not in row[0] and row[1] != ()], ids=str)
@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema(name, shape, axis, keepdims, dtype) -> None:
    x = array(*shape, dtype=dtype)
    for each in [*layouts(x), np.round(x)] if x.size < 100 else [np.round(x)]:  # the last has equal elements
        check((name, (each,), {"axis": axis, "keepdims": keepdims}))


@pytest.mark.filterwarnings("ignore:invalid value encountered")  # of the row with a NaN
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), (1, 2)], ids=str)
@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema_of_large_arrays_have_the_bits_of_weights(name, axis, dtype) -> None:
    x = np.round(array(41, 40, 40, dtype=dtype), 1)
    x[-1, -1, -1] = np.nan

    def extremum(x: Any) -> Any:
        return getattr(ox.xp, name)(x, axis=axis)

    is_chosen = x == getattr(np, name)(x, axis=axis, keepdims=True)
    weights = is_chosen.astype(dtype) / np.sum(is_chosen, axis=axis, keepdims=True, dtype=dtype)
    along = array(*np.shape(extremum(x)), dtype=dtype, seed=1)
    expected = weights * along.reshape(np.sum(x, axis=axis, keepdims=True).shape)
    (found,) = ox.vjp(extremum, x)[1](along)
    recorded = ox.record(lambda x, along: ox.vjp(extremum, x)[1](along)[0])
    is_known = ~np.isnan(expected)
    for each in (found, recorded(x, along), recorded(x, along)):
        assert each.dtype == dtype
        np.testing.assert_array_equal(each, expected)
        np.testing.assert_array_equal(np.signbit(each)[is_known], np.signbit(expected)[is_known])
    assert recorded.why is None


SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (6, 3, 4)),
    ((0, 3), (3, 4)),
    ((2, 0), (0, 4)),
    ((200, 130), (130, 140)),
    ((40, 70, 50), (40, 50, 70)),
    ((50_000,), (50_000, 2)),
]


MIXED = [(np.float32, np.float64), (np.float64, np.complex64), (np.float64, np.int64), (np.bool_, np.complex128)]


@pytest.mark.parametrize("dtypes", [(d, d) for d in DTYPES] + MIXED)
@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
def test_matmul(left, right, dtypes) -> None:
    a, b = array(*left, dtype=dtypes[0]), array(*right, dtype=dtypes[1], seed=1)
    if a.size > 1000:
        check(("matmul", (a, b), {}), lambda g: [g])
        return
    for each, other in zip(layouts(a), layouts(b), strict=True):
        check(("matmul", (each, other), {}))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "row",
    [
        ("reshape", (array(2, 3, 4),), {"shape": (4, 6)}),
        ("reshape", (array(6),), {"shape": (2, -1)}),
        ("reshape", (array(),), {"shape": (1, 1)}),
        ("reshape", (array(1),), {"shape": ()}),
        ("reshape", (array(0, 3),), {"shape": (3, 0)}),
        ("expand_dims", (array(2, 3),), {"axis": -2}),
        ("expand_dims", (array(),), {"axis": 0}),
        ("squeeze", (array(2, 1, 3, 1),), {"axis": (1, -1)}),
        ("squeeze", (array(1, 1),), {"axis": (0, 1)}),
        ("permute_dims", (array(2, 3, 4),), {"axes": (2, 0, 1)}),
        ("permute_dims", (array(),), {"axes": ()}),
        ("permute_dims", (array(5, 0, 2),), {"axes": (1, 2, 0)}),
        ("broadcast_to", (array(3),), {"shape": (2, 3)}),
        ("broadcast_to", (array(),), {"shape": (2, 3)}),
        ("broadcast_to", (array(3, 1, 2),), {"shape": (4, 3, 5, 2)}),
        ("broadcast_to", (array(1, 2),), {"shape": (0, 2)}),
        ("broadcast_to", (array(2, 3),), {"shape": (2, 3)}),
        ("broadcast_to", (array(1, 300),), {"shape": (200, 300)}),
    ],
    ids=str,
)
def test_shapes(row: Row, dtype) -> None:
    name, (x,), named = row
    check((name, (x.astype(dtype),), named))


@pytest.mark.parametrize(
    "dtypes", [(np.float64,) * 3, (np.float32, np.float64, np.float32), (np.complex64, np.float64)]
)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_joined(axis, dtypes) -> None:
    shapes = [(2, 3, 4), (2, 3, 4), (2, 3, 4)][: len(dtypes)]
    arrays = tuple(array(*shape, dtype=dtype, seed=at) for at, (shape, dtype) in enumerate(zip(shapes, dtypes)))  # noqa: B905
    ends = tuple(axis_size for axis_size in np.cumsum([0, *(x.shape[axis] for x in arrays)]).tolist())
    check(("concat", arrays, {"axis": axis, "ends": ends}))
    check(("stack", arrays, {"axis": axis}))
    check(("stack", tuple(x[0, 0, 0].reshape(()) for x in arrays), {"axis": 0}))
    check(("concat", tuple(x[:, :0] for x in arrays), {"axis": 1, "ends": (0,) * (len(arrays) + 1)}))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "row",
    [
        ("vector_norm", (array(2, 3, 4),), {"axis": (0, -1), "keepdims": False}),
        ("vector_norm", (array(2, 3),), {"axis": None, "keepdims": False}),
        ("vector_norm", (np.zeros((2, 3)),), {"axis": 1, "keepdims": True}),
        ("flip", (array(2, 3),), {"axis": -1}),
        ("flip", (array(2, 3),), {"axis": None}),
        ("det", (array(2, 3, 3),), {}),
        ("det", (array(1, 1),), {}),
    ],
    ids=str,
)
def test_others(row: Row, dtype) -> None:
    name, (x,), named = row
    check((name, (x.astype(dtype),), named), lambda g: [g], is_in_core=False)  # they call adapters


KEYS = [
    0,
    -1,
    slice(1, None),
    slice(None, None, -2),
    ...,
    None,
    (),
    (0, 1),
    (0, 1, -2),
    (0, ..., 1),
    (slice(None), 1),
    (None, 1, ..., None, slice(0, 2)),
    (0, 1, 2, ...),
    slice(0, 0),
    np.array([2, 0, 2, 1]),
    [0, 0, 1],
    (slice(None), np.array([[1, 0], [1, 1]])),
    (np.array([0, 2]), np.array([1, 1]), ...),
    np.array(1),
    np.int64(2),
    np.arange(24).reshape(3, 2, 4) % 3 == 0,
    np.array([True, False, True]),
    along(1, np.array([1, 1, 0])),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_index(key, dtype) -> None:
    x = array(3, 2, 4, dtype=dtype)
    check(("index", (x,), {"key": key}))
    check(("scatter_add", (x[key],), {"key": key, "shape": x.shape}), lambda g: [g])


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("dtypes", [(a, b) for a in DTYPES for b in DTYPES])
def test_astype(dtypes) -> None:
    check(("astype", (array(2, 3, dtype=dtypes[0]),), {"dtype": np.dtype(dtypes[1]), "copy": True}))
    check(("astype", (array(dtype=dtypes[0]),), {"dtype": np.dtype(dtypes[1]), "copy": True}))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((0, 3), (3,))])
def test_where(shapes, dtype) -> None:
    condition = array(2, 3) > 0 if 0 not in shapes[0] else np.zeros((0, 3), bool)
    a, b = array(*shapes[0], dtype=dtype), array(*shapes[1], dtype=dtype, seed=3)
    check(("where", (condition, a, b), {}))


def test_the_size_of_a_variable_calls_no_python() -> None:
    with ox.Tape() as tape:
        for shape in [(), (3,), (2, 3, 4), (5, 0)]:
            x = tape.watch(np.zeros(shape))
            assert own_frames(lambda x=x: x.size) == (x.value.size, [])
        assert tape.watch(2.0).size == 1


def test_gradients_of_a_stack_times_a_matrix_are_single_products() -> None:
    x, w, weights = array(5, 7, 3), array(3, 4, seed=1), array(5, 7, 4, seed=2)
    gradient = ox.record(ox.grad(lambda x, w, weights: ox.xp.sum((x @ w) * weights), argnums=(0, 1)))
    for _ in range(2):
        by_x, by_w = gradient(x, w, weights)
    np.testing.assert_allclose(by_x, np.einsum("bik,jk->bij", weights, w))
    np.testing.assert_allclose(by_w, np.einsum("bij,bik->jk", x, weights))
    printed = gradient.recordings[-1].printed(True)
    assert printed.count("= matmul(") == 2
    assert "= sum(" not in printed
