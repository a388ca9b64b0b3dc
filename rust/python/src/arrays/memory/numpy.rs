//! NumPy arrays, read from the fields of the array object: its layout is part of NumPy's public C interface, and is
//! checked against the buffer protocol before it is used. One of the files that touch foreign memory.

use std::ffi::{c_int, c_uint, c_void};

use oxigrad_core::array::buffer::{Buffer, Dtype, elements};
use oxigrad_core::array::shape::Shape;
use oxigrad_core::array::view::ArrayView;
use oxigrad_core::error::Error;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyImportError;
use pyo3::ffi::PyObject;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyTuple};
use smallvec::SmallVec;

use crate::arrays::memory::buffer_protocol;
use crate::prelude::*;

/// The public head of NumPy's array object (`PyArrayObject_fields` of its C interface), the same from NumPy 1 on.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ArrayFields {
    head: [usize; size_of::<PyObject>() / size_of::<usize>()],
    pub data: *mut u8,
    nd: c_int,
    dimensions: *const isize,
    strides: *const isize,
    base: *mut PyObject,
    descr: *mut PyObject,
    pub flags: c_int,
    pub weakrefs: *mut PyObject,
}

/// The head of NumPy's dtype object (`PyArray_Descr` of its C interface), the same from NumPy 1 on.
#[repr(C)]
#[derive(Clone, Copy)]
struct DtypeFields {
    head: [usize; size_of::<PyObject>() / size_of::<usize>()],
    class: *mut PyObject,
    /// `kind`, `type`, `byteorder` and flags.
    characters: [u8; 4],
    number: c_int,
}

impl DtypeFields {
    /// # Safety
    /// `descr` must be a dtype object of NumPy.
    unsafe fn of(descr: *mut PyObject) -> ([u8; 4], c_int) {
        // SAFETY: the caller's promise.
        let fields = unsafe { *descr.cast::<Self>() };
        let [kind, letter, order, flags] = fields.characters;
        // An array of `ctypes`, and of other exporters, states the native order by name.
        let native = if cfg!(target_endian = "little") { b'<' } else { b'>' };
        ([kind, letter, if order == native { b'=' } else { order }, flags], fields.number)
    }
}

/// `NPY_ARRAY_C_CONTIGUOUS`.
pub const C_CONTIGUOUS: c_int = 0x0001;
/// `NPY_ARRAY_OWNDATA`.
pub const OWNDATA: c_int = 0x0004;
/// `NPY_ARRAY_WRITEABLE`.
pub const WRITABLE: c_int = 0x0400;

impl ArrayFields {
    #[inline]
    pub fn dimensions(&self) -> usize {
        usize::try_from(self.nd).unwrap_or_default()
    }

    #[inline]
    pub fn extents(&self) -> impl Iterator<Item = usize> {
        // SAFETY: NumPy keeps `nd` extents here for as long as the array is there and not reshaped, which takes the
        // interpreter lock that we hold.
        (0..self.dimensions()).map(|axis| unsafe { *self.dimensions.add(axis) }.cast_unsigned())
    }

    pub fn strides(&self) -> impl Iterator<Item = isize> {
        // SAFETY: as for `extents`.
        (0..self.dimensions()).map(|axis| unsafe { *self.strides.add(axis) })
    }

    pub fn is_writable(&self) -> bool {
        self.flags & WRITABLE != 0
    }

    /// Whether the memory belongs to another object.
    pub const fn has_base(&self) -> bool {
        !self.base.is_null()
    }

    /// The address of the dtype, which the array keeps.
    pub fn dtype_address(&self) -> usize {
        self.descr as usize
    }

    /// The letter of the dtype.
    pub fn letter(&self) -> u8 {
        // SAFETY: an array keeps its dtype.
        unsafe { DtypeFields::of(self.descr) }.0[1]
    }

