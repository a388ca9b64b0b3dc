//! Sums of NumPy arrays along adjacent axes: the call overhead of a library exceeds the time that most of them take
//! here, and libraries add up short rows one by one.

use oxigrad_core::array::buffer::Buffer;
use oxigrad_core::array::shape::Reduction;
use oxigrad_core::array::sum;
use oxigrad_core::autodiff::tape::Value as _;
use oxigrad_core::op::Structured;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::arrays::compute::array_pool;
use crate::arrays::compute::numpy_functions::{Extents, integers};
use crate::arrays::memory::contiguous::{Contiguous, scalar_of, scalar_of_bytes};
use crate::arrays::value::Value;
use crate::prelude::*;
use crate::threads::{isa, shared};

/// `sum` or `mean` of a NumPy array; `None` for any other object, or if the axes are not adjacent.
pub fn reduce<'py>(
    op: Structured,
    array: &Object<'py>,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Object<'py>>> {
    let (Some(given), Some(named)) = (Contiguous::of(array), named) else { return Ok(None) };
    let py = array.py();
    let is_mean = op == Structured::Mean;
    if !(op == Structured::Sum || is_mean && given.length > 0) {
        return Ok(None);
    }
    let axis = named.get_item(intern!(py, "axis"))?;
    let keepdims = named.get_item(intern!(py, "keepdims"))?.map_or(Ok(false), |keep| keep.is_truthy())?;
    let plan = match axis.filter(|axis| !axis.is_none()) {
        None => Reduction::over(given.shape.extents(), None, keepdims),
        Some(axis) => axes(&axis)?.and_then(|axes| Reduction::over(given.shape.extents(), Some(&axes), keepdims)),
    };
    plan.map_or(Ok(None), |plan| run(py, &given, &plan, is_mean))
}

/// The sum over the axes that broadcasting repeated: the leading axes that `shape` lacks, and those where it has one
/// element. `None` if the array is not a NumPy array, or has another dtype.
pub fn sum_to<'py>(array: &Object<'py>, shape: &Object<'py>, dtype: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    let Some(given) = Contiguous::of(array) else { return Ok(None) };
    if !given.has_dtype(dtype)? {
        return Ok(None);
    }
    let shape: Extents = integers(shape)?;
    if *given.shape.extents() == shape[..] {
        return Ok(Some(array.clone()));
    }
    let plan = Reduction::unbroadcast(given.shape.extents(), &shape);
    plan.map_or(Ok(None), |plan| run(array.py(), &given, &plan, false))
}

/// Whether all elements of a NumPy array, or a number, are finite, by their sum; false also where that overflows, and for any other
/// value.
pub fn is_finite(py: Python<'_>, value: &Value) -> PyResult<bool> {
    if let Some(scalar) = value.scalar() {
        return Ok(scalar.number.is_finite());
    }
    let array = value.object(py);
    let Some(given) = Contiguous::of(&array) else { return Ok(false) };
    let Some(plan) = Reduction::over(given.shape.extents(), None, false) else { return Ok(false) };
    let sum = run(py, &given, &plan, false)?;
    Ok(sum.and_then(|sum| scalar_of(&sum)).is_some_and(|sum| sum.number.is_finite()))
}

/// The axes of an argument `axis`; `None` if it is invalid, for which the library raises an error.
fn axes(axis: &Object<'_>) -> PyResult<Option<SmallVec<[isize; 4]>>> {
    let axes: PyResult<SmallVec<[isize; 4]>> = match axis.cast::<PyTuple>() {
        Ok(axes) => axes.iter().map(|axis| axis.extract()).collect(),
        Err(_) => axis.extract().map(|axis| SmallVec::from_elem(axis, 1)),
    };
    match axes {
        // Not whole numbers, or too large ones: the library raises. Other errors propagate.
        Err(error) if error.is_instance_of::<PyTypeError>(axis.py()) => Ok(None),
        Err(error) if error.is_instance_of::<PyOverflowError>(axis.py()) => Ok(None),
        axes => axes.map(Some),
    }
}

fn run<'py>(py: Python<'py>, given: &Contiguous<'_>, plan: &Reduction, is_mean: bool) -> PyResult<Option<Object<'py>>> {
    let Reduction { axes, shape } = plan;
    let Some(from) = given.buffer() else { return Ok(None) };
    #[allow(clippy::cast_precision_loss, reason = "no array has 2^53 elements")]
    let divisor = if is_mean { axes.count as f64 } else { 1.0 };
    let sum = |to: &Buffer| {
        // SAFETY: the arrays keep the memory; the output is new, has no other reference, or is the number.
        shared(py, from.len(), |pool| unsafe { sum::sum(&from, to, *axes, divisor, isa(), pool) })
    };
    if !shape.is_empty() {
        let (result, to) = array_pool::take(py, shape, from.dtype())?;
        return sum(&to).map(|()| Some(result));
    }
    let mut number = 0u64;
    sum(&Buffer::contiguous((&raw mut number).cast(), 1, from.dtype(), true).python()?)?;
    Ok(Some(scalar_of_bytes(py, number, from.dtype())))
}
