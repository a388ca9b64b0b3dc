"""Atomicity: a step that fails changes nothing, for every optimizer and executor."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from optimizers import OPTIMIZERS
from oxigrad import SparseRows, optim, tree, xp
from oxigrad.step.arrays.sparse_rows import LAST_STEP

SHAPE = (3, 4)


def on_arrays(xp, p, g, m, *, learning_rate=0.1):
    m = 0.9 * m + g
    return p - learning_rate * m, m


OnArrays = optim.define(on_arrays, "OnArrays", elementwise=False)

# Rules that are called on arrays, and what takes its steps in another way than `update`.
CALLED: dict[str, Callable[[], Any]] = {
    "adafactor": lambda: optim.Adafactor(0.1),
    "muon": lambda: optim.Muon(0.1),
    "sm3": lambda: optim.SM3(0.1),
    "shampoo": lambda: optim.Shampoo(0.1),
    "soap": lambda: optim.SOAP(0.1),
    "defined": lambda: OnArrays(),
    "chain": lambda: optim.chain(optim.ClipByGlobalNorm(1e9), OnArrays(), nonfinite="skip"),
    "accumulate": lambda: OnArrays(accumulate=2),
    "partition": lambda: optim.partition({"a": optim.Adam(0.1), "*": OnArrays()}),
    "total": lambda: optim.partition({"a": optim.Adam(0.1), "*": OnArrays()}, nonfinite="skip"),
    "average": lambda: optim.chain(OnArrays(), optim.EMA(decay=0.5)),
    "copy": lambda: optim.chain(OnArrays(), optim.Copy("float32")),
    "sam": lambda: optim.SAM(OnArrays()),
    "sam of the core": lambda: optim.SAM(optim.Adam(0.1)),
    "lbfgs": lambda: optim.LBFGS(max_iterations=3),
}
ALL: dict[str, Callable[[], Any]] = {**OPTIMIZERS, **CALLED}


def read_only(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


# Arrays that elementwise rules update in place, in a copy, and by calling them; others are called, in place or not.
KINDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "writable": lambda array: array,
    "read-only": read_only,
    "foreign": lambda array: array.astype(array.dtype.newbyteorder()),
}


def arrays(kind: str = "writable", names: str = "ab") -> dict[str, Any]:
    random = np.random.default_rng(0)
    return {name: KINDS[kind](random.standard_normal(SHAPE)) for name in names}


def step(opt: Any, model: Any) -> None:
    """A step by a loss whose gradient depends on the parameters, in whatever way the optimizer takes one."""
    if type(opt).minimize is not optim.SGD.minimize or isinstance(opt, optim.SAM):
        opt.minimize(lambda model: sum(xp.sum((model[name] - 1.0) ** 2) for name in model), model)
    else:
        opt.update(model, {name: np.asarray(2.0 * (p - 1.0)).astype(p.dtype) for name, p in dict(model).items()})


def snapshot(opt: Any, model: Any) -> Any:
    """The arrays of a model and of slots, as they are now."""
    host = lambda array: np.array(array)  # noqa: E731
    slots = {path: {name: host(slot) for name, slot in own.items()} for path, own in opt.slots.items()}
    return {name: host(array) for name, array in dict(model).items()}, slots, opt.step, opt._stepper.micro, opt.skipped


def refused(opt: Any, model: Any, error: type[BaseException], message: str) -> None:
    """A step raises, with the objects in the model, their numbers and all slots as they were."""
    before, held = snapshot(opt, model), dict(model)
    with pytest.raises(error, match=message):
        step(opt, model)
    after = snapshot(opt, model)
    if not before[1]:  # slots may be there already, as they begin
        before, after = (found[:1] + found[2:] for found in (before, after))
    np.testing.assert_equal(after, before)
    assert all(model[name] is array for name, array in held.items())


# --- memory --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_a_second_array_that_overlaps_itself(name: str) -> None:
    model = arrays(names="a") | {"b": np.lib.stride_tricks.as_strided(np.zeros(4), SHAPE, (0, 8))}
    refused(ALL[name](), model, ox.AliasError, "^b: the parameter overlaps itself")


@pytest.mark.parametrize("name", CALLED)
def test_a_second_array_that_torch_expands(name: str, library: Any) -> None:
    torch = library("torch")
    model = {"a": torch.ones(SHAPE), "b": torch.ones((1, 4)).expand(*SHAPE)}
    opt = CALLED[name]()
    with pytest.raises(ox.AliasError, match="^b: the parameter overlaps itself"):
        opt.minimize(lambda model: sum(xp.sum((array + 1) ** 2) for array in model.values()), model)
    np.testing.assert_array_equal(model["a"], 1.0)
    assert opt.step == 0


@pytest.mark.parametrize("kind", ["writable", "read-only"])
@pytest.mark.parametrize("name", ALL)
def test_parameters_that_overlap(name: str, kind: str) -> None:
    base = KINDS[kind](np.random.default_rng(1).standard_normal((4, 4)))
    model = {"a": base[:3], "b": base[1:]}
    refused(ALL[name](), model, ox.AliasError, "^a and b share memory")
    neighbours = np.random.default_rng(1).standard_normal((6, 4))
    opt, model = ALL[name](), {"a": neighbours[:3], "b": neighbours[3:]}
    step(opt, model)
    assert opt.step + opt._stepper.micro == 1


@pytest.mark.parametrize("name", CALLED)
def test_one_array_at_two_paths_is_one_parameter(name: str) -> None:
    w = arrays(names="a")["a"]
    opt, model = CALLED[name](), {"a": w, "b": w}
    step(opt, model)
    assert model["a"] is model["b"] is w and list(opt.slots) == ["a"]


@pytest.mark.parametrize("options", [{}, {"zero_gradients": True}], ids=str)
def test_a_parameter_as_a_gradient(options: Any) -> None:
    for opt in (OnArrays(**options), optim.partition({"a": optim.SGD(0.1), "*": OnArrays()}, **options)):
        model = arrays()
        before = tree.map(np.copy, model)
        for grads in ({"a": model["a"], "b": np.ones(SHAPE)}, {"a": np.ones(SHAPE), "b": model["a"]}):
            with pytest.raises(ox.AliasError, match="share memory"):
                opt.update(model, grads)
        np.testing.assert_equal(model, before)


def test_gradients_that_cannot_be_zeroed() -> None:
    model, once = arrays(), np.ones(SHAPE)
    opt = OnArrays(zero_gradients=True)
    for bad, error, message in [
        (read_only(np.ones(SHAPE)), ox.ArrayMemoryError, "^b: the gradient.* is read-only"),
        (
            np.lib.stride_tricks.as_strided(np.ones(4), SHAPE, (0, 8)),
            ox.AliasError,
            "^b: the gradient.* overlaps itself",
        ),
    ]:
        before = tree.map(np.copy, model)
        with pytest.raises(error, match=message):
            opt.update(model, {"a": once, "b": bad})
        np.testing.assert_equal(model, before)
        np.testing.assert_array_equal(once, 1.0)
    opt.update(model, {"a": once, "b": once})
    np.testing.assert_array_equal(once, 0.0)


def test_a_gradient_of_a_tied_parameter_is_not_its_own_memory() -> None:
    w, other = np.ones(3), np.ones(3)
    with pytest.raises(ox.AliasError, match="share memory"):
        optim.SGD(0.1, zero_gradients=True).update({"a": w, "b": w}, {"a": other, "b": w})
    np.testing.assert_array_equal(w, 1.0)


def test_an_array_of_a_called_rule_that_becomes_read_only() -> None:
    opt, model = OnArrays(), arrays()
    opt.update(model, tree.map(np.ones_like, model))
    kept = read_only(model["b"])
    before = kept.copy()
    opt.update(model, tree.map(np.ones_like, model))
    np.testing.assert_array_equal(kept, before)
    assert model["b"] is not kept and opt.step == 2


# --- containers that raise -----------------------------------------------------------------------------------------------


class Fragile(dict):
    """Raises at the assignment of a number, before or after it was made."""

    error: type[BaseException] = ValueError
    at = -1
    late = False

    def __setitem__(self, key: Any, value: Any) -> None:
        type(self).at -= 1
        if type(self).at == -1 and not self.late:
            raise self.error("no")
        super().__setitem__(key, value)
        if type(self).at == -1:
            raise self.error("no")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("kind", ["read-only", "foreign"])
@pytest.mark.parametrize("name", ["sgd", "adam", *CALLED])
def test_a_container_that_raises(name: str, kind: str, late: bool, error: type[BaseException]) -> None:
    """The first container or the second raises, where one array is written in place, and others are replaced."""
    for at in (0, 1):
        opt, model = ALL[name](), Fragile(arrays(kind) | {"c": arrays(names="c")["c"]})
        step(opt, model)  # some change no parameter in their first step
        dict.update(model, arrays(kind))
        opt = copy.deepcopy(opt)
        Fragile.error, Fragile.late, Fragile.at = error, late, at
        refused(opt, model, error, "no")
        Fragile.at = -1
        step(opt, model)
        assert opt.step * opt.accumulate + opt._stepper.micro == 2


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_containers_within_containers(name: str) -> None:
    class Holder:
        def __init__(self, **values: Any) -> None:
            vars(self).update(values)

        def __setattr__(self, key: str, value: Any) -> None:
            raise ValueError("no")

    tree.register(Holder, fields=("w", "v"))
    inner = [read_only(np.zeros(2))]
    holder = Holder(w=(read_only(np.zeros(2)),), v=np.zeros(2))
    model = {"first": inner, "plain": np.zeros(2), "second": holder}
    held, opt = (inner[0], holder.w, holder.w[0]), OPTIMIZERS[name]()
    with pytest.raises(ValueError, match="no"):
        opt.update(model, tree.map(np.ones_like, model))
    assert inner[0] is held[0] and holder.w is held[1] and holder.w[0] is held[2]
    for array in tree.leaves(model):
        np.testing.assert_array_equal(array, 0.0)
    assert opt.step == 0 and not any(np.any(slot) for own in opt.slots.values() for slot in own.values())


def test_a_container_that_raises_when_restored() -> None:
    class Once(dict):
        left = 1

        def __setitem__(self, key: Any, value: Any) -> None:
            if not self.left:
                raise ValueError("no")
            self.left -= 1
            super().__setitem__(key, value)

    model = Once(arrays("read-only"))
    refused(optim.SGD(0.1), model, ValueError, "no")


@pytest.mark.parametrize("kind", ["writable", "read-only"])
def test_a_guard_replaces_nothing(kind: str) -> None:
    for opt in (optim.Adam(0.1, nonfinite="skip"), OnArrays(nonfinite="skip"), optim.Adam(0.1, nonfinite="raise")):
        model = arrays(kind) | {"c": arrays(names="c")["c"]}
        before, held = tree.map(np.copy, model), dict(model)
        grads = {name: np.full(SHAPE, np.inf if name == "c" else 1.0) for name in model}
        try:
            opt.update(model, grads)
        except ox.NonFiniteError:
            assert opt.nonfinite == "raise"
        np.testing.assert_equal(model, before)
        assert opt.step == 0 and all(model[name] is array for name, array in held.items())


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_averages_are_swapped_whole(error: type[BaseException]) -> None:
    opt = optim.chain(optim.SGD(0.1), optim.EMA(decay=0.5))
    model = Fragile(arrays())
    step(opt, model)
    for swap, other in ((opt.swap_in, opt.swap_out), (opt.swap_out, opt.swap_in)):
        read_only(model["b"])
        before, held = tree.map(np.copy, dict(model)), dict(model)
        Fragile.error, Fragile.at = error, 0
        with pytest.raises(error, match="no"):
            swap(model)
        np.testing.assert_equal(dict(model), before)
        assert all(model[name] is array for name, array in held.items())
        with pytest.raises(ox.StateError):
            other(model)
        swap(model)
    assert opt.step == 1


# --- rows ----------------------------------------------------------------------------------------------------------------


def test_a_slot_of_steps_that_is_read_only() -> None:
    opt, model = optim.Adam(0.1, sparse="catch_up"), arrays()
    rows = lambda: {name: SparseRows([0, 2], np.ones((2, 4)), SHAPE) for name in model}  # noqa: E731
    opt.update(model, rows())
    opt.slots["b"][LAST_STEP].setflags(write=False)
    before = snapshot(opt, model)
    with pytest.raises(ox.ArrayMemoryError, match=f"^b: the slot {LAST_STEP} is read-only"):
        opt.update(model, rows())
    np.testing.assert_equal(snapshot(opt, model), before)


@pytest.mark.parametrize("sparse", ["dense", "lazy", "catch_up"])
def test_rows_and_a_container_that_raises(sparse: str) -> None:
    opt, model = optim.Adam(0.1, sparse=sparse), Fragile(arrays() | {"c": read_only(np.zeros(SHAPE))})
    Fragile.error, Fragile.late, Fragile.at = ValueError, False, 0
    before = tree.map(np.copy, dict(model))
    with pytest.raises(ValueError, match="no"):
        opt.update(model, {name: SparseRows([0, 2], np.ones((2, 4)), SHAPE) for name in model})
    np.testing.assert_equal(dict(model), before)
    assert opt.step == 0 and not any(np.any(slot) for own in opt.slots.values() for slot in own.values())


# --- results of rules ------------------------------------------------------------------------------------------------------


def returning(what: Callable[..., tuple[Any, ...]], begin: Any = None) -> Any:
    def rule(xp, p, g, m, v, *, learning_rate=0.1):
        return what(xp, p, g, m, v)

    return optim.define(rule, "Returning", elementwise=False)()


ALIASES: dict[str, Callable[..., tuple[Any, ...]]] = {
    "the parameter": lambda xp, p, g, m, v: (p - g, p, v),
    "the gradient": lambda xp, p, g, m, v: (p - g, g, v),
    "a view of the parameter": lambda xp, p, g, m, v: (p - g, p[:, ::-1], v),
    "a view of the gradient": lambda xp, p, g, m, v: (p - g, xp.reshape(g, g.shape), v),
    "another slot": lambda xp, p, g, m, v: (p - g, v, m),
    "one array for two": lambda xp, p, g, m, v: (p - g, *((m + g,) * 2)),
    "the new parameter": lambda xp, p, g, m, v: ((new := p - g), new, v),
    "the gradient as the parameter": lambda xp, p, g, m, v: (g, m + 1, v + g),
    "the parameter reversed": lambda xp, p, g, m, v: (p[::-1, :], m, v),
    "all as they were": lambda xp, p, g, m, v: (p, m, v),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ALIASES)
def test_results_are_arrays_of_their_own(name: str, kind: str) -> None:
    opt, model, expected = returning(ALIASES[name]), arrays(kind), arrays()
    slots = {path: [np.zeros(SHAPE), np.zeros(SHAPE)] for path in expected}
    for number in (1.0, 2.0):
        grads = {path: np.full(SHAPE, number).astype(p.dtype) for path, p in model.items()}
        opt.update(model, grads)
        for path, p in expected.items():
            expected[path], *slots[path] = map(np.copy, ALIASES[name](xp, p, np.full(SHAPE, number), *slots[path]))
            found = [model[path], opt.slots[path]["m"], opt.slots[path]["v"]]
            for array, wanted in zip(found, (expected[path], *slots[path]), strict=True):
                np.testing.assert_array_equal(array, wanted)
        found = [*model.values(), *(slot for own in opt.slots.values() for slot in own.values()), *grads.values()]
        for at, array in enumerate(found):
            assert not any(np.shares_memory(array, other) for other in found[:at])


def test_results_as_a_pure_function_are_arrays_of_their_own() -> None:
    for what in ALIASES.values():
        opt, params = returning(what), arrays()
        grads, state = tree.map(np.ones_like, params), opt.init(params)
        new, after = opt.apply(params, grads, state)
        slots = [slot for own in after["slots"].values() for slot in own.values()]
        for slot in slots:
            assert not any(
                np.shares_memory(slot, array) for array in (*params.values(), *grads.values(), *new.values())
            )
            assert sum(np.shares_memory(slot, other) for other in slots) == 1


def test_slots_that_begin_as_the_parameter_are_copies() -> None:
    def begun(xp, p):
        return p

    def rule(xp, p, g, first=begun, second=begun, *, learning_rate=0.1):
        return p - learning_rate * g, first, second

    for elementwise in (True, False):
        opt, model = optim.define(rule, "Begun", elementwise=elementwise)(), arrays()
        first = tree.map(np.copy, model)
        opt.update(model, tree.map(np.ones_like, model))
        for path, array in first.items():
            np.testing.assert_array_equal(opt.slots[path]["first"], array)
            np.testing.assert_array_equal(opt.slots[path]["second"], array)


def test_torch_results_are_tensors_of_their_own(library: Any) -> None:
    torch = library("torch")
    for what in ALIASES.values():
        opt, model = returning(what), {"a": torch.ones(SHAPE)}
        if what is ALIASES["a view of the parameter"] or what is ALIASES["the parameter reversed"]:
            continue  # torch has no views backwards
        grads = {"a": torch.full(SHAPE, 2.0)}
        opt.update(model, grads)
        places = [x.data_ptr() for x in (model["a"], grads["a"], *opt.slots["a"].values())]
        assert len(set(places)) == len(places)


def test_a_pure_function_refuses_overlapping_arrays() -> None:
    base = np.zeros((4, 4))
    for opt in (optim.SGD(), OnArrays()):
        params = {"a": base[:3], "b": base[1:]}
        with pytest.raises(ox.AliasError, match="^a and b share memory"):
            opt.apply(params, tree.map(np.ones_like, params), opt.init(params))


# --- one array at two paths ------------------------------------------------------------------------------------------------


def tied_step(make: Callable[[], Any], grads: Callable[[], dict[str, Any]], kind: str = "writable") -> np.ndarray:
    w = KINDS[kind](np.ones(SHAPE))
    model = make().update({"a": w, "b": w}, grads())
    assert model["a"] is model["b"]
    return np.asarray(model["a"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [lambda: optim.SGD(0.1), lambda: OnArrays()], ids=["sgd", "called"])
def test_a_repeated_gradient_counts_once(make: Callable[[], Any], kind: str) -> None:
    dtype = KINDS[kind](np.ones(1)).dtype
    g, h = np.full(SHAPE, 2.0, dtype), np.full(SHAPE, 2.0, dtype)
    np.testing.assert_allclose(tied_step(make, lambda: {"a": g, "b": g}, kind), 0.8)
    np.testing.assert_allclose(tied_step(make, lambda: {"a": g, "b": h}, kind), 0.6)
    np.testing.assert_allclose(tied_step(make, lambda: {"a": g, "b": g[::-1]}, kind), 0.6)
    if kind != "foreign":
        np.testing.assert_allclose(tied_step(make, lambda: {"a": g, "b": g[:]}, kind), 0.8)


def test_a_repeated_gradient_of_rows_and_of_a_pure_function_counts_once() -> None:
    w, g = np.ones(SHAPE), np.ones(SHAPE)
    params, opt = {"a": w, "b": w}, optim.SGD(0.1)
    new, _ = opt.apply(params, {"a": g, "b": g}, opt.init(params))
    np.testing.assert_allclose(new["a"], 0.9)
    rows, opt = SparseRows([0, 1, 2], np.ones(SHAPE), SHAPE), optim.SGD(0.1, sparse="lazy")
    opt.update(params, {"a": rows, "b": rows})
    np.testing.assert_allclose(w, 0.9)
    opt.update(params, {"a": rows, "b": SparseRows(rows.indices, rows.values, SHAPE)})
    np.testing.assert_allclose(w, 0.8)
    opt.update(params, {"a": rows, "b": SparseRows([0, 1, 2], np.ones(SHAPE), SHAPE)})
    np.testing.assert_allclose(w, 0.6)


def test_a_repeated_gradient_is_zeroed_once() -> None:
    w, g = np.ones(SHAPE), np.ones(SHAPE)
    for opt in (optim.SGD(0.1, zero_gradients=True), OnArrays(zero_gradients=True)):
        g[...], before = 1.0, w.copy()
        opt.update({"a": w, "b": w}, {"a": g, "b": g})
        np.testing.assert_allclose(w, before - 0.1)
        np.testing.assert_array_equal(g, 0.0)


def test_tied_weights_of_a_module_of_torch(library: Any) -> None:
    torch = library("torch")
    first, second = torch.nn.Linear(3, 3, bias=False), torch.nn.Linear(3, 3, bias=False)
    second.weight = first.weight
    module = torch.nn.Sequential(first, second)
    expected, x = copy.deepcopy(module), torch.ones(2, 3)
    reference = torch.optim.SGD(expected.parameters(), 0.1)
    expected(x).sum().backward()
    reference.step()
    module(x).sum().backward()
    named = dict(module.named_parameters(remove_duplicate=False))
    assert len(named) == 2
    optim.SGD(0.1).update(named, {name: p.grad for name, p in named.items()})
    np.testing.assert_allclose(first.weight.detach(), expected[0].weight.detach(), rtol=1e-6, atol=1e-7)


LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "one cotangent for both": lambda a, b: xp.sum(a + b),
    "broadcast": lambda a, b: xp.sum(a) + xp.sum(b),
    "transposed": lambda a, b: xp.sum(a + xp.matrix_transpose(b)),
    "product": lambda a, b: xp.sum(a * b),
    "views": lambda a, b: xp.sum(xp.reshape(a, (-1,)) + xp.reshape(b, (-1,))),
    "one of them": lambda a, b: xp.sum(a * a),
    "neither": lambda a, b: xp.asarray(1.0),
}


@pytest.mark.parametrize("shape", [(3, 3), (1, 1)], ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_our_gradients_of_a_tied_parameter_add_up(name: str, shape: tuple[int, ...], asarray: Any) -> None:
    f, values = LOSSES[name], np.arange(1.0, 1.0 + shape[0] * shape[1]).reshape(shape)
    w = asarray(values.copy())
    total = host(ox.grad(lambda w: f(w, w))(w))
    grads = ox.grad(lambda model: f(model["a"], model["b"]))({"a": w, "b": w})
    by_pullback = ox.vjp(lambda model: f(model["a"], model["b"]), {"a": w, "b": w})
    by_position = ox.grad(f, argnums=(0, 1))(w, w)
    pulled = by_pullback[1](by_pullback[0] * 0 + 1)[0]
    for given in (grads, pulled, dict(zip("ab", by_position, strict=True))):
        w = asarray(values.copy())
        model = optim.SGD(1.0).update({"a": w, "b": w}, given)
        np.testing.assert_allclose(host(model["a"]), values - total)


# --- masked arrays, units and other subclasses -----------------------------------------------------------------------------


class Metres(np.ndarray):
    """An array with arithmetic of its own, as libraries of units have."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        raise AssertionError("arithmetic on metres")


