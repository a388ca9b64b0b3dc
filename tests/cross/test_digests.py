"""The digests of machines: every function has one, and those that NumPy computes are listed."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oxigrad import xp

_SPECIFICATION: Any = importlib.util.spec_from_file_location("digests", Path(__file__).with_name("digests.py"))
digests: Any = importlib.util.module_from_spec(_SPECIFICATION)
_SPECIFICATION.loader.exec_module(digests)
FUNCTIONS = sorted(name for name in digests.ARITY if hasattr(xp, name))


@pytest.mark.parametrize("name", sorted({*FUNCTIONS} - digests.OF_NUMPY))
def test_each_function_has_a_digest_of_its_derivatives(name: str) -> None:
    assert len({digests.derivatives(name, dtype) for dtype in ("float32", "float64")}) == 2


def calls_of_numpy() -> dict[str, tuple[bool, bool]]:
    """For each function of NumPy too: whether it calls NumPy's, and whether an array gives the bits of numbers."""
    answers = {}
    for name in (name for name in FUNCTIONS if hasattr(np, name)):
        function, calls = getattr(np, name), list[str]()

        def counted(*args: Any, function: Any = function, calls: Any = calls, **named: Any) -> Any:
            calls.append("call")
            return function(*args, **named)

        setattr(np, name, counted)
        arrays = [np.linspace(0.1, 0.9, 50)] * digests.ARITY[name]
        with np.errstate(all="ignore"):
            value = getattr(xp, name)(*arrays)
            bits = [getattr(xp, name)(*(float(array[at]) for array in arrays)) for at in range(50)]
        setattr(np, name, function)
        answers[name] = bool(calls), bool(np.array_equal(value, bits, equal_nan=True))
    return answers


def test_numpy_computes_the_functions_that_have_no_digest() -> None:
    """In a process of its own: functions of NumPy are looked up once."""
    code = "import json, test_digests; print(json.dumps(test_digests.calls_of_numpy()))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, check=True, stdout=subprocess.PIPE, text=True
    )
    answers = json.loads(done.stdout)
    assert len(answers) > 40
    # Python's operator computes the power.
    listed = {name for name in answers if name in digests.OF_NUMPY and name != "pow"}
    assert {name for name in listed if not answers[name][0]} == set()
    assert {name for name in answers if name not in digests.OF_NUMPY and not answers[name][1]} == set()