    /// Whether the dtype equals another.
    #[inline]
    pub fn has_dtype(&self, dtype: &Object<'_>) -> PyResult<bool> {
        // SAFETY: an array keeps its dtype, which the comparison borrows.
        let own = || unsafe { Bound::from_borrowed_ptr(dtype.py(), self.descr) };
        Ok(self.descr == dtype.as_ptr() || are_one_dtype(&own(), dtype)?)
    }

    /// The array as a view, of the dtype of `descr`.
    #[inline]
    pub fn view(&self, dtype: Dtype) -> ArrayView {
        let (extents, strides) = (self.extents().collect(), self.strides().collect());
        ArrayView { pointer: self.data, extents, strides, dtype: Some(dtype), writable: self.is_writable() }
    }

    /// Whether the array has the memory, shape and strides of a view.
    #[inline]
    fn is(&self, view: &ArrayView) -> bool {
        self.data == view.pointer
            && self.is_writable() == view.writable
            && self.dimensions() == view.extents.len()
            && self.extents().eq(view.extents.iter().copied())
            && self.strides().eq(view.strides.iter().copied())
    }
}

static NUMPY: PyOnceLock<Numpy> = PyOnceLock::new();

/// `PyArray_Empty`: takes over the reference to the dtype.
type Create = unsafe extern "C" fn(c_int, *const isize, *mut PyObject, c_int) -> *mut PyObject;

/// The classes, functions and dtypes of the installed NumPy. All of the functions are compiled, except `broadcast_to`.
pub struct Numpy {
    pub ndarray: Py<PyAny>,
    scalar: Py<PyAny>,
    /// The classes of scalars that kernels compute in.
    pub float32: Py<PyAny>,
    pub float64: Py<PyAny>,
    empty: Py<PyAny>,
    /// The C function for `empty`; `None` if the version of NumPy's C interface is unknown.
    create: Option<Create>,
    asarray: Py<PyAny>,
    pub zeros: Py<PyAny>,
    pub broadcast_to: Py<PyAny>,
    pub add: Py<PyAny>,
    pub add_at: Py<PyAny>,
    pub matmul: Py<PyAny>,
    /// The dtypes in native byte order, of which NumPy has one object each.
    dtypes: Vec<(Py<PyAny>, Dtype)>,
    /// Frequent dtypes that kernels do not read.
    others: Vec<Py<PyAny>>,
    /// The dtype of bfloat16, once an array had it: NumPy lacks it, but packages may add it.
    bfloat16: PyOnceLock<Py<PyAny>>,
    /// Whether its arrays are laid out as `ArrayFields`.
    is_known: bool,
}

impl Numpy {
    /// The installed NumPy, as `load` found it.
    #[inline]
    pub fn get(py: Python<'_>) -> &Self {
        NUMPY.get(py).expect("the module has loaded it")
    }

    /// Inspects NumPy once, when the module is imported: an error, or an interrupt, is raised by that import.
    pub fn load(py: Python<'_>) -> PyResult<()> {
        NUMPY.get_or_try_init(py, || Self::new(py)).map(drop)
    }

    fn new(py: Python<'_>) -> PyResult<Self> {
        let numpy = py.import("numpy")?;
        let named = |name| numpy.getattr(name).map(Bound::unbind);
        let dtype = |name: &str| Ok(numpy.getattr("dtype")?.call1((name,))?.unbind());
        let own = Dtype::ALL.iter().filter(|dtype| **dtype != Dtype::BF16);
        let mut known = Self {
            ndarray: named("ndarray")?,
            scalar: named("generic")?,
            float32: named("float32")?,
            float64: named("float64")?,
            empty: named("empty")?,
            create: create_of(py)?,
            asarray: named("asarray")?,
            zeros: named("zeros")?,
            broadcast_to: named("broadcast_to")?,
            add: named("add")?,
            add_at: numpy.getattr("add")?.getattr("at")?.unbind(),
            matmul: named("matmul")?,
            dtypes: own.map(|own| Ok((dtype(own.name())?, *own))).collect::<PyResult<_>>()?,
            others: ["complex64", "complex128", "object"].into_iter().map(dtype).collect::<PyResult<_>>()?,
            bfloat16: PyOnceLock::new(),
            is_known: true,
        };
        known.is_known = known.verify(py)?;
        Ok(known)
    }