class Logged(np.ndarray):
    """An array with the arithmetic of every other."""


MEANINGS: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "masked": (lambda x: np.ma.MaskedArray(x, mask=x > 0), "a MaskedArray, whose mask would be ignored"),
    "matrix": (np.matrix, "a matrix, a subclass of numpy.ndarray with arithmetic of its own"),
    "units": (lambda x: x.view(Metres), "a Metres, a subclass of numpy.ndarray with arithmetic of its own"),
}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("meaning", MEANINGS)
@pytest.mark.parametrize("name", ["sgd", "adam", *CALLED])
def test_arrays_that_mean_more_are_refused_by_path(name: str, meaning: str) -> None:
    make, message = MEANINGS[meaning]
    opt, model = ALL[name](), arrays()
    special = make(model["b"].copy())
    given, grads = dict(model, b=special), tree.map(np.ones_like, model)
    loss = lambda model: xp.sum(model["a"] ** 2) + xp.sum(model["b"] ** 2)  # noqa: E731
    for call in (lambda: opt.minimize(loss, given), lambda: opt.build(given), lambda: opt.init(given)):
        with pytest.raises(ox.DtypeError, match=f"b: .*{message}"):
            call()
    if name == "lbfgs":
        return
    before = tree.map(np.copy, model)
    steps = [lambda: opt.apply(model, dict(grads, b=special), opt.init(model))]
    if not isinstance(opt, optim.SAM):  # which takes no gradients by itself
        steps += [lambda: opt.update(given, grads), lambda: opt.update(model, dict(grads, b=special))]
    for call in steps:
        with pytest.raises(ox.DtypeError, match=f"^b: the (parameter|gradient) is {message}"):
            call()
    np.testing.assert_equal(model, before)
    if not isinstance(opt, optim.SAM):
        opt.update(model, grads)  # and where the model is known
        with pytest.raises(ox.DtypeError, match=f"^b: the parameter is {message}"):
            opt.update(given, grads)
        with pytest.raises(ox.DtypeError, match=f"^b: the gradient is {message}"):
            opt.update(model, dict(grads, b=special))


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("meaning", MEANINGS)
def test_arrays_that_mean_more_are_not_differentiated(meaning: str) -> None:
    make, message = MEANINGS[meaning]
    x, special = np.ones((2, 2)), make(np.ones((2, 2)))
    square = lambda x: xp.sum(x * x)  # noqa: E731
    for call in (
        lambda: ox.grad(square)(special),
        lambda: ox.grad(lambda tree: square(tree["a"]))({"a": special}),
        lambda: ox.jvp(square, (special,), (x,)),
        lambda: ox.vjp(square, special),
        lambda: ox.grad(lambda x: xp.sum(x * special))(x),
        lambda: ox.grad(lambda x: xp.sum(xp.where(x > 0, special, x)))(x),
        lambda: ox.grad(lambda x: xp.sum(xp.matmul(special, x)))(x),
    ):
        with pytest.raises(ox.DtypeError, match=message):
            call()


