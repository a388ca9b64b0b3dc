"""A report of this machine as oxigrad finds it, and a self-test: ``python -m oxigrad doctor``.

It prints the versions, the instruction set and the number of threads, the array libraries that are installed, the
compiler and the driver for CUDA devices and the cards, and how to install what is missing. The self-test takes about
two seconds: steps of several optimizers in host memory against their rules in float64; kernels compiled for CUDA
devices, where the compiler is installed; steps on each GPU, bit for bit against host memory. The
exit status is 1 if a test fails, and 0 otherwise: missing parts are no errors.
"""

import dataclasses
import importlib
import importlib.metadata
import importlib.util
import json
import platform
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from oxigrad import _core, cuda, optim, xp
from oxigrad.cuda import compiler, driver
from oxigrad.ops.backends import to_host
from oxigrad.step.device import sources

# Array libraries: the module, and the distributions that may provide it.
LIBRARIES = {
    "numpy": ("numpy",),
    "torch": ("torch",),
    "jax": ("jax",),
    "cupy": ("cupy", "cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x"),
    "mlx": ("mlx",),
    "dask": ("dask",),
    "ndonnx": ("ndonnx",),
}
_INSTALL = "pip install 'oxigrad[cuda]'"
_SHAPES = {"w": (64, 33), "b": (33,), "one": ()}
_STEPS = 3
# Relative to the largest element of an array, of float32 against float64.
_TOLERANCE = 3e-6
_OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: optim.SGD(0.1, 0.9, nesterov=True),
    "AdamW": lambda: optim.AdamW(0.01),
    "Lion": lambda: optim.Lion(0.01, weight_decay=0.1),
    "RMSprop": lambda: optim.RMSprop(0.01, momentum=0.9),
    "LAMB": lambda: optim.LAMB(0.01),
}

# Of these, the kernels are compiled, which takes some tenths of a second each.
_COMPILED = ("SGD", "AdamW")


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line of the report: what was examined, what was found (empty for nothing), and how to install it."""

    subject: str
    found: str
    advice: str = ""


@dataclasses.dataclass(frozen=True)
class Check:
    """One test: its name, the reason why it failed (empty if it did not), and its duration in seconds."""

    name: str
    failure: str
    seconds: float


# --- findings ---------------------------------------------------------------------------------------------------------


def findings() -> list[Finding]:
    """The facts of this machine, in the order of the report."""
    libraries = [Finding(module, version(module) or "") for module in LIBRARIES]
    return [
        Finding("oxigrad", _core.__version__),
        Finding("Python", f"{platform.python_version()} ({platform.python_implementation()}, {platform.platform()})"),
        Finding("instruction set", _core.instruction_set()),
        Finding("threads", str(_core.get_num_threads())),
        *libraries,
        _of_compiler(),
        *_of_driver(),
    ]


def version(module: str) -> str | None:
    """The version of an array library; None if it is not installed. Nothing is imported."""
    if importlib.util.find_spec(module) is None:
        return None
    for distribution in LIBRARIES[module]:
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "of an unknown version"


def _of_compiler() -> Finding:
    try:
        nvrtc = compiler.compiler()
    except compiler.CompilerUnavailableError as error:
        return Finding("NVRTC", "", f"{error}" if _INSTALL in str(error) else f"{error}: {_INSTALL}")
    names = ", ".join(f"sm_{capability}" for capability in nvrtc.capabilities)
    return Finding("NVRTC", f"{nvrtc.version[0]}.{nvrtc.version[1]} ({nvrtc.path}) for {names}")


def _of_driver() -> list[Finding]:
    try:
        cuda_driver = driver.driver()
    except driver.DriverUnavailableError as error:
        return [
            Finding("CUDA driver", "", f"{error}; kernels need NVIDIA's driver and a card: https://nvidia.com/drivers")
        ]
    devices = list(cards(cuda_driver))
    report = [Finding("CUDA driver", _driver_version() or "found", "" if devices else "the driver finds no card")]
    return report + [_of_card(cuda_driver, number, name) for number, name in enumerate(devices)]


def _of_card(cuda_driver: driver.Driver, number: int, name: str) -> Finding:
    try:
        cuda_driver.check(number)
    except (driver.DeviceError, compiler.CompileError) as error:
        return Finding(f"card {number}", name, str(error))
    return Finding(f"card {number}", name)


def cards(cuda_driver: driver.Driver) -> Iterable[str]:
    """The name of each card that a driver finds, with its compute capability."""
    number = 0
    while True:
        try:
            yield cuda_driver.name(number)
        except driver.DeviceError:
            return
        number += 1


def _driver_version() -> str:
    """The release of CUDA that the driver supports; empty for a driver that does not tell."""
    try:
        _, number = importlib.import_module("cuda.bindings.driver").cuDriverGetVersion()
    except (ImportError, RuntimeError, OSError):
        return ""
    return f"for CUDA {number // 1000}.{number % 1000 // 10}"


# --- the self-test ----------------------------------------------------------------------------------------------------


def self_test() -> list[Check]:
    """The results of all tests that this machine can run."""
    checks = [_timed(f"{name} in host memory", check_host, make) for name, make in _OPTIMIZERS.items()]
    if architecture := _architecture():
        checks += [
            _timed(f"{name} compiled for {architecture}", check_compiled, _OPTIMIZERS[name], architecture)
            for name in _COMPILED
        ]
    for name, asarray in _devices():
        checks += [_timed(f"{title} on {name}", check_device, make, asarray) for title, make in _OPTIMIZERS.items()]
    return checks


def _timed(name: str, test: Callable[..., None], *args: Any) -> Check:
    start = time.perf_counter()
    try:
        test(*args)
        failure = ""
    except Exception as error:  # noqa: BLE001  a test fails by any error, and the others still run
        failure = f"{type(error).__name__}: {error}"
    return Check(name, failure, round(time.perf_counter() - start, 4))


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def _problem(dtype: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Parameters, and the gradients of each step."""
    random = np.random.default_rng(0)
    draw = lambda: {  # noqa: E731
        name: np.asarray(random.standard_normal(shape), dtype) for name, shape in _SHAPES.items()
    }
    return draw(), [draw() for _ in range(_STEPS)]


