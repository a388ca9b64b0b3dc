//! The interpreter: a block of elements at a time, each fused loop a tight loop over lanes, or all of them as native
//! code. It names no op and no instruction set. One of the files that touch foreign memory.

use super::batch::{CHUNK, Leaf, Part, foreign};
use super::loops::{
    BoundLoop, DOT, Drawn, NUMBERS, PRODUCTS, SQUARED_DIFFERENCES, Summed, accumulates, draws, fill, fold,
};
use super::native::{NativeRun, Sums, is_rounded_apart, lies_ready, native};
use super::prefetch::{self, Prefetch, Stored};
use super::register::{Register, SUMMANDS, Totals};
use super::transfer::{Compute, Transfer};
use crate::array::buffer::{Buffer, Dtype, Layout, Rounding};
use crate::array::quantized;
use crate::kernel::compiled::{Native, Phase, Squares};
use crate::kernel::fuse::{FusedLoop, LoopWork};
use crate::simd::{Element, Lane, Simd, Task};

/// Bytes of one block register: a handful of them fit the first-level cache of any processor.
const BLOCK: usize = 4096;
/// The distance of registers in bytes, so that the same element of two registers is not in the same cache set.
const APART: usize = BLOCK + 192;
/// The size of the widest lane.
const LANE: usize = 64;
/// Elements of a block of native code with staged arrays: few, so that out-of-order execution overlaps consecutive
/// blocks. Codes have a block size of their own.
const NATIVE_BLOCK: usize = 64;
/// Elements of a block of native code with random numbers, which are drawn by a function of their own.
const DRAWN_BLOCK: usize = 512;

const _: () = assert!(
    CHUNK.is_multiple_of(quantized::BLOCK) && (BLOCK / size_of::<f64>()).is_multiple_of(quantized::BLOCK),
    "parts and blocks start where blocks of codes do"
);

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LANE]);

/// The working memory of a thread. It grows to the size that a kernel needs; keep it between calls.
#[derive(Default)]
pub struct Scratch {
    memory: Vec<Line>,
    registers: Vec<Register>,
    loops: Vec<BoundLoop>,
    /// The registers that are staged: blocks that are converted from and to foreign memory.
    staged_inputs: Vec<u16>,
    staged_outputs: Vec<u16>,
    /// The registers that lie in foreign memory.
    direct: Vec<u16>,
    /// The contiguous buffers, which are prefetched.
    prefetched: Vec<Stored>,
    totals: Vec<Totals>,
    /// The phase, scalars and dtype that the registers were laid out for, if all its memory lay ready for native code.
    laid_out: Option<(*const Phase, *const f64, Dtype)>,
    pub(super) values: Vec<f64>,
    pub(super) sums: Vec<f64>,
}

// SAFETY: the pointers in `registers` are set anew at the start of each part and never used after it, and those in
// `laid_out` only compared.
unsafe impl Send for Scratch {}

/// Runs parts on one instruction set; passes on the sum (its number, the chunk, the value) of each chunk. It is the same
/// code for all callers, since it is much.
pub(super) struct Run<'r, 'a> {
    pub parts: &'r mut dyn Iterator<Item = Part<'a>>,
    pub scratch: &'r mut Scratch,
    pub on_sum: &'r mut dyn FnMut(&Part, u16, usize, f64),
}

impl Task for Run<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self) {
        self.scratch.laid_out = None;
        let mut parts = self.parts.peekable();
        while let Some(part) = parts.next() {
            if let Some(next) = parts.peek() {
                prefetch::fetch_first(next);
            }
            if part.leaf.dtype == f32::DTYPE {
                Interpreter { part: &part, scratch: self.scratch }.run::<S::F32>(self.on_sum);
            } else {
                Interpreter { part: &part, scratch: self.scratch }.run::<S::F64>(self.on_sum);
            }
        }
    }
}

struct Interpreter<'a, 'b> {
    part: &'a Part<'b>,
    scratch: &'a mut Scratch,
}

