//! A step over host memory: every check first, then one dispatch, then what it replaces, then the count.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxigrad_core::buffer::{Buffer, Dtype, Rounding, Span, elements};
use oxigrad_core::error::{Error, Result};
use oxigrad_core::exec::{self, Batch, Leaf};
use oxigrad_core::kernel::Kernel;
use oxigrad_core::noise::noise_key;
use oxigrad_core::overlap::Sweep;
use oxigrad_core::rows::Rows;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyTupleMethods};

use crate::arrays::Copying;
use crate::error::{IntoPython, to_python};
use crate::memory::{Memory, Numbers};
use crate::numpy::Numpy;
use crate::symbols::Program;
use crate::threads;
use crate::torch::Changed;
use crate::tree::{KeyPath, set};

/// A parameter that the core updates: what it must be, and its slots, whose memory is held.
struct Parameter {
    path: String,
    position: u64,
    dtype: Dtype,
    shape: Vec<usize>,
    /// Their memory is held.
    slots: Vec<Numbers>,
    /// The slots that are one number each.
    numbers: Vec<Number>,
    /// Whether the program takes a factor for each slot, after the slots.
    catches_up: bool,
    /// Whether halves are rounded stochastically.
    stochastic: bool,
    /// Which program updates it, with which set of scalars.
    program: usize,
    set: usize,
}

/// A slot of one float64: where it lies, and its memory, which is held.
struct Number(*mut f64, #[expect(dead_code, reason = "held, not read")] Memory);

// SAFETY: the memory is held, and is only touched in a step, which has the parameter to itself.
unsafe impl Send for Number {}
// SAFETY: as above.
unsafe impl Sync for Number {}

impl Number {
    fn new(path: &str, stated: &Bound<'_, PyAny>) -> PyResult<Self> {
        let memory = Memory::of(stated)?.ok_or_else(|| to_python(&unexported(path, "slot")))?;
        let buffer = written(path, "slot", &memory).python()?;
        match (buffer.len(), buffer.dtype()) {
            (1, Dtype::F64) => Ok(Self(std::ptr::with_exposed_provenance_mut(buffer.span().start), memory)),
            (length, dtype) => Err(to_python(&Error::Shape(format!(
                "{path}: a slot has {length} elements of {}: expected one number of float64",
                dtype.name()
            )))),
        }
    }

    fn read(&self) -> f64 {
        // SAFETY: `new` saw one float64 here, and its memory is held.
        unsafe { self.0.read_unaligned() }
    }

    fn write(&self, value: f64) {
        // SAFETY: as above, and that it may be written.
        unsafe { self.0.write_unaligned(value) }
    }
}

/// What Python states of a parameter: path, position, array, slots (those of eight bits as tuples of codes and scales), slots of
/// one number, whether slots catch up, whether halves are rounded stochastically, number of its program and of its set of
/// scalars.
type Stated<'py> =
    (String, u64, Bound<'py, PyAny>, Vec<Bound<'py, PyAny>>, Vec<Bound<'py, PyAny>>, bool, bool, usize, usize);

/// What of a parameter a step touches: its number, the indices (int64, growing) of the rows whose gradients are given, or all
/// rows; and a factor for each slot, broadcast to the shape of the gradient.
type Touched<'py> = (usize, Option<Bound<'py, PyAny>>, Vec<Bound<'py, PyAny>>);

/// Everything that a step needs besides what it is given.
#[derive(Default)]
struct Prepared {
    parameters: Vec<Parameter>,
    /// Where the buffers of each parameter start, those of all in a row: gradient, parameter, slots, factors of slots; and
    /// where the last ones end.
    starts: Vec<usize>,
    /// The slots that are tensors of PyTorch's.
    tensors: Vec<Py<PyAny>>,
    sweep: Sweep,
    seen: Seen,
}

/// What the last step saw and found in order: where nothing lies elsewhere now, nothing has to be looked at again.
#[derive(Default)]
struct Seen {
    /// The programs that ran; none where something was out of order.
    programs: Vec<Py<Program>>,
    /// The buffers of all parameters.
    buffers: Vec<Buffer>,
    /// What of them is written: see `Prepared::chosen`.
    outputs: Vec<Vec<Buffer>>,
}

impl Seen {
    fn is_of(&self, programs: &Programs) -> bool {
        self.programs.len() == programs.len() && self.programs.iter().zip(programs).all(|(a, (b, _))| b.is(a))
    }
}

/// The programs of a step, each with its sets of scalars.
type Programs<'py> = [(Bound<'py, Program>, Vec<Vec<f64>>)];

