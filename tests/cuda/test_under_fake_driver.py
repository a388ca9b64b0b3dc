"""Steps by cuda-bindings over the driver in `libcuda/`, whose streams do nothing until they are waited for: run by `test_fake_driver.py`.

Nothing of the tests is between steps and the bindings here.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Callable, Iterator
from typing import Any

import arrays
import hardware
import numpy as np
import pytest
import smoke
from fake_driver import FakeDriver
from test_device_step import PER_FILE, assert_same_bits, on_device, poisoned, slots_of

import optimizers
from oxigrad import cuda, optim
from oxigrad.cuda import driver
from oxigrad.optim import AdamW, chain
from oxigrad.step.device import sources

ml_dtypes = pytest.importorskip("ml_dtypes")

MODEL, GRADS = optimizers.problem("float32")
MODEL, GRADS = ({**tree, "long": np.linspace(-1, 1, 5000).astype(np.float32)} for tree in (MODEL, GRADS))
DTYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


@pytest.fixture
def device(fake_driver: FakeDriver) -> Iterator[FakeDriver]:
    """Steps by `Driver`, over arrays in page-locked memory."""
    assert fake_driver is not None, "expected pytest --fake-driver"
    used, no_faults = driver.bindings_driver(), fake_driver.without_faults
    with no_faults(), hardware.driver_and_arrays(), driver.replaced(used), no_faults():
        assert cuda.why(arrays.Array(np.ones(3, np.float32))) == ""
        yield fake_driver


@pytest.fixture
def api(device: FakeDriver) -> Iterator[Callable[..., Any]]:
    """Functions of the driver by the bindings, in the context of the first device, by name and arguments."""
    import cuda.bindings.driver as bindings

    def call(name: str, *arguments: Any, status: int = 0) -> Any:
        found, *values = getattr(bindings, name)(*arguments)
        assert int(found) == status, (name, found)
        return values[0] if len(values) == 1 else values

    with driver.bindings_driver().current(0):
        yield call


def global_mode() -> Any:
    """The mode of a capture, as PyTorch's."""
    used: Any = driver.bindings_driver()
    return used._api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL


def typed(model: dict[str, np.ndarray], dtype: str) -> dict[str, np.ndarray]:
    return {name: x.astype(DTYPES[dtype]) for name, x in model.items()}


@contextlib.contextmanager
def created_stream(api: Callable[..., Any]) -> Iterator[int]:
    """The handle of a new stream that is not in order with the default stream, as those of PyTorch."""
    stream = int(api("cuStreamCreate", 1))
    with arrays.stream(stream):
        yield stream
    api("cuCtxSynchronize")
    api("cuStreamDestroy", stream)


