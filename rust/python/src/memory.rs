//! Host memory that Python objects export, as the core's buffers.

use oxigrad_core::buffer::{Buffer, Dtype};
use oxigrad_core::error::{Error, Result};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

/// An export of an object's memory: while it is held, the object keeps the memory where it is.
pub struct Export {
    export: PyUntypedBuffer,
    /// The memory as kernels see it; none where they cannot read its dtype.
    pub buffer: Option<Buffer>,
}

impl Export {
    /// The memory of an object; none where it exports none.
    pub fn of(object: &Bound<'_, PyAny>) -> Option<Self> {
        let export = PyUntypedBuffer::get(object).ok()?;
        let buffer = dtype(&export).and_then(|dtype| {
            let (pointer, writable) = (export.buf_ptr().cast(), !export.readonly());
            Buffer::strided(pointer, export.shape(), export.strides(), dtype, writable).ok()
        });
        Some(Self { export, buffer })
    }

    /// The memory of a NumPy array or scalar: what the replay may compute with itself, without asking a library.
    pub fn of_numpy(object: &Bound<'_, PyAny>) -> Option<Self> {
        if is_numpy(object).ok()? { Self::of(object) } else { None }
    }

    /// The memory as an array of a larger shape, repeated along the axes that broadcasting adds or stretches.
    pub fn broadcast(&self, shape: &[usize]) -> Option<Buffer> {
        let buffer = self.buffer.as_ref()?;
        let own = self.export.shape();
        if own == shape {
            return Some(buffer.clone());
        }
        let added = shape.len().checked_sub(own.len())?;
        let mut strides = vec![0; shape.len()];
        for (axis, (extent, stride)) in own.iter().zip(self.export.strides()).enumerate() {
            match (*extent, shape[added + axis]) {
                (extent, wanted) if extent == wanted => strides[added + axis] = *stride,
                (1, _) => {}
                _ => return None,
            }
        }
        Buffer::strided(self.export.buf_ptr().cast(), shape, &strides, buffer.dtype(), false).ok()
    }

    /// The extents of the array.
    pub fn shape(&self) -> &[usize] {
        self.export.shape()
    }

    /// Whether the memory may not be written.
    pub fn is_read_only(&self) -> bool {
        self.export.readonly()
    }

    /// The buffer, where kernels compute in its dtype.
    ///
    /// # Errors
    /// `Dtype` with the format, in the language of Python's `struct`.
    pub fn computing(&self) -> Result<&Buffer> {
        match &self.buffer {
            Some(buffer) if buffer.dtype().computes() => Ok(buffer),
            _ => {
                let format = self.export.format().to_string_lossy().into_owned();
                Err(Error::Dtype(format!(
                    "the memory has format {format:?}: expected float32 or float64 in native order"
                )))
            }
        }
    }
}

/// The dtype of a format of Python's `struct`; none where kernels cannot read it, another byte order among them.
fn dtype(export: &PyUntypedBuffer) -> Option<Dtype> {
    let native = if cfg!(target_endian = "little") { b'<' } else { b'>' };
    let letter = match export.format().to_bytes() {
        [letter] => *letter,
        [order, letter] if matches!(order, b'@' | b'=') || *order == native => *letter,
        _ => return None,
    };
    Some(match (letter, export.item_size()) {
        (b'f', 4) => Dtype::F32,
        (b'd', 8) => Dtype::F64,
        (b'?', 1) => Dtype::Bool,
        (b'b', 1) => Dtype::I8,
        (b'B', 1) => Dtype::U8,
        (b'h', 2) => Dtype::I16,
        (b'H', 2) => Dtype::U16,
        (b'i' | b'l' | b'q', 4) => Dtype::I32,
        (b'I' | b'L' | b'Q', 4) => Dtype::U32,
        (b'i' | b'l' | b'q', 8) => Dtype::I64,
        (b'I' | b'L' | b'Q', 8) => Dtype::U64,
        _ => return None,
    })
}

/// Whether the object is NumPy's own: an array (of no subclass) or a scalar.
fn is_numpy(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static TYPES: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();
    let py = object.py();
    let (array, scalar) = TYPES.get_or_try_init(py, || {
        let numpy = py.import("numpy")?;
        Ok::<_, PyErr>((numpy.getattr("ndarray")?.unbind(), numpy.getattr("generic")?.unbind()))
    })?;
    Ok(object.get_type().is(array) || object.is_instance(scalar.bind(py))?)
}

/// A new NumPy array, not yet filled, of a dtype that kernels compute in.
pub fn empty<'py>(py: Python<'py>, shape: &[usize], dtype: Dtype) -> PyResult<Bound<'py, PyAny>> {
    static EMPTY: PyOnceLock<(Py<PyAny>, Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();
    let (empty, single, double) = EMPTY.get_or_try_init(py, || {
        let numpy = py.import("numpy")?;
        let dtype = |name| numpy.getattr("dtype")?.call1((name,)).map(Bound::unbind);
        Ok::<_, PyErr>((numpy.getattr("empty")?.unbind(), dtype("float32")?, dtype("float64")?))
    })?;
    let dtype = if dtype == Dtype::F32 { single } else { double };
    empty.bind(py).call1((PyTuple::new(py, shape)?, dtype))
}

/// Whether the object is an array that lies in host memory and shares it through Python's buffer protocol.
#[pyfunction]
pub fn exports_memory(object: &Bound<'_, PyAny>) -> bool {
    PyUntypedBuffer::get(object).is_ok()
}

/// Whether kernels compute in the dtype of an object that exports its memory.
#[pyfunction]
pub fn computes(object: &Bound<'_, PyAny>) -> bool {
    Export::of(object).is_some_and(|export| export.computing().is_ok())
}

/// Whether the memory that an object exports may be written.
#[pyfunction]
pub fn is_writable(object: &Bound<'_, PyAny>) -> bool {
    Export::of(object).is_some_and(|export| !export.is_read_only())
}
