//! `DLPack`: host arrays of other libraries, without a copy and with every dtype that they have.
//!
//! The structures are those of the header of `DLPack` 1 and, for older exporters, of the one before. What an exporter
//! says is checked before it is used, and its memory is kept until the `Owner` is dropped. One of the files that touch
//! foreign memory.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::array::view::ArrayView;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_SetName, PyObject};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use smallvec::SmallVec;

use crate::arrays::torch::Torch;
use crate::class_cache::ByClass;
use crate::error::{unless, unless_refused};

/// `kDLCPU`.
const HOST: i32 = 1;
const MAJOR: u32 = 1;
/// `DLPACK_FLAG_BITMASK_READ_ONLY` and `DLPACK_FLAG_BITMASK_IS_COPIED`: a write to a copy would have no effect.
const NOT_WRITABLE: u64 = 0b11;

/// `DLTensor`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Tensor {
    data: *mut u8,
    device_type: i32,
    _device_id: i32,
    dimensions: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// `DLManagedTensor`, of before version 1.
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

/// The head of `DLPackExchangeAPI`, a table of functions that lives as long as the process. Addresses that we do not
/// use are numbers.
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

/// The owner of an exported array, which is returned to its exporter when the owner is dropped.
struct Owner(Managed);

enum Managed {
    Versioned(NonNull<Versioned>),
    Unversioned(NonNull<Unversioned>),
}

// SAFETY: what it points at is only read while a view is made, and DLPack lets any thread call a deleter.
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: the exporter handed the structure over to us, and this is the one time that it is given back.
        unsafe {
            match self.0 {
                Managed::Versioned(of) => of.as_ref().deleter.map(|delete| delete(of.as_ptr())),
                Managed::Unversioned(of) => of.as_ref().deleter.map(|delete| delete(of.as_ptr())),
            };
        }
    }
}

/// An array that another library has exported, which stays where it is for as long as this does.
pub struct Export {
    _owner: Owner,
    /// Whether Python ran to export it, which may have done anything.
    pub by_python: bool,
    /// Whether it is a tensor of PyTorch's.
    pub is_tensor: bool,
}

impl Export {
    /// The array that an object exports; `None` if it exports none, one that lies elsewhere, or one whose numbers are
    /// not those in its memory.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<(ArrayView, Self)>> {
        if is_negated(object)? { Ok(None) } else { Self::of_memory(object) }
    }

    /// The same, whose numbers were seen to be those in its memory.
    pub fn of_memory(object: &Bound<'_, PyAny>) -> PyResult<Option<(ArrayView, Self)>> {
        let Exporter { exchange, torch } = Exporter::of(&object.get_type())?;
        let owner = match exchange {
            Some(exchange) => by_exchange(exchange, object)?,
            None => unless_refused(object.py(), by_capsule(object))?.flatten(),
        };
        let (by_python, is_tensor) = (exchange.is_none(), torch.is_some());
        Ok(owner.and_then(|owner| Some((owner.view()?, Self { _owner: owner, by_python, is_tensor }))))
    }
}