/// Counts the steps of one optimizer, and updates the parameters that lie in host memory.
#[pyclass(frozen, module = "oxigrad._core")]
#[derive(Default)]
pub struct Stepper {
    count: AtomicU64,
    /// Gradients that were accumulated since the last step.
    micro: AtomicU64,
    prepared: Mutex<Prepared>,
}

/// Below this many elements a step keeps the interpreter lock: handing it over would take longer than the step.
const DETACH: usize = 1 << 15;

#[pymethods]
impl Stepper {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// How many steps have been taken.
    #[getter]
    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_count(&self, count: u64) {
        self.count.store(count, Ordering::Relaxed);
    }

    /// How many gradients have been accumulated since the last step.
    #[getter]
    fn micro(&self) -> u64 {
        self.micro.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_micro(&self, micro: u64) {
        self.micro.store(micro, Ordering::Relaxed);
    }

    /// States the parameters in host memory; the slots' memory is held from now on.
    fn prepare(&self, py: Python<'_>, parameters: Vec<Stated<'_>>) -> PyResult<()> {
        let parameters: Vec<Parameter> = parameters.into_iter().map(prepare).collect::<PyResult<_>>()?;
        let mut starts = vec![0];
        starts.extend(parameters.iter().scan(0, |end, parameter| {
            *end += 2 + parameter.slots.len() * (1 + usize::from(parameter.catches_up));
            Some(*end)
        }));
        let slots = parameters.iter().flat_map(|parameter| &parameter.slots);
        let tensors = slots.flat_map(Numbers::changed).map(|tensor| tensor.clone_ref(py)).collect();
        let prepared = Prepared { parameters, starts, tensors, ..Prepared::default() };
        let before = std::mem::replace(&mut *self.lock(), prepared);
        drop(before);
        Ok(())
    }

    /// Takes one step, whole or not at all: updates `written` from `gradients` in place by `programs`, each with its sets
    /// of scalars, only rows of those `touched`, copies arrays (from, to) into others, then replaces parts of `model` and items of
    /// dicts and arrays, and counts the step, or (where gradients are accumulated) that it `holds` back. Returns the model; None where a guard stopped the step.
    #[expect(clippy::too_many_arguments, reason = "a step is all of this at once")]
    fn step<'py>(
        &self,
        py: Python<'py>,
        programs: Vec<(Bound<'py, Program>, Vec<Vec<f64>>)>,
        seed: u64,
        written: &Bound<'py, PyTuple>,
        gradients: &Bound<'py, PyTuple>,
        touched: Vec<Touched<'py>>,
        model: Bound<'py, PyAny>,
        replacements: Vec<(KeyPath, Bound<'py, PyAny>)>,
        assignments: Vec<Assignment<'py>>,
        copies: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
        holds: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let copies = copying(&copies)?;
        let mut changed = Changed::default();
        if !programs.is_empty() {
            // Taken out, so that no lock is held while Python may run.
            let mut prepared = std::mem::take(&mut *self.lock());
            let updated =
                prepared.update(py, &programs, seed, self.count() + 1, written, gradients, &touched, &mut changed);
            *self.lock() = prepared;
            if !updated? {
                return Ok(None);
            }
        }
        let model = write(py, model, replacements, assignments, copies, &mut changed);
        if model.is_ok() {
            if holds {
                self.micro.fetch_add(1, Ordering::Relaxed);
            } else {
                self.micro.store(0, Ordering::Relaxed);
                self.count.fetch_add(1, Ordering::Relaxed);
            }
        }
        let counted = changed.count(py);
        let model = model?;
        counted.map(|()| Some(model))
    }

    /// Copies arrays (from, to) into others, replaces parts of `model`, which is returned, and assigns items of dicts.
    #[expect(clippy::unused_self, reason = "a part of a step, without the count")]
    fn write<'py>(
        &self,
        py: Python<'py>,
        model: Bound<'py, PyAny>,
        replacements: Vec<(KeyPath, Bound<'py, PyAny>)>,
        assignments: Vec<Assignment<'py>>,
        copies: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut changed = Changed::default();
        let model = write(py, model, replacements, assignments, copying(&copies)?, &mut changed);
        let counted = changed.count(py);
        let model = model?;
        counted.map(|()| model)
    }
}

/// A holder, and what of it is to be what.
type Assignment<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// What is copied at the end of a step, checked before its start.
fn copying(copies: &[(Bound<'_, PyAny>, Bound<'_, PyAny>)]) -> PyResult<Vec<Copying>> {
    copies.iter().map(|(from, to)| Copying::new(from, to)).collect()
}

fn write<'py>(
    py: Python<'py>,
    model: Bound<'py, PyAny>,
    replacements: Vec<(KeyPath, Bound<'py, PyAny>)>,
    assignments: Vec<Assignment<'py>>,
    copies: Vec<Copying>,
    changed: &mut Changed,
) -> PyResult<Bound<'py, PyAny>> {
    copies.into_iter().try_for_each(|copying| copying.run(py, changed))?;
    let mut model = model;
    for (path, value) in replacements {
        model = set(&path.0, &model, &value)?;
    }
    for (holder, key, value) in assignments {
        holder.set_item(key, value)?;
    }
    Ok(model)
}

impl Stepper {
    fn lock(&self) -> MutexGuard<'_, Prepared> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn prepare(stated: Stated<'_>) -> PyResult<Parameter> {
    let (path, position, array, slots, numbers, catches_up, stochastic, program, set) = stated;
    let parameter = Memory::of(&array)?.ok_or_else(|| to_python(&unexported(&path, "parameter")))?;
    let dtype = parameter.floating().map_err(|error| at(&path, "parameter", error)).python()?.dtype();
    let slots = slots.iter().map(|stated| slot(&path, stated)).collect::<PyResult<_>>()?;
    let numbers = numbers.iter().map(|slot| Number::new(&path, slot)).collect::<PyResult<_>>()?;
    let shape = parameter.shape().to_vec();
    Ok(Parameter { path, position, dtype, shape, slots, numbers, catches_up, stochastic, program, set })
}

fn slot(path: &str, stated: &Bound<'_, PyAny>) -> PyResult<Numbers> {
    let slot = Numbers::of(stated)?.ok_or_else(|| to_python(&unexported(path, "slot")))?;
    let mut slot = slot.map_err(|error| at(path, "slot", error)).python()?;
    writable(path, "slot", &slot.buffer).python()?;
    slot.set_written(stated);
    Ok(slot)
}

fn unexported(path: &str, what: &str) -> Error {
    Error::Memory(format!("{path}: the {what} does not share its memory: expected an array in host memory"))
}

fn at(path: &str, what: &str, error: Error) -> Error {
    match error {
        Error::Dtype(text) => Error::Dtype(format!("{path}: {what}: {text}")),
        Error::Shape(text) => Error::Shape(format!("{path}: {what}: {text}")),
        Error::Memory(text) => Error::Memory(format!("{path}: {what}: {text}")),
        other => other,
    }
}

/// Refuses memory that cannot be written.
fn writable(path: &str, what: &str, buffer: &Buffer) -> Result<()> {
    if !buffer.is_writable() {
        return Err(Error::Memory(format!("{path}: the {what} is read-only")));
    }
    if buffer.overlaps_itself() {
        return Err(Error::Alias(format!("{path}: the {what} overlaps itself: expected an array of its own elements")));
    }
    Ok(())
}

/// The buffer of an array that will be written.
fn written(path: &str, what: &str, memory: &Memory) -> Result<Buffer> {
    let buffer = memory.floating().map_err(|error| at(path, what, error))?;
    writable(path, what, &buffer)?;
    Ok(buffer)
}

/// A shape as Python writes it.
fn tuple(shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!("({}{})", sizes.join(", "), if shape.len() == 1 { "," } else { "" })
}

/// What a step is given of a parameter: the gradient, of this shape, and whether it is written too.
#[derive(Clone, Copy)]
struct Given<'a, 'py> {
    p: &'a Bound<'py, PyAny>,
    g: &'a Bound<'py, PyAny>,
    shape: &'a [usize],
    writes_gradient: bool,
}

impl Parameter {
    /// How what is written to the parameter (number 0) and to its slots (from 1 on) is rounded.
    fn rounding(&self, number: u32) -> Rounding {
        if self.stochastic { Rounding::Stochastic(number) } else { Rounding::Nearest }
    }

