//! Ops on NumPy's arrays, without the search for variables among their arguments: a replay has none.

use oxigrad_core::op::{Op, Structured};
use pyo3::intern;
use pyo3::types::{PyDict, PyTuple};

use crate::arrays::compute::elementwise::elementwise;
use crate::arrays::compute::numpy_functions::{broadcast_to, extents, is_array, reshape};
use crate::arrays::compute::products::matmul;
use crate::arrays::compute::reduce::reduce;
use crate::arrays::value::Value;
use crate::autodiff::replay::scatter::IndexKey;
use crate::prelude::*;

/// The result of an op on NumPy's arrays and numbers, as [`crate::autodiff::operations::evaluate`] computes it; `None` where that has to. `shape` is
/// that of the result, if it is known.
pub fn call(
    py: Python<'_>,
    op: Op,
    read: &[&Value],
    named: Option<&Py<PyDict>>,
    shape: Option<&[usize]>,
) -> PyResult<Option<Value>> {
    let is_whole = |value: &Value| matches!(value, Value::Object(object) if is_array(object.bind(py)));
    let is_number = |value: &Value| matches!(value, Value::Number(_));
    let is_elementwise = matches!(op, Op::Elementwise(_));
    if !read.iter().any(|value| is_whole(value))
        || !read.iter().all(|value| is_whole(value) || (is_elementwise && is_number(value)))
    {
        return Ok(None);
    }
    let object = |at: usize| match read.get(at) {
        Some(Value::Object(object)) => Some(object.bind(py)),
        _ => None,
    };
    let structured = match op {
        Op::Elementwise(_) if named.is_some() => return Ok(None),
        Op::Elementwise(op) => {
            return Ok(elementwise(py, op, read.iter().copied())?.map(|(result, _)| Value::from(result)));
        }
        Op::Structured(structured) => structured,
    };
    // The value of the only argument by name.
    let only = |name| match named.map(|named| named.bind(py)).filter(|named| named.len() == 1) {
        Some(named) => named.get_item(name),
        None => Ok(None),
    };
    let result = match (structured, object(0), object(1)) {
        (Structured::Matmul, Some(a), Some(b)) if read.len() == 2 => matmul(a, b)?,
        (Structured::Sum | Structured::Mean, Some(array), None) => {
            reduce(structured, array, named.map(|named| named.bind(py)))?
        }
        (Structured::Reshape, Some(array), None) => {
            only(intern!(py, "shape"))?.map(|shape| reshape(array, &shape)).transpose()?
        }
        // Views with more or fewer dimensions of size 1: NumPy's own functions for them take several times as long.
        (Structured::ExpandDims | Structured::Squeeze, Some(array), None) => {
            match shape.filter(|shape| is_of_size(array, shape)) {
                Some(shape) if only(intern!(py, "axis"))?.is_some() => {
                    Some(reshape(array, PyTuple::new(py, shape)?.as_any())?)
                }
                _ => None,
            }
        }
        (Structured::PermuteDims, Some(array), None) => {
            only(intern!(py, "axes"))?.map(|axes| array.call_method1(intern!(py, "transpose"), (axes,))).transpose()?
        }
        (Structured::BroadcastTo, Some(array), None) => broadcast_to(array, named.map(|named| named.bind(py)))?,
        (Structured::Index, Some(array), None) => {
            let key = only(intern!(py, "key"))?.filter(|key| matches!(IndexKey::of(key), Some(IndexKey::Basic(_))));
            key.map(|key| array.get_item(key)).transpose()?
        }
        _ => None,
    };
    Ok(result.map(Value::from))
}

/// Whether the array has the extents of a shape, apart from those of 1.
fn is_of_size(array: &Object<'_>, shape: &[usize]) -> bool {
    extents(array).into_iter().filter(|extent| *extent != 1).eq(shape.iter().copied().filter(|extent| *extent != 1))
}
