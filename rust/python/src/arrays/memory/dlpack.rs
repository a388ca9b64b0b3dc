//! `DLPack`: host arrays of other libraries, without a copy and with every dtype that they have.
//!
//! The structures are those of the header of `DLPack` 1 and, for older exporters, of the version before. What an
//! exporter states is checked before it is used, and its memory is kept until the `Export` is dropped. One of the files that touch
//! foreign memory.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::array::shape::contiguous_strides;
use oxigrad_core::array::view::ArrayView;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_SetName, PyObject};
use pyo3::intern;
use pyo3::types::{PyDict, PyType};
use smallvec::SmallVec;

use crate::error::unless_refused;
use crate::prelude::*;

/// `kDLCPU`.
pub const HOST: i32 = 1;
const MAJOR: u32 = 1;
/// `DLPACK_FLAG_BITMASK_READ_ONLY` and `DLPACK_FLAG_BITMASK_IS_COPIED`: a write to a copy would have no effect.
const NOT_WRITABLE: u64 = 0b11;

/// `DLTensor`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Tensor {
    pub data: *mut u8,
    pub device_type: i32,
    pub device_id: i32,
    pub dimensions: i32,
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
    pub shape: *const i64,
    pub strides: *const i64,
    pub byte_offset: u64,
}

/// `DLManagedTensor`, from before version 1.
#[repr(C)]
struct Unversioned {
    tensor: Tensor,
    _context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    major: u32,
    _minor: u32,
    _context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: Tensor,
}

/// The head of `DLPackExchangeAPI`, a table of functions that lives as long as the process. Addresses that are not
/// used here are numbers.
#[repr(C)]
pub struct Exchange {
    major: u32,
    _minor: u32,
    _previous: usize,
    _allocate: usize,
    from_object: Option<unsafe extern "C" fn(*mut PyObject, *mut *mut Versioned) -> c_int>,
    _to_object: usize,
    look: Option<unsafe extern "C" fn(*mut PyObject, *mut Tensor) -> c_int>,
}

/// An array that another library has exported, with its memory kept: dropping it returns the array to the exporter.
pub struct Export {
    managed: Managed,
    /// Whether Python code ran to export it, which may have changed other arrays.
    pub by_python: bool,
}

enum Managed {
    Versioned(NonNull<Versioned>),
    Unversioned(NonNull<Unversioned>),
}

// SAFETY: its pointers are only read while a view is made, and DLPack lets any thread call a deleter.
unsafe impl Send for Export {}
// SAFETY: as above.
unsafe impl Sync for Export {}

impl Drop for Export {
    fn drop(&mut self) {
        // SAFETY: the exporter passed ownership of the structure, and this is the only place that returns it.
        unsafe {
            match self.managed {
                Managed::Versioned(of) => of.as_ref().deleter.map(|delete| delete(of.as_ptr())),
                Managed::Unversioned(of) => of.as_ref().deleter.map(|delete| delete(of.as_ptr())),
            };
        }
    }
}

impl Export {
    /// Whether this is the array of a view; runs no Python.
    pub fn is(&self, view: &ArrayView) -> bool {
        let Managed::Versioned(of) = &self.managed else { return false };
        // SAFETY: the structure is valid until its deleter is called, which is done when this is dropped.
        unsafe {
            let of = of.as_ref();
            of.major == MAJOR && (of.flags & NOT_WRITABLE == 0) == view.writable && of.tensor.is(view)
        }
    }

