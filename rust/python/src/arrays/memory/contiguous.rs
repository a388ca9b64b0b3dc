//! Contiguous NumPy arrays, the common case: recognized by a few fields of the array object, and made without calling
//! Python.

use std::ffi::{c_int, c_uint, c_void};
use std::marker::PhantomData;

use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::array::shape::{Shape, broadcast_strides, contiguous_strides};
use oxigrad_core::scalar::Scalar;
use pyo3::exceptions::PyImportError;
use pyo3::ffi::{Py_REFCNT, PyObject};
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use smallvec::SmallVec;

use crate::arrays::memory::numpy::{C_CONTIGUOUS, Numpy, OWNDATA, WRITABLE, empty};
use crate::prelude::*;

/// A contiguous NumPy array of 1 to [`Shape::MOST`] dimensions, of a dtype that kernels compute in. Recognized by some
/// fields of the array object; the caller's reference keeps the memory.
pub struct Contiguous<'a> {
    pub shape: Shape,
    pub dtype: Dtype,
    pub length: usize,
    pointer: *mut u8,
    is_writable: bool,
    owner: PhantomData<&'a PyObject>,
}

impl<'a> Contiguous<'a> {
    /// The fields of such an array; `None` for any other object.
    #[inline]
    pub fn of(object: &'a Object<'_>) -> Option<Self> {
        let numpy = Numpy::get(object.py())?;
        let fields = numpy.fields(object).filter(|fields| fields.flags & C_CONTIGUOUS != 0)?;
        let dtype = numpy.own_dtype(&fields).filter(|dtype| dtype.computes())?;
        let dimensions = Some(fields.dimensions()).filter(|count| (1..=Shape::MOST).contains(count))?;
        let (mut extents, mut length) = ([0; Shape::MOST], 1);
        for (extent, given) in extents.iter_mut().zip(fields.extents()) {
            *extent = given;
            length = usize::checked_mul(length, given)?;
        }
        let shape = Shape::new(&extents[..dimensions])?;
        let (pointer, is_writable) = (fields.data, fields.is_writable());
        Some(Self { shape, dtype, length, pointer, is_writable, owner: PhantomData })
    }

    /// The elements as a buffer of kernels.
    #[inline]
    pub fn buffer(&self) -> Option<Buffer> {
        Buffer::contiguous(self.pointer, self.length, self.dtype, self.is_writable).ok()
    }

    /// Whether both have the same shape and dtype.
    #[inline]
    pub fn is_like(&self, other: &Contiguous<'_>) -> bool {
        self.dtype == other.dtype && self.shape == other.shape
    }

    /// Whether both have the same shape, dtype and bits.
    pub fn has_bits_of(&self, other: &Contiguous<'_>) -> bool {
        let bytes = self.length * self.dtype.size();
        // SAFETY: both arrays have as many contiguous bytes as their shape and dtype take, which the owners' references keep; bytes
        // need no alignment, and the interpreter lock keeps others from writing them.
        let bits = |of: *mut u8| unsafe { std::slice::from_raw_parts(of, bytes) };
        self.is_like(other) && (bytes == 0 || bits(self.pointer) == bits(other.pointer))
    }

    /// Whether this is NumPy's dtype of the elements.
    pub fn has_dtype(&self, dtype: &Object<'_>) -> bool {
        let descr = Numpy::get(dtype.py()).and_then(|numpy| numpy.descr(self.dtype));
        descr.is_some_and(|descr| descr.is(dtype))
    }

    /// The elements repeated to a larger shape, to be read.
    pub fn broadcast(&self, shape: &[usize]) -> Option<Buffer> {
        let (extents, dtype) = (self.shape.extents(), self.dtype);
        if extents == shape {
            return self.buffer();
        }
        let strides = broadcast_strides(extents, &contiguous_strides(extents, dtype.size())?, shape)?;
        Buffer::strided(self.pointer, shape, &strides, dtype, false).ok()
    }
}

/// Whether an array owns writable memory and has no other reference, so that its memory may be reused.
pub fn is_unshared(array: &Object<'_>) -> bool {
    const OWN: c_int = OWNDATA | WRITABLE;
    // A view of the array, or an export of its memory, would hold a reference to it.
    // SAFETY: the pointer is that of a live object.
    let is_alone = unsafe { Py_REFCNT(array.as_ptr()) } == 1;
    let fields = if is_alone { Numpy::get(array.py()).and_then(|numpy| numpy.fields(array)) } else { None };
    fields.is_some_and(|fields| fields.flags & OWN == OWN && fields.weakrefs.is_null())
}

/// The array, if its memory may be reused: see [`is_unshared`].
pub fn unshared<'a>(array: &'a Object<'_>) -> Option<Contiguous<'a>> {
    if is_unshared(array) { Contiguous::of(array) } else { None }
}

