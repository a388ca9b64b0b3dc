"""Primitives of HIPS autograd: each has a case of that name in the table, or a reason why it is left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cases import CASES as ELEMENTARY
from cases_linalg import CASES as LINALG
from cases_numpy import NUMPY
from libraries import function_of
from oxigrad.ops.protocols import numpy_protocols

# Its names, and those of the cases here.
NAMES = {
    **numpy_protocols._UFUNCS,
    "amax": "max",
    "amin": "min",
    "concatenate_args": "concat",
    "jv": "jn",
    "psi": "digamma",
    "__getitem__": "index",
    "untake": "take",
}
ITS_OWN = "a step of its own derivatives, whose ops are differentiated here"
TREES = "trees of any classes are arguments and results"
LEFT_OUT = {
    **dict.fromkeys(["add", "covector", "inner_prod", "mut_add", "scalar_mul", "sparse_add"], ITS_OWN),
    **dict.fromkeys(["dot_adjoint_0", "dot_adjoint_1", "tensordot_adjoint_0", "tensordot_adjoint_1"], ITS_OWN),
    **dict.fromkeys(["truncate_pad", "make_diagonal", "array_from_args", "_array_from_scalar_or_array"], ITS_OWN),
    **dict.fromkeys(["_make_dict", "make_sequence", "container_take", "container_untake"], TREES),
    **dict.fromkeys(["sequence_extend_left", "sequence_extend_right"], TREES),
    "fixed_point": "a function of autograd.misc, which the tests of `oxigrad.autograd` compare",
    "gammasgn": "a step: its derivative is zero; the sign of gamma(x)",
    "ive": "iv(v, x) * exp(-abs(x)), as far as iv does not overflow",
}


def _primitives(library: Any) -> Iterator[str]:
    for part in "numpy scipy.special scipy.linalg scipy.stats scipy.signal scipy.integrate misc.fixed_points".split():
        library(f"autograd.{part}")
    for primitive in library("autograd.core").primitive_vjps:
        # Without those of our bridge and of other tests, in the same process.
        if not str(getattr(primitive.fun, "__module__", "")).startswith(("oxigrad.", "test_")):
            yield str(primitive.__name__)


def test_every_primitive_of_hips_autograd_has_a_case_or_a_reason(library) -> None:
    found = set(_primitives(library))
    assert len(found) > 170
    cases = {function_of(case.name) for case in (*ELEMENTARY, *LINALG)} | {function_of(name) for name in NUMPY}
    missing = {name for name in found if NAMES.get(name, name) not in cases} - LEFT_OUT.keys()
    assert missing == set()


@pytest.mark.parametrize("name", LEFT_OUT)
def test_an_omitted_primitive_exists_in_autograd(library, name: str) -> None:
    assert name in set(_primitives(library))
