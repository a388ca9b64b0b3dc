//! The update of all parameters: every check, then one dispatch of the kernels.

use std::sync::atomic::{AtomicU8, Ordering};

use oxigrad_core::exec::{self, Batch, Leaf};
use oxigrad_core::kernel::Kernel;
use oxigrad_core::noise::noise_key;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyTupleMethods};

use super::phase::WRITING;
use super::prepared::{Prepared, Programs, Touched, known_numpy};
use super::slot::Slot;
use super::symbols::Program;
use crate::arrays::torch::Changed;
use crate::error::IntoPython;
use crate::threads;

/// Below this many elements a step keeps the interpreter lock: handing it over would take longer than the step.
const DETACH: usize = 1 << 15;

/// The leaves that one program updates in a step.
struct Work<'a> {
    kernel: &'a Kernel,
    scalars: Vec<f64>,
    leaves: Vec<Leaf<'a>>,
}

impl<'a> Work<'a> {
    fn new(program: &'a Program) -> Self {
        Self { kernel: &program.kernel, scalars: Vec::new(), leaves: Vec::new() }
    }

    fn batch(&self) -> Batch<'_> {
        Batch { kernel: self.kernel, scalars: &self.scalars, leaves: &self.leaves }
    }
}

impl Prepared {
    /// Runs the update; false where a guard stopped it.
    #[expect(clippy::too_many_arguments, reason = "as `Stepper::step`")]
    pub(super) fn update(
        &mut self,
        py: Python<'_>,
        programs: &Programs,
        seed: u64,
        step: u64,
        written: &Bound<'_, PyTuple>,
        gradients: &Bound<'_, PyTuple>,
        touched: &[Touched<'_>],
        phase: &AtomicU8,
        changed: &mut Changed,
    ) -> PyResult<bool> {
        self.check_places(programs, written.len(), gradients.len()).python()?;
        let numpy = known_numpy(py)?;
        // Must come first, since this runs Python, or lets other threads run.
        self.refuse_negated(written, gradients)?;
        let mut held = Vec::new();
        let mut moves = self.look(numpy, py)?;
        // Put back after all checks have passed.
        let mut seen = std::mem::take(&mut self.seen);
        let is_new = if touched.is_empty() && !moves.moved && seen.is_of(programs) {
            self.renew(&mut seen.buffers, programs, written, gradients, &mut held)?
        } else {
            seen.buffers = self.gather(programs, written, gradients, touched, &mut held)?;
            true
        };
        if is_new {
            moves.python |= self.refuse_overlap(&seen.buffers, programs, written, gradients)?;
            seen.outputs = self.chosen(programs, &seen.buffers).python()?;
        }
        if moves.python || held.iter().any(|(_, memory)| memory.is_by_python()) {
            self.check_unmoved(numpy, &seen.buffers, written, gradients, &held)?;
        }
        let mut work: Vec<Work> = programs.iter().map(|(program, _)| Work::new(program.get())).collect();
        for (at, parameter) in self.parameters.iter().enumerate() {
            let Work { scalars, leaves, kernel } = &mut work[parameter.program];
            let inputs = self.row(&seen.buffers, at);
            let (length, dtype, noise_key) =
                (inputs[0].len(), parameter.dtype.computed_in(), noise_key(seed, step, parameter.position));
            let outputs = seen.outputs.get(at).map_or(&inputs[1..2 + parameter.slots.len()], |outputs| &outputs[..]);
            let mut scalar_set = parameter.set;
            if !parameter.numbers.is_empty() {
                scalar_set = leaves.len();
                let numbers = parameter.numbers.iter().map(Slot::read);
                let given = programs[parameter.program].1[parameter.set].iter().copied();
                scalars.extend(given.chain(numbers).take(kernel.scalar_inputs()));
            }
            leaves.push(Leaf { inputs, outputs, length, dtype, scalar_set, noise_key });
        }
        for (work, (_, sets)) in work.iter_mut().zip(programs) {
            if work.scalars.is_empty() {
                let used = work.kernel.scalar_inputs();
                work.scalars.extend(sets.iter().flat_map(|set| &set[..used.min(set.len())]));
            }
        }
        let (isa, pool) = (threads::isa(), threads::pool());
        let batches: Vec<Batch> = work.iter().map(Work::batch).collect();
        if is_new {
            exec::check(&batches).python()?;
        }
        // SAFETY: what is in the tuples and in `held`, and the slots' own memory, stays until after the call; what is
        // written is writable and overlaps nothing else, and the kernels were checked for these buffers: just now, or
        // in an earlier step, when all of them were the same.
        let run = || unsafe { exec::run_checked(&batches, isa, pool.as_deref()) };
        phase.store(WRITING, Ordering::Relaxed);
        let elements: usize = batches.iter().flat_map(|batch| batch.leaves).map(|leaf| leaf.length).sum();
        let done = if elements < DETACH { run() } else { py.detach(run) };
        let results = done.python()?;
        if touched.is_empty() {
            seen.programs = programs.iter().map(|(program, _)| program.clone().unbind()).collect();
            self.seen = seen;
        }
        let Some(results) = results else { return Ok(false) };
        changed.extend(py, held.iter().filter_map(|(_, memory)| memory.changed()).chain(&self.tensors));
        let mut results: Vec<_> = results.into_iter().map(Vec::into_iter).collect();
        for parameter in &self.parameters {
            parameter
                .numbers
                .iter()
                .zip(&mut results[parameter.program])
                .for_each(|(number, value)| number.write(value));
        }
        drop(held); // which may run Python: after the last that is written where it was found
        Ok(true)
    }
}
