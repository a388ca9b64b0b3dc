//! The kind of a class as a container: determined once per class and cached for the lifetime of the class.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple, PyType};

use super::mappings::Mappings;
use crate::callbacks;
use crate::class_cache::ByClass;
use crate::prelude::*;

/// The key in a field's metadata that says whether the field is trainable.
pub const TRAINABLE: &str = "oxigrad.trainable";

/// Storage of the children in the instances of a class.
pub enum ContainerKind {
    /// A leaf.
    Leaf,
    /// `None`: a node without children.
    Empty,
    /// A list, by index.
    List,
    /// A tuple, by index.
    Tuple,
    /// A named tuple, by field.
    NamedTuple(Vec<Arc<str>>),
    /// A dict, by key.
    Dict,
    /// Attributes: a dataclass, or a class registered by its fields.
    Fields(Fields),
    /// Attributes that are mappings, by the names in them.
    Mappings(Mappings),
    /// Registered with a function that flattens an instance and one that rebuilds it, by index or by name.
    Functions(Functions),
}

/// The attributes of a class that are the children of its instances.
pub struct Fields {
    /// The children.
    pub all: Vec<Field>,
    /// Whether instances accept assignment to a field.
    pub assignable: bool,
    /// Whether each field that has a value is in the instance's `__dict__` or in the class.
    pub in_dict: bool,
    /// Whether `object.__new__` creates an instance; otherwise an instance is copied.
    pub plain: bool,
    /// Slots that are not fields.
    pub slots: Vec<Py<PyString>>,
}

/// One field.
pub struct Field {
    /// The name, for Python.
    pub name: Py<PyString>,
    /// The name, for key paths.
    pub text: Arc<str>,
    /// Whether it is trainable.
    pub trainable: bool,
}

/// The two functions that a class was registered with.
pub struct Functions {
    /// `flatten(instance) -> (children, rest)`; children in a dict have its keys.
    pub flatten: Py<PyAny>,
    /// `unflatten(rest, children) -> instance`.
    pub unflatten: Py<PyAny>,
}

/// Description of a class as a container.
pub struct TypeInfo {
    /// The name of the class.
    pub name: String,
    /// Storage of the children in its instances.
    pub kind: ContainerKind,
    /// Whether it is the builtin class itself, not a subclass.
    pub exact: bool,
}

impl TypeInfo {
    /// Whether instances accept assignment to a child.
    pub const fn is_assignable(&self) -> bool {
        match &self.kind {
            ContainerKind::List | ContainerKind::Dict | ContainerKind::Mappings(_) => true,
            ContainerKind::Fields(fields) => fields.assignable,
            ContainerKind::Leaf
            | ContainerKind::Empty
            | ContainerKind::Tuple
            | ContainerKind::NamedTuple(_)
            | ContainerKind::Functions(_) => false,
        }
    }

    /// Whether instances have no children and are leaves.
    pub const fn is_leaf(&self) -> bool {
        matches!(self.kind, ContainerKind::Leaf)
    }
}

/// Cache of the descriptions, by class.
static SEEN: ByClass<Arc<TypeInfo>> = ByClass::new();

/// Attribute of a class that holds its registration.
const REGISTERED: &str = "__oxigrad_tree__";

/// Registration of a class. The class holds it, so that both are freed together.
#[pyclass(frozen, module = "oxigrad.tree")]
struct Registration {
    /// The address of the class: a copy of the class with the same attributes is another class.
    class: usize,
    info: Arc<TypeInfo>,
}

#[pymethods]
impl Registration {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
        let ContainerKind::Functions(functions) = &self.info.kind else { return Ok(()) };
        visit.call(&functions.flatten)?;
        visit.call(&functions.unflatten)
    }

    /// None, for a class that is pickled by value, with its attributes.
    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, Bound<'py, PyTuple>) {
        (py.None().bind(py).get_type(), PyTuple::empty(py))
    }
}

/// Static types of C extensions, which take no attributes and live as long as the process.
static FIXED: Mutex<Vec<(Py<PyType>, Arc<TypeInfo>)>> = Mutex::new(Vec::new());

/// Description of `class`, determined once.
pub fn type_info(class: &Bound<'_, PyType>) -> PyResult<Arc<TypeInfo>> {
    if let Some(info) = SEEN.get(class, Arc::clone) {
        return Ok(info);
    }
    let info = find_out(class)?;
    SEEN.insert(class, info.clone())?;
    Ok(info)
}

