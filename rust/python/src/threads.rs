//! The thread pools, one for each number of threads that steps use: created at first use, and again in a forked child, which
//! inherits no threads.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::process::id;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use oxigrad_core::error::Result;
use oxigrad_core::simd::dispatch::Isa;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{IntoPython, locked};

/// Upper bound of the number of threads: a larger number is a mistake.
const MOST: usize = 1024;

/// Pools by their number of threads; `None` where a pool cannot be made.
type Pools = BTreeMap<usize, Option<Arc<ThreadPool>>>;

/// The process, and its pools.
static POOLS: Mutex<(u32, Pools)> = Mutex::new((0, BTreeMap::new()));

/// The number of threads that steps may use; 0 for `AVAILABLE`.
static THREADS: AtomicUsize = AtomicUsize::new(0);

static AVAILABLE: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from).min(MOST));

/// Number of forks between the first process and this one: a process identity that takes no system call.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Number of forks between the first process and this one.
#[pyfunction]
#[pyo3(name = "forks")]
pub fn process() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

#[pyfunction]
fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Registers the function that Python calls in a forked child.
pub fn register(py: Python<'_>) -> PyResult<()> {
    let Some(at_fork) = py.import("os")?.getattr_opt("register_at_fork")? else { return Ok(()) };
    let named = PyDict::new(py);
    named.set_item("after_in_child", wrap_pyfunction!(forked, py)?)?;
    at_fork.call((), Some(&named)).map(drop)
}

fn make(threads: usize) -> Option<Arc<ThreadPool>> {
    let name = |index| format!("oxigrad-{index}");
    ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build().ok().map(Arc::new)
}

thread_local! {
    /// The number of threads that steps of this thread may use at most.
    static LIMIT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The pool for steps of this thread; `None` if they use one thread.
pub fn pool() -> Option<Arc<ThreadPool>> {
    let threads = LIMIT.get().unwrap_or(MOST).min(get_num_threads());
    if threads == 1 {
        return None;
    }
    let mut pools = locked(&POOLS);
    if pools.0 != id() {
        // The threads of a parent process do not exist here: joining them would wait for ever.
        std::mem::forget(std::mem::replace(&mut *pools, (id(), BTreeMap::new())));
    }
    pools.1.entry(threads).or_insert_with(|| make(threads)).clone()
}

/// From so many elements on, threads share the work on arrays, and the interpreter lock is released.
pub const DETACHED: usize = 1 << 15;

/// Does the work on so many elements, given the pool and without the interpreter lock if they are many.
pub fn shared<T: Send>(
    py: Python<'_>,
    elements: usize,
    work: impl FnOnce(Option<&ThreadPool>) -> Result<T> + Send,
) -> PyResult<T> {
    let work = || work((if elements < DETACHED { None } else { pool() }).as_deref());
    if elements < DETACHED { work() } else { py.detach(work) }.python()
}

/// Limits the number of threads of steps of this thread, or of the pool for None; returns the limit before.
#[pyfunction]
#[pyo3(signature = (threads))]
pub fn limit_threads(threads: Option<usize>) -> Option<usize> {
    LIMIT.replace(threads.map(|threads| threads.max(1)))
}

/// The instruction set, detected once.
pub fn isa() -> Isa {
    static ISA: std::sync::OnceLock<Isa> = std::sync::OnceLock::new();
    *ISA.get_or_init(Isa::detect)
}

/// The name of the instruction set that kernels on the host use.
#[pyfunction]
pub fn instruction_set() -> &'static str {
    isa().name()
}

/// Number of threads that a step may use. No result depends on it.
#[pyfunction]
pub fn get_num_threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => *AVAILABLE,
        threads => threads,
    }
}

/// Sets the number of threads that a step may use; raises `ValueError` for a number that is not from 1 to 1024, and
/// `TypeError` for what is no whole number.
///
/// Args:
///     threads: number of threads, from 1 to 1024; no result depends on it.
#[pyfunction]
pub fn set_num_threads(threads: &Bound<'_, PyAny>) -> PyResult<()> {
    let is_whole = !threads.is_instance_of::<PyBool>() && threads.hasattr("__index__")?;
    let number = if is_whole { threads.extract().ok() } else { None };
    let Some(threads) = number.filter(|count| (1..=MOST).contains(count)) else {
        let text = format!("threads is {}: expected a whole number from 1 to {MOST}", threads.repr()?);
        return Err(if is_whole { PyValueError::new_err(text) } else { PyTypeError::new_err(text) });
    };
    if THREADS.swap(threads, Ordering::Relaxed) != threads {
        let mut pools = locked(&POOLS);
        if pools.0 == id() {
            pools.1.clear();
        }
    }
    Ok(())
}