impl Interpreter<'_, '_> {
    #[inline(always)]
    fn run<L: Lane<Element: Compute>>(mut self, on_sum: &mut dyn FnMut(&Part, u16, usize, f64)) {
        if self.part.start >= self.part.end {
            return;
        }
        let staging = if self.is_laid_out::<L>() { self.place() } else { self.lay_out::<L>() };
        let leaf = self.part.leaf;
        let phase = self.part.phase;
        let block = match native::<L>(phase) {
            Some(_) if staging == 0 && !phase.draws.is_empty() => DRAWN_BLOCK,
            Some(native) if staging == 0 && native.squares.is_some() => BLOCK / size_of::<L::Element>(),
            Some(_) if staging == 0 && !phase.sums.is_empty() => CHUNK,
            Some(_) if staging == 0 => self.part.end - self.part.start,
            Some(_) if leaf.inputs.iter().chain(leaf.outputs).any(Buffer::is_quantized) => quantized::BLOCK,
            Some(_) => NATIVE_BLOCK,
            None => BLOCK / size_of::<L::Element>(),
        };
        let mut at = self.part.start;
        while at < self.part.end {
            let length = block.min(self.part.end - at);
            if at.is_multiple_of(CHUNK) {
                self.scratch.totals.fill([0.0; SUMMANDS]);
            }
            self.gather::<L::Element>(at, length);
            self.compute::<L>(at, length, block.min(self.part.end - at - length));
            self.scatter::<L::Element>(at, length);
            self.advance(length);
            at += length;
            if at.is_multiple_of(CHUNK) || at == self.part.end {
                for sum in &self.part.phase.sums {
                    on_sum(self.part, *sum, (at - 1) / CHUNK, fold(&self.scratch.totals[usize::from(*sum)]));
                }
            }
        }
    }

    /// Computes a block by native code.
    #[inline(always)]
    fn compute_native<L: Lane<Element: Compute>>(&mut self, native: &Native, start: usize, length: usize) {
        let Part { kernel, phase, .. } = *self.part;
        for (number, draw) in phase.draws.iter().enumerate() {
            self.draw::<L>(kernel.first_temporary() + number, *draw, start, length);
        }
        match &native.squares {
            None => self.run_native::<L>(native, &phase.sums, length),
            Some(squares) => self.compute_with_squares::<L>(native, squares, length),
        }
    }

    #[inline(always)]
    fn run_native<L: Lane<Element: Compute>>(&mut self, native: &Native, sums: &[u16], length: usize) {
        let Scratch { registers, totals, .. } = &mut *self.scratch;
        let sums = Sums { numbers: sums, totals };
        // SAFETY: `lay_out` gave the registers their places, of which foreign ones are checked memory of `end` elements
        // and others have room for a block; outputs were checked to be apart from inputs or the same. A block starts at
        // a multiple of `SUMMANDS`.
        unsafe { NativeRun::<L>::new(self.part.kernel, native, registers, length, sums) }.call();
    }

    /// Computes a block by native code, and the sums that it has besides: of the gradient before, which an output may
    /// overwrite, and of the old parameter by a copy.
    #[cold]
    #[inline(never)]
    fn compute_with_squares<L: Lane<Element: Compute>>(&mut self, native: &Native, squares: &Squares, length: usize) {
        let numbers = [usize::from(native.inputs[0]), squares.parameter.into(), self.part.kernel.first_output()];
        let [gradient, old, new] = numbers.map(|number| self.scratch.registers[number]);
        let copy = self.scratch.registers[self.scratch.registers.len() - 1];
        let [of_gradient, of_change, of_new] = squares.of;
        self.add_terms::<L, DOT>(of_gradient, [gradient; 2], length);
        if of_change.is_some() {
            let bytes = length * size_of::<L::Element>();
            // SAFETY: registers hold a block, and `lay_out` made the last one for this copy.
            unsafe { copy.pointer.copy_from_nonoverlapping(old.pointer, bytes) };
        }
        self.run_native::<L>(native, &[], length);
        self.add_terms::<L, SQUARED_DIFFERENCES>(of_change, [new, copy], length);
        self.add_terms::<L, DOT>(of_new, [new; 2], length);
    }

    /// Adds terms of the numbers of a block to a sum.
    #[inline(always)]
    fn sum_up<L: Lane<Element: Compute>, const KIND: u8>(&mut self, sum: u16, from: [u16; 2], length: usize) {
        let from = from.map(|register| self.scratch.registers[usize::from(register)]);
        self.add_terms::<L, KIND>(Some(sum), from, length);
    }

