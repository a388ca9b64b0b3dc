//! Containers whose children are the items of several mappings: such as the parameters, buffers and submodules of a module.

use oxigrad_core::tree::Key;
use pyo3::intern;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::prelude::*;

/// The attributes of a class that hold the children of its instances, each a mapping from name to child.
pub struct Mappings {
    /// The attributes.
    pub all: Vec<Mapping>,
    /// The attribute of a child that holds its gradient.
    pub gradient: Py<PyString>,
    /// Whether `object.__new__` creates an instance; otherwise an instance is copied.
    pub plain: bool,
}

/// One attribute that holds children.
pub struct Mapping {
    /// The attribute.
    name: Py<PyString>,
    trainable: Trainable,
}

/// The trainable children of a mapping.
enum Trainable {
    All,
    None,
    /// Children whose attribute of this name is true.
    By(Py<PyString>),
}

impl<'py> FromPyObject<'_, 'py> for Mapping {
    type Error = PyErr;

    fn extract(stated: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (name, trainable): (Bound<'py, PyString>, Object<'py>) = stated.extract()?;
        let trainable = match trainable.cast::<PyString>() {
            Ok(by) => Trainable::By(by.clone().unbind()),
            Err(_) if trainable.is_truthy()? => Trainable::All,
            Err(_) => Trainable::None,
        };
        Ok(Self { name: name.unbind(), trainable })
    }
}

impl Mapping {
    /// The items of this attribute of an instance.
    fn items<'py>(&self, object: &Object<'py>) -> PyResult<Vec<(Object<'py>, Object<'py>)>> {
        let mapping = object.getattr(&self.name)?;
        if let Ok(dict) = mapping.cast::<PyDict>() {
            return Ok(dict.iter().collect());
        }
        let items = mapping.call_method0(intern!(object.py(), "items"))?;
        items.try_iter()?.map(|item| item?.extract()).collect()
    }

    fn is_trainable(&self, child: &Object<'_>) -> PyResult<bool> {
        match &self.trainable {
            Trainable::All => Ok(true),
            Trainable::None => Ok(false),
            Trainable::By(_) if child.is_none() => Ok(true),
            Trainable::By(attribute) => child.getattr(attribute)?.is_truthy(),
        }
    }
}

/// The other attributes of an instance, the class and length of each mapping, and the instance if it has to be copied.
type Rest<'py> = (Bound<'py, PyDict>, Vec<(Bound<'py, PyType>, usize)>, Object<'py>);

/// A mapping, the name of an item, and the item.
type Item<'py> = (Object<'py>, String, Object<'py>);

impl Mappings {
    /// Calls a function with the name of each child of an instance, the child, and whether it is trainable.
    pub fn take_apart<'py>(
        &self,
        object: &Object<'py>,
        mut visit: impl FnMut(Object<'py>, Object<'py>, bool),
    ) -> PyResult<()> {
        for mapping in &self.all {
            for (key, child) in mapping.items(object)? {
                let trainable = mapping.is_trainable(&child)?;
                visit(key, child, trainable);
            }
        }
        Ok(())
    }

    /// The rest that rebuilds an instance besides the children: its other attributes, and the class and length of each
    /// mapping; and the instance itself if `object.__new__` cannot create it.
    pub fn rest<'py>(&self, object: &Object<'py>) -> PyResult<Object<'py>> {
        let py = object.py();
        let others = object.getattr(intern!(py, "__dict__"))?.cast_into::<PyDict>()?.copy()?;
        let mut mappings = Vec::with_capacity(self.all.len());
        for Mapping { name, .. } in &self.all {
            let mapping = object.getattr(name)?;
            mappings.push((mapping.get_type(), mapping.len()?));
            if others.contains(name)? {
                others.del_item(name)?;
            }
        }
        let template = if self.plain { py.None().into_bound(py) } else { object.clone() };
        Ok((others, PyTuple::new(py, mappings)?, template).into_pyobject(py)?.into_any())
    }

    /// A new instance with children of these names; `rest` is the result of the function of this name.
    pub fn put_together<'py>(
        &self,
        class: &Bound<'py, PyType>,
        rest: &Object<'py>,
        mut children: impl Iterator<Item = (Object<'py>, Object<'py>)>,
    ) -> PyResult<Object<'py>> {
        let py = class.py();
        let (others, mappings, template): Rest<'py> = rest.extract()?;
        let object = if template.is_none() {
            py.get_type::<PyAny>().call_method1(intern!(py, "__new__"), (class,))?
        } else {
            py.import(intern!(py, "copy"))?.call_method1(intern!(py, "copy"), (template,))?
        };
        let attributes = object.getattr(intern!(py, "__dict__"))?.cast_into::<PyDict>()?;
        attributes.update(others.as_mapping())?;
        for (Mapping { name, .. }, (kind, length)) in self.all.iter().zip(mappings) {
            let mapping = kind.call0()?;
            for (key, child) in children.by_ref().take(length) {
                mapping.set_item(key, child)?;
            }
            attributes.set_item(name, mapping)?;
        }
        Ok(object)
    }

    /// The mapping that has this key, and the child there.
    fn find<'py>(&self, object: &Object<'py>, key: &Key) -> PyResult<Option<Item<'py>>> {
        let text = match key {
            Key::Field(name) => name.to_string(),
            Key::Index(index) => index.to_string(),
            Key::Item(_) => return Ok(None),
        };
        for Mapping { name, .. } in &self.all {
            let mapping = object.getattr(name)?;
            if mapping.contains(&text)? {
                let child = mapping.get_item(&text)?;
                return Ok(Some((mapping, text, child)));
            }
        }
        Ok(None)
    }

    /// The child under a key.
    pub fn child<'py>(&self, object: &Object<'py>, key: &Key) -> PyResult<Option<Object<'py>>> {
        Ok(self.find(object, key)?.map(|(_, _, child)| child))
    }

    /// Puts a value into the mapping that has the key, bypassing the methods of the instance.
    pub fn assign_plainly<'py>(&self, object: &Object<'py>, key: &Key, value: &Object<'py>) -> PyResult<()> {
        match self.find(object, key)? {
            Some((mapping, name, _)) => mapping.set_item(name, value),
            None => Ok(()),
        }
    }
}

/// The key of a child of this name: numbers are printed, and read, as an index.
pub fn key(name: &str) -> Key {
    match name.parse::<usize>() {
        Ok(index) if index.to_string() == name => Key::Index(index),
        _ => Key::Field(name.into()),
    }
}
