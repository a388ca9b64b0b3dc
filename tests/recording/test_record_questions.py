"""Questions that a function may ask, and places that it may read: a recorded function answers as the function does, or an audit tells.

Each row is asked of arrays, scalars of NumPy and numbers of Python, by itself and below a derivative.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import decimal
import functools
import itertools
import math
import numbers
import operator
import os
import random
import sys
import tempfile
import threading
import time
import types
import uuid
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import array_api_compat
import array_api_compat.numpy
import numpy as np
import pytest
from test_record import equal

import oxigrad as ox
from oxigrad import xp

X = np.linspace(0.5, 1.5, 5)


def _matches(x: Any) -> Any:
    match x:
        case np.ndarray():
            return x * 2
        case float():
            return x * 3
        case int():
            return x * 4
    return x * 5


def _one_of(table: dict[type, float], x: Any) -> Any:
    return x * table.get(type(x), 7.0)


@functools.singledispatch
def _dispatched(x: Any) -> Any:
    return x * 7


_dispatched.register(np.ndarray)(lambda x: x * 2)
_dispatched.register(float)(lambda x: x * 3)


class Typed:
    """A class whose methods ask for types."""

    def __init__(self) -> None:
        self.weight = np.ones(())

    def __call__(self, x: Any) -> Any:
        return x * 2 * self.weight if type(x) in (np.ndarray, float) else x * 3

    @staticmethod
    def kind(x: Any) -> int:
        return {np.ndarray: 2, float: 3}.get(type(x), 4)

    @classmethod
    def named(cls, x: Any) -> Any:
        return x * len(type(x).__name__)


_TYPED = Typed()


def _with_a_metaclass(x: Any) -> Any:
    class Own(type):
        pass

    class Of(metaclass=Own):
        sizes: type[Any] | None = None

    return x * 2 if type(Of) is Own and isinstance(Of, type) and issubclass(Own, type) else x * 3


# What libraries ask for, and names that values of a recording have.
PROTOCOLS = """__array__ __array_function__ __array_ufunc__ __array_interface__ __array_struct__ __array_priority__
__array_namespace__ __array_wrap__ __array_finalize__ __dlpack__ __dlpack_device__ __float__ __complex__ __hash__
__iter__ __round__ __copy__ __deepcopy__ __pandas_priority__ __setitem__ value id level like number T dtype tolist
is_integer as_integer_ratio item flags real""".split()

TYPES: dict[str, Callable[[Any], Any]] = {
    "type in a method": lambda x: _TYPED(x),
    "type in a method of a new object": lambda x: Typed()(x),
    "type in a static method": lambda x: x * Typed.kind(x),
    "type in a class method": lambda x: Typed.named(x) + _TYPED.weight,
    "the class of a class": _with_a_metaclass,
    "isinstance of an array": lambda x: x * 2 if isinstance(x, np.ndarray) else x * 3,
    "isinstance of a result": lambda x: x * 2 if isinstance(np.sum(x), np.floating) else x * 3,
    "isinstance of a float": lambda x: x * 2 if isinstance(x, float) else x * 3,
    "isinstance of several": lambda x: x * 2 if isinstance(x, (int, list)) else x * 3,
    "a number": lambda x: x * 2 if isinstance(x, numbers.Real) else x * 3,
    "type is": lambda x: x * 2 if type(x) is np.ndarray else x * 3,
    "type of a result": lambda x: x * 2 if type(x * 2) in (float, np.float64) else x * 3,
    "type in a table": lambda x: _one_of({float: 2.0, np.ndarray: 3.0}, x),
    "the class": lambda x: x * 2 if x.__class__ is np.ndarray else x * 3,
    "issubclass": lambda x: x * 2 if issubclass(type(x), np.generic) else x * 3,
    "a name of a type": lambda x: x * len(type(x).__name__),
    "match": _matches,
    "singledispatch": lambda x: _dispatched(x),
    "isscalar": lambda x: (x * 2) if bool(np.isscalar(x)) else (x * 3),
    "hasattr of an index": lambda x: x * 2 if hasattr(x, "__index__") else x * 3,
    "hasattr of a length": lambda x: x * 2 if hasattr(x, "__len__") else x * 3,
    "hasattr of an iterator": lambda x: x * 2 if hasattr(x, "__iter__") else x * 3,
    "hasattr of a shape": lambda x: x * 2 if hasattr(x, "shape") else x * 3,
    "hasattr of a write": lambda x: x * 2 if hasattr(x, "__setitem__") else x * 3,
    "hasattr of addition in place": lambda x: x * 2 if hasattr(x, "__iadd__") else x * 3,
    "callable": lambda x: (3 - callable(x)) * x,
    "getattr with a default": lambda x: x * 2 if getattr(x, "ndim", None) is None else x * 3,
    "the same object": lambda x: x * 2 if (+x) is x else x * 3,
    "itself": lambda x: x * 2 if x is x else x * 3,
    "a copy": lambda x: copy.copy(x) * 2 if type(copy.deepcopy(x)) is type(x) else x * 3,
    "the shape": lambda x: x * (1 + np.ndim(x)) * np.size(x),
    "a dtype": lambda x: x * 2 if np.result_type(x, np.float32) == np.float64 else x * 3,
    "iscomplexobj": lambda x: x * 2 if np.iscomplexobj(x) else x * 3,
    "a suppressed refusal": lambda x: _suppressed(x),
    **{f"hasattr of {name}": lambda x, name=name: x * 2 if hasattr(x, name) else x * 3 for name in PROTOCOLS},
    **{f"getattr of {name}": lambda x, name=name: x * (2 + (getattr(x, name, 0) == 0)) for name in ("value", "real")},
    "getattr of an interface": lambda x: x * 2 if getattr(x, "__array_interface__", None) else x * 3,
    "a number of NumPy's": lambda x: x * 2 if np.isscalar(x) else x * 3,
    "iterable": lambda x: x * 2 if np.iterable(x) else x * 3,
    "an attribute": lambda x: _unwrapped(x),
    "an array already": lambda x: x * 2 if xp.asarray(x) is x else x * 3,
    "is_numpy_array": lambda x: x * 2 if array_api_compat.is_numpy_array(x) else x * 3,
    "is_array_api_obj": lambda x: x * 2 if array_api_compat.is_array_api_obj(x) else x * 3,
    "array_namespace": lambda x: x * 2 if array_api_compat.array_namespace(x, X) is array_api_compat.numpy else x * 3,
    "is_writeable_array": lambda x: x * 2 if array_api_compat.is_writeable_array(x) else x * 3,
}


def _unwrapped(x: Any) -> Any:
    try:
        return x.value * 3
    except AttributeError:
        return x * 2


def _suppressed(x: Any) -> Any:
    total = x * 1.0
    with suppress(TypeError):
        total += x
    return total


VALUES: dict[str, list[Any]] = {
    "arrays": [X, X + 1.0, X - 3.0],
    "scalars": [np.float64(0.5), np.float64(1.5), np.float64(-2.0)],
    "floats": [0.5, 1.5, -2.0],
    "zeros": [np.zeros(3), np.ones(3), np.full(3, 2.0)],
}


@pytest.mark.parametrize("audit", ["always", "powers"])
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("name", TYPES)
def test_traced_values_answer_as_plain_ones(name, values, audit):
    f = TYPES[name]
    g = ox.record(f, audit=audit)
    for x in VALUES[values]:
        for _ in range(2):
            assert equal(g(x), f(x)), g.why


def test_names_are_as_before_after_recordings_in_threads():
    modules = (
        sys.modules[__name__],
        array_api_compat.numpy,
        array_api_compat.numpy.linalg,
        array_api_compat.common._helpers,
    )
    before = [dict(vars(module)) for module in modules]
    start, results = threading.Barrier(4), list[Any]()

    def run() -> None:
        for _ in range(20):
            start.wait()
            results.append(ox.record(lambda x: _TYPED(x) + xp.asarray([2.0, x[1]])[0])(X))
            with suppress(ValueError):
                ox.record(_raises)(X)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 80
    assert all(equal(result, X * 2 + 2.0) for result in results)
    for module, names in zip(modules, before, strict=True):
        assert list(vars(module)) == list(names)
        assert all(vars(module)[name] is each for name, each in names.items()), module


def _raises(x: Any) -> Any:
    raise ValueError(f"of the function: {_TYPED.kind(x)}")


@pytest.mark.parametrize("name", ["index", "range", "list", "factorial"])
def test_a_float_is_no_index(name):
    functions: dict[str, Callable[[Any], Any]] = {
        "index": operator.index,
        "range": range,
        "list": lambda x: [1, 2, 3][x],
        "factorial": math.factorial,
    }
    g = ox.record(functions[name])
    for _ in range(2):
        with pytest.raises(TypeError):
            g(2.0)


# --- constants, which audits compare ------------------------------------------------------------------------------------------


class Config:
    pass


class Model(dict[str, Any]):
    """A container with attributes beside its items."""


@dataclasses.dataclass
class Layer:
    weight: Any


class Meta(type):
    @property
    def rate(cls) -> float:
        return _STATE["rate"]


class OfMeta(metaclass=Meta):
    pass


class Described:
    def __get__(self, instance: Any, owner: Any) -> float:
        return _STATE["rate"]


class WithDescriptor:
    rate: Any = Described()


_RNG = np.random.default_rng(0)
_STATE: dict[str, Any] = {"rate": 2.0}
_MODULE: Any = types.ModuleType("of_a_user")
sys.modules["of_a_user"] = _MODULE
_FROM_C = np.frompyfunc(lambda x: x * _STATE["rate"], 1, 1)
_HOLDER = types.SimpleNamespace(objects=np.array([2.0, None], dtype=object))


class Hashed:
    def __init__(self) -> None:
        self.rate = 2.0


_FROZEN = frozenset([Hashed()])


def _named(rate: float, name: str) -> float:
    if name.startswith("__"):  # for which `inspect` asks each module
        raise AttributeError(name)
    return rate


def _of_module(x: Any) -> Any:
    m = _MODULE
    return x * m.rate


def _handed(module: Any, x: Any) -> Any:
    return x * module.rate


def _of_import(x: Any) -> Any:
    from of_a_user import rate

    return x * rate


_FILE = Path(tempfile.mkdtemp()) / "rate"

# What reads a constant, and what changes it.
CONSTANTS: dict[str, tuple[Callable[[Any], Any], Callable[[float], Any]]] = {
    "an alias of a module": (_of_module, lambda rate: setattr(_MODULE, "rate", rate)),
    "a module handed to a helper": (lambda x: _handed(_MODULE, x), lambda rate: setattr(_MODULE, "rate", rate)),
    "an import inside": (_of_import, lambda rate: setattr(_MODULE, "rate", rate)),
    "a module's __getattr__": (
        lambda x: x * getattr(_MODULE, "la" + "zy"),
        lambda rate: setattr(_MODULE, "__getattr__", functools.partial(_named, rate)),
    ),
    "a text file": (lambda x: x * float(_FILE.read_text()), lambda rate: _FILE.write_text(str(rate))),
    "a file of an array": (
        lambda x: x * np.load(f"{_FILE}.npy"),
        lambda rate: np.save(f"{_FILE}.npy", np.full(5, rate)),
    ),
    "the environment": (
        lambda x: x * float(os.environ["OF_A_USER"]),
        lambda rate: os.environ.update(OF_A_USER=str(rate)),
    ),
    "a property of a metaclass": (lambda x: x * OfMeta.rate, lambda rate: _STATE.update(rate=rate)),
    "a descriptor": (lambda x: x * WithDescriptor().rate, lambda rate: _STATE.update(rate=rate)),
    "a function in C": (lambda x: x * float(_FROM_C(2.0)), lambda rate: _STATE.update(rate=rate)),
    "a frozen set of objects": (
        lambda x: x * next(iter(_FROZEN)).rate,
        lambda rate: setattr(next(iter(_FROZEN)), "rate", rate),
    ),
    "an attribute by a computed name": (
        lambda x: x * getattr(OfClass, "ra" + "te"),
        lambda rate: setattr(OfClass, "rate", rate),
    ),
    "a context of decimals": (
        lambda x: x * float(decimal.getcontext().prec),
        lambda rate: setattr(decimal.getcontext(), "prec", int(rate * 10)),
    ),
    "print options": (
        lambda x: x * len(str(np.array([1 / 3]))),
        lambda rate: np.set_printoptions(precision=int(rate)),
    ),
}


class OfClass:
    rate: Any = 2.0


@pytest.fixture
def as_before():
    """Constants with their values, before and after a test."""
    options = np.get_printoptions()
    with decimal.localcontext():
        for _, change in CONSTANTS.values():
            change(2.0)
        yield
        for _, change in CONSTANTS.values():
            change(2.0)
    np.set_printoptions(**options)


@pytest.mark.parametrize("name", CONSTANTS)
def test_audits_at_each_call_leave_no_change_unseen(name, as_before):
    f, change = CONSTANTS[name]
    g = ox.record(f, audit="always", on_stale="warn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for at in range(12):
            if at in (3, 7):
                change(2.0 + at)
            assert equal(g(X + at), f(X + at))
    assert len(caught) == 2


@pytest.mark.parametrize("change_before", [3, 5, 6, 9])
@pytest.mark.parametrize("name", CONSTANTS)
def test_audits_at_powers_of_two_find_a_change_at_the_next_one(name, change_before, as_before):
    f, change = CONSTANTS[name]
    g = ox.record(f)
    for call in range(1, 17):
        if call == change_before:
            change(5.0)
        audited = 1 << (change_before - 1).bit_length()
        if call == audited:
            with pytest.raises(ox.StaleRecordingError) as caught:
                g(X + call)
            assert (caught.value.last_good, caught.value.call) == (audited // 2, audited)
            break
        g(X + call)
    for at in range(3):
        assert equal(g(X + at), f(X + at))


@pytest.mark.parametrize(
    "draw",
    [
        lambda: np.random.normal(),  # noqa: NPY002 - a state of the module
        lambda n=np: n.random.rand(),
        lambda: random.random(),
        lambda: _RNG.normal(),
        lambda: float(pytest.importorskip("scipy.stats").norm.rvs()),
        lambda: time.perf_counter(),
        lambda: time.time_ns() * 1e-9,
        lambda: datetime.datetime.now(datetime.UTC).timestamp(),
        lambda: float.fromhex(uuid.uuid4().hex[:12]),
    ],
)
def test_a_function_that_draws_numbers_runs_as_it_is(draw):
    g = ox.record(lambda x: x * draw())
    results = [g(X) for _ in range(6)]
    assert not any(equal(one, other) for one, other in itertools.pairwise(results))
    assert "the same bits" in str(g.why)
    assert not g.recordings


def test_each_first_call_and_each_audit_call_the_function_once():
    class Counter:
        calls = 0

    def f(x: Any) -> Any:
        Counter.calls += 1
        return xp.exp(x)

    g = ox.record(f)
    for at in range(2048):
        g(X + at)
        if at == 0:
            assert Counter.calls == 1
    assert Counter.calls == 12  # 1, 2, 4, ... 1,024, 2,048


def test_an_array_of_objects_is_refused():
    g = ox.record(lambda x: x * _HOLDER.objects[0])
    for at in range(4):
        _HOLDER.objects[0] = float(at)
        assert equal(g(X), X * float(at))
    assert "objects" in str(g.why)


def test_a_call_with_the_bits_of_the_first_proves_nothing():
    class Answer:
        is_right = False

    def f(x: Any) -> Any:
        return x * (3.0 if Answer.is_right else 2.0)

    g, x = ox.record(f), np.zeros(3)
    for at in range(3):
        Answer.is_right = at > 0
        assert equal(g(x), f(x))
    for at in range(3):
        assert equal(g(x + at), f(x + at))
    assert "the same bits" in str(g.why)


def test_a_function_that_differs_from_itself_runs_as_it_is_and_warns_once():
    class Noise:
        is_on = False

    def f(x: Any) -> Any:
        return x * (random.random() if Noise.is_on else 2.0)

    g = ox.record(f)
    for at in range(3):
        assert equal(g(X + at), f(X + at))
    Noise.is_on = True
    with pytest.warns(UserWarning, match="differs from itself"):
        g(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not equal(g(X), g(X))


@pytest.mark.parametrize(
    ("given", "match"), [({"audit": 0}, "audit"), ({"audit": "x"}, "audit"), ({"on_stale": "x"}, "on_stale")]
)
def test_unknown_options_are_refused(given, match):
    with pytest.raises(ValueError, match=match):
        ox.record(lambda x: x, **given)


# --- containers with attributes beside their items ----------------------------------------------------------------------------


def _by_flag(model: Any, x: Any) -> Any:
    return x * 2.0 if model.training else x * 3.0


@pytest.mark.parametrize("make", [lambda: Model(a=1.0), lambda: Layer(np.ones(5))], ids=["dict", "dataclass"])
@pytest.mark.parametrize("is_argument", [True, False], ids=["argument", "captured"])
def test_attributes_beside_items_and_fields_are_part_of_a_container(make, is_argument):
    model = make()
    model.training = True
    g: Any = ox.record(_by_flag) if is_argument else ox.record(lambda x: _by_flag(model, x))
    for at in range(8):
        model.training = at % 4 < 2
        assert equal(g(*([model] if is_argument else []), X + at), _by_flag(model, X + at))


def test_a_recording_keeps_the_attributes_of_its_first_call():
    layer: Any = Layer(np.ones(5))
    g: Any = ox.record(lambda layer, x: x * layer.weight * layer.rate, audit="never")
    for at in (1.0, 2.0, 3.0, 1.0, 3.0):
        layer.rate = at
        assert equal(g(layer, X), X * at)
    assert g.replays == 2
    layer.rate = 4.0
    g(layer, X)
    assert tuple(g.why) == ("attributes of the arguments", "[{'rate': 3.0}]", "[{'rate': 4.0}]")


@pytest.mark.parametrize(
    ("layer", "match"),
    [(Layer(np.ones(5)), "attribute state of an argument is a"), (Model(a=1.0), "a list or a dict with attributes")],
    ids=["dataclass", "dict"],
)
@pytest.mark.parametrize(
    ("state", "change"),
    [
        (np.ones(5), lambda state: state.fill(2.0)),
        ([1.0], lambda state: state.append(2.0)),
        (Config(), lambda state: setattr(state, "rate", 2.0)),
    ],
    ids=["array", "list", "object"],
)
def test_attributes_of_arguments_that_can_change_are_refused(layer, match, state, change):
    def read(layer: Any, x: Any) -> Any:
        state = layer.state
        return x * (getattr(state, "rate", 1.0) if isinstance(state, Config) else state[-1])

    layer.state = copy.deepcopy(state)
    g: Any = ox.record(read, audit="never")
    for at in range(3):
        assert equal(g(layer, X + at), read(layer, X + at))
        change(layer.state)
    assert match in str(g.why)


def test_why_names_the_line_that_raised():
    g: Any = ox.record(lambda x: (memoryview(x), x * 2.0)[1])
    with pytest.warns(UserWarning, match=r"ran twice in this call.*test_record_questions\.py:\d+"):
        assert equal(g(X), X * 2.0)


# --- writes, and values that are left behind ----------------------------------------------------------------------------------


def test_a_cache_of_the_users_keeps_no_traced_value():
    @functools.lru_cache(maxsize=1)
    def cached(x: float) -> float:
        return x * 2.0

    g = ox.record(lambda x: cached(x) + 1.0)
    for x in (0.5, 1.5, 0.5):
        assert equal(g(x), x * 2.0 + 1.0)
    assert "keeps values" in str(g.why)


def test_batches_are_drawn_once_in_training():
    from oxigrad.optim import SGD

    def losses(*, record: bool) -> tuple[list[float], list[int]]:
        batches, drawn = iter(np.random.default_rng(0).normal(size=(40, 8, 3))), []

        def draw() -> Any:
            drawn.append(1)
            return next(batches)

        def loss(model: Any) -> Any:
            batch = draw()
            return xp.mean((batch @ model["w"] - xp.sum(batch, axis=1)) ** 2)

        model, opt = {"w": np.zeros(3)}, SGD(0.1)
        return [float(opt.minimize(loss, model, record=record)) for _ in range(20)], drawn

    assert losses(record=True) == losses(record=False)


def test_a_changed_regularizer_stops_the_training_before_an_update():
    from oxigrad.optim import Adam

    class Penalty:
        rate = 0.0

    def loss(model: Any) -> Any:
        return xp.sum((model["w"] - 1.0) ** 2) + Penalty.rate * xp.sum(model["w"] ** 2)

    model, opt = {"w": np.zeros(3)}, Adam(0.1)
    for _ in range(5):
        opt.minimize(loss, model, record=True)
    Penalty.rate = 10.0
    for _ in range(2):
        opt.minimize(loss, model, record=True)
    before = model["w"].copy()
    with pytest.raises(ox.StaleRecordingError) as caught:
        opt.minimize(loss, model, record=True)
    assert (caught.value.last_good, caught.value.call) == (4, 8)
    np.testing.assert_array_equal(model["w"], before)
    assert opt.minimize(loss, model, record=True) == loss({"w": before})


def test_no_audit_runs_inside_of_a_derivative():
    g = ox.record(lambda x: xp.sum(xp.exp(x)))
    for at in range(5):
        assert equal(ox.grad(g)(X + at), ox.grad(lambda x: xp.sum(xp.exp(x)))(X + at))
    assert g.replays == 0


def _reciprocal(x: Any) -> Any:
    with np.errstate(divide="raise"):
        return xp.sum(1.0 / x) + xp.sum(xp.log(x))


def _reciprocal_or_zero(x: Any) -> Any:
    try:
        return _reciprocal(x)
    except FloatingPointError:
        return xp.sum(x) * 0.0


@pytest.mark.parametrize("f", [_reciprocal, ox.grad(_reciprocal), _reciprocal_or_zero])
def test_settings_for_floating_point_errors_inside_of_a_function_are_those_of_its_replays(f, tmp_path):
    g = ox.record(f, audit="always")
    for at in range(3):
        assert equal(g(X + at), f(X + at))
        assert g.why is None
    if f is _reciprocal:
        g.save(tmp_path / "f.safetensors")
        loaded = ox.load_recording(tmp_path / "f.safetensors")
        assert equal(loaded(X), f(X))
        with pytest.raises(FloatingPointError):
            loaded(np.zeros(5))
        with pytest.raises(FloatingPointError):
            g(np.zeros(5))
    elif f is _reciprocal_or_zero:
        assert equal(g(np.zeros(5)), 0.0 * np.float64(1.0))


@pytest.mark.parametrize(
    ("f", "raises"),
    [
        (_reciprocal_or_zero, np.zeros(5)),
        (lambda x: x if _is_singular(xp.reshape(x[:4], (2, 2))) else -x, np.zeros(5)),
    ],
)
def test_an_exception_that_the_function_catches_is_no_branch_of_a_recording(f, raises):
    g = ox.record(f)
    for x in (raises, -raises, X, raises, X + 1.0):
        assert equal(g(x), f(x))


def _is_singular(matrix: Any) -> bool:
    try:
        np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return True
    return False


def _sum_in_place(x: Any) -> Any:
    total = x[0]
    for at in range(1, 5):
        total += x[at] * at
    return total


RECORDED: dict[str, Callable[[Any], Any]] = {
    "a sum of numbers in place": _sum_in_place,
    "zeros like it": lambda x: np.zeros_like(x) + x,
    "a plain result": lambda x: (xp.zeros_like(x), x.shape),
    "an array of numbers": lambda x: xp.asarray([x[0], x[1] * 2.0]) * x[2],
    "branches": lambda x: x * 2.0 if xp.sum(x) > 10.0 else x * 3.0,
    "a derivative": ox.grad(_sum_in_place),
}


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_recorded(name):
    f = RECORDED[name]
    g = ox.record(f, audit="always")
    for at in (0.0, 0.5, 3.0, 0.0, 3.5):
        assert equal(g(X + at), f(X + at))
    assert g.why is None, g


OF_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "an array of a number": lambda a, b: xp.asarray(a) * b,
    "an array of a list": lambda a, b: xp.asarray([a, b, a * b]),
    "an array of lists": lambda a, b: xp.matmul(xp.asarray([[a, b], [1.0, a]]), xp.asarray((b, 2.0))),
    "a dtype": lambda a, b: xp.asarray([a, b], dtype="float32"),
    "stack": lambda a, b: xp.stack([xp.asarray(a), xp.asarray(b)]),
    "full": lambda a, b: xp.full(3, a) + xp.full((3,), b),
    "linspace": lambda a, b: xp.linspace(a, b, 5),
    "an array beside": lambda a, b: xp.concat([xp.asarray([a, b]), X]),
    "the library of an array": lambda a, b: array_api_compat.array_namespace(X, a).asarray([a, b]),
    "NumPy's stack": lambda a, b: np.stack([a, b]) * 2.0,
    "a derivative": ox.grad(lambda a, b: xp.sum(xp.asarray([a, b, a * b]) ** 2), argnums=(0, 1)),
}


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.array])
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_arrays_of_numbers_are_entries(name, kind):
    f = OF_NUMBERS[name]
    g = ox.record(f, audit="always")
    for a, b in ((0.5, 1.5), (1.5, 0.25), (-2.0, 3.0), (0.5, 1.5)):
        assert equal(g(kind(a), kind(b)), f(kind(a), kind(b)))
    assert g.why is None, g
    assert len(g.recordings) == 1


def test_a_whole_training_step_is_recorded():
    from oxigrad.optim import Adam

    opt = Adam(0.1)

    def step(model: Any, state: Any, batch: Any) -> Any:
        value, grads = ox.value_and_grad(lambda model: xp.mean((batch @ model["w"] - 1.0) ** 2))(model)
        return (*opt.apply(model, grads, state), value)

    g, rng = ox.record(step, audit="always"), np.random.default_rng(0)
    model: Any = {"w": np.zeros(3)}
    state = opt.init(model)
    for _ in range(6):
        batch = rng.normal(size=(4, 3))
        result = g(model, state, batch)
        assert equal(result, step(model, state, batch)), g.why
        model, state, _ = result
    assert g.why is None
