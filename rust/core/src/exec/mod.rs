//! Runs a kernel over the leaves of a tree: all of them in one fork-join, balanced over the threads as they go.
//!
//! The result is the same, to the bit, for any instruction set, any number of threads and any layout of the memory.

mod block;
mod check;
mod gather;
mod native;
mod plan;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rayon::ThreadPool;

pub use block::Scratch;

use crate::buffer::{Buffer, Dtype};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::lane::dispatch::Isa;
use block::{Part, Run};
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

/// Runs the kernel over all leaves. `scalars` holds one or more sets of [`Kernel::scalar_inputs`] values.
///
/// With a pool, its threads and the calling one share the work; without, or for little work, the calling thread does
/// all. Everything is checked before anything is written.
///
/// # Errors
/// `Shape` where a leaf has too few buffers, a buffer not `length` elements, or there is no such set of scalars;
/// `Dtype` where a leaf's dtype is none that kernels compute in, or an output is not of floating point; `Memory` where
/// an output is read-only or overlaps itself; `Alias` where an output overlaps another buffer of its leaf otherwise than
/// element for element.
///
/// # Safety
/// The memory of every buffer (its `span`) must be valid to read, and of every output to write, for the whole call, and
/// nobody else may write any of it or read the outputs meanwhile. No output may overlap a buffer of another leaf:
/// [`crate::overlap::Sweep`] finds out.
pub unsafe fn run(
    kernel: &Kernel,
    scalars: &[f64],
    leaves: &[Leaf],
    isa: Isa,
    threads: Option<&ThreadPool>,
) -> Result<()> {
    let sets = check::scalar_sets(kernel, scalars)?;
    for (number, leaf) in leaves.iter().enumerate() {
        check::leaf(kernel, leaf, sets).map_err(|error| check::of_leaf(number, &error))?;
    }
    let mut plan = Plan::new(kernel, scalars, sets, leaves);
    for phase in 0..kernel.phases.len() {
        plan.enter(phase);
        fork_join(&plan, phase, isa, threads);
    }
    Ok(())
}

/// Runs the kernel over one leaf, on the calling thread. Nothing is allocated once `scratch` has grown.
///
/// # Errors
/// As [`run`].
///
/// # Safety
/// As [`run`], for the one leaf.
pub unsafe fn run_one(kernel: &Kernel, scalars: &[f64], leaf: &Leaf, isa: Isa, scratch: &mut Scratch) -> Result<()> {
    let sets = check::scalar_sets(kernel, scalars)?;
    check::leaf(kernel, leaf, sets)?;
    let scalars = &scalars[leaf.scalar_set * kernel.scalars..][..kernel.scalars];
    let mut values = std::mem::take(&mut scratch.values);
    let mut sums = std::mem::take(&mut scratch.sums);
    values.clear();
    sums.clear();
    sums.resize(kernel.sums, 0.0);
    for (number, phase) in kernel.phases.iter().enumerate() {
        kernel.compute_scalars(number, scalars, &sums, &mut values);
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
