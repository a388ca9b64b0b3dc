//! The handler that XLA calls: it checks the call, and runs its kernels in place. One of the files that touch foreign
//! memory.

use std::ffi::{CStr, CString, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use crate::array::buffer::{Buffer, Dtype, Rounding};
use crate::exec::batch::{Batch, Leaf};
use crate::exec::run::run;

use crate::simd::dispatch::Isa;
use crate::simd::noise::noise_key;
use rayon::ThreadPool;

use super::abi::{self, Api, CallFrame, ErrorArguments, Metadata, Structure};
use super::call::{Call, CallLeaf, CallProgram, Calls};
use super::frame::{Frame, Operand, Result, metadata, structure};

/// Runs a call on the instruction set and the threads of `resources`, or states the version; returns the error, or null.
///
/// # Safety
/// The data of the frame is as XLA's C API specifies, except for properties that are checked: see [`Frame::new`].
pub unsafe fn handle(
    frame: *const CallFrame,
    calls: &Calls,
    resources: impl FnOnce() -> (Isa, Option<Arc<ThreadPool>>),
) -> *mut abi::Error {
    // SAFETY: the caller's promise.
    let (api, done) = unsafe {
        // Without the table of functions no error can be created.
        let Ok(frame) = structure(frame, "a call") else { return ptr::null_mut() };
        match metadata(frame) {
            Ok(Some(extension)) => return answer(frame, extension.metadata),
            Ok(None) => {}
            Err(_) => return ptr::null_mut(),
        }
        let Ok(api) = structure(frame.api, "the table of functions") else { return ptr::null_mut() };
        let run = || {
            let frame = Frame::new(frame, api)?;
            execute(&frame, &*calls.get(frame.string("call")?)?, resources())
        };
        (api, catch_unwind(AssertUnwindSafe(run)))
    };
    let (code, message) = match done {
        Ok(Ok(())) => return ptr::null_mut(),
        Ok(Err(message)) => (abi::INVALID_ARGUMENT, message),
        Err(_) => (abi::INTERNAL, "internal error of oxigrad: please report it".into()),
    };
    let message = CString::new(format!("oxigrad: {message}").replace('\0', "?")).unwrap_or_default();
    // SAFETY: the table is XLA's.
    unsafe { error(api, code, &message) }
}

/// Writes the version. For a caller of the same major version, it is that of the caller, since the fields that are
/// used are the same in all minor versions.
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
    // SAFETY: as its declaration requires; it copies the message.
    unsafe { create(&raw mut arguments) }
}

/// The operands and results of a leaf.
struct LeafBuffers {
    /// The gradient, the parameter, then the slots.
    inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
    /// The scalar slots before the step, and the operands that receive them after it.
    numbers: Vec<(f64, Option<Operand>)>,
}

/// The leaves of one program, and their sets of scalars.
struct CallLeaves<'a> {
    program: &'a CallProgram,
    scalars: Vec<f64>,
    leaves: Vec<Leaf<'a>>,
    places: Vec<&'a LeafBuffers>,
}

/// Runs a call.
///
/// # Safety
/// The operands are readable and the results writable, and not written by others meanwhile; no result overlaps
/// another array, except the operand of which it is an alias.
unsafe fn execute(frame: &Frame, call: &Call, (isa, pool): (Isa, Option<Arc<ThreadPool>>)) -> Result<()> {
    // SAFETY: the caller's promise.
    let (scalars, totals, places) =
        unsafe { (scalars(frame, call)?, totals(frame, call)?, Reader::new(frame, call).places()?) };
    let work = work(call, &scalars, &totals, &places)?;
    let batches: Vec<Batch> = work
        .iter()
        .map(|CallLeaves { program, scalars, leaves, .. }| Batch { kernel: &program.kernel, scalars, leaves })
        .collect();
    // SAFETY: the caller's promise; `run` makes the remaining checks.
    let done = unsafe { run(&batches, isa, pool.as_deref()) }.map_err(|error| error.to_string())?;
    // SAFETY: the caller's promise, and `places` has checked them.
    unsafe {
        match &done {
            Some(results) if call.measures => places.put_totals(call, results)?,
            Some(results) => {
                for (work, results) in work.iter().zip(results) {
                    let numbers = work.places.iter().flat_map(|place| &place.numbers);
                    numbers.zip(results).for_each(|((_, after), value)| set(*after, *value));
                }
            }
            None => work.iter().for_each(|work| work.keep()),
        }
        if let Some(done_to) = places.done {
            done_to.data.write(u8::from(done.is_some()));
        }
    }
    Ok(())
}

