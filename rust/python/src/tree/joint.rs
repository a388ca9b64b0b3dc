//! Walking a tree along a structure: to read its leaves in the order of another tree, and to write all of them at once.

use std::collections::HashMap;
use std::sync::Arc;

use oxigrad_core::error::Error;
use oxigrad_core::tree::{Container as _, DictKey, Node};
use pyo3::prelude::*;

use super::container::{Child, Container, dict_key, take_apart};
use super::flatten::Classes;
use super::kind::{Kind, TypeInfo};
use super::step::Part;
use super::structure::Structure;
use crate::error::to_python;

/// Visits the nodes of a tree in the order of a structure, which the tree must have but for the order of dict keys.
pub struct Along<'a, 'py> {
    structure: &'a Structure,
    classes: Classes,
    pending: Vec<Child<'py>>,
    keys: Vec<Bound<'py, PyAny>>,
    place: usize,
}

/// A node of the tree.
pub struct Visited<'py> {
    /// What is there; none where a field has no value.
    pub object: Option<Bound<'py, PyAny>>,
    /// What rebuilding it needs besides its children.
    pub rest: Option<Bound<'py, PyAny>>,
}

impl<'a, 'py> Along<'a, 'py> {
    /// Starts at the root.
    pub fn new(structure: &'a Structure, tree: &Bound<'py, PyAny>) -> Self {
        let root = Child { object: Some(tree.clone()), trainable: true };
        Self { structure, classes: Classes::default(), pending: vec![root], keys: Vec::new(), place: 0 }
    }

    /// The leaf that comes next, where one does: the short way for what most of a tree is.
    fn next_leaf(&mut self) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(Node::Leaf { .. }) = self.structure.shape.nodes().get(self.place) else { return Ok(None) };
        let Some(Child { object: Some(object), .. }) = self.pending.last() else { return Ok(None) };
        if !matches!(self.classes.info(object)?.kind, Kind::Leaf) {
            return Ok(None);
        }
        self.place += 1;
        Ok(self.pending.pop().and_then(|child| child.object))
    }

    fn visit(&mut self, object: Option<Bound<'py, PyAny>>) -> PyResult<Visited<'py>> {
        let node = self.structure.shape.nodes()[self.place];
        let Some(part) = object else {
            return if node == Node::Unset { Ok(Visited { object: None, rest: None }) } else { Err(self.unset(node)) };
        };
        let info = self.classes.info(&part)?;
        let rest = match (node, &info.kind) {
            (Node::Leaf { .. }, Kind::Leaf) | (Node::Empty, Kind::Empty) => None,
            (Node::Branch { container, arity }, kind) if !matches!(kind, Kind::Leaf | Kind::Empty) => {
                let info = info.clone();
                self.open(container, arity as usize, &part, &info)?
            }
            _ => return Err(self.differs(&part)?),
        };
        Ok(Visited { object: Some(part), rest })
    }

    fn open(
        &mut self,
        container: u32,
        arity: usize,
        object: &Bound<'py, PyAny>,
        info: &TypeInfo,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let container = self.structure.shape.container(container);
        if object.get_type_ptr() != container.class.as_ptr().cast() {
            return Err(self.differs(object)?);
        }
        let start = self.pending.len();
        self.keys.clear();
        let rest = take_apart(object, info, &mut self.pending, &mut self.keys)?;
        if self.pending.len() - start != arity {
            return Err(self.differs(object)?);
        }
        if !container.has_keys(&self.keys) {
            let children = self.pending.split_off(start);
            let Some(children) = in_order(container, &self.keys, children) else { return Err(self.differs(object)?) };
            self.pending.extend(children);
        }
        self.pending[start..].reverse();
        Ok(rest)
    }

    fn error(&self, node: Node, found: &str) -> PyErr {
        let shape = &self.structure.shape;
        let mut found = found.to_owned();
        if found == shape.describe(node) {
            found.push_str(" (another class of that name)");
        }
        to_python(&Error::Structure(format!(
            "{}: expected {}, found {found}",
            shape.place(self.place),
            shape.describe(node)
        )))
    }

    fn differs(&self, object: &Bound<'py, PyAny>) -> PyResult<PyErr> {
        let found = Part::new(object.clone())?.describe()?;
        Ok(self.error(self.structure.shape.nodes()[self.place], &found))
    }

    fn unset(&self, node: Node) -> PyErr {
        self.error(node, "a field without a value")
    }
}

