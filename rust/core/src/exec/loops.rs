//! The loops of the interpreter: one instruction over one block. One of the files that touch foreign memory.

use std::marker::PhantomData;

use super::register::{Register, SUMMANDS};
use super::transfer::Compute;
use crate::array::sum::balanced;
use crate::noise;
use crate::op::Visitor;
use crate::simd::{Binary, Body, Element, Lane, Simd, Ternary, Unary};

/// Random numbers that are drawn together.
const DRAWN: usize = 256;

/// # Safety
/// There is room for `length` numbers at `to`.
#[inline(always)]
pub(super) unsafe fn draws<E: Compute>(to: *mut E, key: u64, draw: u32, start: usize, length: usize) {
    let (mut drawn, mut numbers) = ([0; DRAWN], [E::from_f64(0.0); DRAWN]);
    for from in (0..length).step_by(DRAWN) {
        let count = DRAWN.min(length - from);
        noise::fill::<{ noise::NUMBER }>(&mut drawn[..count], key, draw, (start + from) as u64);
        for (number, bits) in numbers.iter_mut().zip(drawn) {
            *number = E::from_f64(f64::from(noise::number(bits)));
        }
        // SAFETY: `from + count <= length`.
        unsafe { to.add(from).cast::<u8>().copy_from_nonoverlapping(numbers.as_ptr().cast(), count * size_of::<E>()) };
    }
}

