"""Bad input and failures of devices: a named error with the key path, and nothing changed; or the road of arrays, said once."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import arrays
import numpy as np
import pytest
from mock_driver import MockDriver

import oxigrad as ox
from oxigrad import cuda, optim, schedules
from oxigrad.cuda import availability, driver
from oxigrad.optim import SGD, AdamW, chain

Model = dict[str, Any]


def model_of(device: int = 0, **others: Any) -> Model:
    made = {name: arrays.Array(np.full(5, value, np.float32), device) for name, value in (("w", 1.0), ("b", 2.0))}
    return {**made, **others}


def refused(error: type[Exception], text: str, opt: Any, model: Model, grads: Model) -> None:
    """Asserts that a step raises, and changes neither parameters, slots nor counts."""
    before = {name: arrays.host(x) for name, x in model.items()}
    slots = {path: {name: arrays.host(x) for name, x in own.items()} for path, own in opt.slots.items()}
    step = opt._stepper.core.count
    with pytest.raises(error, match=text):
        opt.update(model, grads)
    assert all(np.array_equal(arrays.host(x), before[name]) for name, x in model.items())
    assert opt._stepper.core.count == step
    assert {path: [*own] for path, own in opt.slots.items()} == {path: [*own] for path, own in slots.items()}
    for path, own in slots.items():
        assert all(np.array_equal(arrays.host(opt.slots[path][name]), x) for name, x in own.items())


@pytest.mark.parametrize("warm", [False, True])
def test_a_gradient_of_another_device_library_shape_or_dtype(mock: MockDriver, warm: bool) -> None:
    model, opt = model_of(), AdamW(0.1)
    if warm:
        opt.update(model, model_of())
    wrong = {
        "on cuda:1": (ox.ArrayMemoryError, arrays.Array(np.ones(5, np.float32), 1)),
        "is an array of numpy": (ox.DtypeError, np.ones(5, np.float32)),
        "has shape": (ox.ShapeError, arrays.Array(np.ones(4, np.float32))),
        "has dtype": (ox.DtypeError, arrays.Array(np.ones(5))),
    }
    for text, (error, g) in wrong.items():
        refused(error, rf"^b: .*gradient .*{text}", opt, model, model_of(b=g))
    opt.update(model, model_of())
    assert len(mock.launches()) == 1 + warm


def test_a_gradient_on_the_host_of_a_tied_parameter(mock: MockDriver) -> None:
    p = arrays.Array(np.ones(5, np.float32))
    grads = {"a": arrays.Array(np.ones(5, np.float32), 1), "b": arrays.Array(np.ones(5, np.float32), 1)}
    refused(
        ox.ArrayMemoryError, "^a: the gradient is on cuda:1, the parameter on cuda:0", SGD(0.1), {"a": p, "b": p}, grads
    )


class Other(arrays.Array):
    """An array of a second library, which works on a stream of its own."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**super().__cuda_array_interface__, "stream": 9}

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return other


other: Any = type(arrays.namespace)("other_arrays")
other.__getattr__ = lambda name: getattr(arrays.namespace, name)


@pytest.mark.mock_only("the other library's stream is a number")
def test_leaves_on_different_streams_of_one_device(mock: MockDriver) -> None:
    model = model_of(c=Other(np.ones(5, np.float32)))
    grads = model_of(c=Other(np.ones(5, np.float32)))
    refused(
        ox.ArrayMemoryError,
        "^c: the parameter's library works on the stream 0x9 of cuda:0, that of .* on 0x1",
        SGD(0.1),
        model,
        grads,
    )
    with arrays.stream(9):
        SGD(0.1).update(model, grads)
    assert len(mock.launches()) == 1


def test_parameters_that_share_memory(mock: MockDriver) -> None:
    whole = arrays.Array(np.ones(9, np.float32))
    model = {"a": whole[:5], "b": whole[4:]}
    refused(
        ox.AliasError,
        "^a and b share memory",
        SGD(0.1),
        model,
        {"a": arrays.Array(np.ones(5, np.float32)), "b": arrays.Array(np.ones(5, np.float32))},
    )
    model = {"a": whole[:5]}
    refused(ox.AliasError, "a and the gradient of a share memory", SGD(0.1), model, {"a": whole[2:7]})
    opt = SGD(0.1)
    opt.update({"a": whole[:5]}, {"a": arrays.Array(np.ones(5, np.float32))})
    refused(ox.AliasError, "a and the gradient of a share memory", opt, {"a": whole[:5]}, {"a": whole[3:8]})


