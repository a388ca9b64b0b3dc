//! A step over host memory: every check first, then one dispatch, then what it replaces, then the count.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxigrad_core::array::buffer::{Buffer, Dtype, Rounding, Span, elements};
use oxigrad_core::array::overlap::Sweep;
use oxigrad_core::array::rows::Rows;
use oxigrad_core::error::{Error, Result};
use oxigrad_core::exec::{self, Batch, Leaf};
use oxigrad_core::kernel::Kernel;
use oxigrad_core::noise::noise_key;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyTupleMethods};

use crate::arrays::dlpack::first_negated;
use crate::arrays::elementwise::Copying;
use crate::arrays::memory::{Memory, Numbers, Seat};
use crate::arrays::numpy::{Numpy, refuse_meaning};
use crate::arrays::overlap::shared_among;
use crate::arrays::torch::Changed;
use crate::error::{IntoPython, to_python};
use crate::stepper::symbols::Program;
use crate::threads;
use crate::tree::{KeyPath, Replacements};

/// A parameter that the core updates: what it must be, and its slots, whose memory is held.
struct Parameter {
    path: String,
    position: u64,
    dtype: Dtype,
    shape: Vec<usize>,
    slots: Vec<Slot>,
    /// The slots that are one number each.
    numbers: Vec<Slot>,
    /// Whether the program takes a factor for each slot, after the slots.
    catches_up: bool,
    /// Whether halves are rounded stochastically.
    stochastic: bool,
    /// Which program updates it, with which set of scalars.
    program: usize,
    set: usize,
}

/// Where the slots of all parameters lie.
fn seats(parameters: &[Parameter], numpy: &Numpy, py: Python<'_>) -> Vec<(Py<PyAny>, Seat)> {
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
fn tensors(parameters: &[Parameter], py: Python<'_>) -> Vec<Py<PyAny>> {
    let slots = parameters.iter().flat_map(|parameter| parameter.slots.iter().chain(&parameter.numbers));
    slots.flat_map(|slot| slot.numbers.changed()).map(|tensor| tensor.clone_ref(py)).collect()
}

/// A slot that was given, or a part of one: under which name, as what object, and where it was found to lie.
struct Slot {
    name: String,
    stated: Py<PyAny>,
    numbers: Numbers,
}

impl Slot {
    fn new(path: &str, name: String, stated: &Bound<'_, PyAny>) -> PyResult<Self> {
        let what = format!("slot {name}");
        let numbers = Numbers::of(stated)?.ok_or_else(|| to_python(&unexported(path, &what)))?;
        let mut numbers = numbers.map_err(|error| at(path, &what, error)).python()?;
        writable(path, &what, &numbers.buffer).python()?;
        numbers.set_written(stated);
        Ok(Self { name, stated: stated.clone().unbind(), numbers })
    }

    /// A slot of one float64.
    fn number(path: &str, name: String, stated: &Bound<'_, PyAny>) -> PyResult<Self> {
        let slot = Self::new(path, name, stated)?;
        match (slot.numbers.buffer.len(), slot.numbers.buffer.dtype()) {
            (1, Dtype::F64) => Ok(slot),
            (length, dtype) => Err(to_python(&Error::Shape(format!(
                "{path}: the slot {} has {length} elements of {}: expected one number of float64",
                slot.name,
                dtype.name()
            )))),
        }
    }

    /// Whether it lies where it did, which runs no Python.
    #[inline]
    fn lies(&self, numpy: &Numpy, py: Python<'_>) -> bool {
        let (stated, memory) = (self.stated.bind(py), &self.numbers.memory);
        match stated.cast::<PyTuple>() {
            Ok(parts) => parts.iter_borrowed().zip(memory).all(|(part, memory)| memory.is_still_of(numpy, &part)),
            Err(_) => memory[0].is_still_of(numpy, stated),
        }
    }

    /// Looks where it lies now. Returns whether that is elsewhere.
    fn find(&mut self, py: Python<'_>, path: &str) -> PyResult<bool> {
        let found = Self::new(path, self.name.clone(), self.stated.bind(py))?;
        let expected = |numbers: &Numbers| (numbers.memory[0].shape().to_vec(), numbers.buffer.dtype());
        let ((shape, dtype), before) = (expected(&found.numbers), expected(&self.numbers));
        let name = &self.name;
        if shape != before.0 {
            let (found, expected) = (tuple(&shape), tuple(&before.0));
            let text = format!("{path}: the slot {name} has shape {found}, it had {expected}");
            return Err(to_python(&Error::Shape(text)));
        }
        if dtype != before.1 {
            let (found, expected) = (dtype.name(), before.1.name());
            let text = format!("{path}: the slot {name} has dtype {found}, it had {expected}");
            return Err(to_python(&Error::Dtype(text)));
        }
        let has_moved = found.numbers.buffer != self.numbers.buffer;
        *self = found;
        Ok(has_moved)
    }

    /// Whether Python may have run to find it.
    fn is_after_python(&self) -> bool {
        self.numbers.memory.iter().any(Memory::is_after_python)
    }

    /// Whether Python may have run to export it.
    fn is_by_python(&self) -> bool {
        self.numbers.memory.iter().any(Memory::is_by_python)
    }

    /// The number that is there.
    fn read(&self) -> f64 {
        // SAFETY: `number` saw one float64, and `look` that it still lies there, since when no Python has run.
        unsafe { self.numbers.buffer.pointer().cast::<f64>().read_unaligned() }
    }

    fn write(&self, value: f64) {
        // SAFETY: as above, and that it may be written.
        unsafe { self.numbers.buffer.pointer().cast::<f64>().write_unaligned(value) }
    }
}

/// What Python states of a parameter: path, position, array, slots by name (those of eight bits as tuples of codes and scales),
/// slots of one number, whether slots catch up, whether halves are rounded stochastically, number of its program and of its set of
/// scalars.
type Stated<'py> = (String, u64, Bound<'py, PyAny>, Vec<Named<'py>>, Vec<Named<'py>>, bool, bool, usize, usize);

