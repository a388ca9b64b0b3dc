//! The function that XLA calls: it checks the call, and runs its kernels in place. One of the files that touch foreign
//! memory.

use std::ffi::{CStr, CString, c_int};
use std::mem::size_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use oxigrad_core::array::buffer::{Buffer, Rounding};
use oxigrad_core::exec::{self, Batch, Leaf};
use oxigrad_core::noise::noise_key;
use pyo3::ffi::PyCapsule_New;
use pyo3::prelude::*;

use super::abi::{self, Api, CallFrame, ErrorArguments, Metadata, Structure};
use super::call::{Call, CallLeaf, CallProgram};
use super::frame::{Frame, Operand, Result, metadata, structure};
use crate::threads;

/// The function that runs `xla_call`s, in a capsule as JAX takes it.
#[pyfunction]
pub fn xla_handler(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let address = handle as unsafe extern "C" fn(*const CallFrame) -> *mut abi::Error;
    // SAFETY: the address of a function lives as long as the process. The capsule has no name, since JAX asks for none.
    let capsule = unsafe { PyCapsule_New(address as *mut _, ptr::null(), None) };
    // SAFETY: a new reference, or null and an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }
}

/// Runs a call, or states the version; the error, or null.
///
/// # Safety
/// What the frame points at is as XLA's C API says, but for what is checked: see [`Frame::new`].
unsafe extern "C" fn handle(frame: *const CallFrame) -> *mut abi::Error {
    // SAFETY: the caller's promise.
    let (api, done) = unsafe {
        // Without the table of functions there is nobody to tell of an error.
        let Ok(frame) = structure(frame, "a call") else { return ptr::null_mut() };
        match metadata(frame) {
            Ok(Some(found)) => return answer(frame, found.metadata),
            Ok(None) => {}
            Err(_) => return ptr::null_mut(),
        }
        let Ok(api) = structure(frame.api, "the table of functions") else { return ptr::null_mut() };
        (api, catch_unwind(AssertUnwindSafe(|| Frame::new(frame, api).and_then(|frame| execute(&frame)))))
    };
    let (code, message) = match done {
        Ok(Ok(())) => return ptr::null_mut(),
        Ok(Err(message)) => (abi::INVALID_ARGUMENT, message),
        Err(_) => (abi::INTERNAL, "a mistake in oxigrad itself: please report it".into()),
    };
    let message = CString::new(format!("oxigrad: {message}").replace('\0', "?")).unwrap_or_default();
    // SAFETY: the table is XLA's.
    unsafe { error(api, code, &message) }
}

/// States the version. Where the caller has another minor version of the same major one, the handler is of that too,
/// since the fields that are used are the same.
///
/// # Safety
/// As [`handle`].
unsafe fn answer(frame: &CallFrame, metadata: *mut Metadata) -> *mut abi::Error {
    // SAFETY: the caller's promise.
    unsafe {
        if structure(metadata, "metadata").is_err() {
            return ptr::null_mut();
        }
        let api = structure(frame.api, "the table of functions").ok().map(|api| &api.version);
        let same = api.filter(|version| version.major == abi::VERSION.0);
        (*metadata).version.major = abi::VERSION.0;
        (*metadata).version.minor = same.map_or(abi::VERSION.1, |version| version.minor);
        (*metadata).traits = 0;
    }
    ptr::null_mut()
}

/// # Safety
/// The table is XLA's.
unsafe fn error(api: &Api, code: c_int, message: &CStr) -> *mut abi::Error {
    let Some(create) = api.create_error else { return ptr::null_mut() };
    let (size, extensions, message) = (ErrorArguments::SIZE, ptr::null(), message.as_ptr());
    let mut arguments = ErrorArguments { size, extensions, message, code };
    // SAFETY: as its declaration asks; it copies the message.
    unsafe { create(&raw mut arguments) }
}

/// The operands and results of a leaf.
struct Place {
    /// The gradient, the parameter, then the slots.
    inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
    /// The numbers before the step, and where they are put after it.
    numbers: Vec<(f64, Operand)>,
}

