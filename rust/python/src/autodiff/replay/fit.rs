//! Cotangents in the shape and dtype of their values.

use oxigrad_core::op::{Op, Structured};
use pyo3::intern;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::arrays::compute::numpy_functions::{Extents, extents, integers, is_host, reshape};
use crate::arrays::compute::reduce::sum_to;
use crate::arrays::memory::numpy::are_one_dtype;
use crate::autodiff::operations::record::record;
use crate::callbacks;
use crate::prelude::*;

/// The cotangent `g` summed over what broadcasting repeated, in the dtype of the argument.
pub fn unbroadcast<'py>(g: Object<'py>, shape: &Object<'py>, dtype: &Object<'py>) -> PyResult<Object<'py>> {
    let py = g.py();
    if let Some(fitted) = sum_to(&g, shape, dtype)? {
        return Ok(fitted);
    }
    if are_one_dtype(&g.getattr(intern!(py, "dtype"))?, dtype)? && g.getattr(intern!(py, "shape"))?.eq(shape)? {
        return Ok(g);
    }
    match on_host(&g, shape, dtype)? {
        Some(fitted) => Ok(fitted),
        None => callbacks::unbroadcast(py, (g, shape, dtype)),
    }
}

/// The same of a NumPy array or scalar, in the form in which the Python layer gives it: an array, where [`unbroadcast`] may
/// give a scalar. `None` for any other.
pub fn on_host<'py>(g: &Object<'py>, shape: &Object<'py>, dtype: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    let py = g.py();
    if !is_host(g)? {
        return Ok(None);
    }
    let (from, to): (Extents, Extents) = (extents(g), integers(shape)?);
    if from == to {
        return match_dtype(g.clone(), dtype);
    }
    if !to.is_empty()
        && let Some(summed) = sum_to(g, shape, dtype)?
    {
        return Ok(Some(summed));
    }
    let Some(added) = from.len().checked_sub(to.len()) else { return Ok(None) };
    let differs = |axis: &usize| *axis < added || to[axis - added] != from[*axis];
    let axes: SmallVec<[usize; 6]> = (0..from.len()).filter(differs).collect();
    let attributes = PyDict::new(py);
    attributes.set_item(intern!(py, "axis"), PyTuple::new(py, axes)?)?;
    attributes.set_item(intern!(py, "keepdims"), false)?;
    let summed = record(py, Op::Structured(Structured::Sum), std::slice::from_ref(g), Some(&attributes))?;
    match_dtype(reshape(&summed, shape)?, dtype)
}

/// The cotangent `g`, a NumPy array or scalar, in the dtype of the argument, its real part where that is real; `None` if
/// the dtype is stated as a class, as that of a Python number is.
pub fn match_dtype<'py>(g: Object<'py>, dtype: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    let py = g.py();
    let of = |g: &Object<'py>| g.getattr(intern!(py, "dtype"));
    let own = of(&g)?;
    if own.is(dtype) || own.eq(dtype)? {
        return Ok(Some(g));
    }
    let Some(kind) = dtype.getattr_opt(intern!(py, "kind"))? else { return Ok(None) };
    let is_discarded = own.getattr(intern!(py, "kind"))?.eq("c")? && !kind.eq("c")?;
    let g = if is_discarded { g.getattr(intern!(py, "real"))? } else { g };
    if is_discarded && of(&g)?.eq(dtype)? {
        return Ok(Some(g));
    }
    g.call_method1(intern!(py, "astype"), (dtype,)).map(Some)
}