@pytest.mark.parametrize(
    "status", ["CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_DEVICE_UNAVAILABLE"]
)
@pytest.mark.parametrize(
    "call", ["load", "allocate", "pinned", "upload", "record", "current", "launch", "is_capturing"]
)
@pytest.mark.parametrize("warm", [False, True])
def test_a_call_of_the_driver_that_fails(mock: MockDriver, call: str, status: str, warm: bool) -> None:
    kind = cuda.DeviceMemoryError if status.endswith("MEMORY") else cuda.DeviceLostError
    model, grads, opt = model_of(), model_of(), AdamW(0.1)
    if warm:
        opt.update(model, grads)
        grads = model_of()  # at other addresses
    mock.failures[call] = 0, status
    if warm and call in ("load", "allocate", "pinned"):
        opt.update(model, grads)  # a steady step calls none of them
        return
    refused(kind, f"^w: .*{status}", opt, model, grads)
    mock.failures.clear()
    opt.update(model, grads)
    assert opt.step == 1 + warm


def test_memory_that_runs_out_later_leaves_the_step_before(mock: MockDriver) -> None:
    model, grads, opt = model_of(), model_of(), AdamW(0.1)
    opt.update(model, grads)
    mock.failures["allocate"] = 0, "CUDA_ERROR_OUT_OF_MEMORY"
    grown = model_of(c=arrays.Array(np.ones(5, np.float32)))
    other = AdamW(0.1)
    refused(cuda.DeviceMemoryError, "^w: ", other, grown, model_of(c=arrays.Array(np.ones(5, np.float32))))
    with pytest.raises(MemoryError):
        other.update(grown, model_of(c=arrays.Array(np.ones(5, np.float32))))
    opt.update(model, grads)


