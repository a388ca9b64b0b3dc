//! The functions of module `oxigrad.tree`, as Python calls them.

use oxigrad_core::tree;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

use super::kind::{ContainerKind, Fields, Functions};
use super::path::KeyPath;
use super::structure::Structure;
use super::{flatten::flatten, kind, select, zip};
use crate::prelude::*;

/// A printed path without quotes and escapes, keys joined by dots.
#[pyfunction]
pub fn tree_unquoted(text: &str) -> PyResult<String> {
    tree::unquoted(text).python()
}

#[pyfunction]
pub fn tree_flatten<'py>(tree: &Object<'py>) -> PyResult<(Bound<'py, PyList>, Structure)> {
    let (leaves, structure) = flatten(tree.py(), tree)?;
    Ok((PyList::new(tree.py(), leaves)?, structure))
}

#[pyfunction]
pub fn tree_unflatten(structure: &Structure, leaves: &Object<'_>) -> PyResult<Py<PyAny>> {
    structure.unflatten(leaves.py(), listed(leaves)?)
}

fn listed(leaves: &Object<'_>) -> PyResult<Vec<Py<PyAny>>> {
    Ok(items(leaves)?.into_iter().map(Bound::unbind).collect())
}

/// The leaves of `tree`; where `like` is given, in the order of that structure, which `tree` must have. With
/// `trainable`, the same leaves must be trainable.
#[pyfunction]
#[pyo3(signature = (tree, like=None, *, trainable=false))]
pub fn tree_leaves<'py>(tree: &Object<'py>, like: Option<&Structure>, trainable: bool) -> PyResult<Bound<'py, PyList>> {
    let leaves = match like {
        Some(structure) => zip::leaves_like(structure, tree, trainable)?,
        None => flatten(tree.py(), tree)?.0,
    };
    PyList::new(tree.py(), leaves)
}

/// As `tree_leaves` in the order of a structure; `None` for a tree of another structure.
#[pyfunction]
#[pyo3(signature = (tree, like, *, trainable=false))]
pub fn tree_leaves_like<'py>(
    tree: &Object<'py>,
    like: &Structure,
    trainable: bool,
) -> PyResult<Option<Bound<'py, PyList>>> {
    let leaves = unless::<StructureError, _>(tree.py(), zip::leaves_like(like, tree, trainable))?;
    leaves.map(|leaves| PyList::new(tree.py(), leaves)).transpose()
}

#[pyfunction]
#[pyo3(signature = (f, tree, *rest))]
pub fn tree_map<'py>(f: &Object<'py>, tree: &Object<'py>, rest: &Bound<'py, PyTuple>) -> PyResult<Py<PyAny>> {
    let py = tree.py();
    let (leaves, structure) = flatten(py, tree)?;
    let mut rows = vec![leaves];
    for other in rest {
        rows.push(zip::leaves_like(&structure, &other, false)?);
    }
    let call = |i: usize| {
        let arguments = rows.iter().map(|row| row[i].bind(py));
        f.call1(PyTuple::new(py, arguments)?).map(Bound::unbind)
    };
    let mapped = (0..structure.shape.len()).map(call).collect::<PyResult<Vec<_>>>()?;
    structure.unflatten(py, mapped)
}

#[pyfunction]
pub fn tree_parameters<'py>(tree: &Object<'py>) -> PyResult<Bound<'py, PyDict>> {
    let (leaves, structure) = flatten(tree.py(), tree)?;
    let (paths, parameters) = (structure.shape.paths(), PyDict::new(tree.py()));
    for group in select::parameters(tree.py(), &leaves, &structure)? {
        parameters.set_item(KeyPath(paths[group[0]].clone()), &leaves[group[0]])?;
    }
    Ok(parameters)
}

/// For each parameter among `leaves`, its places, in order.
#[pyfunction]
pub fn tree_tied(leaves: &Object<'_>, structure: &Structure) -> PyResult<Vec<Vec<usize>>> {
    let listed = listed(leaves)?;
    structure.check_len(listed.len())?;
    select::parameters(leaves.py(), &listed, structure)
}

/// Registers a class by the attributes that are its children, with whether each is trainable.
#[pyfunction]
pub fn tree_register_fields(class: &Bound<'_, PyType>, fields: Vec<(String, bool)>, writable: bool) -> PyResult<()> {
    kind::register(class, ContainerKind::Fields(Fields::new(class, fields, writable)?))
}

/// Registers a class by a function that flattens an instance and one that rebuilds it.
#[pyfunction]
pub fn tree_register_functions(class: &Bound<'_, PyType>, flatten: Py<PyAny>, unflatten: Py<PyAny>) -> PyResult<()> {
    kind::register(class, ContainerKind::Functions(Functions { flatten, unflatten }))
}
