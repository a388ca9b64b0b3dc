//! Runs a kernel over the leaves of a tree: all of them in one fork-join, balanced over the threads as they go.
//!
//! The result is the same, to the bit, for any instruction set, any number of threads and any layout of the memory.

mod check;
mod interpreter;
mod loops;
mod native;
mod plan;
mod prefetch;
mod transfer;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rayon::ThreadPool;

pub use interpreter::Scratch;

use crate::array::buffer::{Buffer, Dtype};
use crate::array::rows::Rows;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::simd::dispatch::Isa;
use interpreter::{Part, Run};
use plan::Plan;

/// One leaf: its arrays, and what else a kernel needs to know to update it.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'a> {
    /// One buffer for each array input of the kernel (further ones are ignored), of any dtype and layout.
    pub inputs: &'a [Buffer],
    /// One buffer for each output: exactly the memory of an input, or apart from all.
    pub outputs: &'a [Buffer],
    /// How many elements each buffer has.
    pub length: usize,
    /// The type in which to compute: `F32` or `F64`.
    pub dtype: Dtype,
    /// Which set of scalars is this leaf's.
    pub scalar_set: usize,
    /// The key of its random numbers: see [`crate::noise::noise_key`].
    pub noise_key: u64,
}

impl<'a> Leaf<'a> {
    /// Which rows of a table it writes, if not all: its random numbers are those of the elements of the whole table.
    fn rows(&self) -> Option<&'a Rows> {
        self.outputs.first().and_then(|output| output.rows.as_deref())
    }
}

/// A kernel and the leaves that it runs over. `scalars` holds one or more sets of [`Kernel::scalar_inputs`] values.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The sets of scalars, one after the other.
    pub scalars: &'a [f64],
    /// The leaves.
    pub leaves: &'a [Leaf<'a>],
}

/// Runs kernels over leaves, together: their totals are over the leaves of all, and nothing is written if a guard says so.
///
/// With a pool, its threads and the calling one share the work; without, or for little work, the calling thread does
/// all. Everything is checked before anything is written. Returns the results of each kernel for each leaf
/// ([`Kernel::results`] numbers a leaf); `None` where a guard stopped it and nothing was written.
///
/// # Errors
/// `Shape` where a leaf has too few buffers, a buffer not `length` elements, or there is no such set of scalars;
/// `Dtype` where a leaf's dtype is none that kernels compute in, or an output is not of floating point; `Memory` where
/// an output is read-only or overlaps itself; `Alias` where an output overlaps another buffer of its leaf otherwise than
/// element for element; `Rule` where kernels do not have the same totals and guards.
///
/// # Safety
/// The memory of every buffer (its `span`) must be valid to read, and of every output to write, for the whole call, and
/// nobody else may write any of it or read the outputs meanwhile. No output may overlap a buffer of another leaf:
/// [`crate::array::overlap::Sweep`] finds out.
pub unsafe fn run(batches: &[Batch], isa: Isa, threads: Option<&ThreadPool>) -> Result<Option<Vec<Vec<f64>>>> {
    check(batches)?;
    // SAFETY: the caller's promise, and what was just checked.
    unsafe { run_checked(batches, isa, threads) }
}

/// What [`run`] checks. It holds for as long as kernels and buffers stay the same.
///
/// # Errors
/// As [`run`].
pub fn check(batches: &[Batch]) -> Result<()> {
    for Batch { kernel, leaves, .. } in batches {
        for (number, leaf) in leaves.iter().enumerate() {
            check::leaf(kernel, leaf).map_err(|error| check::of_leaf(number, &error))?;
        }
    }
    check::together(batches)
}

