//! Checks of all arrays of a step together: their number, their places in memory, and overlap.

use oxigrad_core::array::buffer::{Buffer, Span};
use oxigrad_core::error::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyTupleMethods};

use super::parameter::{Held, Parameter};
use super::prepared::{Prepared, Programs};
use super::requirements::{moved, unexported};
use crate::arrays::dlpack::first_negated;
use crate::arrays::host_array::HostArray;
use crate::arrays::numpy::Numpy;
use crate::arrays::overlap::shared_among;
use crate::error::to_python;

impl Prepared {
    /// Refuses tensors of PyTorch's whose numbers are minus those in their memory.
    pub(super) fn refuse_negated(&self, written: &Bound<'_, PyTuple>, gradients: &Bound<'_, PyTuple>) -> PyResult<()> {
        for (what, arrays) in [("parameter", written), ("gradient", gradients)] {
            if let Some(at) = first_negated(arrays.iter_borrowed())? {
                return Err(to_python(&unexported(&self.parameters[at].path, what)));
            }
        }
        Ok(())
    }

    /// Checks that there are as many programs, sets of scalars and arrays as the parameters need.
    pub(super) fn check_places(&self, programs: &Programs, written: usize, gradients: usize) -> Result<()> {
        let count = self.parameters.len();
        if written != count || gradients != count {
            return Err(Error::Structure(format!(
                "{written} parameters and {gradients} gradients are given: expected {count}, as were prepared"
            )));
        }
        for Parameter { path, program, set, numbers, .. } in &self.parameters {
            let given = programs.get(*program).and_then(|(program, sets)| Some((program.get(), sets.get(*set)?)));
            let Some((program, set)) = given else {
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
    pub(super) fn check_unmoved(
        &self,
        numpy: &Numpy,
        buffers: &[Buffer],
        written: &Bound<'_, PyTuple>,
        gradients: &Bound<'_, PyTuple>,
        held: &Held,
    ) -> PyResult<()> {
        let py = written.py();
        let is_kept = |object: &Bound<'_, PyAny>, buffer: &Buffer| {
            !numpy.is_plain_array(object) || numpy.spans(object, buffer) || held.iter().any(|(held, _)| held.is(object))
        };
        let arrays = written.iter_borrowed().zip(gradients.iter_borrowed());
        for ((parameter, start), (p, g)) in self.parameters.iter().zip(&self.starts).zip(arrays) {
            let mut slots = parameter.slots.iter().chain(&parameter.numbers);
            if !is_kept(&g, &buffers[*start])
                || !is_kept(&p, &buffers[start + 1])
                || slots.any(|slot| !slot.lies(numpy, py) && !slot.is_by_python())
            {
                return Err(moved(&parameter.path));
            }
        }
        let is_kept = |(object, memory): &(Bound<'_, PyAny>, HostArray)| {
            memory.is_by_python() || memory.is_still_of(numpy, object) || !memory.can_be_seen(object)
        };
        if held.iter().all(is_kept) { Ok(()) } else { Err(moved("an array")) }
    }

    /// `AliasError` if memory that is written is that of another array. Returns whether Python was asked.
    pub(super) fn refuse_overlap(
        &mut self,
        buffers: &[Buffer],
        programs: &Programs,
        written: &Bound<'_, PyTuple>,
        gradients: &Bound<'_, PyTuple>,
    ) -> PyResult<bool> {
        let mut ranges: Vec<(Span, bool)> = buffers.iter().map(|buffer| (buffer.span(), true)).collect();
        for (gradient, parameter) in self.starts.iter().zip(&self.parameters) {
            ranges[*gradient].1 = programs[parameter.program].0.get().writes_gradients();
            if parameter.catches_up {
                // The factors are made for this step, and share no memory.
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
        let py = written.py();
        let place = |at: usize| {
            let at = if at < buffers.len() { at } else { scaled[at - buffers.len()] };
            let owner = self.starts.partition_point(|start| *start <= at) - 1;
            (owner, at - self.starts[owner])
        };
        let view = |at: usize| match place(at) {
            (owner, kind @ (0 | 1)) => {
                let array = if kind == 0 { gradients } else { written }.get_item(owner)?;
                self.parameters[owner].memory(&array, "array")?.probe(py)
            }
            (owner, slot) => {
                self.parameters[owner].slots[slot - 2].numbers.memory[usize::from(at >= buffers.len())].probe(py)
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
        Err(to_python(&Error::Alias(format!(
            "{a} and {b} share memory: expected arrays apart, or the same array from the first step on"
        ))))
    }
}
