//! Flattening and rebuilding of one container.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use oxigrad_core::tree::{self, DictKey, Key};
use pyo3::exceptions::{PyOverflowError, PyUnicodeError};
use pyo3::intern;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple, PyType};

use super::kind::{ContainerKind, Fields, TypeInfo};
use super::mappings;
use crate::prelude::*;

/// A child of a flattened container.
pub struct Child<'py> {
    /// The child; `None` if a field has no value.
    pub object: Option<Object<'py>>,
    /// Whether its field is trainable.
    pub trainable: bool,
}

/// Turns the children of a container into a stack, whose top is the first. Below one that is not trainable, none is.
pub fn stack(children: &mut [Child<'_>], trainable: bool) {
    children.reverse();
    if !trainable {
        for child in children {
            child.trainable = false;
        }
    }
}

/// Description of a container in a structure: its class, and its keys if its children have names.
pub struct Container {
    /// The class.
    pub class: Py<PyType>,
    /// The kind of the class.
    pub info: Arc<TypeInfo>,
    /// The keys of a dict, of mappings, or of children by name, as Python objects and as keys of key paths.
    pub keys: Vec<(Py<PyAny>, DictKey)>,
}

impl PartialEq for Container {
    fn eq(&self, other: &Self) -> bool {
        let same_key = |((_, a), (_, b)): (&(_, DictKey), &(_, DictKey))| a == b;
        self.class.is(&other.class)
            && self.keys.len() == other.keys.len()
            && self.keys.iter().zip(&other.keys).all(same_key)
    }
}

impl Eq for Container {}

impl Hash for Container {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.class.as_ptr() as usize).hash(state);
        self.keys.iter().for_each(|(_, key)| key.hash(state));
    }
}

impl tree::Container for Container {
    fn name(&self) -> &str {
        &self.info.name
    }

    fn key(&self, child: usize) -> Key {
        match &self.info.kind {
            ContainerKind::Dict => Key::Item(self.keys[child].1.clone()),
            ContainerKind::Mappings(_) | ContainerKind::Functions(_) => {
                match self.keys.get(child).map(|(_, key)| key) {
                    Some(DictKey::Text(name)) => mappings::key(name),
                    Some(number @ DictKey::Number(_)) => Key::Item(number.clone()),
                    None => Key::Index(child),
                }
            }
            ContainerKind::NamedTuple(names) => Key::Field(names[child].clone()),
            ContainerKind::Fields(fields) => Key::Field(fields.all[child].text.clone()),
            ContainerKind::List | ContainerKind::Tuple | ContainerKind::Leaf | ContainerKind::Empty => {
                Key::Index(child)
            }
        }
    }
}