    /// The array; `None` if it is not in host memory, or its description is invalid.
    pub fn view(&self) -> Option<ArrayView> {
        // SAFETY: the structures are valid until their deleter is called, which is done when this is dropped.
        let (tensor, writable) = unsafe {
            match &self.managed {
                // In another major version, only the version and the deleter have the same offsets.
                Managed::Versioned(of) if of.as_ref().major != MAJOR => return None,
                Managed::Versioned(of) => (&of.as_ref().tensor, of.as_ref().flags & NOT_WRITABLE == 0),
                // Unknown; NumPy assumes read-only too.
                Managed::Unversioned(of) => (&of.as_ref().tensor, false),
            }
        };
        if tensor.device_type != HOST {
            return None;
        }
        let dimensions = usize::try_from(tensor.dimensions).ok()?;
        // SAFETY: an exporter gives an extent for each dimension, and a stride, or null for all of them.
        let (shape, strides) = unsafe { (numbers(tensor.shape, dimensions)?, numbers(tensor.strides, dimensions)) };
        let extents =
            shape.iter().map(|extent| usize::try_from(*extent).ok()).collect::<Option<SmallVec<[usize; 4]>>>()?;
        let size = isize::from(tensor.bits.div_ceil(8)).checked_mul(isize::try_from(tensor.lanes).ok()?)?;
        let strides = match strides {
            Some(strides) => strides.iter().map(|stride| isize::try_from(*stride).ok()?.checked_mul(size)).collect(),
            None => contiguous(&extents, usize::try_from(size).ok()?),
        };
        let pointer = tensor.first(&extents)?;
        Some(ArrayView { pointer, extents, strides: strides?, dtype: tensor.dtype(), writable })
    }
}

impl Exchange {
    /// The description of an object, borrowed by the function of the table that runs no Python; `None` where only an export
    /// could tell. Its pointers are valid until the object is changed.
    ///
    /// # Safety
    /// The object is of a type that this is the table of.
    #[inline]
    pub unsafe fn borrowed(&self, object: &Object<'_>) -> Option<Tensor> {
        let (look, mut tensor) = (self.look?, MaybeUninit::<Tensor>::uninit());
        // SAFETY: the object is of the type of the function, and the interpreter lock is held.
        if unsafe { look(object.as_ptr(), tensor.as_mut_ptr()) } != 0 {
            drop(PyErr::take(object.py()));
            return None;
        }
        // SAFETY: the result says that the function has filled it in.
        Some(unsafe { tensor.assume_init() })
    }

    /// Whether the table has the function that borrows a description.
    pub fn can_tell(&self) -> bool {
        self.look.is_some()
    }
}

/// The description of an array, wherever it lies, to be compared with a later one.
pub struct Described {
    /// The address of the first element.
    pub address: usize,
    device: (i32, i32),
    dtype: (u8, u8, u16),
    shape: SmallVec<[i64; 4]>,
    /// None where they are those of elements one after the other.
    strides: Option<SmallVec<[i64; 4]>>,
}

impl Tensor {
    /// The description; `None` if it is invalid.
    ///
    /// # Safety
    /// There is an extent and a stride (or null for all) for each dimension.
    pub unsafe fn described(&self) -> Option<Described> {
        let dimensions = usize::try_from(self.dimensions).ok()?;
        // SAFETY: the caller's promise.
        let (shape, strides) = unsafe { (numbers(self.shape, dimensions)?, numbers(self.strides, dimensions)) };
        let (device, dtype) = ((self.device_type, self.device_id), (self.code, self.bits, self.lanes));
        Some(Described { address: self.address()?, device, dtype, shape, strides })
    }

    /// The bytes of an element, and those from the first element to the end of the last one, if no stride is below 0; `None` if the
    /// description is invalid.
    ///
    /// # Safety
    /// There is an extent and a stride (or null for all) for each dimension.
    #[inline]
    pub unsafe fn size_and_span(&self) -> Option<(usize, usize)> {
        let size = usize::from(self.bits.div_ceil(8)).checked_mul(usize::from(self.lanes))?;
        let (mut last, mut count) = (0_i64, 1_i64);
        for axis in (0..usize::try_from(self.dimensions).ok()?).rev() {
            // SAFETY: the caller's promise.
            let extent = unsafe { self.shape.add(axis).read_unaligned() };
            if extent == 0 {
                return Some((size, 0));
            }
            let stride = if self.strides.is_null() {
                count
            } else {
                // SAFETY: as above.
                unsafe { self.strides.add(axis).read_unaligned() }
            };
            last = last.checked_add(extent.checked_sub(1)?.checked_mul(stride)?)?;
            count = count.checked_mul(extent)?;
        }
        Some((size, usize::try_from(last).ok()?.checked_add(1)?.checked_mul(size)?))
    }

