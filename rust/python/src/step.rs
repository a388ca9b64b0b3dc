//! A step over host memory: every check first, then one dispatch, then what it replaces, then the count.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use oxigrad_core::buffer::{Buffer, Dtype, Span};
use oxigrad_core::error::{Error, Result};
use oxigrad_core::exec::{self, Batch, Leaf};
use oxigrad_core::kernel::Kernel;
use oxigrad_core::noise::noise_key;
use oxigrad_core::overlap::Sweep;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis, PyTuple};

use crate::error::{IntoPython, to_python};
use crate::memory::{Memory, contiguous};
use crate::symbols::Program;
use crate::threads;
use crate::tree::{KeyPath, set};

/// A parameter that the core updates: what it must be, and its slots, whose memory is held.
struct Parameter {
    path: String,
    position: u64,
    dtype: Dtype,
    shape: Vec<usize>,
    slots: Vec<(Py<PyAny>, Buffer)>,
    /// The slots that are one number each.
    numbers: Vec<Number>,
    /// Which program updates it, with which set of scalars.
    program: usize,
    set: usize,
    _held: Vec<Memory>,
}

/// Where one float64 lies.
struct Number(*mut f64);

// SAFETY: the memory is held by its parameter, and is only touched in a step, which has the parameter to itself.
unsafe impl Send for Number {}
// SAFETY: as above.
unsafe impl Sync for Number {}

impl Number {
    fn read(&self) -> f64 {
        // SAFETY: `number` saw one float64 here, and its memory is held.
        unsafe { self.0.read_unaligned() }
    }

    fn write(&self, value: f64) {
        // SAFETY: as above, and that it may be written.
        unsafe { self.0.write_unaligned(value) }
    }
}

/// What Python states of a parameter: path, position, array, slots, slots of one number, number of its program and of its
/// set of scalars.
type Stated<'py> = (String, u64, Bound<'py, PyAny>, Vec<Bound<'py, PyAny>>, Vec<Bound<'py, PyAny>>, usize, usize);

/// Everything that a step needs besides what it is given.
#[derive(Default)]
struct Prepared {
    parameters: Vec<Parameter>,
    /// Where the buffers of each parameter start, those of all in a row: gradient, parameter, slots.
    starts: Vec<usize>,
    sweep: Sweep,
}

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
    fn prepare(&self, parameters: Vec<Stated<'_>>) -> PyResult<()> {
        let parameters: Vec<Parameter> =
            parameters.into_iter().map(|stated| prepare(stated).python()).collect::<PyResult<_>>()?;
        let starts = parameters.iter().scan(0, |end, parameter| {
            let start = *end;
            *end += 2 + parameter.slots.len();
            Some(start)
        });
        let starts = starts.collect();
        let before = std::mem::replace(&mut *self.lock(), Prepared { parameters, starts, sweep: Sweep::default() });
        drop(before);
        Ok(())
    }

    /// Takes one step, whole or not at all: updates `written` from `gradients` in place by `programs`, each with its sets
    /// of scalars, copies arrays (from, to) into others, then replaces parts of `model` and items of dicts, and counts the step,
    /// or (where gradients are accumulated) that it `holds` back. Returns the model; None where a guard stopped the step.
    #[expect(clippy::too_many_arguments, reason = "a step is all of this at once")]
    fn step<'py>(
        &self,
        py: Python<'py>,
        programs: Vec<(PyRef<'py, Program>, Vec<Vec<f64>>)>,
        seed: u64,
        written: &Bound<'py, PyTuple>,
        gradients: &Bound<'py, PyTuple>,
        model: Bound<'py, PyAny>,
        replacements: Vec<(KeyPath, Bound<'py, PyAny>)>,
        assignments: Vec<(Bound<'py, PyDict>, Bound<'py, PyAny>, Bound<'py, PyAny>)>,
        copies: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
        holds: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if !programs.is_empty() {
            // Taken out, so that no lock is held while Python may run.
            let mut prepared = std::mem::take(&mut *self.lock());
            let updated = prepared.update(py, &programs, seed, self.count() + 1, written, gradients);
            *self.lock() = prepared;
            if !updated? {
                return Ok(None);
            }
        }
        let model = self.write(py, model, replacements, assignments, copies)?;
        if holds {
            self.micro.fetch_add(1, Ordering::Relaxed);
        } else {
            self.micro.store(0, Ordering::Relaxed);
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Some(model))
    }

    /// Copies arrays (from, to) into others, replaces parts of `model`, which is returned, and assigns items of dicts.
    ///
    /// The arrays are NumPy's, and assigned to as a whole: that runs no Python, in which an interrupt could come between.
    #[expect(clippy::unused_self, reason = "a part of a step, without the count")]
    fn write<'py>(
        &self,
        py: Python<'py>,
        model: Bound<'py, PyAny>,
        replacements: Vec<(KeyPath, Bound<'py, PyAny>)>,
        assignments: Vec<(Bound<'py, PyDict>, Bound<'py, PyAny>, Bound<'py, PyAny>)>,
        copies: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        for (from, to) in copies {
            to.set_item(PyEllipsis::get(py), from)?;
        }
        let mut model = model;
        for (path, value) in replacements {
            model = set(&path.0, &model, &value)?;
        }
        for (dict, key, value) in assignments {
            dict.set_item(key, value)?;
        }
        Ok(model)
    }
}

impl Stepper {
    fn lock(&self) -> MutexGuard<'_, Prepared> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn prepare((path, position, array, arrays, numbers, program, set): Stated<'_>) -> Result<Parameter> {
    let parameter = Memory::of(&array).ok_or_else(|| unexported(&path, "parameter"))?;
    let dtype = parameter.computing().map_err(|error| at(&path, "parameter", error))?.dtype();
    let (mut slots, mut held) = (Vec::with_capacity(arrays.len()), Vec::with_capacity(arrays.len()));
    let mut export = |slot: &Bound<'_, PyAny>| -> Result<Buffer> {
        let memory = Memory::of(slot).ok_or_else(|| unexported(&path, "slot"))?;
        let buffer = writable(&path, "slot", &memory)?;
        held.push(memory);
        Ok(buffer)
    };
    for slot in arrays {
        let buffer = export(&slot)?;
        slots.push((slot.unbind(), buffer));
    }
    let mut number = |slot: &Bound<'_, PyAny>| {
        let buffer = export(slot)?;
        match (buffer.len(), buffer.dtype()) {
            (1, Dtype::F64) => Ok(Number(std::ptr::with_exposed_provenance_mut(buffer.span().start))),
            (length, dtype) => Err(Error::Shape(format!(
                "{path}: a slot has {length} elements of {}: expected one number of float64",
                dtype.name()
            ))),
        }
    };
    let numbers = numbers.iter().map(&mut number).collect::<Result<_>>()?;
    let shape = parameter.shape().to_vec();
    Ok(Parameter { path, position, dtype, shape, slots, numbers, program, set, _held: held })
}