    /// Adds terms of the numbers of a block to a sum, if there is one.
    #[inline(always)]
    fn add_terms<L: Lane<Element: Compute>, const KIND: u8>(
        &mut self,
        sum: Option<u16>,
        from: [Register; 2],
        length: usize,
    ) {
        if let Some(sum) = sum {
            let totals = &mut self.scratch.totals[usize::from(sum)];
            // SAFETY: registers that are read hold a block, and the instruction set is the one that this runs on.
            unsafe { accumulates::<L, KIND>()(Summed { from, length, totals }) };
        }
    }

    /// Draws the random numbers of a block.
    #[inline(always)]
    fn draw<L: Lane<Element: Compute>>(&self, register: usize, draw: u32, start: usize, length: usize) {
        let to = self.scratch.registers[register].pointer;
        let Leaf { noise_key: key, first, .. } = *self.part.leaf;
        let function = draws::<L>();
        match self.part.leaf.rows() {
            // SAFETY: a register that is written has room for a block, and the instruction set is the one that this
            // runs on.
            None => unsafe { function(Drawn { to, key, draw, start: first + start, length }) },
            Some(rows) => rows.runs(start, length, |start, place, length| {
                let to = to.wrapping_add(place * size_of::<L::Element>());
                // SAFETY: as above, and the places of all runs lie in it.
                unsafe { function(Drawn { to, key, draw, start: first + start, length }) };
            }),
        }
    }

    /// Computes a block, while the memory of the `next` elements after it is prefetched.
    #[inline(always)]
    fn compute<L: Lane<Element: Compute>>(&mut self, start: usize, length: usize, next: usize) {
        let Part { phase, .. } = *self.part;
        if let Some(native) = native::<L>(phase) {
            self.compute_native::<L>(native, start, length);
        } else {
            let mut prefetch = Prefetch::new(&self.scratch.prefetched, start + length..start + length + next);
            for (number, fused) in phase.loops.iter().enumerate() {
                if !self.scratch.prefetched.is_empty() {
                    prefetch.fetch_share(&self.scratch.prefetched, phase.loops.len() - number);
                }
                self.run_loop::<L>(number, fused, start, length);
            }
        }
    }

    /// The key of `Scratch::laid_out`.
    #[inline(always)]
    fn layout<L: Lane<Element: Compute>>(&self) -> (*const Phase, *const f64, Dtype) {
        (std::ptr::from_ref(self.part.phase), self.part.scalars.as_ptr(), L::Element::DTYPE)
    }

    /// Whether the registers have the places that they had in the part before, but for where the leaf lies: most of the
    /// cost of a small leaf would be to find them again.
    #[inline(always)]
    fn is_laid_out<L: Lane<Element: Compute>>(&self) -> bool {
        let Part { phase, leaf, .. } = *self.part;
        let is_plain = |buffer: &Buffer| buffer.dtype == L::Element::DTYPE && lies_ready::<L>(buffer, true);
        self.scratch.laid_out == Some(self.layout::<L>())
            && phase.reads.iter().all(|input| is_plain(&leaf.inputs[usize::from(*input)]))
            && phase.writes.iter().all(|write| is_plain(&leaf.outputs[usize::from(write.output)]))
    }

    /// Points the registers at the leaf. Returns the number of staged ones, which is zero.
    #[inline(always)]
    fn place(&mut self) -> usize {
        let Part { kernel, leaf, start, .. } = *self.part;
        let scratch = &mut *self.scratch;
        for register in scratch.direct.iter().map(|register| usize::from(*register)) {
            let buffer = foreign(kernel, leaf, register);
            scratch.registers[register].pointer = buffer.pointer.wrapping_add(start * buffer.dtype.size());
        }
        0
    }

