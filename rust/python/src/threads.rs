//! The thread pools, created at first use, and again in a forked child, which inherits no threads: one for all steps, and one for each
//! smaller number of threads that a thread's steps are limited to.

use std::cell::Cell;
use std::collections::HashMap;
use std::process::id;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use oxigrad_core::simd::dispatch::Isa;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::{ThreadPool, ThreadPoolBuilder};

struct Pool {
    process: u32,
    threads: usize,
    workers: Option<Arc<ThreadPool>>,
}

/// Upper bound of the number of threads: a larger number is a mistake.
const MOST: usize = 1024;

static POOL: Mutex<Option<Pool>> = Mutex::new(None);

/// Number of forks between the first process and this one: a process identity that takes no system call.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Identity of this process, which differs from that of its parent.
pub fn process() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Number of forks between the first process and this one.
#[pyfunction]
pub fn forks() -> u32 {
    process()
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

fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MOST)
}

fn make(threads: usize) -> Pool {
    let built = (threads > 1).then(|| {
        let name = |index| format!("oxigrad-{index}");
        ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build().ok().map(Arc::new)
    });
    Pool { process: id(), threads, workers: built.flatten() }
}

fn with_pool<T>(threads: Option<usize>, read: impl FnOnce(&Pool) -> T) -> T {
    let mut slot = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let current = slot.as_ref().map(|pool| (pool.process == id(), pool.threads));
    let wanted = threads.or(current.map(|(_, threads)| threads)).unwrap_or_else(available);
    if current != Some((true, wanted)) {
        // The threads of a parent process do not exist here: joining them would wait for ever.
        std::mem::forget(slot.take().filter(|pool| pool.process != id()));
        *slot = Some(make(wanted));
    }
    read(slot.as_ref().expect("the pool was just made"))
}

/// Pools of fewer threads than `POOL`, by their number.
static SMALLER: Mutex<Option<HashMap<usize, Pool>>> = Mutex::new(None);

thread_local! {
    /// The number of threads that steps of this thread may use at most.
    static LIMIT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The pool for steps of this thread; `None` if they use one thread.
pub fn pool() -> Option<Arc<ThreadPool>> {
    let (threads, workers) = with_pool(None, |pool| (pool.threads, pool.workers.clone()));
    match LIMIT.get().filter(|limit| *limit < threads) {
        None => workers,
        Some(1) => None,
        Some(limit) => smaller(limit),
    }
}

fn smaller(threads: usize) -> Option<Arc<ThreadPool>> {
    let mut slot = SMALLER.lock().unwrap_or_else(PoisonError::into_inner);
    let pools = slot.get_or_insert_default();
    if pools.get(&threads).is_none_or(|pool| pool.process != id()) {
        std::mem::forget(pools.insert(threads, make(threads))); // as in `with_pool`
    }
    pools[&threads].workers.clone()
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
    with_pool(None, |pool| pool.threads)
}

/// Sets the number of threads that a step may use, from 1 to 1024; raises `ValueError` for any other number.
#[pyfunction]
pub fn set_num_threads(threads: usize) -> PyResult<()> {
    if !(1..=MOST).contains(&threads) {
        return Err(PyValueError::new_err(format!("threads is {threads}: expected 1 to {MOST}")));
    }
    with_pool(Some(threads), |_| ());
    Ok(())
}