fn unexported(path: &str, what: &str) -> Error {
    Error::Memory(format!("{path}: the {what} does not share its memory: expected an array in host memory"))
}

fn at(path: &str, what: &str, error: Error) -> Error {
    match error {
        Error::Dtype(text) => Error::Dtype(format!("{path}: {what}: {text}")),
        other => other,
    }
}

/// The buffer of an array that will be written.
fn writable(path: &str, what: &str, memory: &Memory) -> Result<Buffer> {
    let buffer = memory.computing().map_err(|error| at(path, what, error))?;
    if !buffer.is_writable() {
        return Err(Error::Memory(format!("{path}: the {what} is read-only")));
    }
    if buffer.overlaps_itself() {
        return Err(Error::Alias(format!("{path}: the {what} overlaps itself: expected an array of its own elements")));
    }
    Ok(buffer)
}

/// A shape as Python writes it.
fn tuple(shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!("({}{})", sizes.join(", "), if shape.len() == 1 { "," } else { "" })
}

impl Parameter {
    /// The buffers of the gradient and the parameter, where they are plainly what they must be.
    fn plain(&self, p: &Bound<'_, PyAny>, g: &Bound<'_, PyAny>, writes_gradient: bool) -> Option<[Buffer; 2]> {
        let own = contiguous(p, &self.shape, self.dtype).filter(Buffer::is_writable)?;
        let given = contiguous(g, &self.shape, self.dtype);
        Some([given.filter(|given| given.is_writable() || !writes_gradient)?, own])
    }

    /// The gradient and the parameter of a step, if they are what they must be.
    fn check(
        &self,
        p: &Bound<'_, PyAny>,
        g: &Bound<'_, PyAny>,
        writes_gradient: bool,
    ) -> PyResult<[(Memory, Buffer); 2]> {
        let path = &self.path;
        let (memory, gradient) = (self.memory(p, "parameter")?, self.memory(g, "gradient")?);
        let expected = tuple(&self.shape);
        if memory.shape() != self.shape {
            let found = tuple(memory.shape());
            return Err(to_python(&Error::Shape(format!(
                "{path}: the parameter has shape {found}, its slots {expected}"
            ))));
        }
        let own = writable(path, "parameter", &memory).python()?;
        let dtype = self.dtype.name();
        if own.dtype() != self.dtype {
            let found = own.dtype().name();
            return Err(to_python(&Error::Dtype(format!(
                "{path}: the parameter has dtype {found}, its slots {dtype}"
            ))));
        }
        if gradient.shape() != self.shape {
            let found = tuple(gradient.shape());
            return Err(to_python(&Error::Shape(format!(
                "{path}: gradient has shape {found}, the parameter {expected}"
            ))));
        }
        if writes_gradient {
            writable(path, "gradient", &gradient).python()?;
        }
        match gradient.buffer() {
            Some(given) if given.dtype() == self.dtype => Ok([(gradient, given), (memory, own)]),
            _ => {
                let found = g.getattr("dtype")?.str()?;
                Err(to_python(&Error::Dtype(format!("{path}: gradient has dtype {found}, the parameter {dtype}"))))
            }
        }
    }