    /// The buffers of the gradient and the parameter, where they are plainly what they must be.
    fn plain(&self, given: &Given) -> Option<[Buffer; 2]> {
        let numpy = Numpy::get(given.p.py())?;
        let own = numpy.contiguous(given.p, &self.shape, self.dtype).filter(Buffer::is_writable)?;
        let gradient = numpy.contiguous(given.g, given.shape, self.dtype);
        let gradient = gradient.filter(|gradient| gradient.is_writable() || !given.writes_gradient)?;
        Some([gradient, own.with_rounding(self.rounding(0))])
    }

    /// The buffers of the gradient and the parameter; adds what holds their memory.
    fn given(&self, given: &Given, held: &mut Vec<Memory>) -> PyResult<[Buffer; 2]> {
        if let Some(plain) = self.plain(given) {
            return Ok(plain);
        }
        let [(gradient_memory, gradient), (memory, own)] = self.check(given)?;
        held.extend([gradient_memory, memory]);
        Ok([gradient, own])
    }

    /// Adds the buffers of the gradient, the parameter and its slots, and what holds their memory.
    fn gather(&self, given: &Given, buffers: &mut Vec<Buffer>, held: &mut Vec<Memory>) -> PyResult<()> {
        buffers.extend(self.given(given, held)?);
        let slots = self.slots.iter().zip(1..);
        buffers.extend(slots.map(|(slot, number)| slot.buffer.clone().with_rounding(self.rounding(number))));
        Ok(())
    }

