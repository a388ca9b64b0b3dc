//! Host memory that Python objects share, as the core's buffers.
//!
//! NumPy's own arrays are read where they lie: the layout of its array object is a part of its public C interface, and
//! is compared with what the buffer protocol says before it is trusted. Anything else goes by the buffer protocol.

use std::ffi::c_int;

use oxigrad_core::buffer::{Buffer, Dtype};
use oxigrad_core::error::{Error, Result};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

/// What keeps the memory of an array where it is.
enum Keep {
    /// An export by the buffer protocol.
    Export(PyUntypedBuffer),
    /// A reference to a NumPy array, which then refuses to be resized.
    Reference(#[expect(dead_code, reason = "held, not read")] Py<PyAny>),
}

/// The memory of an array, kept for as long as this is.
pub struct Memory {
    keep: Keep,
    pointer: *mut u8,
    shape: SmallVec<[usize; 4]>,
    strides: SmallVec<[isize; 4]>,
    dtype: Option<Dtype>,
    writable: bool,
}

// SAFETY: the pointer is only handed to `Buffer`, which makes no use of it, and what keeps the memory is `Send`.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// The memory of an object; none where it shares none.
    pub fn of(object: &Bound<'_, PyAny>) -> Option<Self> {
        if let Some(memory) = Self::of_array(object) {
            return Some(memory);
        }
        let numpy = Numpy::get(object.py())?;
        if numpy.is_scalar(object) {
            // NumPy's scalars export their memory without a shape: a copy as an array has one, and is not to be written.
            let copy = Self::of_array(&numpy.asarray.bind(object.py()).call1((object,)).ok()?)?;
            return Some(Self { writable: false, ..copy });
        }
        PyUntypedBuffer::get(object).ok().map(Self::of_export)
    }

    /// The memory of a NumPy array or scalar: what the replay may compute with itself, without asking a library.
    pub fn of_numpy(object: &Bound<'_, PyAny>) -> Option<Self> {
        let numpy = Numpy::get(object.py())?;
        if object.get_type().is(&numpy.array) || numpy.is_scalar(object) { Self::of(object) } else { None }
    }

    /// The memory of an array of exactly NumPy's type, of a dtype in native byte order.
    fn of_array(object: &Bound<'_, PyAny>) -> Option<Self> {
        let numpy = Numpy::get(object.py())?;
        let fields = numpy.fields(object)?;
        let dtype = numpy.dtype(&fields)?;
        let keep = Keep::Reference(object.clone().unbind());
        Some(Self::of_fields(&fields, dtype, keep))
    }

    fn of_fields(fields: &ArrayFields, dtype: Dtype, keep: Keep) -> Self {
        let dimensions = usize::try_from(fields.nd).unwrap_or_default();
        // SAFETY: NumPy keeps `nd` extents and `nd` strides at these pointers for as long as the array is there and not
        // reshaped, which takes the interpreter lock that we hold; `copied` is told of none where there are none.
        let (shape, strides) = unsafe { (copied(fields.dimensions, dimensions), copied(fields.strides, dimensions)) };
        Self { keep, pointer: fields.data, shape, strides, dtype: Some(dtype), writable: fields.flags & WRITABLE != 0 }
    }

    fn of_export(export: PyUntypedBuffer) -> Self {
        Self {
            pointer: export.buf_ptr().cast(),
            shape: export.shape().into(),
            strides: export.strides().into(),
            dtype: exported_dtype(&export),
            writable: !export.readonly(),
            keep: Keep::Export(export),
        }
    }

    /// The extents of the array.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Where the first element lies.
    pub fn pointer(&self) -> *mut u8 {
        self.pointer
    }

    /// Bytes from an element to the next, along each axis.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Whether the memory may be written.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// The memory as kernels see it; none where they cannot read its dtype.
    pub fn buffer(&self) -> Option<Buffer> {
        Buffer::strided(self.pointer, &self.shape, &self.strides, self.dtype?, self.writable).ok()
    }

    /// The memory as an array of a larger shape, repeated along the axes that broadcasting adds or stretches.
    pub fn broadcast(&self, shape: &[usize]) -> Option<Buffer> {
        if self.shape() == shape {
            return self.buffer();
        }
        let added = shape.len().checked_sub(self.shape.len())?;
        let mut strides: SmallVec<[isize; 4]> = SmallVec::from_elem(0, shape.len());
        for (axis, (extent, stride)) in self.shape.iter().zip(&self.strides).enumerate() {
            match (*extent, shape[added + axis]) {
                (extent, wanted) if extent == wanted => strides[added + axis] = *stride,
                (1, _) => {}
                _ => return None,
            }
        }
        Buffer::strided(self.pointer, shape, &strides, self.dtype?, false).ok()
    }

