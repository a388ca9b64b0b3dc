"""The text of `Program.cuda`: its entries and structures, and the errors of what a device cannot run."""

from __future__ import annotations

import math
import re
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from executor import COMPILER, compile_text
from group import GIVEN
from steps import twin

from optimizers import OPTIMIZERS, slot_dtype_for
from oxigrad import _core, optim, xp
from oxigrad._core import DtypeError, RuleError, ShapeError
from oxigrad.optim import chain


def texts(opt: Any, dtype: Any = np.float32, size: int = 5000) -> list[Any]:
    """The sources of the programs of a step."""
    with twin(opt, None) as found:
        opt.update({"w": np.ones(size, dtype)}, {"w": np.ones(size, dtype)})
    return list(found.sources.values())


def entries(source: Any) -> list[str]:
    return [entry.name for entry in source.entries]


def program(outputs: Any, arrays: int = 2) -> Any:
    """A program that writes ``outputs`` of gradient and parameter to the parameter and slots."""
    tape = _core.symbols()
    found = outputs(*[tape.leaf() for _ in range(arrays)])
    return tape.compile(found, list(range(1, 1 + len(found))), [], None)


def test_a_rule_of_one_pass_is_one_launch_with_scalars_of_the_host() -> None:
    plain = 0
    for name, make in OPTIMIZERS.items():
        for source in texts(make()):
            updates = [entry for entry in source.entries if entry.kind == "update"]
            assert source.is_plain == (len(updates) == 1 and source.numbers == source.totals == 0), name
            assert [entry.name for entry in updates] == [f"update_{k}" for k in range(len(updates))], name
            plain += source.is_plain
    assert plain >= 40


def test_slots_of_one_number_are_float64_or_float32() -> None:
    (source,) = texts(optim.Prodigy())
    assert " double *numbers[2];" in source.text
    tape = _core.symbols()
    g, p, scalar, number = tape.leaf(), tape.leaf(), tape.scalar(), tape.scalar()
    made = tape.compile([p - scalar * number * g], [1], [number * 0.5], None)
    narrow = made.cuda(["float32", "float32"], scalars=1, numbers=1, number_dtype="float32")
    assert " float *numbers[1];" in narrow.text
    with pytest.raises(DtypeError, match="found slots of one number of int32, expected float64 or float32"):
        made.cuda(["float32", "float32"], scalars=1, numbers=1, number_dtype="int32")


def test_the_entries_of_a_step_are_those_of_its_stages() -> None:
    (source,) = texts(optim.AdamW(0.1))
    assert entries(source) == ["scalars_0", "update_0", "advance"]
    (source,) = texts(chain(optim.ClipByGlobalNorm(1.0), optim.SGD(0.1)))
    assert entries(source) == ["update_0", "scalars_0", "total_0", "scalars_1", "update_1", "advance"]
    assert not source.is_plain
    assert (source.sums, source.totals) == (1, 1)  # of squares, and of squares of scaled numbers
    (source,) = texts(optim.LAMB(0.1))
    assert entries(source) == ["scalars_0", "update_0", "scalars_1", "update_1", "advance"]
    (source,) = texts(chain(optim.ScheduleFreeSGD(0.1), nonfinite="skip"))
    assert source.is_guarded
    assert source.numbers == 2
    assert entries(source)[-2:] == ["results", "advance"]
    scopes = {entry.kind: (entry.scope, entry.block) for entry in source.entries}
    assert scopes == {
        "scalars": ("leaves", 128),
        "total": ("once", 128),
        "update": ("tasks", 256),
        "results": ("leaves", 1),
        "advance": ("once", 1),
    }


def test_the_entries_of_programs_with_the_same_totals_have_places_in_one_step() -> None:
    first, second = (
        {entry.name: entry.moment for entry in texts(chain(optim.ClipByGlobalNorm(1.0), opt))[0].entries}
        for opt in (optim.SGD(0.1), optim.LAMB(0.1))
    )
    assert first["total_0"] == second["total_0"]
    assert first["update_0"] == second["update_0"] < first["total_0"]
    assert second["update_2"] > first["update_1"] == second["update_1"] > first["total_0"]
    assert max(second.values()) == first["advance"] == second["advance"]


@pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")
def test_structures_have_the_sizes_that_are_documented() -> None:
    (source,) = texts(chain(optim.ScheduleFreeAdamW(0.1), slot_dtype="8bit"))
    leaf = struct.calcsize("<QQIIII") + 8 * (source.arrays + source.scales + source.numbers)
    assert source.scales >= 1
    assert source.numbers == 2
    sizes = {"OxLaunch": 12 * 8 + 8 * GIVEN, "OxTask": 8, "OxControl": 16, "OxLeaf": leaf}
    checks = [f'static_assert(sizeof({name}) == {size}, "");' for name, size in sizes.items()]
    checks += [f'static_assert(__builtin_offsetof(OxLaunch, given) == {12 * 8}, "");']
    compile_text(source.text + "\n".join(checks), "-O0")


@pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")
def test_several_threads_may_compile_one_text() -> None:
    """Each thread opens a whole library, whichever of them compiled it last."""
    (source,) = texts(optim.SGD(0.1))
    barrier = threading.Barrier(4)

    def compiled(_: int) -> Any:
        barrier.wait()
        return compile_text(source.text, "-O0", "-DOX_OF_SEVERAL_THREADS")

    with ThreadPoolExecutor(4) as pool:
        assert len({library.image for library in pool.map(compiled, range(4))}) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_a_thread_has_16_bytes_of_the_narrowest_array(dtype: Any) -> None:
    (source,) = texts(optim.Adam(0.1), dtype)
    assert f"tile += {256 * 16 // np.dtype(dtype).itemsize}" in source.text
    for kind, end in (("8bit", ""), ("4bit", "_pairs")):
        (source,) = texts(optim.Adam(0.1, slot_dtype=kind), dtype)
        assert "tile += 4096" in source.text
        assert (
            source.text.count(f"ox_decode{end}(in") == source.text.count(f"ox_encode{end}(OX_OWN") == source.scales == 2
        )


def test_a_text_calls_no_function_but_its_own_and_those_of_ieee_754() -> None:
    allowed = {"fma", "fmaf", "sqrt", "sqrtf", "fabs", "fabsf", "floor", "floorf"}
    allowed |= {"__uint_as_float", "__float_as_uint", "__longlong_as_double", "__double_as_longlong", "__syncthreads"}
    allowed |= {"__builtin_assume", "__isGlobal"}
    allowed |= {"if", "for", "while", "return", "sizeof", "float", "__launch_bounds__"}
    for make in OPTIMIZERS.values():
        opt = _of_chain(make())
        codes = slot_dtype_for(opt, "8bit")
        for source in texts(chain(optim.ClipByGlobalNorm(1.0), opt, slot_dtype=codes), np.float16):
            text = re.sub(r"/\*.*?\*/|//[^\n]*", "", source.text, flags=re.DOTALL)
            called = set(re.findall(r"\b([a-z_]\w*)\s*\(", text))
            own = {name for name in called if name.startswith("ox_")} | {entry.name for entry in source.entries}
            own |= set(re.findall(r"(?:void|float|Bits) (\w+)\(", text))
            assert called <= allowed | own
            assert "#include" not in text


def _of_chain(opt: Any) -> Any:
    opt.seed = 0
    return opt


def test_a_function_is_printed_once_and_a_text_is_the_same_each_time() -> None:
    made = program(lambda g, p: [xp.exp(g) + xp.exp(p), xp.exp(g * p)])
    source = made.cuda(["float32"] * 3, scalars=1)
    assert source.text.count("float ox_exp(float v0)") == 1
    assert source.text.count("ox_exp(") == 4
    assert source.text == made.cuda(["float32"] * 3, scalars=1).text
    assert "double ox_exp(double v0)" in made.cuda(["float64"] * 3, scalars=1).text


def test_an_op_without_a_form_is_named() -> None:
    made = program(lambda g, p: [p - xp.special.gamma(g)])
    with pytest.raises(RuleError, match="the op gamma cannot run on a device"):
        made.cuda(["float32"] * 2, scalars=1)


def test_large_angles_are_reduced_in_a_branch() -> None:
    text = program(lambda g, p: [p - xp.cos(g)]).cuda(["float32"] * 2, scalars=1).text
    function = text[text.index("float ox_cos(float v0)") :].split("\n}\n")[0]
    before, branch = function.split("    if (")
    inside, after = branch.split("\n    }\n")
    assert inside.count("\n") > 4 * before.count("\n")
    assert all(f" {name} = " in before for name in re.findall(r"^    (v\d+) = ", inside, re.MULTILINE))
    assert "floor(" in inside
    assert "floor(" not in before + after


def test_scalars_with_an_op_without_a_form_are_computed_on_the_host() -> None:
    tape = _core.symbols()
    g, p, step = tape.leaf(), tape.leaf(), tape.scalar()
    made = tape.compile([p - xp.special.gamma(step) * g], [1], [], None)
    source = made.cuda(["float32"] * 2, scalars=1)
    assert source.is_plain
    assert not source.computes_scalars
    assert entries(source) == ["update_0"]
    assert made.scalars([5.0]) == [math.gamma(5.0)]


def test_scalars_that_depend_on_sums_are_not_computed_on_the_host() -> None:
    made = program(lambda g, p: [p - xp.sum(g)])
    with pytest.raises(RuleError, match="depend on sums"):
        made.scalars([1.0])


def test_bad_layouts_are_refused() -> None:
    made = program(lambda g, p: [p - g])
    with pytest.raises(DtypeError, match="array 1 has dtype uint8: expected a floating-point dtype"):
        made.cuda(["float32", "uint8"], scalars=1)
    with pytest.raises(DtypeError, match="array 0 has dtype int32"):
        made.cuda(["int32", "float32"], scalars=1)
    with pytest.raises(DtypeError, match="found dtype float31"):
        made.cuda(["float31", "float32"], scalars=1)
    with pytest.raises(ShapeError, match="found dtypes of 1 arrays, expected 2 to 64"):
        made.cuda(["float32"], scalars=1)
    with pytest.raises(ShapeError, match="found 0 scalars, expected 1"):
        made.cuda(["float32"] * 2, scalars=0)
    with pytest.raises(ShapeError, match="found 0 scalars, expected 1"):
        _with_scalar().scalars([])


def _with_scalar() -> Any:
    tape = _core.symbols()
    g, p, step = tape.leaf(), tape.leaf(), tape.scalar()
    return tape.compile([p - step * g], [1], [], None)
