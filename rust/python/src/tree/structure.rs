//! `Structure`: a tree without its leaves, from which trees are rebuilt.

use std::hash::{Hash, Hasher};

use oxigrad_core::tree::{self, Node, Walk};
use pyo3::exceptions::PyIndexError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::container::Container;
use super::kind::ContainerKind;
use super::path::KeyPath;
use crate::prelude::*;

/// A tree without its leaves. Equal where types and keys are equal, in the same order.
#[pyclass(frozen, eq, hash, module = "oxigrad.tree")]
pub struct Structure {
    /// The nodes.
    pub shape: tree::Structure<Container>,
    /// The rest that some containers need to be rebuilt, by node, in order.
    pub(super) rests: Vec<(usize, Py<PyAny>)>,
}

/// The attributes in what a container needs to be rebuilt; `None` of a list or a dict that has some, which are no copies.
fn attributes<'py>(rest: &Object<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let py = rest.py();
    if let Ok(attributes) = rest.cast_exact::<PyDict>() {
        return Ok(Some(attributes.clone()));
    }
    if let Ok(parts) = rest.cast_exact::<PyTuple>() {
        return Ok(parts
            .get_item(0)
            .ok()
            .and_then(|first| first.cast_into_exact::<PyDict>().ok())
            .or_else(|| Some(PyDict::new(py))));
    }
    let is_builtin = rest.is_instance_of::<PyList>() || rest.is_instance_of::<PyDict>();
    let own = rest.getattr_opt(intern!(py, "__dict__"))?.filter(|_| is_builtin);
    Ok(own.is_none_or(|own| own.is_empty().unwrap_or(false)).then(|| PyDict::new(py)))
}

impl PartialEq for Structure {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.shape == other.shape
    }
}

impl Eq for Structure {}

impl Hash for Structure {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.shape.hash(state);
    }
}

impl Structure {
    /// Whether the tree is one leaf.
    pub fn is_leaf(&self) -> bool {
        *self.shape.nodes() == [Node::Leaf { trainable: true }]
    }