def test_subclasses_with_the_usual_arithmetic_work(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "w", np.float64, "w+", shape=SHAPE)
    for array in (mapped, np.zeros(SHAPE).view(Logged), np.zeros(SHAPE).view(np.recarray)):
        for make in (lambda: optim.SGD(0.1), lambda: OnArrays()):
            array[...] = 1.0
            model = {"w": array}
            make().update(model, {"w": ox.grad(lambda x: xp.sum(x * x))(array)})
            assert model["w"] is array
            np.testing.assert_allclose(np.asarray(array), 0.8)


def test_masked_rows_are_refused() -> None:
    with pytest.raises(ox.DtypeError, match="SparseRows: the argument values is a MaskedArray"):
        SparseRows([0], np.ma.MaskedArray(np.ones((1, 4)), mask=True), SHAPE)
    with pytest.raises(ox.DtypeError, match="SparseRows: the argument indices is a MaskedArray"):
        SparseRows(np.ma.MaskedArray([0], mask=[True]), np.ones((1, 4)), SHAPE)


@pytest.mark.filterwarnings("ignore:.*MaskedTensors")
def test_masked_tensors_and_sparse_matrices_are_refused(library: Any) -> None:
    torch, sparse = library("torch"), library("scipy.sparse")
    masked = torch.masked.MaskedTensor(torch.ones(3, 3), torch.eye(3, dtype=torch.bool))
    for array, message in [
        (masked, "a MaskedTensor, whose mask would be ignored"),
        (sparse.csr_matrix(np.eye(3)), "a csr_matrix: expected an array of NumPy's, or of another library"),
    ]:
        for opt in (optim.SGD(), OnArrays()):
            with pytest.raises(ox.DtypeError, match=f"^w: the parameter is {message}"):
                opt.update({"w": array}, {"w": array})
            with pytest.raises((ox.DtypeError, ox.ArrayMemoryError), match="^w: the gradient "):
                opt.update({"w": np.ones((3, 3))}, {"w": array})