@pytest.fixture(autouse=True)
def handles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams are given by their handles here."""
    monkeypatch.setattr(hardware.PageLocked, "handle", lambda self, stream, device: stream)


# --- bits --------------------------------------------------------------------------------------------------------------

STEPS: dict[str, tuple[str, Callable[[], Any]]] = {
    "adamw": ("float32", lambda: AdamW(0.1)),
    "adam in double": ("float64", lambda: optim.Adam(0.1, amsgrad="raw")),
    "lamb": ("float64", lambda: optim.LAMB(0.1, weight_decay=0.1)),
    "prodigy": ("float32", lambda: optim.Prodigy(d0=0.01)),
    "noise": ("float32", lambda: optim.AdamLRD(0.1, dropout_rate=0.5, seed=3)),
    "numbers": ("float64", lambda: optim.NAdam(0.1)),
    "master": ("bfloat16", lambda: AdamW(0.1, master=True)),
    "kahan": ("float16", lambda: AdamW(0.1, rounding="kahan")),
    "stochastic": ("bfloat16", lambda: AdamW(0.1, rounding="stochastic", seed=5)),
    "8 bits": ("float32", lambda: AdamW(0.1, slot_dtype="8bit")),
    "8 bits, guard, norm": (
        "float16",
        lambda: chain(optim.ClipByGlobalNorm(0.5), AdamW(0.1), slot_dtype="8bit", nonfinite="skip"),
    ),
    "average": ("float32", lambda: chain(AdamW(0.1), optim.EMA(0.9))),
    "accumulated": ("float32", lambda: AdamW(0.1, accumulate=2)),
    "loss scale": ("float32", lambda: AdamW(0.1, loss_scale=optim.LossScale(8.0, interval=2))),
    "groups": ("float32", lambda: AdamW(0.1, groups={"p3": None, "p5": {"learning_rate": 0.01}})),
    "many groups": (
        "float32",
        lambda: optim.SGD(0.1, groups={name: {"learning_rate": 0.01 * n} for n, name in enumerate(MODEL)}),
    ),
}
FINITE = [True, True, False, True, True]  # gradients of the steps of optimizers that check them


def texts_of(opt: Any, model: Any) -> list[str]:
    """The texts of an optimizer, which lives until they are printed."""
    return sources.texts(opt._step_options, model)


@pytest.fixture(scope="module")
def texts(fake_driver: FakeDriver) -> None:
    """Compiles the texts of `STEPS` and of the smoke test, some together."""
    found = [text for dtype, make in STEPS.values() for text in texts_of(make(), typed(MODEL, dtype))]
    found += [
        text
        for dtype in smoke.DTYPES
        for make in smoke.PRECISIONS.values()
        for text in texts_of(make(), typed({"long": MODEL["long"]}, dtype))
    ]
    for start in range(0, len(found), PER_FILE):
        fake_driver.compile(found[start : start + PER_FILE])


@pytest.mark.parametrize("stream", ["default", "created"])
@pytest.mark.parametrize("name", STEPS)
def test_steps_that_no_host_waits_for(
    name: str, stream: str, texts: None, device: FakeDriver, api: Callable[..., Any]
) -> None:
    dtype, make = STEPS[name]
    model, grads = typed(MODEL, dtype), typed(GRADS, dtype)
    there, a, b = on_device(model), make(), make()
    checked = "guard" in name or "scale" in name
    given = [grads if finite or not checked else poisoned(grads) for finite in FINITE]
    queued = 0
    with created_stream(api) if stream == "created" else contextlib.nullcontext():
        for host in given:
            a.update(there, on_device(host))  # whose memory is new in each step
            b.update(model, host)
            queued = max(queued, device.count("pending"))
        assert queued > 2
        assert_same_bits(there, model)
        assert_same_bits(slots_of(a), slots_of(b))
        assert (a.step, a.skipped) == (b.step, b.skipped)
        assert a.skipped == (FINITE.count(False) if checked else 0)


def test_views_at_odd_offsets(device: FakeDriver) -> None:
    for dtype, kind in DTYPES.items():
        whole = np.linspace(-1, 1, 4200).astype(kind)
        there, here, g = arrays.Array(whole.copy()), whole.copy(), whole[::-1].copy()
        for start in (1, 3):
            a, b = AdamW(0.1), AdamW(0.1)
            given = arrays.Array(g)
            for _ in range(2):
                a.update({"w": there[start:4100]}, {"w": given[start + 1 : 4101]})
                b.update({"w": here[start:4100]}, {"w": g[start + 1 : 4101]})
        assert_same_bits({dtype: there}, {dtype: here})


# --- streams and lifetimes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guarded", [False, True])
def test_steps_on_streams_in_turn(guarded: bool, device: FakeDriver, api: Callable[..., Any]) -> None:
    """Each stream waits for the one before it, as users let it; the optimizer ends while the last one works."""
    options = {"nonfinite": "skip"} if guarded else {}
    there, given, here = on_device(MODEL), on_device(GRADS), {name: x.copy() for name, x in MODEL.items()}
    a, b = AdamW(0.1, **options), AdamW(0.1, **options)
    streams = [int(api("cuStreamCreate", 1)) for _ in range(3)]
    event = api("cuEventCreate", 2)
    for stream in streams:
        with arrays.stream(stream):
            a.update(there, given)
        b.update(here, GRADS)
        api("cuEventRecord", event, stream)
        api("cuStreamWaitEvent", streams[(streams.index(stream) + 1) % 3], event, 0)
    del a
    gc.collect()
    assert_same_bits(there, here)
    for stream in streams:
        api("cuStreamDestroy", stream)


def test_optimizers_that_end_while_their_work_is_queued(device: FakeDriver, api: Callable[..., Any]) -> None:
    """All that they have made is freed, and nothing too early."""
    there, given, here = on_device(MODEL), on_device(GRADS), {name: x.copy() for name, x in MODEL.items()}
    counts = []
    for number in range(12):
        make = (lambda: AdamW(0.1), lambda: AdamW(0.1, nonfinite="skip"))[number % 2]
        with arrays.stream(arrays.LEGACY_STREAM):
            make().update(there, given)
        make().update(here, GRADS)
        gc.collect()
        if number % 2:
            assert_same_bits(there, here)
            of_arrays = len(arrays.placement.blocks)
            counts.append((device.count("events"), device.count("page-locked") - of_arrays, device.count("device")))
    assert counts[2] == counts[-1]


def test_a_moved_gradient_in_each_step(device: FakeDriver) -> None:
    """Page-locked buffers of uploads are bounded, and none is used again before its copy is done."""
    there, here, a, b = on_device(MODEL), {name: x.copy() for name, x in MODEL.items()}, AdamW(0.1), AdamW(0.1)
    kept = []
    for number in range(30):
        host = {name: g * (number + 1) for name, g in GRADS.items()}
        kept.append(on_device(host))
        a.update(there, kept[-1])
        b.update(here, host)
    assert_same_bits(there, here)


# --- graphs ------------------------------------------------------------------------------------------------------------

GRAPHS: dict[str, Callable[[], Any]] = {
    "plain": lambda: AdamW(0.1),
    "checked": lambda: AdamW(0.1, nonfinite="skip"),
    "codes": lambda: AdamW(0.1, slot_dtype="8bit"),
    "norm": lambda: chain(optim.ClipByGlobalNorm(0.5), AdamW(0.1)),
}


@contextlib.contextmanager
def captured(api: Callable[..., Any], stream: int) -> Iterator[list[Any]]:
    """Captures the work on a stream; the graph is the item of the list afterwards."""
    found: list[Any] = []
    api("cuStreamBeginCapture", stream, global_mode())
    try:
        yield found
    finally:
        graph = api("cuStreamEndCapture", stream)
        found.append(api("cuGraphInstantiate", graph, 0))
        api("cuGraphDestroy", graph)


@pytest.mark.parametrize("name", GRAPHS)
def test_two_graphs(name: str, device: FakeDriver, api: Callable[..., Any]) -> None:
    """Each with gradients of its own, replayed in turn without waiting, and steps outside of them."""
    there, here, a, b = on_device(MODEL), {key: x.copy() for key, x in MODEL.items()}, GRAPHS[name](), GRAPHS[name]()
    given = [GRADS, {key: -2 * g for key, g in GRADS.items()}]
    with created_stream(api) as stream:
        graphs, memory = [], [on_device(grads) for grads in given]
        for number in range(2):
            a.update(there, memory[number])  # warm-up
            b.update(here, given[number])
            with captured(api, stream) as graph:
                a.update(there, memory[number])
            graphs += graph
        for number in (0, 1, 1, 0, 1):
            api("cuGraphLaunch", graphs[number], stream)
            b.update(here, given[number])
        a.update(there, memory[0])
        b.update(here, given[0])
        api("cuGraphLaunch", graphs[1], stream)
        b.update(here, given[1])
        assert_same_bits(there, here)
        assert_same_bits(slots_of(a), slots_of(b))
        assert a.step == b.step == 9
    for graph in graphs:
        api("cuGraphExecDestroy", graph)


def test_an_optimizer_that_ends_during_a_capture(device: FakeDriver, api: Callable[..., Any]) -> None:
    """Its memory is not freed in the capture, but later."""
    before = device.count("device")
    with created_stream(api) as stream:
        there, given, others = on_device(MODEL), on_device(GRADS), [AdamW(0.1), AdamW(0.1, nonfinite="skip")]
        opt = AdamW(0.1)
        others[0].update(there, given)
        others[1].update(there, given)
        opt.update(there, given)
        api("cuStreamSynchronize", stream)
        with captured(api, stream) as graph:
            opt.update(there, given)
            others.clear()
            gc.collect()
        api("cuGraphLaunch", graph[0], stream)
        api("cuStreamSynchronize", stream)
        api("cuGraphExecDestroy", graph[0])
        opt.update(there, given)
        assert opt.step == 3
        del opt
        gc.collect()
        AdamW(0.1).update(there, given)  # the next use of the device frees what was left
        gc.collect()
    assert device.count("device") <= before + 1


# --- other drivers -----------------------------------------------------------------------------------------------------


def test_a_device_that_is_out_of_memory(device: FakeDriver) -> None:
    there, given, opt = on_device(MODEL), on_device(GRADS), AdamW(0.1)
    before = {name: arrays.host(x) for name, x in there.items()}
    device.set("megabytes", 0)
    try:
        with pytest.raises(cuda.DeviceMemoryError, match="CUDA_ERROR_OUT_OF_MEMORY"):
            opt.update(there, given)
    finally:
        device.set("megabytes", 4096)
    assert_same_bits(there, before)
    opt.update(there, given)
    assert opt.step == 1


def test_properties_of_a_device(device: FakeDriver) -> None:
    used = driver.bindings_driver()
    assert used.name(1) == "Fake device 1, compute capability 9.0"
    used.check(1)
    with pytest.raises(cuda.DeviceError, match="CUDA_ERROR_INVALID_DEVICE"):
        used.name(2)


# --- the smoke test ------------------------------------------------------------------------------------------------------


class Smoked:
    """The library of `smoke.py` over this driver."""

    name = "the fake driver"

    def __init__(self, api: Callable[..., Any]) -> None:
        self._api = api
        self.graphs: list[Any] = []

    def host(self, values: np.ndarray, dtype: str) -> Any:
        return values.astype(DTYPES[dtype])

    def device(self, values: np.ndarray, dtype: str) -> Any:
        return arrays.Array(values.astype(DTYPES[dtype]))

    def bytes(self, array: Any) -> bytes:
        return arrays.host(array).tobytes()

    def filled(self, length: int, value: float, dtype: str) -> Any:
        if length > 10**6:
            raise MemoryError("no room")
        return arrays.Array(np.full(length, value, dtype))

    def is_filled(self, array: Any, value: float) -> bool:
        return bool((arrays.host(array) == value).all())

    def _wait(self, stream: int, other: int) -> None:
        event = self._api("cuEventCreate", 2)
        self._api("cuEventRecord", event, other)
        self._api("cuStreamWaitEvent", stream, event, 0)
        self._api("cuEventDestroy", event)

    @contextlib.contextmanager
    def stream(self) -> Iterator[int]:
        before, made = arrays.current_stream(), int(self._api("cuStreamCreate", 1))
        self._wait(made, before)
        with arrays.stream(made):
            yield made
        self._wait(before, made)

    def graph(self, function: Callable[[], object]) -> Callable[[], None]:
        with self.stream() as stream, captured(self._api, stream) as found:
            function()

        def replay() -> None:
            self._api("cuGraphLaunch", found[0], arrays.current_stream())

        return replay

    def milliseconds(self, function: Callable[[], object], times: int) -> float:
        start, end = (self._api("cuEventCreate", 0) for _ in "ab")
        self._api("cuEventRecord", start, arrays.current_stream())
        for _ in range(times):
            function()
        self._api("cuEventRecord", end, arrays.current_stream())
        self._api("cuEventSynchronize", end)
        return self._api("cuEventElapsedTime", start, end) / times

    def fused(self, p: Any, g: Any) -> None:
        return None


def test_the_smoke_test(texts: None, device: FakeDriver, api: Callable[..., Any]) -> None:
    written: list[str] = []
    status = smoke.run(Smoked(api), many=5000, timed=5000, write=written.append)
    assert status == 0 and all(" ok " in line for line in written), "\n".join(written)
    assert [line[:24].strip() for line in written] == [
        "load",
        *(f"bits of {dtype}" for dtype in smoke.DTYPES),
        "views at odd offsets",
        "two CUDA graphs",
        "side streams",
        "more than 2^31 elements",
        "time",
    ]


def test_the_smoke_test_says_what_is_wrong(device: FakeDriver, api: Callable[..., Any]) -> None:
    class Broken(Smoked):
        def bytes(self, array: Any) -> bytes:
            found = super().bytes(array)
            return b"\0" + found[1:] if isinstance(array, arrays.Array) else found

        def is_filled(self, array: Any, value: float) -> bool:
            return False

        def graph(self, function: Callable[[], object]) -> Callable[[], None]:
            return lambda: None

    written: list[str] = []
    assert smoke.run(Broken(api), many=5000, timed=5000, write=written.append) == 1
    assert [line[25:33].strip() for line in written] == ["ok", *["WRONG"] * 8, "ok"]
    written.clear()
    smoke.run(Smoked(api), many=10**7, timed=5000, write=written.append)
    assert "SKIPPED" in written[-2] and "no room" in written[-2]


# --- what the fake driver finds ----------------------------------------------------------------------------------------


def faults_of(device: FakeDriver, text: str) -> None:
    """Asserts that something was found, and that it is this."""
    found = device.faults()
    assert found and all(text in fault for fault in found), found


def filled(api: Callable[..., Any], number: int, size: int = 64) -> int:
    """The address of page-locked bytes."""
    address = int(api("cuMemHostAlloc", size, 0))
    ctypes.memset(address, number, size)
    return address


def test_streams_are_not_in_order_by_themselves(device: FakeDriver, api: Callable[..., Any]) -> None:
    first, second = (api("cuStreamCreate", 1) for _ in "ab")
    memory, ones, read = api("cuMemAlloc", 64), filled(api, 1), filled(api, 2)
    event = api("cuEventCreate", 2)
    for waits in (False, True):
        ctypes.memset(read, 2, 64)
        api("cuMemcpyHtoDAsync", memory, ones, 64, first)
        api("cuEventRecord", event, first)
        if waits:
            api("cuStreamWaitEvent", second, event, 0)
        api("cuMemcpyDtoHAsync", read, memory, 64, second)
        assert ctypes.string_at(read, 1) == b"\2"  # nothing waits yet
        api("cuStreamSynchronize", second)
        assert ctypes.string_at(read, 1) == (b"\1" if waits else b"\xa5")
        api("cuCtxSynchronize")
        api("cuMemFree", memory)
        memory = api("cuMemAlloc", 64)
    api("cuMemFree", memory)


def test_memory_that_is_freed_too_early(device: FakeDriver, api: Callable[..., Any]) -> None:
    first, second = (api("cuStreamCreate", 1) for _ in "ab")
    ones = filled(api, 1)
    memory = api("cuMemAllocAsync", 64, first)
    api("cuStreamSynchronize", first)
    api("cuMemcpyHtoDAsync", memory, ones, 64, second)
    api("cuMemFreeAsync", memory, first)
    api("cuStreamSynchronize", second, status=700)
    faults_of(device, "a copy writes: device memory that is freed")


def test_memory_that_is_used_before_its_allocation(device: FakeDriver, api: Callable[..., Any]) -> None:
    first, second = (api("cuStreamCreate", 1) for _ in "ab")
    memory, ones = api("cuMemAllocAsync", 64, first), filled(api, 1)
    api("cuMemcpyHtoDAsync", memory, ones, 64, second)
    api("cuStreamSynchronize", second, status=700)
    faults_of(device, "not yet allocated in the order of its stream")


def test_page_locked_memory_that_is_freed_too_early(device: FakeDriver, api: Callable[..., Any]) -> None:
    memory, ones = api("cuMemAlloc", 64), filled(api, 1)
    api("cuMemcpyHtoDAsync", memory, ones, 64, 0)
    api("cuMemFreeHost", ones)
    faults_of(device, "a copy reads: page-locked memory that is freed")
    api("cuMemFree", memory)


class Longer(arrays.Array):
    """An array that tells of more elements than it has."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**super().__cuda_array_interface__, "shape": (9000,)}

    shape = (9000,)
    ndim, size = 1, 9000


