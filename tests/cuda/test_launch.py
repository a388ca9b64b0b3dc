"""Launches of a step: how many there are, on which stream, what is copied and allocated, and when memory is freed."""

from __future__ import annotations

import gc
import threading
from typing import Any

import arrays
import numpy as np
import pytest
from mock_driver import MockDriver

import oxigrad as ox
from oxigrad import _core, cuda
from oxigrad.cuda import tables
from oxigrad.optim import SGD, Adam, AdamW


def drawn(shape: tuple[int, ...], seed: int = 0, dtype: Any = np.float32, device: int = 0) -> arrays.Array:
    return arrays.Array(np.random.default_rng(seed).standard_normal(shape).astype(dtype), device)


def model_of(dtype: Any = np.float32, device: int = 0) -> dict[str, Any]:
    shapes = {"w": (70, 90), "b": (90,), "scale": ()}
    return {name: drawn(shape, seed, dtype, device) for seed, (name, shape) in enumerate(shapes.items())}


def test_a_step_is_one_launch_of_all_leaves(mock: MockDriver) -> None:
    model, grads = model_of(), model_of()
    opt = AdamW()
    opt.update(model, grads)
    blocks = 2 + 1 + 1  # 4096 elements each
    assert mock.launches() == [("update_0", blocks, 256, arrays.LEGACY_STREAM)]


def test_leaves_of_each_dtype_are_one_launch(mock: MockDriver) -> None:
    model = {"a": drawn((5,)), "b": drawn((6,), dtype=np.float64), "c": drawn((7,)), "d": drawn((8,), dtype=np.float16)}
    opt = AdamW()
    opt.update(model, {name: drawn(x.shape, 1, x.dtype) for name, x in model.items()})
    assert [grid for _, grid, _, _ in mock.launches()] == [2, 1, 1]


def test_groups_of_hyperparameters_share_a_launch(mock: MockDriver) -> None:
    model = {f"p{k}": drawn((5,), k) for k in range(4)}
    host = {name: arrays.host(x) for name, x in model.items()}
    grads = {name: drawn((5,), 9) for name in model}
    make = lambda: AdamW(0.1, groups={"p1": {"learning_rate": 0.5}, "p3": {"beta1": 0.5}})  # noqa: E731
    make().update(model, grads)
    make().update(host, {name: arrays.host(g) for name, g in grads.items()})
    assert len(mock.launches()) == 1
    for name, value in host.items():
        assert np.array_equal(arrays.host(model[name]), value)


def test_many_groups_of_hyperparameters_go_through_device_memory(mock: MockDriver) -> None:
    model = {f"p{k}": drawn((2,), k) for k in range(300)}
    host = {name: arrays.host(x) for name, x in model.items()}
    grads = {name: drawn((2,), 9) for name in model}
    groups = {name: {"learning_rate": 0.01 * k} for k, name in enumerate(model)}
    opt, other = SGD(0.1, groups=groups), SGD(0.1, groups=groups)
    for _ in range(2):
        opt.update(model, grads)
        other.update(host, {name: arrays.host(g) for name, g in grads.items()})
    assert len(mock.launches()) == 2
    for name, value in host.items():
        assert np.array_equal(arrays.host(model[name]), value)


def test_a_steady_step_launches_and_does_nothing_else(mock: MockDriver) -> None:
    model, grads, opt = model_of(), model_of(), AdamW()
    opt.update(model, grads)
    for _ in range(3):
        mock.forget()
        assert opt.update(model, grads) is model
        assert mock.counts() == {"launch": 1}


def test_a_moved_gradient_uploads_one_row(mock: MockDriver) -> None:
    model, grads, opt = model_of(), model_of(), AdamW()
    opt.update(model, grads)
    mock.forget()
    opt.update(model, {**grads, "b": drawn((90,), 5)})
    assert mock.counts() == {"upload": 1, "record": 1, "launch": 1}
    (size,) = [arguments[1] for name, arguments in mock.calls if name == "upload"]
    assert size == 8 * (tables.FIRST_POINTER + 4)


def test_page_locked_memory_is_used_again_only_once_its_copy_is_done(mock: MockDriver) -> None:
    model, grads, opt = model_of(), model_of(), AdamW()
    moved = [{**grads, "b": drawn((90,), seed)} for seed in range(5)]
    mock.immediate = False  # no copy is done
    for given in moved[:3]:
        opt.update(model, given)
    assert mock.counts()["pinned"] == 2 + 3  # two are of the count of steps
    mock.immediate = True
    opt.update(model, moved[3])
    mock.forget()
    opt.update(model, moved[4])
    assert "pinned" not in mock.counts() and "wait" not in mock.counts()


def test_no_step_waits(mock: MockDriver) -> None:
    model, opt = model_of(), AdamW()
    for seed in range(3):
        opt.update(model, {name: drawn(x.shape, seed) for name, x in model.items()})
    assert "wait" not in mock.counts()


def test_the_current_stream_of_the_library_is_used(mock: MockDriver) -> None:
    model, grads, opt = model_of(), model_of(), AdamW()
    opt.update(model, grads)
    with arrays.stream(7):
        opt.update(model, grads)
    opt.update(model, grads)
    streams = [stream for *_, stream in mock.launches()]
    assert streams == [arrays.LEGACY_STREAM, 7, arrays.LEGACY_STREAM]