    /// Whether the containers have the same attributes beside their children: those that are ``same``.
    ///
    /// # Errors
    /// An error that a comparison raises.
    pub fn has_attributes_of(
        &self,
        py: Python<'_>,
        other: &Self,
        same: impl Fn(&Object<'_>, &Object<'_>) -> PyResult<Option<bool>>,
    ) -> PyResult<bool> {
        if self.rests.len() != other.rests.len() {
            return Ok(false);
        }
        for ((node, rest), (its, others)) in self.rests.iter().zip(&other.rests) {
            let (Some(rest), Some(others)) = (attributes(rest.bind(py))?, attributes(others.bind(py))?) else {
                return Ok(false);
            };
            if node != its || rest.len() != others.len() {
                return Ok(false);
            }
            for (name, value) in rest {
                let Some(found) = others.get_item(name)? else { return Ok(false) };
                if !same(&value, &found)?.unwrap_or(false) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The structure in print.
    pub fn shown(&self) -> String {
        format!("Structure({})", self.shape)
    }

    /// The error for another number of leaves than this structure has.
    pub fn check_len(&self, len: usize) -> PyResult<()> {
        let what = format!("the structure has {} leaves, found {len}", self.shape.len());
        if len == self.shape.len() { Ok(()) } else { Err(StructureError::new_err(what)) }
    }

    /// A tree of this structure: new containers that hold `leaves`.
    pub fn unflatten(&self, py: Python<'_>, leaves: impl IntoIterator<Item = Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let leaves: Vec<_> = leaves.into_iter().collect();
        self.check_len(leaves.len())?;
        // Backwards, so that the children of a container are built before it, its first child last.
        let mut leaves = leaves.into_iter().rev();
        let mut built: Vec<Option<Object<'_>>> = Vec::new();
        let mut rests = self.rests.iter().rev().peekable();
        for (place, node) in self.shape.nodes().iter().enumerate().rev() {
            let object = match *node {
                Node::Leaf { .. } => leaves.next().map(|leaf| leaf.into_bound(py)),
                Node::Empty => Some(py.None().into_bound(py)),
                Node::Unset => None,
                Node::Branch { container, arity } => {
                    let rest = rests.next_if(|(node, _)| *node == place).map(|(_, rest)| rest.bind(py));
                    let children = built.drain(built.len() - arity as usize..).rev();
                    Some(self.shape.container(container).put_together(py, rest, children)?)
                }
            };
            built.push(object);
        }
        Ok(built.pop().flatten().expect("a tree has a root").unbind())
    }

    fn check_index(&self, index: usize) -> PyResult<()> {
        if index < self.shape.len() {
            return Ok(());
        }
        Err(PyIndexError::new_err(format!("leaf {index}: the structure has {} leaves", self.shape.len())))
    }

    /// The attribute that holds the gradient of each leaf, if its container declares one.
    fn gradient_attributes(&self) -> Vec<Option<&Py<PyString>>> {
        let (mut attributes, mut walk) = (Vec::with_capacity(self.shape.len()), Walk::default());
        for node in self.shape.nodes() {
            let parent = walk.next_parent().map(|parent| &self.shape.container(parent.container).info.kind);
            if let Node::Leaf { trainable } = node {
                attributes.push(match parent {
                    Some(ContainerKind::Mappings(mappings)) if *trainable => Some(&mappings.gradient),
                    _ => None,
                });
            }
            walk.visit(*node, ());
        }
        attributes
    }
}

#[pymethods]
impl Structure {
    fn __len__(&self) -> usize {
        self.shape.len()
    }

    fn __repr__(&self) -> String {
        self.shown()
    }

    /// The paths of the leaves, in order.
    fn paths(&self) -> Vec<KeyPath> {
        self.shape.paths().into_iter().map(KeyPath).collect()
    }

    /// The attributes of containers beside their children; None for a list or a dict with attributes.
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Option<Bound<'py, PyDict>>>> {
        self.rests.iter().map(|(_, rest)| attributes(rest.bind(py))).collect()
    }

    /// The path of the leaf at `index`.
    fn path(&self, index: usize) -> PyResult<KeyPath> {
        self.check_index(index)?;
        Ok(KeyPath(self.shape.path(index)))
    }

    /// Whether no field above the leaf at `index` is marked as not trainable.
    fn is_trainable(&self, index: usize) -> PyResult<bool> {
        self.check_index(index)?;
        Ok(self.shape.is_trainable(index))
    }

    /// For each leaf, whether its container declares an attribute for its gradient.
    fn holds_gradients(&self) -> Vec<bool> {
        self.gradient_attributes().iter().map(Option::is_some).collect()
    }

    /// The gradients that `leaves` hold themselves: `None` for a leaf without one, and where its container does not
    /// declare one. `present` is a byte for each leaf: whether it has a gradient. If that differs, the result is
    /// `None`.
    #[pyo3(signature = (leaves, present=None))]
    fn gradients<'py>(
        &self,
        leaves: &Bound<'py, PyList>,
        present: Option<&[u8]>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        self.check_len(leaves.len())?;
        let py = leaves.py();
        let gradient = |(leaf, attribute): (Object<'py>, Option<&Py<PyString>>)| match attribute {
            Some(attribute) => leaf.getattr(attribute),
            None => Ok(py.None().into_bound(py)),
        };
        let gradients = leaves.iter().zip(self.gradient_attributes()).map(gradient).collect::<PyResult<Vec<_>>>()?;
        let is_as_before = present.is_none_or(|present| {
            present.iter().map(|byte| *byte != 0).eq(gradients.iter().map(|gradient| !gradient.is_none()))
        });
        is_as_before.then(|| PyList::new(py, gradients)).transpose()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
        self.shape.containers().iter().try_for_each(|container| visit.call(&container.class))?;
        self.rests.iter().try_for_each(|(_, rest)| visit.call(rest))
    }
}
