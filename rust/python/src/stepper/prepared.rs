//! The prepared parameters with their slots, and the buffers that the last step used.

use oxigrad_core::array::buffer::Buffer;
use oxigrad_core::array::overlap::Sweep;
use oxigrad_core::error::{Error, Result};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyTupleMethods};

use super::parameter::{Given, Held, Moves, Parameter};
use super::symbols::Program;
use crate::arrays::numpy::Numpy;
use crate::arrays::seat::Seat;
use crate::error::{IntoPython, to_python};

/// The rows of a parameter that a step touches: its number, the indices (int64, growing) of the rows whose gradients
/// are given, or all rows; and a factor for each slot, broadcast to the shape of the gradient.
pub(super) type Touched<'py> = (usize, Option<Bound<'py, PyAny>>, Vec<Bound<'py, PyAny>>);

/// The state of a step that is kept from one to the next.
#[derive(Default)]
pub(super) struct Prepared {
    pub(super) parameters: Vec<Parameter>,
    /// The start of each parameter's buffers (gradient, parameter, slots, factors of slots) in the list of all; and the
    /// end of the last.
    pub(super) starts: Vec<usize>,
    /// The slots that are tensors of PyTorch's.
    pub(super) tensors: Vec<Py<PyAny>>,
    pub(super) sweep: Sweep,
    pub(super) seen: Seen,
    /// The places of the slots of all parameters in memory.
    pub(super) seats: Vec<(Py<PyAny>, Seat)>,
}

/// The programs and buffers that the last step checked: where none has changed, none is checked again.
#[derive(Default)]
pub(super) struct Seen {
    /// The programs that ran; empty if nothing is remembered.
    pub(super) programs: Vec<Py<Program>>,
    /// The buffers of all parameters.
    pub(super) buffers: Vec<Buffer>,
    /// The buffers that are written: see `Prepared::chosen`.
    pub(super) outputs: Vec<Vec<Buffer>>,
}

impl Seen {
    pub(super) fn is_of(&self, programs: &Programs) -> bool {
        self.programs.len() == programs.len() && self.programs.iter().zip(programs).all(|(a, (b, _))| b.is(a))
    }
}

/// The programs of a step, each with its sets of scalars.
pub(super) type Programs<'py> = [(Bound<'py, Program>, Vec<Vec<f64>>)];

/// The places of the slots of all parameters in memory.
pub(super) fn seats(parameters: &[Parameter], numpy: &Numpy, py: Python<'_>) -> Vec<(Py<PyAny>, Seat)> {
    let mut found = Vec::new();
    for slot in parameters.iter().flat_map(|parameter| parameter.slots.iter().chain(&parameter.numbers)) {
        let stated = slot.stated.bind(py);
        let parts = stated.cast::<PyTuple>().map_or_else(|_| vec![stated.clone()], |parts| parts.iter().collect());
        let parts = parts.into_iter().zip(&slot.numbers.memory);
        found.extend(parts.map(|(part, memory)| (part.clone().unbind(), Seat::new(numpy, &part, memory))));
    }
    found
}

/// The slots that are tensors of PyTorch's.
pub(super) fn tensors(parameters: &[Parameter], py: Python<'_>) -> Vec<Py<PyAny>> {
    let slots = parameters.iter().flat_map(|parameter| parameter.slots.iter().chain(&parameter.numbers));
    slots.flat_map(|slot| slot.numbers.changed()).map(|tensor| tensor.clone_ref(py)).collect()
}

pub(super) fn known_numpy(py: Python<'_>) -> PyResult<&Numpy> {
    Numpy::get(py).ok_or_else(|| PyImportError::new_err("NumPy cannot be used"))
}

impl Prepared {
    /// Finds the slots that have moved since the last step.
    pub(super) fn look(&mut self, numpy: &Numpy, py: Python<'_>) -> PyResult<Moves> {
        let mut moves = Moves::default();
        if self.seats.iter().all(|(object, seat)| seat.lies(numpy, object.bind(py))) {
            return Ok(moves);
        }
        let looked = self.parameters.iter_mut().try_for_each(|parameter| parameter.look(numpy, py, &mut moves));
        if moves.moved {
            // Reset even if another slot makes the step fail: the next step would not see the move.
            self.seen = Seen::default();
            self.seats = seats(&self.parameters, numpy, py);
            self.tensors = tensors(&self.parameters, py);
        }
        looked.map(|()| moves)
    }

