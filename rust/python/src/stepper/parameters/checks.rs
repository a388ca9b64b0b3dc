//! Checks of all arrays of a step: their number, their places in memory, and overlap.

use oxigrad_core::array::buffer::{Buffer, Span};
use oxigrad_core::error::{Error, Result};
use pyo3::types::{PyTuple, PyTupleMethods};

use super::parameter::{Held, Parameter};
use super::prepared::{Prepared, Programs, Seen, StepArrays, is_gradient};
use super::requirements::{moved, unexported};
use crate::arrays::memory::overlap::shared_among;
use crate::arrays::memory::place::Look;
use crate::prelude::*;

impl Prepared {
    /// Refuses parameters that no step could write. Those in the places of the last step need no check.
    pub fn check_written(&self, written: &Bound<'_, PyTuple>) -> PyResult<()> {
        let (mut look, mut held) = (Look::new(written.py()), Held::new());
        for (at, (array, parameter)) in written.iter().zip(&self.parameters).enumerate() {
            let place = self.seen.places.get(2 * at);
            if place.is_some_and(|place| place.is_of(&mut look, &array) && place.has(&mut look, &array)) {
                continue;
            }
            self.refuse_negated([2 * at].into_iter(), StepArrays { written, gradients: written }, &mut look)?;
            parameter.own(&array, &mut look, &mut held, false)?;
        }
        Ok(())
    }

    /// Refuses PyTorch tensors whose negative bit is set. Returns whether any tensor was checked, which lets other threads run.
    pub fn refuse_negated<'py>(
        &self,
        numbers: impl Iterator<Item = usize>,
        arrays: StepArrays<'_, 'py>,
        look: &mut Look<'py>,
    ) -> PyResult<bool> {
        let mut is_asked = false;
        for number in numbers {
            let array = arrays.array(number)?;
            let Some(torch) = look.exporters.of(&array)?.torch else { continue };
            is_asked = true;
            if torch.is_negated(&array)? {
                let what = if is_gradient(number) { "gradient" } else { "parameter" };
                return Err(unexported(&self.parameters[number / 2].path, what));
            }
        }
        Ok(is_asked)
    }

    /// Checks that there are as many programs, sets of scalars and arrays as the parameters need.
    pub fn check_places(&self, programs: &Programs, written: usize, gradients: usize) -> Result<()> {
        let count = self.parameters.len();
        if written != count || gradients != count {
            return Err(Error::Structure(format!(
                "found {written} parameters and {gradients} gradients: expected {count}, the number that was prepared"
            )));
        }
        for Parameter { path, program, set, numbers, .. } in &self.parameters {
            let entry = programs.get(*program).and_then(|(program, sets)| Some((program.get(), sets.get(*set)?)));
            let Some((program, set)) = entry else {
                return Err(Error::Structure(format!("{path}: the program, or its set of scalars, is missing")));
            };
            let (found, expected) = (set.len() + numbers.len(), program.kernel.scalar_inputs());
            if found < expected {
                return Err(Error::Shape(format!("{path}: the program has {found} scalars, expected {expected}")));
            }
        }
        Ok(())
    }

    /// Checks that no array was moved by Python code that ran since it was found.
    pub fn check_unmoved<'py>(
        &self,
        seen: &Seen,
        arrays: StepArrays<'_, 'py>,
        look: &mut Look<'py>,
        held: &Held<'py>,
        with_slots: bool,
    ) -> PyResult<()> {
        let py = arrays.written.py();
        let mut is_kept = |object: &Object<'py>, view| look.is_at(object, view) || !look.can_tell(object);
        for (number, (array, place)) in arrays.in_turn().zip(&seen.places).enumerate() {
            if !is_kept(&array, &place.view) {
                return Err(moved(&self.parameters[number / 2].path));
            }
        }
        if !held.iter().all(|(object, memory)| is_kept(object, &memory.view)) {
            return Err(moved("an array"));
        }
        for parameter in self.parameters.iter().filter(|_| with_slots) {
            let mut slots = parameter.slots.iter().chain(&parameter.numbers);
            if slots.any(|slot| !slot.is_there(look, py) && slot.can_tell(look, py)) {
                return Err(moved(&parameter.path));
            }
        }
        Ok(())
    }

    /// `AliasError` if memory that is written is also that of another array. Returns whether Python was called.
    pub fn refuse_overlap(
        &mut self,
        buffers: &[Buffer],
        programs: &Programs,
        arrays: StepArrays<'_, '_>,
    ) -> PyResult<bool> {
        let mut ranges: Vec<(Span, bool)> = buffers.iter().map(|buffer| (buffer.span(), true)).collect();
        for (gradient, parameter) in self.starts.iter().zip(&self.parameters) {
            ranges[*gradient].1 = programs[parameter.program].0.get().writes_gradients();
            if parameter.catches_up {
                // The factors are new arrays of this step, which share no memory.
                let count = parameter.slots.len();
                ranges[gradient + 2 + count..][..count].fill((Span { start: 0, end: 0 }, false));
            }
        }
        // The scales of codes come after all buffers.
        let scaled: Vec<usize> = (0..buffers.len()).filter(|at| buffers[*at].is_quantized()).collect();
        ranges.extend(scaled.iter().filter_map(|at| buffers[*at].scales()).map(|scales| (scales.span(), true)));
        if self.sweep.first_clash(&ranges).is_none() {
            return Ok(false);
        }
        let py = arrays.written.py();
        let place = |at: usize| {
            let at = if at < buffers.len() { at } else { scaled[at - buffers.len()] };
            let owner = self.starts.partition_point(|start| *start <= at) - 1;
            (owner, at - self.starts[owner])
        };
        let view = |at: usize| match place(at) {
            (owner, kind @ (0 | 1)) => {
                let array = arrays.array(2 * owner + usize::from(kind == 0))?;
                self.parameters[owner].memory(&array, "array")?.probe(py)
            }
            (owner, slot) => {
                self.parameters[owner].slots[slot - 2].numbers.parts[usize::from(at >= buffers.len())].probe(py)
            }
        };
        let name = |at: usize| {
            let (owner, kind) = place(at);
            let path = &self.parameters[owner].path;
            match kind {
                0 => format!("the gradient of {path}"),
                1 => path.clone(),
                _ => format!("a slot of {path}"),
            }
        };
        let Some((a, b)) = shared_among(py, &ranges, view)? else { return Ok(true) };
        let (a, b) = (name(a), name(b));
        Err(AliasError::new_err(format!(
            "{a} and {b} share memory: expected separate arrays, or the same array from the first step on"
        )))
    }
}
