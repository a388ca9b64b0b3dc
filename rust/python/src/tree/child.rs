//! Children by key: lookup, replacement, and the error for a key that is missing.

use std::sync::Arc;

use oxigrad_core::tree::{self, DictKey, Key, Segment, list_keys};
use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::container::{Child, Container, dict_key, take_apart};
use super::kind::{ContainerKind, Field, TypeInfo, type_info};
use crate::prelude::*;

/// Children, a description of their container, and the rest that rebuilding needs.
type TakenApart<'py> = (Vec<Child<'py>>, Container, Option<Object<'py>>);

/// A part of a tree and the kind of its class.
pub struct Part<'py> {
    /// The part.
    pub object: Object<'py>,
    /// The kind of its class.
    pub info: Arc<TypeInfo>,
}

impl<'py> Part<'py> {
    /// Looks up the kind of the class of `object`.
    pub fn new(object: Object<'py>) -> PyResult<Self> {
        let info = type_info(&object.get_type())?;
        Ok(Self { object, info })
    }

    /// The key of this kind of container for a segment of a printed path, if there is one. The child may be missing.
    pub fn resolve(&self, segment: &Segment) -> Option<Key> {
        match (&self.info.kind, segment) {
            (ContainerKind::List | ContainerKind::Tuple | ContainerKind::Functions(_), Segment::Number(index)) => {
                usize::try_from(*index).ok().map(Key::Index)
            }
            (ContainerKind::Mappings(_), Segment::Number(index)) => usize::try_from(*index).ok().map(Key::Index),
            (
                ContainerKind::NamedTuple(_)
                | ContainerKind::Fields(_)
                | ContainerKind::Mappings(_)
                | ContainerKind::Functions(_),
                Segment::Text(name),
            ) => Some(Key::Field(name.clone())),
            (ContainerKind::Dict, Segment::Number(number)) => Some(Key::Item(DictKey::Number(*number))),
            (ContainerKind::Dict, Segment::Text(name)) => Some(Key::Item(DictKey::Text(name.clone()))),
            _ => None,
        }
    }