/// Runs a call.
///
/// # Safety
/// The operands are readable and the results writable, and nobody else writes them meanwhile; no result overlaps
/// another array, but that operand that it is an alias of.
unsafe fn execute(frame: &Frame) -> Result<()> {
    let call = Call::of(frame.string("call")?)?;
    // SAFETY: the caller's promise.
    let (scalars, places) = unsafe { (scalars(frame, &call)?, Reader::new(frame, &call).places()?) };
    let step = |leaf: &CallLeaf| count_of(scalars[leaf.scalars]);
    let mut batches = Vec::with_capacity(call.programs.len());
    for (number, program) in call.programs.iter().enumerate() {
        let own = || call.leaves.iter().zip(&places.leaves).filter(|(leaf, _)| leaf.program == number);
        let (mut sets, mut starts) = (Vec::new(), Vec::new());
        let mut leaves = Vec::with_capacity(call.leaves.len());
        for (leaf, place) in own() {
            let known = starts.iter().position(|start| *start == leaf.scalars).filter(|_| program.numbers == 0);
            let scalar_set = known.unwrap_or(starts.len());
            if known.is_none() {
                starts.push(leaf.scalars);
                sets.extend_from_slice(&scalars[leaf.scalars..][..program.scalars()]);
                let numbers = place.numbers.iter().map(|(before, _)| *before);
                sets.extend(numbers.take(program.kernel.scalar_inputs() - program.scalars()));
            }
            leaves.push(Leaf {
                inputs: &place.inputs,
                outputs: &place.outputs,
                length: place.inputs[0].len(),
                dtype: place.inputs[1].dtype().computed_in(),
                scalar_set,
                noise_key: noise_key(call.seed, step(leaf), leaf.position),
            });
        }
        if !leaves.is_empty() {
            batches.push((number, sets, leaves));
        }
    }
    let run: Vec<Batch> = batches
        .iter()
        .map(|(number, scalars, leaves)| Batch { kernel: &call.programs[*number].kernel, scalars, leaves })
        .collect();
    let pool = threads::pool();
    // SAFETY: the caller's promise; what is to be checked is checked by `run`.
    let done = unsafe { exec::run(&run, threads::isa(), pool.as_deref()) }.map_err(|error| error.to_string())?;
    // SAFETY: `places` has checked them.
    unsafe {
        match &done {
            Some(results) => {
                for ((number, ..), results) in batches.iter().zip(results) {
                    let own = call.leaves.iter().zip(&places.leaves).filter(|(leaf, _)| leaf.program == *number);
                    let numbers = own.flat_map(|(_, place)| &place.numbers);
                    numbers.zip(results).for_each(|((_, after), value)| after.set_number(*value));
                }
            }
            None => places.keep(&call),
        }
        if let Some(done_to) = places.done {
            done_to.data.write(u8::from(done.is_some()));
        }
    }
    Ok(())
}

/// The count that a scalar is.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of steps, as a float")]
fn count_of(scalar: f64) -> u64 {
    scalar as u64
}

/// The scalars of a call, with those that come as operands.
///
/// # Safety
/// The operands are readable.
unsafe fn scalars(frame: &Frame, call: &Call) -> Result<Vec<f64>> {
    let mut scalars = call.scalars.clone();
    for (scalar, operand) in &call.traced {
        // SAFETY: the caller's promise.
        scalars[*scalar] =
            unsafe { frame.operand(*operand)?.number() }.map_err(|e| format!("operand {operand}: {e}"))?;
    }
    Ok(scalars)
}

/// The arrays of a call.
struct Places {
    leaves: Vec<Place>,
    /// The result that says whether the step was taken, and not stopped by a guard.
    done: Option<Operand>,
}