    /// An array of this shape and dtype in host memory, whose elements lie one after the other, if this is one.
    ///
    /// # Safety
    /// There is an extent and a stride (or null for all) for each dimension, and the memory can be written.
    #[inline]
    pub unsafe fn contiguous(&self, shape: &[usize], dtype: Dtype) -> Option<ArrayView> {
        let (pointer, extents) = (self.first(shape)?, SmallVec::from_slice(shape));
        let strides = contiguous(shape, dtype.size())?;
        let view = ArrayView { pointer, extents, strides, dtype: Some(dtype), writable: true };
        // SAFETY: the caller's promise.
        unsafe { self.is(&view) }.then_some(view)
    }

    /// The first element; `None` outside of the address space, and where an array of these extents has none.
    #[inline]
    fn first(&self, extents: &[usize]) -> Option<*mut u8> {
        let offset = usize::try_from(self.byte_offset).ok()?;
        self.data.addr().checked_add(offset)?;
        (!self.data.is_null() || extents.contains(&0)).then(|| self.data.wrapping_add(offset))
    }

    /// The address of the first element.
    fn address(&self) -> Option<usize> {
        self.data.addr().checked_add(usize::try_from(self.byte_offset).ok()?)
    }

    /// The address, if this differs from a description by it at most.
    ///
    /// # Safety
    /// There is an extent and a stride (or null for all) for each dimension.
    #[inline]
    pub unsafe fn address_if_like(&self, before: &Described) -> Option<usize> {
        // SAFETY: the caller's promise, for the numbers of each dimension.
        let are = |pointer: *const i64, expected: &[i64]| unsafe {
            !pointer.is_null()
                && expected.iter().enumerate().all(|(at, number)| pointer.add(at).read_unaligned() == *number)
        };
        let is_like = (self.device_type, self.device_id) == before.device
            && (self.code, self.bits, self.lanes) == before.dtype
            && usize::try_from(self.dimensions) == Ok(before.shape.len())
            && (before.shape.is_empty() || are(self.shape, &before.shape))
            && match &before.strides {
                Some(strides) => strides.is_empty() || are(self.strides, strides),
                None => self.strides.is_null(),
            };
        if is_like { self.address() } else { None }
    }

    /// Whether this describes the same array; runs no Python.
    ///
    /// # Safety
    /// There is an extent and a stride (or null for all) for each dimension.
    #[inline]
    pub unsafe fn is(&self, view: &ArrayView) -> bool {
        let size = i64::from(self.bits.div_ceil(8));
        // SAFETY: the caller's promise, for an axis below the number of dimensions.
        let number = |pointer: *const i64, axis: usize| unsafe { pointer.add(axis).read_unaligned() };
        let extent = |axis, expected: usize| i64::try_from(expected).is_ok_and(|of| number(self.shape, axis) == of);
        // The stride of an axis of one element is arbitrary, and may differ between descriptions.
        let stride = |axis, expected: isize| {
            view.extents[axis] < 2
                || number(self.strides, axis).checked_mul(size).is_some_and(|of| isize::try_from(of) == Ok(expected))
        };
        let dimensions = view.extents.len();
        self.device_type == HOST
            && usize::try_from(self.dimensions) == Ok(dimensions)
            && usize::try_from(self.byte_offset)
                .is_ok_and(|offset| self.data.addr().wrapping_add(offset) == view.pointer.addr())
            && self.dtype() == view.dtype
            && (dimensions == 0 || !self.shape.is_null() && !self.strides.is_null())
            && view.extents.iter().enumerate().all(|(axis, expected)| extent(axis, *expected))
            && view.strides.iter().enumerate().all(|(axis, expected)| stride(axis, *expected))
    }

    fn dtype(&self) -> Option<Dtype> {
        if self.lanes == 1 { Dtype::from_dlpack(self.code, self.bits) } else { None }
    }
}

