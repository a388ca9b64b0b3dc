//! Settings under which a function must run as it is: floating-point errors of NumPy that raise, and the search for NaN.

use std::sync::Mutex;

use pyo3::intern;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::autodiff::graph::tape::debug_nans;
use crate::prelude::*;

/// The method that gives the object of NumPy's present settings, which is immutable; `None` where NumPy has no such object.
static SETTINGS: PyOnceLock<Option<Py<PyAny>>> = PyOnceLock::new();
/// The last settings that were seen, and whether an error raises under them.
static LAST: Mutex<Option<(Py<PyAny>, bool)>> = Mutex::new(None);

/// Whether floating-point errors raise, or NaN is searched for, in this thread: a replay does neither.
#[pyfunction]
pub fn is_watched(py: Python<'_>) -> PyResult<bool> {
    if debug_nans() {
        return Ok(true);
    }
    let Some(settings) = SETTINGS.get_or_init(py, || settings(py).ok()) else { return raises(py) };
    let settings = settings.bind(py).call0()?;
    if let Some((known, raises)) = &*locked(&LAST)
        && settings.is(known)
    {
        return Ok(*raises);
    }
    let found = raises(py)?;
    set_locked(&LAST, Some((settings.unbind(), found)));
    Ok(found)
}

/// `get` of the context variable that has NumPy's settings, from NumPy 2 on.
fn settings(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let module = py.import("numpy._core._ufunc_config")?;
    let get = module.getattr("_extobj_contextvar")?.getattr("get")?;
    get.call0()?;
    Ok(get.unbind())
}

fn raises(py: Python<'_>) -> PyResult<bool> {
    let stated = py.import(intern!(py, "numpy"))?.call_method0(intern!(py, "geterr"))?;
    let stated = stated.cast_into::<PyDict>()?;
    for (_, how) in stated {
        if how.eq("raise")? {
            return Ok(true);
        }
    }
    Ok(false)
}
