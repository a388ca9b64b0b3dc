//! The interpreter: a block of elements at a time, each instruction a tight loop over lanes. It names no op and no
//! instruction set. One of the files that touch foreign memory.

use super::gather::{Compute, Transfer};
use super::{Leaf, native};
use crate::buffer::{Buffer, Layout};
use crate::kernel::{Instruction, Kernel, Phase, Work};
use crate::lane::{Element, Lane, Simd, dispatch::Task};
use crate::noise;
use crate::op::{Binary, Ternary, Unary, Visitor};

/// Bytes of one block register: a handful of them fit the first-level cache of any processor.
const BLOCK: usize = 4096;
/// Registers lie so far apart, so that the same element of two registers is not on the same cache set.
const APART: usize = BLOCK + 192;
/// The room of the widest lane.
const LANE: usize = 64;
/// Elements whose sum is kept apart: sums fold chunk by chunk, so that no thread count changes them.
pub(super) const CHUNK: usize = 4096;
/// Partial sums of a chunk: element `i` belongs to number `i % SUMMANDS`, on every instruction set.
const SUMMANDS: usize = 16;

/// Where a value lies: numbers of the leaf's type one after the other, or (where it does not move) one lane of it.
#[derive(Clone, Copy)]
struct Slot {
    pointer: *mut u8,
    moves: bool,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LANE]);

/// The memory that a thread works in. It grows to what a kernel needs, and is worth keeping between calls.
#[derive(Default)]
pub struct Scratch {
    memory: Vec<Line>,
    slots: Vec<Slot>,
    /// Which slots move through foreign memory, in bytes a block.
    staged_inputs: Vec<u16>,
    staged_outputs: Vec<u16>,
    direct: Vec<u16>,
    totals: Vec<[f64; SUMMANDS]>,
    pub(super) values: Vec<f64>,
    pub(super) sums: Vec<f64>,
}

// SAFETY: the pointers in `slots` are set anew at the start of each part and never used after it.
unsafe impl Send for Scratch {}

/// Some elements of one leaf, in one phase.
pub(super) struct Part<'a> {
    pub kernel: &'a Kernel,
    pub phase: &'a Phase,
    pub leaf: &'a Leaf<'a>,
    /// The values of the scalar program.
    pub scalars: &'a [f64],
    /// A multiple of `CHUNK`.
    pub start: usize,
    pub end: usize,
}

/// Runs parts on one instruction set; hands on the sum (its number, the chunk, the value) of each chunk that it met.
pub(super) struct Run<'a, P, F> {
    pub parts: P,
    pub scratch: &'a mut Scratch,
    pub on_sum: F,
}

impl<'a, P, F> Task for Run<'_, P, F>
where
    P: Iterator<Item = Part<'a>>,
    F: FnMut(&Part, u16, usize, f64),
{
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self) {
        for part in self.parts {
            if part.leaf.dtype == f32::DTYPE {
                Interpreter { part: &part, scratch: self.scratch }.run::<S::F32>(&mut self.on_sum);
            } else {
                Interpreter { part: &part, scratch: self.scratch }.run::<S::F64>(&mut self.on_sum);
            }
        }
    }
}

struct Interpreter<'a, 'b> {
    part: &'a Part<'b>,
    scratch: &'a mut Scratch,
}

/// Whether a block can be read and written where the buffer lies.
pub(super) fn lies_ready<E: Compute>(buffer: &Buffer) -> bool {
    buffer.dtype == E::DTYPE && buffer.layout == Layout::Contiguous && buffer.rows.is_none()
}

