//! Checksums of memory.

use oxigrad_core::simd::dispatch;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};

use crate::prelude::*;

/// The CRC-32C of contiguous bytes, continuing from that of the bytes before them.
///
/// >>> from oxigrad._core import crc32c
/// >>> hex(crc32c(b"123456789"))
/// '0xe3069283'
#[pyfunction]
#[pyo3(signature = (data, start = 0))]
pub fn crc32c(py: Python<'_>, data: &Object<'_>, start: u32) -> PyResult<u32> {
    let buffer = contiguous(data, "data")?;
    let (address, length) = (buffer.buf_ptr().cast::<u8>() as usize, buffer.len_bytes());
    // SAFETY: the buffer is contiguous, and held until the end of the function.
    Ok(py.detach(|| unsafe { dispatch::crc32c(start, address as *const u8, length) }))
}

/// Copies contiguous bytes into as many others, which do not overlap them. Returns their CRC-32C, as `crc32c`.
///
/// >>> from oxigrad._core import copied_crc32c
/// >>> target = bytearray(9)
/// >>> hex(copied_crc32c(b"123456789", target)), target
/// ('0xe3069283', bytearray(b'123456789'))
#[pyfunction]
#[pyo3(signature = (source, target, start = 0))]
pub fn copied_crc32c(py: Python<'_>, source: &Object<'_>, target: &Object<'_>, start: u32) -> PyResult<u32> {
    let (source, target) = (contiguous(source, "source")?, contiguous(target, "target")?);
    let length = source.len_bytes();
    if target.readonly() {
        return Err(PyBufferError::new_err("target is read-only: expected bytes that can be written"));
    }
    if target.len_bytes() != length {
        return Err(PyValueError::new_err(format!("target has {} bytes: expected {length}", target.len_bytes())));
    }
    let (from, to) = (source.buf_ptr() as usize, target.buf_ptr() as usize);
    if from < to + length && to < from + length {
        return Err(PyValueError::new_err("target overlaps source: expected separate bytes"));
    }
    // SAFETY: both buffers are contiguous, of this length and held until the end of the function; they do not overlap, and the
    // target is writable.
    Ok(py.detach(|| unsafe { dispatch::copied_crc32c(start, from as *const u8, to as *mut u8, length) }))
}

fn contiguous(data: &Object<'_>, name: &str) -> PyResult<PyBuffer<u8>> {
    let buffer = PyBuffer::<u8>::get(data)?;
    if buffer.is_c_contiguous() {
        Ok(buffer)
    } else {
        Err(PyBufferError::new_err(format!("{name} is not contiguous: expected contiguous bytes")))
    }
}
