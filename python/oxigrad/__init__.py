"""Automatic differentiation and optimizers for any array library, with a Rust core."""

import importlib as _importlib
import typing as _stdlib_typing
from typing import Any as _Any

from oxigrad import _callbacks, tree, xp
from oxigrad._core import (
    AliasError,
    ArrayMemoryError,
    DerivativeError,
    DtypeError,
    InternalError,
    KeyPathError,
    NonFiniteError,
    RuleError,
    ShapeError,
    StateError,
    StructureError,
    Tape,
    TapeEndedError,
    TapeThreadError,
    Variable,
    __version__,
    get_num_threads,
    set_num_threads,
)
from oxigrad._names import unknown_name as _unknown_name
from oxigrad.autodiff.checkpoint import checkpoint
from oxigrad.autodiff.custom_rules import custom_vjp, define_jvp, define_vjp
from oxigrad.autodiff.implicit import implicit
from oxigrad.autodiff.inspection.debug_nans import debug_nans
from oxigrad.autodiff.jacobians import hessian, hvp, jacobian
from oxigrad.autodiff.products import elementwise_grad, ggnvp, hessian_diag, jacfwd, jacrev, linearize
from oxigrad.autodiff.transforms import grad, jvp, stop_gradient, value_and_grad, vjp
from oxigrad.autodiff.vmap import vmap
from oxigrad.tree import field

if _stdlib_typing.TYPE_CHECKING:
    from oxigrad import cuda as cuda
    from oxigrad import extend as extend
    from oxigrad import optim, schedules, testing
    from oxigrad import rules as rules
    from oxigrad import scipy as scipy
    from oxigrad.autodiff.inspection.support import support
    from oxigrad.autodiff.sparse.jacobians import sparse_hessian, sparse_jacobian
    from oxigrad.recording.cases import StaleRecordingError
    from oxigrad.recording.files import load_recording
    from oxigrad.recording.function import record
    from oxigrad.step.arrays.sparse_rows import SparseRows
    from oxigrad.step.state import state_dict as state

__all__ = [
    "AliasError",
    "ArrayMemoryError",
    "DerivativeError",
    "DtypeError",
    "InternalError",
    "KeyPathError",
    "NonFiniteError",
    "RuleError",
    "ShapeError",
    "SparseRows",
    "StaleRecordingError",
    "StateError",
    "StructureError",
    "Tape",
    "TapeEndedError",
    "TapeThreadError",
    "Variable",
    "__version__",
    "checkpoint",
    "custom_vjp",
    "debug_nans",
    "define_jvp",
    "define_vjp",
    "elementwise_grad",
    "field",
    "get_num_threads",
    "ggnvp",
    "grad",
    "hessian",
    "hessian_diag",
    "hvp",
    "implicit",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "load_recording",
    "optim",
    "record",
    "schedules",
    "set_num_threads",
    "sparse_hessian",
    "sparse_jacobian",
    "state",
    "stop_gradient",
    "support",
    "testing",
    "tree",
    "value_and_grad",
    "vjp",
    "vmap",
    "xp",
]

_callbacks.install()


def __dir__() -> list[str]:
    return __all__.copy()


# Imported when they are first used: derivatives alone need no optimizer, and SciPy may not be installed.
_LAZY = {
    "SparseRows": "oxigrad.step.arrays.sparse_rows",
    "cuda": "oxigrad.cuda",
    "extend": "oxigrad.extend",
    "optim": "oxigrad.optim",
    "AxisError": "oxigrad.ops.core.shapes",
    "MatrixShapeError": "oxigrad.ops.core.shapes",
    "StaleRecordingError": "oxigrad.recording.cases",
    "UnbatchedError": "oxigrad.ops.backends",
    "UnknownNameError": "oxigrad._names",
    "load_recording": "oxigrad.recording.files",
    "record": "oxigrad.recording.function",
    "rules": "oxigrad.rules",
    "schedules": "oxigrad.schedules",
    "scipy": "oxigrad.scipy",
    "sparse_hessian": "oxigrad.autodiff.sparse.jacobians",
    "sparse_jacobian": "oxigrad.autodiff.sparse.jacobians",
    "state": "oxigrad.step.state.state_dict",
    "step": "oxigrad.step",
    "support": "oxigrad.autodiff.inspection.support",
    "testing": "oxigrad.testing",
}


# What users of other libraries look for, and the modules that a program imports itself.
_ELSEWHERE = {
    **{name: f"import oxigrad.{name}" for name in ("autograd", "distributed", "keras", "launch", "optax", "torch")},
    "interop": "import oxigrad.interop.jax, or oxigrad.interop.torch",
    "GradientTape": "use oxigrad.Tape",
    "derivative": "use oxigrad.grad",
    "differentiate": "use oxigrad.grad",
    "gradient": "use oxigrad.grad; oxigrad.xp.gradient has differences of samples",
    "load": "an optimizer has a method load, and oxigrad.state the state of its parameters",
    "save": "an optimizer has a method save, and oxigrad.state the state of its parameters",
    "Tensor": "use arrays of NumPy, PyTorch or JAX as they are",
    "compile": "functions run as they are, and need no compilation",
    "jit": "functions run as they are, and need no compilation",
    "no_grad": "oxigrad.stop_gradient(x) is a plain value",
    "custom_gradient": "use oxigrad.custom_vjp",
    "nn": "a model is a tree of arrays: a dict, a list, or a dataclass",
    "numpy": "oxigrad.xp has its functions",
    "pmap": "oxigrad.distributed.run starts several workers",
    "tensor": "use arrays of NumPy, PyTorch or JAX as they are",
}


def _advice(name: str) -> dict[str, str]:
    """Advice for a name that the package lacks: its place in one of its modules, such as ``oxigrad.optim.Adam``."""
    modules = () if name.startswith("_") or name in _ELSEWHERE else ("oxigrad.optim", "oxigrad.schedules", "oxigrad.xp")
    places = [each for each in modules if name in _importlib.import_module(each).__all__]
    return {name: f"use {places[0]}.{name}"} if places else _ELSEWHERE


if not _stdlib_typing.TYPE_CHECKING:  # to type checkers, a name that is not there is an error

    def __getattr__(name: str) -> _Any:
        if name not in _LAZY:
            raise _unknown_name("oxigrad", name, [*__all__, *_LAZY], _advice(name))
        try:
            module = _importlib.import_module(_LAZY[name])
        except ModuleNotFoundError as error:  # of a library that is not installed
            raise AttributeError(f"module 'oxigrad' has no attribute {name!r}: {error}", name=name) from error
        value = globals()[name] = getattr(module, name, module)
        return value
