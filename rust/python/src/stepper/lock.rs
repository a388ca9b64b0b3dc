//! The lock of an optimizer, held by one thread at a time. A thread that takes it again, or whose end
//! the holding thread waits for, gets an error, not a deadlock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use pyo3::intern;
use pyo3::sync::PyOnceLock;

use crate::callbacks;
use crate::prelude::*;
use crate::threads::process;

/// Seconds after which a thread that waits for the lock looks whether its holder waits for this thread.
const PATIENCE: f64 = 0.2;

/// The use that the holding thread makes of the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Nothing,
    Reading,
    Stepping,
    Changing,
}

impl Use {
    const ALL: [Self; 4] = [Self::Nothing, Self::Reading, Self::Stepping, Self::Changing];

    /// Whether the same thread may begin another use while it is in this one.
    fn allows(self, other: Self) -> bool {
        self == Self::Nothing || (other == Self::Reading && self != Self::Changing)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Reading => "reading its state",
            Self::Stepping => "taking a step",
            Self::Changing => "being changed",
        }
    }
}

/// A lock that one thread has at a time. Other threads wait for it; the holding thread, in a signal
/// handler, a schedule or any other callback of a step, may only read the state, and gets a `StateError` for anything
/// else.
///
/// As a context manager it locks for changes; `stepping` and `reading` return those for a step and for reading. In a forked
/// child it is free, even if a thread of the parent held it.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct Lock {
    /// A Python lock: waiting for it lets interrupts through and other threads run.
    inner: Mutex<(Py<PyAny>, u32)>,
    used: AtomicU8,
    /// The identifier of the thread that has it, as `threading.get_ident` gives it; 0 where that is not known.
    holder: AtomicU64,
}

impl Lock {
    /// The Python lock; a new one in a forked child, where the holding thread may no longer exist.
    fn inner<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let (lock, of) = self.last(py);
        if of == process() {
            return Ok(lock.into_bound(py));
        }
        let fresh = reentrant(py)?;
        set_locked(&self.inner, (fresh.clone().unbind(), process()));
        self.used.store(Use::Nothing as u8, Ordering::Relaxed);
        Ok(fresh)
    }

    /// The Python lock, and the process that it is of.
    fn last(&self, py: Python<'_>) -> (Py<PyAny>, u32) {
        let inner = locked(&self.inner);
        (inner.0.clone_ref(py), inner.1)
    }

    /// The current use.
    fn used(&self) -> Use {
        Use::ALL[usize::from(self.used.load(Ordering::Relaxed))]
    }

    /// Takes the lock; returns the use that the same thread made of it before.
    fn take(&self, py: Python<'_>, wanted: Use) -> PyResult<Use> {
        let inner = self.inner(py)?;
        if !inner.call_method1(intern!(py, "acquire"), (false,))?.is_truthy()? {
            self.wait(&inner)?;
        }
        self.holder.store(own_identifier(py)?, Ordering::Relaxed);
        let used = self.used();
        if used.allows(wanted) {
            self.used.store(wanted as u8, Ordering::Relaxed);
            return Ok(used);
        }
        inner.call_method0(intern!(py, "release"))?;
        Err(StateError::new_err(format!(
            "the optimizer is {} already, in this thread: functions called meanwhile, such as signal handlers, can only \
             save it",
            used.name()
        )))
    }

    /// Waits for the lock; `StateError` where its holder waits for this thread, so that neither would go on.
    fn wait(&self, inner: &Object<'_>) -> PyResult<()> {
        let py = inner.py();
        while !inner.call_method1(intern!(py, "acquire"), (true, PATIENCE))?.is_truthy()? {
            let holder = self.holder.load(Ordering::Relaxed);
            let Err(error) = callbacks::refuse_deadlock(py, (holder,)) else { continue };
            // The holder may have given the lock back before it waited for this thread.
            if inner.call_method1(intern!(py, "acquire"), (false,))?.is_truthy()? {
                break;
            }
            if self.holder.load(Ordering::Relaxed) == holder {
                return Err(error);
            }
        }
        Ok(())
    }

    fn give_back(&self, py: Python<'_>, used: Use) -> PyResult<()> {
        let (lock, of) = self.last(py);
        self.used.store(used as u8, Ordering::Relaxed);
        if used == Use::Nothing {
            self.holder.store(0, Ordering::Relaxed);
        }
        if of != process() {
            return Ok(()); // Its holder forked meanwhile: no thread of this process waits for it.
        }
        lock.call_method0(py, intern!(py, "release")).map(drop)
    }
}

fn reentrant(py: Python<'_>) -> PyResult<Object<'_>> {
    py.import(intern!(py, "threading"))?.call_method0(intern!(py, "RLock"))
}

fn own_identifier(py: Python<'_>) -> PyResult<u64> {
    static GET_IDENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    GET_IDENT.import(py, "threading", "get_ident")?.call0()?.extract()
}

#[pymethods]
impl Lock {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let inner = Mutex::new((reentrant(py)?.unbind(), process()));
        Ok(Self { inner, used: AtomicU8::new(Use::Nothing as u8), holder: AtomicU64::new(0) })
    }

    /// The lock for a step.
    fn stepping(slf: Bound<'_, Self>) -> Hold {
        Hold::new(slf, Use::Stepping)
    }

    /// The lock for reading the state.
    fn reading(slf: Bound<'_, Self>) -> Hold {
        Hold::new(slf, Use::Reading)
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<()> {
        self.take(py, Use::Changing).map(drop)
    }

    fn __exit__(&self, kind: &Object<'_>, _error: &Object<'_>, _trace: &Object<'_>) -> PyResult<()> {
        self.give_back(kind.py(), Use::Nothing)
    }
}

/// One use of a lock, as a context manager.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct Hold {
    lock: Py<Lock>,
    wanted: Use,
    before: AtomicU8,
}

impl Hold {
    fn new(lock: Bound<'_, Lock>, wanted: Use) -> Self {
        Self { lock: lock.unbind(), wanted, before: AtomicU8::new(Use::Nothing as u8) }
    }
}

#[pymethods]
impl Hold {
    fn __enter__(&self, py: Python<'_>) -> PyResult<()> {
        let before = self.lock.get().take(py, self.wanted)?;
        self.before.store(before as u8, Ordering::Relaxed);
        Ok(())
    }

    fn __exit__(&self, kind: &Object<'_>, _error: &Object<'_>, _trace: &Object<'_>) -> PyResult<()> {
        let before = Use::ALL[usize::from(self.before.load(Ordering::Relaxed))];
        self.lock.get().give_back(kind.py(), before)
    }
}
