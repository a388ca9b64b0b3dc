"""The choice of executor for models on CUDA devices: kernels, or the rule on arrays, for every optimizer, without a driver.

CuPy's role is that of `arrays`; PyTorch's tensors are those of `FakeTensorMode`, which have no memory, and so are described in the
test where kernels are to be chosen.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import arrays
import numpy as np
import pytest

import oxigrad as ox
from optimizers import OPTIMIZERS
from oxigrad import _core, cuda, optim, tree
from oxigrad.cuda import availability, driver
from oxigrad.ops.backends import DeviceMemory, dtype_name
from oxigrad.step.arrays.device_noise import DeviceNoise
from oxigrad.step.plan.plan import Plan

SHAPES = {"w": (3, 5), "b": (4,), "one": ()}
# Rules of whole matrices, which no kernel has.
MATRIX: dict[str, Callable[[], Any]] = {
    name: getattr(optim, name) for name in ("Adafactor", "Muon", "SM3", "SOAP", "Shampoo")
}


class Present:
    """A driver that answers no more than that devices can be used."""

    def check(self, device: int) -> None:
        pass


@pytest.fixture
def present() -> Iterator[None]:
    with driver.replaced(Present()):  # type: ignore[type-var]
        yield


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No driver, which nobody has noticed yet."""

    def refuse() -> Any:
        raise cuda.DriverUnavailableError("there is no CUDA driver: a test")

    monkeypatch.setattr(driver, "_source", refuse)
    monkeypatch.setattr(availability, "_without_driver", [])


def executors(opt: Any, model: Any) -> set[str]:
    """The executors of the parameters."""
    return {p.executor.name for p in Plan(*tree.flatten(model), opt._step_options).parameters}


def cupy_like(dtype: Any = "float32") -> dict[str, Any]:
    return {name: arrays.Array(np.zeros(shape, dtype)) for name, shape in SHAPES.items()}


# --- CuPy and its kin --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_elementwise_rules_are_kernels(name: str, present: None) -> None:
    assert executors(OPTIMIZERS[name](), cupy_like()) == {"device"}


@pytest.mark.parametrize("name", MATRIX)
def test_rules_of_matrices_are_called_on_arrays(name: str, present: None) -> None:
    assert executors(MATRIX[name](), cupy_like()) == {"rule"}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_every_floating_point_dtype(dtype: str, present: None) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
        dtype = arrays.namespace.bfloat16
    assert executors(optim.AdamW(0.1), cupy_like(dtype)) == {"device"}


def test_what_no_kernel_can_write(present: None) -> None:
    model = cupy_like()
    strided = arrays.Array(np.zeros((3, 8), np.float32)[:, ::2])
    read_only = arrays.Array(np.zeros(3, np.float32))
    read_only._array.setflags(write=False)
    for array in (strided, read_only):
        assert executors(optim.SGD(0.1), {"x": array}) == {"rule"}
        assert cuda.why(array)
    assert executors(optim.SGD(0.1), {**model, "x": strided}) == {"device", "rule"}
    assert executors(optim.chain(optim.ClipByGlobalNorm(1.0), optim.SGD(0.1)), {**model, "x": strided}) == {"rule"}
    assert cuda.why(model["w"]) == ""


def test_a_model_in_two_memories(present: None) -> None:
    model = {**cupy_like(), "host": np.zeros(3)}
    assert executors(optim.AdamW(0.1), model) == {"device", "host"}


def test_without_a_driver_a_warning_comes_once_and_rules_are_called(absent: None) -> None:
    with pytest.warns(cuda.UnavailableWarning, match="there is no CUDA driver: a test; update rules are called"):
        assert executors(optim.AdamW(0.1), cupy_like()) == {"rule"}
    model, grads = cupy_like(), cupy_like()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opt = optim.AdamW(0.1)
        model = opt.update(model, grads)
        opt.update(model, grads)
    assert cuda.why(model["w"]) == "there is no CUDA driver: a test"


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_rules_read_no_number_of_a_device(name: str, absent: None) -> None:
    opt, model = OPTIMIZERS[name](), {"w": arrays.Array(np.ones((2, 3)))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cuda.UnavailableWarning)
        for _ in range(2):
            model = opt.update(model, {"w": arrays.Array(np.full((2, 3), 0.5))})
    assert isinstance(model["w"], arrays.Array) and opt.step == 2


# --- random numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (3, 5), (257,), (0, 4)], ids=str)
@pytest.mark.parametrize("rows", [None, [0, 2, 7]], ids=str)
def test_random_numbers_of_a_device_are_those_of_the_core(shape: Any, dtype: str, rows: Any) -> None:
    if rows and not shape:
        return
    shape = (len(rows), *shape[1:]) if rows else shape
    count = int(np.prod(shape[1:] if rows else shape))
    like, found = arrays.Array(np.zeros(shape, dtype)), None if rows is None else arrays.Array(np.array(rows))
    for seed, step, leaf in [(0, 1, 0), (7, 2**40, 3), (2**64 - 1, 12, 2**31)]:
        noise = DeviceNoise(seed, step, leaf, like, found)
        for draw in (0, 1, 5):
            expected = np.frombuffer(_core.uniform(seed, step, leaf, draw, count, rows))
            assert np.array_equal(arrays.host(noise.uniform(draw)).reshape(-1), expected)
            expected = np.frombuffer(_core.rounding(seed, step, leaf, draw, count, rows))
            assert np.array_equal(arrays.host(noise.rounding(draw)).reshape(-1), expected)
            assert noise.uniform(draw).shape == shape and noise.uniform(draw).dtype == dtype


