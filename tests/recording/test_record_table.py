"""Every function of the table, recorded: the bits of the function and of its derivatives, at the recorded arguments and at others."""

import warnings

import numpy as np
import pytest
from test_record import agrees

import oxigrad as ox
from cases import CASES
from oxigrad import tree, xp


def total(function):
    """The sum of all results of a function."""
    return lambda *args: sum((xp.sum(xp.real(leaf) * 1.5) for leaf in tree.leaves(function(*args))), 0.0)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_recordings_give_the_bits_of_functions_and_derivatives(case):
    both = ox.value_and_grad(total(case.function), argnums=tuple(range(len(case.args))))
    moved = [a * 1.001 if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in case.args]
    for f in (case.function, both):
        try:
            f(*case.args)
        except (TypeError, ValueError):  # of integers, for derivatives
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            g = ox.record(f)
            assert agrees(g, f, *case.args)
            assert agrees(g, f, *moved)
            assert agrees(g, f, *case.args)
