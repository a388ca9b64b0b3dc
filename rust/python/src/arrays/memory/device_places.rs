//! The places of arrays on any device, remembered from one step to the next.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::arrays::memory::dlpack::Described;
use crate::arrays::memory::exporters::Exporters;

/// The places of a list of arrays.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct Places(Mutex<Vec<DevicePlace>>);

/// The addresses of an array's object and of its class, and the description of its memory.
struct DevicePlace {
    object: usize,
    class: usize,
    memory: Described,
}

#[pymethods]
impl Places {
    /// The places of arrays; `None` where an array does not tell its own without running Python, or has its negative bit
    /// set.
    #[staticmethod]
    fn of(arrays: &Bound<'_, PyList>) -> PyResult<Option<Self>> {
        let mut exporters = Exporters::default();
        let mut found = Vec::with_capacity(arrays.len());
        for array in arrays {
            let Some(place) = place(&mut exporters, &array)? else { return Ok(None) };
            found.push(place);
        }
        Ok(Some(Self(Mutex::new(found))))
    }

    /// The numbers of those arrays that have moved since the last call, in order, each with its new address, as bytes of
    /// unsigned numbers of 64 bits; `None` where an array differs in anything else. A new object is checked for its
    /// negative bit.
    fn moved<'py>(&self, arrays: &Bound<'py, PyList>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut exporters = Exporters::default();
        let mut known = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let found = moved(&mut exporters, &mut known, arrays);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(found?.map(|moved| PyBytes::new(arrays.py(), moved.as_flattened().as_flattened())))
    }
}

fn moved<'py>(
    exporters: &mut Exporters<'py>,
    known: &mut [DevicePlace],
    arrays: &Bound<'py, PyList>,
) -> PyResult<Option<Vec<[[u8; 8]; 2]>>> {
    let mut moved = Vec::new();
    if known.len() != arrays.len() {
        return Ok(None);
    }
    for (number, (before, array)) in known.iter_mut().zip(arrays).enumerate() {
        let now = if array.as_ptr().addr() == before.object {
            let Some(memory) = exporters.described(&array) else { return Ok(None) };
            DevicePlace { memory, ..*before }
        } else {
            let Some(now) = place(exporters, &array)? else { return Ok(None) };
            now
        };
        if now.class != before.class || !now.memory.is_like(&before.memory) {
            return Ok(None);
        }
        if now.memory.address() != before.memory.address() {
            moved.push([number, now.memory.address()].map(|number| (number as u64).to_ne_bytes()));
        }
        *before = now;
    }
    Ok(Some(moved))
}

fn place<'py>(exporters: &mut Exporters<'py>, array: &Bound<'py, PyAny>) -> PyResult<Option<DevicePlace>> {
    let negated = exporters.of(array)?.torch.map_or(Ok(false), |torch| torch.is_negated(array))?;
    let memory = if negated { None } else { exporters.described(array) };
    let (object, class) = (array.as_ptr().addr(), array.get_type_ptr().addr());
    Ok(memory.map(|memory| DevicePlace { object, class, memory }))
}