def test_a_kernel_that_leaves_its_array(device: FakeDriver) -> None:
    there, given = Longer(np.ones(5000, np.float32)), arrays.Array(np.ones(9000, np.float32))
    assert there._placed.nbytes == 20000
    optim.SGD(0.1).update({"w": there}, {"w": given})
    faults_of(device, "update_0 accesses memory that is")
    arrays.placement.close()
    faults_of(device, "a byte was written")


def test_what_a_capture_does_not_allow(device: FakeDriver, api: Callable[..., Any]) -> None:
    stream, event = api("cuStreamCreate", 1), api("cuEventCreate", 2)
    memory, pooled = api("cuMemAlloc", 64), api("cuMemAllocAsync", 64, 0)
    pageable = bytes(64)
    mode = global_mode()
    for name, arguments, status, ends in [
        ("cuMemAlloc", (64,), 900, 901),
        ("cuMemHostAlloc", (64, 0), 900, 901),
        ("cuEventQuery", (event,), 900, 901),
        ("cuStreamSynchronize", (stream,), 900, 901),
        ("cuCtxSynchronize", (), 900, 901),
        ("cuMemcpyHtoDAsync", (memory, pageable, 64, stream), 900, 901),
        ("cuMemFreeAsync", (pooled, stream), 1, 0),
        ("cuMemcpyHtoD", (memory, pageable, 64), 900, 901),
        ("cuStreamBeginCapture", (0, mode), 900, 0),
    ]:
        api("cuStreamBeginCapture", stream, mode)
        api(name, *arguments, status=status)
        api("cuStreamEndCapture", stream, status=ends)
    api("cuMemFreeAsync", pooled, 0)
    api("cuMemFree", memory)
