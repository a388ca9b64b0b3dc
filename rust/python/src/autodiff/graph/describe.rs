//! Descriptions of values for error messages and printed tapes.

use pyo3::types::PyDict;

use crate::prelude::*;

/// The description of a value in an error or a printed tape: its type, and its dtype and shape if it has them.
pub fn describe(value: &Object<'_>) -> PyResult<String> {
    if let Ok(dict) = value.cast::<PyDict>() {
        let item = |(key, value): (Object<'_>, Object<'_>)| {
            Ok(format!(", {}={}", key.str()?.to_cow()?, value.str()?.to_cow()?))
        };
        return dict.iter().map(item).collect();
    }
    let (class, py) = (value.get_type().name()?, value.py());
    let class = class.to_cow()?;
    Ok(match (value.getattr_opt(pyo3::intern!(py, "dtype"))?, value.getattr_opt(pyo3::intern!(py, "shape"))?) {
        (Some(dtype), Some(shape)) => format!("{class}({}, {})", dtype.str()?.to_cow()?, shape.str()?.to_cow()?),
        _ => format!("{class} {}", value.repr()?.to_cow()?),
    })
}
