//! A parameter in host memory: its requirements, and its buffers in a step.

use std::sync::Arc;

use oxigrad_core::array::buffer::{Buffer, Dtype, Rounding, elements};
use oxigrad_core::array::rows::Rows;
use pyo3::buffer::PyBuffer;

use super::requirements::{tuple, unexported, whole, written};
use super::slot::Slot;
use crate::arrays::batch_level::BatchLevel;
use crate::arrays::memory::host_array::HostArray;
use crate::arrays::memory::numpy::{Numpy, refuse_meaning};
use crate::arrays::memory::place::{Look, Place};
use crate::prelude::*;
use crate::stepper::stated::HostParameter;

/// A parameter that the core updates: its requirements, and its slots, whose memory it keeps.
pub struct Parameter {
    pub path: String,
    pub position: u64,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub slots: Vec<Slot>,
    /// The slots that are one number each.
    pub numbers: Vec<Slot>,
    /// Whether the program takes a factor for each slot, after the slots.
    pub catches_up: bool,
    /// Whether halves are rounded stochastically.
    pub stochastic: bool,
    /// The indices of its program, and of its set of scalars.
    pub program: usize,
    pub set: usize,
    /// The index of its first element in the whole parameter, and the number of elements of that.
    pub first: usize,
    pub whole: usize,
}

pub fn prepare(py: Python<'_>, stated: &HostParameter) -> PyResult<Parameter> {
    let path = &stated.path;
    let array = stated.array.bind(py);
    let parameter = HostArray::of(array)?.ok_or_else(|| unexported(path, "parameter"))?;
    let dtype = parameter.floating().map_err(|error| error.at(format_args!("{path}: parameter"))).python()?.dtype();
    let slots = stated.slots.iter().map(|(name, slot)| Slot::new(path, name.clone(), slot.bind(py)));
    let numbers = stated.numbers.iter().map(|(name, slot)| Slot::number(path, name.clone(), slot.bind(py)));
    Ok(Parameter {
        path: path.clone(),
        position: stated.position,
        dtype,
        shape: parameter.shape().to_vec(),
        slots: slots.collect::<PyResult<_>>()?,
        numbers: numbers.collect::<PyResult<_>>()?,
        catches_up: stated.catches_up,
        stochastic: stated.stochastic,
        program: stated.program,
        set: stated.scalar_set,
        first: stated.first,
        whole: stated.whole.unwrap_or_else(|| parameter.shape().iter().product()),
    })
}

/// An array in a step: its place, and its buffer.
pub type Located = (Place, Buffer);

impl Parameter {
    /// The rounding of writes to the parameter (number 0) and to its slots (from 1 on).
    pub fn rounding(&self, number: u32) -> Rounding {
        if self.stochastic { Rounding::Stochastic(number) } else { Rounding::Nearest }
    }

