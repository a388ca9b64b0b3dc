//! The names that most modules use.

pub use pyo3::prelude::*;

pub use crate::error::{
    AliasError, ArrayMemoryError, DerivativeError, DtypeError, IntoPython, Items, KeyPathError, RuleError, ShapeError,
    StateError, StructureError, TapeEndedError, TapeThreadError, items, locked, set_locked, unless,
};

/// The outcome of a visit by the garbage collector.
pub type Visited = Result<(), pyo3::PyTraverseError>;

/// A Python object of any class.
pub type Object<'py> = Bound<'py, PyAny>;
