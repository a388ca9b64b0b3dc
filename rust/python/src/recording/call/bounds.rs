//! Bounds of the calls of a program from a file, which a stranger may have written: no call takes minutes that nobody can interrupt.

use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::types::{PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::arrays::memory::numpy::Numpy;
use crate::arrays::value::Value;
use crate::prelude::*;

/// Integers have at most so many bits; or so many where an array library takes them, which computes larger ones as objects of Python.
const MOST_BITS: u64 = 1 << 10;
const MOST_BITS_OF_ARRAYS: u64 = 64;
/// Arrays have at most so many elements, also where these are repeated.
const MOST_ELEMENTS: usize = 1 << 31;

/// Raises `StateError` for arguments with which a call, of an op or of the function of this name, may compute without bound: large integers,
/// repeated text and lists, and objects in arrays.
pub fn require_arguments(
    call: &str,
    is_op: bool,
    args: &[Object<'_>],
    named: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let is_operator = is_op || call.starts_with("operator.");
    let is_of_python = (is_operator || call.starts_with("python.")) && args.iter().all(is_number);
    let most = if is_of_python { MOST_BITS } else { MOST_BITS_OF_ARRAYS };
    for part in args.iter().chain(named.map(Bound::as_any)) {
        require(call, part, most)?;
    }
    let name = call.rsplit('.').next().unwrap_or_default();
    if let ([a, b], true) = (args, is_of_python && matches!(name, "pow" | "lshift" | "round")) {
        let (bits, by) =
            (bits_of(a)?.unwrap_or_default(), if b.is_instance_of::<PyInt>() { b.abs()?.extract() } else { Ok(0) });
        let by = by.unwrap_or(u64::MAX);
        let bits = match name {
            "pow" if bits < 2 => bits,
            "pow" => bits.saturating_mul(by),
            _ => bits.saturating_add(by),
        };
        within(call, "bits of an integer", bits, MOST_BITS)?;
    }
    let is_plain = |arg: &Object<'_>| is_number(arg) || is_sequence(arg) || is_scalar(arg);
    if is_operator && !is_question(name) && args.iter().any(is_sequence) && args.iter().all(is_plain) {
        return Err(StateError::new_err(format!("{call}: found text or a list, expected numbers and arrays")));
    }
    Ok(())
}

/// Raises `StateError` for a result that a recording does not have: a larger integer or array, and an array of objects.
pub fn require_result(py: Python<'_>, call: &str, result: &Value) -> PyResult<()> {
    match result {
        Value::Object(object) => require(call, object.bind(py), MOST_BITS),
        _ => Ok(()),
    }
}

fn require(call: &str, value: &Object<'_>, most_bits: u64) -> PyResult<()> {
    let py = value.py();
    if let Some(fields) = Numpy::get(py).fields(value) {
        let elements = fields.extents().fold(1, |all: usize, extent| all.saturating_mul(extent));
        within(call, "elements", elements as u64, MOST_ELEMENTS as u64)?;
        require_dtype(call, &value.getattr(intern!(py, "dtype"))?)
    } else if let Some(bits) = bits_of(value)? {
        within(call, "bits of an integer", bits, most_bits)
    } else if value.is_instance_of::<PyString>() {
        let dtype = py.import(intern!(py, "numpy"))?.getattr(intern!(py, "dtype"))?;
        let named = unless::<PyException, _>(py, dtype.call1((value,)))?;
        let is_of_objects = named.map(|dtype| dtype.getattr(intern!(py, "hasobject"))?.is_truthy()).transpose()?;
        if is_of_objects == Some(true) {
            return Err(StateError::new_err(format!("{call}: found the dtype {value}, expected one of numbers")));
        }
        Ok(())
    } else if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
        value.try_iter()?.try_for_each(|part| require(call, &part?, most_bits))
    } else if let Ok(dict) = value.cast::<PyDict>() {
        dict.iter().try_for_each(|(_, part)| require(call, &part, most_bits))
    } else {
        Ok(())
    }
}

fn require_dtype(call: &str, dtype: &Object<'_>) -> PyResult<()> {
    let kind = dtype.getattr(intern!(dtype.py(), "kind"))?;
    if matches!(&*kind.cast::<PyString>()?.to_cow()?, "b" | "i" | "u" | "f" | "c") {
        return Ok(());
    }
    Err(StateError::new_err(format!("{call}: found an array of {dtype}, expected one of numbers")))
}

fn within(call: &str, what: &str, found: u64, most: u64) -> PyResult<()> {
    if found <= most {
        return Ok(());
    }
    Err(StateError::new_err(format!("{call}: found {found} {what}, expected at most {most}")))
}

/// The bits of an integer; `None` for anything else.
fn bits_of(value: &Object<'_>) -> PyResult<Option<u64>> {
    if !value.is_instance_of::<PyInt>() {
        return Ok(None);
    }
    value.call_method0(intern!(value.py(), "bit_length"))?.extract().map(Some)
}

fn is_number(value: &Object<'_>) -> bool {
    value.is_instance_of::<PyInt>() || value.is_exact_instance_of::<PyFloat>() || value.is_instance_of::<PyComplex>()
}

fn is_sequence(value: &Object<'_>) -> bool {
    value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
}

fn is_scalar(value: &Object<'_>) -> bool {
    Numpy::get(value.py()).is_scalar(value).unwrap_or(false)
}

/// Whether an operator gives a part, or a truth value, of text and lists.
fn is_question(name: &str) -> bool {
    matches!(name, "getitem" | "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "equal" | "not_equal")
}
