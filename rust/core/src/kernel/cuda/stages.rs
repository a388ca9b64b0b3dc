//! The stages of a scalar program: the parts of it between the launches of other entries.

use crate::kernel::compiled::{Kernel, ScalarStep};
use crate::kernel::instruction::Work;

/// A part of the scalar program.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    /// The first step. A total that the part begins with is known.
    pub start: usize,
    /// The step after the last.
    pub end: usize,
    /// The place of its launch: see `Entry::moment`.
    pub moment: usize,
    /// The number of the total to which it computes the term of its leaf, and the step that is the term.
    pub term: Option<(usize, usize)>,
    /// Whether scalars are read by an `Update` before the next stage, or the guard is.
    is_read: bool,
}

/// The moments after all stages and phases.
pub(super) const AFTER: usize = 1 << 20;

impl Kernel {
    /// The moment of the `Update` of a phase.
    pub(super) fn moment_of_update(&self, phase: usize) -> usize {
        2 * phase + 1 + 2 * self.totals.iter().filter(|(at, _)| *at <= phase).count()
    }

    /// The stages, in order. What nothing reads before the next stage is part of that.
    pub(super) fn stages(&self) -> Vec<Stage> {
        let mut stages: Vec<Stage> = Vec::new();
        for stage in self.all_stages() {
            match stages.last_mut() {
                Some(last) if !last.is_read && last.term.is_none() => {
                    *last = Stage { start: last.start, ..stage };
                }
                _ => stages.push(stage),
            }
        }
        let is_needed = |stage: &Stage| stage.start < stage.end || stage.term.is_some();
        stages.retain(is_needed);
        stages
    }

    fn all_stages(&self) -> Vec<Stage> {
        let (mut stages, mut start, mut totals) = (Vec::new(), 0, 0);
        for (number, phase) in self.phases.iter().enumerate() {
            let guards = self.guard.is_some_and(|(at, _)| at == number);
            let mut from = start;
            loop {
                let moment = 2 * (number + totals);
                let term = (from..phase.known_scalars).find_map(|step| match self.scalar_steps[step] {
                    ScalarStep::Total(arg) => Some((step, usize::from(arg))),
                    ScalarStep::Input(_) | ScalarStep::Constant(_) | ScalarStep::Apply(..) | ScalarStep::Sum(_) => None,
                });
                let Some((total, arg)) = term else {
                    let is_read = guards || !self.scalars_of(number).is_empty();
                    stages.push(Stage { start, end: phase.known_scalars, moment, term: None, is_read });
                    break;
                };
                stages.push(Stage { start, end: total, moment, term: Some((totals, arg)), is_read: true });
                (start, from) = (total, total + 1);
                totals += 1;
            }
            start = phase.known_scalars;
        }
        stages
    }

    /// The scalar registers that the instructions of a phase read, as positions among all scalar registers.
    pub(super) fn scalars_of(&self, phase: usize) -> Vec<usize> {
        let range = self.first_scalar()..self.first_temporary();
        let mut registers = Vec::new();
        for code in &self.phases[phase].code {
            let args = match &code.work {
                Work::Apply(op, args) => &args[..op.arity()],
                Work::Sum(arg) => std::slice::from_ref(arg),
                Work::Noise(_) => &[],
            };
            registers.extend(args.iter().map(|arg| usize::from(*arg)).filter(|arg| range.contains(arg)));
        }
        registers.sort_unstable();
        registers.dedup();
        registers.into_iter().map(|register| register - range.start).collect()
    }

    /// The steps whose values are kept in memory: those of scalar registers, in their order, then those that a later
    /// stage reads, or that are results.
    pub(super) fn stored(&self, stages: &[Stage]) -> Vec<usize> {
        let mut stored: Vec<usize> = self.splats.iter().map(|step| usize::from(*step)).collect();
        let mut keep = |step: usize| {
            if !stored.contains(&step) {
                stored.push(step);
            }
        };
        for stage in stages {
            let args = self.scalar_steps[stage.start..stage.end].iter().flat_map(|step| match step {
                ScalarStep::Apply(op, args) => args[..op.arity()].to_vec(),
                ScalarStep::Input(_) | ScalarStep::Constant(_) | ScalarStep::Sum(_) | ScalarStep::Total(_) => {
                    Vec::new()
                }
            });
            let args = args.map(usize::from).chain(stage.term.map(|(_, arg)| arg));
            args.filter(|arg| *arg < stage.start).for_each(&mut keep);
        }
        let last = stages.last().map_or(0, |stage| stage.start);
        let results = self.results.iter().map(|step| usize::from(*step));
        results.filter(|step| self.guard.is_some() || *step < last).for_each(&mut keep);
        stored
    }
}