/// A slot with its name.
type Named<'py> = (String, Bound<'py, PyAny>);

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
    /// Where the slots lay, those of all parameters in a row.
    seats: Vec<(Py<PyAny>, Seat)>,
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
    /// How far the step is that is under way, and in which process it began.
    phase: AtomicU8,
    process: AtomicU32,
    /// Whether a step was counted that the optimizer has not observed yet.
    owed: AtomicBool,
}

/// The phases of a step: none is under way, all is checked, arrays are written; or one ended in a panic while it wrote.
const IDLE: u8 = 0;
const CHECKING: u8 = 1;
const WRITING: u8 = 2;
const BROKEN: u8 = 3;

/// The most steps that can be counted, and that a state can have.
pub const MOST: u64 = i64::MAX.cast_unsigned();

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
    fn set_count(&self, count: u64) -> PyResult<()> {
        self.count.store(countable(count)?, Ordering::Relaxed);
        Ok(())
    }

    /// How many gradients have been accumulated since the last step.
    #[getter]
    fn micro(&self) -> u64 {
        self.micro.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_micro(&self, micro: u64) -> PyResult<()> {
        self.micro.store(countable(micro)?, Ordering::Relaxed);
        Ok(())
    }

    /// Puts `values` into `attributes`, where a step was counted since the last call.
    fn observe(&self, attributes: &Bound<'_, PyDict>, values: &Bound<'_, PyDict>) -> PyResult<()> {
        if self.owed.swap(false, Ordering::Relaxed) { attributes.update(values.as_mapping()) } else { Ok(()) }
    }

    /// Raises `StateError` where slots and counts are not those of a whole number of steps: while a step writes, or after
    /// one that ended while it did.
    fn check_whole(&self) -> PyResult<()> {
        match self.phase.load(Ordering::Relaxed) {
            WRITING | BROKEN => Err(to_python(&self.halted())),
            _ => Ok(()),
        }
    }

    /// States the parameters in host memory; the slots' memory is held from now on.
    fn prepare(&self, py: Python<'_>, parameters: Vec<Stated<'_>>) -> PyResult<()> {
        self.check_idle()?;
        let parameters: Vec<Parameter> = parameters.into_iter().map(prepare).collect::<PyResult<_>>()?;
        let mut starts = vec![0];
        starts.extend(parameters.iter().scan(0, |end, parameter| {
            *end += 2 + parameter.slots.len() * (1 + usize::from(parameter.catches_up));
            Some(*end)
        }));
        let (seats, tensors) = (seats(&parameters, known_numpy(py)?, py), tensors(&parameters, py));
        let prepared = Prepared { parameters, starts, tensors, seats, ..Prepared::default() };
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
        let mut turn = self.begin()?;
        if !replacements.is_empty() {
            self.phase.store(WRITING, Ordering::Relaxed);
        }
        // Assigning to containers is all that may run the user's code and raise, and all that can be undone.
        let replaced = Replacements::new(&model, &replacements)?;
        let mut changed = Changed::default();
        let update = |changed: &mut Changed| {
            let step = self.count() + 1;
            let (prepared, phase) = (&mut turn.prepared, &self.phase);
            let done = programs.is_empty()
                || prepared.update(py, &programs, seed, step, written, gradients, &touched, phase, changed)?;
            if done {
                self.phase.store(WRITING, Ordering::Relaxed);
            }
            Ok(done)
        };
        let done = match write(py, update, &assignments, &copies, &mut changed) {
            Ok(true) => {
                if holds {
                    self.micro.fetch_add(1, Ordering::Relaxed);
                } else {
                    self.micro.store(0, Ordering::Relaxed);
                    self.count.fetch_add(1, Ordering::Relaxed);
                }
                self.owed.store(true, Ordering::Relaxed);
                Ok(Some(replaced.tree))
            }
            Ok(false) => replaced.put_back().map(|()| None),
            Err(error) => Err(replaced.after(error)),
        };
        drop(turn); // since telling PyTorch runs Python, which may look at the step, or take another
        let counted = changed.count(py);
        let done = done?;
        counted.map(|()| done)
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
        let replaced = Replacements::new(&model, &replacements)?;
        let mut changed = Changed::default();
        let done = match write(py, |_| Ok(true), &assignments, &copies, &mut changed) {
            Ok(_) => Ok(replaced.tree),
            Err(error) => Err(replaced.after(error)),
        };
        let counted = changed.count(py);
        let done = done?;
        counted.map(|()| done)
    }
}

