//! The record of a call, and the values that it is called with.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use oxigrad_core::recording::Words;
use pyo3::intern;
use pyo3::types::{PyBool, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use crate::arrays::batch_level::BatchLevel;
use crate::autodiff::graph::template::EntryId;
use crate::prelude::*;
use crate::recording::trace::traits::TargetTraits;

/// A constant: equal numbers and arrays without dimensions are one.
#[derive(PartialEq, Eq, Hash)]
pub enum ConstantKey {
    Float(u64),
    /// The class, the dtype and the bytes.
    Scalar(usize, String, Vec<u8>),
    Object(usize),
}

/// The copy of a constant, its entry, and the object, which is kept alive so that no other has its address.
pub type Constant = (Py<PyAny>, Py<EntryId>, Py<PyAny>);

/// The extents of an array, and the address of its dtype or class.
type TypeKey = (SmallVec<[usize; 4]>, usize);

/// A target with its function and its traits.
pub type KnownTarget = (Py<PyAny>, Py<PyAny>, Py<TargetTraits>);

/// The tables of a record.
#[derive(Default)]
pub struct State {
    /// The ids of entries, each made once.
    pub ids: Vec<Py<EntryId>>,
    pub constants: HashMap<ConstantKey, Constant>,
    /// The types of arrays, by extents and the address of the dtype or the class, which is kept alive.
    pub types: HashMap<TypeKey, (Py<PyTuple>, Py<PyAny>)>,
    /// The class of traced values for each class of plain values.
    pub classes: Vec<(Py<PyAny>, Py<PyAny>)>,
    /// The targets of ops, of a rule or not.
    pub targets: HashMap<(bool, usize), KnownTarget, Words>,
    /// The targets of operators of Python.
    pub operators: Vec<(Py<PyString>, KnownTarget)>,
}

/// The record of a call: its entries, and the values that it is called with.
#[pyclass(frozen, subclass, module = "oxigrad._core")]
pub struct Recorder {
    #[pyo3(get)]
    pub level: u64,
    /// Whether the function may compare truth values of Python by identity, as `match` does: it gets checked ones.
    pub has_truths: bool,
    /// The number of values that there are.
    pub alive: Arc<AtomicUsize>,
    /// The line of the function that is running.
    pub line: Py<PyAny>,
    #[pyo3(get)]
    pub entries: Py<PyList>,
    pub refusal: OnceLock<String>,
    pub has_any_order: AtomicBool,
    pub state: Mutex<State>,
}

impl Recorder {
    /// Whether the function cannot be recorded, or has ended.
    pub fn is_refused(&self) -> bool {
        self.refusal.get().is_some()
    }
}

/// Whether a value is an operand of a derivative rule, and whether that is of float32.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Plain,
    Rule,
    Single,
}

impl<'py> FromPyObject<'_, 'py> for Mark {
    type Error = PyErr;

    fn extract(mark: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if mark.is_instance_of::<PyString>() {
            return Ok(Self::Single);
        }
        Ok(if mark.is_truthy()? { Self::Rule } else { Self::Plain })
    }
}

/// In the place of the entry of a view whose memory was written to, and of values that have their origin's.
pub const STALE: u32 = u32::MAX;

/// A value of a recording: the number of its entry, and its value in this call.
#[pyclass(frozen, subclass, extends = BatchLevel, module = "oxigrad._core")]
pub struct TracedValue {
    /// The recording that it belongs to.
    #[pyo3(get)]
    pub recorder: Py<Recorder>,
    pub entry: AtomicU32,
    #[pyo3(get)]
    pub plain: Py<PyAny>,
    pub mark: Mark,
    /// The memory that it shares with other values; None if it shares none, False if the function may not write to it.
    pub memory: Mutex<Py<PyAny>>,
    /// The value that this is as an operand: they have one entry, and one memory.
    pub origin: Option<Py<TracedValue>>,
    pub alive: Arc<AtomicUsize>,
}

impl TracedValue {
    #[inline]
    pub fn of<'a>(value: &'a Object<'_>) -> Option<&'a Self> {
        value.cast::<Self>().ok().map(Bound::get)
    }

    pub fn plain<'py>(&self, py: Python<'py>) -> Object<'py> {
        self.plain.bind(py).clone()
    }

    /// The number of the entry. A view is read again after a write to its memory.
    pub fn number(slf: &Bound<'_, Self>) -> PyResult<u32> {
        match slf.get().shared().entry.load(Ordering::Relaxed) {
            STALE => slf.get().recorder.bind(slf.py()).call_method1(intern!(slf.py(), "entry_of"), (slf,))?.extract(),
            number => Ok(number),
        }
    }

    pub fn shared(&self) -> &Self {
        self.origin.as_ref().map_or(self, Py::get)
    }

    /// Whether the function may not write to it.
    pub fn is_unwritable(&self, py: Python<'_>) -> bool {
        locked(&self.shared().memory).bind(py).is_exact_instance_of::<PyBool>()
    }

    /// Notes that the function may not write to it.
    pub fn set_unwritable(&self, py: Python<'_>) {
        set_locked(&self.shared().memory, PyBool::new(py, false).to_owned().into_any().unbind());
    }
}

impl Drop for TracedValue {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}
