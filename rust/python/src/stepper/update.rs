//! The update of all parameters: every check, then one dispatch of the kernels.

use std::sync::atomic::{AtomicBool, Ordering};

use oxigrad_core::exec::{self, Batch, Leaf, StepCount};
use oxigrad_core::simd::noise::noise_key;
use pyo3::types::PyTupleMethods;

use super::parameters::parameter::{Held, Moves};
use super::parameters::prepared::{Prepared, Programs, Seen, StepArrays, Touched};
use super::parameters::requirements::moved;
use super::slices::{ProgramLeaves, Totals};
use crate::arrays::memory::changes::Changed;
use crate::arrays::memory::dlpack::Export;
use crate::arrays::memory::place::{Look, Place};
use crate::prelude::*;
use crate::threads;

/// Below this many elements a step keeps the interpreter lock, whose release would take longer than the step.
const DETACH: usize = 1 << 15;

/// The shared state of a step, which other threads may read and change: its count, and whether slots were exposed.
#[derive(Clone, Copy)]
pub(super) struct Progress<'a> {
    pub(super) count: &'a StepCount,
    pub(super) exposed: &'a AtomicBool,
}

/// The error of a step that was not taken, and whether it is a misfit: arrays that do not fit the prepared parameters.
pub(super) struct Refusal {
    pub(super) error: PyErr,
    pub(super) is_misfit: bool,
}

impl Refusal {
    const fn misfit(error: PyErr) -> Self {
        Self { error, is_misfit: true }
    }
}

impl From<PyErr> for Refusal {
    fn from(error: PyErr) -> Self {
        Self { error, is_misfit: false }
    }
}

/// The memory of all arrays of a step, with what keeps it; `is_new` where it differs from that of the last step.
struct Found<'py> {
    seen: Seen,
    held: Held<'py>,
    holds: Vec<Export>,
    is_new: bool,
}