def test_rows_on_a_device_draw_what_rows_on_the_host_draw(absent: None) -> None:
    results = []
    for make in (np.array, lambda values: arrays.Array(np.array(values))):
        opt = optim.chain(optim.GradientNoise(0.3), optim.SGD(0.1), sparse="lazy")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cuda.UnavailableWarning)
            model = {"w": make(np.ones((6, 4)))}
            rows = ox.SparseRows(make(np.array([1, 4])), make(np.full((2, 4), 0.5)), (6, 4))
            results.append(arrays.host(opt.update(model, {"w": rows})["w"]))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-14)


# --- rules that no kernel expresses ------------------------------------------------------------------------------------


def ruled_by(name: str) -> Any:
    """An optimizer whose rule uses an op."""

    def rule(xp: Any, p: Any, g: Any, *, learning_rate: float = 0.1) -> Any:
        function = getattr(xp, name, None) or getattr(xp.special, name)
        arity = dict(_core.ops())[name]
        return p - learning_rate * function(*(p, g, p)[:arity])

    rule.__name__ = f"by_{name}"
    return optim.define(rule)(learning_rate=0.1)


#: Ops with a form for devices, whatever their order of evaluation; and those that sum series.
EXPRESSED = "erf erfc atan2 atan asin acos hypot logaddexp logaddexp2".split()
LOOPING = "gamma gammaln digamma erfinv erfcinv beta betaln gammainc betainc".split()


@pytest.mark.parametrize("name", [*EXPRESSED, *LOOPING])
def test_what_no_kernel_expresses_is_told_once(name: str, present: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "_told", set())
    opt, model = ruled_by(name), cupy_like()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            assert executors(opt, model) == ({"device"} if name in EXPRESSED else {"rule"})
        assert executors(ruled_by(name), cupy_like()) == executors(opt, model)  # another optimizer, the same rule
    reason = f"no kernel has the rule by_{name}: the op {name} cannot run on a device: it has no form for one"
    if name in EXPRESSED:
        assert not caught and cuda.why(opt, model) == ""
        return
    assert [str(each.message) for each in caught] == [f"{reason}; update rules are called on arrays instead"]
    assert cuda.why(opt, model) == f"w, b, one: {reason}"
    assert reason in cuda.source(opt, model)


def test_reasons_of_a_model(present: None) -> None:
    model = {"w": np.zeros((3, 3), np.float32), "b": np.zeros(3, np.float32)}
    assert cuda.why(optim.AdamW(0.1), model) == "w, b: it is not in memory of a CUDA device"
    assert cuda.why(optim.Muon(0.1), model).startswith("w, b: the rule muon is not elementwise")


def test_reasons_of_parameters_that_share_a_value(present: None) -> None:
    model = {**cupy_like(), "x": arrays.Array(np.zeros((3, 8), np.float32)[:, ::2])}
    opt = optim.chain(optim.ClipByGlobalNorm(1.0), optim.SGD(0.1))
    first, second = cuda.why(opt, model).splitlines()
    assert first.startswith("w, b, one: the rule needs a value over all parameters")
    assert second.startswith("x: its elements do not lie")


# --- PyTorch -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def on_cuda() -> Iterator[Callable[[Any], Any]]:
    pytest.importorskip("torch")
    import fake

    with fake.cuda() as asarray:
        yield asarray


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors without memory are described as if they had some."""
    from oxigrad.ops.backends.torch import TorchAdapter

    def device_memory(self: Any, array: Any) -> DeviceMemory | None:
        told = DeviceMemory(0, 0, dtype_name(array.dtype), tuple(array.shape), array.is_contiguous())
        return told if array.is_cuda else None

    monkeypatch.setattr(TorchAdapter, "device_memory", device_memory)


def tensors(asarray: Callable[[Any], Any], dtype: str = "float32") -> dict[str, Any]:
    return {name: asarray(np.zeros(shape, dtype)) for name, shape in SHAPES.items()}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_tensors_on_cuda_take_kernels(name: str, on_cuda: Callable[[Any], Any], present: None, described: None) -> None:
    assert executors(OPTIMIZERS[name](), tensors(on_cuda)) == {"device"}


def test_tensors_that_take_none(on_cuda: Callable[[Any], Any], present: None, described: None) -> None:
    assert executors(optim.Muon(0.1), tensors(on_cuda)) == {"rule"}
    assert executors(optim.SGD(0.1), {"x": on_cuda(np.zeros((3, 8)))[:, ::2]}) == {"rule"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_rules_on_tensors_neither_copy_nor_wait(name: str, on_cuda: Callable[[Any], Any], absent: None) -> None:
    import fake

    opt, model = OPTIMIZERS[name](), tensors(on_cuda)
    opt.update(model, tensors(on_cuda))
    grads = tensors(on_cuda)
    with fake.Alone():
        for _ in range(2):
            model = opt.update(model, grads)
    assert {leaf.device.type for leaf in tree.leaves(model)} == {"cuda"}


def test_a_tensor_without_memory_takes_no_kernel(on_cuda: Callable[[Any], Any], present: None) -> None:
    assert cuda.why(on_cuda(np.zeros(3))) != ""
    assert executors(optim.SGD(0.1), tensors(on_cuda)) == {"rule"}


def test_gradients_of_a_device_meet_no_parameter_of_the_host(present: None) -> None:
    with pytest.raises((ox.ArrayMemoryError, TypeError, ValueError), match="w"):
        optim.SGD(0.1).update({"w": np.zeros(3)}, {"w": arrays.Array(np.zeros(3))})
