"""Automatic differentiation and optimizers for any array library, with a Rust core."""

from oxigrad import derivatives, optim, schedules, state, testing, tree, xp
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
from oxigrad.custom import checkpoint, custom_vjp, derivative
from oxigrad.jacobians import hessian, hvp, jacobian
from oxigrad.sparse import SparseRows
from oxigrad.transforms import grad, jvp, stop_gradient, value_and_grad, vjp
from oxigrad.tree import field

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
    "StateError",
    "StructureError",
    "Tape",
    "TapeEndedError",
    "TapeThreadError",
    "Variable",
    "__version__",
    "checkpoint",
    "custom_vjp",
    "derivative",
    "derivatives",
    "field",
    "get_num_threads",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "optim",
    "schedules",
    "set_num_threads",
    "state",
    "stop_gradient",
    "testing",
    "tree",
    "value_and_grad",
    "vjp",
    "xp",
]
