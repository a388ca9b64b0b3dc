"""The printed kernels on the host, to the bit of the executors: every rule, dtype and option.

A C++ compiler runs the text of `Program.cuda` on copies of all arrays of a step; see `steps`.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from executor import COMPILER
from group import Group, Leaf, Step
from steps import bits, compiled, placed, twin

from optimizers import OPTIMIZERS
from oxigrad import _core, optim
from oxigrad.optim import chain

pytestmark = pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")

# Around the elements of a thread (2 to 16), of a tile, of codes with one scale, and of a chunk.
LENGTHS = (0, 1, 3, 15, 17, 255, 257, 1023, 1025, 4095, 4096, 4097, 8193)


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A dtype of parameters, and an optimizer around the one of a table."""

    dtype: Any
    around: Callable[[Any], Any] = lambda opt: opt
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    gradients: Any = None
    steps: int = 2
    #: The least number of parts that are written in a step of any rule, of each leaf.
    flags: tuple[str, ...] = ("-O0",)

    def model(self, seed: int, dtype: Any = None) -> dict[str, np.ndarray]:
        draw = np.random.default_rng(seed)
        return {f"w{n}": draw.standard_normal(n).astype(dtype or self.dtype) for n in LENGTHS}

    def gradient(self, step: int) -> dict[str, np.ndarray]:
        return self.model(step + 1, self.gradients)

    def texts(self, name: str) -> list[str]:
        """The texts of all steps."""
        opt = self.optimizer(name)
        with twin(opt, None, **self.options) as found:
            self.run(opt)
        return list(found.texts)

    def optimizer(self, name: str) -> Any:
        opt = OPTIMIZERS[name]()
        opt.seed = 0  # a part of a chain has none of its own
        return self.around(opt)

    def run(self, opt: Any) -> None:
        model = self.model(0)
        for step in range(self.steps):
            opt.update(model, self.gradient(step))


CONFIGURATIONS = {
    "float32": Configuration(np.float32),
    "float64": Configuration(np.float64, steps=1),
    "unaligned, and the step number on the device": Configuration(
        np.float32, options={"by_control": True, "shift": 1}, steps=1
    ),
    "codes, clipped by the global norm, averaged": Configuration(
        np.float32, lambda opt: chain(optim.ClipByGlobalNorm(0.5), opt, optim.EMA(0.9), slot_dtype="8bit")
    ),
    "bfloat16 with master weights and float32 gradients, guarded": Configuration(
        ml_dtypes.bfloat16,
        lambda opt: chain(opt, optim.SWA(), master=True, slot_dtype="bfloat16", nonfinite="skip"),
        gradients=np.float32,
        steps=1,
    ),
    "bfloat16 rounded at random": Configuration(
        ml_dtypes.bfloat16,
        lambda opt: chain(opt, rounding="stochastic", slot_dtype="bfloat16", zero_gradients=True, seed=5),
        options={"shift": 1},
        steps=1,
    ),
    "float16 with compensation, of accumulated gradients": Configuration(
        np.float16, lambda opt: chain(optim.ClipByNorm(2.0), opt, optim.Lookahead(), rounding="kahan", accumulate=2)
    ),
}


def rules(config: pytest.Config, name: str) -> list[str]:
    """The rules of a configuration: all, or a fourth of them where only light packages are tested with."""
    names = list(OPTIMIZERS)
    return names if config.getoption("--require") else names[[*CONFIGURATIONS].index(name) % 4 :: 4]


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_step_has_the_bits_of_the_host(name: str, pytestconfig: pytest.Config) -> None:
    configuration = CONFIGURATIONS[name]
    names = rules(pytestconfig, name)
    texts = {rule: configuration.texts(rule) for rule in names}
    libraries = compiled([text for own in texts.values() for text in own], *configuration.flags)
    for rule in names:
        opt = configuration.optimizer(rule)
        with twin(opt, libraries.__getitem__, **configuration.options) as found:
            configuration.run(opt)
        assert found.checked >= 2 * len(LENGTHS) * configuration.steps, rule


# --- options that a step of one model does not show --------------------------------------------------------------------


def follow(make: Callable[[], Any], model: Any, gradients: list[Any], **options: Any) -> Any:
    """Takes the steps of an optimizer by the printed text too, and returns its twin and the optimizer."""
    with twin(make(), None, **options) as found:
        own = copy.deepcopy(model)
        for g in gradients:
            found.owner.update(own, copy.deepcopy(g))
    libraries = compiled([*found.texts], "-O0")
    with twin(make(), libraries.__getitem__, **options) as found:
        for g in gradients:
            found.owner.update(model, g)
    return found