    /// Whether the layout of array objects is as expected: the buffer protocol must report the same fields.
    fn verify(&self, py: Python<'_>) -> PyResult<bool> {
        let array = self.empty.bind(py).call1(((2, 3, 5), "float32"))?.getattr("T")?;
        array.call_method1("setflags", (false,))?;
        match self.fields(&array).and_then(|fields| Some((fields, self.own_dtype(&fields)?))) {
            Some((fields, dtype)) if !fields.is_writable() => {
                let exported = buffer_protocol::view(&PyUntypedBuffer::get(&array)?);
                // The numbers of dimensions first: `extents` follows pointers.
                // SAFETY: an array keeps its dtype.
                let (characters, number) = unsafe { DtypeFields::of(fields.descr) };
                let number_of_numpy: c_int = array.getattr("dtype")?.getattr("num")?.extract()?;
                let is_near = characters[0] == b'f' && number == number_of_numpy;
                let is_near =
                    is_near && fields.data == exported.pointer && fields.dimensions() == exported.extents.len();
                Ok(is_near && fields.is(&exported) && exported.dtype == Some(dtype))
            }
            _ => Ok(false),
        }
    }

    /// Whether an array of exactly NumPy's type has the memory, shape and strides of a view; `None` for any other object. It runs no Python.
    #[inline]
    pub fn is_at(&self, object: &Object<'_>, view: &ArrayView) -> Option<bool> {
        let fields = self.fields(object)?;
        let dtype = match view.dtype {
            Some(Dtype::BF16) => self.seen_dtype(object.py(), &fields),
            _ => self.own_dtype(&fields),
        };
        Some(fields.is(view) && dtype == view.dtype)
    }