impl Places {
    /// Makes the results of a step that was stopped the same as the operands.
    ///
    /// # Safety
    /// As [`execute`].
    unsafe fn keep(&self, call: &Call) {
        for (leaf, place) in call.leaves.iter().zip(&self.leaves) {
            for (at, output) in call.programs[leaf.program].written.iter().zip(&place.outputs) {
                let input = &place.inputs[*at];
                let bytes = output.len() * output.dtype().size();
                // SAFETY: both have so many bytes, as `run` has checked: they are the same array or apart.
                unsafe { ptr::copy(input.pointer(), output.pointer(), bytes) };
            }
            for (before, after) in &place.numbers {
                // SAFETY: it was checked when it was read.
                unsafe { after.set_number(*before) };
            }
        }
    }
}

/// Reads operands and results in their order.
///
/// Operands are the scalars; then, for each leaf, the gradient, the parameter, the slots that are arrays, and those
/// that are numbers. Results are those that the kernel writes and the numbers, in the same order; last, if a program has
/// a guard, whether the step was taken. Where slots are `flat`, those of all leaves come as one array each, after the
/// leaves.
struct Reader<'a> {
    frame: &'a Frame<'a>,
    call: &'a Call,
    operand: usize,
    result: usize,
    /// The flat slots before the step and after it, and the first element of the next leaf.
    slots: Vec<(Operand, Option<Operand>)>,
    numbers: Vec<(Operand, Operand)>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(frame: &'a Frame<'a>, call: &'a Call) -> Self {
        Self { frame, call, operand: call.numbers, result: 0, slots: Vec::new(), numbers: Vec::new(), at: 0 }
    }

    /// All of them.
    ///
    /// # Safety
    /// The operands are readable.
    unsafe fn places(mut self) -> Result<Places> {
        let call = self.call;
        if call.flat && !call.leaves.is_empty() {
            self.flat_slots()?;
        }
        let mut leaves = Vec::with_capacity(call.leaves.len());
        for (number, leaf) in call.leaves.iter().enumerate() {
            // SAFETY: the caller's promise.
            let place = unsafe { self.place(leaf, number) };
            leaves.push(place.map_err(|error| format!("leaf {number}: {error}"))?);
        }
        if let Some((before, _)) = self.slots.iter().find(|(before, _)| before.length != self.at) {
            return Err(format!("a slot of {} elements, of leaves of {}", before.length, self.at));
        }
        if call.flat {
            (self.operand, self.result) = self.ends();
        }
        let done =
            if call.programs.iter().any(|program| program.is_guarded) { Some(self.next_result()?) } else { None };
        if done.is_some_and(|done| done.length != 1 || done.dtype.size() != size_of::<u8>()) {
            return Err("whether the step was taken is one Boolean number".into());
        }
        if (self.operand, self.result) != self.frame.counts() {
            let (operands, results) = self.frame.counts();
            let (expected, wanted) = (self.operand, self.result);
            return Err(format!("{operands} operands and {results} results: expected {expected} and {wanted}"));
        }
        Ok(Places { leaves, done })
    }

    fn next_operand(&mut self) -> Result<Operand> {
        self.operand += 1;
        self.frame.operand(self.operand - 1)
    }

    fn next_result(&mut self) -> Result<Operand> {
        self.result += 1;
        self.frame.result(self.result - 1)
    }

    /// Whether the kernel of the flat slots writes one of the arrays of a leaf.
    fn writes(&self, place: usize) -> bool {
        self.call.programs[0].written.contains(&place)
    }

    /// The first operand and the first result that are flat slots.
    fn first_flat(&self) -> (usize, usize) {
        let leaves = self.call.leaves.len();
        let written = usize::from(self.writes(0)) + usize::from(self.writes(1));
        (self.call.numbers + 2 * leaves, written * leaves)
    }

    /// The numbers of operands and results up to the end of the flat slots.
    fn ends(&self) -> (usize, usize) {
        let (operands, results) = self.first_flat();
        let (slots, numbers) = (self.slots.len(), self.numbers.len());
        let written = self.slots.iter().filter(|(_, after)| after.is_some()).count();
        (operands + slots + numbers, results + written + numbers)
    }

    /// Reads the slots that all leaves share.
    fn flat_slots(&mut self) -> Result<()> {
        let program = &self.call.programs[0];
        let (mut operand, mut result) = self.first_flat();
        for slot in 0..program.slots + program.numbers {
            let is_number = slot >= program.slots;
            let before = self.frame.operand(operand)?;
            operand += 1;
            let after = if is_number || self.writes(2 + slot) {
                result += 1;
                Some(self.frame.result(result - 1)?)
            } else {
                None
            };
            if let Some(after) = after.filter(|after| (after.length, after.dtype) != (before.length, before.dtype)) {
                return Err(format!("slot {slot} has {} elements, and then {}", before.length, after.length));
            }
            match after {
                Some(after) if is_number => self.numbers.push((before, after)),
                _ => self.slots.push((before, after)),
            }
        }
        Ok(())
    }

    /// The arrays of one leaf.
    ///
    /// # Safety
    /// The operands are readable.
    unsafe fn place(&mut self, leaf: &CallLeaf, number: usize) -> Result<Place> {
        let program = &self.call.programs[leaf.program];
        let (gradient, parameter) = (self.next_operand()?, self.next_operand()?);
        let mut inputs = vec![gradient, parameter];
        let length = parameter.length;
        if self.call.flat {
            for (before, _) in &self.slots {
                inputs.push(before.part(self.at, length)?);
            }
        } else {
            for _ in 0..program.slots {
                inputs.push(self.next_operand()?);
            }
        }
        if !parameter.dtype.is_floating() || !gradient.dtype.is_floating() {
            return Err(format!("dtypes {} and {}", parameter.dtype.name(), gradient.dtype.name()));
        }
        let outputs = self.outputs(leaf, program, &inputs)?;
        // SAFETY: the caller's promise.
        let numbers = unsafe { self.numbers_of(program, number)? };
        self.at += length;
        let inputs = inputs.iter().enumerate().map(|(at, input)| input.buffer(program.written.contains(&at)));
        Ok(Place { inputs: inputs.collect::<Result<_>>()?, outputs, numbers })
    }

    /// The results of the arrays of a leaf.
    fn outputs(&mut self, leaf: &CallLeaf, program: &CallProgram, inputs: &[Operand]) -> Result<Vec<Buffer>> {
        let mut outputs = Vec::with_capacity(program.written.len());
        for &place in &program.written {
            let before = inputs[place];
            let flat = if self.call.flat && place >= 2 { self.slots[place - 2].1 } else { None };
            let after = match flat {
                Some(all) => all.part(self.at, before.length)?,
                None => self.next_result()?,
            };
            if (after.length, after.dtype) != (before.length, before.dtype) {
                let (length, dtype) = (after.length, after.dtype.name());
                return Err(format!(
                    "a result of {length} elements of {dtype}, for {} of {}",
                    before.length,
                    before.dtype.name()
                ));
            }
            let number = u32::try_from(place).unwrap_or(u32::MAX).saturating_sub(1);
            let rounding = if leaf.stochastic { Rounding::Stochastic(number) } else { Rounding::Nearest };
            outputs.push(after.buffer(true)?.with_rounding(rounding));
        }
        Ok(outputs)
    }

    /// The slots of a leaf that are numbers.
    ///
    /// # Safety
    /// The operands are readable.
    unsafe fn numbers_of(&mut self, program: &CallProgram, leaf: usize) -> Result<Vec<(f64, Operand)>> {
        let mut numbers = Vec::with_capacity(program.numbers);
        for slot in 0..program.numbers {
            let (before, after) = if self.call.flat {
                let (before, after) = self.numbers[slot];
                (before.part(leaf, 1)?, after.part(leaf, 1)?)
            } else {
                (self.next_operand()?, self.next_result()?)
            };
            if !before.is_float() || !after.is_float() {
                return Err(format!("a slot of {} elements of {}", before.length, before.dtype.name()));
            }
            // SAFETY: the caller's promise.
            numbers.push((unsafe { before.number()? }, after));
        }
        Ok(numbers)
    }
}