    /// Gives every register its memory: see [`Kernel::first_output`]. Returns the number of staged ones.
    #[inline(always)]
    fn lay_out<L: Lane<Element: Compute>>(&mut self) -> usize {
        let Part { kernel, phase, leaf, scalars, start, .. } = *self.part;
        let splats = kernel.inputs + kernel.splats.len();
        let staging = self.classify::<L>();
        let scratch = &mut *self.scratch;
        let copies = usize::from(native::<L>(phase).is_some_and(|native| native.squares.is_some()));
        let bytes = splats * LANE + (phase.temporaries + staging + copies) * APART;
        if scratch.memory.len() * LANE < bytes {
            scratch.memory.resize(bytes.div_ceil(LANE), Line([0; LANE]));
        }
        scratch.totals.resize(kernel.sums, [0.0; SUMMANDS]);
        let lanes = scratch.memory.as_mut_ptr().cast::<u8>();
        let blocks = lanes.wrapping_add(splats * LANE);
        let dtype = L::Element::DTYPE;
        let still =
            |number: usize| Register { pointer: lanes.wrapping_add(number * LANE), moves: false, dtype, draws: None };
        let place =
            |number: usize| Register { pointer: blocks.wrapping_add(number * APART), moves: true, dtype, draws: None };

        scratch.registers.clear();
        scratch.registers.extend((0..kernel.inputs).map(still));
        scratch.registers.extend((0..leaf.outputs.len()).map(place));
        for register in scratch.direct.iter().map(|register| usize::from(*register)) {
            let buffer = foreign(kernel, leaf, register);
            let pointer = buffer.pointer.wrapping_add(start * buffer.dtype.size());
            let draws = match buffer.rounding {
                Rounding::Nearest => None,
                Rounding::Stochastic(number) => {
                    Some(Rounding::draws(leaf.noise_key, number, (leaf.first + start) as u64))
                }
            };
            scratch.registers[register] = Register { pointer, moves: true, dtype: buffer.dtype, draws };
        }
        for (number, register) in scratch.staged_inputs.iter().chain(&scratch.staged_outputs).enumerate() {
            scratch.registers[usize::from(*register)] = place(phase.temporaries + number);
        }
        for input in phase.reads.iter().map(|input| usize::from(*input)) {
            if !scratch.registers[input].moves {
                // SAFETY: the caller of `exec::run` promises the element; the lane is a scratch array of its own.
                unsafe { repeat::<L>(&leaf.inputs[input], scratch.registers[input].pointer.cast()) };
            }
        }
        for (number, step) in kernel.splats.iter().enumerate() {
            let register = still(kernel.inputs + number);
            if let Some(value) = scalars.get(usize::from(*step)) {
                // SAFETY: the scratch has `splats` lanes of `LANE` bytes, and no lane is wider.
                unsafe { L::splat(*value).store(register.pointer.cast()) };
            }
            scratch.registers.push(register);
        }
        scratch.registers.extend((0..phase.temporaries).map(place));
        scratch.registers.extend((0..copies).map(|number| place(phase.temporaries + staging + number)));
        if native::<L>(phase).is_none() {
            scratch.loops.clear();
            scratch.loops.extend(phase.loops.iter().map(|fused| BoundLoop::of::<L>(fused, &scratch.registers)));
        }
        let is_plain = native::<L>(phase).is_some() && staging == 0;
        let is_own = |register: &u16| foreign(kernel, leaf, usize::from(*register)).dtype == dtype;
        let is_plain = is_plain && scratch.direct.iter().all(is_own);
        self.scratch.laid_out = is_plain.then(|| self.layout::<L>());
        staging
    }

    /// Sorts the foreign registers into direct and staged ones; returns the number of staged ones.
    #[inline(always)]
    fn classify<L: Lane<Element: Compute>>(&mut self) -> usize {
        let Part { kernel, phase, leaf, .. } = *self.part;
        // The squares are of numbers that have not been rounded to halves.
        let reads_halves = native::<L>(phase).is_some_and(|native| native.squares.is_none());
        let native = native::<L>(phase).is_some();
        let scratch = &mut *self.scratch;
        scratch.staged_inputs.clear();
        scratch.staged_outputs.clear();
        scratch.direct.clear();
        for input in &phase.reads {
            let buffer = &leaf.inputs[usize::from(*input)];
            if lies_ready::<L>(buffer, reads_halves) {
                scratch.direct.push(*input);
            } else if native || buffer.layout != Layout::Repeated {
                scratch.staged_inputs.push(*input);
            }
        }
        for write in &phase.writes {
            let buffer = &leaf.outputs[usize::from(write.output)];
            let is_read_later = |input: &u16| leaf.inputs[usize::from(*input)].pointer == buffer.pointer;
            // Native code reads all inputs of a lane before it writes an output.
            let keep_back = !native && write.read_later.iter().any(is_read_later);
            let keep_back =
                keep_back || is_rounded_apart::<L>(buffer, self.part) || !lies_ready::<L>(buffer, reads_halves);
            let registers = if keep_back { &mut scratch.staged_outputs } else { &mut scratch.direct };
            // Inputs and outputs together were counted in 16 bits when the kernel was compiled.
            registers.push(write.output + u16::try_from(kernel.first_output()).unwrap_or(u16::MAX));
        }
        if !native {
            prefetch::contiguous(self.part, &mut scratch.prefetched);
        }
        scratch.staged_inputs.len() + scratch.staged_outputs.len()
    }

