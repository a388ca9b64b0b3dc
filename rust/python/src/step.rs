//! A step over host memory: every check first, then one dispatch, then what it replaces, then the count.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use oxigrad_core::buffer::{Buffer, Dtype, Span};
use oxigrad_core::error::{Error, Result};
use oxigrad_core::exec::{self, Leaf};
use oxigrad_core::noise::noise_key;
use oxigrad_core::overlap::Sweep;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

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
    _held: Vec<Memory>,
}

/// Everything that a step needs besides what it is given.
#[derive(Default)]
struct Prepared {
    parameters: Vec<Parameter>,
    sweep: Sweep,
}

/// Counts the steps of one optimizer, and updates the parameters that lie in host memory.
#[pyclass(frozen, module = "oxigrad._core")]
#[derive(Default)]
pub struct Stepper {
    count: AtomicU64,
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

    /// States the parameters in host memory, as (path, position, array, slots); the slots' memory is held from now on.
    #[allow(clippy::type_complexity, reason = "what Python hands over, taken apart at once")]
    fn prepare(&self, parameters: Vec<(String, u64, Bound<'_, PyAny>, Vec<Bound<'_, PyAny>>)>) -> PyResult<()> {
        let prepare = |(path, position, array, arrays)| prepare(path, position, &array, arrays).python();
        let parameters = parameters.into_iter().map(prepare).collect::<PyResult<_>>()?;
        let before = std::mem::replace(&mut *self.lock(), Prepared { parameters, sweep: Sweep::default() });
        drop(before);
        Ok(())
    }

    /// Takes one step, whole or not at all: updates `written` from `gradients` in place, then replaces parts of `model`
    /// and items of dicts, and counts. Returns the model.
    #[expect(clippy::too_many_arguments, reason = "a step is all of this at once")]
    fn step<'py>(
        &self,
        py: Python<'py>,
        program: Option<&Program>,
        scalars: Vec<f64>,
        seed: u64,
        written: &Bound<'py, PyTuple>,
        gradients: &Bound<'py, PyTuple>,
        model: Bound<'py, PyAny>,
        replacements: Vec<(KeyPath, Bound<'py, PyAny>)>,
        assignments: Vec<(Bound<'py, PyDict>, Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(program) = program {
            // Taken out, so that no lock is held while Python may run.
            let mut prepared = std::mem::take(&mut *self.lock());
            let updated = prepared.update(py, program, &scalars, seed, self.count() + 1, written, gradients);
            *self.lock() = prepared;
            updated?;
        }
        let mut model = model;
        for (path, value) in replacements {
            model = set(&path.0, &model, &value)?;
        }
        for (dict, key, value) in assignments {
            dict.set_item(key, value)?;
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(model)
    }
}

impl Stepper {
    fn lock(&self) -> MutexGuard<'_, Prepared> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn prepare(path: String, position: u64, array: &Bound<'_, PyAny>, arrays: Vec<Bound<'_, PyAny>>) -> Result<Parameter> {
    let parameter = Memory::of(array).ok_or_else(|| unexported(&path, "parameter"))?;
    let dtype = parameter.computing().map_err(|error| at(&path, "parameter", error))?.dtype();
    let (mut slots, mut held) = (Vec::with_capacity(arrays.len()), Vec::with_capacity(arrays.len()));
    for slot in arrays {
        let export = Memory::of(&slot).ok_or_else(|| unexported(&path, "slot"))?;
        let buffer = writable(&path, "slot", &export)?;
        slots.push((slot.unbind(), buffer));
        held.push(export);
    }
    Ok(Parameter { path, position, dtype, shape: parameter.shape().to_vec(), slots, _held: held })
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
    fn plain(&self, p: &Bound<'_, PyAny>, g: &Bound<'_, PyAny>) -> Option<[Buffer; 2]> {
        let own = contiguous(p, &self.shape, self.dtype).filter(Buffer::is_writable)?;
        Some([contiguous(g, &self.shape, self.dtype)?, own])
    }

    /// The gradient and the parameter of a step, if they are what they must be.
    fn check(&self, p: &Bound<'_, PyAny>, g: &Bound<'_, PyAny>) -> PyResult<[(Memory, Buffer); 2]> {
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

impl Prepared {
    #[expect(clippy::too_many_arguments, reason = "a step is all of this at once")]
    fn update(
        &mut self,
        py: Python<'_>,
        program: &Program,
        scalars: &[f64],
        seed: u64,
        step: u64,
        written: &Bound<'_, PyTuple>,
        gradients: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        let count = self.parameters.len();
        if written.len() != count || gradients.len() != count {
            return Err(to_python(&Error::Structure("another step of this optimizer is under way".into())));
        }
        // The buffers of each parameter lie in a row: gradient, parameter, slots.
        let stride = 2 + self.parameters.first().map_or(0, |parameter| parameter.slots.len());
        let (mut buffers, mut held) = (Vec::with_capacity(count * stride), Vec::new());
        for ((parameter, p), g) in self.parameters.iter().zip(written.iter()).zip(gradients.iter()) {
            if let Some(plain) = parameter.plain(&p, &g) {
                buffers.extend(plain);
            } else {
                for (memory, buffer) in parameter.check(&p, &g)? {
                    held.push(memory);
                    buffers.push(buffer);
                }
            }
            buffers.extend(parameter.slots.iter().map(|(_, slot)| slot.clone()));
        }
        self.refuse_overlap(&buffers, stride, written, gradients)?;
        let mut leaves = Vec::with_capacity(count);
        for (parameter, inputs) in self.parameters.iter().zip(buffers.chunks_exact(stride)) {
            let (dtype, noise_key) = (parameter.dtype, noise_key(seed, step, parameter.position));
            let (outputs, length) = (&inputs[1..], inputs[0].len());
            leaves.push(Leaf { inputs, outputs, length, dtype, scalar_set: 0, noise_key });
        }
        let (isa, pool) = (threads::isa(), threads::pool());
        // SAFETY: what is in the tuples and in `held`, and the slots' own memory, stays until after the call; what is written is writable
        // and overlaps nothing else, as was just checked.
        let run = || unsafe { exec::run(&program.kernel, scalars, &leaves, isa, pool.as_deref()) };
        let elements: usize = leaves.iter().map(|leaf| leaf.length).sum();
        let done = if elements < DETACH { run() } else { py.detach(run) };
        drop(held);
        done.python()
    }

    /// `AliasError` where memory that is written is that of another array.
    fn refuse_overlap(
        &mut self,
        buffers: &[Buffer],
        stride: usize,
        written: &Bound<'_, PyTuple>,
        gradients: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        let range = |(at, buffer): (usize, &Buffer)| (buffer.span(), at % stride != 0);
        let ranges: Vec<(Span, bool)> = buffers.iter().enumerate().map(range).collect();
        if self.sweep.first_clash(&ranges).is_none() {
            return Ok(());
        }
        // Ranges may meet where elements do not (the columns of a matrix): NumPy decides, exactly.
        let py = written.py();
        let array = |at: usize| match at % stride {
            0 => gradients.get_item(at / stride),
            1 => written.get_item(at / stride),
            slot => Ok(self.parameters[at / stride].slots[slot - 2].0.bind(py).clone()),
        };
        let name = |at: usize| {
            let path = &self.parameters[at / stride].path;
            match at % stride {
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
