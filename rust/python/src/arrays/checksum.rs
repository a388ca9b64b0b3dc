//! Checksums of memory.

use oxigrad_core::simd::dispatch;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;

use crate::prelude::*;

/// The CRC-32C of contiguous bytes. ``start`` is the checksum of the bytes before them.
///
/// >>> from oxigrad._core import crc32c
/// >>> hex(crc32c(b"123456789"))
/// '0xe3069283'
#[pyfunction]
#[pyo3(signature = (data, start = 0))]
pub fn crc32c(py: Python<'_>, data: &Object<'_>, start: u32) -> PyResult<u32> {
    let buffer = PyBuffer::<u8>::get(data)?;
    if !buffer.is_c_contiguous() {
        return Err(PyBufferError::new_err("data is not contiguous: expected contiguous bytes"));
    }
    let (address, length) = (buffer.buf_ptr().cast::<u8>() as usize, buffer.len_bytes());
    // SAFETY: the buffer is contiguous, and held until the end of the function.
    Ok(py.detach(|| unsafe { dispatch::crc32c(start, address as *const u8, length) }))
}