impl Owner {
    /// The array; `None` if it does not lie in host memory, or its description makes no sense.
    fn view(&self) -> Option<ArrayView> {
        // SAFETY: the structures are valid until their deleter is called, which is done when this is dropped.
        let (tensor, writable) = unsafe {
            match &self.0 {
                // Nothing but the version and the deleter is where we look for it in another version.
                Managed::Versioned(of) if of.as_ref().major != MAJOR => return None,
                Managed::Versioned(of) => (&of.as_ref().tensor, of.as_ref().flags & NOT_WRITABLE == 0),
                // It does not say; NumPy takes it for read-only too.
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
            None => contiguous(&extents, size),
        };
        let offset = usize::try_from(tensor.byte_offset).ok()?;
        tensor.data.addr().checked_add(offset)?;
        if tensor.data.is_null() && !extents.contains(&0) {
            return None;
        }
        let pointer = tensor.data.wrapping_add(offset);
        Some(ArrayView { pointer, extents, strides: strides?, dtype: tensor.dtype(), writable })
    }
}

/// Whether an object is a tensor of PyTorch's whose numbers are minus those in its memory. To ask runs Python, or lets
/// other threads run.
fn is_negated(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Exporter::of(&object.get_type())?.torch.map_or(Ok(false), |torch| torch.is_negated(object))
}

/// The first object of which `is_negated` holds.
pub fn first_negated<'a, 'py: 'a>(objects: impl Iterator<Item = Borrowed<'a, 'py, PyAny>>) -> PyResult<Option<usize>> {
    let mut last: Option<(Bound<'py, PyType>, Option<&'static Torch>)> = None; // most are of one class
    for (at, object) in objects.enumerate() {
        let known = last.as_ref().filter(|(class, _)| object.get_type_ptr() == class.as_type_ptr());
        let torch = if let Some((_, torch)) = known {
            *torch
        } else {
            let class = object.get_type();
            let torch = Exporter::of(&class)?.torch;
            last = Some((class, torch));
            torch
        };
        if torch.map_or(Ok(false), |torch| torch.is_negated(&object))? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// The table of functions of a type that has one, as far as that was found out.
pub fn exchange(class: &Bound<'_, PyType>) -> Option<&'static Exchange> {
    Exporter::known(class)?.exchange
}

/// Whether `is_at` can tell of an object.
pub fn can_be_seen(object: &Bound<'_, PyAny>) -> bool {
    exchange(&object.get_type()).is_some_and(|exchange| exchange.look.is_some())
}

/// Whether an object still is this array in host memory: a look at it, where its type offers that, which runs no Python
/// and takes nothing over. No where only an export would tell.
pub fn is_at(object: &Bound<'_, PyAny>, view: &ArrayView) -> bool {
    exchange(&object.get_type())
        .is_some_and(|exchange| exchange.is_at(object, view.pointer.addr(), &view.extents, &view.strides, view.dtype))
}

impl Exchange {
    /// As the function `is_at`, of an object of the type that this is the table of.
    pub fn is_at(
        &self,
        object: &Bound<'_, PyAny>,
        address: usize,
        shape: &[usize],
        strides: &[isize],
        dtype: Option<Dtype>,
    ) -> bool {
        let Some(look) = self.look else { return false };
        let mut tensor = MaybeUninit::<Tensor>::uninit();
        // SAFETY: the object is of the type that the function is of, and we hold the interpreter lock.
        if unsafe { look(object.as_ptr(), tensor.as_mut_ptr()) } != 0 {
            drop(PyErr::take(object.py()));
            return false;
        }
        // SAFETY: the function has filled it in, as it says by its result.
        let tensor = unsafe { tensor.assume_init() };
        let size = isize::from(tensor.bits.div_ceil(8));
        // SAFETY: there is an extent and a stride (or null for all) for each dimension, until the object is changed.
        let same = |pointer: *const i64, at: usize, expected: isize, size: isize| unsafe {
            !pointer.is_null()
                && isize::try_from(*pointer.add(at)).ok().and_then(|found| found.checked_mul(size)) == Some(expected)
        };
        tensor.device_type == HOST
            && usize::try_from(tensor.dimensions) == Ok(shape.len())
            && usize::try_from(tensor.byte_offset)
                .is_ok_and(|offset| tensor.data.addr().wrapping_add(offset) == address)
            && tensor.dtype() == dtype
            && shape.iter().enumerate().all(|(at, extent)| same(tensor.shape, at, extent.cast_signed(), 1))
            && strides.iter().enumerate().all(|(at, stride)| same(tensor.strides, at, *stride, size))
    }
}

impl Tensor {
    fn dtype(&self) -> Option<Dtype> {
        Some(match (self.code, self.bits, self.lanes) {
            (0, 8, 1) => Dtype::I8,
            (0, 16, 1) => Dtype::I16,
            (0, 32, 1) => Dtype::I32,
            (0, 64, 1) => Dtype::I64,
            (1, 8, 1) => Dtype::U8,
            (1, 16, 1) => Dtype::U16,
            (1, 32, 1) => Dtype::U32,
            (1, 64, 1) => Dtype::U64,
            (2, 16, 1) => Dtype::F16,
            (2, 32, 1) => Dtype::F32,
            (2, 64, 1) => Dtype::F64,
            (4, 16, 1) => Dtype::BF16,
            (6, 8, 1) => Dtype::Bool,
            _ => return None,
        })
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
fn contiguous(shape: &[usize], size: isize) -> Option<SmallVec<[isize; 4]>> {
    let mut strides: SmallVec<[isize; 4]> = SmallVec::from_elem(size, shape.len());
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].checked_mul(isize::try_from(shape[axis]).ok()?)?;
    }
    Some(strides)
}

/// The interface by which the objects of a class export their memory.
#[derive(Clone, Copy)]
struct Exporter {
    /// Its table of functions, if it has one: a call of a Python method takes fifty times as long.
    exchange: Option<&'static Exchange>,
    /// PyTorch, if the objects are its tensors.
    torch: Option<&'static Torch>,
}

/// The interfaces found, by class.
static EXPORTERS: ByClass<Exporter> = ByClass::new();

impl Exporter {
    fn of(class: &Bound<'_, PyType>) -> PyResult<Self> {
        if let Some(known) = Self::known(class) {
            return Ok(known);
        }
        let found = Self { exchange: table(class)?, torch: Torch::of_class(class)? };
        EXPORTERS.insert(class, found)?;
        Ok(found)
    }

    /// The interface of a class, if it was found before; runs no Python.
    fn known(class: &Bound<'_, PyType>) -> Option<Self> {
        EXPORTERS.get(class, |exporter| *exporter)
    }
}

/// The table of functions of a class.
fn table(class: &Bound<'_, PyType>) -> PyResult<Option<&'static Exchange>> {
    let Some(capsule) = class.getattr_opt(intern!(class.py(), "__dlpack_c_exchange_api__"))? else { return Ok(None) };
    let Some(table) = pointer::<Exchange>(&capsule, c"dlpack_exchange_api") else { return Ok(None) };
    // SAFETY: a capsule of this name holds such a table, which lives as long as the process; its version stands first
    // in each version of it.
    let table: &'static Exchange = unsafe { table.as_ref() };
    Ok((table.major == MAJOR).then_some(table))
}

fn by_exchange(exchange: &Exchange, object: &Bound<'_, PyAny>) -> PyResult<Option<Owner>> {
    let (Some(from_object), mut made) = (exchange.from_object, std::ptr::null_mut()) else { return Ok(None) };
    // SAFETY: the object is of the type that the table is of, and we hold the interpreter lock.
    if unsafe { from_object(object.as_ptr(), &raw mut made) } != 0 {
        let Some(error) = PyErr::take(object.py()) else { return Ok(None) };
        return unless_refused(object.py(), Err(error));
    }
    Ok(NonNull::new(made).map(|made| Owner(Managed::Versioned(made))))
}

fn by_capsule(object: &Bound<'_, PyAny>) -> PyResult<Option<Owner>> {
    let py = object.py();
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
        return Ok(take(&capsule, c"used_dltensor_versioned").then_some(Owner(Managed::Versioned(made))));
    }
    let Some(made) = pointer(&capsule, c"dltensor") else { return Ok(None) };
    Ok(take(&capsule, c"used_dltensor").then_some(Owner(Managed::Unversioned(made))))
}

/// The pointer in a capsule of this name.
fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &'static CStr) -> Option<NonNull<T>> {
    // SAFETY: the object is alive, and the interpreter checks that it is a capsule of this name.
    unsafe {
        let is_valid = PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) != 0;
        if is_valid { NonNull::new(PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()).cast()) } else { None }
    }
}

/// Renames a capsule, so that what it holds is ours: it will not free it.
fn take(capsule: &Bound<'_, PyAny>, name: &'static CStr) -> bool {
    // SAFETY: the object is a capsule, as `pointer` saw, and the name lives for ever.
    unsafe { PyCapsule_SetName(capsule.as_ptr(), name.as_ptr()) == 0 }
}