    /// A new array, not yet filled, of a dtype that kernels compute in.
    pub fn create<'py>(&self, py: Python<'py>, shape: &[usize], dtype: Dtype) -> PyResult<Object<'py>> {
        let (Some(create), Some(descr), Ok(dimensions)) =
            (self.create, self.descr(dtype), c_int::try_from(shape.len()))
        else {
            return self.empty.bind(py).call1((PyTuple::new(py, shape)?, self.descr(dtype)));
        };
        let extents: SmallVec<[isize; Shape::MOST]> = shape.iter().map(|extent| extent.cast_signed()).collect();
        // SAFETY: there are as many extents as dimensions, and the call takes over the reference to the dtype; the result is
        // a new reference, or null with an error set.
        unsafe {
            let array = create(dimensions, extents.as_ptr(), descr.clone_ref(py).into_ptr(), 0);
            Bound::from_owned_ptr_or_err(py, array)
        }
    }

    /// The object as a NumPy array.
    pub fn asarray<'py>(&self, object: &Object<'py>) -> PyResult<Object<'py>> {
        self.asarray.bind(object.py()).call1((object,))
    }

    /// Whether an object is an array or of a subclass, by its type rather than the attribute `__class__`.
    pub fn is_array(&self, object: &Object<'_>) -> PyResult<bool> {
        object.get_type().is_subclass(self.ndarray.bind(object.py()))
    }

    /// Whether an object is an array of exactly NumPy's type.
    #[inline]
    pub fn is_plain_array(&self, object: &Object<'_>) -> bool {
        object.get_type_ptr().cast() == self.ndarray.as_ptr()
    }

    /// Whether an object is an array of exactly NumPy's type, of Python's objects.
    fn holds_objects(&self, object: &Object<'_>) -> bool {
        // SAFETY: an array keeps its dtype.
        self.fields(object).is_some_and(|fields| unsafe { DtypeFields::of(fields.descr) }.0[0] == b'O')
    }

    /// Whether an object is a NumPy scalar.
    pub fn is_scalar(&self, object: &Object<'_>) -> PyResult<bool> {
        object.get_type().is_subclass(self.scalar.bind(object.py()))
    }

    #[inline]
    pub fn fields(&self, object: &Object<'_>) -> Option<ArrayFields> {
        if !self.is_known || !self.is_plain_array(object) {
            return None;
        }
        // SAFETY: the object is of exactly NumPy's array type, whose head this is, as `verify` saw for one array.
        Some(unsafe { *object.as_ptr().cast::<ArrayFields>() })
    }

    /// The dtype of an array, where it is one of NumPy's own, or equal to it: an unpickled array has another object.
    pub fn own_dtype(&self, fields: &ArrayFields) -> Option<Dtype> {
        let found = self.dtypes.iter().rev().find(|(descr, _)| descr.as_ptr() == fields.descr);
        found.or_else(|| self.dtypes.iter().find(|(descr, _)| are_equal(descr, fields))).map(|(_, dtype)| *dtype)
    }

    /// Whether the memory of two arrays may overlap, by its ends.
    pub fn may_share(&self, one: &ArrayFields, other: &ArrayFields) -> bool {
        let (Some(dtype), Some(its)) = (self.own_dtype(one), self.own_dtype(other)) else { return true };
        let (span, others) = (one.view(dtype).span(dtype.size()), other.view(its).span(its.size()));
        span.start < others.end && others.start < span.end
    }

    /// The dtype of an array, bfloat16 among them.
    pub fn dtype(&self, py: Python<'_>, fields: &ArrayFields) -> PyResult<Option<Dtype>> {
        match self.own_dtype(fields) {
            None => Ok(self.is_bfloat16(py, fields)?.then_some(Dtype::BF16)),
            own => Ok(own),
        }
    }

    /// The same for a dtype that is known already, which runs no Python.
    pub fn seen_dtype(&self, py: Python<'_>, fields: &ArrayFields) -> Option<Dtype> {
        let bfloat16 = || self.bfloat16.get(py).is_some_and(|known| are_equal(known, fields));
        self.own_dtype(fields).or_else(|| bfloat16().then_some(Dtype::BF16))
    }

    /// NumPy's own object of a dtype.
    pub fn descr(&self, dtype: Dtype) -> Option<&Py<PyAny>> {
        self.dtypes.iter().rev().find(|(_, known)| *known == dtype).map(|(descr, _)| descr)
    }

    fn is_bfloat16(&self, py: Python<'_>, fields: &ArrayFields) -> PyResult<bool> {
        if let Some(known) = self.bfloat16.get(py) {
            return Ok(are_equal(known, fields));
        }
        if self.others.iter().any(|other| other.as_ptr() == fields.descr) {
            return Ok(false);
        }
        // SAFETY: an array keeps its dtype.
        let descr = unsafe { Bound::from_borrowed_ptr(py, fields.descr) };
        let is = |name: &str, expected: &str| Ok::<_, PyErr>(descr.getattr(name)?.str()? == expected);
        let found = is("name", "bfloat16")? && is("itemsize", "2")? && is("isnative", "True")?;
        Ok(found && self.bfloat16.get_or_init(py, || descr.unbind()).as_ptr() == fields.descr)
    }

    /// A contiguous array of this shape and dtype: the fast path of a check in every step. `None` for any other object,
    /// which may still meet the requirements.
    pub fn contiguous(&self, object: &Object<'_>, shape: &[usize], dtype: Dtype) -> Option<(ArrayView, Buffer)> {
        let fields = self.fields(object).filter(|fields| {
            fields.flags & C_CONTIGUOUS != 0
                && fields.dimensions() == shape.len()
                && fields.extents().eq(shape.iter().copied())
        })?;
        if self.seen_dtype(object.py(), &fields) != Some(dtype) {
            return None;
        }
        let length = elements(shape)?;
        let buffer = Buffer::contiguous(fields.data, length, dtype, fields.is_writable()).ok()?;
        Some((fields.view(dtype), buffer))
    }
}

