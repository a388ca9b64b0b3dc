"""Methods and attributes of arrays on variables, against those of the arrays themselves and the derivatives of PyTorch."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

X = np.array([[0.3, -1.2, 2.5], [1.7, 0.4, -0.6]])

# Methods of NumPy's arrays, with arguments.
NUMPY: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[
        (name, (), {})
        for name in ("conj", "conjugate", "copy", "cumprod", "cumsum", "flatten", "max", "mean", "min", "prod")
    ],
    *[(name, (), {"axis": 1}) for name in ("cumprod", "cumsum", "max", "mean", "min", "prod", "std", "sum", "var")],
    *[(name, (0,), {}) for name in ("cumsum", "max", "mean", "sum", "std", "var")],
    *[(name, (), {"axis": 0, "keepdims": True}) for name in ("max", "mean", "min", "prod", "std", "sum", "var")],
    *[(name, (), {}) for name in ("ravel", "round", "squeeze", "std", "sum", "trace", "transpose", "var", "diagonal")],
    ("astype", (np.float64,), {}),
    ("astype", (), {"dtype": np.float64, "copy": False}),
    ("clip", (-1.0, 1.0), {}),
    ("clip", (), {"max": 0.5}),
    ("dot", (np.ones((3, 2)),), {}),
    ("flatten", ("F",), {}),
    ("repeat", (2,), {"axis": 1}),
    ("reshape", (3, 2), {}),
    ("reshape", (-1,), {}),
    ("reshape", ((3, -1),), {}),
    ("reshape", (6,), {"order": "F"}),
    ("std", (), {"ddof": 1}),
    ("swapaxes", (0, 1), {}),
    ("take", (np.array([0, 2]),), {"axis": 1}),
    ("transpose", (1, 0), {}),
    ("transpose", ((1, 0),), {}),
    ("transpose", (None,), {}),
    ("var", (), {"ddof": 1, "axis": 0}),
]
# Those whose results do not depend smoothly on the array.
PLAIN: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("all", (), {}),
    ("any", (0,), {}),
    ("argmax", (), {"axis": 1}),
    ("argmin", (1,), {}),
    ("argsort", (), {"axis": 0}),
    ("nonzero", (), {}),
    ("round", (1,), {}),
]


def _id(case: Any) -> str:
    name, args, named = case
    return f"{name}-{args}-{named}".replace(" ", "")


@pytest.mark.parametrize("case", NUMPY, ids=_id)
@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_methods_of_numpy(case: Any, library: str) -> None:
    name, args, named = case
    module = pytest.importorskip(f"{library}.numpy" if library == "jax" else library)
    if library == "jax":
        pytest.importorskip("jax").config.update("jax_enable_x64", True)
    x = module.asarray(X)
    expected = np.asarray(getattr(x, name)(*args, **named))
    value, _ = ox.vjp(lambda x: getattr(x, name)(*args, **named), x)
    np.testing.assert_allclose(np.asarray(value), expected, rtol=1e-12)
    if name != "round":
        ox.testing.check_grads(lambda x: getattr(x, name)(*args, **named), (X,), order=2)


@pytest.mark.parametrize("case", PLAIN, ids=_id)
def test_methods_without_a_derivative(case: Any) -> None:
    name, args, named = case

    def f(x: Any) -> Any:
        np.testing.assert_equal(ox.stop_gradient(getattr(x, name)(*args, **named)), getattr(X, name)(*args, **named))
        return x.sum()

    np.testing.assert_array_equal(ox.grad(f)(X), np.ones((2, 3)))


def test_a_cast_has_the_arguments_of_numpy_s_method() -> None:
    same = ox.grad(lambda x: x.astype(np.float64, "K", "safe", True, False).sum())
    np.testing.assert_array_equal(same(X), np.ones((2, 3)))
    for cast in (X.astype, lambda *args: ox.grad(lambda x: x.astype(*args).sum())(X)):
        with pytest.raises(TypeError, match="safe"):
            cast(np.float32, "K", "safe")


def test_attributes() -> None:
    def f(x: Any) -> Any:
        assert (x.nbytes, x.itemsize) == (48, 8)
        return (x.real * 2.0 + x.imag).sum()

    np.testing.assert_array_equal(ox.grad(f)(X), np.full((2, 3), 2.0))


def test_a_number_has_the_methods_of_numpy_s() -> None:
    assert ox.grad(lambda x: (x * x).sum() + x.copy())(3.0) == 7.0


@pytest.mark.parametrize(
    "change", [lambda x: x.sort(), lambda x: x.fill(2.0), lambda x: x.put([0], 5.0), lambda x: x.partition(1)]
)
def test_methods_that_change_the_array(change: Callable[[Any], Any]) -> None:
    start = np.array([3.0, 1.0, 2.0])

    def f(x: Any) -> Any:
        assert change(x) is None
        return xp.sum(x * np.array([1.0, 10.0, 100.0]))

    changed = start.copy()
    change(changed)
    assert float(ox.value_and_grad(f)(start)[0]) == np.sum(changed * [1.0, 10.0, 100.0])
    np.testing.assert_array_equal(ox.grad(f)(start), moved(start, change))
    np.testing.assert_array_equal(start, [3.0, 1.0, 2.0])


def moved(start: np.ndarray, change: Callable[[Any], Any]) -> np.ndarray:
    """The derivative of ``sum(changed * [1, 10, 100])`` by finite differences."""
    found = np.zeros(3)
    for k in range(3):
        ends = []
        for step in (-1e-3, 1e-3):
            x = start.copy()
            x[k] += step
            change(x)
            ends.append(np.sum(x * [1.0, 10.0, 100.0]))
        found[k] = round((ends[1] - ends[0]) / 2e-3, 6)
    return found


@pytest.mark.parametrize("name", ["item", "tolist"])
def test_numbers_are_refused_while_they_are_recorded(name: str) -> None:
    with pytest.raises(TypeError, match="would lose its derivative"):
        ox.grad(lambda x: getattr(x, name)())(np.ones(1))
    seen = []
    ox.grad(lambda x: (seen.append(xp.argmax(x).item()), x.sum())[1])(X)
    assert seen == [2]


def test_what_is_not_recorded_is_refused_by_name() -> None:
    with pytest.raises(
        AttributeError, match=r"'tobytes': numpy's ndarray.tobytes is not recorded; use a function of xp"
    ):
        ox.grad(lambda x: x.tobytes())(X)
    with pytest.raises(AttributeError, match=r"has no attribute 'sums'$"):
        ox.grad(lambda x: x.sums())(X)
    with pytest.raises(AttributeError, match="has no attribute '_x'"):
        ox.grad(lambda x: x._x)(X)


def test_names_are_listed() -> None:
    def f(x: Any) -> Any:
        found = dir(x)
        assert {"sum", "reshape", "T", "real", "value", "nbytes", "at"} <= set(found)
        assert all(hasattr(x, name) for name in found if name != "__jax_array__")  # which is there for JAX alone
        return x.sum()

    ox.grad(f)(X)


def test_divmod() -> None:
    def f(x: Any, y: Any = 7.0) -> Any:
        (quotient, rest), (other, left) = divmod(x, 0.45), divmod(y, x)
        return (quotient * rest + other * left).sum()

    ox.testing.check_grads(f, (X,), order=1)
    with ox.Tape() as tape:
        found = [ox.stop_gradient(part) for part in divmod(tape.watch(X), 0.45)]
    np.testing.assert_array_equal(found, np.divmod(X, 0.45))


def test_a_deep_copy_is_another_variable_for_the_same_value() -> None:
    def f(x: Any) -> Any:
        y = copy.deepcopy({"x": x})["x"]
        assert y is not x
        y[0] = 0.0
        return (x * y).sum()

    np.testing.assert_array_equal(ox.grad(f)(X), [[0.0] * 3, 2.0 * X[1]])


def test_notebooks() -> None:
    with ox.Tape() as tape:
        x = tape.watch(X, name="<x>")
        y = x.sum()
    html = x._repr_html_()
    assert "<b>&lt;x&gt;</b>" in html
    assert "shape (2, 3), dtype float64" in html
    assert "2.5" in html
    assert tape._repr_svg_() == tape.to_svg()
    assert "variable" in y._repr_html_()


# --- PyTorch -----------------------------------------------------------------------------------------------------------

# Arguments of tensors' methods that need some; other methods are called without.
TORCH: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "mean": [((), {}), ((1,), {}), ((), {"dim": 0, "keepdim": True})],
    "sum": [((), {}), (((0, 1),), {}), ((), {"dim": 0, "keepdim": True})],
    "prod": [((), {}), ((1,), {}), ((), {"dim": 0, "keepdim": True})],
    "std": [((), {}), ((1,), {}), ((), {"dim": 0, "correction": 0, "keepdim": True})],
    "var": [((), {}), ((1,), {}), ((), {"dim": 0, "correction": 0})],
    **{name: [((), {"dim": 1}), ((0, True), {})] for name in ("amax", "amin")},
    **{name: [((), {}), ((1,), {}), ((), {"dim": 0, "keepdim": True})] for name in ("argmax", "argmin")},
    **{name: [((), {}), ((1,), {})] for name in ("all", "any")},
    **{name: [((0,), {}), ((), {"dim": 1})] for name in ("cumsum", "cumprod")},
    **{name: [((-0.5, 0.5), {}), ((), {"max": 0.45})] for name in ("clamp", "clip")},
    **{name: [((3, 2), {}), (((6,),), {}), ((-1,), {})] for name in ("reshape", "view")},
    "expand": [((4, 2, 3), {})],
    "flip": [((0,), {}), ((0, 1), {})],
    "permute": [((1, 0), {})],
    "roll": [((1,), {}), ((1, 0), {})],
    "squeeze": [((), {})],
    "swapaxes": [((0, 1), {})],
    "tile": [((2, 1), {})],
    "transpose": [((0, 1), {}), ((-1, -2), {})],
    "tril": [((), {}), ((1,), {})],
    "triu": [((), {}), ((-1,), {})],
    "unsqueeze": [((0,), {}), ((-1,), {})],
    "matmul": [(("3x2",), {})],
    "mm": [(("3x2",), {})],
    "mv": [(("3",), {})],
    "bmm": [(("2x3x2",), {})],
    "pow": [((2.0,), {}), ((3,), {})],
    "item": [],
    "tolist": [],
}
BINARY = set(
    """add atan2 copysign div divide eq equal float_power floor_divide ge greater greater_equal gt hypot le less less_equal
    logaddexp logaddexp2 logical_and logical_or logical_xor lt maximum minimum mul multiply ne not_equal remainder sub subtract
    true_divide""".split()
)
# Where the functions are defined.
POSITIVE = set("log log10 log1p log2 sqrt float_power pow lgamma digamma acosh reciprocal".split())
SMALL = set("acos asin arccos arcsin atanh erfinv logit".split())


def test_every_method_of_pytorch_s_table(library: Callable[[str], Any]) -> None:
    torch = library("torch")
    from oxigrad.ops.backends.torch import TorchAdapter

    made = {"3x2": torch.rand(3, 2, dtype=torch.float64), "3": torch.rand(3, dtype=torch.float64)}
    made["2x3x2"] = torch.rand(2, 3, 2, dtype=torch.float64)
    for name in TorchAdapter.methods or {}:
        x = torch.tensor(X)
        if name in POSITIVE:
            x = x.abs() + 1.1
        if name in SMALL:
            x = x.abs() / 4.0
        if name == "bmm":
            x = x.reshape(2, 1, 3)
        calls = TORCH.get(name, [((x.flip(0) * 0.7,), {})] if name in BINARY else [((), {})])
        for args, named in calls:
            given = tuple(made.get(arg, arg) if isinstance(arg, str) else arg for arg in args)
            agrees(torch, name, x, given, named)


def agrees(torch: Any, name: str, x: Any, args: Any, named: Any) -> None:
    theirs = x.clone().requires_grad_(name != "floor_divide")  # which has no derivative in PyTorch
    # `equal` of a tensor is one truth value.
    expected = getattr(theirs, "eq" if name == "equal" else name)(*args, **named)
    if not (torch.is_tensor(expected) and expected.requires_grad):
        with ox.Tape() as tape:
            found = ox.stop_gradient(getattr(tape.watch(x), name)(*args, **named))
        assert torch.equal(torch.as_tensor(found), torch.as_tensor(expected)), name
        return
    found, pullback = ox.vjp(lambda x: getattr(x, name)(*args, **named), x)
    torch.testing.assert_close(found, expected.detach(), rtol=1e-12, atol=1e-12, msg=name)
    expected.sum().backward()
    torch.testing.assert_close(pullback(torch.ones_like(found))[0], theirs.grad, rtol=1e-9, atol=1e-12, msg=name)


def test_methods_of_tensors_that_differ_are_refused(library: Callable[[str], Any]) -> None:
    torch = library("torch")
    x = torch.tensor(X)
    with pytest.raises(TypeError, match="max of a dimension gives indices too"):
        ox.grad(lambda x: x.max(dim=0))(x)
    with pytest.raises(AttributeError, match="'softmax': torch's Tensor.softmax is not recorded"):
        ox.grad(lambda x: x.softmax(0).sum())(x)
    with pytest.raises(TypeError):
        ox.grad(lambda x: x.std(unbiased=False))(x)
    with pytest.raises(TypeError, match="would lose its derivative"):
        ox.grad(lambda x: x.sum().item())(x)