impl Interpreter<'_, '_> {
    #[inline(always)]
    fn run<L: Lane<Element: Compute>>(mut self, on_sum: &mut impl FnMut(&Part, u16, usize, f64)) {
        if self.part.start >= self.part.end || native::run::<L>(self.part) {
            return;
        }
        self.lay_out::<L>();
        let block = BLOCK / size_of::<L::Element>();
        let mut at = self.part.start;
        while at < self.part.end {
            let length = block.min(self.part.end - at);
            if at.is_multiple_of(CHUNK) {
                self.scratch.totals.fill([0.0; SUMMANDS]);
            }
            self.gather::<L::Element>(at, length);
            for code in &self.part.phase.code {
                self.instruction::<L>(code, at, length);
            }
            self.scatter::<L::Element>(at, length);
            self.advance(length * size_of::<L::Element>());
            at += length;
            if at.is_multiple_of(CHUNK) || at == self.part.end {
                for sum in &self.part.phase.sums {
                    on_sum(self.part, *sum, (at - 1) / CHUNK, fold(&self.scratch.totals[usize::from(*sum)]));
                }
            }
        }
    }

    /// Gives every slot its place: see [`Kernel::first_output`].
    #[inline(always)]
    fn lay_out<L: Lane<Element: Compute>>(&mut self) {
        let Part { kernel, phase, leaf, scalars, start, .. } = *self.part;
        let splats = kernel.inputs + kernel.splats.len();
        let staging = self.classify::<L::Element>();
        let scratch = &mut *self.scratch;
        let bytes = splats * LANE + (phase.registers + staging) * APART;
        if scratch.memory.len() * LANE < bytes {
            scratch.memory.resize(bytes.div_ceil(LANE), Line([0; LANE]));
        }
        scratch.totals.resize(kernel.sums, [0.0; SUMMANDS]);
        let lanes = scratch.memory.as_mut_ptr().cast::<u8>();
        let blocks = lanes.wrapping_add(splats * LANE);
        let place = |number: usize| Slot { pointer: blocks.wrapping_add(number * APART), moves: true };

        let size = size_of::<L::Element>();
        scratch.slots.clear();
        let foreign = leaf.inputs.iter().take(kernel.inputs).chain(leaf.outputs);
        scratch
            .slots
            .extend(foreign.map(|buffer| Slot { pointer: buffer.pointer.wrapping_add(start * size), moves: true }));
        for (number, slot) in scratch.staged_inputs.iter().chain(&scratch.staged_outputs).enumerate() {
            scratch.slots[usize::from(*slot)] = place(phase.registers + number);
        }
        for input in phase.reads.iter().map(|input| usize::from(*input)) {
            if leaf.inputs[input].layout == Layout::Repeated {
                let lane = lanes.wrapping_add(input * LANE);
                // SAFETY: the caller of `exec::run` promises the element; the block is a scratch array of its own.
                unsafe { repeat::<L>(&leaf.inputs[input], lane.cast()) };
                scratch.slots[input] = Slot { pointer: lane, moves: false };
            }
        }
        for (number, step) in kernel.splats.iter().enumerate() {
            let lane = lanes.wrapping_add((kernel.inputs + number) * LANE);
            if let Some(value) = scalars.get(usize::from(*step)) {
                // SAFETY: the scratch has `splats` lanes of `LANE` bytes, and no lane is wider.
                unsafe { L::splat(*value).store(lane.cast()) };
            }
            scratch.slots.push(Slot { pointer: lane, moves: false });
        }
        scratch.slots.extend((0..phase.registers).map(place));
    }

