"""The printed kernels on the host, to the bit of the executors: every rule, dtype and option.

A C++ compiler runs the text of `Program.cuda` on copies of all arrays of a step; see `steps`.
"""

from __future__ import annotations

import copy
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
from product import (
    DTYPES,
    LENGTHS,
    OPTIONS,
    REFUSED,
    SOME_LENGTHS,
    Combination,
    combinations,
    distinct,
    of_option,
    take,
)
from steps import bits, compiled, placed, twin

from optimizers import OPTIMIZERS
from oxigrad import _core, optim
from oxigrad._core import DtypeError
from oxigrad.optim import chain

pytestmark = pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("option", OPTIONS)
def test_a_step_has_the_bits_of_the_host(option: str, pytestconfig: pytest.Config) -> None:
    """Every rule and dtype; a third of the rules where only light packages are tested with."""
    texts = of_option(option)
    if not pytestconfig.getoption("--require"):
        rules = [*OPTIMIZERS][[*OPTIONS].index(option) % 3 :: 3]
        texts = {combination: own for combination, own in texts.items() if combination.rule in rules}
    libraries = compiled([text for own in texts.values() for text in own], "-O0")
    for combination in texts:
        checked = take(combination, libraries.__getitem__, SOME_LENGTHS, 2)
        assert checked >= 2 * 2 * len(SOME_LENGTHS), combination


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "option",
    [
        "codes, global norm, average",
        "kahan, norm, Lookahead, accumulated",
        "stochastic, unaligned, zeroed gradients",
    ],
)
@pytest.mark.slow
def test_leaves_of_every_length(option: str, dtype: str) -> None:
    cases = [Combination(rule, dtype, option) for rule in ("adamw", "lamb", "prodigy")]
    libraries = compiled([text for case in cases for text in case.texts()], "-O0")
    for case in cases:
        assert take(case, libraries.__getitem__, LENGTHS, 3) >= 3 * 2 * len(LENGTHS), case


@pytest.mark.slow
def test_the_combinations_are_counted() -> None:
    """A rule, dtype or option that is added is found here."""
    every = list(combinations())
    texts = {text for own in distinct(every).values() for text in own}
    refused = len(REFUSED) * len(OPTIMIZERS)
    assert len(every) == len(OPTIMIZERS) * len(DTYPES) * len(OPTIONS) - refused
    assert (len(every), len(texts)) == (6732, 5954)


@pytest.mark.parametrize(("option", "dtype"), REFUSED)
def test_refused_combinations(option: str, dtype: str) -> None:
    for rule in ("sgd", "lamb", "schedule-free-adamw"):
        with pytest.raises(DtypeError, match=REFUSED[option, dtype]):
            Combination(rule, dtype, option).texts()


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
SPECIAL += [0.84375, 1.25, 2.9, -6.5, 27.0, 0.4375, 0.6875, -0.7, 0.9999999999999999]  # see `error_function`, `angle`
SPECIAL += [-0.6931471805599453, -0.69, 1e-3]  # roots of `logaddexp`
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


# Series with loops: see simd/math.rs.
ON_HOST_ONLY = set(
    "erfinv erfcinv beta betaln gamma gammaln digamma polygamma jn yn iv gammainc gammaincc gammainc_a betainc betainc_a "
    "betainc_b betainc_aa betainc_ab betainc_bb".split()
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.slow
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


@pytest.mark.slow
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
