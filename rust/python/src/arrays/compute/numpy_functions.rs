//! Functions on NumPy's arrays that NumPy computes.

use pyo3::intern;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::arrays::compute::elementwise::repeat_to;
use crate::arrays::memory::contiguous::scalar_of;
use crate::arrays::memory::numpy::Numpy;
use crate::prelude::*;

/// The extents of an array: seldom more than six.
pub type Extents = SmallVec<[usize; 6]>;

/// Whether a value is a NumPy array, not of a subclass, or a NumPy scalar.
#[inline]
pub fn is_host(value: &Object<'_>) -> PyResult<bool> {
    let numpy = Numpy::get(value.py());
    Ok(numpy.is_plain_array(value) || scalar_of(value).is_some() || numpy.is_scalar(value)?)
}

/// Whether a value is a NumPy array, not of a subclass.
#[inline]
pub fn is_array(value: &Object<'_>) -> bool {
    Numpy::get(value.py()).is_plain_array(value)
}

/// The extents of a NumPy array; none for a scalar.
pub fn extents(value: &Object<'_>) -> Extents {
    Numpy::get(value.py()).fields(value).map_or_else(SmallVec::new, |fields| fields.extents().collect())
}

/// The integers of a sequence of them.
pub fn integers<T: for<'a, 'py> FromPyObject<'a, 'py>>(sequence: &Object<'_>) -> PyResult<SmallVec<[T; 6]>> {
    if let Ok(tuple) = sequence.cast::<PyTuple>() {
        return tuple.iter_borrowed().map(|each| each.extract().map_err(Into::into)).collect();
    }
    sequence.try_iter()?.map(|each| each?.extract().map_err(Into::into)).collect()
}

/// The array in another shape.
pub fn reshape<'py>(array: &Object<'py>, shape: &Object<'py>) -> PyResult<Object<'py>> {
    array.call_method1(intern!(array.py(), "reshape"), (shape,))
}

/// An array with a new dimension of size 1, at a position counted from the end.
pub fn insert_axis<'py>(array: &Object<'py>, behind: usize) -> PyResult<Object<'py>> {
    let mut shape = extents(array);
    shape.insert((shape.len() + 1).saturating_sub(behind), 1);
    reshape(array, PyTuple::new(array.py(), shape)?.as_any())
}

/// The dimensions in another order.
pub fn permute_dims<'py>(array: &Object<'py>, axes: &[usize]) -> PyResult<Object<'py>> {
    let py = array.py();
    let last = axes.len().wrapping_sub(2);
    let is_transposed = |(at, axis): (usize, &usize)| *axis == if at < last { at } else { 2 * last + 1 - at };
    if axes.len() > 1 && axes.iter().enumerate().all(is_transposed) {
        return array.getattr(intern!(py, "mT"));
    }
    array.call_method1(intern!(py, "transpose"), (PyTuple::new(py, axes)?,))
}

/// `broadcast_to` of a NumPy array or scalar; `None` for any other object.
pub fn broadcast_to<'py>(array: &Object<'py>, named: Option<&Bound<'py, PyDict>>) -> PyResult<Option<Object<'py>>> {
    let (Some(named), true) = (named, is_host(array)?) else { return Ok(None) };
    let Some(shape) = named.get_item(intern!(array.py(), "shape"))? else { return Ok(None) };
    repeated(array, &integers::<usize>(&shape)?).map(Some)
}

/// The NumPy array or scalar repeated to a shape: a copy if that is small, else a view that is read-only.
pub fn repeated<'py>(array: &Object<'py>, shape: &[usize]) -> PyResult<Object<'py>> {
    let py = array.py();
    if let Some(repeated) = repeat_to(array, shape)? {
        return Ok(repeated);
    }
    let (numpy, to) = (Numpy::get(py), PyTuple::new(py, shape)?);
    if !extents(array).is_empty() {
        return numpy.broadcast_to.bind(py).call1((array, to));
    }
    let array = if is_array(array) { array.clone() } else { numpy.asarray(array)? };
    let strides = PyTuple::new(py, std::iter::repeat_n(0, shape.len()))?;
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let view = numpy.ndarray.bind(py).call1((to, dtype, array, 0, strides))?;
    view.getattr(intern!(py, "flags"))?.setattr(intern!(py, "writeable"), false)?;
    Ok(view)
}

/// An array of exactly NumPy's type as a view that is read-only, for functions of users; any other object as it is.
pub fn lent<'py>(array: &Object<'py>) -> PyResult<Object<'py>> {
    if !is_array(array) {
        return Ok(array.clone());
    }
    let view = array.call_method0(intern!(array.py(), "view"))?;
    view.call_method1(intern!(array.py(), "setflags"), (false,))?;
    Ok(view)
}

/// One, in the form of a scalar or an array without dimensions of a real floating dtype; `None` for anything else.
pub fn one_like<'py>(value: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    let py = value.py();
    if !is_host(value)? || !extents(value).is_empty() {
        return Ok(None);
    }
    let dtype = value.getattr(intern!(py, "dtype"))?;
    if !dtype.getattr(intern!(py, "kind"))?.eq("f")? {
        return Ok(None);
    }
    let one = dtype.getattr(intern!(py, "type"))?.call1((1,))?;
    if is_array(value) { reshape(&one, PyTuple::empty(py).as_any()).map(Some) } else { Ok(Some(one)) }
}

/// Zeros of the shape and dtype of an array; `None` for anything but a NumPy array.
pub fn zeros_like<'py>(value: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    if !is_array(value) {
        return Ok(None);
    }
    let (py, of) = (value.py(), |name| value.getattr(name));
    Numpy::get(py).zeros.bind(py).call1((of(intern!(py, "shape"))?, of(intern!(py, "dtype"))?)).map(Some)
}
