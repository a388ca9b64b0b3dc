//! Calls of constants that are folded: none that could take minutes, or more memory than the machine has.

use oxigrad_core::array::shape::Shape;
use oxigrad_core::op::Op;
use pyo3::intern;
use pyo3::types::{PyBool, PyInt, PyList, PyString, PyTuple};

use crate::arrays::value::Value;
use crate::autodiff::graph::template::Template;
use crate::prelude::*;
use crate::recording::call::{Call, Function, shape_of};

/// The work of a call that is folded is at most this.
const MOST: u64 = 1 << 20;

/// Whether a call is known to take no more work than its arguments tell, and an elementwise one no more than `bytes`.
pub fn is_bounded(py: Python<'_>, call: &Call, read: &[&Value], bytes: usize) -> PyResult<bool> {
    let is_elementwise = match &call.function {
        Function::Op(op) | Function::Rule(op) | Function::Operator(op) => matches!(op, Op::Elementwise(_)),
        Function::Attribute(_) => true,
        Function::Method(name) => {
            if name.bind(py).to_cow()? == "repeat" {
                return Ok(false); // as often as the elements of an array tell
            }
            false
        }
        Function::Scatter | Function::Assign => false,
        Function::Object(function) => {
            let function = function.bind(py);
            if function.get_type().name()?.to_cow()? == "ufunc" {
                function.getattr(intern!(py, "signature"))?.is_none()
            } else if call.name.starts_with("operator.") {
                false
            } else {
                return Ok(false);
            }
        }
    };
    if is_elementwise && call.is_plain {
        let shapes = read.iter().filter_map(|value| shape_of(py, value)).collect::<Vec<_>>();
        if shapes.iter().any(|shape| !shape.is_empty()) {
            let shape = shapes.iter().try_fold(Shape::default(), |all, shape| all.broadcast(&Shape::new(shape)?));
            return Ok(shape.is_some_and(|shape| {
                shape.extents().iter().fold(8, |all: usize, extent| all.saturating_mul(*extent)) <= bytes
            }));
        }
    }
    let mut work = 1_u64;
    for part in call.args.iter().chain(&call.named) {
        work = work.saturating_mul(work_of(py, part, read)?);
    }
    Ok(work <= MOST)
}

/// The most work that an argument causes, as a factor: the elements of an array, and the product of all integers.
fn work_of(py: Python<'_>, part: &Template, read: &[&Value]) -> PyResult<u64> {
    let of = |work: u64, part: &Template| Ok::<_, PyErr>(work.saturating_mul(work_of(py, part, read)?));
    match part {
        Template::Value(value) => work_of_object(value.bind(py)),
        Template::Entry(at) => match read[*at] {
            Value::Object(value) => work_of_object(value.bind(py)),
            _ => Ok(1),
        },
        Template::Tuple(parts, _) | Template::List(parts) => parts.iter().try_fold(1, of),
        Template::Dict(items) => items.iter().map(|(_, part)| part).try_fold(1, of),
        Template::Slice(_) => Ok(1),
    }
}

fn work_of_object(value: &Object<'_>) -> PyResult<u64> {
    if let Some(shape) = shape_of(value.py(), &Value::new(value)) {
        return Ok(shape.iter().fold(1, |work: u64, extent| work.saturating_mul(*extent as u64)).max(1));
    }
    if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() {
        return Ok(value.abs()?.extract().unwrap_or(u64::MAX).max(1));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok((text.len()? as u64).max(1));
    }
    if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
        let mut work = (value.len()? as u64).max(1);
        for part in value.try_iter()? {
            work = work.saturating_mul(work_of_object(&part?)?);
        }
        return Ok(work);
    }
    Ok(1)
}