def test_a_text_that_does_not_compile(mock: MockDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(device: int, text: str) -> Any:
        raise cuda.CompileError("the log")

    monkeypatch.setattr(mock, "load", load)
    refused(cuda.CompileError, "the log", AdamW(0.1), model_of(), model_of())


# --- captures ----------------------------------------------------------------------------------------------------------


def test_a_first_step_in_a_capture(mock: MockDriver) -> None:
    model, opt = model_of(), AdamW(0.1)
    with mock.capture(arrays.LEGACY_STREAM):
        refused(
            cuda.CaptureError,
            "^w: .*a kernel would be compiled during a capture: .*warm-up step",
            opt,
            model,
            model_of(),
        )
        assert not {"allocate", "upload", "load"} & mock.counts().keys()
    AdamW(0.1).update(model_of(), model_of())
    with mock.capture(arrays.LEGACY_STREAM):
        refused(cuda.CaptureError, "^w: .*memory would be allocated during a capture", opt, model, model_of())
        assert mock.graph == []


def test_a_gradient_that_moved_before_the_capture(mock: MockDriver) -> None:
    model, opt, grads = model_of(), AdamW(0.1), model_of()
    opt.update(model, grads)
    with mock.capture(arrays.LEGACY_STREAM):
        moved = {**grads, "b": arrays.Array(np.ones(5, np.float32))}
        refused(cuda.CaptureError, "^b: an array has moved since the step before the capture", opt, model, moved)
        opt.update(model, grads)
    assert len(mock.graph) >= 2


HOST_NUMBERS: dict[str, Callable[[], Any]] = {
    "schedule": lambda: AdamW(schedules.exponential(0.1, 0.9)),
    "loss scale": lambda: AdamW(0.1, loss_scale=optim.LossScale(2.0)),
    "accumulate": lambda: AdamW(0.1, accumulate=2),
}


@pytest.mark.parametrize("name", HOST_NUMBERS)
def test_numbers_of_the_host_in_a_capture(name: str, mock: MockDriver) -> None:
    model, opt, grads = model_of(), HOST_NUMBERS[name](), model_of()
    opt.update(model, grads)
    opt.update(model, grads)
    with mock.capture(arrays.LEGACY_STREAM), pytest.raises(cuda.CaptureError, match="^w: a graph replays the numbers"):
        opt.update(model, grads)


def test_raising_in_a_capture(mock: MockDriver) -> None:
    model, opt, grads = model_of(), AdamW(0.1, nonfinite="raise"), model_of()
    opt.update(model, grads)
    with mock.capture(arrays.LEGACY_STREAM), pytest.raises(cuda.CaptureError, match="^w: .*nonfinite"):
        opt.update(model, grads)


# --- no driver, no compiler ----------------------------------------------------------------------------------------------


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgets for one test why there is no driver."""
    monkeypatch.setattr(availability, "_without_driver", [])


def steps_by_arrays(text: str) -> None:
    """Asserts that a step says why no kernel runs, once, and is taken by arrays."""
    model, opt = model_of(), SGD(0.5)
    with pytest.warns(cuda.UnavailableWarning, match=text) as found:
        model = opt.update(model, model_of())
    assert len(found) == 1
    assert np.array_equal(arrays.host(model["w"]), np.full(5, 0.5, np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = opt.update(model, model_of())
        SGD(0.5).update(model_of(), model_of())
    assert opt.step == 2


def test_no_driver(forgetful: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Any:
        raise cuda.DriverUnavailableError("there is no CUDA driver: libcuda.so was not found")

    monkeypatch.setattr(driver, "_source", none)
    steps_by_arrays("there is no CUDA driver: libcuda.so was not found; update rules are called on arrays")
    assert cuda.why(arrays.Array(np.ones(3))) == "there is no CUDA driver: libcuda.so was not found"


def test_no_package(forgetful: None, monkeypatch: pytest.MonkeyPatch) -> None:
    load = importlib.import_module

    def missing(name: str) -> Any:
        if name.startswith("cuda."):
            raise ImportError(f"No module named {name!r}")
        return load(name)

    monkeypatch.setattr(driver.importlib, "import_module", missing)
    monkeypatch.setattr(driver, "_source", driver.bindings_driver.__wrapped__)
    steps_by_arrays(
        r"cuda-bindings cannot be imported \(No module named 'cuda.bindings.driver'\): expected pip install"
    )


def test_a_compiler_that_does_not_know_the_card(mock: MockDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(device: int) -> None:
        raise cuda.CompilerUnavailableError("NVRTC 13.0 does not support cuda:0 of compute capability 6.1")

    monkeypatch.setattr(mock, "check", check)
    steps_by_arrays("NVRTC 13.0 does not support cuda:0")
    assert mock.launches() == []


def test_this_machine_has_a_driver_or_says_why_not(forgetful: None) -> None:
    with contextlib.suppress(cuda.DriverUnavailableError):
        assert "compute capability" in driver.bindings_driver.__wrapped__().name(0)


# --- reasons -----------------------------------------------------------------------------------------------------------


def test_reasons_of_arrays(mock: MockDriver) -> None:
    ones = np.ones((4, 4), np.float32)
    assert cuda.why(arrays.Array(ones)) == ""
    assert "not in memory of a CUDA device" in cuda.why(ones)
    assert "do not lie one after the other" in cuda.why(arrays.Array(ones)[:, 1])
    assert "dtype int64" in cuda.why(arrays.Array(np.arange(3)))
    frozen = ones.copy()
    frozen.flags.writeable = False
    assert "it is read-only" in cuda.why(arrays.Array(frozen))


def test_the_text_of_a_rule_without_a_kernel_says_why(mock: MockDriver) -> None:
    text = cuda.source(optim.Muon(0.1), {"w": np.ones((3, 3), np.float32)})
    assert text.startswith("// w\n// The rule is called on arrays: the rule muon is not elementwise")


def test_a_text_for_each_program_and_dtype() -> None:
    model = {"a": np.ones(3, np.float32), "b": np.ones(3), "c": np.ones(3, np.float32)}
    text = cuda.source(chain(optim.ClipByGlobalNorm(1.0), AdamW()), model)
    assert "// a, c\n" in text and "// b\n" in text and text.count("struct OxLaunch {") == 2
