//! Traversal of a tree in the order of another tree's structure.

use std::collections::HashMap;

use oxigrad_core::tree::{DictKey, Node};

use super::child::Part;
use super::container::{Child, Container, dict_key, stack, take_apart};
use super::flatten::Classes;
use super::kind::{ContainerKind, TypeInfo};
use super::structure::Structure;
use crate::prelude::*;

/// Visits the nodes of a tree in the order of a structure, which the tree must have except for the order of dict keys.
/// Yields the object at each node, or `None` for a field without a value.
pub struct Along<'a, 'py> {
    structure: &'a Structure,
    classes: Classes,
    pending: Vec<Child<'py>>,
    keys: Vec<Object<'py>>,
    place: usize,
    /// Whether leaves must agree with the structure in being trainable.
    with_trainable: bool,
}

impl<'a, 'py> Along<'a, 'py> {
    /// Starts at the root.
    pub fn new(structure: &'a Structure, tree: &Object<'py>) -> Self {
        let root = Child { object: Some(tree.clone()), trainable: true };
        Self {
            structure,
            classes: Classes::default(),
            pending: vec![root],
            keys: Vec::new(),
            place: 0,
            with_trainable: false,
        }
    }

    /// The next object if it is a leaf: the fast path for most nodes.
    fn next_leaf(&mut self) -> PyResult<Option<Object<'py>>> {
        let Some(Node::Leaf { trainable: expected }) = self.structure.shape.nodes().get(self.place) else {
            return Ok(None);
        };
        let Some(Child { object: Some(object), trainable }) = self.pending.last() else { return Ok(None) };
        let is_alike = trainable == expected || !self.with_trainable;
        if !(is_alike && matches!(self.classes.info(object)?.kind, ContainerKind::Leaf)) {
            return Ok(None);
        }
        self.place += 1;
        Ok(self.pending.pop().and_then(|child| child.object))
    }

    fn visit(&mut self, child: Child<'py>) -> PyResult<Option<Object<'py>>> {
        let node = self.structure.shape.nodes()[self.place];
        let Some(part) = child.object else {
            return if node == Node::Unset { Ok(None) } else { Err(self.unset(node)) };
        };
        let info = self.classes.info(&part)?;
        match (node, &info.kind) {
            (Node::Leaf { trainable }, ContainerKind::Leaf) if self.with_trainable && trainable != child.trainable => {
                let description = if trainable { "one that is not trainable" } else { "one that is trainable" };
                return Err(self.error(node, description));
            }
            (Node::Leaf { .. }, ContainerKind::Leaf) | (Node::Empty, ContainerKind::Empty) => {}
            (Node::Branch { container, arity }, kind)
                if !matches!(kind, ContainerKind::Leaf | ContainerKind::Empty) =>
            {
                let info = info.clone();
                self.open(container, arity as usize, &part, &info, child.trainable)?;
            }
            _ => return Err(self.differs(&part)?),
        }
        Ok(Some(part))
    }

    fn open(
        &mut self,
        container: u32,
        arity: usize,
        object: &Object<'py>,
        info: &TypeInfo,
        trainable: bool,
    ) -> PyResult<()> {
        let container = self.structure.shape.container(container);
        if object.get_type_ptr() != container.class.as_ptr().cast() {
            return Err(self.differs(object)?);
        }
        let start = self.pending.len();
        self.keys.clear();
        take_apart(object, info, &mut self.pending, &mut self.keys, false)?;
        if self.pending.len() - start != arity {
            return Err(self.differs(object)?);
        }
        if !container.has_keys(&self.keys) {
            let children = self.pending.split_off(start);
            let Some(children) = in_order(container, &self.keys, children)? else { return Err(self.differs(object)?) };
            self.pending.extend(children);
        }
        stack(&mut self.pending[start..], trainable);
        Ok(())
    }

    fn error(&self, node: Node, description: &str) -> PyErr {
        let shape = &self.structure.shape;
        let mut description = description.to_owned();
        if description == shape.describe(node) {
            description.push_str(" (another class of that name)");
        }
        StructureError::new_err(format!(
            "{}: expected {}, found {description}",
            shape.place(self.place),
            shape.describe(node)
        ))
    }

    fn differs(&self, object: &Object<'py>) -> PyResult<PyErr> {
        let description = Part::new(object.clone())?.describe()?;
        Ok(self.error(self.structure.shape.nodes()[self.place], &description))
    }

    fn unset(&self, node: Node) -> PyErr {
        self.error(node, "a field without a value")
    }
}

impl<'py> Iterator for Along<'_, 'py> {
    type Item = PyResult<Option<Object<'py>>>;

    fn next(&mut self) -> Option<Self::Item> {
        let child = self.pending.pop()?;
        let visited = self.visit(child);
        self.place += 1;
        Some(visited)
    }
}

/// The children in the order of the container's keys, if `keys` are the same.
fn in_order<'py>(
    container: &Container,
    keys: &[Object<'py>],
    children: Vec<Child<'py>>,
) -> PyResult<Option<Vec<Child<'py>>>> {
    let mut keyed: HashMap<DictKey, Child<'py>> = HashMap::with_capacity(keys.len());
    for (key, child) in keys.iter().zip(children) {
        let Ok(key) = dict_key(key)? else { return Ok(None) };
        keyed.insert(key, child);
    }
    Ok(container.keys.iter().map(|(_, key)| keyed.remove(key)).collect())
}

/// The leaves of `tree`, which must have `structure`, in the order of the structure: dict keys may be in any order.
///
/// # Errors
/// `StructureError` with the first place where the tree differs; or, if required, where a leaf is trainable in one of
/// them only.
pub fn leaves_like(structure: &Structure, tree: &Object<'_>, with_trainable: bool) -> PyResult<Vec<Py<PyAny>>> {
    let mut leaves = Vec::with_capacity(structure.shape.len());
    let mut along = Along { with_trainable, ..Along::new(structure, tree) };
    loop {
        while let Some(leaf) = along.next_leaf()? {
            leaves.push(leaf.unbind());
        }
        let Some(visited) = along.next() else { return Ok(leaves) };
        visited?;
    }
}
