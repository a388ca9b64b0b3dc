//! The `Tape` class: owns a core tape on behalf of the thread that opened it.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use oxigrad_core::autodiff::aliasing::{AliasId, Aliases};
use oxigrad_core::autodiff::tape::{Id, Origin};
use oxigrad_core::kernel::Node;
use pyo3::types::PyDict;

use crate::arrays::value::Value;
use crate::prelude::*;

/// The attributes of an entry: its data besides its arguments and its value.
#[derive(Debug, Default)]
pub struct Attributes {
    /// The keyword arguments of a structured op, as plain data, with the shapes and dtypes that its rule reads.
    pub named: Option<Py<PyDict>>,
    /// For each argument of an elementwise op, the shape and dtype of its cotangent.
    pub cotangent_types: Vec<CotangentType>,
}

/// The core's tape over Python's values.
pub type CoreTape = oxigrad_core::autodiff::tape::Tape<Value, Attributes>;

/// The shape and dtype of the cotangent of an argument, relative to that of the result.
#[derive(Debug)]
pub enum CotangentType {
    /// The shape and dtype of the cotangent of the result.
    Same,
    /// The argument is a number: the cotangent is summed to a number.
    Number,
    /// The argument has this shape and dtype.
    Array { shape: Py<PyAny>, dtype: Py<PyAny> },
}

/// An array that an entry reads in the replay, and a hash of its contents when it was recorded.
#[derive(Debug)]
pub struct Fingerprint {
    pub id: Id,
    pub array: Py<PyAny>,
    pub bytes: u64,
}

/// Names of entries: the given ones, and numbers for the rest.
pub struct Names<'t> {
    inner: &'t Inner,
    automatic: HashMap<Id, String>,
}

impl<'t> Names<'t> {
    pub fn new(inner: &'t Inner) -> Self {
        let (mut inputs, mut ops) = (0, 0);
        let mut automatic = HashMap::new();
        for view in inner.tape.views() {
            let (letter, count) = match view.origin {
                Origin::Input => ('x', &mut inputs),
                Origin::Op(_) => ('v', &mut ops),
                Origin::Constant => continue,
            };
            *count += 1;
            automatic.insert(view.id, format!("{letter}{count}"));
        }
        Self { inner, automatic }
    }

    pub fn get(&self, id: Id) -> String {
        let name = self.inner.names.get(&id).or_else(|| self.automatic.get(&id));
        name.map_or_else(|| "_".to_owned(), Clone::clone)
    }
}

/// The values, attributes, fingerprints, assigned values and items that a tape has kept.
pub type Forgotten = (Vec<Value>, Vec<Attributes>, Vec<Fingerprint>, Vec<Value>, HashMap<AliasId, Item>);

/// A view of a constant, made by indexing.
#[derive(Debug)]
pub struct Item {
    pub base: AliasId,
    /// The number of changes that the constant had seen then.
    pub seen: u64,
    pub key: Py<PyAny>,
}

#[derive(Debug, Default)]
pub struct Inner {
    pub tape: CoreTape,
    pub names: HashMap<Id, String>,
    /// The node of each input of a symbolic tape, in order.
    pub symbols: Vec<Node>,
    pub fingerprints: Vec<Fingerprint>,
    pub aliases: Aliases<Value>,
    /// The constant and the key of each view that indexing made of one, since it has no entry.
    pub items: HashMap<AliasId, Item>,
    released: bool,
}

/// Records the operations on its variables, and replays them in reverse or forwards.
///
/// Args:
///     forward: whether values for forward replay, by `push`, are kept as well.
///     check: whether a replay raises `ArrayMemoryError` where an array that it reads was changed in place.
///     detaches: whether operations on variables after the tape's end take their values, and do not raise `TapeEndedError`.
///
/// ``with Tape() as tape`` records until the block ends; `gradient` may be called inside and after it. A tape belongs
/// to the thread that opened it. `check` is for debugging: it stores a hash of each array in host memory. Without it,
/// a changed array gives derivatives of another program.
///
/// >>> import oxigrad as ox
/// >>> with ox.Tape() as tape:
/// ...     x = tape.watch(3.0, name="x")
/// ...     y = x * x
/// >>> tape.gradient(y, [x])
/// [6.0]
#[allow(clippy::struct_excessive_bools, reason = "settings that are independent of each other")]
#[pyclass(frozen, module = "oxigrad")]
pub struct Tape {
    /// The serial number, in the order of opening: of two nested tapes, the inner has the larger one.
    pub serial: u64,
    thread: usize,
    pub symbolic: bool,
    /// Whether the values that only forward rules read are kept as well.
    pub forward: bool,
    /// Whether arrays are checked for changes in place.
    pub check: bool,
    /// Whether variables act as their values after the end.
    pub detaches: bool,
    /// Whether results and cotangents are searched for NaN, as it was set for the thread when the tape was made.
    pub debug_nans: bool,
    ended: AtomicBool,
    inner: Mutex<Inner>,
}

