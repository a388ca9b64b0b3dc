//! The loops of the interpreter: one instruction over one block. One of the files that touch foreign memory.

use std::marker::PhantomData;

use super::register::{Register, SUMMANDS, Totals};
use super::transfer::Compute;
use crate::array::sum::balanced;
use crate::kernel::fuse::{FusedLoop, LoopWork};
use crate::noise;
use crate::op::{Elementwise, Visitor};
use crate::simd::{Binary, Body, Element, Lane, Simd, Ternary, Unary};

/// Random numbers that are drawn together.
const DRAWN: usize = 256;

/// The arguments of a draw: random numbers of consecutive elements, those from `start` on.
#[derive(Clone, Copy)]
pub(super) struct Drawn {
    /// Room for numbers of the lane's type.
    pub to: *mut u8,
    pub key: u64,
    pub draw: u32,
    pub start: usize,
    pub length: usize,
}

/// The loop that draws random numbers.
struct Draw<L>(PhantomData<L>);

impl<L: Lane<Element: Compute>> Body<Drawn> for Draw<L> {
    #[inline(always)]
    fn call<S: Simd>(Drawn { to, key, draw, start, length }: Drawn) {
        let (mut drawn, mut numbers) = ([0; DRAWN], [L::Element::from_f64(0.0); DRAWN]);
        let to = to.cast::<L::Element>();
        for from in (0..length).step_by(DRAWN) {
            let count = DRAWN.min(length - from);
            noise::fill::<{ noise::NUMBER }>(&mut drawn[..count], key, draw, (start + from) as u64);
            for (number, bits) in numbers.iter_mut().zip(drawn) {
                *number = L::Element::from_f64(f64::from(noise::number(bits)));
            }
            let (to, bytes) = (to.wrapping_add(from).cast::<u8>(), count * size_of::<L::Element>());
            // SAFETY: there is room for `length` numbers, and `from + count <= length`.
            unsafe { to.copy_from_nonoverlapping(numbers.as_ptr().cast(), bytes) };
        }
    }
}

/// The address of the loop that draws random numbers.
pub(super) fn draws<L: Lane<Element: Compute>>() -> unsafe fn(Drawn) {
    L::Set::address::<Draw<L>, _>()
}

/// Adds each number of the first register, or with `PRODUCTS` its product with that of the second, to one of the totals,
/// in `f64`.
///
/// # Safety
/// The registers hold `length` numbers.
#[inline(always)]
pub(super) unsafe fn accumulate<L: Lane, const PRODUCTS: bool>(
    from: [Register; 2],
    length: usize,
    totals: &mut Totals,
) {
    let whole = length - length % SUMMANDS;
    let mut sums = *totals;
    for i in (0..whole).step_by(SUMMANDS) {
        for k in (0..SUMMANDS).step_by(L::WIDTH) {
            // SAFETY: `i + k + WIDTH <= length`.
            unsafe {
                let number: L = lane_at(from[0], i + k);
                let term = if PRODUCTS { number.mul(lane_at(from[1], i + k)) } else { number };
                add(&mut sums, k, term);
            }
        }
    }
    if whole < length {
        for i in whole..length {
            // SAFETY: `i < length`.
            sums[i - whole] += unsafe {
                let number = number_at::<L::Element>(from[0], i);
                // The product of two numbers of `f32` is exact in `f64`, so that it is rounded once.
                let product = || L::Element::from_f64(number.to_f64() * number_at::<L::Element>(from[1], i).to_f64());
                if PRODUCTS { product() } else { number }.to_f64()
            };
        }
    }
    *totals = sums;
}

/// # Safety
/// The register holds numbers up to `i + WIDTH`; one that does not move holds one lane.
#[inline(always)]
unsafe fn lane_at<L: Lane>(register: Register, i: usize) -> L {
    // SAFETY: promised by the caller.
    unsafe { L::load(register.pointer.cast::<L::Element>().add(if register.moves { i } else { 0 })) }
}

/// # Safety
/// The register holds more than `i` numbers; one that does not move holds one lane.
#[inline(always)]
unsafe fn number_at<E: Element>(register: Register, i: usize) -> E {
    // SAFETY: promised by the caller.
    unsafe { register.pointer.cast::<E>().add(if register.moves { i } else { 0 }).read_unaligned() }
}

/// Adds a lane to the totals from number `at` on.
///
/// # Safety
/// There are as many totals from there on as numbers in a lane.
#[inline(always)]
pub(super) unsafe fn add<L: Lane>(totals: &mut Totals, at: usize, term: L) {
    let mut wide = [0.0f64; SUMMANDS];
    // SAFETY: the array has room for the widest lane, whose width is a multiple of that of a lane of `f64`; the totals
    // are promised by the caller.
    unsafe {
        term.store_wide(wide.as_mut_ptr());
        let totals = totals.as_mut_ptr().add(at);
        for k in (0..L::WIDTH).step_by(L::Wide::WIDTH) {
            L::Wide::load(totals.add(k)).add(L::Wide::load(wide.as_ptr().add(k))).store(totals.add(k));
        }
    }
}

/// The sum of the totals, as a balanced tree.
pub(super) fn fold(totals: &Totals) -> f64 {
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

/// A fused loop, bound to the registers of a part.
#[derive(Clone, Copy)]
pub(super) struct BoundLoop {
    pub function: Loop,
    /// Whether an argument moves: if not, the result is the same for all elements, and `function` computes a lane of
    /// it.
    pub moves: bool,
}

impl BoundLoop {
    #[inline(always)]
    pub fn of<L: Lane>(fused: &FusedLoop, registers: &[Register]) -> Self {
        let mut moves = [false; 3];
        for (moves, arg) in moves.iter_mut().zip(fused.work.arguments()) {
            *moves = registers[usize::from(*arg)].moves;
        }
        let any = moves.contains(&true);
        let find = Find { moves: if any { moves } else { [true; 3] } };
        let function = match fused.work {
            LoopWork::Apply(op, _) => op.visit::<L, _>(find),
            LoopWork::Pair(pair, _) => pair.visit::<L, _>(find),
            // They have loops of their own.
            LoopWork::Noise(_) | LoopWork::Sum(_) | LoopWork::SumOfProducts(_) => {
                Elementwise::Positive.visit::<L, _>(find)
            }
        };
        Self { function, moves: any }
    }
}
