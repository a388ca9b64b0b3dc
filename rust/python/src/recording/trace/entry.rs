//! The entries of a recording, and what is known of the functions that they call.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::gc::PyVisit;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};

use crate::arrays::memory::numpy::Numpy;
use crate::autodiff::graph::template::EntryId;
use crate::prelude::*;
use crate::recording::trace::arguments::is_any_leaf;

/// A step of a recording: ``kind`` is "input", "constant", "call" or "check"; ids are `EntryId`.
#[pyclass(frozen, name = "Entry", module = "oxigrad._core")]
pub struct TraceEntry {
    #[pyo3(get)]
    pub kind: Py<PyString>,
    pub target: Option<Py<PyAny>>,
    #[pyo3(get)]
    pub function: Option<Py<PyAny>>,
    #[pyo3(get)]
    pub args: Py<PyTuple>,
    pub named: Option<Py<PyDict>>,
    #[pyo3(get)]
    pub value: Option<Py<PyAny>>,
    #[pyo3(get)]
    pub line: Option<Py<PyString>>,
    is_permuted: AtomicBool,
    /// The shape and dtype that a replay must find.
    kind_of_array: PyOnceLock<Py<PyTuple>>,
    is_float: AtomicBool,
}

/// The arguments by name of calls that have none, which nobody changes, and the target of what is no call.
static NOTHING: PyOnceLock<(Py<PyDict>, Py<PyTuple>)> = PyOnceLock::new();

fn nothing(py: Python<'_>) -> &(Py<PyDict>, Py<PyTuple>) {
    NOTHING.get_or_init(py, || {
        let target = PyTuple::new(py, ["", ""]).expect("two names are a tuple");
        (PyDict::new(py).unbind(), target.unbind())
    })
}

impl TraceEntry {
    /// An input, or a constant with its value.
    pub fn source(kind: &Bound<'_, PyString>, value: Option<Py<PyAny>>, is_permuted: bool) -> Self {
        Self {
            kind: kind.clone().unbind(),
            target: None,
            function: None,
            args: PyTuple::empty(kind.py()).unbind(),
            named: None,
            value,
            line: None,
            is_permuted: AtomicBool::new(is_permuted),
            kind_of_array: PyOnceLock::new(),
            is_float: AtomicBool::new(false),
        }
    }

    /// An entry that calls a function.
    pub fn call(
        kind: Py<PyString>,
        target: &Object<'_>,
        function: &Object<'_>,
        args: Bound<'_, PyTuple>,
        named: Option<Bound<'_, PyDict>>,
        is_permuted: bool,
    ) -> Self {
        Self {
            kind,
            target: Some(target.clone().unbind()),
            function: Some(function.clone().unbind()),
            args: args.unbind(),
            named: named.map(Bound::unbind),
            value: None,
            line: None,
            is_permuted: AtomicBool::new(is_permuted),
            kind_of_array: PyOnceLock::new(),
            is_float: AtomicBool::new(false),
        }
    }

    /// Whether it holds ids, numbers, text and arrays of numbers alone.
    pub fn is_plain(&self, py: Python<'_>) -> bool {
        let has_plain_names =
            || self.named.as_ref().is_none_or(|named| named.bind(py).values().iter().all(|part| is_plain(&part)));
        let value = self.value.as_ref().map(|value| value.bind(py));
        value.is_none_or(|value| is_plain(value) || Numpy::get(py).is_plain_array(value))
            && is_plain(self.args.bind(py))
            && has_plain_names()
    }

    /// Notes the type of an array, once.
    pub fn set_type(&self, py: Python<'_>, kind: Py<PyTuple>) {
        let _ = self.kind_of_array.set(py, kind);
    }

    /// The shape and dtype.
    pub fn array_type<'a>(&'a self, py: Python<'a>) -> Option<&'a Py<PyTuple>> {
        self.kind_of_array.get(py)
    }

    /// Notes that the value is a float of Python.
    pub fn set_float(&self) {
        self.is_float.store(true, Ordering::Relaxed);
    }
}

#[pymethods]
impl TraceEntry {
    #[new]
    #[pyo3(signature = (kind, *, target=None, function=None, args=None, named=None, value=None, line=None, r#type=None, is_float=false, is_permuted=false))]
    #[allow(clippy::too_many_arguments, reason = "one keyword an attribute")]
    fn new(
        py: Python<'_>,
        kind: Py<PyString>,
        target: Option<Py<PyAny>>,
        function: Option<Py<PyAny>>,
        args: Option<Py<PyTuple>>,
        named: Option<Bound<'_, PyDict>>,
        value: Option<Py<PyAny>>,
        line: Option<Py<PyString>>,
        r#type: Option<Py<PyTuple>>,
        is_float: bool,
        is_permuted: bool,
    ) -> Self {
        let kind_of_array = PyOnceLock::new();
        if let Some(stated) = r#type {
            let _ = kind_of_array.set(py, stated);
        }
        Self {
            kind,
            target,
            function,
            args: args.unwrap_or_else(|| PyTuple::empty(py).unbind()),
            named: named.filter(|named| !named.is_empty()).map(Bound::unbind),
            value,
            line,
            is_permuted: AtomicBool::new(is_permuted),
            kind_of_array,
            is_float: AtomicBool::new(is_float),
        }
    }

    /// The numbers of the entries that it reads, in order.
    pub fn reads(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        let mut reads = Vec::new();
        let mut note = |leaf: &Object<'_>| {
            reads.extend(leaf.cast::<EntryId>().map(|id| id.get().index()).ok());
            Ok(false)
        };
        is_any_leaf(self.args.bind(py).as_any(), &mut note)?;
        if let Some(named) = &self.named {
            is_any_leaf(named.bind(py).as_any(), &mut note)?;
        }
        Ok(reads)
    }

    /// The kind and the name of the function.
    #[getter]
    pub fn target<'py>(&self, py: Python<'py>) -> Object<'py> {
        self.target.as_ref().map_or_else(|| nothing(py).1.bind(py).clone().into_any(), |target| target.bind(py).clone())
    }

    /// The arguments by name.
    #[getter]
    pub fn named<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        self.named.as_ref().unwrap_or(&nothing(py).0).bind(py).clone()
    }

    #[getter]
    fn r#type<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, PyTuple>> {
        self.kind_of_array.get(py).map(|kind| kind.bind(py))
    }

    /// Whether the value is an array that may be in another order in memory than that of its indices.
    #[getter]
    pub fn is_permuted(&self) -> bool {
        self.is_permuted.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_is_permuted(&self, is_permuted: bool) {
        self.is_permuted.store(is_permuted, Ordering::Relaxed);
    }

    /// Whether the value is a float of Python.
    #[getter]
    pub fn is_float(&self) -> bool {
        self.is_float.load(Ordering::Relaxed)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
        [&self.target, &self.function, &self.value].into_iter().flatten().try_for_each(|held| visit.call(held))?;
        visit.call(&self.args)?;
        visit.call(self.named.as_ref())
    }
}

/// Whether a value is an id, a number, text, or a tuple of such.
fn is_plain(value: &Object<'_>) -> bool {
    value.is_exact_instance_of::<EntryId>()
        || value.is_none()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyString>()
        || value.cast_exact::<PyTuple>().is_ok_and(|tuple| tuple.iter_borrowed().all(|part| is_plain(&part)))
}