impl Container {
    /// Whether these are the keys, in this order. May be false for equal keys that are other objects than str.
    pub fn has_keys(&self, keys: &[Object<'_>]) -> bool {
        self.keys.len() == keys.len()
            && self.keys.iter().zip(keys).all(|((a, _), b)| a.is(b) || are_one_text(a.bind(b.py()), b))
    }
}

/// Whether two keys are the same str.
fn are_one_text(a: &Object<'_>, b: &Object<'_>) -> bool {
    match (a.cast_exact::<PyString>(), b.cast_exact::<PyString>()) {
        (Ok(a), Ok(b)) => a.as_any().eq(b).unwrap_or(false),
        _ => false,
    }
}

/// A dict's key for key paths, or the reason why it is invalid.
///
/// # Errors
/// An error that the key raises while it is printed.
pub fn dict_key(key: &Object<'_>) -> PyResult<Result<DictKey, String>> {
    let py = key.py();
    if let Ok(text) = key.cast::<PyString>() {
        return Ok(match unless::<PyUnicodeError, _>(py, text.to_cow())? {
            Some(text) => Ok(DictKey::Text(text.as_ref().into())),
            None => Err(format!("the dict key {} cannot be written as UTF-8", key.repr()?.to_cow()?)),
        });
    }
    if key.is_instance_of::<PyInt>() && !key.is_instance_of::<PyBool>() {
        return Ok(match unless::<PyOverflowError, _>(py, key.extract())? {
            Some(number) => Ok(DictKey::Number(number)),
            None => Err(format!("the dict key {} has more than 64 bits", key.str()?.to_cow()?)),
        });
    }
    let (text, class) = (key.repr()?, key.get_type().name()?);
    Ok(Err(format!("a dict key must be a str or an int, found {} ({})", text.to_cow()?, class.to_cow()?)))
}

/// Appends the children of `object` to `children`, and the keys of those that have names to `keys`. Returns the rest that
/// rebuilding needs, if requested.
///
/// The rest depends on the kind. Attributes: a dict of those that are not fields, if there are any; a class registered
/// with functions: the value that its flatten function returned; a subclass of a builtin: the object itself.
pub fn take_apart<'py>(
    object: &Object<'py>,
    info: &TypeInfo,
    children: &mut Vec<Child<'py>>,
    keys: &mut Vec<Object<'py>>,
    with_rest: bool,
) -> PyResult<Option<Object<'py>>> {
    let child = |object| Child { object: Some(object), trainable: true };
    let rest = (!info.exact).then(|| object.clone());
    match &info.kind {
        ContainerKind::Leaf | ContainerKind::Empty => Ok(None),
        ContainerKind::List => {
            children.extend(object.cast::<PyList>()?.iter().map(child));
            Ok(rest)
        }
        ContainerKind::Tuple | ContainerKind::NamedTuple(_) => {
            children.extend(object.cast::<PyTuple>()?.iter().map(child));
            Ok(None)
        }
        ContainerKind::Dict if info.exact => {
            for (key, value) in object.cast::<PyDict>()?.iter() {
                keys.push(key);
                children.push(child(value));
            }
            Ok(None)
        }
        ContainerKind::Dict => {
            for item in object.call_method0(intern!(object.py(), "items"))?.try_iter()? {
                let (key, value) = item?.extract()?;
                keys.push(key);
                children.push(child(value));
            }
            Ok(rest)
        }
        ContainerKind::Fields(fields) => fields.take_apart(object, children, with_rest),
        ContainerKind::Mappings(mappings) => {
            mappings.take_apart(object, |key, child, trainable| {
                keys.push(key);
                children.push(Child { object: Some(child), trainable });
            })?;
            if with_rest { mappings.rest(object).map(Some) } else { Ok(None) }
        }
        ContainerKind::Functions(functions) => {
            let parts = functions.flatten.bind(object.py()).call1((object,))?;
            let (parts, rest): (Object<'py>, Object<'py>) = parts.extract()?;
            if let Ok(named) = parts.cast::<PyDict>() {
                for (key, part) in named.iter() {
                    keys.push(key);
                    children.push(child(part));
                }
            } else {
                for part in parts.try_iter()? {
                    children.push(child(part?));
                }
            }
            Ok(Some(rest))
        }
    }
}

impl Fields {
    fn take_apart<'py>(
        &self,
        object: &Object<'py>,
        children: &mut Vec<Child<'py>>,
        with_rest: bool,
    ) -> PyResult<Option<Object<'py>>> {
        let py = object.py();
        let dict = if self.in_dict { Some(instance_dict(object)?) } else { None };
        let mut count = 0;
        for field in &self.all {
            let name = field.name.bind(py);
            let mut value = dict.as_ref().map_or(Ok(None), |dict| dict.get_item(name))?;
            count += usize::from(value.is_some());
            if value.is_none() {
                value = object.getattr_opt(name)?;
            }
            children.push(Child { object: value, trainable: field.trainable });
        }
        if !with_rest {
            return Ok(None);
        }
        if !self.plain {
            return Ok(Some(object.clone()));
        }
        if self.slots.is_empty() && dict.is_some_and(|dict| dict.len() == count) {
            return Ok(None);
        }
        self.other_attributes(object)
    }

    /// The attributes of an instance that are not fields.
    fn other_attributes<'py>(&self, object: &Object<'py>) -> PyResult<Option<Object<'py>>> {
        let py = object.py();
        let others = match object.getattr_opt(intern!(py, "__dict__"))? {
            Some(dict) => dict.cast::<PyDict>()?.copy()?,
            None => PyDict::new(py),
        };
        for field in &self.all {
            let name = field.name.bind(py);
            if others.contains(name)? {
                others.del_item(name)?;
            }
        }
        for name in &self.slots {
            if let Some(value) = object.getattr_opt(name.bind(py))? {
                others.set_item(name, value)?;
            }
        }
        Ok((!others.is_empty()).then(|| others.into_any()))
    }

    fn put_together<'py>(
        &self,
        class: &Bound<'py, PyType>,
        rest: Option<&Object<'py>>,
        children: impl Iterator<Item = Option<Object<'py>>>,
    ) -> PyResult<Object<'py>> {
        let py = class.py();
        let base = py.get_type::<PyAny>();
        let set = base.getattr(intern!(py, "__setattr__"))?;
        let object = match rest {
            Some(template) if !self.plain => copy(template)?,
            _ => base.call_method1(intern!(py, "__new__"), (class,))?,
        };
        if let Some(others) = rest
            && self.plain
        {
            for (name, value) in others.cast::<PyDict>()?.iter() {
                set.call1((&object, name, value))?;
            }
        }
        let dict = if self.in_dict { Some(instance_dict(&object)?) } else { None };
        for (field, child) in self.all.iter().zip(children) {
            match (&dict, child) {
                (Some(dict), Some(child)) => dict.set_item(&field.name, child)?,
                (None, Some(child)) => set.call1((&object, &field.name, child)).map(drop)?,
                (_, None) => {}
            }
        }
        Ok(object)
    }
}

