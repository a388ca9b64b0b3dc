//! Trees: nested containers whose leaves are looked at, replaced and named by key paths.

mod container;
mod flatten;
mod kind;
mod path;
mod structure;

use pyo3::prelude::*;
use pyo3::types::PyList;

pub use flatten::flatten;
pub use path::KeyPath;
pub use structure::Structure;

/// Adds the functions and classes of trees to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<KeyPath>()?;
    module.add_class::<Structure>()?;
    module.add_function(wrap_pyfunction!(tree_flatten, module)?)?;
    module.add_function(wrap_pyfunction!(tree_unflatten, module)?)
}

#[pyfunction]
fn tree_flatten<'py>(tree: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyList>, Structure)> {
    let (leaves, structure) = flatten(tree.py(), tree)?;
    Ok((PyList::new(tree.py(), leaves)?, structure))
}

#[pyfunction]
fn tree_unflatten(py: Python<'_>, structure: &Structure, leaves: Vec<Py<PyAny>>) -> PyResult<Py<PyAny>> {
    structure.unflatten(py, leaves)
}
