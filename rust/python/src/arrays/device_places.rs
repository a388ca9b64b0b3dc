//! The places of arrays on any device, remembered from one step to the next.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arrays::dlpack::{Described, Exporters};

/// The places of a list of arrays: of each the address of the object, and the description of its memory.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct Places(Mutex<Vec<(usize, Described)>>);

#[pymethods]
impl Places {
    /// The places of arrays; `None` where an array does not tell its own without running Python, or has its negative bit
    /// set.
    #[staticmethod]
    fn of(arrays: &Bound<'_, PyList>) -> PyResult<Option<Self>> {
        let mut exporters = Exporters::default();
        let mut found = Vec::with_capacity(arrays.len());
        for array in arrays {
            let Some(described) = place(&mut exporters, &array)? else { return Ok(None) };
            found.push((array.as_ptr().addr(), described));
        }
        Ok(Some(Self(Mutex::new(found))))
    }

    /// Whether these arrays are in the same places. A new object is checked for its negative bit.
    fn hold(&self, arrays: &Bound<'_, PyList>) -> PyResult<bool> {
        let mut exporters = Exporters::default();
        let known = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut all = known.len() == arrays.len();
        for ((address, described), array) in known.iter().zip(arrays) {
            if !all {
                break;
            }
            let found = if array.as_ptr().addr() == *address {
                exporters.described(&array)
            } else {
                place(&mut exporters, &array)?
            };
            all = found.is_some_and(|found| found == *described);
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(all)
    }
}

fn place<'py>(exporters: &mut Exporters<'py>, array: &Bound<'py, PyAny>) -> PyResult<Option<Described>> {
    let negated = exporters.of(array)?.torch.map_or(Ok(false), |torch| torch.is_negated(array))?;
    Ok(if negated { None } else { exporters.described(array) })
}