    /// The child under `key`, if there is one.
    pub fn child(&self, key: &Key) -> PyResult<Option<Object<'py>>> {
        let object = &self.object;
        match (&self.info.kind, key) {
            (ContainerKind::List, Key::Index(index)) => Ok(object.cast::<PyList>()?.get_item(*index).ok()),
            (ContainerKind::Tuple, Key::Index(index)) => Ok(object.cast::<PyTuple>()?.get_item(*index).ok()),
            (ContainerKind::NamedTuple(names), Key::Field(name)) => {
                let index = names.iter().position(|other| other == name);
                index.map(|index| object.cast::<PyTuple>()?.get_item(index)).transpose()
            }
            (ContainerKind::Dict, Key::Item(DictKey::Number(number))) => object.cast::<PyDict>()?.get_item(number),
            (ContainerKind::Dict, Key::Item(DictKey::Text(name))) => object.cast::<PyDict>()?.get_item(&**name),
            (ContainerKind::Fields(_), Key::Field(name)) => match self.field(name) {
                Some(field) => object.getattr_opt(&field.name),
                None => Ok(None),
            },
            (ContainerKind::Mappings(mappings), key) => mappings.child(object, key),
            (ContainerKind::Functions(_), key) => {
                let (mut children, container, _) = self.taken_apart()?;
                let place = (0..children.len()).find(|child| tree::Container::key(&container, *child) == *key);
                Ok(place.and_then(|place| children.swap_remove(place).object))
            }
            _ => Ok(None),
        }
    }

    /// Whether a child under `key` can be set: it exists, or is a field without a value.
    pub fn has(&self, key: &Key) -> PyResult<bool> {
        match key {
            Key::Field(name) if self.field(name).is_some() => Ok(true),
            key => Ok(self.child(key)?.is_some()),
        }
    }

    fn field(&self, name: &str) -> Option<&Field> {
        match &self.info.kind {
            ContainerKind::Fields(fields) => fields.all.iter().find(|field| *field.text == *name),
            _ => None,
        }
    }

    /// Puts `value` under `key`, in place: the object must accept assignment.
    pub fn assign(&self, key: &Key, value: &Object<'py>) -> PyResult<()> {
        match key {
            Key::Index(index) if matches!(self.info.kind, ContainerKind::Mappings(_)) => {
                self.object.setattr(index.to_string(), value)
            }
            Key::Index(index) => self.object.set_item(index, value),
            Key::Item(DictKey::Number(number)) => self.object.set_item(number, value),
            Key::Item(DictKey::Text(name)) => self.object.set_item(&**name, value),
            Key::Field(name) => self.object.setattr(&**name, value),
        }
    }

    /// As `assign`, past the methods of the container's class, which may raise.
    pub fn assign_plainly(&self, key: &Key, value: &Object<'py>) -> PyResult<()> {
        match (&self.info.kind, key) {
            (ContainerKind::List, Key::Index(index)) => self.object.cast::<PyList>()?.set_item(*index, value),
            (ContainerKind::Dict, Key::Item(DictKey::Number(number))) => {
                self.object.cast::<PyDict>()?.set_item(number, value)
            }
            (ContainerKind::Dict, Key::Item(DictKey::Text(name))) => {
                self.object.cast::<PyDict>()?.set_item(&**name, value)
            }
            (ContainerKind::Mappings(mappings), key) => mappings.assign_plainly(&self.object, key, value),
            (_, Key::Field(name)) => {
                let set = value.py().get_type::<PyAny>().getattr(intern!(value.py(), "__setattr__"))?;
                set.call1((&self.object, &**name, value)).map(drop)
            }
            _ => self.assign(key, value),
        }
    }

    /// A new container like this one, with `value` under `key`.
    pub fn rebuild(&self, key: &Key, value: Object<'py>) -> PyResult<Object<'py>> {
        let py = value.py();
        let (mut children, container, rest) = self.taken_apart()?;
        let place = (0..children.len()).find(|child| tree::Container::key(&container, *child) == *key);
        let place = place.ok_or_else(|| PyAttributeError::new_err(format!("{key} no longer exists")))?;
        children[place] = Child { object: Some(value), trainable: true };
        container.put_together(py, rest.as_ref(), children.into_iter().map(|child| child.object))
    }

    /// The children, the description of the container with its keys, and the rest that rebuilding needs.
    fn taken_apart(&self) -> PyResult<TakenApart<'py>> {
        let (mut children, mut objects) = (Vec::new(), Vec::new());
        let rest = take_apart(&self.object, &self.info, &mut children, &mut objects, true)?;
        let mut keys = Vec::with_capacity(objects.len());
        for key in objects {
            let text = dict_key(&key)?.map_err(PyAttributeError::new_err)?;
            keys.push((key.unbind(), text));
        }
        Ok((children, Container { class: self.object.get_type().unbind(), info: self.info.clone(), keys }, rest))
    }

    /// A description in words: `a list of 3`, `a leaf (ndarray)`.
    pub fn describe(&self) -> PyResult<String> {
        let name = &self.info.name;
        Ok(match &self.info.kind {
            ContainerKind::Leaf => format!("a leaf ({name})"),
            ContainerKind::Empty => "None".into(),
            ContainerKind::NamedTuple(_)
            | ContainerKind::Fields(_)
            | ContainerKind::Mappings(_)
            | ContainerKind::Functions(_) => format!("a {name}"),
            ContainerKind::Dict if !self.object.is_empty()? => format!("a {name} with the keys {}", self.dict_keys()?),
            ContainerKind::List | ContainerKind::Tuple | ContainerKind::Dict => {
                format!("a {name} of {}", self.object.len()?)
            }
        })
    }

    /// Message for a key that was not found below this part, which `place` names.
    pub fn instead(&self, place: &str) -> PyResult<String> {
        let name = &self.info.name;
        Ok(match &self.info.kind {
            ContainerKind::Leaf => format!("{place} is a leaf ({name})"),
            ContainerKind::Empty => format!("{place} is None"),
            ContainerKind::List | ContainerKind::Tuple => match self.object.len()? {
                1 => format!("the {name} has 1 item"),
                len => format!("the {name} has {len} items"),
            },
            ContainerKind::Dict if self.object.is_empty()? => format!("the {name} is empty"),
            ContainerKind::Dict => format!("the {name} has the keys {}", self.dict_keys()?),
            ContainerKind::NamedTuple(names) => {
                format!("{name} has the fields {}", list_keys(names.iter().cloned().map(Key::Field)))
            }
            ContainerKind::Fields(fields) => {
                let names = fields.all.iter().map(|field| Key::Field(field.text.clone()));
                format!("{name} has the fields {}", list_keys(names))
            }
            ContainerKind::Mappings(_) => format!("{name} has the children {}", self.dict_keys()?),
            ContainerKind::Functions(_) => match self.dict_keys()? {
                keys if keys.is_empty() => format!("{name} has children by index"),
                keys => format!("{name} has the children {keys}"),
            },
        })
    }

    fn dict_keys(&self) -> PyResult<String> {
        let (mut children, mut keys) = (Vec::new(), Vec::new());
        take_apart(&self.object, &self.info, &mut children, &mut keys, false)?;
        let keys = keys.iter().map(dict_key).collect::<PyResult<Vec<_>>>()?;
        Ok(list_keys(keys.into_iter().filter_map(Result::ok).map(Key::Item)))
    }
}
