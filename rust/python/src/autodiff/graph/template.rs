//! Arguments of the functions that entries call: Python values with the numbers of entries in place of theirs.

use pyo3::types::{PyDict, PyInt, PyList, PySlice, PyTuple};
use smallvec::SmallVec;

use crate::prelude::*;

/// The number of an entry, in place of its value.
#[pyclass(frozen, eq, hash, subclass, from_py_object, module = "oxigrad._core")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntryId {
    #[pyo3(get)]
    id: u32,
}

impl EntryId {
    pub const fn index(&self) -> usize {
        self.id as usize
    }
}

#[pymethods]
impl EntryId {
    #[new]
    pub const fn new(id: u32) -> Self {
        Self { id }
    }

    fn __repr__(&self) -> String {
        format!("v{}", self.id)
    }
}

/// An argument: a value, the value of an entry, or a container of arguments.
pub enum Template {
    Value(Py<PyAny>),
    /// The position of the entry among those that the call reads.
    Entry(usize),
    Tuple(Vec<Template>, Option<Py<PyAny>>),
    List(Vec<Template>),
    Dict(Vec<(Py<PyAny>, Template)>),
    Slice([Box<Template>; 3]),
}

impl Template {
    /// The template of a value; the entries that it reads are added to `reads`.
    pub fn of(value: &Object<'_>, reads: &mut Vec<u32>) -> PyResult<Self> {
        if let Ok(entry) = value.cast::<EntryId>() {
            reads.push(entry.get().id);
            return Ok(Self::Entry(reads.len() - 1));
        }
        let before = reads.len();
        let made = if let Ok(tuple) = value.cast::<PyTuple>() {
            let class = (!value.is_exact_instance_of::<PyTuple>()).then(|| value.get_type().into_any().unbind());
            Self::Tuple(tuple.iter().map(|item| Self::of(&item, reads)).collect::<PyResult<_>>()?, class)
        } else if let Ok(list) = value.cast_exact::<PyList>() {
            Self::List(list.iter().map(|item| Self::of(&item, reads)).collect::<PyResult<_>>()?)
        } else if let Ok(dict) = value.cast_exact::<PyDict>() {
            let item = |(key, item): (Object<'_>, Object<'_>)| Ok((key.unbind(), Self::of(&item, reads)?));
            Self::Dict(dict.iter().map(item).collect::<PyResult<_>>()?)
        } else if value.is_instance_of::<PySlice>() {
            let mut part = |name| Ok::<_, PyErr>(Box::new(Self::of(&value.getattr(name)?, reads)?));
            Self::Slice([part("start")?, part("stop")?, part("step")?])
        } else {
            Self::Value(value.clone().unbind())
        };
        // Without entries, containers are values: a list is made anew at each call, since a function may keep it.
        Ok(if reads.len() > before || matches!(made, Self::List(_) | Self::Dict(_)) {
            made
        } else {
            Self::Value(value.clone().unbind())
        })
    }

    /// The argument, given a function of the values of the entries that the call reads, by their positions.
    pub fn fill<'py>(&self, py: Python<'py>, read: &dyn Fn(usize) -> PyResult<Object<'py>>) -> PyResult<Object<'py>> {
        let all = |parts: &[Self]| {
            let mut filled: SmallVec<[Object<'py>; 6]> = SmallVec::new();
            for part in parts {
                filled.push(part.fill(py, read)?);
            }
            Ok::<_, PyErr>(filled)
        };
        Ok(match self {
            Self::Value(value) => value.bind(py).clone(),
            Self::Entry(at) => read(*at)?,
            Self::Tuple(parts, None) => PyTuple::new(py, all(parts)?)?.into_any(),
            Self::Tuple(parts, Some(class)) => class.bind(py).call1(PyTuple::new(py, all(parts)?)?)?,
            Self::List(parts) => PyList::new(py, all(parts)?)?.into_any(),
            Self::Dict(items) => {
                let dict = PyDict::new(py);
                for (key, item) in items {
                    dict.set_item(key, item.fill(py, read)?)?;
                }
                dict.into_any()
            }
            Self::Slice(parts) => {
                let [start, stop, step] = parts;
                let (start, stop, step) = (start.fill(py, read)?, stop.fill(py, read)?, step.fill(py, read)?);
                match (start.cast_exact::<PyInt>(), stop.cast_exact::<PyInt>()) {
                    // The same elements, without a call.
                    (Ok(start), Ok(stop)) if step.is_none() => {
                        PySlice::new(py, start.extract()?, stop.extract()?, 1).into_any()
                    }
                    _ => py.get_type::<PySlice>().call1((start, stop, step))?,
                }
            }
        })
    }

    /// The values that it holds, for the garbage collector.
    pub fn held(&self, visit: &mut dyn FnMut(&Py<PyAny>)) {
        match self {
            Self::Value(value) => visit(value),
            Self::Entry(_) => {}
            Self::Tuple(parts, class) => {
                for part in parts {
                    part.held(visit);
                }
                class.iter().for_each(visit);
            }
            Self::List(parts) => parts.iter().for_each(|part| part.held(visit)),
            Self::Dict(items) => items.iter().for_each(|(key, item)| {
                visit(key);
                item.held(visit);
            }),
            Self::Slice(parts) => parts.iter().for_each(|part| part.held(visit)),
        }
    }
}
