//! The entries that compute scalars: `Scalars`, `Total`, `Results` and `Advance`.

use std::fmt::Write;

use super::functions::{Functions, number};
use super::source::{Entry, EntryKind, Layout, Scope};
use super::stages::{AFTER, Stage};

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
