//! Sums of NumPy arrays along axes that lie next to each other: a library asked for them takes longer to begin than most
//! take here, and adds up short rows one by one.

use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::array::sum::{self, Axes};
use oxigrad_core::op::Structured;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::arrays::array_pool;
use crate::arrays::contiguous::{Dense, scalar};
use crate::arrays::elementwise::DETACHED;
use crate::error::IntoPython;
use crate::threads::{isa, pool};

/// `sum` or `mean` of a NumPy array; none of anything else, or where the axes are not next to each other.
pub fn reduce<'py>(
    op: Structured,
    array: &Bound<'py, PyAny>,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (Some(dense), Some(named)) = (Dense::of(array), named) else { return Ok(None) };
    let py = array.py();
    let is_mean = match op {
        Structured::Sum => false,
        Structured::Mean if dense.length > 0 => true,
        _ => return Ok(None),
    };
    let axis = named.get_item(intern!(py, "axis"))?;
    let keepdims = named.get_item(intern!(py, "keepdims"))?.map_or(Ok(false), |keep| keep.is_truthy())?;
    let extents = dense.shape.extents();
    let Some(is_summed) = summed(axis.as_ref(), extents.len())? else { return Ok(None) };
    let kept = |(extent, is_summed): (&usize, &bool)| match is_summed {
        true if keepdims => Some(1),
        true => None,
        false => Some(*extent),
    };
    let shape: SmallVec<[usize; 4]> = extents.iter().zip(&is_summed).filter_map(kept).collect();
    fold(py, &dense, &is_summed, &shape, is_mean)
}

/// The sum over what broadcasting repeated: of the leading axes that `shape` has not, and of those where it has one
/// element. None where the array is not NumPy's or has another dtype.
pub fn sum_to<'py>(
    array: &Bound<'py, PyAny>,
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(dense) = Dense::of(array).filter(|dense| dense.has_dtype(dtype)) else { return Ok(None) };
    let (extents, shape) = (dense.shape.extents(), shape.extract::<Vec<usize>>()?);
    if *extents == shape[..] {
        return Ok(Some(array.clone()));
    }
    let Some(added) = extents.len().checked_sub(shape.len()) else { return Ok(None) };
    let differs = |(axis, extent): (usize, &usize)| axis < added || shape[axis - added] != *extent;
    let is_summed: SmallVec<[bool; 8]> = extents.iter().enumerate().map(differs).collect();
    fold(array.py(), &dense, &is_summed, &shape, false)
}

/// Which axes are summed; none where that is not plain.
fn summed(axis: Option<&Bound<'_, PyAny>>, dimensions: usize) -> PyResult<Option<SmallVec<[bool; 8]>>> {
    let all = || SmallVec::from_elem(true, dimensions);
    let Some(axis) = axis.filter(|axis| !axis.is_none()) else { return Ok(Some(all())) };
    let axes: PyResult<SmallVec<[isize; 4]>> = match axis.cast::<PyTuple>() {
        Ok(axes) => axes.iter().map(|axis| axis.extract()).collect(),
        Err(_) => axis.extract().map(|axis| SmallVec::from_elem(axis, 1)),
    };
    // What is no whole number, or has too many bits, is an error that the library states; another error is not ours.
    let axes = match axes {
        Err(error) if error.is_instance_of::<PyTypeError>(axis.py()) => return Ok(None),
        Err(error) if error.is_instance_of::<PyOverflowError>(axis.py()) => return Ok(None),
        axes => axes?,
    };
    Ok(marked(&axes, dimensions))
}

/// Which of the dimensions are among the axes; none where one of them is there twice, or none of them.
fn marked(axes: &[isize], dimensions: usize) -> Option<SmallVec<[bool; 8]>> {
    let mut is_marked = SmallVec::from_elem(false, dimensions);
    for axis in axes {
        let axis = if *axis < 0 { dimensions.checked_sub(axis.unsigned_abs())? } else { axis.unsigned_abs() };
        if std::mem::replace(is_marked.get_mut(axis)?, true) {
            return None;
        }
    }
    Some(is_marked)
}

fn fold<'py>(
    py: Python<'py>,
    dense: &Dense,
    is_summed: &[bool],
    shape: &[usize],
    is_mean: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(axes) = together(dense.shape.extents(), is_summed) else { return Ok(None) };
    let Some(from) = dense.buffer() else { return Ok(None) };
    #[allow(clippy::cast_precision_loss, reason = "no array has 2^53 elements")]
    let divisor = if is_mean { axes.count as f64 } else { 1.0 };
    let sum = |to: &Buffer| {
        let pool = if dense.length < DETACHED { None } else { pool() };
        // SAFETY: the arrays keep the memory; what is written is new, or nobody else's, or the number.
        let sum = || unsafe { sum::sum(&from, to, axes, divisor, isa(), pool.as_deref()) };
        if dense.length < DETACHED { sum() } else { py.detach(sum) }.python()
    };
    if !shape.is_empty() {
        let (result, to) = array_pool::take(py, shape, dense.dtype)?;
        return sum(&to).map(|()| Some(result));
    }
    let mut number = 0u64;
    sum(&Buffer::contiguous((&raw mut number).cast(), 1, dense.dtype, true).python()?)?;
    let bytes = number.to_ne_bytes();
    let value = match dense.dtype {
        Dtype::F32 => f64::from(f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
        _ => f64::from_ne_bytes(bytes),
    };
    Ok(Some(scalar(py, value, dense.dtype)))
}

/// The axes put together; none where those that are summed do not lie next to each other.
fn together(extents: &[usize], is_summed: &[bool]) -> Option<Axes> {
    let mut axes = Axes { outer: 1, count: 1, inner: 1 };
    for (extent, is_summed) in extents.iter().zip(is_summed).filter(|(extent, _)| **extent != 1) {
        match (is_summed, axes.count * axes.inner) {
            (true, _) if axes.inner != 1 => return None,
            (true, _) => axes.count *= extent,
            (false, 1) => axes.outer *= extent,
            (false, _) => axes.inner *= extent,
        }
    }
    Some(axes)
}
