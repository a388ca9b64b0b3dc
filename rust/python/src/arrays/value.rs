//! What a tape keeps of Python's values: a number stays in Rust, anything else is a reference.

use oxigrad_core::autodiff::tape;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyFloatMethods, PyInt};

/// A host scalar, or an object that some array library understands (an array, or a variable of an enclosing tape).
#[derive(Debug)]
pub enum Value {
    /// Nothing is kept; as the value of a variable: it is a symbol.
    Absent,
    /// A Python float.
    Number(f64),
    /// Anything else.
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
        match self {
            Self::Number(number) => Some(*number),
            Self::Absent | Self::Object(_) => None,
        }
    }

    #[inline]
    fn from_number(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<Bound<'_, PyAny>> for Value {
    /// As [`Value::new`], without another reference.
    fn from(object: Bound<'_, PyAny>) -> Self {
        exact_float(&object).map_or_else(|| Self::Object(object.unbind()), Self::Number)
    }
}

impl Value {
    /// The value of a Python object: a float becomes a number.
    pub fn new(object: &Bound<'_, PyAny>) -> Self {
        match exact_float(object) {
            Some(number) => Self::Number(number),
            None => Self::Object(object.clone().unbind()),
        }
    }

    /// The value of an argument: Python's whole numbers and truth values are numbers, too.
    pub fn of_argument(object: &Bound<'_, PyAny>) -> Self {
        host_number(object).map_or_else(|| Self::Object(object.clone().unbind()), Self::Number)
    }

    /// Another reference to the same value.
    pub fn share(&self, py: Python<'_>) -> Self {
        match self {
            Self::Absent => Self::Absent,
            Self::Number(number) => Self::Number(*number),
            Self::Object(object) => Self::Object(object.clone_ref(py)),
        }
    }

    /// The value as a Python object, without another reference to it.
    pub fn into_object(self, py: Python<'_>) -> Bound<'_, PyAny> {
        match self {
            Self::Object(object) => object.into_bound(py),
            other => other.object(py),
        }
    }

    /// The value as a Python object; `None` where it is absent.
    pub fn object<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match self {
            Self::Absent => py.None().into_bound(py),
            Self::Number(number) => PyFloat::new(py, *number).into_any(),
            Self::Object(object) => object.bind(py).clone(),
        }
    }
}

fn exact_float(object: &Bound<'_, PyAny>) -> Option<f64> {
    object.cast_exact::<PyFloat>().ok().map(PyFloatMethods::value)
}

/// Whole numbers up to this size are the same as a float.
const EXACT: i64 = 1 << 53;

/// The number that a Python float, int or bool stands for; none for anything else, NumPy's scalars among them.
#[inline]
pub fn host_number(object: &Bound<'_, PyAny>) -> Option<f64> {
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
