//! Calls on scalars, numbers of Python and NumPy, which need no Python object.

use oxigrad_core::recording::ScalarOp;
use oxigrad_core::scalar::{Precision, Scalar};
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::arrays::compute::run::scalar_in;
use crate::arrays::value::Value;

/// The result of an op on values, of which one at least is a float of Python or NumPy; `None` where the function has to be called.
pub fn on_values(op: ScalarOp, py: Python<'_>, values: &[&Value]) -> Option<Scalar> {
    if !values.iter().any(|value| value.is_scalar()) {
        return None;
    }
    let scalars = values.iter().map(|value| scalar_in(py, value)).collect::<Option<SmallVec<[Scalar; 3]>>>()?;
    op.compute(&scalars)
}

/// The precision of this name: "float" is that of Python's numbers.
pub fn precision_named(name: &str) -> Option<Precision> {
    match name {
        "float" => Some(Precision::Weak),
        "<f4" => Some(Precision::F32),
        "<f8" => Some(Precision::F64),
        _ => None,
    }
}