    #[inline(always)]
    fn gather<E: Compute>(&mut self, start: usize, length: usize) {
        for input in self.scratch.staged_inputs.iter().map(|input| usize::from(*input)) {
            // SAFETY: the leaf was checked to have these elements, and its memory is what the caller of `exec::run`
            // promised.
            unsafe {
                let block = staged(self.scratch.registers[input], length);
                Transfer::<E> { buffer: &self.part.leaf.inputs[input], start, block }.gather();
            }
        }
    }

    #[inline(always)]
    fn scatter<E: Compute>(&mut self, start: usize, length: usize) {
        for register in self.scratch.staged_outputs.iter().map(|register| usize::from(*register)) {
            let buffer = &self.part.leaf.outputs[register - self.part.kernel.first_output()];
            // SAFETY: as for `gather`; and the buffer was checked to be writable.
            unsafe {
                let block = staged(self.scratch.registers[register], length);
                Transfer::<E> { buffer, start, block }.scatter(self.part.leaf);
            }
        }
    }

    #[inline(always)]
    fn advance(&mut self, length: usize) {
        let scratch = &mut *self.scratch;
        for register in &scratch.direct {
            let register = &mut scratch.registers[usize::from(*register)];
            register.pointer = register.pointer.wrapping_add(length * register.dtype.size());
            register.draws = register.draws.map(|draws| draws.after(length));
        }
    }

    #[inline(always)]
    fn run_loop<L: Lane<Element: Compute>>(&mut self, number: usize, fused: &FusedLoop, start: usize, length: usize) {
        let registers = &self.scratch.registers[..];
        match fused.work {
            LoopWork::Apply(_, args) | LoopWork::Pair(_, args) => {
                let from = args.map(|arg| registers[usize::from(arg)].pointer.cast_const());
                let to = registers[usize::from(fused.to)].pointer;
                let bound = self.scratch.loops[number];
                if !bound.is_still {
                    // SAFETY: `lay_out` found the loop for such registers and this instruction set; they have room for
                    // a block.
                    unsafe { bound.call(to, from, length) };
                    return;
                }
                // All is done by one lane, which is a short block.
                let mut lane = Line([0; LANE]);
                let block = lane.0.as_mut_ptr();
                // SAFETY: as above; a lane has room for a lane.
                unsafe {
                    bound.call(block, from, L::WIDTH);
                    fill(to.cast(), L::load(block.cast()), length);
                }
            }
            LoopWork::Noise(draw) => self.draw::<L>(usize::from(fused.to), draw, start, length),
            LoopWork::Sum(arg) => self.sum_up::<L, NUMBERS>(fused.to, [arg; 2], length),
            LoopWork::SumOfProducts(args) => self.sum_up::<L, PRODUCTS>(fused.to, args, length),
            LoopWork::Dot(args) => self.sum_up::<L, DOT>(fused.to, args, length),
        }
    }
}

/// The block of a staged register, which is scratch memory with no other reference.
///
/// # Safety
/// The register is staged: it has room for a block, of which `length` numbers are no more, at the alignment of a line.
/// No other reference to it is in use.
#[inline(always)]
unsafe fn staged<'a, E>(register: Register, length: usize) -> &'a mut [E] {
    // SAFETY: promised by the caller; what was not written yet is zero, and any bits are a number.
    unsafe { std::slice::from_raw_parts_mut(register.pointer.cast::<E>(), length) }
}

/// # Safety
/// The buffer has an element and its memory is valid; there is room for a lane at `to`.
#[inline(always)]
unsafe fn repeat<L: Lane<Element: Compute>>(buffer: &Buffer, to: *mut L::Element) {
    let mut one = [L::Element::from_f64(0.0)];
    // SAFETY: promised by the caller.
    unsafe {
        Transfer { buffer, start: 0, block: &mut one }.gather_any();
        L::splat(one[0].to_f64()).store(to);
    }
}