    /// Sorts the foreign slots into those used where they lie and those staged; says how many are staged.
    #[inline(always)]
    fn classify<E: Compute>(&mut self) -> usize {
        let Part { kernel, phase, leaf, .. } = *self.part;
        let scratch = &mut *self.scratch;
        scratch.staged_inputs.clear();
        scratch.staged_outputs.clear();
        scratch.direct.clear();
        for input in &phase.reads {
            let buffer = &leaf.inputs[usize::from(*input)];
            if lies_ready::<E>(buffer) {
                scratch.direct.push(*input);
            } else if buffer.layout != Layout::Repeated {
                scratch.staged_inputs.push(*input);
            }
        }
        for write in &phase.writes {
            let buffer = &leaf.outputs[usize::from(write.output)];
            let is_read_later = |input: &u16| leaf.inputs[usize::from(*input)].pointer == buffer.pointer;
            let keep_back = !lies_ready::<E>(buffer) || write.read_later.iter().any(is_read_later);
            let slots = if keep_back { &mut scratch.staged_outputs } else { &mut scratch.direct };
            // Inputs and outputs together were counted in 16 bits when the kernel was compiled.
            slots.push(write.output + u16::try_from(kernel.first_output()).unwrap_or(u16::MAX));
        }
        scratch.staged_inputs.len() + scratch.staged_outputs.len()
    }

    #[inline(always)]
    fn gather<E: Compute>(&self, start: usize, length: usize) {
        for input in self.scratch.staged_inputs.iter().map(|input| usize::from(*input)) {
            let block = self.scratch.slots[input].pointer.cast::<E>();
            let transfer = Transfer { buffer: &self.part.leaf.inputs[input], start, length, block };
            // SAFETY: the leaf was checked to have these elements, and its memory is what the caller of `exec::run`
            // promised; a staging block holds `BLOCK` bytes, `length` numbers or more.
            unsafe { transfer.gather() };
        }
    }

    #[inline(always)]
    fn scatter<E: Compute>(&self, start: usize, length: usize) {
        for slot in self.scratch.staged_outputs.iter().map(|slot| usize::from(*slot)) {
            let block = self.scratch.slots[slot].pointer.cast::<E>();
            let buffer = &self.part.leaf.outputs[slot - self.part.kernel.first_output()];
            let transfer = Transfer { buffer, start, length, block };
            // SAFETY: as for `gather`; and the buffer was checked to be writable.
            unsafe { transfer.scatter() };
        }
    }

    #[inline(always)]
    fn advance(&mut self, bytes: usize) {
        let scratch = &mut *self.scratch;
        for slot in &scratch.direct {
            let pointer = &mut scratch.slots[usize::from(*slot)].pointer;
            *pointer = pointer.wrapping_add(bytes);
        }
    }

    #[inline(always)]
    fn instruction<L: Lane<Element: Compute>>(&mut self, code: &Instruction, start: usize, length: usize) {
        let slots = &self.scratch.slots[..];
        match code.work {
            Work::Apply(op, args) => {
                let args = args.map(|arg| slots[usize::from(arg)]);
                op.visit::<L, _>(Loop { to: slots[usize::from(code.to)].pointer, args, length });
            }
            Work::Noise(draw) => {
                let to = slots[usize::from(code.to)].pointer.cast::<L::Element>();
                let key = self.part.leaf.noise_key;
                // SAFETY: a slot that is written has room for a block, and the places of all runs lie in it.
                let fill = |start, place, count| unsafe { draws(to.wrapping_add(place), key, draw, start, count) };
                match self.part.leaf.rows() {
                    None => fill(start, 0, length),
                    Some(rows) => rows.runs(start, length, fill),
                }
            }
            Work::Sum(arg) => {
                let from = slots[usize::from(arg)];
                let totals = &mut self.scratch.totals[usize::from(code.to)];
                // SAFETY: a slot that is read holds a block.
                unsafe { accumulate::<L>(from, length, totals) };
            }
        }
    }
}

/// # Safety
/// The buffer has an element and its memory is valid; there is room for a lane at `to`.
#[inline(always)]
unsafe fn repeat<L: Lane<Element: Compute>>(buffer: &Buffer, to: *mut L::Element) {
    let mut one = L::Element::from_f64(0.0);
    // SAFETY: promised by the caller.
    unsafe {
        Transfer { buffer, start: 0, length: 1, block: &raw mut one }.gather();
        L::splat(one.to_f64()).store(to);
    }
}