/// A holder, and what of it is to be what.
type Assignment<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// All checks, then an update, which says whether it was made, then, if it was, copies and assignments, which cannot fail. Adds
/// the tensors that have `changed`.
fn write(
    py: Python<'_>,
    update: impl FnOnce(&mut Changed) -> PyResult<bool>,
    assignments: &[Assignment<'_>],
    copies: &[(Bound<'_, PyAny>, Bound<'_, PyAny>)],
    changed: &mut Changed,
) -> PyResult<bool> {
    let copies: Vec<Copying> = copies.iter().map(|(from, to)| Copying::new(from, to)).collect::<PyResult<_>>()?;
    assignments.iter().try_for_each(|(holder, ..)| assignable(holder))?;
    if !update(changed)? {
        return Ok(false);
    }
    copies.into_iter().try_for_each(|copying| copying.run(py, changed))?;
    for (holder, key, value) in assignments {
        match holder.cast::<PyDict>() {
            Ok(slots) => slots.set_item(key, value)?, // not as the user assigns them, with checks and a copy
            Err(_) => holder.set_item(key, value)?,
        }
    }
    Ok(true)
}

/// Refuses holders whose items may not be assigned to: a dict's always may, an array's where it can be written.
fn assignable(holder: &Bound<'_, PyAny>) -> PyResult<()> {
    if holder.is_instance_of::<PyDict>() {
        return Ok(());
    }
    let fields = Numpy::get(holder.py()).and_then(|numpy| numpy.fields(holder));
    if fields.is_some_and(|fields| fields.is_writable()) {
        return Ok(());
    }
    Err(to_python(&Error::Memory("what remembers the steps is no array of NumPy's that can be written".into())))
}

/// A count, or `StateError` where it is too large for one.
fn countable(count: u64) -> PyResult<u64> {
    if count <= MOST {
        return Ok(count);
    }
    Err(to_python(&Error::State(format!("a count of steps is {count}: expected at most {MOST}"))))
}

/// A step under way. What is prepared is taken out, so that no lock is held while Python may run.
struct Turn<'a> {
    stepper: &'a Stepper,
    prepared: Prepared,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let is_broken = std::thread::panicking() && self.stepper.phase.load(Ordering::Relaxed) == WRITING;
        let prepared = std::mem::take(&mut self.prepared);
        let before = std::mem::replace(&mut *self.stepper.lock(), prepared);
        self.stepper.phase.store(if is_broken { BROKEN } else { IDLE }, Ordering::Relaxed);
        drop(before); // after the lock
    }
}

