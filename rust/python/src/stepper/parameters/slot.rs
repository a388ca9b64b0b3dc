//! A slot of a parameter in host memory: its place, and whether it has moved.

use oxigrad_core::array::buffer::Dtype;
use pyo3::types::{PyTuple, PyTupleMethods};

use super::requirements::{tuple, unexported, whole, writable};
use crate::arrays::memory::changes::Changed;
use crate::arrays::memory::host_array::FloatArray;
use crate::arrays::memory::place::Look;
use crate::prelude::*;

/// A slot: its name, its object (a tuple for codes: see [`FloatArray`]), and the numbers in memory.
pub struct Slot {
    pub name: String,
    stated: Py<PyAny>,
    pub numbers: FloatArray,
}

/// The array of a slot, or those of codes.
fn arrays_of<'py>(stated: &Object<'py>) -> Vec<Object<'py>> {
    stated.cast::<PyTuple>().map_or_else(|_| vec![stated.clone()], |arrays| arrays.iter().collect())
}

impl Slot {
    pub fn new(path: &str, name: String, stated: &Object<'_>) -> PyResult<Self> {
        let what = format!("slot {name}");
        let numbers = FloatArray::of(stated)?.ok_or_else(|| unexported(path, &what))?;
        let numbers = numbers.map_err(|error| error.at(format_args!("{path}: {what}"))).python()?;
        for (array, part) in arrays_of(stated).iter().zip(&numbers.parts) {
            whole(path, &what, array, &part.view)?;
        }
        writable(path, &what, &numbers.buffer).python()?;
        Ok(Self { name, stated: stated.clone().unbind(), numbers })
    }

    /// A slot of one number, of float64 or float32.
    pub fn number(path: &str, name: String, stated: &Object<'_>) -> PyResult<Self> {
        let slot = Self::new(path, name, stated)?;
        match (slot.numbers.buffer.len(), slot.numbers.buffer.dtype()) {
            (1, Dtype::F64 | Dtype::F32) => Ok(slot),
            (length, dtype) => Err(ShapeError::new_err(format!(
                "{path}: the slot {} has {length} elements of {}: expected one number of float64 or float32",
                slot.name,
                dtype.name()
            ))),
        }
    }

    /// Whether its memory is where it was; runs no Python.
    #[inline]
    pub fn is_there<'py>(&self, look: &mut Look<'py>, py: Python<'py>) -> bool {
        let (stated, parts) = (self.stated.bind(py), &self.numbers.parts);
        match stated.cast::<PyTuple>() {
            Ok(arrays) => arrays.iter().zip(parts).all(|(array, part)| look.is_at(&array, &part.view)),
            Err(_) => look.is_at(stated, &parts[0].view),
        }
    }

    /// Adds the slot to the changed tensors, unless it is codes.
    pub fn add_to<'py>(&self, changed: &mut Changed<'py>, look: &mut Look<'py>, py: Python<'py>) {
        changed.push(&mut look.exporters, self.stated.bind(py));
    }

    /// Finds its memory again. Returns whether it has moved.
    pub fn find(&mut self, py: Python<'_>, path: &str) -> PyResult<bool> {
        let slot = Self::new(path, self.name.clone(), self.stated.bind(py))?;
        let expected = |numbers: &FloatArray| (numbers.shape().to_vec(), numbers.buffer.dtype());
        let ((shape, dtype), before) = (expected(&slot.numbers), expected(&self.numbers));
        let name = &self.name;
        if shape != before.0 {
            let (found, expected) = (tuple(&shape), tuple(&before.0));
            let text = format!("{path}: the slot {name} has shape {found}, it had {expected}");
            return Err(ShapeError::new_err(text));
        }
        if dtype != before.1 {
            let (found, expected) = (dtype.name(), before.1.name());
            let text = format!("{path}: the slot {name} has dtype {found}, it had {expected}");
            return Err(DtypeError::new_err(text));
        }
        let has_moved = slot.numbers.buffer != self.numbers.buffer;
        *self = slot;
        Ok(has_moved)
    }

    /// Whether `is_there` is available for its arrays.
    pub fn can_tell<'py>(&self, look: &mut Look<'py>, py: Python<'py>) -> bool {
        arrays_of(self.stated.bind(py)).iter().all(|array| look.can_tell(array))
    }

    /// The number in its memory.
    pub fn read(&self) -> f64 {
        let pointer = self.numbers.buffer.pointer();
        // SAFETY: `number` checked that it is one number of this dtype, and `look` that it is still there; no Python
        // has run since.
        unsafe {
            match self.numbers.buffer.dtype() {
                Dtype::F32 => f64::from(pointer.cast::<f32>().read_unaligned()),
                _ => pointer.cast::<f64>().read_unaligned(),
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "to the nearest number that the slot can have")]
    pub fn write(&self, value: f64) {
        let pointer = self.numbers.buffer.pointer();
        // SAFETY: as above, and it is writable.
        unsafe {
            match self.numbers.buffer.dtype() {
                Dtype::F32 => pointer.cast::<f32>().write_unaligned(value as f32),
                _ => pointer.cast::<f64>().write_unaligned(value),
            }
        }
    }
}