impl<'py> Iterator for Along<'_, 'py> {
    type Item = PyResult<Visited<'py>>;

    fn next(&mut self) -> Option<Self::Item> {
        let child = self.pending.pop()?;
        let visited = self.visit(child.object);
        self.place += 1;
        Some(visited)
    }
}

/// The children in the order of the container's keys, if `keys` are the same.
fn in_order<'py>(
    container: &Container,
    keys: &[Bound<'py, PyAny>],
    children: Vec<Child<'py>>,
) -> Option<Vec<Child<'py>>> {
    let keyed = keys.iter().zip(children).map(|(key, child)| Some((dict_key(key).ok()?, child)));
    let mut keyed: HashMap<DictKey, Child<'py>> = keyed.collect::<Option<_>>()?;
    container.keys.iter().map(|(_, key)| keyed.remove(key)).collect()
}

/// The leaves of `tree`, which must have `structure`, in the order of the structure: dict keys may be in any order.
///
/// # Errors
/// `StructureError` names the first place where the tree differs.
pub fn leaves_like(structure: &Structure, tree: &Bound<'_, PyAny>) -> PyResult<Vec<Py<PyAny>>> {
    let mut leaves = Vec::with_capacity(structure.len());
    let mut along = Along::new(structure, tree);
    loop {
        while let Some(leaf) = along.next_leaf()? {
            leaves.push(leaf.unbind());
        }
        let Some(visited) = along.next() else { return Ok(leaves) };
        visited?;
    }
}

/// Writes all leaves of `tree` at once and returns the tree. `leaves` are in the order of `structure`.
///
/// A leaf that is the same object as before is left alone. The others are assigned where their container accepts it; a
/// container that does not is made anew and written to the one above, so that the root is the same object or a new one.
pub fn assign<'py>(
    structure: &Structure,
    tree: &Bound<'py, PyAny>,
    leaves: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    structure.check_len(leaves.len())?;
    let parts = Along::new(structure, tree).collect::<PyResult<Vec<_>>>()?;
    let mut leaves = leaves.into_iter().rev();
    let mut built: Vec<Built<'py>> = Vec::new();
    for (node, part) in structure.shape.nodes().iter().zip(parts).rev() {
        let before = part.object.clone();
        let after = match *node {
            Node::Leaf { .. } => leaves.next(),
            Node::Empty | Node::Unset => before.clone(),
            Node::Branch { container, arity } => {
                let children = built.split_off(built.len() - arity as usize);
                Some(write(structure.shape.container(container), part, children)?)
            }
        };
        built.push(Built { before, after });
    }
    Ok(built.pop().and_then(|root| root.after).expect("a tree has a root"))
}

struct Built<'py> {
    before: Option<Bound<'py, PyAny>>,
    after: Option<Bound<'py, PyAny>>,
}

impl Built<'_> {
    fn is_changed(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => !before.is(after),
            _ => false,
        }
    }
}

/// The container with `children`, the last one first: the same one, written to where it can be.
fn write<'py>(container: &Container, part: Visited<'py>, children: Vec<Built<'py>>) -> PyResult<Bound<'py, PyAny>> {
    let object = part.object.expect("a container is there");
    if !children.iter().any(Built::is_changed) {
        return Ok(object);
    }
    if !container.info.is_assignable() {
        let children = children.into_iter().rev().map(|child| child.after);
        return container.put_together(object.py(), part.rest.as_ref(), children);
    }
    let part = Part { object, info: Arc::clone(&container.info) };
    for (place, child) in children.into_iter().rev().enumerate() {
        if let (true, Some(value)) = (child.is_changed(), &child.after) {
            part.assign(&container.key(place), value)?;
        }
    }
    Ok(part.object)
}
