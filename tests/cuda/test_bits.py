"""The printed kernels on the host, to the bit of the executors: every rule, dtype and option.

A C++ compiler runs the text of `Program.cuda` on copies of all arrays of a step; see `steps`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from executor import COMPILER
from steps import compiled, twin

from optimizers import OPTIMIZERS
from oxigrad import optim
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
        opt = self.around(OPTIMIZERS[name]())
        with twin(opt, None, **self.options) as found:
            self.run(opt)
        return list(found.texts)

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
    "float16 with compensation, of accumulated gradients with noise": Configuration(
        np.float16,
        lambda opt: chain(
            optim.GradientNoise(), optim.ClipByNorm(2.0), opt, optim.Lookahead(), rounding="kahan", accumulate=2
        ),
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
        opt = configuration.around(OPTIMIZERS[rule]())
        with twin(opt, libraries.__getitem__, **configuration.options) as found:
            configuration.run(opt)
        assert found.checked >= 2 * len(LENGTHS) * configuration.steps, rule