    /// The buffer, where kernels compute in its dtype.
    ///
    /// # Errors
    /// `Dtype` with what is there instead.
    pub fn computing(&self) -> Result<Buffer> {
        match self.buffer() {
            Some(buffer) if buffer.dtype().computes() => Ok(buffer),
            _ => {
                let found = match (&self.keep, self.dtype) {
                    (_, Some(dtype)) => format!("dtype {}", dtype.name()),
                    (Keep::Export(export), None) => format!("format {:?}", export.format().to_string_lossy()),
                    (Keep::Reference(_), None) => "an unknown dtype".into(),
                };
                Err(Error::Dtype(format!("found {found}, expected float32 or float64 in native byte order")))
            }
        }
    }
}

/// # Safety
/// `count` elements can be read at `pointer`, if there are any.
unsafe fn copied<T, const N: usize>(pointer: *const isize, count: usize) -> SmallVec<[T; N]>
where
    [T; N]: smallvec::Array<Item = T>,
    T: Copy + Default + TryFrom<isize>,
{
    // SAFETY: the caller's promise, for each of the elements.
    (0..count).map(|at| T::try_from(unsafe { *pointer.add(at) }).unwrap_or_default()).collect()
}

/// The public head of NumPy's array object (`PyArrayObject_fields` of its C interface), the same from NumPy 1 on.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ArrayFields {
    head: [usize; size_of::<PyObject>() / size_of::<usize>()],
    pub data: *mut u8,
    pub nd: c_int,
    pub dimensions: *const isize,
    strides: *const isize,
    base: *mut PyObject,
    pub descr: *mut PyObject,
    pub flags: c_int,
    pub weakrefs: *mut PyObject,
}

/// `NPY_ARRAY_C_CONTIGUOUS`.
pub const C_CONTIGUOUS: c_int = 0x0001;
/// `NPY_ARRAY_OWNDATA`.
pub const OWNDATA: c_int = 0x0004;
/// `NPY_ARRAY_WRITEABLE`.
pub const WRITABLE: c_int = 0x0400;

/// What we know of the NumPy that is installed.
pub struct Numpy {
    array: Py<PyAny>,
    scalar: Py<PyAny>,
    empty: Py<PyAny>,
    asarray: Py<PyAny>,
    /// The dtypes in native byte order, which NumPy has one object of each.
    dtypes: Vec<(Py<PyAny>, Dtype)>,
    /// Whether its arrays are laid out as `ArrayFields`.
    is_known: bool,
}

impl Numpy {
    pub fn get(py: Python<'_>) -> Option<&Self> {
        static NUMPY: PyOnceLock<Option<Numpy>> = PyOnceLock::new();
        NUMPY.get_or_init(py, || Self::new(py).ok()).as_ref()
    }

    fn new(py: Python<'_>) -> PyResult<Self> {
        let numpy = py.import("numpy")?;
        let attribute = |name| numpy.getattr(name).map(Bound::unbind);
        let dtype = |dtype: &Dtype| Ok((numpy.getattr("dtype")?.call1((dtype.name(),))?.unbind(), *dtype));
        let dtypes = Dtype::ALL.iter().map(dtype).collect::<PyResult<_>>()?;
        let (array, scalar) = (attribute("ndarray")?, attribute("generic")?);
        let (empty, asarray) = (attribute("empty")?, attribute("asarray")?);
        let mut known = Self { array, scalar, empty, asarray, dtypes, is_known: true };
        known.is_known = known.verify(py)?;
        Ok(known)
    }

    /// Whether an array's fields are where we look for them: the buffer protocol must say the same.
    fn verify(&self, py: Python<'_>) -> PyResult<bool> {
        let array = self.empty.bind(py).call1(((2, 3, 5), "float32"))?.getattr("T")?;
        array.call_method1("setflags", (false,))?;
        let (fields, by_protocol) = (self.fields(&array), Memory::of_export(PyUntypedBuffer::get(&array)?));
        let Some(fields) = fields.filter(|fields| fields.nd == 3 && fields.data == by_protocol.pointer) else {
            return Ok(false);
        };
        let Some(dtype) = self.dtype(&fields) else { return Ok(false) };
        let by_fields = Memory::of_fields(&fields, dtype, Keep::Reference(array.unbind()));
        Ok(by_fields.shape == by_protocol.shape
            && by_fields.strides == by_protocol.strides
            && by_fields.dtype == by_protocol.dtype
            && !by_fields.writable)
    }

