//! Flattening of a tree into leaves and structure, without recursion.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use oxigrad_core::error::Error;
use oxigrad_core::tree::{self, Container as _, Key, Node};
use pyo3::ffi::PyTypeObject;

use super::container::{Child, Container, dict_key, stack, take_apart};
use super::kind::{ContainerKind, TypeInfo, type_info};
use super::structure::Structure;
use crate::prelude::*;

/// Depth below which cycles are searched for: shallower trees have no cost, and a cyclic tree reaches it soon.
const DEEP: usize = 64;

/// The leaves of `tree`, and its structure.
pub fn flatten(_py: Python<'_>, tree: &Object<'_>) -> PyResult<(Vec<Py<PyAny>>, Structure)> {
    let root = Child { object: Some(tree.clone()), trainable: true };
    let mut walk = Walk { pending: vec![root], ..Walk::default() };
    while let Some(child) = walk.pending.pop() {
        walk.visit(child)?;
    }
    let Walk { shape, leaves, rests, .. } = walk;
    Ok((leaves, Structure { shape, rests }))
}

#[derive(Default)]
struct Walk<'py> {
    shape: tree::Structure<Container>,
    leaves: Vec<Py<PyAny>>,
    rests: Vec<(usize, Py<PyAny>)>,
    classes: Classes,
    /// Stack of the objects to be visited.
    pending: Vec<Child<'py>>,
    /// The containers above, the root first.
    above: Vec<Above<'py>>,
    deep: HashSet<usize>,
    keys: Vec<Object<'py>>,
}

struct Above<'py> {
    object: Object<'py>,
    container: u32,
    arity: usize,
    left: usize,
}

impl<'py> Walk<'py> {
    fn visit(&mut self, child: Child<'py>) -> PyResult<()> {
        self.close();
        let Some(object) = child.object else {
            self.shape.push(Node::Unset);
            return Ok(());
        };
        let class = self.classes.find(&object)?;
        match &self.classes.seen[class].info.kind {
            ContainerKind::Leaf => {
                self.shape.push(Node::Leaf { trainable: child.trainable });
                self.leaves.push(object.unbind());
                Ok(())
            }
            ContainerKind::Empty => {
                self.shape.push(Node::Empty);
                Ok(())
            }
            _ => self.open(object, class, child.trainable),
        }
    }

    fn open(&mut self, object: Object<'py>, class: usize, trainable: bool) -> PyResult<()> {
        self.check_cycle(&object)?;
        let start = self.pending.len();
        self.keys.clear();
        let info = &self.classes.seen[class].info;
        let rest = take_apart(&object, info, &mut self.pending, &mut self.keys, true)?;
        let arity = self.pending.len() - start;
        stack(&mut self.pending[start..], trainable);
        if let Some(rest) = rest {
            self.rests.push((self.shape.nodes().len(), rest.unbind()));
        }
        let container = self.container(&object, class)?;
        self.shape.push_branch(container, arity).python()?;
        self.above.push(Above { object, container, arity, left: arity });
        Ok(())
    }

    /// The number of the container in the structure: that of the last one of its class, if the keys are the same.
    fn container(&mut self, object: &Object<'py>, class: usize) -> PyResult<u32> {
        let seen = &self.classes.seen[class];
        if let Some(last) = seen.container
            && self.shape.container(last).has_keys(&self.keys)
        {
            return Ok(last);
        }
        let mut keys = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            let named = |what| Error::Structure(format!("{}: {what}", self.path().place()));
            keys.push((key.clone().unbind(), dict_key(key)?.map_err(named).python()?));
        }
        let container = Container { class: object.get_type().unbind(), info: seen.info.clone(), keys };
        let id = self.shape.add_container(container);
        self.classes.seen[class].container = Some(id);
        Ok(id)
    }

    /// Path of the object that is visited.
    fn path(&self) -> tree::KeyPath {
        self.keys_down_to(self.above.len()).collect()
    }

    fn keys_down_to(&self, depth: usize) -> impl Iterator<Item = Key> {
        self.above[..depth].iter().map(|above| self.shape.container(above.container).key(above.arity - above.left - 1))
    }

    /// Goes back up to the container whose child comes next.
    fn close(&mut self) {
        while let Some(above) = self.above.pop_if(|above| above.left == 0) {
            if self.above.len() < DEEP {
                self.deep.clear();
            } else {
                self.deep.remove(&(above.object.as_ptr() as usize));
            }
        }
        if let Some(above) = self.above.last_mut() {
            above.left -= 1;
        }
    }

    fn check_cycle(&mut self, object: &Object<'py>) -> PyResult<()> {
        if self.above.len() < DEEP {
            return Ok(());
        }
        if self.deep.is_empty() {
            self.deep.extend(self.above.iter().map(|above| above.object.as_ptr() as usize));
        }
        let is_new = self.deep.insert(object.as_ptr() as usize);
        if is_new && self.deep.len() > self.above.len() { Ok(()) } else { Err(self.cycle(object)) }
    }

    /// The error for the first container that is one of its own ancestors.
    fn cycle(&self, object: &Object<'py>) -> PyErr {
        let mut seen = HashMap::new();
        let objects = self.above.iter().map(|above| &above.object).chain([object]);
        for (depth, object) in objects.enumerate() {
            if let Some(first) = seen.insert(object.as_ptr(), depth) {
                let place = |depth| self.keys_down_to(depth).collect::<tree::KeyPath>().place();
                let what = format!("{}: a cycle, this is the same object as {}", place(depth), place(first));
                return StructureError::new_err(what);
            }
        }
        unreachable!("a cycle was found")
    }
}

/// Classes of one traversal: a short list with linear search.
#[derive(Default)]
pub struct Classes {
    seen: Vec<Class>,
}

/// A class in a traversal, which holds an instance and so keeps the class alive.
pub struct Class {
    address: *mut PyTypeObject,
    /// The kind of the class.
    pub info: Arc<TypeInfo>,
    /// The number of the last container of this class.
    container: Option<u32>,
}

impl Classes {
    /// Index of the class of `object`.
    fn find(&mut self, object: &Object<'_>) -> PyResult<usize> {
        let address = object.get_type_ptr();
        if let Some(index) = self.seen.iter().position(|class| class.address == address) {
            return Ok(index);
        }
        self.seen.push(Class { address, info: type_info(&object.get_type())?, container: None });
        Ok(self.seen.len() - 1)
    }

    /// The kind of the class of `object`.
    pub fn info(&mut self, object: &Object<'_>) -> PyResult<&Arc<TypeInfo>> {
        let index = self.find(object)?;
        Ok(&self.seen[index].info)
    }
}
