//! Pool of unused arrays: a new array takes the memory of an unused one of the same shape and dtype.
//!
//! Fresh memory costs more than most ops: the system maps and zeroes each page when it is first touched.

use std::collections::VecDeque;
use std::sync::Mutex;

use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::array::shape::Shape;
use pyo3::exceptions::PyValueError;
use smallvec::SmallVec;

use crate::arrays::memory::contiguous::{Contiguous, unshared};
use crate::arrays::memory::host_array::HostArray;
use crate::arrays::memory::numpy::Numpy;
use crate::arrays::value::Value;
use crate::prelude::*;

/// The largest number of arrays in the pool, and of bytes in all of them; threads share the pool.
const COUNT: usize = 32;
const BYTES: usize = 64 << 20;

struct Array {
    object: Py<PyAny>,
    dtype: Dtype,
    shape: Shape,
    buffer: Buffer,
    bytes: usize,
}

struct Spare {
    arrays: VecDeque<Array>,
    bytes: usize,
}

static SPARE: Mutex<Spare> = Mutex::new(Spare { arrays: VecDeque::new(), bytes: 0 });

impl Spare {
    fn remove(&mut self, at: usize) -> Option<Array> {
        let array = self.arrays.remove(at)?;
        self.bytes -= array.bytes;
        Some(array)
    }
}

/// Adds an array to the pool, if nothing else refers to it.
pub fn keep(py: Python<'_>, value: Value) {
    let Value::Object(object) = value else { return };
    let Some(array) = unshared(object.bind(py)) else { return };
    let (Contiguous { shape, dtype, length, .. }, Some(buffer)) = (&array, array.buffer()) else { return };
    let (shape, dtype, length) = (*shape, *dtype, *length);
    let Some(bytes) = length.checked_mul(dtype.size()).filter(|bytes| *bytes <= BYTES) else { return };
    let mut evicted: SmallVec<[Array; 1]> = SmallVec::new(); // dropped after the lock
    let mut spare = locked(&SPARE);
    while spare.arrays.len() == COUNT || spare.bytes + bytes > BYTES {
        evicted.extend(spare.remove(0));
    }
    spare.bytes += bytes;
    spare.arrays.push_back(Array { object, dtype, shape, buffer, bytes });
    drop(spare);
}

/// An uninitialized array, taken from the pool if it has one of this shape and dtype.
pub fn take<'py>(py: Python<'py>, shape: &[usize], dtype: Dtype) -> PyResult<(Object<'py>, Buffer)> {
    let found = {
        let mut spare = locked(&SPARE);
        let fits = |array: &Array| array.dtype == dtype && array.shape.extents() == shape;
        spare.arrays.iter().rposition(fits).and_then(|at| spare.remove(at))
    };
    match found {
        Some(array) => Ok((array.object.into_bound(py), array.buffer)),
        None => fresh(py, shape, dtype),
    }
}

/// A newly allocated, uninitialized array.
pub fn fresh<'py>(py: Python<'py>, shape: &[usize], dtype: Dtype) -> PyResult<(Object<'py>, Buffer)> {
    let array = Numpy::get(py).create(py, shape, dtype)?;
    let buffer = match Contiguous::of(&array).and_then(|array| array.buffer()) {
        None => HostArray::of(&array)?.and_then(|array| array.view.buffer()),
        found => found,
    };
    buffer.map(|buffer| (array, buffer)).ok_or_else(|| PyValueError::new_err("a new array cannot be written"))
}