@pytest.mark.two_devices
def test_each_device_has_its_launch_and_its_stream(mock: MockDriver) -> None:
    model = {"a": drawn((5,), 0), "b": drawn((5,), 1, device=1)}
    host = {name: arrays.host(x) for name, x in model.items()}
    grads = {"a": drawn((5,), 2), "b": drawn((5,), 3, device=1)}
    with arrays.stream(8, device=1):
        AdamW().update(model, grads)
    AdamW().update(host, {name: arrays.host(g) for name, g in grads.items()})
    assert [stream for *_, stream in mock.launches()] == [arrays.LEGACY_STREAM, 8]
    assert mock.contexts == []
    for name, value in host.items():
        assert np.array_equal(arrays.host(model[name]), value)


def test_a_thread_makes_the_context_current(mock: MockDriver) -> None:
    model, grads, opt = model_of(), model_of(), AdamW()
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(opt.update(model, grads)))
    thread.start()
    thread.join()
    assert found == [model]  # the mock refuses a launch in another context


def test_texts_are_compiled_once(mock: MockDriver) -> None:
    for _ in range(2):
        opt = AdamW()
        opt.update(model_of(), model_of())
    assert mock.counts()["load"] == 1


def test_memory_is_freed_with_the_optimizer(mock: MockDriver) -> None:
    opt = AdamW()
    opt.update(model_of(), model_of())
    assert mock.memory
    del opt
    gc.collect()
    assert not mock.memory


def test_another_model_frees_the_tables_of_the_last(mock: MockDriver) -> None:
    opt = AdamW()
    model = model_of()
    opt.update(model, model_of())
    before = len(mock.memory)
    for lr in (0.1, 0.2, 0.3):
        opt.learning_rate = lr
        opt.update(model, model_of())
    gc.collect()
    assert len(mock.memory) == before


def test_a_hyperparameter_takes_effect_without_an_upload(mock: MockDriver) -> None:
    model, grads, opt = model_of(), model_of(), Adam(0.1)
    host, other = {name: arrays.host(x) for name, x in model.items()}, Adam(0.1)
    for learning_rate in (0.1, 0.1, 0.3):
        opt.learning_rate = other.learning_rate = learning_rate
        mock.forget()
        opt.update(model, grads)
        other.update(host, {name: arrays.host(g) for name, g in grads.items()})
    assert mock.counts() == {"launch": 1}
    for name, value in host.items():
        assert np.array_equal(arrays.host(model[name]), value)


def test_an_assigned_slot_is_read(mock: MockDriver) -> None:
    model, grads, opt = model_of(), model_of(), Adam(0.1)
    host, other = {name: arrays.host(x) for name, x in model.items()}, Adam(0.1)
    opt.update(model, grads)
    other.update(host, {name: arrays.host(g) for name, g in grads.items()})
    opt.slots["b"]["m"], other.slots["b"]["m"] = drawn((90,), 6), arrays.host(drawn((90,), 6))
    opt.update(model, grads)
    other.update(host, {name: arrays.host(g) for name, g in grads.items()})
    assert np.array_equal(arrays.host(model["b"]), host["b"])


def test_leaves_without_elements_are_launched_with_others_or_not_at_all(mock: MockDriver) -> None:
    model = {"a": drawn((0, 3)), "b": drawn((3,))}
    AdamW().update(model, {"a": drawn((0, 3)), "b": drawn((3,), 1)})
    assert [grid for _, grid, _, _ in mock.launches()] == [1]
    mock.forget()
    opt = AdamW()
    opt.update({"a": drawn((0,))}, {"a": drawn((0,))})
    assert mock.launches() == [] and opt.step == 1


def test_arrays_off_the_alignment_of_a_vector_are_updated(mock: MockDriver) -> None:
    whole = np.random.default_rng(0).standard_normal(5001).astype(np.float32)
    p, host = arrays.Array(whole)[1:], whole[1:].copy()
    g = drawn((5000,), 4)
    AdamW().update({"p": p}, {"p": g})
    AdamW().update({"p": host}, {"p": arrays.host(g)})
    assert np.array_equal(arrays.host(p), host) and len(mock.launches()) == 1


# --- launches as writes of a step ---------------------------------------------------------------------------------------


def writes_of(calls: list[Any], **named: Any) -> _core.Writes:
    def fail(number: int, status: Any) -> None:
        raise cuda.DeviceError(f"call {number}: {status}")

    return _core.Writes(launches=(calls, fail), **named)


def step(stepper: _core.Stepper, writes: _core.Writes) -> Any:
    return stepper.step(True, (), (), programs=[], seed=0, writes=writes)


def test_a_launch_that_fails_first_changes_nothing() -> None:
    stepper, left = _core.Stepper(), []
    calls = [(lambda: (0,), (), False), (lambda: (3,), (), True), (lambda: (left.append(1) or 0,), (), False)]
    with pytest.raises(cuda.DeviceError, match="call 1: 3"):
        step(stepper, writes_of(calls))
    assert stepper.count == 0 and left == [1]  # calls without a write, such as that of a context, are made all the same
    assert step(stepper, writes_of([(lambda: (0,), (), True)])) is True and stepper.count == 1


def test_a_launch_that_fails_after_another_leaves_no_whole_step() -> None:
    stepper = _core.Stepper()
    with pytest.raises(cuda.DeviceError):
        step(stepper, writes_of([(lambda: (0,), (), True), (lambda: (3,), (), True)]))
    with pytest.raises(ox.StateError, match="half a step"):
        step(stepper, writes_of([]))


def test_pytorch_is_notified_of_launches(library: Any) -> None:
    torch = library("torch")
    tensor = torch.ones(3)
    before = tensor._version
    step(_core.Stepper(), writes_of([(lambda: (0,), (), True)], launched=[tensor, np.ones(2)]))
    assert tensor._version == before + 1
