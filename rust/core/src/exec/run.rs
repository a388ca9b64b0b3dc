//! The entry points: kernels run over the leaves of a tree in one fork-join, with dynamic load balancing.
//!
//! A step over slices of leaves is measured and applied: each phase before the one that writes is measured over all slices,
//! the sums of whole leaves are folded in between, and the phase that writes is applied to each slice with them. A slice of a leaf
//! with sums begins at a multiple of [`super::CHUNK`], and ends at one or at the leaf's end; of a leaf with codes, of their block. The
//! bits are then those of the whole leaves, whatever the slices and their order.

use rayon::ThreadPool;

use super::batch::{Batch, Leaf, Part};
use super::check::{check, leaf as check_leaf, scalar_set, scalar_sets, writes_only};
use super::interpreter::{Run, Scratch};
use super::plan::Plan;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::parallel::share;
use crate::simd::dispatch::Isa;

/// Runs kernels over leaves, together: totals are over all leaves, and nothing is written if a guard is
/// zero.
///
/// With a pool, its threads and the calling one share the work; without one, or for little work, only the calling
/// thread runs. Everything is checked before anything is written. Returns the results of each kernel for each leaf
/// ([`Kernel::results`] numbers a leaf); `None` if a guard stopped it and nothing was written.
///
/// # Errors
/// `Shape` if a leaf has too few buffers, a buffer not `length` elements, or a set of scalars does not exist;
/// `Dtype` if kernels do not compute in a leaf's dtype, or an output is not of floating point; `Memory` if
/// an output is read-only or overlaps itself; `Alias` if an output overlaps another buffer of its leaf other
/// than element by element; `Rule` if kernels do not have the same totals and guards.
///
/// # Safety
/// The memory of every buffer (its `span`) must be valid to read, and of every output to write, for the whole call, and
/// it may not be written, nor the outputs read, by others meanwhile. No output may overlap a buffer of another leaf:
/// [`crate::array::overlap::Sweep`] checks this.
pub unsafe fn run(batches: &[Batch], isa: Isa, threads: Option<&ThreadPool>) -> Result<Option<Vec<Vec<f64>>>> {
    check(batches)?;
    // SAFETY: the caller's promise, and what was just checked.
    unsafe { run_checked(batches, isa, threads) }
}

/// As [`run`], for kernels and buffers that passed [`check`].
///
/// # Errors
/// `Shape` if the number of scalars is wrong.
///
/// # Safety
/// As [`run`]; and `check` must have passed for batches of the same kernels and buffers.
pub unsafe fn run_checked(batches: &[Batch], isa: Isa, threads: Option<&ThreadPool>) -> Result<Option<Vec<Vec<f64>>>> {
    let (mut plans, mut totals) = (plans(batches)?, Totals::default());
    let phases = batches.iter().map(|batch| batch.kernel.phases.len()).max().unwrap_or(0);
    for phase in 0..phases {
        enter(&mut plans, phase, &mut totals);
        if plans.iter().any(|plan| plan.stops(phase)) {
            return Ok(None);
        }
        for plan in plans.iter().filter(|plan| plan.works(phase)) {
            fork_join(plan, phase, isa, threads);
        }
    }
    Ok(Some(plans.iter().map(Plan::results).collect()))
}

/// A plan for each batch.
///
/// # Errors
/// `Shape` if the number of scalars is wrong.
fn plans<'a>(batches: &'a [Batch]) -> Result<Vec<Plan<'a>>> {
    let mut plans = Vec::with_capacity(batches.len());
    for Batch { kernel, scalars, leaves } in batches {
        let sets = scalar_sets(kernel, scalars)?;
        for (number, leaf) in leaves.iter().enumerate() {
            scalar_set(leaf, sets).map_err(|error| error.at(format_args!("leaf {number}")))?;
        }
        plans.push(Plan::new(kernel, scalars, sets, leaves));
    }
    Ok(plans)
}

/// The totals of a step in order, and the number of the next one.
#[derive(Default)]
struct Totals {
    values: Vec<f64>,
    next: usize,
}

/// Computes the scalars of a phase in all plans, which wait for each other at each total. Totals that are known already
/// are taken as they are.
fn enter(plans: &mut [Plan], phase: usize, totals: &mut Totals) {
    let mut waiting: Vec<&mut Plan> = plans.iter_mut().filter(|plan| plan.has_phase(phase)).collect();
    loop {
        let parts: Vec<f64> = waiting.iter_mut().filter_map(|plan| plan.enter(phase)).collect();
        if parts.is_empty() {
            return;
        }
        if totals.next == totals.values.len() {
            totals.values.push(parts.iter().sum());
        }
        for plan in &mut waiting {
            plan.set_total(totals.values[totals.next]);
        }
        totals.next += 1;
    }
}

