//! The places of arrays on any device, remembered from one step to the next.

use std::sync::Mutex;

use pyo3::types::{PyBytes, PyBytesMethods, PyList};

use crate::arrays::memory::dlpack::Described;
use crate::arrays::memory::exporters::Exporters;
use crate::prelude::*;

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
    /// The places of arrays; `None` where an array does not tell its own without running Python, has its negative bit set, or lacks
    /// memory of its elements.
    #[staticmethod]
    pub fn of(arrays: &Bound<'_, PyList>) -> PyResult<Option<Self>> {
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
        let mut known = std::mem::take(&mut *locked(&self.0));
        let found = moved(&mut exporters, &mut known, arrays);
        *locked(&self.0) = known;
        Ok(found?.map(|moved| PyBytes::new(arrays.py(), moved.as_flattened().as_flattened())))
    }
}

impl Places {
    /// Whether no array has moved, or differs in anything else.
    pub fn are_there(&self, arrays: &Bound<'_, PyList>) -> PyResult<bool> {
        Ok(self.moved(arrays)?.is_some_and(|moved| moved.as_bytes().is_empty()))
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
        let object = array.as_ptr().addr();
        if object != before.object {
            if array.get_type_ptr().addr() != before.class || is_negated(exporters, &array)? {
                return Ok(None);
            }
            before.object = object;
        }
        let Some(address) = exporters.address(&array, &before.memory) else { return Ok(None) };
        if address != before.memory.address {
            moved.push([number, address].map(|number| (number as u64).to_ne_bytes()));
            before.memory.address = address;
        }
    }
    Ok(Some(moved))
}

fn place<'py>(exporters: &mut Exporters<'py>, array: &Object<'py>) -> PyResult<Option<DevicePlace>> {
    let memory = if is_negated(exporters, array)? { None } else { exporters.described(array) };
    let (object, class) = (array.as_ptr().addr(), array.get_type_ptr().addr());
    Ok(memory.map(|memory| DevicePlace { object, class, memory }))
}

fn is_negated<'py>(exporters: &mut Exporters<'py>, array: &Object<'py>) -> PyResult<bool> {
    exporters.of(array)?.torch.map_or(Ok(false), |torch| torch.is_negated(array))
}