    /// The gradient and the parameter of a step, if they are what they must be.
    fn check(&self, given: &Given) -> PyResult<[(Memory, Buffer); 2]> {
        let Given { p, g, shape, writes_gradient } = *given;
        let path = &self.path;
        let (mut memory, mut gradient) = (self.memory(p, "parameter")?, self.memory(g, "gradient")?);
        let expected = tuple(&self.shape);
        if memory.shape() != self.shape {
            let found = tuple(memory.shape());
            return Err(to_python(&Error::Shape(format!(
                "{path}: the parameter has shape {found}, its slots {expected}"
            ))));
        }
        let own = written(path, "parameter", &memory).python()?;
        memory.set_written(p);
        let dtype = self.dtype.name();
        if own.dtype() != self.dtype {
            let found = own.dtype().name();
            return Err(to_python(&Error::Dtype(format!(
                "{path}: the parameter has dtype {found}, its slots {dtype}"
            ))));
        }
        if gradient.shape() != shape {
            let (found, expected) = (tuple(gradient.shape()), tuple(shape));
            return Err(to_python(&Error::Shape(format!(
                "{path}: gradient has shape {found}, the parameter {expected}"
            ))));
        }
        if writes_gradient {
            written(path, "gradient", &gradient).python()?;
            gradient.set_written(g);
        }
        match gradient.buffer() {
            // Gradients of halves may have the type that is computed in.
            Some(given) if given.dtype() == self.dtype || given.dtype() == self.dtype.computed_in() => {
                Ok([(gradient, given), (memory, own.with_rounding(self.rounding(0)))])
            }
            _ => {
                let found = g.getattr("dtype")?.str()?;
                Err(to_python(&Error::Dtype(format!("{path}: gradient has dtype {found}, the parameter {dtype}"))))
            }
        }
    }

    /// The rows of these indices.
    fn rows(&self, indices: &Bound<'_, PyAny>) -> PyResult<Arc<Rows>> {
        let given = PyBuffer::<i64>::get(indices)?.to_vec(indices.py())?;
        let indices: Vec<usize> = given.iter().filter_map(|index| usize::try_from(*index).ok()).collect();
        let extent = self.shape.first().copied().unwrap_or_default();
        if indices.len() != given.len() || indices.last().is_some_and(|last| *last >= extent) {
            let (path, shape) = (&self.path, tuple(&self.shape));
            return Err(to_python(&Error::Shape(format!("{path}: rows are touched that the shape {shape} has not"))));
        }
        // No elements at all, or more than fit: these have no rows, and no row is touched.
        let width = self.shape.get(1..).and_then(elements).unwrap_or_default();
        Rows::new(indices, width).map(Arc::new).python()
    }

