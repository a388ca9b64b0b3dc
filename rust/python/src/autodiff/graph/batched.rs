//! Batched values: arrays with a leading axis that `vmap` hides. The class is in Python, over `BatchLevel`.

use std::sync::atomic::Ordering;

use oxigrad_core::op::Op;
use pyo3::intern;
use pyo3::types::{PyDict, PyFloat, PyTuple};
use smallvec::SmallVec;

use crate::arrays::batch_level::BatchLevel;
use crate::arrays::value::Value;
use crate::autodiff::graph::tape::SERIAL;
use crate::prelude::*;

/// The level of a new `vmap`.
#[pyfunction]
pub fn new_batch_level() -> u64 {
    SERIAL.fetch_add(1, Ordering::Relaxed)
}

/// Computes an op on batched values, if one among the arguments has a level above `serial`.
#[inline]
pub fn batched<'py>(
    py: Python<'py>,
    serial: Option<u64>,
    op: Op,
    args: &[Object<'py>],
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Object<'py>>> {
    let mut top: Option<&Bound<'py, BatchLevel>> = None;
    for arg in args.iter().filter_map(|arg| arg.cast::<BatchLevel>().ok()) {
        if top.is_none_or(|top| arg.get().level > top.get().level) {
            top = Some(arg);
        }
    }
    let Some(top) = top.filter(|top| Some(top.get().level) > serial) else { return Ok(None) };
    top.call_method1(intern!(py, "computed"), (op.name(), PyTuple::new(py, args)?, named)).map(Some)
}

/// Whether a value is batched by a `vmap` inside of the transform with this serial number.
pub fn is_above(value: &Object<'_>, serial: u64) -> bool {
    value.cast::<BatchLevel>().is_ok_and(|batched| batched.get().level > serial)
}

/// Whether a value is a number of Python in a recording: it has a level, and no dtype.
pub fn is_number(value: &Object<'_>) -> PyResult<bool> {
    Ok(value.cast::<BatchLevel>().is_ok() && !value.hasattr(intern!(value.py(), "dtype"))?)
}

/// Whether a value is a float of Python in a recording.
pub fn is_float(value: &Object<'_>) -> bool {
    let is = || Ok::<_, PyErr>(is_number(value)? && value.getattr("like")?.is_exact_instance_of::<PyFloat>());
    is().unwrap_or(false)
}

/// Values of which those of a recording that was refused are plain ones; `None` if there are none of these.
pub fn released<'v>(py: Python<'_>, values: impl Iterator<Item = &'v Value>) -> PyResult<Option<SmallVec<[Value; 4]>>> {
    let mut is_any = false;
    let plain = values.map(|value| match value {
        Value::Object(object) if object.bind(py).is_instance_of::<BatchLevel>() => {
            let plain = object.bind(py).getattr_opt(intern!(py, "released"))?.filter(|plain| !plain.is_none());
            is_any = is_any || plain.is_some();
            Ok(plain.map_or_else(|| value.share(py), |plain| Value::new(&plain)))
        }
        _ => Ok(value.share(py)),
    });
    let plain = plain.collect::<PyResult<_>>()?;
    Ok(is_any.then_some(plain))
}
