//! A slot of a parameter in host memory: its place, and whether it has moved.

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::error::Error;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyTupleMethods};

use super::requirements::{at, tuple, unexported, writable};
use crate::arrays::host_array::{HostArray, Numbers};
use crate::arrays::numpy::Numpy;
use crate::error::{IntoPython, to_python};

/// A slot, or a part of one: its name, its object, and the place of its memory.
pub(super) struct Slot {
    pub(super) name: String,
    pub(super) stated: Py<PyAny>,
    pub(super) numbers: Numbers,
}

impl Slot {
    pub(super) fn new(path: &str, name: String, stated: &Bound<'_, PyAny>) -> PyResult<Self> {
        let what = format!("slot {name}");
        let numbers = Numbers::of(stated)?.ok_or_else(|| to_python(&unexported(path, &what)))?;
        let mut numbers = numbers.map_err(|error| at(path, &what, error)).python()?;
        writable(path, &what, &numbers.buffer).python()?;
        numbers.set_written(stated);
        Ok(Self { name, stated: stated.clone().unbind(), numbers })
    }

    /// A slot of one number, of float64 or float32.
    pub(super) fn number(path: &str, name: String, stated: &Bound<'_, PyAny>) -> PyResult<Self> {
        let slot = Self::new(path, name, stated)?;
        match (slot.numbers.buffer.len(), slot.numbers.buffer.dtype()) {
            (1, Dtype::F64 | Dtype::F32) => Ok(slot),
            (length, dtype) => Err(to_python(&Error::Shape(format!(
                "{path}: the slot {} has {length} elements of {}: expected one number of float64 or float32",
                slot.name,
                dtype.name()
            )))),
        }
    }

    /// Whether its memory is where it was; runs no Python.
    #[inline]
    pub(super) fn lies(&self, numpy: &Numpy, py: Python<'_>) -> bool {
        let (stated, memory) = (self.stated.bind(py), &self.numbers.memory);
        match stated.cast::<PyTuple>() {
            Ok(parts) => parts.iter_borrowed().zip(memory).all(|(part, memory)| memory.is_still_of(numpy, &part)),
            Err(_) => memory[0].is_still_of(numpy, stated),
        }
    }

    /// Finds its memory again. Returns whether it has moved.
    pub(super) fn find(&mut self, py: Python<'_>, path: &str) -> PyResult<bool> {
        let found = Self::new(path, self.name.clone(), self.stated.bind(py))?;
        let expected = |numbers: &Numbers| (numbers.memory[0].shape().to_vec(), numbers.buffer.dtype());
        let ((shape, dtype), before) = (expected(&found.numbers), expected(&self.numbers));
        let name = &self.name;
        if shape != before.0 {
            let (found, expected) = (tuple(&shape), tuple(&before.0));
            let text = format!("{path}: the slot {name} has shape {found}, it had {expected}");
            return Err(to_python(&Error::Shape(text)));
        }
        if dtype != before.1 {
            let (found, expected) = (dtype.name(), before.1.name());
            let text = format!("{path}: the slot {name} has dtype {found}, it had {expected}");
            return Err(to_python(&Error::Dtype(text)));
        }
        let has_moved = found.numbers.buffer != self.numbers.buffer;
        *self = found;
        Ok(has_moved)
    }

    /// Whether Python may have run to find it.
    pub(super) fn is_after_python(&self) -> bool {
        self.numbers.memory.iter().any(HostArray::is_after_python)
    }

    /// Whether Python may have run to export it.
    pub(super) fn is_by_python(&self) -> bool {
        self.numbers.memory.iter().any(HostArray::is_by_python)
    }

    /// The number that is there.
    pub(super) fn read(&self) -> f64 {
        let pointer = self.numbers.buffer.pointer();
        // SAFETY: `number` saw one number of this dtype, and `look` that it still lies there, since when no Python has
        // run.
        unsafe {
            match self.numbers.buffer.dtype() {
                Dtype::F32 => f64::from(pointer.cast::<f32>().read_unaligned()),
                _ => pointer.cast::<f64>().read_unaligned(),
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "to the nearest number that the slot can have")]
    pub(super) fn write(&self, value: f64) {
        let pointer = self.numbers.buffer.pointer();
        // SAFETY: as above, and that it may be written.
        unsafe {
            match self.numbers.buffer.dtype() {
                Dtype::F32 => pointer.cast::<f32>().write_unaligned(value as f32),
                _ => pointer.cast::<f64>().write_unaligned(value),
            }
        }
    }
}
