//! A step over slices of leaves: each phase before the one that writes is measured over all slices, and the sums of whole
//! leaves are folded in between; the phase that writes is applied to each slice with them.
//!
//! A slice of a leaf with sums begins at a multiple of 4,096 elements, and ends at one or at the leaf's end; of a
//! leaf with codes, of their block. The bits are then those of the whole leaves, whatever the slices and their order.

use rayon::ThreadPool;

use super::batch::Batch;
use super::plan::Plan;
use super::run::{enter, fork_join, plans};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::simd::dispatch::Isa;

/// For each batch and leaf, the sums of chunks: chunk by chunk, the sums of one phase in order.
pub type Partials = Vec<Vec<Vec<f64>>>;

/// The sums of whole leaves that a step over slices has measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The number of phases that are measured.
    phases: usize,
    /// For each batch, the sums of each leaf that are known.
    sums: Vec<Vec<Option<f64>>>,
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

/// Computes the partial sums of the next phase over slices, and writes nothing. The batches have all leaves of the step; a
/// leaf whose elements are elsewhere is a slice of none.
///
/// # Errors
/// As [`super::run_checked`].
///
/// # Safety
/// As [`super::run_checked`].
pub unsafe fn measure(
    batches: &[Batch],
    measured: &Measured,
    isa: Isa,
    threads: Option<&ThreadPool>,
) -> Result<Partials> {
    let (mut plans, phase) = (measured.plans(batches)?, measured.phases);
    (0..=phase).for_each(|phase| enter(&mut plans, phase));
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
/// written is summed over the slices alone. Returns the results of each kernel for each leaf, as [`super::run`].
///
/// # Errors
/// As [`super::run_checked`], and `Rule` for a total of what is written.
///
/// # Safety
/// As [`super::run_checked`].
pub unsafe fn apply(
    batches: &[Batch],
    measured: &Measured,
    isa: Isa,
    threads: Option<&ThreadPool>,
) -> Result<Option<Vec<Vec<f64>>>> {
    let mut plans = measured.plans(batches)?;
    if plans.iter().any(Plan::totals_written) {
        return Err(Error::Rule("a total of what a step writes is not known over slices".into()));
    }
    for phase in 0..=measured.phases {
        enter(&mut plans, phase);
        if plans.iter().any(|plan| plan.stops(phase)) {
            return Ok(None);
        }
    }
    for plan in plans.iter().filter(|plan| plan.works(plan.writing())) {
        fork_join(plan, plan.writing(), isa, threads);
    }
    // Anew: scalars after the phase that writes were computed before its sums.
    plans.iter_mut().for_each(Plan::forget);
    for phase in 0..plans.iter().map(Plan::phases).max().unwrap_or(0) {
        enter(&mut plans, phase);
        for plan in plans.iter().filter(|plan| phase > plan.writing() && plan.works(phase)) {
            fork_join(plan, phase, isa, threads);
        }
    }
    Ok(Some(plans.iter().map(Plan::results).collect()))
}
