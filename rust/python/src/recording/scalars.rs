//! Calls on scalars, numbers of Python and NumPy, which need no Python object.

use oxigrad_core::recording::ScalarOp;
use oxigrad_core::scalar::{Precision, Scalar};
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::arrays::memory::contiguous::element_of;
use crate::arrays::value::{Value, host_number};

/// The result of an op on values, of which one at least is a float of Python or NumPy; `None` where the function has to be called.
pub fn on_values(op: ScalarOp, py: Python<'_>, values: &[&Value]) -> Option<Scalar> {
    if !values.iter().any(|value| value.is_scalar()) {
        return None;
    }
    let scalars = values.iter().map(|value| scalar_in(py, value)).collect::<Option<SmallVec<[Scalar; 3]>>>()?;
    op.compute(&scalars)
}

/// The scalar of a value: a number, or an array of NumPy without dimensions.
#[inline]
pub fn scalar_in(py: Python<'_>, value: &Value) -> Option<Scalar> {
    match value {
        Value::Object(object) => {
            let object = object.bind(py);
            host_number(object).map(Scalar::weak).or_else(|| element_of(object))
        }
        _ => value.own_scalar(),
    }
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
