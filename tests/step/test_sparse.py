"""Sparse gradients by rows, compared with dense steps, other libraries, and NumPy programs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from optimizers import OPTIMIZERS as EVERY
from oxigrad import SparseRows, optim, schedules, xp
from oxigrad.step.arrays.sparse_rows import LAST_STEP

N, WIDTH = 12, 5
Ids = list[int]
# Rows that steps touch: unordered, with duplicates, none, all, the same twice.
STEPS: list[Ids] = [[3, 7, 0], [7, 7, 2, 7], [], [*range(N)], [11], [11], [5, 3, 5, 0, 11]]


def trusted(xp, p, g, m, *, learning_rate=0.1, beta=0.9):
    """Momentum, scaled by the norms of the parameter and of the update, as LARS and LAMB are."""
    m = beta * m + g
    ratio = xp.sqrt(xp.sum(p * p)) / (xp.sqrt(xp.sum(m * m)) + 1e-6)
    return p - learning_rate * ratio * m, m


def amsgrad(xp, p, g, v, top, *, learning_rate=0.1, beta=0.9):
    v = beta * v + (1 - beta) * g * g
    top = xp.maximum(top, v)
    return p - learning_rate * g / (xp.sqrt(top) + 1e-8), v, top


Trusted = optim.define(trusted, "TrustedOfRows")
AMSGrad = optim.define(amsgrad, "AMSGradOfRows")

OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "sgd": lambda **options: optim.SGD(0.1, weight_decay=0.1, **options),
    "nesterov": lambda **options: optim.SGD(0.1, 0.9, nesterov=True, **options),
    "adam": lambda **options: optim.Adam(0.1, **options),
    "adamw": lambda **options: optim.AdamW(schedules.linear(0.1, 0.01, 5), **options),
    "adam-lrd": lambda **options: optim.AdamLRD(0.1, dropout_rate=0.5, seed=7, **options),
    "trusted": lambda **options: Trusted(0.1, **options),
    "clipped": lambda **options: optim.chain(optim.ClipByGlobalNorm(1.5), optim.Adam(0.1), **options),
    "guarded": lambda **options: optim.Adam(0.1, nonfinite="skip", **options),
}


def lazy(name: str, sparse: str) -> Any:
    """The optimizer of a row of the table of all, with another option."""
    return optim.from_config({**EVERY[name]().get_config(), "sparse": sparse})


def table(dtype: Any = np.float64, shape: tuple[int, ...] = (N, WIDTH)) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


def gradients(dtype: Any = np.float64, rest: tuple[int, ...] = (WIDTH,)) -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(2)
    return [(np.array(ids, np.int64), random.standard_normal((len(ids), *rest)).astype(dtype)) for ids in STEPS]


def scattered(ids: np.ndarray, values: np.ndarray, n: int = N) -> np.ndarray:
    dense = np.zeros((n, *values.shape[1:]), values.dtype)
    np.add.at(dense, ids, values)
    return dense


def same(a: Any, b: Any) -> None:
    for x, y in zip(ox.tree.leaves(a), ox.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(host(x), host(y))


def close(a: Any, b: Any, rtol: float = 1e-12) -> None:
    for x, y in zip(ox.tree.leaves(a), ox.tree.leaves(b), strict=True):
        np.testing.assert_allclose(host(x), host(y), rtol=rtol, atol=1e-14)


def slots_of(opt: Any) -> dict[str, dict[str, Any]]:
    return {path: dict(own) for path, own in opt.slots.items()}


# --- the gradient as a value -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", STEPS, ids=str)
@pytest.mark.parametrize("rest", [(), (1,), (WIDTH,), (2, 3), (0,)], ids=str)
def test_dense_and_coalesced(ids: Ids, rest: tuple[int, ...], asarray: Any) -> None:
    values = np.random.default_rng(0).standard_normal((len(ids), *rest))
    g = SparseRows(asarray(np.array(ids, np.int64)), asarray(values), (N, *rest))
    expected = scattered(np.array(ids, np.int64), values)
    np.testing.assert_array_equal(host(g.todense()), expected)
    one = g.coalesce()
    assert list(map(int, host(one.indices))) == sorted(set(ids))
    np.testing.assert_array_equal(host(one.values), expected[sorted(set(ids))])
    assert type(one.values) is type(asarray(values)) and one.shape == (N, *rest)
    assert one.coalesce() is one


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_indices_of_any_integer_dtype(dtype: str) -> None:
    ids = np.array([200, 3, 200] if dtype != "int8" else [100, 3, 100]).astype(dtype)
    g = SparseRows(ids, np.ones((3, 2)), (300, 2))
    np.testing.assert_array_equal(g.todense(), scattered(ids.astype(int), np.ones((3, 2)), 300))
    model = {"t": np.zeros((300, 2))}
    optim.SGD(1.0, sparse="lazy").update(model, {"t": g})
    np.testing.assert_array_equal(model["t"], -g.todense())


@pytest.mark.parametrize(
    ("ids", "values", "shape", "error", "message"),
    [
        ([0, 3], np.ones((2, 2)), (3, 2), IndexError, r"indices\[1\] is 3: expected 0 to 2, the rows of .* \(3, 2\)"),
        ([1, -1], np.ones((2, 2)), (3, 2), IndexError, r"indices\[1\] is -1: expected 0 to 2"),
        ([0], np.ones((1, 2)), (0, 2), IndexError, r"indices\[0\] is 0"),
        ([0, 1], np.ones((3, 2)), (3, 2), ox.ShapeError, r"values have shape \(3, 2\): expected \(2, 2\)"),
        ([0, 1], np.ones(2), (3, 2), ox.ShapeError, r"values have shape \(2,\): expected \(2, 2\)"),
        ([[0, 1]], np.ones((1, 2)), (3, 2), ox.ShapeError, r"indices have shape \(1, 2\): expected one axis"),
        ([], np.ones(0), (), ox.ShapeError, r"the shape is \(\)"),
        (np.array([0.0]), np.ones((1, 2)), (3, 2), ox.DtypeError, "indices have dtype float64: expected integers"),
        (np.array([True]), np.ones((1, 2)), (3, 2), ox.DtypeError, "indices have dtype bool: expected integers"),
        ([0], np.ones((1, 2), int), (3, 2), ox.DtypeError, "values have dtype int64: expected a real floating-point"),
        ([0], np.ones((1, 2), complex), (3, 2), ox.DtypeError, "values have dtype complex128"),
    ],
)
def test_invalid_rows_are_refused(ids: Any, values: Any, shape: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        SparseRows(ids, values, shape)


def test_sums() -> None:
    (a, x), (b, y) = gradients()[0], gradients()[1]
    first, second = SparseRows(a, x, (N, WIDTH)), SparseRows(b, y, (N, WIDTH))
    close((first + second).todense(), scattered(a, x) + scattered(b, y))
    close(sum([first, second]).todense(), scattered(a, x) + scattered(b, y))
    dense = np.ones((N, WIDTH))
    for total in (first + dense, dense + first):
        assert isinstance(total, np.ndarray)
        np.testing.assert_array_equal(total, scattered(a, x) + 1.0)
    with pytest.raises(ox.ShapeError, match=r"\(13, 5\) are added to those of one of \(12, 5\)"):
        first + SparseRows([0], np.ones((1, WIDTH)), (13, WIDTH))
    with pytest.raises(TypeError):
        first + "table"


def test_one_leaf_of_a_tree() -> None:
    g = SparseRows([1], np.ones((1, 2)), (3, 2))
    leaves, structure = ox.tree.flatten({"a": [g], "b": np.ones(1)})
    assert leaves[0] is g
    assert ox.tree.unflatten(structure, leaves)["a"][0] is g
    assert (g.shape, g.dtype) == ((3, 2), np.dtype(np.float64))
    assert repr(g) == "SparseRows(array([1]), array([[1., 1.]]), (3, 2))"


# --- dense: the same numbers as the dense gradient --------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_dense_has_the_bits_of_the_dense_gradient(name: str) -> None:
    ours, theirs = {"t": table(), "b": np.ones(3)}, {"t": table(), "b": np.ones(3)}
    a, b = OPTIMIZERS[name](), OPTIMIZERS[name]()
    for ids, values in gradients():
        a.update(ours, {"t": SparseRows(ids, values, (N, WIDTH)), "b": np.ones(3)})
        b.update(theirs, {"t": scattered(ids, values), "b": np.ones(3)})
        same(ours, theirs)
    same(slots_of(a), slots_of(b))
    assert a.step == len(STEPS)


def test_dense_accumulates() -> None:
    ours, theirs = {"t": table()}, {"t": table()}
    a, b = optim.Adam(0.1, accumulate=2), optim.Adam(0.1, accumulate=2)
    for ids, values in gradients():
        a.update(ours, {"t": SparseRows(ids, values, (N, WIDTH))})
        b.update(theirs, {"t": scattered(ids, values)})
    same(ours, theirs)
    assert a.step == len(STEPS) // 2


def test_every_executor_takes_dense_rows(asarray: Any) -> None:
    model, expected = {"t": asarray(table())}, {"t": table()}
    a, b = optim.Adam(0.1), optim.Adam(0.1)
    for ids, values in gradients():
        model = a.update(model, {"t": SparseRows(asarray(ids), asarray(values), (N, WIDTH))})
        b.update(expected, {"t": scattered(ids, values)})
    close(model, expected)


# --- lazy: the touched rows as by a dense step, all others as they were ---------------------------------------------------------


def lazily(opt: Any, model: Any, ids: np.ndarray, values: np.ndarray) -> None:
    """The oracle of a lazy step: a dense step, and every row that was not touched put back. For rules that are elementwise."""
    before, held = model["t"].copy(), {k: v.copy() for k, v in slots_of(opt).get("t", {}).items()}
    opt.update(model, {"t": scattered(ids, values)})
    others = np.setdiff1d(np.arange(N), ids)
    model["t"][others] = before[others]
    for name, array in opt.slots["t"].items():
        array[others] = held[name][others] if held else 0.0


LAZY = ["sgd", "nesterov", "adam", "adamw", "adam-lrd"]


@pytest.mark.parametrize("name", LAZY)
@pytest.mark.parametrize("rest", [(WIDTH,), (), (1,), (2, 3, 4), (300,)], ids=str)
def test_lazy_is_a_dense_step_of_the_touched_rows(name: str, rest: tuple[int, ...]) -> None:
    ours, theirs = {"t": table(shape=(N, *rest))}, {"t": table(shape=(N, *rest))}
    a, b = OPTIMIZERS[name](sparse="lazy"), OPTIMIZERS[name]()
    held = ours["t"]
    for ids, values in gradients(rest=rest):
        assert a.update(ours, {"t": SparseRows(ids, values, (N, *rest))}) is ours
        lazily(b, theirs, ids, values)
        same(ours, theirs)
        same(slots_of(a), slots_of(b))
    assert ours["t"] is held and a.step == len(STEPS)


@pytest.mark.parametrize("name", LAZY)
def test_every_executor_steps_lazily(name: str, asarray: Any) -> None:
    model, expected = {"t": asarray(table())}, {"t": table()}
    a, b = OPTIMIZERS[name](sparse="lazy"), OPTIMIZERS[name]()
    pure, params = OPTIMIZERS[name](sparse="lazy"), {"t": asarray(table())}
    state = pure.init(params)
    for ids, values in gradients():
        grads = {"t": SparseRows(asarray(ids), asarray(values), (N, WIDTH))}
        model = a.update(model, grads)
        params, state = pure.apply(params, grads, state)
        lazily(b, expected, ids, values)
    # PyTorch computes `where(condition, 0.0, 1.0)` in float32, of which 0.1 is not exact.
    rtol = 1e-6 if name == "adam-lrd" else 1e-12
    close(model, expected, rtol)
    close(params, expected, rtol)
    close(slots_of(a), slots_of(b))
    close(state["slots"], slots_of(b))


LAYOUTS: dict[str, Callable[[], np.ndarray]] = {
    "fortran": lambda: np.zeros((N, WIDTH), order="F"),
    "reversed": lambda: np.zeros((N, WIDTH))[::-1, ::-1],
    "every other": lambda: np.zeros((2 * N, 3 * WIDTH))[::2, ::3],
    "inner columns": lambda: np.zeros((N, 3 * WIDTH))[:, 4 : 4 + WIDTH],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tables_of_any_layout(layout: str) -> None:
    p, plain = LAYOUTS[layout](), {"t": table()}
    whole = p.base if p.base is not None else p
    p[...] = plain["t"]
    a, b = optim.Adam(0.1, sparse="lazy"), optim.Adam(0.1, sparse="lazy")
    for ids, values in gradients():
        a.update({"t": p}, {"t": SparseRows(ids, values, (N, WIDTH))})
        b.update(plain, {"t": SparseRows(ids, values, (N, WIDTH))})
    same(p, plain["t"])
    assert np.count_nonzero(whole) == N * WIDTH


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_of_any_layout(layout: str) -> None:
    values = LAYOUTS[layout]()
    values[...] = table()
    values.setflags(write=False)
    ids = np.random.default_rng(0).permutation(N)[::-1]
    model = {"t": np.zeros((N, WIDTH))}
    optim.SGD(1.0, sparse="lazy").update(model, {"t": SparseRows(ids, values, (N, WIDTH))})
    same(model["t"], -scattered(ids, values))
    optim.SGD(1.0, sparse="lazy").update(model, {"t": SparseRows(np.arange(N), values, (N, WIDTH))})
    same(model["t"], -scattered(ids, values) - values)


def test_any_number_of_threads_gives_the_same_bits(threads: Any) -> None:
    n, width = 5000, 64
    random, found = np.random.default_rng(0), []
    ids, values = random.integers(0, n, 4000), random.standard_normal((4000, width)).astype(np.float32)
    for count in (1, 2, 3):
        threads(count)
        model = {"t": table(np.float32, (n, width)), "w": np.ones(7)}
        opt = optim.chain(optim.ClipByGlobalNorm(1.0), optim.AdamLRD(0.1, dropout_rate=0.3), sparse="lazy")
        for _ in range(3):
            opt.update(model, {"t": SparseRows(ids, values, (n, width)), "w": np.ones(7)})
        found.append((model, slots_of(opt)))
    same(found[0], found[1])
    same(found[0], found[2])


def test_sparse_and_dense_leaves_in_one_tree() -> None:
    n = 3
    model = {"a": np.zeros((n, 2)), "layers": [np.zeros(2), (np.zeros((n, 2), np.float32),)], "x": "name"}
    grads = {
        "a": SparseRows([2], np.ones((1, 2)), (n, 2)),
        "layers": [np.ones(2), (SparseRows([0], np.ones((1, 2), np.float32), (n, 2)),)],
        "x": "name",
    }
    opt = optim.Adam(1.0, sparse="lazy")
    opt.update(model, grads)
    np.testing.assert_allclose(model["a"], [[0, 0], [0, 0], [-1, -1]], rtol=1e-6)
    np.testing.assert_allclose(model["layers"][0], [-1, -1], rtol=1e-6)
    np.testing.assert_allclose(model["layers"][1][0], [[-1, -1], [0, 0], [0, 0]], rtol=1e-6)
    before = ox.tree.map(np.copy, {"a": model["a"], "b": model["layers"][1][0]})
    opt.update(model, {**grads, "a": np.zeros((n, 2))})  # a dense gradient is one of all rows
    assert not np.array_equal(model["a"][2], before["a"][2]) and np.array_equal(model["a"][:2], before["a"][:2])
    assert opt.step == 2


def rows_of_torch(torch: Any, ids: np.ndarray, values: np.ndarray) -> Any:
    return torch.sparse_coo_tensor(torch.tensor(ids)[None], torch.tensor(values), (N, WIDTH))


def test_against_sparse_adam_of_torch(library: Any) -> None:
    torch = library("torch")
    opt = optim.Adam(0.1, 0.8, 0.99, 1e-3, epsilon_mode="hat", sparse="lazy")  # epsilon before the bias is corrected
    ours, theirs = {"t": table()}, torch.tensor(table(), requires_grad=True)
    reference = torch.optim.SparseAdam([theirs], 0.1, (0.8, 0.99), 1e-3)
    with torch.sparse.check_sparse_tensor_invariants():
        for ids, values in gradients() * 3:
            opt.update(ours, {"t": SparseRows(ids, values, (N, WIDTH))})
            theirs.grad = rows_of_torch(torch, ids, values)
            reference.step()
            close(ours["t"], theirs.detach().numpy(), rtol=1e-11)


@pytest.mark.parametrize("sparse", ["dense", "lazy", "catch_up"])
@pytest.mark.parametrize("name", ["adagrad", "sgd"])
def test_against_optimizers_of_torch_that_take_sparse_gradients(name: str, sparse: str, library: Any) -> None:
    torch = library("torch")
    make, reference = {
        "adagrad": (
            lambda: optim.Adagrad(0.1, initial_accumulator=0.1, sparse=sparse),
            lambda p: torch.optim.Adagrad(p, 0.1, initial_accumulator_value=0.1),
        ),
        "sgd": (lambda: optim.SGD(0.1, sparse=sparse), lambda p: torch.optim.SGD(p, 0.1)),
    }[name]
    ours, theirs = {"t": table()}, torch.tensor(table(), requires_grad=True)
    opt, other = make(), reference([theirs])
    with torch.sparse.check_sparse_tensor_invariants():
        for ids, values in gradients() * 3:
            opt.update(ours, {"t": SparseRows(ids, values, (N, WIDTH))})
            theirs.grad = rows_of_torch(torch, ids, values)
            other.step()
            close(ours["t"], theirs.detach().numpy(), rtol=1e-11)


def taken_apart(opt: Any, model: Any, state: Any, rows: list[int], g: np.ndarray) -> tuple[Any, dict[str, Any]]:
    """A step of the touched rows alone, as if they were all there is."""
    slots = {name: array[rows] if array.ndim else array for name, array in state["slots"]["t"].items()}
    new, after = opt.apply({"t": model["t"][rows]}, {"t": g}, {"step": state["step"], "slots": {"t": slots}})
    return new["t"], after["slots"]["t"]


@pytest.mark.parametrize("name", [name for name in EVERY if "lrd" not in name])
def test_every_optimizer_steps_lazily_as_if_the_touched_rows_were_all(name: str) -> None:
    opt, plain = lazy(name, "lazy"), EVERY[name]()
    model, expected = {"t": table()}, {"t": table()}
    state = plain.init(expected)
    for ids, values in gradients():
        opt.update(model, {"t": SparseRows(ids, values, (N, WIDTH))})
        rows = sorted(set(ids.tolist()))
        new, after = taken_apart(plain, expected, state, rows, scattered(ids, values)[rows])
        expected["t"][rows] = new
        for slot, array in state["slots"]["t"].items():
            array[rows if array.ndim else ...] = after[slot]
        state["step"] += 1
        close(model, expected)
        close(slots_of(opt)["t"], state["slots"]["t"])


# --- catch-up: slots first decay by the steps that they skipped ------------------------------------------------------------------


def adam_that_catches_up(p: np.ndarray, steps: list[tuple[np.ndarray, np.ndarray]], rate: Any) -> dict[str, np.ndarray]:
    """Row by row, as it is written in words."""
    beta1, beta2, epsilon = 0.9, 0.999, 1e-8
    m, v, last = np.zeros_like(p), np.zeros_like(p), np.zeros(len(p), int)
    for t, (ids, values) in enumerate(steps, 1):
        dense = scattered(ids, values, len(p))
        for row in sorted(set(ids.tolist())):
            skipped = t - 1 - last[row]
            for _ in range(skipped):
                m[row], v[row] = beta1 * m[row], beta2 * v[row]
            g = dense[row]
            m[row] = beta1 * m[row] + (1 - beta1) * g
            v[row] = beta2 * v[row] + (1 - beta2) * g * g
            corrected = v[row] / (1 - beta2**t)
            p[row] -= rate(t - 1) * m[row] / (1 - beta1**t) / (np.sqrt(corrected) + epsilon)
            last[row] = t
    return {"p": p, "m": m, "v": v, LAST_STEP: last}


@pytest.mark.parametrize("rate", [lambda step: 0.1, schedules.linear(0.1, 0.01, 10)], ids=["constant", "schedule"])
def test_catch_up_against_a_loop(rate: Any, asarray: Any) -> None:
    steps = gradients() * 3
    expected = adam_that_catches_up(table(), steps, rate)
    model, params = {"t": asarray(table())}, {"t": asarray(table())}
    given = rate if isinstance(rate, schedules.Schedule) else 0.1
    a, pure = (optim.Adam(given, sparse="catch_up") for _ in range(2))
    state = pure.init(params)
    for ids, values in steps:
        grads = {"t": SparseRows(asarray(ids), asarray(values), (N, WIDTH))}
        model = a.update(model, grads)
        params, state = pure.apply(params, grads, state)
    for found, slots in [(model["t"], a.slots["t"]), (params["t"], state["slots"]["t"])]:
        close(found, expected["p"], rtol=1e-11)
        assert set(slots) == {"m", "v", LAST_STEP}
        for name, array in slots.items():
            close(array, expected[name], rtol=1e-11)


@pytest.mark.parametrize("name", ["nesterov", "adam", "adam-lrd"])
def test_slots_that_caught_up_are_those_of_dense_steps(name: str) -> None:
    ours, theirs = {"t": table()}, {"t": table()}
    a, b = OPTIMIZERS[name](sparse="catch_up"), OPTIMIZERS[name]()
    for ids, values in gradients():
        a.update(ours, {"t": SparseRows(ids, values, (N, WIDTH))})
        b.update(theirs, {"t": scattered(ids, values)})
        for slot, array in b.slots["t"].items():
            close(a.slots["t"][slot][ids], array[ids], rtol=1e-11)


def test_a_dense_gradient_catches_up_with_all_rows() -> None:
    steps = gradients()
    expected = adam_that_catches_up(table(), [*steps[:3], (np.arange(N), table()), *steps[4:]], lambda step: 0.1)
    model, opt = {"t": table(), "b": np.zeros(()), "w": np.zeros((2, 3))}, optim.Adam(0.1, sparse="catch_up")
    for number, (ids, values) in enumerate(steps):
        g = table() if number == 3 else SparseRows(ids, values, (N, WIDTH))
        opt.update(model, {"t": g, "b": np.ones(()), "w": np.ones((2, 3))})
    close(model["t"], expected["p"], rtol=1e-11)
    assert set(opt.slots["b"]) == {"m", "v"}
    np.testing.assert_array_equal(opt.slots["w"][LAST_STEP], len(steps))
    plain, other = {"b": np.zeros(()), "w": np.zeros((2, 3))}, optim.Adam(0.1)
    for _ in steps:
        other.update(plain, {"b": np.ones(()), "w": np.ones((2, 3))})
    close({k: model[k] for k in plain}, plain)


def test_catch_up_in_float32() -> None:
    steps = gradients() * 5
    expected = adam_that_catches_up(table(), steps, lambda step: 0.01)
    model, opt = {"t": table(np.float32)}, optim.Adam(0.01, sparse="catch_up")
    for ids, values in steps:
        opt.update(model, {"t": SparseRows(ids, values.astype(np.float32), (N, WIDTH))})
    np.testing.assert_allclose(model["t"], expected["p"], rtol=2e-5, atol=1e-6)


def test_catch_up_uses_the_hyperparameters_of_the_present() -> None:
    model, opt = {"t": np.zeros((2, 1))}, optim.SGD(0.0, momentum=0.9, sparse="catch_up")
    g = lambda row: {"t": SparseRows([row], np.ones((1, 1)), (2, 1))}  # noqa: E731
    opt.update(model, g(0))
    opt.update(model, g(1))
    opt.update(model, g(1))
    opt.momentum = 0.5
    opt.update(model, g(0))
    np.testing.assert_allclose(opt.slots["t"]["m"][0], 0.5**3 * 1.0 + 1.0)


# Those with a slot that a zero gradient changes otherwise than by a factor, and that slot.
CANNOT = {
    "nesterov": "m",
    "asgd": "average",
    "asgd-torch": "average",
    "lars": "m",
    "lars-separate": "m",
    "ftrl": "linear",
    "adabelief": "v",
    "adan": "change",
    "adan-optax": "change",
    "dadapt-adam": "m",
    "cocob": "gradients",
    "novograd": "m",
    "sophia": "h",
    "schedule-free-adamw": "z",
    "optimistic-adam": "before",
    "optimistic-adam-plain": "before",
}


@pytest.mark.parametrize("name", [name for name in EVERY if "lrd" not in name])
def test_every_optimizer_catches_up_as_by_steps_without_gradient(name: str) -> None:
    opt, plain = lazy(name, "catch_up"), EVERY[name]()
    model, expected = {"t": table()}, {"t": table()}
    state = plain.init(expected)
    if name in CANNOT:
        with pytest.raises(ox.RuleError, match=f"does not multiply the slot {CANNOT[name]} by"):
            opt.update(model, {"t": SparseRows([0], np.ones((1, WIDTH)), (N, WIDTH))})
        return
    last = np.zeros(N, int)
    for t, (ids, values) in enumerate(gradients(), 1):
        opt.update(model, {"t": SparseRows(ids, values, (N, WIDTH))})
        rows = sorted(set(ids.tolist()))
        for row in rows:
            for _ in range(t - 1 - last[row]):
                _, after = taken_apart(plain, expected, state, [row], np.zeros((1, WIDTH)))
                for slot, array in state["slots"]["t"].items():
                    if array.ndim:
                        array[[row]] = after[slot]
        new, after = taken_apart(plain, expected, state, rows, scattered(ids, values)[rows])
        expected["t"][rows], last[rows] = new, t
        for slot, array in state["slots"]["t"].items():
            array[rows if array.ndim else ...] = after[slot]
        state["step"] += 1
        close(model, expected, rtol=1e-9)
        close({k: v for k, v in slots_of(opt)["t"].items() if k != LAST_STEP}, state["slots"]["t"], rtol=1e-9)


def test_slots_that_do_not_decay_cannot_catch_up() -> None:
    def drifting(xp, p, g, drift, *, learning_rate=0.1):
        return p - learning_rate * g, drift + 1.0

    def mixing(xp, p, g, m, u, *, learning_rate=0.1):
        m = 0.9 * m + g
        return p - learning_rate * u, m, 0.5 * u + m

    def aging(xp, p, g, m, *, step, learning_rate=0.1):
        m = m * (1.0 - 1.0 / (step + 1)) + g
        return p - learning_rate * m, m

    g = {"t": SparseRows([1], np.ones((1, 2)), (3, 2))}
    for rule, slot in [(drifting, "drift"), (mixing, "u"), (aging, "m")]:
        opt, model = optim.define(rule)(sparse="catch_up"), {"t": np.zeros((3, 2))}
        with pytest.raises(ox.RuleError, match=rf"the rule {rule.__name__}: .* the slot {slot} by a factor"):
            opt.update(model, g)
        assert opt.step == 0 and not model["t"].any()
    for opt, slot in [
        (optim.chain(optim.SGD(0.1), optim.EMA(decay=0.5), sparse="catch_up"), "average"),
        (optim.SGD(0.1, 0.9, weight_decay=0.1, sparse="catch_up"), "m"),
        (optim.Sophia(0.1, every=10, sparse="catch_up"), "h"),
    ]:
        with pytest.raises(ox.RuleError, match=f"the slot {slot} by"):
            opt.update({"t": np.ones((3, 2))}, g)
    # A maximum is unchanged by a zero gradient.
    AMSGrad(sparse="catch_up").update({"t": np.zeros((3, 2))}, g)


# --- noise, sums, and options of a step
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rest", [(WIDTH,), (), (700,)], ids=str)
@pytest.mark.parametrize("sparse", ["lazy", "catch_up"])
def test_noise_depends_on_the_element_not_on_the_rows(rest: tuple[int, ...], sparse: str, asarray: Any) -> None:
    def noisy(xp, p, g, *, noise, learning_rate=1.0):
        return p + g * (noise() + 2.0 * noise())

    Noisy = optim.define(noisy, "NoisyRows")
    whole = Noisy(seed=5).update({"t": np.zeros((N, *rest))}, {"t": np.ones((N, *rest))})["t"]
    for ids in STEPS:
        ids = sorted(set(ids))
        g = SparseRows(asarray(np.array(ids, int)), asarray(np.ones((len(ids), *rest))), (N, *rest))
        model = Noisy(seed=5, sparse=sparse).update({"t": asarray(np.zeros((N, *rest)))}, {"t": g})
        found = host(model["t"])
        np.testing.assert_array_equal(found[ids], whole[ids])
        assert np.count_nonzero(found) == len(ids) * math.prod(rest)


def test_dropout_masks_single_elements() -> None:
    n, width = 50, 40
    model, opt = {"t": np.zeros((n, width))}, optim.AdamLRD(1.0, dropout_rate=0.5, sparse="lazy")
    ids = np.arange(0, n, 2)
    opt.update(model, {"t": SparseRows(ids, np.ones((len(ids), width)), (n, width))})
    moved = model["t"][ids] != 0
    assert 0.4 < moved.mean() < 0.6
    assert not (moved == moved[:1]).all() and not (moved == moved[:, :1]).all()
    np.testing.assert_allclose(opt.slots["t"]["m"][ids], 0.1)


def test_norms_are_of_the_touched_rows(asarray: Any) -> None:
    ids, values = gradients()[1]
    rows = sorted(set(ids.tolist()))
    p, dense = table()[rows], scattered(ids, values)[rows]
    model = Trusted(0.1, sparse="lazy").update(
        {"t": asarray(table())}, {"t": SparseRows(asarray(ids), asarray(values), (N, WIDTH))}
    )
    ratio = np.sqrt(np.sum(p * p)) / (np.sqrt(np.sum(dense * dense)) + 1e-6)
    close(host(model["t"])[rows], p - 0.1 * ratio * dense)


def test_the_global_norm_is_exact(asarray: Any) -> None:
    ids, values = gradients()[1]
    dense, other = scattered(ids, values), np.array([3.0, -4.0])
    norm = np.sqrt(np.sum(dense**2) + 25.0)
    for sparse in ("dense", "lazy", "catch_up"):
        opt = optim.chain(optim.ClipByGlobalNorm(1.0), optim.SGD(1.0), sparse=sparse)
        grads = {"t": SparseRows(asarray(ids), asarray(values), (N, WIDTH)), "b": asarray(other)}
        model = opt.update({"t": asarray(np.zeros((N, WIDTH))), "b": asarray(np.zeros(2))}, grads)
        close(model, {"t": -dense / norm, "b": -other / norm})


@pytest.mark.parametrize("sparse", ["dense", "lazy", "catch_up"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_step_that_is_not_finite(sparse: str, bad: float, asarray: Any) -> None:
    values = np.array([[1.0, 2.0], [bad, 0.0]])
    model, opt = {"t": asarray(np.ones((4, 2)))}, optim.Adam(0.1, nonfinite="skip", sparse=sparse)
    good = {"t": SparseRows(asarray(np.array([1])), asarray(np.ones((1, 2))), (4, 2))}
    model = opt.update(model, good)
    before, slots = host(model["t"]).copy(), {k: host(v).copy() for k, v in opt.slots["t"].items()}
    bad_grads = {"t": SparseRows(asarray(np.array([3, 0])), asarray(values), (4, 2))}
    model = opt.update(model, bad_grads)
    same(model["t"], before)
    same(dict(opt.slots["t"]), slots)
    assert (opt.step, opt.skipped) == (1, 1)
    opt.nonfinite = "raise"
    with pytest.raises(ox.NonFiniteError, match="^t: the gradient has infinities or NaN"):
        opt.update(model, bad_grads)


def test_tied_parameters_add_up_their_rows() -> None:
    for other in (SparseRows([1, 2], np.ones((2, 2)), (4, 2)), np.ones((4, 2))):
        shared = np.zeros((4, 2))
        model = {"encoder": shared, "decoder": shared}
        first = SparseRows([2, 3], np.full((2, 2), 10.0), (4, 2))
        optim.SGD(1.0, sparse="lazy").update(model, {"encoder": first, "decoder": other})
        dense = other.todense() if isinstance(other, SparseRows) else other
        np.testing.assert_array_equal(shared, -first.todense() - dense)


def test_groups_and_partitions() -> None:
    grads = {"a": SparseRows([0], np.ones((1, 2)), (3, 2)), "b": SparseRows([1], np.ones((1, 2)), (3, 2)), "c": None}
    model = {"a": np.zeros((3, 2)), "b": np.zeros((3, 2)), "c": np.zeros(2)}
    opt = optim.SGD(1.0, groups={"b": {"learning_rate": 0.5}, "c": None}, sparse="lazy")
    opt.update(model, grads)
    np.testing.assert_array_equal(model["a"] + model["b"], [[-1, -1], [-0.5, -0.5], [0, 0]])
    parts = optim.partition({"a": optim.Adam(1.0), "b": optim.SGD(1.0, 0.9), "c": None}, sparse="catch_up")
    for _ in range(2):
        parts.update(model, grads)
    assert {path: set(own) for path, own in parts.slots.items()} == {"a": {"m", "v", LAST_STEP}, "b": {"m", LAST_STEP}}
    again = optim.from_config(json.loads(json.dumps(parts.get_config())))
    assert again.sparse == "catch_up"


# --- refusals, with nothing changed
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", ["dense", "lazy", "catch_up"])
@pytest.mark.parametrize(
    ("g", "error", "message"),
    [
        (SparseRows([0], np.ones((1, 2)), (9, 2)), ox.ShapeError, r"^b\.t: gradient has shape \(9, 2\), .* \(4, 2\)"),
        (SparseRows([0], np.ones((1, 3)), (4, 3)), ox.ShapeError, r"^b\.t: gradient has shape \(4, 3\), .* \(4, 2\)"),
        (SparseRows([0], np.ones((1, 2), np.float32), (4, 2)), ox.DtypeError, r"^b\.t: gradient has dtype float32"),
    ],
)
def test_wrong_gradients_are_refused(sparse: str, g: Any, error: type[Exception], message: str) -> None:
    model, opt = {"a": np.ones((4, 2)), "b": {"t": np.ones((4, 2))}}, optim.Adam(0.1, sparse=sparse)
    first = SparseRows([1], np.ones((1, 2)), (4, 2))
    opt.update(model, {"a": first, "b": {"t": first}})
    before = ox.tree.map(np.copy, (model, slots_of(opt)))
    with pytest.raises(error, match=message):
        opt.update(model, {"a": first, "b": {"t": g}})
    same((model, slots_of(opt)), before)
    assert opt.step == 1


def test_indices_that_change_after_they_were_checked() -> None:
    ids, model = np.array([1, 2]), {"t": np.ones((4, 2))}
    for bad in (4, -1, 2**62):
        ids[:] = 1, 2
        g = SparseRows(ids, np.ones((2, 2)), (4, 2))
        ids[0 if bad < 0 else 1] = bad
        with pytest.raises(
            ox.ShapeError, match=rf"^t: row index {bad} is out of range for a parameter of shape \(4, 2\)"
        ):
            optim.SGD(1.0, sparse="lazy").update(model, {"t": g})
    np.testing.assert_array_equal(model["t"], 1.0)


def test_memory_that_is_shared_is_refused() -> None:
    model = {"t": np.zeros((4, 2))}
    with pytest.raises(ox.AliasError, match="the gradient of t and t share memory"):
        optim.SGD(1.0, sparse="lazy").update(model, {"t": SparseRows([0, 1], model["t"][2:], (4, 2))})


def test_rules_that_refuse_rows() -> None:
    g = {"t": SparseRows([0], np.ones((1, 2)), (4, 2))}
    Called = optim.define(lambda xp, p, g, *, learning_rate=1.0: p - learning_rate * g, "Called", elementwise=False)
    for sparse in ("lazy", "catch_up"):
        with pytest.raises(ox.RuleError, match=r"^t: the rule <lambda> is not elementwise, and takes rows only with"):
            Called(sparse=sparse).update({"t": np.zeros((4, 2))}, g)
        with pytest.raises(ValueError, match="and accumulate are mutually exclusive"):
            optim.SGD(accumulate=2, sparse=sparse)
    np.testing.assert_array_equal(Called().update({"t": np.zeros((4, 2))}, g)["t"], -g["t"].todense())
    with pytest.raises(ValueError, match="sparse is 'torch': expected 'dense', 'lazy' or 'catch_up'"):
        optim.SGD(sparse="torch")
    with pytest.raises(ox.StructureError, match="^t: zero_gradients leaves zeros in arrays"):
        optim.SGD(zero_gradients=True).update({"t": np.zeros((4, 2))}, g)


# --- where such gradients come from, and pure functions of them ------------------------------------------------------------------


def test_rows_that_were_looked_up(asarray: Any) -> None:
    random = np.random.default_rng(0)
    ids, head = np.array([3, 1, 3]), asarray(random.standard_normal((WIDTH, 2)))
    whole = asarray(table())

    def loss(rows: Any, head: Any) -> Any:
        return xp.sum(xp.tanh(rows @ head) ** 2)

    rows = xp.take(whole, asarray(ids), axis=0)
    g_rows, g_head = ox.grad(loss, argnums=(0, 1))(rows, head)
    expected = ox.grad(lambda whole: loss(xp.take(whole, asarray(ids), axis=0), head))(whole)
    g = SparseRows(asarray(ids), g_rows, whole.shape)
    close(g.todense(), expected)
    model = optim.Adam(0.1, sparse="lazy").update({"t": whole, "head": head}, {"t": g, "head": g_head})
    assert np.count_nonzero(np.any(host(model["t"]) != table(), axis=1)) == 2


@pytest.mark.parametrize("sparse", ["dense", "lazy", "catch_up"])
@pytest.mark.parametrize("name", ["adam", "nesterov", "adamw"])
def test_under_jit(name: str, sparse: str, library: Any) -> None:
    jax = library("jax")
    jax.config.update("jax_enable_x64", True)
    opt, eager = OPTIMIZERS[name](sparse=sparse), OPTIMIZERS[name](sparse=sparse)

    @jax.jit
    def step(params: Any, ids: Any, values: Any, state: Any) -> Any:
        return opt.apply(params, {"t": SparseRows(ids, values, (N, WIDTH))}, state)

    params, model = {"t": jax.numpy.asarray(table())}, {"t": table()}
    state = opt.init(params)
    for ids, values in gradients() * 2:
        params, state = step(params, jax.numpy.asarray(ids), jax.numpy.asarray(values), state)
        eager.update(model, {"t": SparseRows(ids, values, (N, WIDTH))})
    close(params, model, rtol=1e-10)
    assert state["slots"]["t"].keys() == eager.slots["t"].keys()
    for slot, array in eager.slots["t"].items():
        close(state["slots"]["t"][slot], array, rtol=1e-10)


def test_a_lazy_step_is_differentiable() -> None:
    opt, params = optim.Adam(0.1, sparse="lazy"), {"t": table()}
    state = opt.init(params)
    ids = np.array([2, 5, 2])

    def loss(values: Any) -> Any:
        new, _ = opt.apply(params, {"t": SparseRows(ids, values, (N, WIDTH))}, state)
        return xp.sum(new["t"] ** 2)

    ox.testing.check_grads(loss, (gradients()[0][1],), order=1, modes=("rev",))