    /// The gradient, of this shape, if it meets the requirements; adds the owner of its memory where another thread may free
    /// it, as to `keep` says. It may be written, too.
    pub fn gradient<'py>(
        &self,
        g: &Object<'py>,
        shape: &[usize],
        is_written: bool,
        look: &mut Look<'py>,
        held: &mut Held<'py>,
        keep: bool,
    ) -> PyResult<Located> {
        if let Some(located) = self.plain(g, shape, is_written, look, keep) {
            return Ok(located);
        }
        let (array, buffer) = self.checked_gradient(g, shape, is_written)?;
        let place = Place::new(look, g, array.view.clone());
        held.push((g.clone(), array));
        Ok((place, buffer))
    }

    /// The parameter, if it meets the requirements; adds the owner of its memory, as for a gradient.
    pub fn own<'py>(
        &self,
        p: &Object<'py>,
        look: &mut Look<'py>,
        held: &mut Held<'py>,
        keep: bool,
    ) -> PyResult<Located> {
        let (place, buffer) = if let Some(located) = self.plain(p, &self.shape, true, look, keep) {
            located
        } else {
            let (array, buffer) = self.checked_own(p)?;
            let place = Place::new(look, p, array.view.clone());
            held.push((p.clone(), array));
            (place, buffer)
        };
        Ok((place, buffer.with_rounding(self.rounding(0))))
    }

    /// A NumPy array whose fields meet the requirements, or a tensor whose memory need not be kept.
    fn plain<'py>(
        &self,
        object: &Object<'py>,
        shape: &[usize],
        is_written: bool,
        look: &mut Look<'py>,
        keep: bool,
    ) -> Option<Located> {
        if let Some((view, buffer)) = Numpy::get(object.py()).contiguous(object, shape, self.dtype) {
            return (buffer.is_writable() || !is_written).then(|| (Place::of_numpy(view), buffer));
        }
        let view = look.exporters.contiguous(object, shape, self.dtype).filter(|_| !keep)?;
        let buffer = Buffer::contiguous(view.pointer, elements(shape)?, self.dtype, true).ok()?;
        Some((Place::new(look, object, view), buffer))
    }

    /// Finds the slots that have moved.
    pub fn look<'py>(&mut self, look: &mut Look<'py>, py: Python<'py>, moves: &mut Moves) -> PyResult<()> {
        for slot in self.slots.iter_mut().chain(&mut self.numbers) {
            if !slot.is_there(look, py) {
                moves.moved |= slot.find(py, &self.path)?;
                moves.python = true;
            }
        }
        Ok(())
    }

    /// The buffers of the slots.
    pub fn slot_buffers(&self) -> impl Iterator<Item = Buffer> {
        let slots = self.slots.iter().zip(1..);
        slots.map(|(slot, number)| slot.numbers.buffer.clone().with_rounding(self.rounding(number)))
    }

    fn checked_own(&self, p: &Object<'_>) -> PyResult<(HostArray, Buffer)> {
        let path = &self.path;
        let memory = self.memory(p, "parameter")?;
        if memory.shape() != self.shape {
            let (found, expected) = (tuple(memory.shape()), tuple(&self.shape));
            return Err(ShapeError::new_err(format!("{path}: the parameter has shape {found}, its slots {expected}")));
        }
        let buffer = written(path, "parameter", &memory).python()?;
        if buffer.dtype() != self.dtype {
            let (found, dtype) = (buffer.dtype().name(), self.dtype.name());
            return Err(DtypeError::new_err(format!("{path}: the parameter has dtype {found}, its slots {dtype}")));
        }
        Ok((memory, buffer))
    }

    fn checked_gradient(&self, g: &Object<'_>, shape: &[usize], is_written: bool) -> PyResult<(HostArray, Buffer)> {
        let path = &self.path;
        let memory = self.memory(g, "gradient")?;
        if memory.shape() != shape {
            let (found, expected) = (tuple(memory.shape()), tuple(shape));
            return Err(ShapeError::new_err(format!("{path}: gradient has shape {found}, the parameter {expected}")));
        }
        if is_written {
            written(path, "gradient", &memory).python()?;
        }
        match memory.view.buffer() {
            // The gradient of a half-precision parameter may have the dtype of the computation.
            Some(buffer) if buffer.dtype() == self.dtype || buffer.dtype() == self.dtype.computed_in() => {
                Ok((memory, buffer))
            }
            _ => {
                let (found, dtype) = (g.getattr("dtype")?.str()?, self.dtype.name());
                Err(DtypeError::new_err(format!("{path}: gradient has dtype {found}, the parameter {dtype}")))
            }
        }
    }

    /// The rows of these indices.
    pub fn rows(&self, indices: &Object<'_>) -> PyResult<Arc<Rows>> {
        let numbers = PyBuffer::<i64>::get(indices)?.to_vec(indices.py())?;
        let indices: Vec<usize> = numbers.iter().filter_map(|index| usize::try_from(*index).ok()).collect();
        let extent = self.shape.first().copied().unwrap_or_default();
        if indices.len() != numbers.len() || indices.last().is_some_and(|last| *last >= extent) {
            let (path, shape) = (&self.path, tuple(&self.shape));
            let outside = numbers.iter().find(|index| !usize::try_from(**index).is_ok_and(|index| index < extent));
            let index = outside.copied().unwrap_or_default();
            return Err(ShapeError::new_err(format!(
                "{path}: row index {index} is out of range for a parameter of shape {shape}"
            )));
        }
        // No elements, or more than memory has: there are no rows, and none is touched.
        let width = self.shape.get(1..).and_then(elements).unwrap_or_default();
        Rows::new(indices, width).map(Arc::new).python()
    }

    /// The factors of the slots, as arrays of the gradient's shape.
    pub fn factors(&self, factors: &[Object<'_>], shape: &[usize]) -> PyResult<Vec<(HostArray, Buffer)>> {
        let factor = |factor: &Object<'_>| {
            let Some(memory) = HostArray::of(factor)? else { return Ok(None) };
            let buffer = memory.view.broadcast(shape);
            Ok(buffer.map(|buffer| (memory, buffer)))
        };
        let buffers = factors.iter().map(factor).collect::<PyResult<Option<Vec<_>>>>()?;
        let wanted = if self.catches_up { self.slots.len() } else { 0 };
        buffers.filter(|buffers| buffers.len() == wanted).ok_or_else(|| {
            let path = &self.path;
            ShapeError::new_err(format!("{path}: expected {wanted} factors of slots, of the gradient's shape"))
        })
    }

    pub fn memory(&self, object: &Object<'_>, what: &str) -> PyResult<HostArray> {
        refuse_meaning(object, || format!("{}: the {what}", self.path))?;
        if let Some(memory) = HostArray::of_seen(object)? {
            whole(&self.path, what, object, &memory.view)?;
            return Ok(memory);
        }
        if object.cast::<BatchLevel>().is_ok() {
            return Err(ArrayMemoryError::new_err(format!(
                "{}: the {what} differs between the examples of a vmap: expected a batched parameter, too, or a loop over the examples",
                self.path
            )));
        }
        if object.hasattr("dtype")? {
            return Err(unexported(&self.path, what));
        }
        let found = if object.is_none() { "missing".to_owned() } else { object.get_type().name()?.to_string() };
        Err(StructureError::new_err(format!("{}: the {what} is {found}: expected an array", self.path)))
    }
}

/// Arrays, with the exports that keep their memory during a step.
pub type Held<'py> = Vec<(Object<'py>, HostArray)>;

/// The outcome of `Parameter::look`: whether slots have moved, and whether Python may have run.
#[derive(Default)]
pub struct Moves {
    pub moved: bool,
    pub python: bool,
}