/// # Safety
/// There is room for `length` numbers at `to`.
#[inline(always)]
unsafe fn draws<E: Compute>(to: *mut E, key: u64, draw: u32, start: usize, length: usize) {
    let mut numbers = [0.0; 64];
    for from in (0..length).step_by(numbers.len()) {
        let count = numbers.len().min(length - from);
        noise::fill(&mut numbers[..count], key, draw, (start + from) as u64);
        for (k, number) in numbers[..count].iter().enumerate() {
            // SAFETY: `from + k < length`.
            unsafe { to.add(from + k).write_unaligned(E::from_f64(f64::from(*number))) };
        }
    }
}

/// Adds each number to one of the totals, in `f64`.
///
/// # Safety
/// The slot holds `length` numbers.
#[inline(always)]
unsafe fn accumulate<L: Lane>(from: Slot, length: usize, totals: &mut [f64; SUMMANDS]) {
    let numbers = from.pointer.cast::<L::Element>().cast_const();
    let whole = length - length % SUMMANDS;
    let mut sums = *totals;
    let mut wide = [0.0f64; SUMMANDS];
    for i in (0..whole).step_by(SUMMANDS) {
        for k in (0..SUMMANDS).step_by(L::WIDTH) {
            let index = if from.moves { i + k } else { 0 };
            // SAFETY: `i + k + WIDTH <= length`; a slot that does not move holds one lane.
            unsafe { L::load(numbers.add(index)).store_wide(wide.as_mut_ptr().add(k)) };
        }
        add::<L::Wide>(&mut sums, &wide);
    }
    if whole < length {
        wide = [0.0; SUMMANDS];
        for i in whole..length {
            let index = if from.moves { i } else { 0 };
            // SAFETY: `i < length`.
            wide[i - whole] = unsafe { numbers.add(index).read_unaligned() }.to_f64();
        }
        add::<L::Wide>(&mut sums, &wide);
    }
    *totals = sums;
}

#[inline(always)]
fn add<W: Lane<Element = f64>>(sums: &mut [f64; SUMMANDS], numbers: &[f64; SUMMANDS]) {
    for k in (0..SUMMANDS).step_by(W::WIDTH) {
        // SAFETY: both arrays have `SUMMANDS` numbers, a multiple of every lane's width.
        unsafe { W::load(sums.as_ptr().add(k)).add(W::load(numbers.as_ptr().add(k))).store(sums.as_mut_ptr().add(k)) };
    }
}

/// The sum of the totals, as a balanced tree.
fn fold(totals: &[f64; SUMMANDS]) -> f64 {
    let mut sums = *totals;
    let mut half = SUMMANDS / 2;
    while half > 0 {
        for k in 0..half {
            sums[k] += sums[k + half];
        }
        half /= 2;
    }
    sums[0]
}

/// One instruction over one block.
struct Loop {
    to: *mut u8,
    args: [Slot; 3],
    length: usize,
}

/// An argument in a loop: read lane by lane, or read once.
struct Argument<L: Lane, const MOVES: bool> {
    from: *const L::Element,
    still: L,
}

impl<L: Lane, const MOVES: bool> Argument<L, MOVES> {
    /// # Safety
    /// A slot that does not move holds a lane.
    #[inline(always)]
    unsafe fn new(slot: Slot) -> Self {
        let from = slot.pointer.cast::<L::Element>().cast_const();
        // SAFETY: promised by the caller.
        Self { from, still: if MOVES { L::zero() } else { unsafe { L::load(from) } } }
    }

    /// # Safety
    /// The slot holds numbers up to `i + WIDTH`.
    #[inline(always)]
    unsafe fn at(&self, i: usize) -> L {
        // SAFETY: promised by the caller.
        if MOVES { unsafe { L::load(self.from.add(i)) } } else { self.still }
    }

