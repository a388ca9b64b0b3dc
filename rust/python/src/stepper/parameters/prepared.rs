//! The prepared parameters with their slots, and the buffers that the last step used.

use oxigrad_core::array::buffer::Buffer;
use oxigrad_core::array::overlap::Sweep;
use oxigrad_core::error::{Error, Result};
use pyo3::types::{PyTuple, PyTupleMethods};

use super::parameter::{Held, Moves, Parameter};
use crate::arrays::memory::dlpack::Export;
use crate::arrays::memory::place::{Look, Place};
use crate::prelude::*;
use crate::stepper::symbols::Program;

/// The rows of a parameter that a step touches: its number, the indices (int64, increasing) of the rows that have
/// gradients, or all rows; and a factor for each slot, broadcast to the shape of the gradient.
pub type Touched<'py> = (usize, Option<Object<'py>>, Vec<Object<'py>>);

/// The state of a step that is kept from one to the next.
#[derive(Default)]
pub struct Prepared {
    pub parameters: Vec<Parameter>,
    /// The number of elements of all parameters.
    pub elements: usize,
    /// The start of each parameter's buffers (gradient, parameter, slots, factors of slots) in the list of all; and the
    /// end of the last.
    pub starts: Vec<usize>,
    pub sweep: Sweep,
    pub seen: Seen,
}

/// The programs and buffers that the last step checked. They are not checked again while none changes.
#[derive(Default)]
pub struct Seen {
    /// The programs that ran; empty if nothing is remembered.
    pub programs: Vec<Py<Program>>,
    /// The buffers of all parameters.
    pub buffers: Vec<Buffer>,
    /// The places of parameters and gradients in turn.
    pub places: Vec<Place>,
    /// The buffers that are written: see `Prepared::chosen`.
    pub outputs: Vec<Vec<Buffer>>,
}

impl Seen {
    pub fn is_of(&self, programs: &Programs) -> bool {
        self.programs.len() == programs.len() && self.programs.iter().zip(programs).all(|(a, (b, _))| b.is(a))
    }
}

/// The programs of a step, each with its sets of scalars.
pub type Programs<'py> = [(Bound<'py, Program>, Vec<Vec<f64>>)];

/// The array arguments of a step: parameters and gradients, in the order in which they were prepared.
#[derive(Clone, Copy)]
pub struct StepArrays<'a, 'py> {
    pub written: &'a Bound<'py, PyTuple>,
    pub gradients: &'a Bound<'py, PyTuple>,
}

impl<'py> StepArrays<'_, 'py> {
    /// Parameters and gradients in turn: the number of a parameter's array is twice its own, that of its gradient one
    /// more.
    pub fn in_turn(self) -> impl Iterator<Item = Object<'py>> {
        self.written.iter_borrowed().zip(self.gradients.iter_borrowed()).flat_map(|(p, g)| [p.to_owned(), g.to_owned()])
    }

    /// The array of this number.
    pub fn array(self, number: usize) -> PyResult<Object<'py>> {
        if is_gradient(number) { self.gradients } else { self.written }.get_item(number / 2)
    }
}

/// Whether the array of this number is a gradient.
pub const fn is_gradient(number: usize) -> bool {
    number % 2 == 1
}

/// Below this many elements a step over tensors keeps the interpreter lock, for about as long as Python lets a thread run
/// (`sys.getswitchinterval`). Above, where another thread may free their memory, it is exported.
const MOST_LOCKED: usize = 1 << 21;

impl Prepared {
    /// Whether steps release the interpreter lock, so that they keep the memory of tensors.
    pub fn keeps_memory(&self) -> bool {
        self.elements >= MOST_LOCKED
    }