/// Runs the kernel over one leaf, on the calling thread. Nothing is allocated once `scratch` has grown.
///
/// # Errors
/// As [`run`], and `Rule` if the kernel returns results or has a guard.
///
/// # Safety
/// As [`run`], for the one leaf.
pub unsafe fn run_one(kernel: &Kernel, scalars: &[f64], leaf: &Leaf, isa: Isa, scratch: &mut Scratch) -> Result<()> {
    let sets = scalar_sets(kernel, scalars)?;
    scalar_set(leaf, sets)?;
    check_leaf(kernel, leaf)?;
    writes_only(kernel)?;
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
        let on_sum = &mut |_: &Part, sum: u16, _: usize, value: f64| sums[usize::from(sum)] += value;
        isa.run(Run { parts: &mut std::iter::once(part), scratch, on_sum });
    }
    scratch.values = values;
    scratch.sums = sums;
    Ok(())
}

/// One phase over all leaves.
fn fork_join(plan: &Plan, phase: usize, isa: Isa, threads: Option<&ThreadPool>) {
    let workers = threads.map_or(1, ThreadPool::current_num_threads);
    let tasks = plan.tasks(workers);
    share(tasks.count, 1, threads, |ranges| {
        let mut scratch = Scratch::default();
        for task in ranges.flatten() {
            let on_sum = &mut |part: &Part, sum, chunk, value| plan.keep_sum(part, sum, chunk, value);
            isa.run(Run { parts: &mut plan.parts(phase, &tasks, task), scratch: &mut scratch, on_sum });
        }
    });
}

/// For each batch and leaf, the sums of chunks: chunk by chunk, the sums of one phase in order.
pub type Partials = Vec<Vec<Vec<f64>>>;

/// The sums of whole leaves that a step over slices has measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The number of phases that are measured.
    phases: usize,
    /// For each batch, the sums of each leaf that are known.
    sums: Vec<Vec<Option<f64>>>,
    /// The totals over the leaves of other steps too, where the batches have some of all leaves; in order.
    totals: Vec<f64>,
}

impl Measured {
    /// The number of phases to measure before the batches are applied.
    #[must_use]
    pub fn phases(batches: &[Batch]) -> usize {
        batches.iter().map(|batch| batch.kernel.writing()).max().unwrap_or(0)
    }

    /// The number of sums of each chunk that the next phase measures, for each batch.
    pub fn widths(&self, batches: &[Batch]) -> impl Iterator<Item = usize> {
        batches.iter().map(|batch| sums(batch.kernel, self.phases).len())
    }

    /// Adds the sums of the next phase, from the partial sums of all chunks of all leaves: the chunks in order.
    ///
    /// # Errors
    /// `Shape` if they are of another number of leaves or sums.
    pub fn fold(&mut self, batches: &[Batch], partials: &Partials) -> Result<()> {
        self.sums.resize_with(batches.len(), Vec::new);
        let is_of_leaves = |(batch, of_batch): (&Batch, &Vec<_>)| batch.leaves.len() == of_batch.len();
        if batches.len() != partials.len() || !batches.iter().zip(partials).all(is_of_leaves) {
            return Err(Error::Shape("the partial sums are of another number of leaves".into()));
        }
        for ((Batch { kernel, leaves, .. }, known), of_batch) in batches.iter().zip(&mut self.sums).zip(partials) {
            known.resize(leaves.len() * kernel.sums, None);
            let sums = sums(kernel, self.phases);
            for (number, of_leaf) in of_batch.iter().enumerate() {
                if of_leaf.len() % sums.len().max(1) != 0 {
                    return Err(Error::Shape(format!("{} partial sums, {} for each chunk", of_leaf.len(), sums.len())));
                }
                for (at, sum) in sums.iter().enumerate() {
                    let chunks = of_leaf.iter().skip(at).step_by(sums.len());
                    let whole = chunks.fold(0.0, |whole, partial| whole + partial);
                    known[number * kernel.sums + usize::from(*sum)] = Some(whole);
                }
            }
        }
        self.phases += 1;
        Ok(())
    }

