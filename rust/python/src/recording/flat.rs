//! The leaves of a tree with its structure, for the calls of a recording.

use pyo3::types::{PyFloat, PyInt, PyList};
use smallvec::{SmallVec, smallvec};

use crate::arrays::memory::numpy::Numpy;
use crate::prelude::*;
use crate::tree::{Structure, flatten};

/// Whether two values are the same; `None` where that is not known.
type Same = fn(&Object<'_>, &Object<'_>) -> PyResult<Option<bool>>;

/// The leaves of a tree, and its structure.
pub struct Flat {
    pub leaves: SmallVec<[Py<PyAny>; 8]>,
    /// `None` of a tree that is one leaf.
    structure: Option<Structure>,
}

impl Flat {
    /// The leaves of a tree. An array or a number, the most frequent trees, is one leaf.
    pub fn of(tree: &Object<'_>) -> PyResult<Self> {
        let is_leaf = Numpy::get(tree.py()).is_plain_array(tree)
            || tree.is_exact_instance_of::<PyFloat>()
            || tree.is_exact_instance_of::<PyInt>();
        if is_leaf {
            return Ok(Self { leaves: smallvec![tree.clone().unbind()], structure: None });
        }
        let (leaves, structure) = flatten(tree.py(), tree)?;
        Ok(Self { leaves: SmallVec::from_vec(leaves), structure: Some(structure) })
    }

    /// Whether the tree has a structure, and its containers the same attributes beside their items.
    pub fn is_of(&self, py: Python<'_>, expected: &Structure, same: Same) -> PyResult<bool> {
        match &self.structure {
            Some(structure) => Ok(structure == expected && structure.has_attributes_of(py, expected, same)?),
            None => Ok(expected.is_leaf()),
        }
    }

    /// The structure in print.
    pub fn shown(&self) -> String {
        self.structure.as_ref().map_or_else(|| "Structure(*)".into(), Structure::shown)
    }

    /// The leaves as a list.
    pub fn objects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.leaves)
    }
}