/// Whether a dtype of this module and that of an array are equal, by their fields.
fn are_equal(descr: &Py<PyAny>, fields: &ArrayFields) -> bool {
    // SAFETY: an array keeps its dtype, and the caller the other.
    descr.as_ptr() == fields.descr || unsafe { DtypeFields::of(descr.as_ptr()) == DtypeFields::of(fields.descr) }
}

/// Whether two dtypes of one library are equal: an unpickled one is another object than NumPy's own.
#[inline]
pub fn are_one_dtype(a: &Object<'_>, b: &Object<'_>) -> PyResult<bool> {
    Ok(a.is(b) || a.get_type().is(b.get_type()) && a.eq(b)?)
}

/// Whether two NumPy arrays have one shape and dtype; `None` if their fields alone cannot tell.
pub fn are_alike(a: &Object<'_>, b: &Object<'_>) -> Option<bool> {
    let numpy = Numpy::get(a.py());
    let (a, b) = (numpy.fields(a)?, numpy.fields(b)?);
    let are_of_one_dtype =
        a.descr == b.descr || numpy.own_dtype(&a).is_some_and(|own| numpy.own_dtype(&b) == Some(own));
    Some(are_of_one_dtype && a.nd == b.nd && (a.dimensions == b.dimensions || a.extents().eq(b.extents())))
}

/// The meaning of an array that arithmetic on its numbers would ignore, as an error message with the expected
/// alternative: the mask of a masked array, the unit of one with units, the products of a matrix. `None` for plain arrays.
#[pyfunction]
pub fn meaning(array: &Object<'_>) -> PyResult<Option<String>> {
    let (py, numpy) = (array.py(), Numpy::get(array.py()));
    if numpy.holds_objects(array) {
        return Ok(Some("an array of objects: expected numbers, such as x.astype(float)".into()));
    }
    if numpy.is_plain_array(array) || !numpy.is_array(array)? {
        return Ok(None);
    }
    let (class, plain) = (array.get_type(), numpy.ndarray.bind(py));
    let named = |what: &str| Ok(Some(format!("a {}, {what}", class.name()?.to_cow()?)));
    if class.hasattr("mask")? {
        return named("whose mask would be ignored: expected an array without a mask, such as x.data[~x.mask]");
    }
    for name in ["__array_ufunc__", "__add__", "__mul__", "__matmul__"] {
        if !class.getattr(name)?.is(&plain.getattr(name)?) {
            return named("a subclass of numpy.ndarray with arithmetic of its own: expected numpy.asarray(x)");
        }
    }
    Ok(None)
}

/// Refuses an array with a meaning besides its numbers: see [`meaning`]. `name` names the array in the error.
pub fn refuse_meaning(array: &Object<'_>, name: impl FnOnce() -> String) -> PyResult<()> {
    meaning(array)?.map_or(Ok(()), |meaning| Err(Error::Dtype(format!("{} is {meaning}", name()))).python())
}

/// `PyArray_Empty` of the installed NumPy; `None` if the version of its C interface is unknown.
fn create_of(py: Python<'_>) -> PyResult<Option<Create>> {
    const VERSIONS: [c_uint; 2] = [0x0100_0009, 0x0200_0000];
    const EMPTY: usize = 184;
    let module = match unless::<PyImportError, _>(py, py.import("numpy._core._multiarray_umath"))? {
        Some(module) => module,
        None => py.import("numpy.core._multiarray_umath")?, // of NumPy 1
    };
    let table = module.getattr("_ARRAY_API")?.cast_into::<PyCapsule>()?.pointer_checked(None)?.cast::<*const c_void>();
    // SAFETY: the capsule holds the table of functions of NumPy's C interface, the first of which tells its version; in
    // these versions it has more than 184 entries, and that one is `PyArray_Empty`.
    unsafe {
        let version = std::mem::transmute::<*const c_void, extern "C" fn() -> c_uint>(table.read());
        let known = VERSIONS.contains(&version());
        Ok(known.then(|| std::mem::transmute::<*const c_void, Create>(table.add(EMPTY).read())))
    }
}
