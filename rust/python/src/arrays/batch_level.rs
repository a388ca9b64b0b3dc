//! The base class of batched values, and of values of recordings.

use std::ffi::c_int;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi::Py_buffer;
use pyo3::intern;
use pyo3::types::PyTuple;

use crate::prelude::*;

/// The base class of batched values: it has the level of the `vmap` that made the value.
///
/// Levels and serial numbers of tapes come from one counter: of two nested transforms, the inner has the larger one.
#[pyclass(frozen, subclass, module = "oxigrad._core")]
pub struct BatchLevel {
    #[pyo3(get)]
    pub level: u64,
}

#[pymethods]
impl BatchLevel {
    #[new]
    #[pyo3(signature = (level, *_args))]
    fn new(level: u64, _args: &Bound<'_, PyTuple>) -> Self {
        Self { level }
    }

    /// No code gets the memory of such a value. One of a recording notes that it was asked for.
    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, view: *mut Py_buffer, _flags: c_int) -> PyResult<()> {
        if !view.is_null() {
            // SAFETY: Python passes the address of a buffer that the caller has.
            unsafe { (*view).obj = std::ptr::null_mut() };
        }
        if let Some(note) = slf.getattr_opt(intern!(slf.py(), "note_buffer"))? {
            note.call0()?;
        }
        let class = slf.get_type().name()?;
        Err(PyTypeError::new_err(format!("a bytes-like object is required, not '{}'", class.to_cow()?)))
    }
}
