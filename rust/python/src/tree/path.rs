//! `KeyPath`: reads and writes one part of a tree.

use oxigrad_core::tree::{self, DictKey, KeyPath as Path, Segment};
use pyo3::exceptions::PyException;
use pyo3::types::{PyIterator, PyList, PyString};

use super::child::Part;
use crate::prelude::*;

/// The key of a dict item.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, IntoPyObject)]
pub enum ItemKey {
    /// A str.
    Text(String),
    /// An int.
    Number(i64),
}

impl<'py> FromPyObject<'_, 'py> for ItemKey {
    type Error = PyErr;

    fn extract(key: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match key.cast::<PyString>() {
            Ok(text) => Ok(Self::Text(text.to_cow()?.into_owned())),
            Err(_) => key.extract().map(Self::Number),
        }
    }
}

/// One step down a tree: a field, an index, or the key of a dict item.
#[pyclass(frozen, eq, hash, ord, from_py_object, module = "oxigrad.tree")]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A field of a dataclass, a named tuple or a registered class.
    Field {
        /// Its name.
        name: String,
    },
    /// An item of a list or a tuple.
    Index {
        /// Its place, from 0.
        index: usize,
    },
    /// A value of a dict.
    Item {
        /// Its key.
        key: ItemKey,
    },
}

impl From<&tree::Key> for Key {
    fn from(key: &tree::Key) -> Self {
        match key {
            tree::Key::Field(name) => Self::Field { name: name.to_string() },
            tree::Key::Index(index) => Self::Index { index: *index },
            tree::Key::Item(DictKey::Number(number)) => Self::Item { key: ItemKey::Number(*number) },
            tree::Key::Item(DictKey::Text(name)) => Self::Item { key: ItemKey::Text(name.to_string()) },
        }
    }
}

impl From<Key> for tree::Key {
    fn from(key: Key) -> Self {
        match key {
            Key::Field { name } => Self::Field(name.into()),
            Key::Index { index } => Self::Index(index),
            Key::Item { key: ItemKey::Number(number) } => Self::Item(DictKey::Number(number)),
            Key::Item { key: ItemKey::Text(name) } => Self::Item(DictKey::Text(name.into())),
        }
    }
}

#[pymethods]
impl Key {
    fn __str__(&self) -> String {
        tree::Key::from(self.clone()).to_string()
    }

    fn __repr__(&self) -> String {
        match self {
            Self::Field { name } => format!("Key.Field({name:?})"),
            Self::Index { index } => format!("Key.Index({index})"),
            Self::Item { key: ItemKey::Number(number) } => format!("Key.Item({number})"),
            Self::Item { key: ItemKey::Text(name) } => format!("Key.Item({name:?})"),
        }
    }
}

/// Path from the root of a tree to one of its parts.
///
/// Args:
///     keys: keys from the root to the part, each a `Key`; the root without any.
#[pyclass(frozen, eq, hash, ord, from_py_object, module = "oxigrad.tree")]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyPath(pub Path);

/// Right operand of `path / key`.
#[derive(FromPyObject)]
enum Below {
    Path(KeyPath),
    Key(Key),
}

fn no_such(place: &str, instead: &str) -> PyErr {
    KeyPathError::new_err(format!("{place}: {instead}"))
}

/// The parts of `tree` along `path`: the tree itself first, the holder of the last key last.
fn holders<'py>(path: &Path, tree: &Object<'py>) -> PyResult<Vec<Part<'py>>> {
    let keys = path.keys();
    let mut parts = Vec::with_capacity(keys.len());
    let mut next = tree.clone();
    for (depth, key) in keys.iter().enumerate() {
        let part = Part::new(next)?;
        let child = part.child(key)?;
        let is_last = depth + 1 == keys.len();
        if !(is_last && part.has(key)?) && child.is_none() {
            return Err(missing(path, depth, &part)?);
        }
        next = child.unwrap_or_else(|| tree.py().None().into_bound(tree.py()));
        parts.push(part);
    }
    Ok(parts)
}

/// The error for a path whose key at `depth` is not found in `part`.
fn missing(path: &Path, depth: usize, part: &Part<'_>) -> PyResult<PyErr> {
    let keys = path.keys();
    let upto = |depth| keys[..depth].iter().map(|key| (*key).clone()).collect::<Path>();
    let is_unset = part.has(keys[depth])?;
    let instead = if is_unset { "the field has no value".into() } else { part.instead(&upto(depth).place())? };
    Ok(no_such(&upto(depth + 1).to_string(), &instead))
}

/// Writes `value` at `path` and returns the tree: the same object where some container on the way accepts
/// assignment, otherwise a new root. Containers below it that do not are rebuilt. First adds the previous value to `replaced`, so
/// that it can be restored, even if the assignment raises.
fn replace<'py>(
    path: &Path,
    tree: &Object<'py>,
    value: &Object<'py>,
    replaced: &mut Vec<Replaced<'py>>,
) -> PyResult<Object<'py>> {
    let mut value = value.clone();
    for (holder, key) in holders(path, tree)?.into_iter().zip(path.keys()).rev() {
        if holder.info.is_assignable() {
            let child = holder.child(key)?;
            replaced.push(Replaced { holder, key: key.clone(), child });
            replaced[replaced.len() - 1].holder.assign(key, &value)?;
            return Ok(tree.clone());
        }
        value = holder.rebuild(key, value)?;
    }
    Ok(value)
}

/// A replaced part of a container, and its previous value.
struct Replaced<'py> {
    holder: Part<'py>,
    key: tree::Key,
    child: Option<Object<'py>>,
}