    fn is_scalar(&self, object: &Bound<'_, PyAny>) -> bool {
        object.is_instance(self.scalar.bind(object.py())).unwrap_or(false)
    }

    pub fn fields(&self, object: &Bound<'_, PyAny>) -> Option<ArrayFields> {
        if !self.is_known || !object.get_type().is(&self.array) {
            return None;
        }
        // SAFETY: the object is of exactly NumPy's array type, whose head this is, as `verify` saw for one array.
        Some(unsafe { *object.as_ptr().cast::<ArrayFields>() })
    }

    pub fn dtype(&self, fields: &ArrayFields) -> Option<Dtype> {
        self.dtypes.iter().rev().find(|(descr, _)| descr.as_ptr() == fields.descr).map(|(_, dtype)| *dtype)
    }

    /// NumPy's own object of a dtype.
    pub fn descr(&self, dtype: Dtype) -> Option<&Py<PyAny>> {
        self.dtypes.iter().rev().find(|(_, known)| *known == dtype).map(|(descr, _)| descr)
    }
}

/// The buffer of a NumPy array that lies contiguous and is of this shape and dtype: the short way for what is checked in
/// every step. None of anything else, which may still do.
pub fn contiguous(object: &Bound<'_, PyAny>, shape: &[usize], dtype: Dtype) -> Option<Buffer> {
    let numpy = Numpy::get(object.py())?;
    let fields = numpy.fields(object)?;
    if fields.flags & C_CONTIGUOUS == 0 || usize::try_from(fields.nd) != Ok(shape.len()) {
        return None;
    }
    // SAFETY: as in `of_fields`.
    let same = |(axis, extent): (usize, &usize)| unsafe { *fields.dimensions.add(axis) }.cast_unsigned() == *extent;
    if numpy.dtype(&fields) != Some(dtype) || !shape.iter().enumerate().all(same) {
        return None;
    }
    let length = shape.iter().product();
    Buffer::contiguous(fields.data, length, dtype, fields.flags & WRITABLE != 0).ok()
}

/// Whether two NumPy arrays have one shape and dtype; none where that takes more than a look at their fields.
pub fn are_alike(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> Option<bool> {
    let numpy = Numpy::get(a.py())?;
    let (a, b) = (numpy.fields(a)?, numpy.fields(b)?);
    let shape = |fields: &ArrayFields| {
        let count = usize::try_from(fields.nd).unwrap_or_default();
        // SAFETY: as in `of_fields`.
        unsafe { copied::<usize, 4>(fields.dimensions, count) }
    };
    Some(a.descr == b.descr && a.nd == b.nd && (a.dimensions == b.dimensions || shape(&a) == shape(&b)))
}

/// A new NumPy array, not yet filled, of a dtype that kernels compute in.
pub fn empty<'py>(py: Python<'py>, shape: &[usize], dtype: Dtype) -> PyResult<Bound<'py, PyAny>> {
    let numpy = Numpy::get(py).ok_or_else(|| pyo3::exceptions::PyImportError::new_err("NumPy cannot be used"))?;
    numpy.empty.bind(py).call1((PyTuple::new(py, shape)?, numpy.descr(dtype)))
}

/// The dtype of a format of Python's `struct`; none where kernels cannot read it, another byte order among them.
fn exported_dtype(export: &PyUntypedBuffer) -> Option<Dtype> {
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

/// Whether the object is an array that lies in host memory and shares it through Python's buffer protocol.
#[pyfunction]
pub fn exports_memory(object: &Bound<'_, PyAny>) -> bool {
    Memory::of(object).is_some()
}

/// Whether kernels compute in the dtype of an object that shares its memory.
#[pyfunction]
pub fn computes(object: &Bound<'_, PyAny>) -> bool {
    Memory::of(object).is_some_and(|memory| memory.computing().is_ok())
}

/// Whether the memory that an object shares may be written.
#[pyfunction]
pub fn is_writable(object: &Bound<'_, PyAny>) -> bool {
    Memory::of(object).is_some_and(|memory| memory.is_writable())
}