/// The leaves of each program that has some.
fn work<'a>(call: &'a Call, scalars: &[f64], totals: &[f64], places: &'a CallBuffers) -> Result<Vec<CallLeaves<'a>>> {
    let mut by_program = Vec::with_capacity(call.programs.len());
    for (number, program) in call.programs.iter().enumerate() {
        let mut work = CallLeaves { program, scalars: Vec::new(), leaves: Vec::new(), places: Vec::new() };
        let mut starts = Vec::new();
        for (leaf, place) in call.leaves.iter().zip(&places.leaves).filter(|(leaf, _)| leaf.program == number) {
            let set = &scalars[leaf.scalars..][..program.set];
            let place_of_set = starts.iter().position(|start| *start == leaf.scalars).filter(|_| program.numbers == 0);
            let scalar_set = place_of_set.unwrap_or(starts.len());
            if place_of_set.is_none() {
                starts.push(leaf.scalars);
                let numbers = place.numbers.iter().map(|(before, _)| before);
                let inputs_of_set = set.iter().chain(numbers).chain(totals);
                work.scalars.extend(inputs_of_set.take(program.kernel.scalar_inputs()));
                if work.scalars.len() < starts.len() * program.kernel.scalar_inputs() {
                    return Err(format!("the program takes {} scalars", program.kernel.scalar_inputs()));
                }
            }
            let inputs = &place.inputs;
            work.leaves.push(Leaf {
                inputs,
                outputs: &place.outputs,
                length: inputs[0].len(),
                dtype: inputs.get(1).unwrap_or(&inputs[0]).dtype().computed_in(),
                scalar_set,
                noise_key: noise_key(call.seed, count_of(set[0]), leaf.position),
                first: 0,
            });
            work.places.push(place);
        }
        if !work.leaves.is_empty() {
            by_program.push(work);
        }
    }
    Ok(by_program)
}

impl CallLeaves<'_> {
    /// Copies the operands to the results, for a step that was stopped.
    ///
    /// # Safety
    /// As [`execute`].
    unsafe fn keep(&self) {
        for place in &self.places {
            for (at, output) in self.program.written.iter().zip(&place.outputs) {
                let bytes = output.len() * output.dtype().size();
                // SAFETY: both have this many bytes, as was checked; they are the same array or do not overlap.
                unsafe { ptr::copy(place.inputs[*at].pointer(), output.pointer(), bytes) };
            }
            for (before, after) in &place.numbers {
                // SAFETY: it was checked when it was read.
                unsafe { set(*after, *before) };
            }
        }
    }
}

/// # Safety
/// The operand was checked to be a number, and its memory is writable.
unsafe fn set(number: Option<Operand>, value: f64) {
    if let Some(number) = number {
        // SAFETY: the caller's promise.
        unsafe { number.set_number(value) };
    }
}

/// A scalar as a count.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of steps, as a float")]
fn count_of(scalar: f64) -> u64 {
    scalar as u64
}

/// The scalars of a call, with those that are operands filled in.
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

/// The totals of an earlier call, each as the two halves of its bits, since JAX may have no `f64`.
///
/// # Safety
/// The operands are readable.
unsafe fn totals(frame: &Frame, call: &Call) -> Result<Vec<f64>> {
    let Some(operand) = call.totals else { return Ok(Vec::new()) };
    let halves = halves(frame.operand(operand)?)?;
    // SAFETY: the caller's promise, and they are this many aligned words.
    let word = |at: usize| u64::from(unsafe { halves.address::<u32>().add(at).read() });
    Ok((0..halves.length).step_by(2).map(|at| f64::from_bits(word(at) | (word(at + 1) << 32))).collect())
}

/// The operand, if it is pairs of words.
fn halves(operand: Operand) -> Result<Operand> {
    if operand.dtype == Dtype::U32 && operand.length.is_multiple_of(2) {
        return Ok(operand);
    }
    Err(format!("totals are {} elements of {}", operand.length, operand.dtype.name()))
}

/// The arrays of a call.
struct CallBuffers {
    leaves: Vec<LeafBuffers>,
    /// The result with the totals, of a call that measures.
    totals: Option<Operand>,
    /// The result that tells whether the step was taken, not stopped by a guard.
    done: Option<Operand>,
}

