"""The PTX of the printed kernels to the bit of the executors on the host: rules, dtypes and options.

NVRTC compiles the texts of `Program.cuda`, and the interpreter of `ptx` runs what it emitted on copies of all arrays of a step.
Without pytest, the program takes all combinations of the rules that it is given::

    PYTHONPATH=tests/cuda:tests/emulators:tests/tables python tests/cuda/test_ptx_rules.py [RULE ...]
"""

import re
import sys
from collections.abc import Iterable, Sequence

import pytest
from executor import in_one_file
from product import Combination, combinations, distinct, take
from ptx import kernels
from ptx_library import ptx, ptx_libraries

from optimizers import OPTIMIZERS
from oxigrad.cuda.compiler import Compiler

# Nothing, the end of a thread's elements, and two chunks, of codes where an option has them.
LENGTHS = (0, 3, 4099)
MORE_LENGTHS = (1, 257, 1025, 4097)
# What computes other bits than the host, or is decided by the compiler: approximations, flushes of subnormals, additions and
# products without a rounding, which the assembler may contract, and functions of other libraries.
BANNED = re.compile(r"\.approx|\.full|\.ftz|^(?:add|sub|mul|mad)\.f(?:32|64)$|^call|^(?:sin|cos|tanh|ex2|lg2|rsqrt)\b")


def proved(cases: Iterable[Combination], lengths: tuple[int, ...] = LENGTHS, steps: int = 0) -> int:
    """Takes steps of combinations on the host and by PTX; returns how many arrays had the same bits."""
    counts = {case: steps or (2 if "accumulated" in case.option else 1) for case in cases}
    texts = {case: case.texts(lengths, count) for case, count in counts.items()}
    libraries = ptx_libraries(text for own in texts.values() for text in own)
    for text, library in libraries.items():
        assert [each for each in library.opcodes if BANNED.search(each)] == [], text
        fused = any(each.startswith("fma.") for each in library.opcodes)
        assert not fused or re.search(r"\bfma(f?)\(|__fmaf?_rn\(", text)
    checked = 0
    for case, count in counts.items():
        found = take(case, libraries.__getitem__, lengths, count)
        assert found >= 2 * len(lengths) * count, case
        checked += found
    return checked


def of_rule(rule: str) -> list[Combination]:
    """The combinations of a rule that have a text, or launches of it, which none before has."""
    return [*distinct(case for case in combinations() if case.rule == rule)]


@pytest.mark.slow
@pytest.mark.parametrize("rule", OPTIMIZERS)
def test_a_step_has_the_bits_of_the_host(nvrtc: Compiler, rule: str) -> None:
    proved(of_rule(rule))


@pytest.mark.parametrize("rule", ["adamw", "lamb", "lion", "prodigy"])
def test_later_steps_and_longer_leaves(nvrtc: Compiler, rule: str) -> None:
    options = ("codes, global norm, average", "kahan, norm, Lookahead, accumulated")
    proved([Combination(rule, dtype, each) for dtype in ("float32", "bfloat16") for each in options], MORE_LENGTHS, 4)


@pytest.mark.parametrize("rule", ["adamw", "lamb"])
def test_an_entry_is_compiled_beside_others_as_it_is_alone(nvrtc: Compiler, rule: str) -> None:
    """So that texts may be compiled together: names differ, and where shared memory is declared."""
    cases = [Combination(rule, "float32", each) for each in ("plain", "8bit slots", "global norm")]
    texts = [text for case in cases for text in case.texts()]
    whole, names = in_one_file(texts)
    together = kernels(ptx(whole))
    for text, own in zip(texts, names, strict=True):
        alone = kernels(ptx(text))
        assert alone.keys() == own.keys()
        for entry, body in alone.items():
            assert renamed(body) == renamed(together[own[entry]]), entry


def renamed(body: str) -> list[str]:
    """The statements of a kernel, with names by the order in which they occur."""
    statements = [" ".join(each.split()) for each in body.split(";") if not re.match(r"\s*\.shared\b", each)]
    names: dict[str, str] = {}
    return [
        re.sub(r"%[a-z]+\d+|[$_]\w+|\b\w+_param_0\b", lambda found: names.setdefault(found[0], f"#{len(names)}"), each)
        for each in statements
    ]


def main(rules: Sequence[str]) -> None:
    """Takes all combinations of rules."""
    for rule in rules or OPTIMIZERS:
        cases = of_rule(rule)
        checked = proved(cases)
        sys.stdout.write(f"{rule}: {len(cases)} combinations, {checked} arrays have the bits of the host\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
