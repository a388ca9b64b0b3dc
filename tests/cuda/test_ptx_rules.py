"""The PTX of the printed kernels to the bit of the executors on the host: every rule, dtype and option.

NVRTC compiles the text of `Program.cuda`, and the interpreter of `ptx` runs what it emitted on copies of all arrays of a step.
"""

import dataclasses
import re

import pytest
import test_bits
from ptx_library import ptx_library
from steps import twin
from test_bits import CONFIGURATIONS

from optimizers import OPTIMIZERS
from oxigrad.cuda.compiler import Compiler

# Around the elements of a thread, of codes with one scale, of a tile, and of a chunk.
LENGTHS = (0, 1, 257, 1025)
MORE_LENGTHS = (3, 4097)
# What computes other bits than the host, or is decided by the compiler: approximations, flushes of subnormals, additions and
# products without a rounding, which the assembler may contract, and functions of other libraries.
BANNED = re.compile(r"\.approx|\.full|\.ftz|^(?:add|sub|mul|mad)\.f(?:32|64)$|^call|^(?:sin|cos|tanh|ex2|lg2|rsqrt)\b")


def steps(name: str, rule: str, lengths: tuple[int, ...], count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes steps of a rule on the host and by PTX."""
    monkeypatch.setattr(test_bits, "LENGTHS", lengths)
    configuration = dataclasses.replace(CONFIGURATIONS[name], steps=count)
    opt = configuration.optimizer(rule)
    with twin(opt, ptx_library, **configuration.options) as found:
        configuration.run(opt)
    assert found.checked >= 2 * len(lengths) * count
    for text in found.texts:
        opcodes = ptx_library(text).module.opcodes
        assert [each for each in opcodes if BANNED.search(each)] == []
        fused = any(each.startswith("fma.") for each in opcodes)
        assert not fused or re.search(r"\bfma(f?)\(|__fmaf?_rn\(", text)


@pytest.mark.parametrize("rule", OPTIMIZERS)
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_step_has_the_bits_of_the_host(
    nvrtc: Compiler, name: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps(name, rule, LENGTHS, 2 if "accumulated" in name else 1, monkeypatch)


@pytest.mark.parametrize("rule", ["adamw", "lamb", "lion", "prodigy"])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_later_steps_and_longer_leaves(nvrtc: Compiler, name: str, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps(name, rule, MORE_LENGTHS, 4 if "accumulated" in name else 3, monkeypatch)