    /// # Safety
    /// The slot holds numbers up to `i + count`, and `count` is less than a lane.
    #[inline(always)]
    unsafe fn part(&self, i: usize, count: usize) -> L {
        // SAFETY: promised by the caller.
        if MOVES { unsafe { L::load_part(self.from.add(i), count) } } else { self.still }
    }
}

/// Evaluates `whole` for each whole lane, at `i`, and `part` for the `n` numbers that are left, and stores the results.
/// A macro, since a closure cannot be told to be inlined, and must not be compiled without the instruction set.
macro_rules! sweep {
    ($lane:ident, $this:ident, |$i:ident| $whole:expr, |$n:ident| $part:expr) => {
        let to = $this.to.cast::<$lane::Element>();
        let $n = $this.length % $lane::WIDTH;
        let mut $i = 0;
        while $i < $this.length - $n {
            $whole.store(to.add($i));
            $i += $lane::WIDTH;
        }
        if $n > 0 {
            $part.store_part(to.add($i), $n);
        }
    };
}

impl Loop {
    #[inline(always)]
    fn one<L: Lane, const A: bool>(&self, f: impl Unary<L>) {
        // SAFETY: slots that move hold a block, others a lane; `i + WIDTH` and `i + n` are at most `length`.
        unsafe {
            let a = Argument::<L, A>::new(self.args[0]);
            sweep!(L, self, |i| f.call(a.at(i)), |n| f.call(a.part(i, n)));
        }
    }

    #[inline(always)]
    fn two<L: Lane, const A: bool, const B: bool>(&self, f: impl Binary<L>) {
        // SAFETY: slots that move hold a block, others a lane; `i + WIDTH` and `i + n` are at most `length`.
        unsafe {
            let (a, b) = (Argument::<L, A>::new(self.args[0]), Argument::<L, B>::new(self.args[1]));
            sweep!(L, self, |i| f.call(a.at(i), b.at(i)), |n| f.call(a.part(i, n), b.part(i, n)));
        }
    }

    #[inline(always)]
    fn three<L: Lane, const A: bool, const B: bool, const C: bool>(&self, f: impl Ternary<L>) {
        // SAFETY: slots that move hold a block, others a lane; `i + WIDTH` and `i + n` are at most `length`.
        unsafe {
            let (a, b) = (Argument::<L, A>::new(self.args[0]), Argument::<L, B>::new(self.args[1]));
            let c = Argument::<L, C>::new(self.args[2]);
            sweep!(L, self, |i| f.call(a.at(i), b.at(i), c.at(i)), |n| f.call(
                a.part(i, n),
                b.part(i, n),
                c.part(i, n)
            ));
        }
    }
}

impl<L: Lane> Visitor<L> for Loop {
    type Output = ();

    #[inline(always)]
    fn unary(self, f: impl Unary<L>) {
        if self.args[0].moves { self.one::<L, true>(f) } else { self.one::<L, false>(f) }
    }

    #[inline(always)]
    fn binary(self, f: impl Binary<L>) {
        match (self.args[0].moves, self.args[1].moves) {
            (true, true) => self.two::<L, true, true>(f),
            (true, false) => self.two::<L, true, false>(f),
            (false, true) => self.two::<L, false, true>(f),
            (false, false) => self.two::<L, false, false>(f),
        }
    }

    #[inline(always)]
    fn ternary(self, f: impl Ternary<L>) {
        match self.args.map(|arg| arg.moves) {
            [true, true, true] => self.three::<L, true, true, true>(f),
            [true, true, false] => self.three::<L, true, true, false>(f),
            [true, false, true] => self.three::<L, true, false, true>(f),
            [true, false, false] => self.three::<L, true, false, false>(f),
            [false, true, true] => self.three::<L, false, true, true>(f),
            [false, true, false] => self.three::<L, false, true, false>(f),
            [false, false, true] => self.three::<L, false, false, true>(f),
            [false, false, false] => self.three::<L, false, false, false>(f),
        }
    }
}