def check_host(make: Callable[[], Any]) -> None:
    """Raises `AssertionError` unless steps over arrays of each dtype agree with the rule on float64 arrays."""
    for dtype, tolerance in (("float64", 1e-12), ("float32", _TOLERANCE)):
        opt = make()
        model, grads = _problem(dtype)
        expected = by_rule(opt._rule, dict(opt.hyperparameters), *_problem(dtype))
        for gradients in grads:
            opt.update(model, gradients)
        for name, value in expected.items():
            error = float(np.max(np.abs(model[name] - value)) / np.max(np.abs(value)))
            _require(error <= tolerance, f"{name} of {dtype} differs from the rule by {error:.1e} of its size")


def by_rule(rule: Any, values: dict[str, Any], model: dict[str, Any], grads: list[dict[str, Any]]) -> dict[str, Any]:
    """The parameters after steps by the rule of an optimizer, called on arrays of float64."""
    parameters = {}
    for name, value in model.items():
        p = np.asarray(value, np.float64)
        slots = [np.zeros_like(p) for _ in rule.slots]
        for step, gradients in enumerate(grads, 1):
            g = np.asarray(gradients[name], np.float64)
            p, *slots = rule.run(xp, p, g, slots, values | {"step": float(step)})
        parameters[name] = p
    return parameters


def check_compiled(make: Callable[[], Any], architecture: str) -> None:
    """Raises `CompileError` unless an optimizer's kernels compile, and `AssertionError` if one spills registers."""
    opt = make()
    for text in sources.texts(opt._step_options, _problem("float32")[0]):
        for name, needs in compiler.compile_text(text, architecture).resources.items():
            _require(not needs.spill_stores, f"{name} spills {needs.spill_stores} bytes of registers")


def check_device(make: Callable[[], Any], asarray: Callable[[Any], Any]) -> None:
    """Raises `AssertionError` unless steps on a device give the bits of steps in host memory."""
    model, grads = _problem("float32")
    there = {name: asarray(value) for name, value in model.items()}
    here, on_host = make(), make()
    for gradients in grads:
        there = here.update(there, {name: asarray(value) for name, value in gradients.items()})
        on_host.update(model, gradients)
    reason = next((why for value in there.values() if (why := cuda.why(value))), "")
    _require(not reason, f"no kernel was launched: {reason}")
    for name, value in model.items():
        _require(to_host(there[name]).tobytes() == value.tobytes(), f"{name} differs from host memory")


def _architecture() -> str:
    """The architecture that kernels are compiled for: sm_90, or another that the compiler knows.

    Empty without a compiler.
    """
    try:
        capabilities = compiler.compiler().capabilities
    except compiler.CompilerUnavailableError:
        return ""
    return f"sm_{90 if 90 in capabilities else capabilities[-1]}"


def _devices() -> Iterable[tuple[str, Callable[[Any], Any]]]:
    """Each card that an installed array library can put arrays on: its name, and a function that does so."""
    try:
        number = len(list(cards(driver.driver())))
    except driver.DriverUnavailableError:
        return
    for module in ("torch", "cupy"):
        if version(module) is None:
            continue
        library = importlib.import_module(module)
        if library.cuda.is_available():
            for card in range(number):
                yield f"card {card}, {module}", _placing(module, library, card)


def _placing(module: str, library: Any, card: int) -> Callable[[Any], Any]:
    if module == "torch":
        return lambda value: library.asarray(value.copy(), device=f"cuda:{card}")

    def asarray(value: Any) -> Any:
        with library.cuda.Device(card):
            return library.asarray(value)

    return asarray


# --- the report -------------------------------------------------------------------------------------------------------


def main(*, as_json: bool = False) -> int:
    """Prints the report; returns the exit status, which is 1 where a test failed."""
    all_findings, checks = findings(), self_test()
    if as_json:
        report = {
            "findings": [dataclasses.asdict(finding) for finding in all_findings],
            "self_test": [dataclasses.asdict(check) for check in checks],
            "failed": [check.name for check in checks if check.failure],
        }
        text = json.dumps(report, indent=2)
    else:
        text = "\n".join([*map(_line, all_findings), "", *map(_result, checks)])
    sys.stdout.write(f"{text}\n")
    return int(any(check.failure for check in checks))


def _line(finding: Finding) -> str:
    lines = [f"{finding.subject:<16} {finding.found or 'not found'}"]
    return "\n".join(lines + [f"{'':<16} {finding.advice}"] * bool(finding.advice))


def _result(check: Check) -> str:
    return f"{check.name:<40} {'FAILED: ' + check.failure if check.failure else f'passed in {check.seconds:.2f} s'}"