impl Stepper {
    fn lock(&self) -> MutexGuard<'_, Prepared> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a step; `StateError` where one is under way, or no further one can be counted.
    fn begin(&self) -> PyResult<Turn<'_>> {
        self.check_idle()?;
        if self.count() >= MOST || self.micro() >= MOST {
            return Err(to_python(&Error::State(format!(
                "{MOST} steps have been taken, which is as many as are counted"
            ))));
        }
        self.phase.store(CHECKING, Ordering::Relaxed);
        self.process.store(threads::process(), Ordering::Relaxed);
        Ok(Turn { stepper: self, prepared: std::mem::take(&mut *self.lock()) })
    }

    fn check_idle(&self) -> PyResult<()> {
        match self.phase.load(Ordering::Relaxed) {
            IDLE => Ok(()),
            // It was under way in another thread of the parent process, and had written nothing.
            CHECKING if self.is_forked() => {
                self.phase.store(IDLE, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(to_python(&self.halted())),
        }
    }

    /// Whether the step that is under way is so in the parent of this process.
    fn is_forked(&self) -> bool {
        self.process.load(Ordering::Relaxed) != threads::process()
    }

    /// Why there can be no step now.
    fn halted(&self) -> Error {
        let half = "parameters and slots may be those of half a step: load a state, and the parameters with it";
        Error::State(match self.phase.load(Ordering::Relaxed) {
            BROKEN => format!("a step of this optimizer ended in an internal error; {half}"),
            WRITING if self.is_forked() => {
                format!("this process was forked while another thread took a step of this optimizer; {half}")
            }
            _ => "another step of this optimizer is under way".into(),
        })
    }
}

fn known_numpy(py: Python<'_>) -> PyResult<&Numpy> {
    Numpy::get(py).ok_or_else(|| PyImportError::new_err("NumPy cannot be used"))
}

fn prepare(stated: Stated<'_>) -> PyResult<Parameter> {
    let (path, position, array, slots, numbers, catches_up, stochastic, program, set) = stated;
    let parameter = Memory::of(&array)?.ok_or_else(|| to_python(&unexported(&path, "parameter")))?;
    let dtype = parameter.floating().map_err(|error| at(&path, "parameter", error)).python()?.dtype();
    let slots = slots.into_iter().map(|(name, stated)| Slot::new(&path, name, &stated)).collect::<PyResult<_>>()?;
    let numbers = numbers.into_iter().map(|(name, stated)| Slot::number(&path, name, &stated));
    let numbers = numbers.collect::<PyResult<_>>()?;
    let shape = parameter.shape().to_vec();
    Ok(Parameter { path, position, dtype, shape, slots, numbers, catches_up, stochastic, program, set })
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
    fn given<'py>(&self, given: &Given<'_, 'py>, held: &mut Held<'py>) -> PyResult<[Buffer; 2]> {
        if let Some(plain) = self.plain(given) {
            return Ok(plain);
        }
        let [(gradient_memory, gradient), (memory, own)] = self.check(given)?;
        held.extend([(given.g.clone(), gradient_memory), (given.p.clone(), memory)]);
        Ok([gradient, own])
    }

    /// Looks whether the slots still lie where they did, and where those lie now that do not.
    fn look(&mut self, numpy: &Numpy, py: Python<'_>, moves: &mut Moves) -> PyResult<()> {
        for slot in self.slots.iter_mut().chain(&mut self.numbers) {
            if !slot.lies(numpy, py) {
                moves.moved |= slot.find(py, &self.path)?;
                moves.python |= slot.is_after_python();
            }
        }
        Ok(())
    }

    /// Adds the buffers of the gradient, the parameter and its slots, and what holds their memory.
    fn gather<'py>(&self, given: &Given<'_, 'py>, buffers: &mut Vec<Buffer>, held: &mut Held<'py>) -> PyResult<()> {
        buffers.extend(self.given(given, held)?);
        let slots = self.slots.iter().zip(1..);
        buffers.extend(slots.map(|(slot, number)| slot.numbers.buffer.clone().with_rounding(self.rounding(number))));
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
        refuse_meaning(object, || format!("{}: the {what}", self.path))?;
        if let Some(memory) = Memory::of_seen(object)? {
            return Ok(memory);
        }
        if object.hasattr("dtype")? {
            return Err(to_python(&unexported(&self.path, what)));
        }
        let (path, found) = (&self.path, object.get_type().name()?);
        Err(to_python(&Error::Structure(format!("{path}: the {what} is missing: found {found}"))))
    }
}

