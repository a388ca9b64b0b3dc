"""Prints what each rule needs on a GPU: ``make device-report`` compiles its kernels for each architecture.

A line has, for each architecture, the most registers of a kernel; the 16-byte loads and stores of a thread in one round of the
updates; and the time of compilation. The run fails if a kernel spills registers or has an array in local memory, if it accesses an array
of aligned leaves by less than 16 bytes at a time, or if it accesses memory of which the compiler does not know that it is global.

This is a static test: it says nothing of time on a GPU. The accesses are decoded from the machine code (see `machine_code`), and
compared with nvdisasm for one kernel of each architecture where that is installed.
"""

import argparse
import collections
import multiprocessing
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from steps import twin

import machine_code
from optimizers import OPTIMIZERS, slot_dtype_for
from oxigrad.cuda import compiler
from oxigrad.optim import chain

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
# The dtype of parameters, and options of a chain: all dtypes that kernels read and write.
DTYPES: dict[str, tuple[Any, Mapping[str, Any]]] = {
    "float32": (np.float32, {}),
    "float64": (np.float64, {}),
    "bfloat16": (ml_dtypes.bfloat16, {"slot_dtype": "bfloat16", "rounding": "stochastic", "seed": 0}),
    "float16": (np.float16, {"master": True}),
    "kahan": (np.float16, {"rounding": "kahan"}),
    "8bit": (np.float32, {"slot_dtype": "8bit"}),
    "4bit": (np.float32, {"slot_dtype": "4bit"}),
}


def sources(rule: str, dtype: str) -> list[str]:
    """The texts that a step of a rule launches for parameters of a dtype."""
    parameters, options = DTYPES[dtype]
    opt = OPTIMIZERS[rule]()
    opt.seed = 0
    if "slot_dtype" in options:
        options = {**options, "slot_dtype": slot_dtype_for(opt, options["slot_dtype"])}
    model, gradients = ({"w": np.full(8192, value, parameters)} for value in (0.5, 1.0))
    opt = chain(opt, **options) if options else opt
    with twin(opt, None) as found:
        opt.update(model, gradients)
    return list(found.texts)


# --- one text ----------------------------------------------------------------------------------------------------------

_UPDATE = re.compile(r'extern "C" __global__ void __launch_bounds__\(\d+\) (update_\d+)\((.*?)\n}\n', re.DOTALL)
_EACH = re.compile(r"threadIdx\.x \* (\d+);")
_SIZE = re.compile(r"char \*const a(\d+) = .* \+ start \* (\d+);")
_LOAD = re.compile(r"\box_(?:load|decode)\S*\(\w+, a(\d+) \+")
_STORE = re.compile(r"\box_(?:store\w*|encode)\S*\([^;]*?\ba(\d+) \+")


