"""The PTX of the printed kernels to the bit of the executors on the host: every rule, dtype and option.

NVRTC compiles the text of `Program.cuda`, and the interpreter of `ptx` runs what it emitted on copies of all arrays of a step.
"""

import re
import sys
from collections.abc import Iterable

import pytest
from product import OPTIONS, Combination, combinations, distinct, pairs, take
from ptx_library import ptx_library

from oxigrad.cuda.compiler import Compiler

# Nothing, the end of a thread's elements, and two chunks, of codes where an option has them.
LENGTHS = (0, 3, 4099)
MORE_LENGTHS = (1, 257, 1025, 4097)
# What computes other bits than the host, or is decided by the compiler: approximations, flushes of subnormals, additions and
# products without a rounding, which the assembler may contract, and functions of other libraries.
BANNED = re.compile(r"\.approx|\.full|\.ftz|^(?:add|sub|mul|mad)\.f(?:32|64)$|^call|^(?:sin|cos|tanh|ex2|lg2|rsqrt)\b")


def proved(combination: Combination, lengths: tuple[int, ...], count: int) -> None:
    """Takes steps of a combination on the host and by PTX."""
    assert take(combination, ptx_library, lengths, count) >= 2 * len(lengths) * count, combination
    for text in combination.texts(lengths, count):
        opcodes = ptx_library(text).module.opcodes
        assert [each for each in opcodes if BANNED.search(each)] == [], combination
        fused = any(each.startswith("fma.") for each in opcodes)
        assert not fused or re.search(r"\bfma(f?)\(|__fmaf?_rn\(", text)


@pytest.mark.parametrize("option", OPTIONS)
def test_a_step_has_the_bits_of_the_host(nvrtc: Compiler, option: str) -> None:
    """Every pair of a rule, a dtype and an option; `main` takes all combinations."""
    for combination in pairs():
        if combination.option == option:
            proved(combination, LENGTHS, 2 if "accumulated" in option else 1)
    ptx_library.cache_clear()


@pytest.mark.parametrize("rule", ["adamw", "lamb", "lion", "prodigy"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_later_steps_and_longer_leaves(nvrtc: Compiler, rule: str, dtype: str) -> None:
    for option in ("codes, global norm, average", "kahan, norm, Lookahead, accumulated"):
        proved(Combination(rule, dtype, option), MORE_LENGTHS, 4)


def main(combinations: Iterable[Combination] = tuple(combinations())) -> None:
    """All combinations, each text once: ``PYTHONPATH=tests/cuda:tests/tables python tests/cuda/test_ptx_rules.py``."""
    found = distinct(combinations)
    for number, combination in enumerate(found, 1):
        proved(combination, LENGTHS, 2 if "accumulated" in combination.option else 1)
        if number % 100 == 0 or number == len(found):
            sys.stdout.write(f"{number} of {len(found)} combinations have the bits of the host\n")
            sys.stdout.flush()
            ptx_library.cache_clear()


if __name__ == "__main__":
    main()
