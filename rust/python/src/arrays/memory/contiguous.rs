//! Contiguous NumPy arrays, the common case: recognized by a few fields of the array object.

use std::ffi::c_int;
use std::marker::PhantomData;

use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::array::shape::{Shape, broadcast_strides, contiguous_strides};
use oxigrad_core::scalar::Scalar;
use pyo3::ffi::{Py_REFCNT, PyObject};

use crate::arrays::memory::numpy::{C_CONTIGUOUS, Numpy, OWNDATA, WRITABLE, are_one_dtype};
use crate::prelude::*;

/// A contiguous NumPy array of 1 to [`Shape::MOST`] dimensions, of a dtype that kernels compute in, or of indices. Recognized by some
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
        Self::of_dtype(object, Dtype::computes)
    }

    /// The fields of such an array of `int64` in place of these dtypes; `None` for any other object.
    pub fn of_indices(object: &'a Object<'_>) -> Option<Self> {
        Self::of_dtype(object, |dtype| dtype == Dtype::I64)
    }

    #[inline]
    fn of_dtype(object: &'a Object<'_>, fits: impl Fn(Dtype) -> bool) -> Option<Self> {
        let numpy = Numpy::get(object.py());
        let fields = numpy.fields(object).filter(|fields| fields.flags & C_CONTIGUOUS != 0)?;
        let dtype = numpy.own_dtype(&fields).filter(|dtype| fits(*dtype))?;
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

    /// Whether this is the dtype of the elements.
    pub fn has_dtype(&self, dtype: &Object<'_>) -> PyResult<bool> {
        let descr = Numpy::get(dtype.py()).descr(self.dtype).map(|descr| descr.bind(dtype.py()));
        descr.map_or(Ok(false), |descr| are_one_dtype(descr, dtype))
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
    let fields = if is_alone { Numpy::get(array.py()).fields(array) } else { None };
    fields.is_some_and(|fields| fields.flags & OWN == OWN && fields.weakrefs.is_null())
}

/// The array, if its memory may be reused: see [`is_unshared`].
pub fn unshared<'a>(array: &'a Object<'_>) -> Option<Contiguous<'a>> {
    if is_unshared(array) { Contiguous::of(array) } else { None }
}

/// The number of elements of a NumPy array; `None` for any other object.
pub fn length(array: &Object<'_>) -> Option<usize> {
    Numpy::get(array.py()).fields(array)?.extents().try_fold(1, usize::checked_mul)
}

/// The number and precision of a NumPy scalar of float32 or float64; `None` for any other object.
#[inline]
pub fn scalar_of(object: &Object<'_>) -> Option<Scalar> {
    let (class, numpy) = (object.get_type_ptr().cast(), Numpy::get(object.py()));
    // Each of these classes converts itself to a float by C code, which runs no Python.
    if class == numpy.float64.as_ptr() {
        object.extract().ok().map(Scalar::f64)
    } else if class == numpy.float32.as_ptr() {
        object.extract().ok().map(Scalar::f32)
    } else {
        None
    }
}

/// The element of a NumPy array without dimensions, of float32 or float64; `None` for any other object.
#[inline]
pub fn element_of(object: &Object<'_>) -> Option<Scalar> {
    let numpy = Numpy::get(object.py());
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
    let numpy = Numpy::get(value.py());
    let dtype = numpy.fields(value).and_then(|fields| numpy.own_dtype(&fields));
    matches!(dtype, Some(Dtype::F32 | Dtype::F64))
}

/// A NumPy scalar whose bytes are the first ones of a word: of float32 or float64.
pub fn scalar_of_bytes(py: Python<'_>, word: u64, dtype: Dtype) -> Object<'_> {
    let bytes = word.to_ne_bytes();
    let value = match dtype {
        Dtype::F32 => f64::from(f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
        _ => f64::from_bits(word),
    };
    scalar(py, value, dtype)
}

/// A NumPy scalar, which NumPy's functions return in place of an array without dimensions.
pub fn scalar(py: Python<'_>, number: f64, dtype: Dtype) -> Object<'_> {
    let numpy = Numpy::get(py);
    let of_type = if dtype == Dtype::F32 { &numpy.float32 } else { &numpy.float64 };
    of_type.bind(py).call1((number,)).expect("there is memory for a scalar")
}