/// Registers `class` with `kind`, in place of an earlier registration.
pub fn register(class: &Bound<'_, PyType>, kind: ContainerKind) -> PyResult<()> {
    let py = class.py();
    let info = Arc::new(TypeInfo { name: class.name()?.to_string(), kind, exact: true });
    let registration = Registration { class: class.as_ptr() as usize, info: info.clone() };
    // Past the metaclass, which may override assignment.
    let set = py.get_type::<PyType>().getattr(intern!(py, "__setattr__"))?;
    if let Err(error) = set.call1((class, REGISTERED, registration)) {
        if !error.is_instance_of::<PyTypeError>(py) {
            return Err(error);
        }
        locked(&FIXED).push((class.clone().unbind(), info));
    }
    SEEN.clear();
    Ok(())
}

fn registered(class: &Bound<'_, PyType>) -> PyResult<Option<Arc<TypeInfo>>> {
    let py = class.py();
    let attributes = own_dict(class)?;
    if attributes.contains(intern!(py, "__oxigrad_tree__"))? {
        let held = attributes.get_item(intern!(py, "__oxigrad_tree__"))?;
        let ours = held.cast::<Registration>().ok().map(Bound::get);
        return Ok(ours.filter(|held| held.class == class.as_ptr() as usize).map(|held| held.info.clone()));
    }
    Ok(locked(&FIXED).iter().rev().find(|(other, _)| other.is(class)).map(|(_, info)| info.clone()))
}

fn find_out(class: &Bound<'_, PyType>) -> PyResult<Arc<TypeInfo>> {
    if let Some(info) = registered(class)? {
        return Ok(info);
    }
    let py = class.py();
    let name = class.name()?.to_string();
    let exact = |builtin: &Bound<'_, PyType>| class.is(builtin);
    let mut info = TypeInfo { name, kind: ContainerKind::Leaf, exact: true };
    if overrides_assignment(class)? && callbacks::are_installed(py) {
        callbacks::container(py, (class,))?;
        if let Some(info) = registered(class)? {
            return Ok(info); // by the callback
        }
    }
    if class.is(py.None().bind(py).get_type()) {
        info.kind = ContainerKind::Empty;
    } else if let Some(fields) = fields_by_base(class)? {
        info.kind = ContainerKind::Fields(fields);
    } else if class.is_subclass_of::<PyTuple>()? {
        info.exact = exact(&py.get_type::<PyTuple>());
        info.kind = names_of_tuple(class)?.map_or(ContainerKind::Tuple, ContainerKind::NamedTuple);
    } else if class.is_subclass_of::<PyList>()? {
        info.exact = exact(&py.get_type::<PyList>());
        info.kind = ContainerKind::List;
    } else if class.is_subclass_of::<PyDict>()? {
        info.exact = exact(&py.get_type::<PyDict>());
        info.kind = ContainerKind::Dict;
    } else if callbacks::are_installed(py) {
        if let Some((all, gradient)) = callbacks::container(py, (class,))?.extract()? {
            info.kind = ContainerKind::Mappings(Mappings { all, gradient, plain: is_plain(class)? });
        } else if let Some(info) = registered(class)? {
            return Ok(info); // by the callback
        }
    }
    Ok(Arc::new(info))
}

/// Whether a dataclass assigns its fields by a method of its own, which may refuse: that of a library is asked for.
fn overrides_assignment(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let (py, name) = (class.py(), intern!(class.py(), "__setattr__"));
    Ok(class.hasattr(intern!(py, "__dataclass_fields__"))?
        && !class.getattr(name)?.is(&py.get_type::<PyAny>().getattr(name)?))
}

fn names_of_tuple(class: &Bound<'_, PyType>) -> PyResult<Option<Vec<Arc<str>>>> {
    let Some(names) = class.getattr_opt(intern!(class.py(), "_fields"))? else { return Ok(None) };
    if !class.hasattr(intern!(class.py(), "_make"))? {
        return Ok(None);
    }
    items(&names)?.iter().map(|name| Ok(Arc::from(name.extract::<String>()?))).collect::<PyResult<_>>().map(Some)
}

/// The fields that the nearest dataclass or registered class among the bases gives to `class`.
fn fields_by_base(class: &Bound<'_, PyType>) -> PyResult<Option<Fields>> {
    for base in bases(class)? {
        if own_dict(&base)?.contains(intern!(class.py(), "__dataclass_fields__"))? {
            return dataclass(class).map(Some);
        }
        if let Some(info) = registered(&base)?
            && let ContainerKind::Fields(fields) = &info.kind
        {
            let named = fields.all.iter().map(|field| (field.text.to_string(), field.trainable));
            return Fields::new(class, named, fields.assignable).map(Some);
        }
    }
    Ok(None)
}