    fn memory(&self, object: &Bound<'_, PyAny>, what: &str) -> PyResult<Memory> {
        if let Some(memory) = Memory::of(object) {
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
    fn update(
        &mut self,
        py: Python<'_>,
        programs: &[(PyRef<'_, Program>, Vec<Vec<f64>>)],
        seed: u64,
        step: u64,
        written: &Bound<'_, PyTuple>,
        gradients: &Bound<'_, PyTuple>,
    ) -> PyResult<bool> {
        let count = self.parameters.len();
        if written.len() != count || gradients.len() != count {
            return Err(to_python(&Error::Structure("another step of this optimizer is under way".into())));
        }
        let (mut buffers, mut held) = (Vec::with_capacity(count * 4), Vec::new());
        for ((parameter, p), g) in self.parameters.iter().zip(written.iter()).zip(gradients.iter()) {
            let writes_gradient = programs[parameter.program].0.writes_gradients();
            if let Some(plain) = parameter.plain(&p, &g, writes_gradient) {
                buffers.extend(plain);
            } else {
                for (memory, buffer) in parameter.check(&p, &g, writes_gradient)? {
                    held.push(memory);
                    buffers.push(buffer);
                }
            }
            buffers.extend(parameter.slots.iter().map(|(_, slot)| slot.clone()));
        }
        self.refuse_overlap(&buffers, programs, written, gradients)?;
        let chosen = self.chosen(programs, &buffers);
        let mut work: Vec<Work> = programs.iter().map(|(program, _)| Work::new(program)).collect();
        for (at, parameter) in self.parameters.iter().enumerate() {
            let Work { scalars, leaves, kernel } = &mut work[parameter.program];
            let inputs = self.row(&buffers, at);
            let (length, dtype, noise_key) =
                (inputs[0].len(), parameter.dtype, noise_key(seed, step, parameter.position));
            let outputs = chosen.get(at).map_or(&inputs[1..], |outputs| &outputs[..]);
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
        // SAFETY: what is in the tuples and in `held`, and the slots' own memory, stays until after the call; what is written is writable
        // and overlaps nothing else, as was just checked.
        let run = || unsafe { exec::run(&batches, isa, pool.as_deref()) };
        let elements: usize = batches.iter().flat_map(|batch| batch.leaves).map(|leaf| leaf.length).sum();
        let done = if elements < DETACH { run() } else { py.detach(run) };
        drop(held);
        let Some(results) = done.python()? else { return Ok(false) };
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

    /// The buffers of a parameter: gradient, parameter, slots.
    fn row<'a>(&self, buffers: &'a [Buffer], at: usize) -> &'a [Buffer] {
        &buffers[self.starts[at]..self.starts.get(at + 1).copied().unwrap_or(buffers.len())]
    }

    /// What is written of each parameter, where that is not all of it and of its slots for every parameter.
    fn chosen(&self, programs: &[(PyRef<'_, Program>, Vec<Vec<f64>>)], buffers: &[Buffer]) -> Vec<Vec<Buffer>> {
        let writes_all = |parameter: &Parameter| {
            let program = &programs[parameter.program].0;
            program.written.len() == 1 + parameter.slots.len() && !program.writes_gradients()
        };
        if self.parameters.iter().all(writes_all) {
            return Vec::new();
        }
        let written = |(at, parameter): (usize, &Parameter)| {
            let row = self.row(buffers, at);
            programs[parameter.program].0.written.iter().map(|output| row[*output].clone()).collect()
        };
        self.parameters.iter().enumerate().map(written).collect()
    }

    /// `AliasError` where memory that is written is that of another array.
    fn refuse_overlap(
        &mut self,
        buffers: &[Buffer],
        programs: &[(PyRef<'_, Program>, Vec<Vec<f64>>)],
        written: &Bound<'_, PyTuple>,
        gradients: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        let mut ranges: Vec<(Span, bool)> = buffers.iter().map(|buffer| (buffer.span(), true)).collect();
        for (parameter, gradient) in self.parameters.iter().zip(&self.starts) {
            ranges[*gradient].1 = programs[parameter.program].0.writes_gradients();
        }
        if self.sweep.first_clash(&ranges).is_none() {
            return Ok(());
        }
        // Ranges may meet where elements do not (the columns of a matrix): NumPy decides, exactly.
        let py = written.py();
        let place = |at: usize| {
            let owner = self.starts.partition_point(|start| *start <= at) - 1;
            (owner, at - self.starts[owner])
        };
        let array = |at: usize| match place(at) {
            (owner, 0) => gradients.get_item(owner),
            (owner, 1) => written.get_item(owner),
            (owner, slot) => Ok(self.parameters[owner].slots[slot - 2].0.bind(py).clone()),
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
                if shares_memory.call1((array(a)?, array(b)?))?.is_truthy()? {
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
