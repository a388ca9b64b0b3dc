//! The entries that compute scalars: `Scalars`, `Total`, `Results` and `Advance`; and the stages of a scalar program, the parts of it
//! between the launches of other entries.

use std::fmt::Write;

use super::functions::{Functions, number};
use super::source::{Entry, EntryKind, Layout, Scope};

use crate::error::Result;
use crate::kernel::compiled::{Kernel, ScalarStep};

/// Threads of a block of these entries.
const THREADS: usize = 128;
/// Chunks whose sums are in shared memory at a time.
const TILE: usize = 512;

const HEAD: &str = "(const __grid_constant__ OxLaunch launch)\n{\n";

/// The entries of a scalar program, and their text.
pub(super) struct Scalars<'a> {
    pub kernel: &'a Kernel,
    pub layout: &'a Layout<'a>,
    pub stages: &'a [Stage],
    /// The steps whose values are kept.
    pub stored: &'a [usize],
}

impl Scalars<'_> {
    /// Appends all entries to `text`.
    pub fn print(&self, functions: &mut Functions, text: &mut String) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for (at, stage) in self.stages.iter().enumerate() {
            let name = format!("scalars_{at}");
            self.stage(&name, stage, at + 1 == self.stages.len(), functions, text)?;
            entries.push(entry(name, EntryKind::Scalars, Scope::Leaves, THREADS, stage.moment));
            if let Some((total, _)) = stage.term {
                let name = format!("total_{total}");
                head(&name, THREADS, text);
                _ = writeln!(text, "    ox_total<{THREADS}>(launch, {total});\n}}\n");
                entries.push(entry(name, EntryKind::Total, Scope::Once, THREADS, stage.moment + 1));
            }
        }
        if self.kernel.guard.is_some() && !self.kernel.results.is_empty() {
            self.results(text);
            entries.push(entry("results".into(), EntryKind::Results, Scope::Leaves, 1, AFTER));
        }
        head("advance", 1, text);
        text.push_str("    ox_advance(*launch.control);\n}\n\n");
        entries.push(entry("advance".into(), EntryKind::Advance, Scope::Once, 1, AFTER + 1));
        Ok(entries)
    }

    fn stage(
        &self,
        name: &str,
        stage: &Stage,
        is_last: bool,
        functions: &mut Functions,
        text: &mut String,
    ) -> Result<()> {
        let kernel = self.kernel;
        let sums: Vec<u16> = kernel.scalar_steps[stage.start..stage.end]
            .iter()
            .filter_map(|step| if let ScalarStep::Sum(sum) = step { Some(*sum) } else { None })
            .collect();
        head(name, THREADS, text);
        text.push_str("    const OxLeaf &leaf = launch.leaves[blockIdx.x];\n    OX_GLOBAL(&leaf)\n");
        for sum in sums {
            _ = writeln!(text, "    __shared__ double sum{sum};");
            _ = writeln!(text, "    ox_fold<{THREADS}, {TILE}>(launch, leaf, {}, {sum}, &sum{sum});", kernel.sums);
        }
        text.push_str("    OX_THREADS {\n        if (threadIdx.x == 0) {\n");
        text.push_str("            double *const values = launch.values + (ox_u64)leaf.row * OX_KEPT;\n");
        for at in stage.start..stage.end {
            let value = self.value(at, stage, functions)?;
            _ = writeln!(text, "            const double v{at} = {value};");
        }
        for (place, step) in self.stored.iter().enumerate().filter(|(_, step)| (stage.start..stage.end).contains(step))
        {
            _ = writeln!(text, "            values[{place}] = v{step};");
        }
        if let Some((_, arg)) = stage.term {
            _ = writeln!(text, "            launch.terms[leaf.term] = {};", self.expression(arg, stage));
        }
        if let Some((_, guard)) =
            kernel.guard.filter(|(_, step)| (stage.start..stage.end).contains(&usize::from(*step)))
        {
            _ = writeln!(text, "            if (v{guard} == 0.0) launch.control->stopped = 1;");
        }
        if is_last && kernel.guard.is_none() {
            for (number, step) in kernel.results.iter().enumerate() {
                let value = self.expression(usize::from(*step), stage);
                _ = writeln!(text, "            *leaf.numbers[{number}] = {value};");
            }
        }
        text.push_str("        }\n    }\n}\n\n");
        Ok(())
    }

    /// The value of a step of a stage, or of one before it.
    fn expression(&self, step: usize, stage: &Stage) -> String {
        if step >= stage.start {
            return format!("v{step}");
        }
        let place = self.stored.iter().position(|other| *other == step).unwrap_or_default();
        format!("values[{place}]")
    }

    fn value(&self, at: usize, stage: &Stage, functions: &mut Functions) -> Result<String> {
        Ok(match self.kernel.scalar_steps[at] {
            ScalarStep::Input(k) => {
                let (k, scalars) = (usize::from(k), self.layout.scalars);
                if k < scalars {
                    format!("ox_scalar(launch, leaf.set, {scalars}, {k})")
                } else {
                    format!("*leaf.numbers[{}]", k - scalars)
                }
            }
            ScalarStep::Constant(value) => number(value),
            ScalarStep::Apply(op, args) => {
                let args: Vec<String> =
                    args[..op.arity()].iter().map(|arg| self.expression(usize::from(*arg), stage)).collect();
                functions.on_scalars(op, &args.iter().map(String::as_str).collect::<Vec<_>>())?
            }
            ScalarStep::Sum(sum) => format!("sum{sum}"),
            ScalarStep::Total(_) => {
                let steps = &self.kernel.scalar_steps[..at];
                let total = steps.iter().filter(|step| matches!(step, ScalarStep::Total(_))).count();
                format!("launch.totals[{total}]")
            }
        })
    }

    fn results(&self, text: &mut String) {
        head("results", 1, text);
        text.push_str("    const OxLeaf &leaf = launch.leaves[blockIdx.x];\n    OX_GLOBAL(&leaf)\n");
        text.push_str("    const double *const values = launch.values + (ox_u64)leaf.row * OX_KEPT;\n");
        text.push_str("    if (launch.control->stopped) return;\n");
        for (number, step) in self.kernel.results.iter().enumerate() {
            let place = self.stored.iter().position(|other| *other == usize::from(*step)).unwrap_or_default();
            _ = writeln!(text, "    *leaf.numbers[{number}] = values[{place}];");
        }
        text.push_str("}\n\n");
    }
}

fn head(name: &str, threads: usize, text: &mut String) {
    _ = write!(text, "extern \"C\" __global__ void __launch_bounds__({threads}) {name}{HEAD}");
}

fn entry(name: String, kind: EntryKind, scope: Scope, block: usize, moment: usize) -> Entry {
    Entry { name, kind, scope, block, moment }
}

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
            registers
                .extend(code.work.arguments().iter().map(|arg| usize::from(*arg)).filter(|arg| range.contains(arg)));
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