fn instance_dict<'py>(object: &Object<'py>) -> PyResult<Bound<'py, PyDict>> {
    Ok(object.getattr(intern!(object.py(), "__dict__"))?.cast_into::<PyDict>()?)
}

fn copy<'py>(object: &Object<'py>) -> PyResult<Object<'py>> {
    object.py().import(intern!(object.py(), "copy"))?.call_method1(intern!(object.py(), "copy"), (object,))
}

impl Container {
    /// A new container with `children`; `rest` is what [`take_apart`] returned.
    pub fn put_together<'py>(
        &self,
        py: Python<'py>,
        rest: Option<&Object<'py>>,
        children: impl ExactSizeIterator<Item = Option<Object<'py>>>,
    ) -> PyResult<Object<'py>> {
        let class = self.class.bind(py);
        if let ContainerKind::Fields(fields) = &self.info.kind {
            return fields.put_together(class, rest, children);
        }
        let children = children.map(|child| child.expect("only a field has no value"));
        if let (ContainerKind::Mappings(mappings), Some(rest)) = (&self.info.kind, rest) {
            let keyed = self.keys.iter().map(|(key, _)| key.bind(py).clone()).zip(children);
            return mappings.put_together(class, rest, keyed);
        }
        match (&self.info.kind, rest) {
            (ContainerKind::List, None) => Ok(PyList::new(py, children)?.into_any()),
            (ContainerKind::List, Some(template)) => {
                let list = copy(template)?;
                list.set_item(pyo3::types::PySlice::full(py), PyList::new(py, children)?)?;
                Ok(list)
            }
            (ContainerKind::Tuple, _) if self.info.exact => Ok(PyTuple::new(py, children)?.into_any()),
            (ContainerKind::Tuple, _) => class.call1((PyList::new(py, children)?,)),
            (ContainerKind::NamedTuple(_), _) => {
                class.call_method1(intern!(py, "_make"), (PyList::new(py, children)?,))
            }
            (ContainerKind::Dict, None) => {
                let dict = PyDict::new(py);
                self.keys.iter().zip(children).try_for_each(|((key, _), child)| dict.set_item(key, child))?;
                Ok(dict.into_any())
            }
            (ContainerKind::Dict, Some(template)) => {
                let dict = copy(template)?;
                dict.call_method0(intern!(py, "clear"))?;
                self.keys.iter().zip(children).try_for_each(|((key, _), child)| dict.set_item(key, child))?;
                Ok(dict)
            }
            (ContainerKind::Functions(functions), rest) => {
                functions.unflatten.bind(py).call1((rest, PyList::new(py, children)?))
            }
            (ContainerKind::Leaf | ContainerKind::Empty | ContainerKind::Fields(_) | ContainerKind::Mappings(_), _) => {
                unreachable!("no container without a kind")
            }
        }
    }
}