/// # Safety
/// There are `count` numbers at the pointer, unless it is null.
unsafe fn numbers(pointer: *const i64, count: usize) -> Option<SmallVec<[i64; 4]>> {
    if pointer.is_null() {
        return (count == 0).then(SmallVec::new);
    }
    // SAFETY: the caller's promise, for each of the numbers.
    Some((0..count).map(|at| unsafe { pointer.add(at).read_unaligned() }).collect())
}

/// The strides in bytes of an array whose elements lie one after the other.
fn contiguous(shape: &[usize], size: usize) -> Option<SmallVec<[isize; 4]>> {
    contiguous_strides(shape, size).map(|strides| SmallVec::from_slice(&strides))
}

/// The table of functions of a class.
pub fn table(class: &Bound<'_, PyType>) -> PyResult<Option<&'static Exchange>> {
    let Some(capsule) = class.getattr_opt(intern!(class.py(), "__dlpack_c_exchange_api__"))? else { return Ok(None) };
    let Some(table) = pointer::<Exchange>(&capsule, c"dlpack_exchange_api") else { return Ok(None) };
    // SAFETY: a capsule of this name holds such a table, which lives as long as the process; each version of the table
    // begins with its version.
    let table: &'static Exchange = unsafe { table.as_ref() };
    Ok((table.major == MAJOR).then_some(table))
}

/// The array of an object by the table of its class; `None` if it exports none.
pub fn by_exchange(exchange: &Exchange, object: &Object<'_>) -> PyResult<Option<Export>> {
    let (Some(from_object), mut made) = (exchange.from_object, std::ptr::null_mut()) else { return Ok(None) };
    // SAFETY: the object is of the type of the table, and the interpreter lock is held.
    if unsafe { from_object(object.as_ptr(), &raw mut made) } != 0 {
        let Some(error) = PyErr::take(object.py()) else { return Ok(None) };
        return unless_refused(object.py(), Err(error));
    }
    Ok(NonNull::new(made).map(|made| Export { managed: Managed::Versioned(made), by_python: false }))
}

/// The array of an object by its methods; `None` if it exports none in host memory.
pub fn by_capsule(object: &Object<'_>) -> PyResult<Option<Export>> {
    let py = object.py();
    let exported = |managed| Export { managed, by_python: true };
    let Some(device) = object.getattr_opt(intern!(py, "__dlpack_device__"))? else { return Ok(None) };
    if device.call0()?.get_item(0)?.extract::<i32>()? != HOST {
        return Ok(None);
    }
    let export = object.getattr(intern!(py, "__dlpack__"))?;
    let named = PyDict::new(py);
    named.set_item(intern!(py, "max_version"), (MAJOR, 0))?;
    let capsule = match unless::<PyTypeError, _>(py, export.call((), Some(&named)))? {
        Some(capsule) => capsule,
        None => export.call0()?, // exporters of before version 1 do not take the argument
    };
    if let Some(made) = pointer(&capsule, c"dltensor_versioned") {
        return Ok(take(&capsule, c"used_dltensor_versioned").then(|| exported(Managed::Versioned(made))));
    }
    let Some(made) = pointer(&capsule, c"dltensor") else { return Ok(None) };
    Ok(take(&capsule, c"used_dltensor").then(|| exported(Managed::Unversioned(made))))
}

/// The pointer in a capsule of this name.
fn pointer<T>(capsule: &Object<'_>, name: &'static CStr) -> Option<NonNull<T>> {
    // SAFETY: the object is alive, and the interpreter checks that it is a capsule of this name.
    unsafe {
        let is_valid = PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) != 0;
        if is_valid { NonNull::new(PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()).cast()) } else { None }
    }
}

/// Renames a capsule, which takes over its contents: the capsule no longer frees them.
fn take(capsule: &Object<'_>, name: &'static CStr) -> bool {
    // SAFETY: the object is a capsule, as `pointer` saw, and the name lives for ever.
    unsafe { PyCapsule_SetName(capsule.as_ptr(), name.as_ptr()) == 0 }
}
