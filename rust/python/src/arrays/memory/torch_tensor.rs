//! PyTorch: a tensor's memory and its storage, read in each step without running Python.
//!
//! `DLPack` describes the elements of a tensor, not its storage, and takes five times as long as this; a call of Python for each array
//! takes as long as the update of a small one. The stable C interface of PyTorch (`torch/csrc/inductor/aoti_torch/c/shim.h`) reads both;
//! it takes the address of an `at::Tensor`, which the object of a tensor holds. One of the files that touch foreign memory.

use std::ffi::c_void;

use oxigrad_core::array::buffer::Dtype;
use pyo3::exceptions::{PyAttributeError, PyOSError};
use pyo3::intern;
use pyo3::types::PyDict;

use crate::arrays::memory::dlpack::{HOST, Tensor};
use crate::prelude::*;

/// A function that writes a property of a tensor, and returns 0.
type Read<T> = unsafe extern "C" fn(*const c_void, *mut T) -> i32;

/// The dtypes that kernels do not read, by the end of the name of the function that gives PyTorch's number of it, with the code and
/// the bits of `DLPack`.
const COMPLEX: [(&str, (u8, u8)); 2] = [("complex64", (5, 64)), ("complex128", (5, 128))];
/// The devices, as those dtypes, with the numbers of `DLPack`.
const DEVICES: [(&str, i32); 2] = [("cpu", HOST), ("cuda", 2)];

/// The functions that read a tensor.
pub struct TensorReader {
    layout: Read<i32>,
    device: Read<i32>,
    device_index: Read<i32>,
    dtype: Read<i32>,
    dimensions: Read<i64>,
    sizes: Read<*const i64>,
    strides: Read<*const i64>,
    storage_bytes: Read<i64>,
    storage_offset: Read<i64>,
    data: Read<*mut u8>,
    strided: i32,
    /// PyTorch's numbers of the dtypes, floating-point ones first, each with the code and the bits of `DLPack`, and of the devices.
    dtypes: [(i32, (u8, u8)); Dtype::ALL.len() + COMPLEX.len()],
    devices: [i32; DEVICES.len()],
    /// The offset in bytes of the `at::Tensor` in the object of a tensor.
    field: usize,
}

/// The storage of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Storage {
    bytes: usize,
    /// The number of elements before the first of the tensor.
    before: usize,
}

impl Storage {
    /// Whether it has elements of some bytes that take so many from the first to the last one, with no stride below 0.
    #[inline]
    pub fn has(self, size: usize, span: usize) -> bool {
        let end = self.before.checked_mul(size).and_then(|start| start.checked_add(span));
        span == 0 || end.is_some_and(|end| end <= self.bytes)
    }
}

impl TensorReader {
    /// Finds the functions, and the field, in which all tensors have the address that Python reads as `_cdata`; `None` where PyTorch
    /// lacks one, or where they do not describe two tensors as they are.
    pub fn find(py: Python<'_>) -> PyResult<Option<Self>> {
        let torch = py.import("torch")?;
        let Some(library) = Library::of(&torch)? else { return Ok(None) };
        let on_host = PyDict::new(py);
        on_host.set_item("device", "cpu")?; // rather than on the default device of the program
        let tensor = torch.call_method("zeros", (5,), Some(&on_host))?.call_method0("float")?;
        let part = tensor.call_method1("narrow", (0, 2, 3))?;
        let Some(field) = field(&tensor)?.filter(|of| matches!(field(&part), Ok(Some(other)) if other == *of)) else {
            return Ok(None);
        };
        let Some(reader) = unless::<PyAttributeError, _>(py, Self::of(&library, field))? else { return Ok(None) };
        let is_right = reader.reads(&tensor, 5, 0) && reader.reads(&part, 3, 2);
        let data = |object| reader.tensor(object).map(|tensor| tensor.data.addr());
        let is_part = data(&tensor).and_then(|address| address.checked_add(8)) == data(&part);
        Ok((is_right && is_part).then_some(reader))
    }

    /// Raises `AttributeError` where PyTorch lacks a function.
    fn of(library: &Library<'_>, field: usize) -> PyResult<Self> {
        let (mut dtypes, mut devices) = ([(0, (0, 0)); Dtype::ALL.len() + COMPLEX.len()], [0; DEVICES.len()]);
        let read = Dtype::ALL.iter().rev().map(|dtype| (dtype.name(), dtype.to_dlpack()));
        for (to, (name, code)) in dtypes.iter_mut().zip(read.chain(COMPLEX)) {
            *to = (library.number(&format!("aoti_torch_dtype_{name}"))?, code);
        }
        for (to, (name, _)) in devices.iter_mut().zip(DEVICES) {
            *to = library.number(&format!("aoti_torch_device_type_{name}"))?;
        }
        Ok(Self {
            layout: library.read("aoti_torch_get_layout")?,
            device: library.read("aoti_torch_get_device_type")?,
            device_index: library.read("aoti_torch_get_device_index")?,
            dtype: library.read("aoti_torch_get_dtype")?,
            dimensions: library.read("aoti_torch_get_dim")?,
            sizes: library.read("aoti_torch_get_sizes")?,
            strides: library.read("aoti_torch_get_strides")?,
            storage_bytes: library.read("aoti_torch_get_storage_size")?,
            storage_offset: library.read("aoti_torch_get_storage_offset")?,
            data: library.read("aoti_torch_get_data_ptr")?,
            strided: library.number("aoti_torch_layout_strided")?,
            dtypes,
            devices,
            field,
        })
    }