    /// The factors of the slots, as arrays of the gradient's shape.
    fn factors(&self, given: &[Bound<'_, PyAny>], shape: &[usize]) -> PyResult<Vec<(Memory, Buffer)>> {
        let factor = |factor: &Bound<'_, PyAny>| {
            let Some(memory) = Memory::of(factor)? else { return Ok(None) };
            let buffer = memory.broadcast(shape);
            Ok(buffer.map(|buffer| (memory, buffer)))
        };
        let found = given.iter().map(factor).collect::<PyResult<Option<Vec<_>>>>()?;
        let wanted = if self.catches_up { self.slots.len() } else { 0 };
        found.filter(|found| found.len() == wanted).ok_or_else(|| {
            let path = &self.path;
            to_python(&Error::Shape(format!("{path}: expected {wanted} factors of slots, of the gradient's shape")))
        })
    }

    fn memory(&self, object: &Bound<'_, PyAny>, what: &str) -> PyResult<Memory> {
        if let Some(memory) = Memory::of(object)? {
            return Ok(memory);
        }
        if object.hasattr("dtype")? {
            return Err(to_python(&unexported(&self.path, what)));
        }
        let (path, found) = (&self.path, object.get_type().name()?);
        Err(to_python(&Error::Structure(format!("{path}: the {what} is missing: found {found}"))))
    }
}

/// What one program does in a step.
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
    /// Whether the update was made: a guard may stop it.
    #[expect(clippy::too_many_arguments, reason = "as `Stepper::step`")]
    fn update(
        &mut self,
        py: Python<'_>,
        programs: &Programs,
        seed: u64,
        step: u64,
        written: &Bound<'_, PyTuple>,
        gradients: &Bound<'_, PyTuple>,
        touched: &[Touched<'_>],
        changed: &mut Changed,
    ) -> PyResult<bool> {
        let count = self.parameters.len();
        if written.len() != count || gradients.len() != count {
            return Err(to_python(&Error::Structure("another step of this optimizer is under way".into())));
        }
        let mut held = Vec::new();
        // Put back when all is in order.
        let mut seen = std::mem::take(&mut self.seen);
        let is_new = if touched.is_empty() && seen.is_of(programs) {
            self.renew(&mut seen.buffers, programs, written, gradients, &mut held)?
        } else {
            seen.buffers = self.gather(programs, written, gradients, touched, &mut held)?;
            true
        };
        if is_new {
            self.refuse_overlap(&seen.buffers, programs, written, gradients)?;
            seen.outputs = self.chosen(programs, &seen.buffers);
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
                let numbers = parameter.numbers.iter().map(Number::read);
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
        // written is writable and overlaps nothing else, and the kernels were checked for these buffers: just now, or in
        // an earlier step, when all of them were the same.
        let run = || unsafe { exec::run_checked(&batches, isa, pool.as_deref()) };
        let elements: usize = batches.iter().flat_map(|batch| batch.leaves).map(|leaf| leaf.length).sum();
        let done = if elements < DETACH { run() } else { py.detach(run) };
        let results = done.python()?;
        if touched.is_empty() {
            seen.programs = programs.iter().map(|(program, _)| program.clone().unbind()).collect();
            self.seen = seen;
        }
        let Some(results) = results else { return Ok(false) };
        changed.extend(py, held.iter().filter_map(Memory::changed).chain(&self.tensors));
        let mut results: Vec<_> = results.into_iter().map(Vec::into_iter).collect();
        for parameter in &self.parameters {
            parameter
                .numbers
                .iter()
                .zip(&mut results[parameter.program])
                .for_each(|(number, value)| number.write(value));
        }
        Ok(true)
    }

    /// Looks whether gradients and parameters still lie where they did, and puts other buffers in the place of those that
    /// do not. Returns whether there were any.
    fn renew(
        &self,
        buffers: &mut [Buffer],
        programs: &Programs,
        written: &Bound<'_, PyTuple>,
        gradients: &Bound<'_, PyTuple>,
        held: &mut Vec<Memory>,
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
    fn gather(
        &self,
        programs: &Programs,
        written: &Bound<'_, PyTuple>,
        gradients: &Bound<'_, PyTuple>,
        touched: &[Touched<'_>],
        held: &mut Vec<Memory>,
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
            for (memory, buffer) in parameter.factors(factors, &shape)? {
                held.push(memory);
                buffers.push(buffer);
            }
        }
        if touched.next().is_some() || Some(&buffers.len()) != self.starts.last() {
            return Err(to_python(&Error::Structure("what is touched is not what was prepared".into())));
        }
        Ok(buffers)
    }

    /// The buffers of a parameter: gradient, parameter, slots, factors of slots.
    fn row<'a>(&self, buffers: &'a [Buffer], at: usize) -> &'a [Buffer] {
        &buffers[self.starts[at]..self.starts[at + 1]]
    }

    /// What is written of each parameter, where that is not all of it and of its slots for every parameter.
    fn chosen(&self, programs: &Programs, buffers: &[Buffer]) -> Vec<Vec<Buffer>> {
        let writes_all = |parameter: &Parameter| {
            let program = programs[parameter.program].0.get();
            program.written.len() == 1 + parameter.slots.len() && !program.writes_gradients()
        };
        if self.parameters.iter().all(writes_all) {
            return Vec::new();
        }
        let written = |(at, parameter): (usize, &Parameter)| {
            let row = self.row(buffers, at);
            programs[parameter.program].0.get().written.iter().map(|output| row[*output].clone()).collect()
        };
        self.parameters.iter().enumerate().map(written).collect()
    }

    /// `AliasError` where memory that is written is that of another array.
    fn refuse_overlap(
        &mut self,
        buffers: &[Buffer],
        programs: &Programs,
        written: &Bound<'_, PyTuple>,
        gradients: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        let mut ranges: Vec<(Span, bool)> = buffers.iter().map(|buffer| (buffer.span(), true)).collect();
        for (gradient, parameter) in self.starts.iter().zip(&self.parameters) {
            ranges[*gradient].1 = programs[parameter.program].0.get().writes_gradients();
            if parameter.catches_up {
                // The factors are made for this step, and nobody else's.
                let count = parameter.slots.len();
                ranges[gradient + 2 + count..][..count].fill((Span { start: 0, end: 0 }, false));
            }
        }
        // The scales of codes come after all buffers.
        let scaled: Vec<usize> = (0..buffers.len()).filter(|at| buffers[*at].is_quantized()).collect();
        ranges.extend(scaled.iter().filter_map(|at| buffers[*at].scales()).map(|scales| (scales.span(), true)));
        if self.sweep.first_clash(&ranges).is_none() {
            return Ok(());
        }
        // Ranges may meet where elements do not (the columns of a matrix): NumPy decides, exactly.
        let py = written.py();
        let place = |at: usize| {
            let at = if at < buffers.len() { at } else { scaled[at - buffers.len()] };
            let owner = self.starts.partition_point(|start| *start <= at) - 1;
            (owner, at - self.starts[owner])
        };
        let view = |at: usize| match place(at) {
            (owner, kind @ (0 | 1)) => {
                let array = if kind == 0 { gradients } else { written }.get_item(owner)?;
                self.parameters[owner].memory(&array, "array")?.view(py)
            }
            (owner, slot) => self.parameters[owner].slots[slot - 2].memory[usize::from(at >= buffers.len())].view(py),
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
        let shares_memory = py.import("numpy")?.getattr("shares_memory")?;
        let mut order: Vec<usize> = (0..ranges.len()).filter(|at| ranges[*at].0.start < ranges[*at].0.end).collect();
        order.sort_by_key(|at| ranges[*at].0.start);
        for (place, &a) in order.iter().enumerate() {
            let met = order[place + 1..].iter().take_while(|b| ranges[**b].0.start < ranges[a].0.end);
            for &b in met.filter(|b| ranges[a].1 || ranges[**b].1) {
                if shares_memory.call1((view(a)?, view(b)?))?.is_truthy()? {
                    let (a, b) = (name(a.min(b)), name(a.max(b)));
                    return Err(to_python(&Error::Alias(format!(
                        "{a} and {b} share memory: expected arrays apart, or the same array from the first step on"
                    ))));
                }
            }
        }
        Ok(())
    }
}
