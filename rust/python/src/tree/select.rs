//! Selection of parts of a tree: parts of a type or dtype, and parameters.

use std::collections::HashMap;

use oxigrad_core::tree::{KeyPath as Path, Walk};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::types::{PyString, PyTuple, PyType};

use super::flatten::flatten;
use super::kind::type_info;
use super::path::KeyPath;
use super::structure::Structure;
use super::zip::Along;
use crate::prelude::*;

/// Condition on a part.
enum Want<'py> {
    /// An instance of the class; or an array of the dtype of a scalar class.
    Class(Bound<'py, PyType>, bool),
    /// Something with this dtype.
    Dtype(Object<'py>),
    /// A part for which the function returns true.
    Predicate(Object<'py>),
}

impl<'py> Want<'py> {
    fn new(to: &Object<'py>) -> PyResult<Self> {
        let py = to.py();
        if let Ok(class) = to.cast::<PyType>() {
            let is_dtype = class.hasattr(intern!(py, "dtype"))? && type_info(class)?.is_leaf();
            return Ok(Self::Class(class.clone(), is_dtype));
        }
        Ok(if to.is_callable() { Self::Predicate(to.clone()) } else { Self::Dtype(to.clone()) })
    }

    fn accepts(&self, value: &Object<'py>) -> PyResult<bool> {
        match self {
            Self::Class(class, is_dtype) => Ok(value.is_instance(class)? || (*is_dtype && has_dtype(value, class)?)),
            Self::Dtype(dtype) => has_dtype(value, dtype),
            Self::Predicate(predicate) => predicate.call1((value,))?.is_truthy(),
        }
    }
}

/// Whether `value` has the dtype; a dtype that equals `object` does not count, since that of object arrays equals many
/// classes.
fn has_dtype<'py>(value: &Object<'py>, dtype: &Object<'py>) -> PyResult<bool> {
    let py = value.py();
    if value.is_instance_of::<PyType>() {
        return Ok(false);
    }
    let Some(actual) = value.getattr_opt(intern!(py, "dtype"))? else { return Ok(false) };
    match actual.eq(dtype) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => Ok(false),
        Ok(true) => Ok(!actual.eq(py.get_type::<PyAny>())?),
        result => result,
    }
}

fn wants<'py>(to: &Object<'py>) -> PyResult<Vec<Want<'py>>> {
    match to.cast::<PyTuple>() {
        Ok(any) => any.iter().map(|to| Want::new(&to)).collect(),
        Err(_) => Ok(vec![Want::new(to)?]),
    }
}

// The paths of the parts of `tree` below the root, each before its own parts: those that `to` accepts and, unless
// `writable` is `None`, whose writability in place is `writable`.
#[pyfunction]
pub fn tree_key_paths(
    tree: &Object<'_>,
    to: Option<&Object<'_>>,
    recursive: bool,
    writable: Option<bool>,
) -> PyResult<Vec<KeyPath>> {
    let wants = to.map(wants).transpose()?;
    let (_, structure) = flatten(tree.py(), tree)?;
    let (mut paths, mut walk) = (Vec::new(), Walk::<Path>::default());
    for (node, visited) in structure.shape.nodes().iter().zip(Along::new(&structure, tree)) {
        let (object, parent) = (visited?, walk.next_parent());
        let is_meant = parent.as_ref().is_some_and(|parent| {
            let is_assignable = structure.shape.container(parent.container).info.is_assignable();
            writable.is_none_or(|writable| writable == is_assignable) && (recursive || parent.value.is_empty())
        });
        let path = structure.shape.path_below(parent);
        if let (true, Some(object)) = (is_meant, &object)
            && accepts(wants.as_deref(), object)?
        {
            paths.push(KeyPath(path.clone()));
        }
        walk.visit(*node, path);
    }
    Ok(paths)
}

fn accepts<'py>(wants: Option<&[Want<'py>]>, object: &Object<'py>) -> PyResult<bool> {
    let Some(wants) = wants else { return Ok(true) };
    for want in wants {
        if want.accepts(object)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The trainable parameters among `leaves`: for each, the leaves that are that array, in order.
///
/// A parameter is an array, something with a shape and a floating or complex dtype, that is not below a field marked
/// as not trainable. Places below such fields are in no group.
pub fn parameters(py: Python<'_>, leaves: &[Py<PyAny>], structure: &Structure) -> PyResult<Vec<Vec<usize>>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group_of: HashMap<_, usize> = HashMap::new();
    let mut dtypes = Dtypes::default();
    for (i, leaf) in leaves.iter().enumerate() {
        if !structure.shape.is_trainable(i) {
            continue;
        }
        if let Some(group) = group_of.get(&leaf.as_ptr()) {
            groups[*group].push(i);
        } else if dtypes.is_parameter(leaf.bind(py))? {
            group_of.insert(leaf.as_ptr(), groups.len());
            groups.push(vec![i]);
        }
    }
    Ok(groups)
}

/// Whether a value is an array of floating or complex dtype. A container that has a dtype, such as that of an array in it, is none.
#[pyfunction]
pub fn is_inexact(value: &Object<'_>) -> PyResult<bool> {
    Ok(Dtypes::default().is_parameter(value)? && type_info(&value.get_type())?.is_leaf())
}

/// Whether a value is an array of any library: it has a shape and a dtype.
#[pyfunction]
pub fn is_array(value: &Object<'_>) -> PyResult<bool> {
    Ok(value.hasattr("dtype")? && value.hasattr("shape")?)
}

/// Cache of whether a dtype is floating or complex.
#[derive(Default)]
struct Dtypes<'py>(Vec<(Object<'py>, bool)>);

impl<'py> Dtypes<'py> {
    fn is_parameter(&mut self, leaf: &Object<'py>) -> PyResult<bool> {
        let py = leaf.py();
        if leaf.is_instance_of::<PyType>() {
            return Ok(false);
        }
        let Some(dtype) = leaf.getattr_opt(intern!(py, "dtype"))? else { return Ok(false) };
        Ok(self.is_continuous(dtype)? && leaf.hasattr(intern!(py, "shape"))?)
    }

    fn is_continuous(&mut self, dtype: Object<'py>) -> PyResult<bool> {
        if let Some((_, answer)) = self.0.iter().find(|(other, _)| other.is(&dtype)) {
            return Ok(*answer);
        }
        let answer = is_continuous(&dtype)?;
        if self.0.len() < 16 {
            self.0.push((dtype, answer));
        }
        Ok(answer)
    }
}

/// Whether a dtype is floating or complex. The names of dtypes of all libraries tell: `torch.float32`, `bfloat16`;
/// only dtypes of foreign byte order are tested by their kind.
fn is_continuous(dtype: &Object<'_>) -> PyResult<bool> {
    if let Some(kind) = dtype.getattr_opt(intern!(dtype.py(), "kind"))?
        && let Ok(kind) = kind.cast::<PyString>()
        && matches!(&*kind.to_cow()?, "f" | "c")
    {
        return Ok(true);
    }
    let name = dtype.str()?;
    let name = name.to_cow()?;
    Ok(!name.starts_with('[') && (name.contains("float") || name.contains("complex")))
}