/// As [`run`], for kernels and buffers for which [`check`] found nothing wrong.
///
/// # Errors
/// `Shape` where there are not as many scalars as there must be.
///
/// # Safety
/// As [`run`]; and `check` must have been asked about batches of the same kernels and buffers.
pub unsafe fn run_checked(batches: &[Batch], isa: Isa, threads: Option<&ThreadPool>) -> Result<Option<Vec<Vec<f64>>>> {
    let mut plans = Vec::with_capacity(batches.len());
    for Batch { kernel, scalars, leaves } in batches {
        let sets = check::scalar_sets(kernel, scalars)?;
        for (number, leaf) in leaves.iter().enumerate() {
            check::scalar_set(leaf, sets).map_err(|error| check::of_leaf(number, &error))?;
        }
        plans.push(Plan::new(kernel, scalars, sets, leaves));
    }
    let phases = batches.iter().map(|batch| batch.kernel.phases.len()).max().unwrap_or(0);
    for phase in 0..phases {
        enter(&mut plans, phase);
        if plans.iter().any(|plan| plan.stops(phase)) {
            return Ok(None);
        }
        for plan in plans.iter().filter(|plan| plan.works(phase)) {
            fork_join(plan, phase, isa, threads);
        }
    }
    Ok(Some(plans.iter().map(Plan::results).collect()))
}

/// Computes the scalars of a phase in all plans, which wait for each other at each total.
fn enter(plans: &mut [Plan], phase: usize) {
    let mut waiting: Vec<&mut Plan> = plans.iter_mut().filter(|plan| plan.has_phase(phase)).collect();
    loop {
        let parts: Vec<f64> = waiting.iter_mut().filter_map(|plan| plan.enter(phase)).collect();
        if parts.is_empty() {
            return;
        }
        let total = parts.iter().sum();
        for plan in &mut waiting {
            plan.set_total(total);
        }
    }
}

/// Runs the kernel over one leaf, on the calling thread. Nothing is allocated once `scratch` has grown.
///
/// # Errors
/// As [`run`], and `Rule` where the kernel hands back results or may be stopped.
///
/// # Safety
/// As [`run`], for the one leaf.
pub unsafe fn run_one(kernel: &Kernel, scalars: &[f64], leaf: &Leaf, isa: Isa, scratch: &mut Scratch) -> Result<()> {
    let sets = check::scalar_sets(kernel, scalars)?;
    check::scalar_set(leaf, sets)?;
    check::leaf(kernel, leaf)?;
    check::writes_only(kernel)?;
    let scalars = &scalars[leaf.scalar_set * kernel.scalars..][..kernel.scalars];
    let mut values = std::mem::take(&mut scratch.values);
    let mut sums = std::mem::take(&mut scratch.sums);
    values.clear();
    sums.clear();
    sums.resize(kernel.sums, 0.0);
    for (number, phase) in kernel.phases.iter().enumerate() {
        while let Some(total) = kernel.compute_scalars(number, scalars, &sums, &mut values, &[]) {
            values.push(total);
        }
        let part = Part { kernel, phase, leaf, scalars: &values, start: 0, end: leaf.length };
        let on_sum = |_: &Part, sum: u16, _: usize, value: f64| sums[usize::from(sum)] += value;
        isa.run(Run { parts: std::iter::once(part), scratch, on_sum });
    }
    scratch.values = values;
    scratch.sums = sums;
    Ok(())
}

/// One phase over all leaves.
fn fork_join(plan: &Plan, phase: usize, isa: Isa, threads: Option<&ThreadPool>) {
    let workers = threads.map_or(1, ThreadPool::current_num_threads);
    let tasks = plan.tasks(workers);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut scratch = Scratch::default();
        loop {
            let task = next.fetch_add(1, Relaxed);
            if task >= tasks.count {
                break;
            }
            let on_sum = |part: &Part, sum, chunk, value| plan.keep_sum(part, sum, chunk, value);
            isa.run(Run { parts: plan.parts(phase, &tasks, task), scratch: &mut scratch, on_sum });
        }
    };
    match threads {
        Some(pool) if tasks.count > 1 => pool.in_place_scope(|scope| {
            (1..workers.min(tasks.count)).for_each(|_| scope.spawn(|_| work()));
            work();
        }),
        _ => work(),
    }
}
