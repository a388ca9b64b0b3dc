//! Arguments of recorded calls: values in lists, tuples, dicts and slices.

use pyo3::types::{PyDict, PyList, PySlice, PyTuple};
use smallvec::SmallVec;

use crate::arrays::memory::numpy::{C_CONTIGUOUS, Numpy};
use crate::prelude::*;
use crate::recording::trace::state::TracedValue;

/// The value in the place of a leaf; `None` for the leaf itself.
type New<'a, 'py> = &'a mut dyn FnMut(&Object<'py>) -> PyResult<Option<Object<'py>>>;

/// The value with what ``new`` gives in the place of each leaf of lists, tuples, dicts and slices.
#[pyfunction]
#[pyo3(name = "with_leaves")]
pub fn with_leaves_of_python<'py>(value: &Object<'py>, new: &Object<'py>) -> PyResult<Object<'py>> {
    let value_of = with_leaves(value, &mut |leaf| new.call1((leaf,)).map(Some))?;
    Ok(value_of.unwrap_or_else(|| value.clone()))
}

/// The value with plain ones in place of traced ones, in lists, tuples, dicts and slices too.
#[pyfunction]
pub fn plain_of<'py>(value: &Object<'py>) -> PyResult<Object<'py>> {
    let plain = with_leaves(value, &mut |leaf| Ok(TracedValue::of(leaf).map(|traced| traced.plain(leaf.py()))))?;
    Ok(plain.unwrap_or_else(|| value.clone()))
}

/// The first traced value among arguments, in lists, tuples, dicts and slices too.
#[pyfunction]
pub fn traced_in<'py>(value: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    let mut first = None;
    is_any_leaf(value, &mut |leaf| {
        let is_traced = TracedValue::of(leaf).is_some();
        first = is_traced.then(|| leaf.clone());
        Ok(is_traced)
    })?;
    Ok(first)
}

/// As [`with_leaves_of_python`]; `None` where the value is the same. Lists and dicts are copied, since a function may change them.
pub fn with_leaves<'py>(value: &Object<'py>, new: New<'_, 'py>) -> PyResult<Option<Object<'py>>> {
    let py = value.py();
    if TracedValue::of(value).is_some() {
        return new(value);
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        let (parts, is_other) = parts_of(tuple.iter(), new)?;
        return if is_other { like(value, parts).map(Some) } else { Ok(None) };
    }
    if let Ok(list) = value.cast::<PyList>() {
        return like(value, parts_of(list.iter(), new)?.0).map(Some);
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let copy = PyDict::new(py);
        for (key, part) in dict {
            copy.set_item(key, with_leaves(&part, new)?.unwrap_or(part))?;
        }
        return Ok(Some(copy.into_any()));
    }
    if let Ok(slice) = value.cast::<PySlice>() {
        let (parts, is_other) = parts_of(bounds(slice)?.into_iter(), new)?;
        let slice = || py.get_type::<PySlice>().call1(PyTuple::new(py, parts)?);
        return if is_other { slice().map(Some) } else { Ok(None) };
    }
    new(value)
}

/// The parts of a container, and whether any is another one.
#[allow(clippy::type_complexity, reason = "parts of any number")]
fn parts_of<'py>(
    parts: impl Iterator<Item = Object<'py>>,
    new: New<'_, 'py>,
) -> PyResult<(SmallVec<[Object<'py>; 4]>, bool)> {
    let (mut all, mut is_other) = (SmallVec::new(), false);
    for part in parts {
        let other = with_leaves(&part, new)?;
        is_other = is_other || other.is_some();
        all.push(other.unwrap_or(part));
    }
    Ok((all, is_other))
}

/// A container of the class of another one.
fn like<'py>(container: &Object<'py>, parts: SmallVec<[Object<'py>; 4]>) -> PyResult<Object<'py>> {
    let py = container.py();
    if container.is_exact_instance_of::<PyTuple>() {
        return Ok(PyTuple::new(py, parts)?.into_any());
    }
    let list = PyList::new(py, &parts)?;
    if container.is_exact_instance_of::<PyList>() {
        return Ok(list.into_any());
    }
    let is_named = container.hasattr("_fields")?;
    if is_named { container.get_type().call1(list.to_tuple()) } else { container.get_type().call1((list,)) }
}

fn bounds<'py>(slice: &Bound<'py, PySlice>) -> PyResult<[Object<'py>; 3]> {
    Ok([slice.getattr("start")?, slice.getattr("stop")?, slice.getattr("step")?])
}

/// Whether any leaf of a value is such, in lists, tuples, dicts and slices too.
pub fn is_any_leaf<'py>(value: &Object<'py>, is: &mut dyn FnMut(&Object<'py>) -> PyResult<bool>) -> PyResult<bool> {
    if TracedValue::of(value).is_some() {
        return is(value);
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return is_any(tuple.iter(), is);
    }
    if let Ok(list) = value.cast::<PyList>() {
        return is_any(list.iter(), is);
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        return is_any(dict.iter().map(|(_, part)| part), is);
    }
    if let Ok(slice) = value.cast::<PySlice>() {
        return is_any(bounds(slice)?.into_iter(), is);
    }
    is(value)
}

fn is_any<'py>(
    mut parts: impl Iterator<Item = Object<'py>>,
    is: &mut dyn FnMut(&Object<'py>) -> PyResult<bool>,
) -> PyResult<bool> {
    parts.try_fold(false, |any, part| Ok(any || is_any_leaf(&part, is)?))
}

/// Whether the elements of an array lie in the order of their indices.
pub fn is_contiguous(array: &Object<'_>) -> PyResult<bool> {
    match Numpy::get(array.py()).fields(array) {
        Some(fields) => Ok(fields.flags & C_CONTIGUOUS != 0),
        None => array.getattr("flags")?.getattr("c_contiguous")?.is_truthy(),
    }
}

/// Whether an array is one element that is repeated.
pub fn is_repeated(array: &Object<'_>) -> PyResult<bool> {
    let (extents, strides): (Vec<usize>, Vec<isize>) = match Numpy::get(array.py()).fields(array) {
        Some(fields) => (fields.extents().collect(), fields.strides().collect()),
        None => (array.getattr("shape")?.extract()?, array.getattr("strides")?.extract()?),
    };
    Ok(!extents.is_empty() && !extents.contains(&0) && strides.iter().all(|stride| *stride == 0))
}