impl Prepared {
    /// The numbers of the arrays that are not in their places of the last step, if there was one, and the owners of the
    /// memory of the others.
    ///
    /// The negative bit of new and moved tensors is checked, which lets other threads run. All places are checked after that; an array
    /// that differs then was moved in between.
    fn locate<'py>(
        &self,
        seen: Option<&Seen>,
        arrays: StepArrays<'_, 'py>,
        look: &mut Look<'py>,
    ) -> PyResult<(Vec<usize>, Vec<Export>)> {
        let Some(seen) = seen else {
            let all: Vec<usize> = (0..2 * self.parameters.len()).collect();
            self.refuse_negated(all.iter().copied(), arrays, look)?;
            return Ok((all, Vec::new()));
        };
        let fresh = Self::fresh(seen, arrays, look);
        self.refuse_negated(fresh.iter().copied(), arrays, look)?;
        let mut holds = Vec::new();
        let is_detached = self.keeps_memory();
        let unseen = Self::unseen(seen, &fresh, arrays, look, is_detached.then_some(&mut holds))?;
        let elsewhere = unseen.iter().copied().filter(|number| fresh.binary_search(number).is_err());
        if !self.refuse_negated(elsewhere, arrays, look)? {
            return Ok((unseen, holds));
        }
        holds.clear();
        let again = Self::unseen(seen, &fresh, arrays, look, is_detached.then_some(&mut holds))?;
        match again.iter().find(|number| unseen.binary_search(number).is_err()) {
            Some(number) => Err(moved(&self.parameters[number / 2].path)),
            None => Ok((unseen, holds)),
        }
    }

    /// Adds the tensors that the update has written, and slots if they were exposed.
    fn note_changed<'py>(
        &self,
        changed: &mut Changed<'py>,
        programs: &Programs,
        arrays: StepArrays<'_, 'py>,
        look: &mut Look<'py>,
        holds: Vec<Export>,
        with_slots: bool,
    ) {
        let py = arrays.written.py();
        let are_tensors = arrays.written.iter_borrowed().all(|p| look.exporters.is_tensor(&p));
        changed.set_step(are_tensors.then(|| arrays.written.clone()), holds);
        if are_tensors && !with_slots && !programs.iter().any(|(program, _)| program.get().writes_gradients()) {
            return;
        }
        for (parameter, (g, p)) in
            self.parameters.iter().zip(arrays.gradients.iter_borrowed().zip(arrays.written.iter_borrowed()))
        {
            if !are_tensors {
                changed.push(&mut look.exporters, &p);
            }
            if programs[parameter.program].0.get().writes_gradients() {
                changed.push(&mut look.exporters, &g);
            }
            if with_slots {
                parameter.slots.iter().chain(&parameter.numbers).for_each(|slot| slot.add_to(changed, look, py));
            }
        }
    }

    /// Finds and checks the memory of all arrays of a step. An error is a misfit: nothing was written.
    ///
    /// After a failed step, the next one checks everything.
    fn find<'py>(
        &mut self,
        programs: &Programs,
        arrays: StepArrays<'_, 'py>,
        touched: &[Touched<'py>],
        exposed: &AtomicBool,
        look: &mut Look<'py>,
    ) -> PyResult<Found<'py>> {
        let mut held = Vec::new();
        let mut seen = std::mem::take(&mut self.seen);
        let is_known = touched.is_empty() && seen.is_of(programs);
        let (unseen, holds) = self.locate(if is_known { Some(&seen) } else { None }, arrays, look)?;
        let is_exposed = || exposed.load(Ordering::Relaxed);
        let mut moves = if is_exposed() { self.look(look, arrays.written.py())? } else { Moves::default() };
        let is_new = if is_known && !moves.moved {
            self.renew(&unseen, &mut seen, programs, arrays, look, &mut held)?
        } else {
            seen = self.gather(programs, arrays, touched, look, &mut held)?;
            true
        };
        if is_new {
            moves.python |= self.refuse_overlap(&seen.buffers, programs, arrays)?;
        }
        if moves.python || held.iter().any(|(_, memory)| memory.is_by_python()) {
            self.check_unmoved(&seen, arrays, look, &held, is_exposed())?;
        }
        Ok(Found { seen, held, holds, is_new })
    }

    /// The leaves of each program, in memory that was `seen`.
    fn work<'a>(&'a self, programs: &'a Programs, seen: &'a Seen, seed: u64, step: u64) -> Vec<ProgramLeaves<'a>> {
        let mut work: Vec<_> = programs.iter().map(|(program, _)| ProgramLeaves::new(program.get())).collect();
        for (at, parameter) in self.parameters.iter().enumerate() {
            let inputs = self.row(&seen.buffers, at);
            let leaf = Leaf {
                inputs,
                outputs: seen.outputs.get(at).map_or(&inputs[1..2 + parameter.slots.len()], |outputs| &outputs[..]),
                length: inputs[0].len(),
                dtype: parameter.dtype.computed_in(),
                scalar_set: 0,
                noise_key: noise_key(seed, step, parameter.position),
                first: parameter.first,
            };
            work[parameter.program].push(parameter, &programs[parameter.program].1, leaf);
        }
        for (work, (_, sets)) in work.iter_mut().zip(programs) {
            work.complete(sets);
        }
        work
    }

    /// The partial sums of the phase after those that `totals` have, for each parameter the bytes of float64.
    pub(super) fn measure<'py>(
        &mut self,
        py: Python<'py>,
        programs: &Programs,
        (seed, step): (u64, u64),
        arrays: StepArrays<'_, 'py>,
        exposed: &AtomicBool,
        totals: Option<&Totals>,
    ) -> Result<Vec<Vec<u8>>, Refusal> {
        self.check_places(programs, arrays.written.len(), arrays.gradients.len()).python()?;
        let mut look = Look::new(py);
        let Found { mut seen, held, holds, is_new } =
            self.find(programs, arrays, &[], exposed, &mut look).map_err(Refusal::misfit)?;
        if is_new {
            seen.outputs = self.chosen(programs, &seen.buffers).python()?;
        }
        let work = self.work(programs, &seen, seed, step);
        let batches: Vec<Batch> = work.iter().map(ProgramLeaves::batch).collect();
        if is_new {
            exec::check(&batches).python()?;
        }
        let measured = totals.map(|totals| totals.measured_of(self, programs, batches.len())).transpose()?;
        let (measured, isa, pool) = (measured.unwrap_or_default(), threads::isa(), threads::pool());
        let elements: usize = batches.iter().flat_map(|batch| batch.leaves).map(|leaf| leaf.length).sum();
        let has_tensors = seen.places.iter().any(Place::is_of_tensor);
        // SAFETY: as for `update`.
        let run = || unsafe { exec::measure(&batches, &measured, isa, pool.as_deref()) };
        let is_locked = elements < DETACH || (has_tensors && !self.keeps_memory());
        let partials = if is_locked { run() } else { py.detach(run) }.python()?;
        let bytes =
            |(batch, leaf): (usize, usize)| partials[batch][leaf].iter().flat_map(|x| x.to_le_bytes()).collect();
        let partials = self.places(batches.len()).map(bytes).collect();
        seen.programs = programs.iter().map(|(program, _)| program.clone().unbind()).collect();
        self.seen = seen;
        drop((held, holds));
        Ok(partials)
    }

    /// The place of each parameter: the number of its batch, and of its leaf there.
    pub(super) fn places(&self, batches: usize) -> impl Iterator<Item = (usize, usize)> {
        let mut counts = vec![0; batches];
        self.parameters.iter().map(move |parameter| {
            counts[parameter.program] += 1;
            (parameter.program, counts[parameter.program] - 1)
        })
    }

    /// Runs the update, after the other launches of the step; false where a guard stopped it.
    #[expect(clippy::too_many_arguments, reason = "as `Stepper::step`")]
    pub(super) fn update<'py>(
        &mut self,
        py: Python<'py>,
        programs: &Programs,
        seed: u64,
        step: u64,
        arrays: StepArrays<'_, 'py>,
        touched: &[Touched<'py>],
        totals: Option<&Totals>,
        progress: Progress<'_>,
        changed: &mut Changed<'py>,
        launch: impl FnOnce(&mut Changed<'py>) -> PyResult<()>,
    ) -> Result<bool, Refusal> {
        self.check_places(programs, arrays.written.len(), arrays.gradients.len()).python()?;
        let mut look = Look::new(py);
        let found = self.find(programs, arrays, touched, progress.exposed, &mut look).map_err(Refusal::misfit)?;
        let Found { mut seen, held, holds, is_new } = found;
        if is_new {
            seen.outputs = self.chosen(programs, &seen.buffers).python()?;
        }
        let is_exposed = || progress.exposed.load(Ordering::Relaxed);
        let work = self.work(programs, &seen, seed, step);
        let (isa, pool) = (threads::isa(), threads::pool());
        let batches: Vec<Batch> = work.iter().map(ProgramLeaves::batch).collect();
        if is_new {
            exec::check(&batches).python()?;
        }
        let measured = totals.map(|totals| totals.measured_of(self, programs, batches.len())).transpose()?;
        // SAFETY: the tuples, `held`, `holds` and the slots keep the memory until after the call (slots that were not
        // exposed are where `prepare` found them: nothing else can change them); outputs are writable and overlap
        // nothing else, and the kernels were checked for these buffers: just now, or in an earlier step with the same
        // buffers.
        let run = || unsafe {
            match &measured {
                None => exec::run_checked(&batches, isa, pool.as_deref()),
                Some(measured) => exec::apply(&batches, measured, isa, pool.as_deref()),
            }
        };
        launch(changed)?;
        progress.count.begin_writing();
        let elements: usize = batches.iter().flat_map(|batch| batch.leaves).map(|leaf| leaf.length).sum();
        let has_tensors = seen.places.iter().any(Place::is_of_tensor);
        let is_locked = elements < DETACH || (has_tensors && !self.keeps_memory());
        let done = if is_locked { run() } else { py.detach(run) };
        let results = done.python()?;
        if touched.is_empty() {
            seen.programs = programs.iter().map(|(program, _)| program.clone().unbind()).collect();
            self.seen = seen;
        }
        let Some(results) = results else { return Ok(false) };
        self.note_changed(changed, programs, arrays, &mut look, holds, is_exposed());
        let mut results: Vec<_> = results.into_iter().map(Vec::into_iter).collect();
        for parameter in &self.parameters {
            parameter
                .numbers
                .iter()
                .zip(&mut results[parameter.program])
                .for_each(|(number, value)| number.write(value));
        }
        drop(held); // may run Python: after the last write to places found above
        Ok(true)
    }
}