    /// Whether a tensor is read as one of so many elements of float32, with so many others before them in its storage.
    fn reads(&self, object: &Object<'_>, length: usize, before: usize) -> bool {
        let storage = Storage { bytes: 20, before };
        // SAFETY: the pointers are valid, as the object is not changed meanwhile.
        let is_read = |tensor: Tensor| unsafe { tensor.contiguous(&[length], Dtype::F32).is_some() };
        self.storage(object) == Some(storage) && self.tensor(object).is_some_and(is_read)
    }

    #[inline]
    fn read<T: Default>(&self, object: &Object<'_>, function: Read<T>) -> Option<T> {
        let mut value = T::default();
        self.fill(object, function, &mut value).then_some(value)
    }

    #[inline]
    fn fill<T>(&self, object: &Object<'_>, function: Read<T>, value: &mut T) -> bool {
        // SAFETY: `find` saw that objects of tensors, of which all classes have the same head, hold the address of the tensor in this
        // field, so that the field is an `at::Tensor`, an owning pointer; the interpreter lock keeps others from changing it.
        unsafe { function(object.as_ptr().byte_add(self.field).cast_const().cast(), value) == 0 }
    }

    /// The storage of a tensor.
    #[inline]
    pub fn storage(&self, object: &Object<'_>) -> Option<Storage> {
        let bytes = self.read(object, self.storage_bytes)?;
        let before = self.read(object, self.storage_offset)?;
        Some(Storage { bytes: usize::try_from(bytes).ok()?, before: usize::try_from(before).ok()? })
    }

    /// The description of a tensor, whose pointers are valid until the object is changed; `None` where only an export could tell.
    #[inline]
    pub fn tensor(&self, object: &Object<'_>) -> Option<Tensor> {
        // An error would be printed by PyTorch: those that have no memory to be read are seen first.
        if self.read(object, self.layout)? != self.strided {
            return None;
        }
        let device = self.read(object, self.device)?;
        let (_, device_type) = DEVICES[self.devices.iter().position(|known| *known == device)?];
        let dtype = self.read(object, self.dtype)?;
        let (_, (code, bits)) = *self.dtypes.iter().find(|(known, _)| *known == dtype)?;
        let (mut data, mut shape, mut strides) = (std::ptr::null_mut(), std::ptr::null(), std::ptr::null());
        let is_read = self.fill(object, self.sizes, &mut shape)
            && self.fill(object, self.strides, &mut strides)
            && self.fill(object, self.data, &mut data);
        is_read.then_some(Tensor {
            data,
            device_type,
            device_id: self.read(object, self.device_index)?.max(0), // -1 for the host
            dimensions: i32::try_from(self.read(object, self.dimensions)?).ok()?,
            code,
            bits,
            lanes: 1,
            shape,
            strides,
            byte_offset: 0,
        })
    }
}

/// The library that has the functions.
struct Library<'py>(Object<'py>);

impl<'py> Library<'py> {
    fn of(torch: &Bound<'py, PyModule>) -> PyResult<Option<Self>> {
        let py = torch.py();
        let Some(extension) = torch.getattr_opt(intern!(py, "_C"))? else { return Ok(None) };
        let of_module = |module: &Object<'py>| module.getattr(intern!(py, "__file__"))?.extract::<String>();
        // Those that a library loads are searched with it, but on Windows.
        let file = if cfg!(windows) {
            let folder = of_module(torch)?;
            format!("{}\\lib\\torch_cpu.dll", folder.trim_end_matches("__init__.py").trim_end_matches('\\'))
        } else {
            of_module(&extension)?
        };
        Ok(unless::<PyOSError, _>(py, py.import("ctypes")?.call_method1("CDLL", (file,)))?.map(Self))
    }

    /// The address of a function.
    fn address(&self, name: &str) -> PyResult<*const c_void> {
        let ctypes = self.0.py().import("ctypes")?;
        let address =
            ctypes.call_method1("cast", (self.0.getattr(name)?, ctypes.getattr("c_void_p")?))?.getattr("value")?;
        Ok(std::ptr::with_exposed_provenance(address.extract()?))
    }

    /// A function that reads a property of a tensor.
    fn read<T>(&self, name: &str) -> PyResult<Read<T>> {
        let address = self.address(name)?;
        // SAFETY: the stable C interface of PyTorch declares the functions of these names with this signature, each for its type, and the
        // library stays loaded, as its module does.
        Ok(unsafe { std::mem::transmute::<*const c_void, Read<T>>(address) })
    }

    /// The constant that a function returns.
    fn number(&self, name: &str) -> PyResult<i32> {
        let address = self.address(name)?;
        // SAFETY: as above; the function takes nothing.
        Ok(unsafe { std::mem::transmute::<*const c_void, unsafe extern "C" fn() -> i32>(address)() })
    }
}

/// The offset in the object of a tensor at which there is the address that Python reads as `_cdata`.
fn field(tensor: &Object<'_>) -> PyResult<Option<usize>> {
    const WORD: usize = size_of::<usize>();
    let py = tensor.py();
    let Some(address) = tensor.getattr_opt(intern!(py, "_cdata"))? else { return Ok(None) };
    let (address, bytes): (usize, usize) =
        (address.extract()?, tensor.get_type().getattr(intern!(py, "__basicsize__"))?.extract()?);
    // SAFETY: an object has as many bytes as the basic size of its class, and begins at an aligned address.
    let word = |at: usize| unsafe { tensor.as_ptr().byte_add(at * WORD).cast::<usize>().read() };
    Ok((0..bytes / WORD).find(|at| word(*at) == address).map(|at| at * WORD))
}