impl Replaced<'_> {
    /// Restores it, by the builtin's own assignment where that of the container's class raises. Returns the
    /// error.
    fn put_back(self) -> Option<PyErr> {
        let child = self.child?;
        if self.holder.child(&self.key).is_ok_and(|now| now.is_some_and(|now| now.is(&child))) {
            return None;
        }
        let raised = self.holder.assign(&self.key, &child).err()?;
        self.holder.assign_plainly(&self.key, &child).err().or(Some(raised))
    }
}

/// Replaced parts of a tree, which can be restored.
pub struct Replacements<'py> {
    /// The tree: a new root where no container on some way accepts assignment.
    pub tree: Object<'py>,
    replaced: Vec<Replaced<'py>>,
}

impl<'py> Replacements<'py> {
    /// Writes these values at the paths, all or none of them: if a container raises, the tree is unchanged.
    pub fn new(tree: &Object<'py>, values: &[(KeyPath, Py<PyAny>)]) -> PyResult<Self> {
        let mut new = Self { tree: tree.clone(), replaced: Vec::new() };
        for (path, value) in values {
            match replace(&path.0, &new.tree, value.bind(tree.py()), &mut new.replaced) {
                Ok(tree) => new.tree = tree,
                Err(error) => return Err(new.after(error)),
            }
        }
        Ok(new)
    }

    /// Restores the previous values, the last first.
    ///
    /// # Errors
    /// The first error of an assignment; the values are restored nonetheless.
    pub fn put_back(self) -> PyResult<()> {
        let raised = self.replaced.into_iter().rev().filter_map(Replaced::put_back);
        raised.reduce(|first, _| first).map_or(Ok(()), Err)
    }

    /// Restores the previous values, and returns the error that caused this, or an interrupt that came meanwhile.
    pub fn after(self, error: PyErr) -> PyErr {
        let py = self.tree.py();
        match self.put_back() {
            Err(raised) if !raised.is_instance_of::<PyException>(py) && error.is_instance_of::<PyException>(py) => {
                raised
            }
            _ => error,
        }
    }
}

// Reads a printed path against `tree`, which says whether a number is an index or a dict key; `KeyPathError` if it is malformed, or
// `tree` has no such part.
#[pyfunction]
pub fn tree_path(text: &str, tree: &Object<'_>) -> PyResult<KeyPath> {
    let mut path = Path::root();
    let mut next = Some(tree.clone());
    for segment in tree::parse(text).python()? {
        let Some(object) = next else { return Err(no_such(&below(&path, &segment), &format!("{path} has no value"))) };
        let part = Part::new(object)?;
        let key = match part.resolve(&segment) {
            Some(key) if part.has(&key)? => key,
            _ => return Err(no_such(&below(&path, &segment), &part.instead(&path.place())?)),
        };
        next = part.child(&key)?;
        path = path.child(key);
    }
    Ok(KeyPath(path))
}

fn below(path: &Path, segment: &Segment) -> String {
    if path.is_empty() { segment.to_string() } else { format!("{path}.{segment}") }
}

#[pymethods]
impl KeyPath {
    #[new]
    #[pyo3(signature = (keys=None))]
    fn new(keys: Option<&Object<'_>>) -> PyResult<Self> {
        let Some(keys) = keys else { return Ok(Self(Path::root())) };
        let keys = items(keys)?.into_iter().map(|key| Ok(key.extract::<Key>()?.into()));
        keys.collect::<PyResult<Path>>().map(Self)
    }

    // The part of `tree`, or `KeyPathError` with the part of the path that exists, and what was found in place of the rest.
    fn __call__<'py>(&self, tree: &Object<'py>) -> PyResult<Object<'py>> {
        let path = &self.0;
        let (Some(holder), Some(key)) = (holders(path, tree)?.pop(), path.last()) else { return Ok(tree.clone()) };
        let value = holder.child(key)?;
        value.map_or_else(|| Err(missing(path, path.len() - 1, &holder)?), Ok)
    }

    fn set<'py>(&self, tree: &Object<'py>, value: &Object<'py>) -> PyResult<Object<'py>> {
        replace(&self.0, tree, value, &mut Vec::new())
    }

    // Whether it can be written without a new container: its holder accepts assignment.
    fn writable(&self, tree: &Object<'_>) -> PyResult<bool> {
        Ok(holders(&self.0, tree)?.pop().is_some_and(|holder| holder.info.is_assignable()))
    }

    /// Whether the part can be replaced within the same root: some container on the path accepts assignment.
    fn replaceable(&self, tree: &Object<'_>) -> PyResult<bool> {
        Ok(holders(&self.0, tree)?.iter().any(|holder| holder.info.is_assignable()))
    }

    #[getter]
    fn parent(&self) -> Option<Self> {
        self.0.parent().cloned().map(Self)
    }

    fn __truediv__(&self, below: Below) -> Self {
        match below {
            Below::Path(path) => Self(self.0.join(&path.0)),
            Below::Key(key) => Self(self.0.child(key.into())),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.0.keys().into_iter().map(Key::from))?.try_iter()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The root is a path too.
    #[allow(clippy::unused_self, reason = "Python calls it on an instance")]
    const fn __bool__(&self) -> bool {
        true
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("KeyPath({})", PyString::new(py, &self.0.to_string()).repr()?))
    }

    fn __copy__(&self) -> Self {
        self.clone()
    }

    fn __deepcopy__(&self, _memo: &Object<'_>) -> Self {
        self.clone()
    }
}