impl CallBuffers {
    /// Writes the totals, which are the same for every leaf.
    ///
    /// # Safety
    /// As [`execute`].
    unsafe fn put_totals(&self, call: &Call, results: &[Vec<f64>]) -> Result<()> {
        let Some(halves) = self.totals else { return Ok(()) };
        let count = call.programs.first().map_or(0, |program| program.kernel.results());
        let totals = results.first().map_or(&[][..], Vec::as_slice);
        if halves.length != 2 * count || totals.len() < count {
            return Err(format!("{count} totals, for {} words", halves.length));
        }
        for (at, total) in totals[..count].iter().enumerate() {
            let bits = total.to_bits();
            // SAFETY: it has two aligned words for each, and the caller promises the rest.
            unsafe {
                halves.address::<u32>().add(2 * at).write(low(bits));
                halves.address::<u32>().add(2 * at + 1).write(low(bits >> 32));
            }
        }
        Ok(())
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
fn low(bits: u64) -> u32 {
    bits as u32
}

/// Reads operands and results in their order.
///
/// Operands are the scalars and totals; then, for each leaf, the gradient, the parameter, the slots that are arrays, and
/// those that are numbers. Results are those that the kernel writes and the numbers, in the same order; last, if a
/// program has a guard, whether the step was taken. The totals are the only result of a call that measures.
struct Reader<'a> {
    frame: &'a Frame<'a>,
    call: &'a Call,
    operand: usize,
    result: usize,
}

impl<'a> Reader<'a> {
    fn new(frame: &'a Frame<'a>, call: &'a Call) -> Self {
        Self { frame, call, operand: call.numbers, result: 0 }
    }

    /// Reads all of them.
    ///
    /// # Safety
    /// The operands are readable.
    unsafe fn places(mut self) -> Result<CallBuffers> {
        let call = self.call;
        let mut leaves = Vec::with_capacity(call.leaves.len());
        for (number, leaf) in call.leaves.iter().enumerate() {
            // SAFETY: the caller's promise.
            let place = unsafe { self.place(leaf) };
            leaves.push(place.map_err(|error| format!("leaf {number}: {error}"))?);
        }
        let totals = if call.measures { Some(halves(self.next_result()?)?) } else { None };
        let is_guarded = !call.measures && call.programs.iter().any(|program| program.is_guarded);
        let done = if is_guarded { Some(self.next_result()?) } else { None };
        if done.is_some_and(|done| done.length != 1 || done.dtype != Dtype::Bool) {
            return Err("the last result, whether the step was taken, must be one Boolean".into());
        }
        if (self.operand, self.result) != self.frame.counts() {
            let (operands, results) = self.frame.counts();
            let (expected, wanted) = (self.operand, self.result);
            return Err(format!("{operands} operands and {results} results: expected {expected} and {wanted}"));
        }
        Ok(CallBuffers { leaves, totals, done })
    }

    fn next_operand(&mut self) -> Result<Operand> {
        self.operand += 1;
        self.frame.operand(self.operand - 1)
    }

    fn next_result(&mut self) -> Result<Operand> {
        self.result += 1;
        self.frame.result(self.result - 1)
    }

    /// The arrays of one leaf.
    ///
    /// # Safety
    /// The operands are readable.
    unsafe fn place(&mut self, leaf: &CallLeaf) -> Result<LeafBuffers> {
        let program = &self.call.programs[leaf.program];
        let inputs = (0..program.arrays).map(|_| self.next_operand()).collect::<Result<Vec<_>>>()?;
        if let Some(other) = inputs.iter().find(|input| !input.dtype.is_floating()) {
            return Err(format!("an array of {}: expected one of floating-point dtype", other.dtype.name()));
        }
        let outputs = self.outputs(leaf, program, &inputs)?;
        // SAFETY: the caller's promise.
        let numbers = unsafe { self.numbers_of(program)? };
        let inputs = inputs.iter().enumerate().map(|(at, input)| input.buffer(program.written.contains(&at)));
        Ok(LeafBuffers { inputs: inputs.collect::<Result<_>>()?, outputs, numbers })
    }

    /// The results of the arrays of a leaf.
    fn outputs(&mut self, leaf: &CallLeaf, program: &CallProgram, inputs: &[Operand]) -> Result<Vec<Buffer>> {
        let mut outputs = Vec::with_capacity(program.written.len());
        for &place in &program.written {
            let before = inputs[place];
            let after = self.next_result()?;
            same(&before, &after)?;
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
    unsafe fn numbers_of(&mut self, program: &CallProgram) -> Result<Vec<(f64, Option<Operand>)>> {
        let mut numbers = Vec::with_capacity(program.numbers);
        for _ in 0..program.numbers {
            let before = self.next_operand()?;
            let after = if self.call.measures { None } else { Some(self.next_result()?) };
            if let Some(after) = &after {
                same(&before, after)?;
            }
            if !before.is_float() {
                return Err(format!("a slot of {} elements of {}", before.length, before.dtype.name()));
            }
            // SAFETY: the caller's promise.
            numbers.push((unsafe { before.number()? }, after));
        }
        Ok(numbers)
    }
}

/// Refuses a result that cannot replace an operand.
fn same(before: &Operand, after: &Operand) -> Result<()> {
    if (before.length, before.dtype) == (after.length, after.dtype) {
        return Ok(());
    }
    let ((length, dtype), (wanted, of)) = ((after.length, after.dtype.name()), (before.length, before.dtype.name()));
    Err(format!("a result of {length} elements of {dtype}, for {wanted} of {of}"))
}