/// Adds each number to one of the totals, in `f64`.
///
/// # Safety
/// The register holds `length` numbers.
#[inline(always)]
pub(super) unsafe fn accumulate<L: Lane>(from: Register, length: usize, totals: &mut [f64; SUMMANDS]) {
    let numbers = from.pointer.cast::<L::Element>().cast_const();
    let whole = length - length % SUMMANDS;
    let mut sums = *totals;
    let mut wide = [0.0f64; SUMMANDS];
    for i in (0..whole).step_by(SUMMANDS) {
        for k in (0..SUMMANDS).step_by(L::WIDTH) {
            let index = if from.moves { i + k } else { 0 };
            // SAFETY: `i + k + WIDTH <= length`; a register that does not move holds one lane.
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
pub(super) fn fold(totals: &[f64; SUMMANDS]) -> f64 {
    balanced(*totals)
}

/// Fills a block with one lane.
///
/// # Safety
/// There is room for `length` numbers at `to`.
#[inline(always)]
pub(super) unsafe fn fill<L: Lane>(to: *mut L::Element, lane: L, length: usize) {
    let left = length % L::WIDTH;
    // SAFETY: `i + WIDTH` and `length - left + left` are at most `length`.
    unsafe {
        for i in (0..length - left).step_by(L::WIDTH) {
            lane.store(to.add(i));
        }
        if left > 0 {
            lane.store_part(to.add(length - left), left);
        }
    }
}

/// The arguments of a loop: one instruction over one block.
#[derive(Clone, Copy)]
pub(super) struct Block {
    /// Room for a block of the lane's type.
    pub to: *mut u8,
    /// The addresses of the arguments: a block of each that moves, of the others a lane.
    pub from: [*const u8; 3],
    pub length: usize,
}

/// The loop of an instruction, of which an argument or more move: its address.
pub(super) type Loop = unsafe fn(Block);

/// An argument in a loop: read lane by lane, or read once.
struct Argument<L: Lane, const MOVES: bool> {
    from: *const L::Element,
    still: L,
}

impl<L: Lane, const MOVES: bool> Argument<L, MOVES> {
    /// # Safety
    /// An argument that does not move is a lane.
    #[inline(always)]
    unsafe fn new(from: *const u8) -> Self {
        let from = from.cast::<L::Element>();
        // SAFETY: promised by the caller.
        Self { from, still: if MOVES { L::zero() } else { unsafe { L::load(from) } } }
    }

    /// # Safety
    /// The register holds numbers up to `i + WIDTH`.
    #[inline(always)]
    unsafe fn at(&self, i: usize) -> L {
        // SAFETY: promised by the caller.
        if MOVES { unsafe { L::load(self.from.add(i)) } } else { self.still }
    }

    /// # Safety
    /// The register holds numbers up to `i + count`, and `count` is less than a lane.
    #[inline(always)]
    unsafe fn part(&self, i: usize, count: usize) -> L {
        // SAFETY: promised by the caller.
        if MOVES { unsafe { L::load_part(self.from.add(i), count) } } else { self.still }
    }
}

/// Evaluates `whole` for each whole lane, at `i`, and `part` for the `n` numbers that are left, and stores the results.
/// A macro, since a closure cannot be told to be inlined, and must not be compiled without the instruction set.
macro_rules! sweep {
    ($lane:ident, $this:expr, |$i:ident| $whole:expr, |$n:ident| $part:expr) => {
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

/// The loop of an op of one argument.
struct One<L, F>(PhantomData<(L, F)>);

impl<L: Lane, F: Unary<L>> Body<Block> for One<L, F> {
    #[inline(always)]
    fn call<S: Simd>(this: Block) {
        let f = F::default();
        // SAFETY: registers that move hold a block, others a lane; `i + WIDTH` and `i + n` are at most `length`.
        unsafe {
            let a = Argument::<L, true>::new(this.from[0]);
            sweep!(L, this, |i| f.call(a.at(i)), |n| f.call(a.part(i, n)));
        }
    }
}

/// The loop of an op of two arguments.
struct Two<L, F, const A: bool, const B: bool>(PhantomData<(L, F)>);

impl<L: Lane, F: Binary<L>, const A: bool, const B: bool> Body<Block> for Two<L, F, A, B> {
    #[inline(always)]
    fn call<S: Simd>(this: Block) {
        let f = F::default();
        // SAFETY: registers that move hold a block, others a lane; `i + WIDTH` and `i + n` are at most `length`.
        unsafe {
            let (a, b) = (Argument::<L, A>::new(this.from[0]), Argument::<L, B>::new(this.from[1]));
            sweep!(L, this, |i| f.call(a.at(i), b.at(i)), |n| f.call(a.part(i, n), b.part(i, n)));
        }
    }
}

/// The loop of an op of three arguments.
struct Three<L, F, const A: bool, const B: bool, const C: bool>(PhantomData<(L, F)>);

impl<L: Lane, F: Ternary<L>, const A: bool, const B: bool, const C: bool> Body<Block> for Three<L, F, A, B, C> {
    #[inline(always)]
    fn call<S: Simd>(this: Block) {
        let f = F::default();
        // SAFETY: registers that move hold a block, others a lane; `i + WIDTH` and `i + n` are at most `length`.
        unsafe {
            let (a, b) = (Argument::<L, A>::new(this.from[0]), Argument::<L, B>::new(this.from[1]));
            let c = Argument::<L, C>::new(this.from[2]);
            sweep!(L, this, |i| f.call(a.at(i), b.at(i), c.at(i)), |n| f.call(
                a.part(i, n),
                b.part(i, n),
                c.part(i, n)
            ));
        }
    }
}

/// Finds the loop of an op. Each is a function of its own: together, they would be one that no compiler lays out well,
/// or soon.
pub(super) struct Find {
    /// Whether each argument moves.
    pub moves: [bool; 3],
}

impl<L: Lane> Visitor<L> for Find {
    type Output = Loop;

    fn unary(self, f: impl Unary<L>) -> Loop {
        one::<L, _>(f)
    }

    fn binary(self, f: impl Binary<L>) -> Loop {
        match (self.moves[0], self.moves[1]) {
            (true, false) => two::<L, _, true, false>(f),
            (false, true) => two::<L, _, false, true>(f),
            _ => two::<L, _, true, true>(f),
        }
    }

    fn ternary(self, f: impl Ternary<L>) -> Loop {
        match self.moves {
            [true, true, false] => three::<L, _, true, true, false>(f),
            [true, false, true] => three::<L, _, true, false, true>(f),
            [true, false, false] => three::<L, _, true, false, false>(f),
            [false, true, true] => three::<L, _, false, true, true>(f),
            [false, true, false] => three::<L, _, false, true, false>(f),
            [false, false, true] => three::<L, _, false, false, true>(f),
            _ => three::<L, _, true, true, true>(f),
        }
    }
}

fn one<L: Lane, F: Unary<L>>(_: F) -> Loop {
    L::Set::address::<One<L, F>, _>()
}

fn two<L: Lane, F: Binary<L>, const A: bool, const B: bool>(_: F) -> Loop {
    L::Set::address::<Two<L, F, A, B>, _>()
}

fn three<L: Lane, F: Ternary<L>, const A: bool, const B: bool, const C: bool>(_: F) -> Loop {
    L::Set::address::<Three<L, F, A, B, C>, _>()
}