    /// Finds the slots that have moved since the last step.
    pub fn look<'py>(&mut self, look: &mut Look<'py>, py: Python<'py>) -> PyResult<Moves> {
        let mut moves = Moves::default();
        let looked = self.parameters.iter_mut().try_for_each(|parameter| parameter.look(look, py, &mut moves));
        looked.map(|()| moves)
    }

    /// The numbers of the arrays that may be other objects than in the last step, where that matters. It runs no
    /// Python.
    pub fn fresh<'py>(seen: &Seen, arrays: StepArrays<'_, 'py>, look: &mut Look<'py>) -> Vec<usize> {
        let mut fresh = Vec::new();
        let pairs = arrays.written.iter_borrowed().zip(arrays.gradients.iter_borrowed());
        for (number, ((p, g), places)) in (0..).step_by(2).zip(pairs.zip(seen.places.chunks_exact(2))) {
            if !places[0].is_of(look, &p) {
                fresh.push(number);
            }
            if !places[1].is_of(look, &g) {
                fresh.push(number + 1);
            }
        }
        fresh
    }

    /// The numbers of the arrays that are not in their places of the last step, and of `fresh` ones; keeps the memory of
    /// parameters that are tensors, where there is a list for it. It runs no Python.
    pub fn unseen<'py>(
        seen: &Seen,
        fresh: &[usize],
        arrays: StepArrays<'_, 'py>,
        look: &mut Look<'py>,
        mut holds: Option<&mut Vec<Export>>,
    ) -> PyResult<Vec<usize>> {
        let (mut unseen, mut fresh) = (Vec::new(), fresh.iter().copied().peekable());
        let mut is_fresh = |number, place: &Place, array: &Object<'py>| {
            fresh.next_if_eq(&number).is_some() && !place.is_unsure_of(array)
        };
        let pairs = arrays.written.iter_borrowed().zip(arrays.gradients.iter_borrowed());
        for (number, ((p, g), places)) in (0..).step_by(2).zip(pairs.zip(seen.places.chunks_exact(2))) {
            let is_there = !is_fresh(number, &places[0], &p)
                && match &mut holds {
                    Some(holds) => places[0].holds(look, &p, holds)?,
                    None => places[0].has(look, &p),
                };
            if !is_there {
                unseen.push(number);
            }
            if is_fresh(number + 1, &places[1], &g) || !places[1].has(look, &g) {
                unseen.push(number + 1);
            }
        }
        Ok(unseen)
    }

    /// Replaces the buffers and places of arrays that have moved since the last step. Returns whether any buffer
    /// differs.
    pub fn renew<'py>(
        &self,
        unseen: &[usize],
        seen: &mut Seen,
        programs: &Programs,
        arrays: StepArrays<'_, 'py>,
        look: &mut Look<'py>,
        held: &mut Held<'py>,
    ) -> PyResult<bool> {
        let (mut is_new, keep) = (false, self.keeps_memory());
        for number in unseen {
            let (parameter, start) = (&self.parameters[number / 2], self.starts[number / 2]);
            let array = arrays.array(*number)?;
            let (place, buffer) = if is_gradient(*number) {
                let is_written = programs[parameter.program].0.get().writes_gradients();
                parameter.gradient(&array, &parameter.shape, is_written, look, held, keep)?
            } else {
                parameter.own(&array, look, held, keep)?
            };
            seen.places[*number] = place;
            let before = &mut seen.buffers[start + usize::from(!is_gradient(*number))];
            if *before != buffer {
                *before = buffer;
                is_new = true;
            }
        }
        Ok(is_new)
    }

    /// The places and buffers of all arrays: see `starts`.
    pub fn gather<'py>(
        &self,
        programs: &Programs,
        arrays: StepArrays<'_, 'py>,
        touched: &[Touched<'py>],
        look: &mut Look<'py>,
        held: &mut Held<'py>,
    ) -> PyResult<Seen> {
        let mut seen = Seen { buffers: Vec::with_capacity(self.starts[self.parameters.len()]), ..Seen::default() };
        let mut touched = touched.iter().peekable();
        let (mut arrays, keep) = (arrays.in_turn(), self.keeps_memory());
        for (at, parameter) in self.parameters.iter().enumerate() {
            let (Some(p), Some(g)) = (arrays.next(), arrays.next()) else { break };
            let of_rows = touched.next_if(|(number, ..)| *number == at);
            let indices = of_rows.and_then(|(_, indices, _)| indices.as_ref());
            let rows = indices.map(|indices| parameter.rows(indices)).transpose()?;
            let mut shape = parameter.shape.clone();
            if let (Some(rows), Some(extent)) = (&rows, shape.first_mut()) {
                *extent = rows.count();
            }
            let is_written = programs[parameter.program].0.get().writes_gradients();
            let (place, own) = parameter.own(&p, look, held, keep)?;
            let (place_of_gradient, gradient) = parameter.gradient(&g, &shape, is_written, look, held, keep)?;
            seen.places.extend([place, place_of_gradient]);
            let start = seen.buffers.len();
            seen.buffers.extend([gradient, own]);
            seen.buffers.extend(parameter.slot_buffers());
            if let Some(rows) = rows {
                for buffer in &mut seen.buffers[start + 1..] {
                    let chosen = buffer.clone().of_rows(rows.clone());
                    *buffer = chosen.map_err(|error| error.at(&parameter.path)).python()?;
                }
            }
            let Some((_, _, factors)) = of_rows else { continue };
            for (factor, (memory, buffer)) in factors.iter().zip(parameter.factors(factors, &shape)?) {
                held.push((factor.clone(), memory));
                seen.buffers.push(buffer);
            }
        }
        if touched.next().is_some() || Some(&seen.buffers.len()) != self.starts.last() {
            return Err(StructureError::new_err("internal error: touched rows do not match the prepared parameters"));
        }
        Ok(seen)
    }

    /// The buffers of a parameter: gradient, parameter, slots, factors of slots.
    pub fn row<'a>(&self, buffers: &'a [Buffer], at: usize) -> &'a [Buffer] {
        &buffers[self.starts[at]..self.starts[at + 1]]
    }

    /// The buffers that are written, by parameter; empty where every parameter and all slots are.
    pub fn chosen(&self, programs: &Programs, buffers: &[Buffer]) -> Result<Vec<Vec<Buffer>>> {
        let writes_all = |parameter: &Parameter| {
            let program = programs[parameter.program].0.get();
            program.written.iter().copied().eq(1..2 + parameter.slots.len())
        };
        if self.parameters.iter().all(writes_all) {
            return Ok(Vec::new());
        }
        let written = |(at, parameter): (usize, &Parameter)| {
            let row = &self.row(buffers, at)[..2 + parameter.slots.len()];
            let outputs = programs[parameter.program].0.get().written.iter();
            let results: Option<_> = outputs.map(|output| row.get(*output).cloned()).collect();
            results.ok_or_else(|| {
                Error::Structure(format!("{}: the program writes a slot that was not prepared", parameter.path))
            })
        };
        self.parameters.iter().enumerate().map(written).collect()
    }
}