def expected(text: str) -> dict[str, tuple[int, int]]:
    """The 16-byte loads and stores of each update, of one thread in one round: its elements of each array, 16 bytes at a time.

    Codes of four bits have 8 bytes, which are not counted.
    """
    found = {}
    for name, body in _UPDATE.findall(text):
        each = int(_EACH.search(body)[1])  # type: ignore[index]
        sizes = {number: int(size) for number, size in _SIZE.findall(body)}
        found[name] = tuple(
            sum(each * sizes.get(number, 0) // 16 for number in pattern.findall(body)) for pattern in (_LOAD, _STORE)
        )
    return found


@dataclass(frozen=True)
class Found:
    """The kernels of a text, compiled for an architecture: the most registers, 16-byte loads and stores, and what is wrong."""

    registers: int
    loads: int
    stores: int
    seconds: float
    faults: tuple[str, ...]


def examined(text: str, architecture: str) -> Found:
    """Compiles a text, and looks at the machine code."""
    start = time.perf_counter()
    binary = compiler.compile_text(text, architecture, cache=None)
    seconds = time.perf_counter() - start
    accesses, updates = machine_code.accesses(binary.code), expected(text)
    if not updates:
        raise ValueError("the text has no update")
    faults = [*_spills(binary.resources, accesses), *_unknown(accesses), *_narrow(updates, accesses)]
    loads, stores = (sum(accesses[name][opcode, 128] for name in updates) for opcode in ("LDG", "STG"))
    return Found(max(each.registers for each in binary.resources.values()), loads, stores, seconds, tuple(faults))


Accesses = Mapping[str, machine_code.Accesses]


def _spills(resources: Mapping[str, compiler.Resources], accesses: Accesses) -> Iterator[str]:
    for name, each in resources.items():
        local = accesses[name]
        instructions = sum(count for (opcode, _), count in local.items() if opcode in {"LDL", "STL"})
        if each.stack or each.spill_stores or each.spill_loads or instructions:
            yield (
                f"{name} uses local memory: {each.stack} bytes of stack, spills of {each.spill_stores} bytes stored and "
                f"{each.spill_loads} loaded"
            )


def _unknown(accesses: Accesses) -> Iterator[str]:
    for name, counts in accesses.items():
        if count := sum(count for (opcode, _), count in counts.items() if opcode in {"LD", "ST"}):
            yield f"{name} has {count} accesses of memory that is not known to be global"


def _narrow(updates: Mapping[str, tuple[int, int]], accesses: Accesses) -> Iterator[str]:
    for name, counts in updates.items():
        for opcode, verb, count in zip(("LDG", "STG"), ("loads", "stores"), counts, strict=True):
            if (wide := accesses[name][opcode, 128]) < count:
                yield f"{name} has {wide} {verb} of 16 bytes, expected {count}"


# --- the table ---------------------------------------------------------------------------------------------------------


def _task(task: tuple[str, str]) -> Found:
    return examined(*task)


def report(
    texts: Mapping[tuple[str, str], Sequence[str]], architectures: Sequence[str], processes: int
) -> tuple[list[str], list[str]]:
    """The lines of the table of texts by rule and dtype, and the faults."""
    tasks = list(dict.fromkeys((text, each) for own in texts.values() for text in own for each in architectures))
    if processes == 1:
        found = dict(zip(tasks, map(_task, tasks), strict=True))
    else:
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            found = dict(zip(tasks, pool.map(_task, tasks, chunksize=4), strict=True))
    lines = [_line("rule", "dtype", architectures, "loads", "stores", "ms")]
    faults = []
    for (rule, dtype), own in texts.items():
        of_each = {each: [found[text, each] for text in own] for each in architectures}
        registers = [str(max(one.registers for one in of_each[each])) for each in architectures]
        loads, stores = (
            _range(sum(getattr(one, kind) for one in ones) for ones in of_each.values()) for kind in ("loads", "stores")
        )
        milliseconds = [1000 * sum(one.seconds for one in ones) for ones in of_each.values()]
        lines.append(_line(rule, dtype, registers, loads, stores, f"{max(milliseconds):.0f}"))
        faults += [
            f"{rule}, {dtype}, {each}: {fault}"
            for each in architectures
            for one in of_each[each]
            for fault in one.faults
        ]
    return lines, faults


def _line(rule: str, dtype: str, registers: Sequence[str], loads: str, stores: str, milliseconds: str) -> str:
    columns = "".join(f"{each:>7}" for each in registers)
    return f"{rule:<28}{dtype:<9}{columns}{loads:>7}{stores:>7}{milliseconds:>6}"


def _range(values: Iterable[int]) -> str:
    """One number if all are equal, else the least and the greatest."""
    every = sorted(set(values))
    return str(every[0]) if len(every) == 1 else f"{every[0]}-{every[-1]}"


def compared(text: str, architectures: Sequence[str]) -> tuple[str, list[str]]:
    """Says how accesses were counted, with the differences from nvdisasm."""
    program = machine_code.disassembler()
    if program is None:
        return "nvdisasm was not found to compare with", []
    differences = []
    for each in architectures:
        code = compiler.compile_text(text, each, cache=None).code
        if machine_code.accesses(code) != machine_code.disassembled(code, program):
            differences.append(f"{each}: the accesses decoded from the machine code differ from those of nvdisasm")
    return f"compared with {program}", differences


def main(arguments: Sequence[str] | None = None, write: Callable[[str], Any] = print) -> int:
    """Prints the table, and gives the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rules", nargs="*", default=list(OPTIMIZERS), help="rows, of the table of optimizers in the tests"
    )
    parser.add_argument("--dtypes", nargs="*", default=list(DTYPES), choices=list(DTYPES))
    parser.add_argument("--architectures", nargs="*", default=list(ARCHITECTURES))
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    texts = {(rule, dtype): sources(rule, dtype) for rule in options.rules for dtype in options.dtypes}
    lines, faults = report(texts, options.architectures, options.processes)
    how, differences = compared(next(iter(texts.values()))[0], options.architectures)
    for line in lines:
        write(line)
    write(f"{compiler.compiler()}; registers by its log, accesses of 16 bytes decoded from the machine code, {how}")
    kinds = collections.Counter(dtype for _, dtype in texts)
    write(
        f"{len(texts)} rows ({', '.join(f'{count} {dtype}' for dtype, count in kinds.items())}) in {time.perf_counter() - start:.0f} s"
    )
    for fault in (faults := faults + differences):
        write(f"FAULT {fault}")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