# --- steps that fail, and gradients of tied parameters ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda: optim.SGD(0.1, master=True), np.float16),
        (lambda: optim.chain(optim.SGD(0.1), optim.Lookahead(sync_period=2)), np.float64),
        (lambda: optim.ScheduleFreeSGD(0.1), np.float64),
    ],
)
def test_slots_do_not_begin_as_parameters_of_a_step_that_was_refused(make: Callable[[], Any], dtype: Any) -> None:
    opt, other = make(), make()
    values, g = np.arange(3).astype(dtype), np.ones(3, dtype)
    with pytest.raises(ox.ShapeError, match="^w: "):
        opt.update({"w": np.full(3, 7, dtype)}, {"w": np.ones(4, dtype)})
    assert not opt.slots
    model, expected = {"w": values.copy()}, {"w": values.copy()}
    for _ in range(3):
        opt.update(model, {"w": g})
        other.update(expected, {"w": g})
    np.testing.assert_array_equal(model["w"], expected["w"])


@pytest.mark.parametrize("name", ["sgd", "adam", "muon"])
@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (np.ones(1), ox.ShapeError),
        (np.ones((4, *SHAPE)), ox.ShapeError),
        (np.ones((*SHAPE, 5)), ox.ShapeError),
        (np.ones(SHAPE, np.int32), ox.DtypeError),
        (np.ones(SHAPE, np.float32), ox.DtypeError),
    ],
)
def test_gradients_of_a_tied_parameter_are_checked_before_they_are_added(
    name: str, bad: np.ndarray, error: type[Exception]
) -> None:
    w = np.ones(SHAPE)
    for grads in ({"a": np.ones(SHAPE), "b": bad}, {"a": bad, "b": np.ones(SHAPE)}):
        where = next(key for key, g in grads.items() if g is bad)
        with pytest.raises(error, match=f"^{where}: gradient has "):
            ALL[name]().update({"a": w, "b": w}, grads)
    np.testing.assert_array_equal(w, 1.0)


@pytest.mark.parametrize("options", [{"zero_gradients": True}, {"sparse": "lazy"}])
def test_a_tied_parameter_without_axes(options: dict[str, Any]) -> None:
    w, a, b = np.array(1.0), np.array(1.0), np.array(2.0)
    optim.SGD(0.1, **options).update({"a": w, "b": w}, {"a": a, "b": b})
    np.testing.assert_allclose(w, 0.7)
    assert "sparse" in options or (a == 0.0 and b == 0.0)


def test_gradients_of_foreign_byte_order_that_are_to_be_zeroed_are_refused_by_path() -> None:
    w = np.ones(3)
    with pytest.raises(ox.DtypeError, match="^b: the gradient, where zero_gradients"):
        optim.SGD(0.1, zero_gradients=True).update({"a": w, "b": w}, {"a": np.ones(3), "b": np.ones(3, ">f8")})
    np.testing.assert_array_equal(w, 1.0)
