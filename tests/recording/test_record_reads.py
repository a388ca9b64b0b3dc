"""Names that the code of a function reads: as `dis` tells, over the functions of the standard library and NumPy."""

from __future__ import annotations

import argparse
import asyncio.base_events
import dataclasses
import dis
import inspect
import types
import typing
from typing import Any

import numpy as np
import pytest

from oxigrad.recording.reads import codes, reads_of

MODULES = [argparse, asyncio.base_events, dataclasses, dis, inspect, typing, np.linalg, np.fft]


def functions(module: Any) -> list[types.FunctionType]:
    """The functions and methods of a module."""
    found = [*vars(module).values()]
    found += [each for value in found if isinstance(value, type) for each in vars(value).values()]
    found = [getattr(each, "__wrapped__", each) for each in found]
    return [each for each in found if isinstance(each, types.FunctionType)]


def told_by_dis(code: types.CodeType) -> tuple[Any, ...]:
    """The same as `reads_of`, from the descriptions of instructions."""
    names, attributes, imports, assigned = list[str](), dict[str, set[str]](), list[str](), list[str]()
    for each in codes(code):
        before = ""
        for instruction in dis.get_instructions(each):
            kind, name = instruction.opname, str(instruction.argval)
            if kind in ("LOAD_ATTR", "LOAD_METHOD") and before:
                attributes.setdefault(before, set()).add(name)
            names += [name] * (kind in ("LOAD_GLOBAL", "LOAD_NAME"))
            imports += [name] * (kind == "IMPORT_NAME")
            is_outer = kind == "STORE_DEREF" and name in code.co_freevars
            assigned += [name] * (is_outer or kind in ("STORE_GLOBAL", "DELETE_GLOBAL"))
            if kind != "EXTENDED_ARG":
                is_named = kind in (
                    "LOAD_GLOBAL",
                    "LOAD_NAME",
                    "LOAD_ATTR",
                    "LOAD_METHOD",
                    "LOAD_DEREF",
                    "LOAD_CLASSDEREF",
                )
                before = name if is_named else ""
    unique = tuple(dict.fromkeys(names)), {name: tuple(sorted(of)) for name, of in attributes.items()}
    return (*unique, assigned[0] if assigned else None, tuple(dict.fromkeys(imports)))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_reads_are_those_that_dis_tells(module):
    found = functions(module)
    assert found
    for function in found:
        assert tuple(reads_of(function.__code__)) == told_by_dis(function.__code__), function


def test_names_beyond_the_first_256():
    names = [f"name{at}" for at in range(700)]
    source = "def f():\n" + "".join(f"    {name}.part{at}\n" for at, name in enumerate(names))
    namespace: dict[str, Any] = {}
    exec(source, namespace)  # noqa: S102 - a namespace of this test's own
    found = reads_of(namespace["f"].__code__)
    assert found.names == tuple(names)
    assert found.attributes == {name: (f"part{at}",) for at, name in enumerate(names)}