    /// The totals over all leaves that are known, in order.
    ///
    /// # Errors
    /// As [`run_checked`].
    pub fn totals(&self, batches: &[Batch]) -> Result<Vec<f64>> {
        let (mut plans, mut totals) = (self.plans(batches)?, self.known());
        (0..=self.phases).for_each(|phase| enter(&mut plans, phase, &mut totals));
        Ok(totals.values)
    }

    /// The partial sums of some leaves of the `batches`, each the number of its batch and its own there; and the
    /// `totals` over all.
    #[must_use]
    pub fn of_leaves(&self, batches: &[Batch], leaves: &[Vec<(usize, usize)>], totals: &[f64]) -> Self {
        let sums_of = |(batch, leaf): &(usize, usize)| {
            let sums = batches[*batch].kernel.sums;
            self.sums.get(*batch).map_or(&[][..], |known| &known[leaf * sums..][..sums]).iter().copied()
        };
        let sums = leaves.iter().map(|leaves| leaves.iter().flat_map(sums_of).collect()).collect();
        Self {
            phases: self.phases,
            sums: if self.sums.is_empty() { Vec::new() } else { sums },
            totals: totals.to_vec(),
        }
    }

    fn known(&self) -> Totals {
        Totals { values: self.totals.clone(), next: 0 }
    }

    /// Plans whose leaves have these sums.
    fn plans<'a>(&'a self, batches: &'a [Batch]) -> Result<Vec<Plan<'a>>> {
        let plans = plans(batches)?;
        if self.sums.is_empty() {
            return Ok(plans);
        }
        Ok(plans.into_iter().zip(&self.sums).map(|(plan, sums)| plan.with_sums(sums)).collect())
    }
}

/// The sums that a phase measures.
fn sums(kernel: &Kernel, phase: usize) -> &[u16] {
    if phase < kernel.writing() { &kernel.phases[phase].sums } else { &[] }
}

/// Computes the partial sums of the next phase over slices, and writes nothing. The batches have all leaves of the step,
/// of which one whose elements are elsewhere is a slice of none; or `measured` has the totals over all.
///
/// # Errors
/// As [`run_checked`].
///
/// # Safety
/// As [`run_checked`].
pub unsafe fn measure(
    batches: &[Batch],
    measured: &Measured,
    isa: Isa,
    threads: Option<&ThreadPool>,
) -> Result<Partials> {
    let (mut plans, phase, mut totals) = (measured.plans(batches)?, measured.phases, measured.known());
    (0..=phase).for_each(|phase| enter(&mut plans, phase, &mut totals));
    let partials = plans.iter().map(|plan| {
        if phase >= plan.writing() {
            return vec![Vec::new(); plan.leaves()];
        }
        if plan.works(phase) {
            fork_join(plan, phase, isa, threads);
        }
        plan.partials(phase)
    });
    Ok(partials.collect())
}

/// Writes the slices of a step whose phases before are measured, unless a guard stops it. What is summed while they are
/// written is summed over the slices alone. Returns the results of each kernel for each leaf, as [`run`].
///
/// # Errors
/// As [`run_checked`], and `Rule` for a total of what is written.
///
/// # Safety
/// As [`run_checked`].
pub unsafe fn apply(
    batches: &[Batch],
    measured: &Measured,
    isa: Isa,
    threads: Option<&ThreadPool>,
) -> Result<Option<Vec<Vec<f64>>>> {
    let (mut plans, mut totals) = (measured.plans(batches)?, measured.known());
    if plans.iter().any(Plan::totals_written) {
        return Err(Error::Rule("a total of what a step writes is not known over slices".into()));
    }
    for phase in 0..=measured.phases {
        enter(&mut plans, phase, &mut totals);
        if plans.iter().any(|plan| plan.stops(phase)) {
            return Ok(None);
        }
    }
    for plan in plans.iter().filter(|plan| plan.works(plan.writing())) {
        fork_join(plan, plan.writing(), isa, threads);
    }
    // Anew: scalars after the phase that writes were computed before its sums.
    plans.iter_mut().for_each(Plan::forget);
    totals.next = 0;
    for phase in 0..plans.iter().map(Plan::phases).max().unwrap_or(0) {
        enter(&mut plans, phase, &mut totals);
        for plan in plans.iter().filter(|plan| phase > plan.writing() && plan.works(phase)) {
            fork_join(plan, phase, isa, threads);
        }
    }
    Ok(Some(plans.iter().map(Plan::results).collect()))
}
