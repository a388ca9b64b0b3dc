"""The special functions of the library `device`: an extension of its namespace, as `linalg` and `fft` are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import array_api_strict as strict
import numpy as np
import scipy.special

from device import DEVICE, of_strict


def _function(name: str) -> Callable[..., Any]:
    own = getattr(scipy.special, name)

    def of_arrays(*args: Any) -> Any:
        values = [x._array if hasattr(x, "_array") else x for x in args]
        return strict.asarray(np.asarray(own(*values)), device=DEVICE)

    return of_strict(of_arrays)


betainc, digamma, erf, erfc, erfinv, expit, gamma, gammainc, gammaincc, gammaln, iv, jn, polygamma, yn = map(
    _function,
    "betainc digamma erf erfc erfinv expit gamma gammainc gammaincc gammaln iv jn polygamma yn".split(),
)