def drawn(lengths: Mapping[str, int], seed: int, dtypes: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    return {k: draw.standard_normal(n).astype((dtypes or {}).get(k, np.float32)) for k, n in lengths.items()}


def test_totals_are_added_up_over_groups_in_the_order_of_the_host() -> None:
    lengths = {f"{kind}{k}": 1 + 977 * k for k in range(7) for kind in "abcd"}
    dtypes = {
        name: {"a": np.float32, "b": np.float64, "c": np.float16, "d": ml_dtypes.bfloat16}[name[0]] for name in lengths
    }

    def make() -> Any:
        parts = {"[ab][0-3]": optim.Adam(0.1), "*": optim.SGD(0.1, momentum=0.9)}
        return chain(optim.ClipByGlobalNorm(0.5), optim.Partition(parts))

    gradients = [drawn(lengths, seed, dtypes) for seed in (1, 2)]
    found = follow(make, drawn(lengths, 0, dtypes), gradients)
    assert len(found.sources) > 4
    assert found.checked > 2 * 2 * len(lengths)


@pytest.mark.parametrize("scaled", [False, True])
def test_a_guard_stops_a_step_as_on_the_host(scaled: bool) -> None:
    lengths = {"a": 5000, "b": 3}
    gradients = [drawn(lengths, seed) for seed in (1, 2, 3)]
    gradients[1]["b"][1] = np.inf

    def make() -> Any:
        options = {"loss_scale": optim.LossScale(1024.0)} if scaled else {"nonfinite": "skip"}
        return chain(optim.ScheduleFreeSGD(0.1), optim.EMA(0.9), **options)

    found = follow(make, drawn(lengths, 0), gradients)
    assert found.owner.skipped == 1
    assert found.core.count == 2


def test_the_step_number_on_the_device_advances_with_each_step() -> None:
    source, launch = None, None
    opt = optim.Adam(0.1)
    with twin(opt, None) as found:
        opt.update(drawn({"a": 10}, 0), drawn({"a": 10}, 1))
    (source,) = found.sources.values()
    launch = compiled([source.text], "-O0")[source.text].launch
    arrays = [drawn({"a": 10}, seed)["a"] for seed in range(4)]
    step = Step([Group(source, [Leaf(arrays)], launch)], by_control=True)
    for expected in (1, 2, 3):
        assert step.run([[[0.0, 0.1, 0.9, 0.999, 1e-8]]])
        assert int(step.control[0]) == expected


# --- ops ---------------------------------------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.5, 3.0, 1e-8, 0.3, 7.25, -1e4, 1e10, 5e-324, 1e-40, -1e-310, 1e300, -1e38]
SPECIAL += [np.inf, -np.inf, np.nan, np.pi, 1 - 2**-24, 65504.0, 65520.0, 2.0**-25, 88.7, -103.9, 709.7, 4096.0]
SPECIAL += [1e5, 100000.00000000001, -3e7, 6381956970095103.0 * 2.0**797, 5.319372648326541e255]  # see `quarter_turns`


def programs() -> dict[str, Any]:
    """For each elementwise op the program that computes it of gradient, parameter and a slot, and writes the parameter."""
    found = {}
    for function in _core.elementwise_functions():
        tape = _core.symbols()
        arity = dict(_core.ops())[function.__name__]
        result = function(*[tape.leaf() for _ in range(arity)])
        found[function.__name__] = tape.compile([result], [1], [], None)
    return found


def sources(dtype: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The programs of ops with their texts, and the errors of the ops that have none."""
    found, errors = {}, {}
    for name, program in programs().items():
        try:
            found[name] = program, program.cuda([dtype] * 3, scalars=1)
        except _core.RuleError as error:
            errors[name] = str(error)
    return found, errors


# Functions of the system, of series with loops, and of two branches: see simd/math.rs.
ON_HOST_ONLY = set(
    "atan2 hypot logaddexp logaddexp2 asin acos atan erf erfc erfinv erfcinv beta betaln gamma gammaln digamma "
    "polygamma jn yn iv gammainc gammaincc gammainc_a betainc".split()
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_op_has_the_bits_of_its_scalar_meaning(dtype: str) -> None:
    found, errors = sources(dtype)
    assert errors.keys() == ON_HOST_ONLY
    assert all(f"the op {name} cannot run on a device" in error for name, error in errors.items())
    libraries = compiled([source.text for _, source in found.values()], "-O0")
    functions = {function.__name__: function for function in _core.elementwise_functions()}
    with np.errstate(over="ignore"):
        x, y = (values.reshape(-1).astype(dtype) for values in np.meshgrid(SPECIAL, SPECIAL))
    for name, (program, source) in found.items():
        arity = dict(_core.ops())[name]
        arrays = [placed(array, 0) for array in (x, y if arity > 1 else x, np.flip(y))]
        host = [array.copy() for array in arrays]
        step = Step([Group(source, [Leaf(arrays)], libraries[source.text].launch)])
        assert step.run([[program.scalars([0.0])]])
        core = _core.Stepper()
        core.prepare([_core.HostParameter(
            path="p", position=0, array=host[1], slots=[("s", host[2])], numbers=[], catches_up=False, stochastic=False,
            program=0, scalar_set=0,
        )])  # fmt: skip
        core.step(host[1], (host[1],), (host[0],), programs=[(program, [[0.0]])], seed=0)
        assert bits(arrays[1]) == bits(host[1]), name
        if dtype == "float64":
            args = [x, y, np.flip(y)][:arity]
            scalar = [float(functions[name](*(float(arg[k]) for arg in args))) for k in range(0, len(x), 7)]
            assert bits(arrays[1][::7]) == bits(np.array(scalar)), name


# --- under sanitizers --------------------------------------------------------------------------------------------------


def test_no_access_is_out_of_bounds_and_no_arithmetic_undefined() -> None:
    found = subprocess.run([COMPILER, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    environment = os.environ | {
        "LD_PRELOAD": found.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    program = Path(__file__).with_name("sanitized.py")
    run = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
    assert "steps had the bits of the host" in run.stdout
