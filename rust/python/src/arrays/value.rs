//! The values of a tape: floats of Python and NumPy stay in Rust, anything else is a reference.

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::autodiff::tape;
use oxigrad_core::scalar::{Precision, Scalar};
use pyo3::types::{PyBool, PyFloat, PyFloatMethods, PyInt};

use crate::arrays::memory::contiguous::{element_of, scalar, scalar_of};
use crate::prelude::*;

/// The value of an entry or a variable.
#[derive(Debug)]
pub enum Value {
    /// No value; a variable without a value is a symbol.
    Absent,
    /// A Python float.
    Number(f64),
    /// A NumPy scalar of float64.
    Float64(f64),
    /// A NumPy scalar of float32.
    Float32(f32),
    /// Any other value: an array, or a variable of an enclosing tape.
    Object(Py<PyAny>),
}

impl tape::Value for Value {
    fn absent() -> Self {
        Self::Absent
    }

    fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    #[inline]
    fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    #[inline]
    fn from_number(number: f64) -> Self {
        Self::Number(number)
    }

    /// The scalar; for a NumPy array without dimensions, its present element.
    #[inline]
    fn scalar(&self) -> Option<Scalar> {
        match self {
            Self::Object(object) => Python::attach(|py| element_of(object.bind(py))),
            _ => self.own_scalar(),
        }
    }

    #[inline]
    fn from_scalar(scalar: Scalar) -> Self {
        match scalar.precision {
            Precision::Weak => Self::Number(scalar.number),
            Precision::F64 => Self::Float64(scalar.number),
            #[allow(clippy::cast_possible_truncation, reason = "a scalar of this precision loses nothing")]
            Precision::F32 => Self::Float32(scalar.number as f32),
        }
    }
}

impl From<Object<'_>> for Value {
    /// As [`Value::new`], without another reference.
    fn from(object: Object<'_>) -> Self {
        float_of(&object).map_or_else(|| Self::Object(object.unbind()), tape::Value::from_scalar)
    }
}

impl Value {
    /// The value of a Python object: floats of Python and NumPy become numbers.
    pub fn new(object: &Object<'_>) -> Self {
        float_of(object).map_or_else(|| Self::Object(object.clone().unbind()), tape::Value::from_scalar)
    }

    /// The value of an argument: Python's ints and bools are numbers, too.
    pub fn of_argument(object: &Object<'_>) -> Self {
        host_number(object).map_or_else(|| Self::new(object), Self::Number)
    }

    /// Another reference to the same value.
    #[inline]
    pub fn share(&self, py: Python<'_>) -> Self {
        match self {
            Self::Absent => Self::Absent,
            Self::Number(number) => Self::Number(*number),
            Self::Float64(number) => Self::Float64(*number),
            Self::Float32(number) => Self::Float32(*number),
            Self::Object(object) => Self::Object(object.clone_ref(py)),
        }
    }

    /// The value as a Python object, without another reference to it.
    pub fn into_object(self, py: Python<'_>) -> Object<'_> {
        match self {
            Self::Object(object) => object.into_bound(py),
            other => other.object(py),
        }
    }

    /// The value as a Python object; `None` if it is absent.
    pub fn object<'py>(&self, py: Python<'py>) -> Object<'py> {
        match self {
            Self::Absent => py.None().into_bound(py),
            Self::Number(number) => PyFloat::new(py, *number).into_any(),
            Self::Float64(number) => scalar(py, *number, Dtype::F64),
            Self::Float32(number) => scalar(py, f64::from(*number), Dtype::F32),
            Self::Object(object) => object.bind(py).clone(),
        }
    }

    /// The scalar, where the value is a float of Python or NumPy and no array.
    #[inline]
    pub const fn own_scalar(&self) -> Option<Scalar> {
        match self {
            Self::Number(number) => Some(Scalar::weak(*number)),
            Self::Float64(number) => Some(Scalar::f64(*number)),
            Self::Float32(number) => Some(Scalar::f32(*number)),
            Self::Absent | Self::Object(_) => None,
        }
    }

    /// Whether the value is a float of Python or NumPy, which cannot be changed.
    #[inline]
    pub const fn is_scalar(&self) -> bool {
        self.own_scalar().is_some()
    }
}

/// The number of a float of Python or NumPy.
#[inline]
fn float_of(object: &Object<'_>) -> Option<Scalar> {
    exact_float(object).map(Scalar::weak).or_else(|| scalar_of(object))
}

fn exact_float(object: &Object<'_>) -> Option<f64> {
    object.cast_exact::<PyFloat>().ok().map(PyFloatMethods::value)
}

/// Whole numbers up to this size are the same as a float.
const EXACT: i64 = 1 << 53;

/// The number of a Python float, int or bool; `None` for anything else, NumPy's scalars included.
#[inline]
pub fn host_number(object: &Object<'_>) -> Option<f64> {
    if let Some(number) = exact_float(object) {
        return Some(number);
    }
    if object.cast_exact::<PyInt>().is_ok() {
        let whole: i64 = object.extract().ok()?;
        #[allow(clippy::cast_precision_loss, reason = "the range says that nothing is lost")]
        return (-EXACT..=EXACT).contains(&whole).then_some(whole as f64);
    }
    object.cast_exact::<PyBool>().ok().map(|truth| f64::from(u8::from(truth.is_true())))
}