/// What holds the memory of arrays during a step, with the arrays.
type Held<'py> = Vec<(Bound<'py, PyAny>, Memory)>;

/// What a look at the slots came to: whether some lie elsewhere, and whether Python ran.
#[derive(Default)]
struct Moves {
    moved: bool,
    python: bool,
}

fn moved(path: &str) -> PyErr {
    to_python(&Error::Memory(format!(
        "{path}: its memory was moved while the step was being checked, by what was called to export another array"
    )))
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
        phase: &AtomicU8,
        changed: &mut Changed,
    ) -> PyResult<bool> {
        self.check_places(programs, written.len(), gradients.len()).python()?;
        let numpy = known_numpy(py)?;
        // First, since this runs Python, or lets other threads run.
        self.refuse_negated(written, gradients)?;
        let mut held = Vec::new();
        let mut moves = self.look(numpy, py)?;
        // Put back when all is in order.
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
        // written is writable and overlaps nothing else, and the kernels were checked for these buffers: just now, or in
        // an earlier step, when all of them were the same.
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

    /// Refuses tensors of PyTorch's whose numbers are minus those in their memory.
    fn refuse_negated(&self, written: &Bound<'_, PyTuple>, gradients: &Bound<'_, PyTuple>) -> PyResult<()> {
        for (what, arrays) in [("parameter", written), ("gradient", gradients)] {
            if let Some(at) = first_negated(arrays.iter_borrowed())? {
                return Err(to_python(&unexported(&self.parameters[at].path, what)));
            }
        }
        Ok(())
    }

    /// Looks whether slots still lie where they did, and where those lie now that do not.
    fn look(&mut self, numpy: &Numpy, py: Python<'_>) -> PyResult<Moves> {
        let mut moves = Moves::default();
        if self.seats.iter().all(|(object, seat)| seat.lies(numpy, object.bind(py))) {
            return Ok(moves);
        }
        let looked = self.parameters.iter_mut().try_for_each(|parameter| parameter.look(numpy, py, &mut moves));
        if moves.moved {
            // Also where the step is refused for what another slot is: the next one sees no move any more.
            self.seen = Seen::default();
            self.seats = seats(&self.parameters, numpy, py);
            self.tensors = tensors(&self.parameters, py);
        }
        looked.map(|()| moves)
    }

    /// Looks whether gradients and parameters still lie where they did, and puts other buffers in the place of those that
    /// do not. Returns whether there were any.
    fn renew<'py>(
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
    fn gather<'py>(
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
            return Err(to_python(&Error::Structure("what is touched is not what was prepared".into())));
        }
        Ok(buffers)
    }

    /// The buffers of a parameter: gradient, parameter, slots, factors of slots.
    fn row<'a>(&self, buffers: &'a [Buffer], at: usize) -> &'a [Buffer] {
        &buffers[self.starts[at]..self.starts[at + 1]]
    }

    /// What is written of each parameter, where that is not all of it and of its slots for every parameter.
    fn chosen(&self, programs: &Programs, buffers: &[Buffer]) -> Result<Vec<Vec<Buffer>>> {
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

    /// That programs, sets of scalars and arrays are as many as the parameters need.
    fn check_places(&self, programs: &Programs, written: usize, gradients: usize) -> Result<()> {
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

    /// That no array was moved by what Python ran since it was found.
    fn check_unmoved(
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
        let is_kept = |(object, memory): &(Bound<'_, PyAny>, Memory)| {
            memory.is_by_python() || memory.is_still_of(numpy, object) || !memory.can_be_seen(object)
        };
        if held.iter().all(is_kept) { Ok(()) } else { Err(moved("an array")) }
    }

    /// `AliasError` where memory that is written is that of another array. Returns whether Python was asked.
    fn refuse_overlap(
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
                // The factors are made for this step, and nobody else's.
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
                self.parameters[owner].memory(&array, "array")?.view(py)
            }
            (owner, slot) => {
                self.parameters[owner].slots[slot - 2].numbers.memory[usize::from(at >= buffers.len())].view(py)
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
