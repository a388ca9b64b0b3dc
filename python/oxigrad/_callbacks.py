"""The functions of the Python layer that the core calls, by the names that it knows them under.

The core looks up nothing else: it imports this module once, when the first of them is called.
"""

import sys
from types import ModuleType
from typing import Any

import numpy as np

from oxigrad import xp
from oxigrad.autodiff import vjp_rules
from oxigrad.autodiff.cotangents import apart as apart
from oxigrad.autodiff.cotangents import initial_cotangent as initial_cotangent
from oxigrad.autodiff.cotangents import unbroadcast as unbroadcast
from oxigrad.autodiff.cotangents import unbroadcast_to_number as unbroadcast_to_number
from oxigrad.autodiff.tangents import in_dtype as in_dtype
from oxigrad.autodiff.tangents import like_cotangent as like_cotangent
from oxigrad.autodiff.tangents import part as part
from oxigrad.autodiff.tangents import spread as spread
from oxigrad.autodiff.tangents import stack_parts as stack_parts
from oxigrad.autodiff.tangents import zero_cotangent as zero_cotangent
from oxigrad.autodiff.tangents import zero_tangent as zero_tangent
from oxigrad.ops import numpy_protocols
from oxigrad.ops.backends import array_of as array_of
from oxigrad.ops.backends import device_of as device_of
from oxigrad.ops.backends import dtype_of as dtype_of
from oxigrad.ops.backends import fingerprint as fingerprint
from oxigrad.ops.backends import implementation as implementation
from oxigrad.ops.backends import is_complex as is_complex
from oxigrad.ops.backends import size_of as size_of
from oxigrad.ops.indexed_update import At
from oxigrad.ops.indexed_update import assigned as assigned
from oxigrad.ops.indexed_update import fitted_in_place as fitted_in_place
from oxigrad.ops.numpy_protocols import op_of_ufunc as op_of_ufunc
from oxigrad.ops.primitives import index as index
from oxigrad.ops.primitives import matrix_transpose as matrix_transpose
from oxigrad.ops.primitives import zeros_like as zeros_like
from oxigrad.ops.variable_methods import complex_number as complex_number
from oxigrad.ops.variable_methods import formatted as formatted
from oxigrad.ops.variable_methods import is_formatting as is_formatting
from oxigrad.ops.variable_methods import iterate as iterate
from oxigrad.ops.variable_methods import iterate_reversed as iterate_reversed
from oxigrad.ops.variable_methods import rounded as rounded
from oxigrad.ops.variable_methods import transpose as transpose

at = At


def namespace_module(api_version: str | None) -> ModuleType:
    """`oxigrad.xp`, for ``__array_namespace__``."""
    if api_version is not None and api_version > np.__array_api_version__:
        raise ValueError(f"version {api_version!r} of the Array API standard is not supported")
    return sys.modules["oxigrad.xp"]


def array_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], named: dict[str, Any] | None) -> Any:
    """NumPy's protocol: ``np.sin(x)`` of a variable is ``xp.sin(x)``."""
    return numpy_protocols.array_ufunc(xp, ufunc, method, inputs, named or {})


def array_function(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """NumPy's protocol: ``np.sum(x)`` of a variable is ``xp.sum(x)``."""
    return numpy_protocols.array_function(xp, function, args, named)


def install() -> None:
    """Hands the core the tables of derivatives, once, when the package is imported."""
    vjp_rules.install()
