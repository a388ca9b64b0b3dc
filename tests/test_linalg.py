"""Linear algebra, products and Fourier transforms: derivatives from the table, other libraries, and where they end."""

import math
import warnings

import numpy as np
import pytest

import oxigrad as ox
from cases import Case
from cases_linalg import CASES, A, complex_normal, definite, regular, symmetric
from oxigrad import xp
from oxigrad.testing import check_grads

la = xp.linalg


@pytest.mark.parametrize("case", CASES, ids=str)
def test_derivatives_agree_with_central_differences(case: Case) -> None:
    check_grads(case.function, case.args, order=2)