/// The number of elements of a NumPy array; `None` for any other object.
pub fn length(array: &Object<'_>) -> Option<usize> {
    Numpy::get(array.py())?.fields(array)?.extents().try_fold(1, usize::checked_mul)
}

static CREATE: PyOnceLock<Option<Create>> = PyOnceLock::new();

/// Looks up the constructors of arrays and scalars, once, when the module is imported.
pub fn load(py: Python<'_>) -> PyResult<()> {
    CREATE.get_or_try_init(py, || found(py))?;
    SCALARS.get_or_try_init(py, || ScalarTypes::new(py)).map(drop)
}

/// A new NumPy array, not yet filled, of a dtype that kernels compute in.
pub fn create<'py>(py: Python<'py>, shape: &[usize], dtype: Dtype) -> PyResult<Object<'py>> {
    let known = CREATE.get(py).copied().flatten();
    let descr = Numpy::get(py).and_then(|numpy| numpy.descr(dtype));
    let (Some(create), Some(descr), Ok(dimensions)) = (known, descr, c_int::try_from(shape.len())) else {
        return empty(py, shape, dtype);
    };
    let extents: SmallVec<[isize; Shape::MOST]> = shape.iter().map(|extent| extent.cast_signed()).collect();
    // SAFETY: there are as many extents as dimensions, and the call takes over the reference to the dtype; the result is
    // a new reference, or null with an error set.
    unsafe {
        let array = create(dimensions, extents.as_ptr(), descr.clone_ref(py).into_ptr(), 0);
        Bound::from_owned_ptr_or_err(py, array)
    }
}

/// `PyArray_Empty`: takes over the reference to the dtype.
type Create = unsafe extern "C" fn(c_int, *const isize, *mut PyObject, c_int) -> *mut PyObject;

/// `PyArray_Empty` of the installed NumPy; `None` if the version of its C interface is unknown.
fn found(py: Python<'_>) -> PyResult<Option<Create>> {
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

/// NumPy's types of scalars that kernels compute in.
struct ScalarTypes {
    float32: Py<PyAny>,
    float64: Py<PyAny>,
}

static SCALARS: PyOnceLock<ScalarTypes> = PyOnceLock::new();

impl ScalarTypes {
    fn new(py: Python<'_>) -> PyResult<Self> {
        let numpy = py.import("numpy")?;
        let of_type = |name| numpy.getattr(name).map(Bound::unbind);
        Ok(Self { float32: of_type("float32")?, float64: of_type("float64")? })
    }

    fn get(py: Python<'_>) -> &Self {
        SCALARS.get(py).expect("the module has loaded them")
    }
}

/// The number and precision of a NumPy scalar of float32 or float64; `None` for any other object.
#[inline]
pub fn scalar_of(object: &Object<'_>) -> Option<Scalar> {
    let (class, scalars) = (object.get_type_ptr().cast(), ScalarTypes::get(object.py()));
    // Each of these classes converts itself to a float by C code, which runs no Python.
    if class == scalars.float64.as_ptr() {
        object.extract().ok().map(Scalar::f64)
    } else if class == scalars.float32.as_ptr() {
        object.extract().ok().map(Scalar::f32)
    } else {
        None
    }
}

/// The element of a NumPy array without dimensions, of float32 or float64; `None` for any other object.
#[inline]
pub fn element_of(object: &Object<'_>) -> Option<Scalar> {
    let numpy = Numpy::get(object.py())?;
    let fields = numpy.fields(object).filter(|fields| fields.dimensions() == 0)?;
    // An array without dimensions has one element of its dtype, for as long as the array is there; the interpreter lock
    // keeps others from writing it.
    match numpy.own_dtype(&fields)? {
        // SAFETY: as above; the element need not be aligned.
        Dtype::F32 => Some(Scalar::f32(unsafe { fields.data.cast::<f32>().read_unaligned() })),
        // SAFETY: as above; the element need not be aligned.
        Dtype::F64 => Some(Scalar::f64(unsafe { fields.data.cast::<f64>().read_unaligned() })),
        _ => None,
    }
}

/// Whether a value is an array of exactly NumPy's type, of float32 or float64 in native byte order.
pub fn is_float_array(value: &Object<'_>) -> bool {
    let dtype = |numpy: &Numpy| numpy.fields(value).and_then(|fields| numpy.own_dtype(&fields));
    matches!(Numpy::get(value.py()).and_then(dtype), Some(Dtype::F32 | Dtype::F64))
}

/// A NumPy scalar, which NumPy's functions return in place of an array without dimensions.
pub fn scalar(py: Python<'_>, number: f64, dtype: Dtype) -> Object<'_> {
    let scalars = ScalarTypes::get(py);
    let of_type = if dtype == Dtype::F32 { &scalars.float32 } else { &scalars.float64 };
    of_type.bind(py).call1((number,)).expect("there is memory for a scalar")
}
