"""Every function of the table, recorded: the bits of the function and of its derivatives, at the recorded arguments and at others."""

import warnings

import numpy as np
import pytest
from test_record import agrees, equal

import oxigrad as ox
from cases import CASES
from oxigrad import tree, xp


def total(function):
    """The sum of all results of a function."""
    return lambda *args: sum((xp.sum(xp.real(leaf) * 1.5) for leaf in tree.leaves(function(*args))), 0.0)


# Derivatives whose rules, step by step, give other last bits or 0-d arrays: the second call finds that, and they are not recorded.
OTHERWISE = ("negative-0d", "positive-0d", "atan2-broadcast-both")


def bits_apart(one, other):
    """Whether two results differ in their last bits alone."""
    pairs = zip(tree.leaves(one), tree.leaves(other), strict=True)
    return all(np.allclose(a, b, rtol=1e-14, atol=0.0) for a, b in pairs)


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
            first = g(*case.args)
            assert equal(first, f(*case.args)) or (str(case) in OTHERWISE and bits_apart(first, f(*case.args)))
            assert agrees(g, f, *moved)
            assert agrees(g, f, *case.args)