    /// Replaces the buffers of gradients and parameters that have moved since the last step. Returns whether there were
    /// any.
    pub(super) fn renew<'py>(
        &self,
        buffers: &mut [Buffer],
        programs: &Programs,
        written: &Bound<'py, PyTuple>,
        gradients: &Bound<'py, PyTuple>,
        held: &mut Held<'py>,
    ) -> PyResult<bool> {
        let Some(numpy) = Numpy::get(written.py()) else { return Ok(true) };
        let mut is_new = false;
        let arrays = written.iter_borrowed().zip(gradients.iter_borrowed());
        for ((parameter, start), (p, g)) in self.parameters.iter().zip(&self.starts).zip(arrays) {
            let known = &mut buffers[*start..start + 2];
            let shape = &parameter.shape;
            if numpy.lies(&p, shape, &known[1]) && numpy.lies(&g, shape, &known[0]) {
                continue;
            }
            let writes_gradient = programs[parameter.program].0.get().writes_gradients();
            let found = parameter.given(&Given { p: &p, g: &g, shape, writes_gradient }, held)?;
            if known != found {
                known.clone_from_slice(&found);
                is_new = true;
            }
        }
        Ok(is_new)
    }

    /// The buffers of all parameters: see `starts`.
    pub(super) fn gather<'py>(
        &self,
        programs: &Programs,
        written: &Bound<'py, PyTuple>,
        gradients: &Bound<'py, PyTuple>,
        touched: &[Touched<'py>],
        held: &mut Held<'py>,
    ) -> PyResult<Vec<Buffer>> {
        let mut buffers = Vec::with_capacity(self.starts.last().copied().unwrap_or_default());
        let mut touched = touched.iter().peekable();
        let arrays = written.iter_borrowed().zip(gradients.iter_borrowed());
        for (at, (parameter, (p, g))) in self.parameters.iter().zip(arrays).enumerate() {
            let writes_gradient = programs[parameter.program].0.get().writes_gradients();
            let given = Given { p: &p, g: &g, shape: &parameter.shape, writes_gradient };
            let Some((_, indices, factors)) = touched.next_if(|(number, ..)| *number == at) else {
                parameter.gather(&given, &mut buffers, held)?;
                continue;
            };
            let rows = indices.as_ref().map(|indices| parameter.rows(indices)).transpose()?;
            let mut shape = parameter.shape.clone();
            if let (Some(rows), Some(extent)) = (&rows, shape.first_mut()) {
                *extent = rows.count();
            }
            let start = buffers.len();
            parameter.gather(&Given { shape: &shape, ..given }, &mut buffers, held)?;
            if let Some(rows) = rows {
                for buffer in &mut buffers[start + 1..] {
                    let chosen = buffer.clone().of_rows(rows.clone());
                    let named = |error| Error::Shape(format!("{}: {error}", parameter.path));
                    *buffer = chosen.map_err(named).python()?;
                }
            }
            for (factor, (memory, buffer)) in factors.iter().zip(parameter.factors(factors, &shape)?) {
                held.push((factor.clone(), memory));
                buffers.push(buffer);
            }
        }
        if touched.next().is_some() || Some(&buffers.len()) != self.starts.last() {
            return Err(to_python(&Error::Structure(
                "internal error: touched rows do not match the prepared parameters".into(),
            )));
        }
        Ok(buffers)
    }

    /// The buffers of a parameter: gradient, parameter, slots, factors of slots.
    pub(super) fn row<'a>(&self, buffers: &'a [Buffer], at: usize) -> &'a [Buffer] {
        &buffers[self.starts[at]..self.starts[at + 1]]
    }

    /// The buffers that are written, by parameter; empty where every parameter and all slots are.
    pub(super) fn chosen(&self, programs: &Programs, buffers: &[Buffer]) -> Result<Vec<Vec<Buffer>>> {
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
            let found: Option<_> = outputs.map(|output| row.get(*output).cloned()).collect();
            found.ok_or_else(|| {
                Error::Structure(format!("{}: the program writes a slot that was not prepared", parameter.path))
            })
        };
        self.parameters.iter().enumerate().map(written).collect()
    }
}