/// The serial number of the next tape, or level of the next `vmap`.
pub static SERIAL: AtomicU64 = AtomicU64::new(1);

/// Identity of the current thread: the address of a thread-local variable.
fn current_thread() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark) as usize)
}

thread_local!(static DEBUG_NANS: Cell<bool> = const { Cell::new(false) });

/// Sets whether tapes of this thread made from now on search for NaN; returns the former setting.
#[pyfunction]
pub fn set_debug_nans(on: bool) -> bool {
    DEBUG_NANS.replace(on)
}

/// Whether tapes of this thread search for NaN.
pub fn debug_nans() -> bool {
    DEBUG_NANS.get()
}

impl Tape {
    pub fn new(symbolic: bool) -> Self {
        Self {
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            thread: current_thread(),
            symbolic,
            forward: false,
            check: false,
            detaches: false,
            debug_nans: debug_nans(),
            ended: AtomicBool::new(false),
            inner: Mutex::default(),
        }
    }

    /// The state, locked; no Python may be called while it is.
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        locked(&self.inner)
    }

    /// As [`Tape::lock`], without waiting for the lock.
    pub fn try_lock(&self) -> Result<MutexGuard<'_, Inner>, TryLockError<MutexGuard<'_, Inner>>> {
        self.inner.try_lock()
    }

    /// Ends the tape, and returns the Python objects that it kept, to be dropped. Its entries stay, without values.
    pub fn forget(&self) -> Forgotten {
        self.end();
        let mut inner = self.lock();
        inner.released = true;
        let (values, attributes) = inner.tape.forget();
        let (fingerprints, items) = (std::mem::take(&mut inner.fingerprints), std::mem::take(&mut inner.items));
        (values, attributes, fingerprints, inner.aliases.forget(), items)
    }

    /// Whether ops can be recorded now, on this thread.
    #[inline]
    pub fn check_recording(&self, id: Id) -> PyResult<()> {
        if self.is_ended() {
            let name = self.name(id);
            return Err(TapeEndedError::new_err(format!(
                "variable {name} belongs to a tape that has ended; return its value from the function, or detach it \
                 with stop_gradient while the tape is open"
            )));
        }
        self.check_thread(id)
    }

    #[inline]
    pub fn check_thread(&self, id: Id) -> PyResult<()> {
        if self.thread == current_thread() {
            return Ok(());
        }
        let name = self.name(id);
        Err(TapeThreadError::new_err(format!(
            "variable {name} belongs to a tape of another thread: open a tape on each thread"
        )))
    }

    /// The name of an entry: the given one, `x1`, `x2`, ... for inputs, `v1`, `v2`, ... for the results of ops.
    pub fn name(&self, id: Id) -> String {
        let inner = self.lock();
        Names::new(&inner).get(id)
    }

    /// Whether the tape has ended, so that nothing more is recorded.
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Whether variables act as their values, since the tape has ended.
    pub fn is_detached(&self) -> bool {
        self.detaches && self.is_ended()
    }

    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Takes the core tape out, so that the replay may call Python without a lock.
    pub fn take(&self) -> PyResult<CoreTape> {
        let mut inner = self.lock();
        if inner.released {
            return Err(TapeEndedError::new_err(
                "this tape has been replayed with release=True, or is being replayed; record it again",
            ));
        }
        inner.released = true;
        Ok(std::mem::take(&mut inner.tape))
    }

    pub fn put_back(&self, tape: CoreTape, released: bool) {
        let mut inner = self.lock();
        inner.tape = tape;
        inner.released = released;
    }
}
