//! PyTorch: the bytes of a tensor's storage, read in each step without running Python.
//!
//! `DLPack` describes the elements of a tensor, not its storage, and a call of Python for each array takes as long as the update of a
//! small one. The stable C interface of PyTorch (`torch/csrc/inductor/aoti_torch/c/shim.h`) tells both; it takes the address of an
//! `at::Tensor`, which the object of a tensor holds. One of the files that touch foreign memory.

use std::ffi::c_void;

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::array::view::ArrayView;
use pyo3::exceptions::{PyAttributeError, PyOSError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::unless;

/// `aoti_torch_get_storage_size` and `aoti_torch_get_storage_offset`: writes a number of bytes or of elements, and returns 0.
type Read = unsafe extern "C" fn(*const c_void, *mut i64) -> i32;

/// The functions that read the storage of a tensor.
pub struct StorageReader {
    size: Read,
    offset: Read,
    /// The offset in bytes of the `at::Tensor` in the object of a tensor.
    field: usize,
}

impl StorageReader {
    /// Finds the functions, and the field, in which all tensors have the address that Python reads as `_cdata`; `None` where PyTorch
    /// has them not, or where they do not tell the storages of two tensors as they are.
    pub fn find(py: Python<'_>) -> PyResult<Option<Self>> {
        let torch = py.import("torch")?;
        let Some(library) = library(&torch)? else { return Ok(None) };
        let (Some(size), Some(offset)) =
            (function(&library, "aoti_torch_get_storage_size")?, function(&library, "aoti_torch_get_storage_offset")?)
        else {
            return Ok(None);
        };
        // Of 20 bytes, from the element 0 and 2 on.
        let on_host = PyDict::new(py);
        on_host.set_item("device", "cpu")?; // rather than on the default device of the program
        let tensor = torch.call_method("zeros", (5,), Some(&on_host))?.call_method0("float")?;
        let part = tensor.call_method1("narrow", (0, 2, 3))?;
        let Some(field) = field(&tensor)?.filter(|of| matches!(field(&part), Ok(Some(other)) if other == *of)) else {
            return Ok(None);
        };
        let reader = Self { size, offset, field };
        let is_right = reader.read(&tensor) == Some((20, 0)) && reader.read(&part) == Some((20, 2));
        Ok(is_right.then_some(reader))
    }

    /// The bytes of the storage of a tensor, and the number of elements before the first of the tensor.
    #[inline]
    fn read(&self, tensor: &Bound<'_, PyAny>) -> Option<(usize, usize)> {
        let (mut size, mut offset) = (0, 0);
        // SAFETY: `find` saw that objects of tensors, of which all classes have the same head, hold the address of the tensor in this
        // field, so that the field is an `at::Tensor`, an owning pointer; the interpreter lock keeps others from changing it.
        let results = unsafe {
            let handle = tensor.as_ptr().byte_add(self.field).cast_const().cast();
            ((self.size)(handle, &raw mut size), (self.offset)(handle, &raw mut offset))
        };
        if results == (0, 0) { Some((usize::try_from(size).ok()?, usize::try_from(offset).ok()?)) } else { None }
    }

    /// Whether all elements of a tensor, which a view describes, lie in its storage; `None` where it does not tell.
    #[inline]
    pub fn has_all(&self, tensor: &Bound<'_, PyAny>, view: &ArrayView) -> Option<bool> {
        let size = view.dtype.map(Dtype::size)?;
        let span = view.span(size);
        self.has(tensor, size, span.end - span.start)
    }

    /// The same of a tensor whose elements of some bytes take so many from the first to the last one: it has no strides below 0, so that
    /// the first is the lowest.
    #[inline]
    pub fn has(&self, tensor: &Bound<'_, PyAny>, size: usize, span: usize) -> Option<bool> {
        let (bytes, before) = self.read(tensor)?;
        let end = before.checked_mul(size)?.checked_add(span)?;
        Some(span == 0 || end <= bytes)
    }
}

/// The library that has the functions.
fn library<'py>(torch: &Bound<'py, PyModule>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = torch.py();
    let Some(extension) = torch.getattr_opt(intern!(py, "_C"))? else { return Ok(None) };
    let of_module = |module: &Bound<'py, PyAny>| module.getattr(intern!(py, "__file__"))?.extract::<String>();
    // Those that a library loads are searched with it, but on Windows.
    let file = if cfg!(windows) {
        format!("{}\\lib\\torch_cpu.dll", of_module(torch)?.trim_end_matches("__init__.py").trim_end_matches('\\'))
    } else {
        of_module(&extension)?
    };
    unless::<PyOSError, _>(py, py.import("ctypes")?.call_method1("CDLL", (file,)))
}

/// A function of the library; `None` where it is missing.
fn function(library: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Read>> {
    let py = library.py();
    let Some(function) = unless::<PyAttributeError, _>(py, library.getattr(name))? else { return Ok(None) };
    let ctypes = py.import("ctypes")?;
    let address = ctypes.call_method1("cast", (function, ctypes.getattr("c_void_p")?))?.getattr("value")?;
    let address = std::ptr::with_exposed_provenance::<c_void>(address.extract()?);
    // SAFETY: the stable C interface of PyTorch declares functions of these names with this signature, and the library stays loaded,
    // as its module does.
    Ok((!address.is_null()).then(|| unsafe { std::mem::transmute::<*const c_void, Read>(address) }))
}

/// The offset in the object of a tensor at which there is the address that Python reads as `_cdata`.
fn field(tensor: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    const WORD: usize = size_of::<usize>();
    let py = tensor.py();
    let Some(address) = tensor.getattr_opt(intern!(py, "_cdata"))? else { return Ok(None) };
    let (address, bytes): (usize, usize) =
        (address.extract()?, tensor.get_type().getattr(intern!(py, "__basicsize__"))?.extract()?);
    // SAFETY: an object has as many bytes as the basic size of its class, and begins at an aligned address.
    let word = |at: usize| unsafe { tensor.as_ptr().byte_add(at * WORD).cast::<usize>().read() };
    Ok((0..bytes / WORD).find(|at| word(*at) == address).map(|at| at * WORD))
}