fn dataclass(class: &Bound<'_, PyType>) -> PyResult<Fields> {
    let py = class.py();
    let fields = py.import(intern!(py, "dataclasses"))?.call_method1(intern!(py, "fields"), (class,))?;
    let frozen: bool = class.getattr(intern!(py, "__dataclass_params__"))?.getattr(intern!(py, "frozen"))?.extract()?;
    let named = items(&fields)?.into_iter().map(|field| {
        let mark = field.getattr(intern!(py, "metadata"))?.call_method1(intern!(py, "get"), (TRAINABLE, true))?;
        Ok((field.getattr(intern!(py, "name"))?.extract::<String>()?, mark.is_truthy()?))
    });
    Fields::new(class, named.collect::<PyResult<Vec<_>>>()?, !frozen)
}

impl Fields {
    /// Determines how `class` stores the attributes `named`, each given with whether it is trainable.
    pub fn new(
        class: &Bound<'_, PyType>,
        named: impl IntoIterator<Item = (String, bool)>,
        assignable: bool,
    ) -> PyResult<Self> {
        let py = class.py();
        let fields: Vec<_> = named
            .into_iter()
            .map(|(text, trainable)| Field { name: PyString::intern(py, &text).unbind(), text: text.into(), trainable })
            .collect();
        let get = intern!(py, "__getattribute__");
        let mut in_dict = class.getattr(get)?.is(&py.get_type::<PyAny>().getattr(get)?)
            && class.getattr(intern!(py, "__dictoffset__"))?.is_truthy()?;
        for field in &fields {
            in_dict = in_dict && !is_data_descriptor(class, field.name.bind(py))?;
        }
        let slots = other_slots(class, &fields)?;
        Ok(Self { all: fields, assignable, in_dict, plain: is_plain(class)?, slots })
    }
}

/// A class and its bases, in method resolution order. `PyO3`'s own function panics where Python raises.
fn bases<'py>(class: &Bound<'py, PyType>) -> PyResult<Vec<Bound<'py, PyType>>> {
    let order = class.getattr(intern!(class.py(), "__mro__"))?.cast_into::<PyTuple>()?;
    order.iter().map(|base| Ok(base.cast_into::<PyType>()?)).collect()
}

/// The attributes in a class's own `__dict__`. The cast is unchecked, since the check runs Python code whose errors
/// `PyO3` drops.
fn own_dict<'py>(class: &Bound<'py, PyType>) -> PyResult<Object<'py>> {
    class.getattr(intern!(class.py(), "__dict__"))
}

/// An attribute in a class's own `__dict__`.
fn own_attribute<'py>(class: &Bound<'py, PyType>, name: &Bound<'py, PyString>) -> PyResult<Option<Object<'py>>> {
    unless::<PyKeyError, _>(class.py(), own_dict(class)?.get_item(name))
}

fn is_data_descriptor(class: &Bound<'_, PyType>, name: &Bound<'_, PyString>) -> PyResult<bool> {
    for base in bases(class)? {
        if let Some(attribute) = own_attribute(&base, name)? {
            return attribute.get_type().hasattr(intern!(class.py(), "__set__"));
        }
    }
    Ok(false)
}

/// The slots of `class` and its bases that are not among `fields`.
fn other_slots(class: &Bound<'_, PyType>, fields: &[Field]) -> PyResult<Vec<Py<PyString>>> {
    let py = class.py();
    let member = py.import(intern!(py, "types"))?.getattr(intern!(py, "MemberDescriptorType"))?;
    let mut slots = Vec::new();
    for base in bases(class)? {
        let attributes = own_dict(&base)?.call_method0(intern!(py, "items"))?;
        for item in attributes.try_iter()? {
            let (name, attribute): (Object<'_>, Object<'_>) = item?.extract()?;
            let Ok(name) = name.cast_into::<PyString>() else { continue };
            let is_field = fields.iter().any(|field| name == *field.text);
            if !is_field && attribute.get_type().is(&member) {
                slots.push(name.unbind());
            }
        }
    }
    Ok(slots)
}

/// Whether `object` is the only base of `class` that is implemented in C.
fn is_plain(class: &Bound<'_, PyType>) -> PyResult<bool> {
    const HEAP_TYPE: u64 = 1 << 9;
    let py = class.py();
    let builtin = py.get_type::<PyBool>().getattr(intern!(py, "__new__"))?.get_type();
    for base in bases(class)? {
        if base.is(py.get_type::<PyAny>()) {
            continue;
        }
        let flags: u64 = base.getattr(intern!(py, "__flags__"))?.extract()?;
        let new = own_attribute(&base, intern!(py, "__new__"))?;
        if flags & HEAP_TYPE == 0 || new.is_some_and(|new| new.get_type().is(&builtin)) {
            return Ok(false);
        }
    }
    Ok(true)
}
