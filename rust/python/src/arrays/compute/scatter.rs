//! Sums of rows of NumPy arrays by integer indices: `numpy.add.at` takes several times as long.

use oxigrad_core::array::buffer::Buffer;
use oxigrad_core::array::scatter::Scatter;
use pyo3::types::{PyEllipsis, PySlice, PyTuple};
use smallvec::SmallVec;

use crate::arrays::memory::contiguous::Contiguous;
use crate::prelude::*;

/// Adds `g` to the elements of a key of `array`, which has one owner; returns false, with nothing written, where NumPy has to: for
/// arrays that are not contiguous or not alike, and for keys other than adjacent int64 arrays of one shape among full slices.
pub fn add_rows(array: &Object<'_>, key: &Object<'_>, g: &Object<'_>) -> PyResult<bool> {
    let mut parts: SmallVec<[Object<'_>; 4]> = match key.cast::<PyTuple>() {
        Ok(parts) => parts.iter().collect(),
        Err(_) => SmallVec::from_elem(key.clone(), 1),
    };
    if parts.last().is_some_and(|part| part.is(PyEllipsis::get(array.py()))) {
        parts.pop(); // the axes after the others are whole without it
    }
    let whole = PySlice::full(array.py());
    let is_whole = |part: &Object<'_>| Ok(part.cast_exact::<PySlice>().is_ok() && part.eq(&whole)?);
    let are_whole = parts.iter().map(is_whole).collect::<PyResult<SmallVec<[bool; 4]>>>()?;
    let outer = are_whole.iter().take_while(|is_whole| **is_whole).count();
    let count = are_whole[outer..].iter().take_while(|is_whole| !**is_whole).count();
    let inner = outer + count;
    let indices = &parts[outer..inner];
    let (Some(to), Some(from)) = (Contiguous::of(array), Contiguous::of(g)) else { return Ok(false) };
    let indices: Option<SmallVec<[Contiguous<'_>; 4]>> = indices.iter().map(Contiguous::of_indices).collect();
    let Some(indices) = indices.filter(|indices| !indices.is_empty()) else { return Ok(false) };
    let (extents, shape) = (to.shape.extents(), indices[0].shape.extents());
    if parts.len() > extents.len()
        || !are_whole[inner..].iter().all(|is_whole| *is_whole)
        || to.dtype != from.dtype
        || indices.iter().any(|each| each.shape.extents() != shape)
        || !from.shape.extents().iter().eq(extents[..outer].iter().chain(shape).chain(&extents[inner..]))
    {
        return Ok(false);
    }
    let buffers: Option<SmallVec<[Buffer; 4]>> = indices.iter().map(Contiguous::buffer).collect();
    let (Some(indices), Some(from), Some(to)) = (buffers, from.buffer(), to.buffer()) else { return Ok(false) };
    let product = |extents: &[usize]| extents.iter().product();
    let [before, after] = [&extents[..outer], &extents[inner..]].map(product);
    let scatter = Scatter { outer: before, extents: &extents[outer..inner], inner: after, indices: &indices };
    // SAFETY: the arrays keep their memory, `array` has no other owner, and the interpreter lock keeps others from writing.
    unsafe { scatter.add(&from, &to) }.python()
}
