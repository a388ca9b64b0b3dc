//! The loops of the interpreter: one instruction over one block. One of the files that touch foreign memory.

mod functions;

use std::marker::PhantomData;

use functions::{is_widened, long};

use super::register::{Block, Loop, Register, SUMMANDS, Totals};
use super::transfer::Compute;
use crate::array::sum::balanced;
use crate::kernel::fuse::{FusedLoop, LoopWork};
use crate::op::{Elementwise, Visitor};
use crate::simd::noise;
use crate::simd::{Binary, Body, Code, Element, Lane, Simd, Ternary, Unary};

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

/// The kinds of sums over a block: of the numbers of the first register, of their products with those of the second, of
/// such products in `f64`, and of the squares in `f64` of their differences from them.
pub(super) const NUMBERS: u8 = 0;
pub(super) const PRODUCTS: u8 = 1;
pub(super) const DOT: u8 = 2;
pub(super) const SQUARED_DIFFERENCES: u8 = 3;

/// The arguments of a sum over a block.
pub(super) struct Summed<'a> {
    /// Two registers that hold `length` numbers; of a sum of numbers, the second is not read.
    pub from: [Register; 2],
    pub length: usize,
    pub totals: &'a mut Totals,
}

/// The loop that adds each term of a kind to one of the totals, in `f64`.
struct Accumulate<L, const KIND: u8>(PhantomData<L>);

impl<L: Lane, const KIND: u8> Body<Summed<'_>> for Accumulate<L, KIND> {
    #[inline(always)]
    fn call<S: Simd>(Summed { from, length, totals }: Summed) {
        let whole = length - length % SUMMANDS;
        let mut sums = *totals;
        for i in (0..whole).step_by(SUMMANDS) {
            for k in (0..SUMMANDS).step_by(L::WIDTH) {
                // SAFETY: `i + k + WIDTH <= length`.
                unsafe {
                    let number: L = lane_at(from[0], i + k);
                    match KIND {
                        NUMBERS => add(&mut sums, k, number),
                        PRODUCTS => add(&mut sums, k, number.mul(lane_at(from[1], i + k))),
                        DOT => add_product(&mut sums, k, [number, lane_at(from[1], i + k)]),
                        _ => add_product(&mut sums, k, [number.sub(lane_at(from[1], i + k)); 2]),
                    }
                }
            }
        }
        for i in whole..length {
            // SAFETY: `i < length`.
            let number = |from: Register| unsafe { number_at::<L::Element>(from, i) }.to_f64();
            // Of two numbers of `f32`, the product in `f64` is exact, and the difference has digits enough that rounding it
            // again gives the nearest `f32`.
            let rounded = |value: f64| L::Element::from_f64(value).to_f64();
            sums[i - whole] += match KIND {
                NUMBERS => number(from[0]),
                PRODUCTS => rounded(number(from[0]) * number(from[1])),
                DOT => number(from[0]) * number(from[1]),
                _ => {
                    let difference = rounded(number(from[0]) - number(from[1]));
                    difference * difference
                }
            };
        }
        *totals = sums;
    }
}

/// The address of the loop that adds up terms of a kind.
pub(super) fn accumulates<'a, L: Lane, const KIND: u8>() -> unsafe fn(Summed<'a>) {
    L::Set::address::<Accumulate<L, KIND>, _>()
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

/// Adds the product of two lanes, in `f64`, to the totals from number `at` on.
///
/// # Safety
/// As of [`add`].
#[inline(always)]
pub(super) unsafe fn add_product<L: Lane>(totals: &mut Totals, at: usize, factors: [L; 2]) {
    let mut wide = [[0.0f64; SUMMANDS]; 2];
    // SAFETY: as in `add`.
    unsafe {
        for (factor, wide) in factors.into_iter().zip(&mut wide) {
            factor.store_wide(wide.as_mut_ptr());
        }
        let totals = totals.as_mut_ptr().add(at);
        for k in (0..L::WIDTH).step_by(L::Wide::WIDTH) {
            let [a, b] = [L::Wide::load(wide[0].as_ptr().add(k)), L::Wide::load(wide[1].as_ptr().add(k))];
            L::Wide::load(totals.add(k)).add(a.mul(b)).store(totals.add(k));
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
#[derive(Clone, Copy)]
struct Find {
    /// Whether each argument moves.
    moves: [bool; 3],
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
    long::<L, F, 1>(F::CODE).unwrap_or_else(L::Set::address::<One<L, F>, _>)
}

fn two<L: Lane, F: Binary<L>, const A: bool, const B: bool>(_: F) -> Loop {
    // What depends on a first argument that does not move, such as the logarithm of the base of a power, is computed once.
    let code = if F::CODE == Code::Long && !A && B { Code::Short } else { F::CODE };
    long::<L, F, 2>(code).unwrap_or_else(L::Set::address::<Two<L, F, A, B>, _>)
}

fn three<L: Lane, F: Ternary<L>, const A: bool, const B: bool, const C: bool>(_: F) -> Loop {
    long::<L, F, 3>(F::CODE).unwrap_or_else(L::Set::address::<Three<L, F, A, B, C>, _>)
}

/// A fused loop, bound to the registers of a part.
#[derive(Clone, Copy)]
pub(super) struct BoundLoop {
    function: Loop,
    wide: Option<Loop>,
    arity: usize,
    moves: [bool; 3],
    /// Whether no argument moves: the result is the same for all elements, and the loop computes a lane of it.
    pub is_still: bool,
}

impl BoundLoop {
    #[inline(always)]
    pub fn of<L: Lane>(fused: &FusedLoop, registers: &[Register]) -> Self {
        let mut moves = [false; 3];
        let arguments = fused.work.arguments();
        for (moves, arg) in moves.iter_mut().zip(arguments) {
            *moves = registers[usize::from(*arg)].moves;
        }
        Self::new::<L>(fused.work, moves)
    }

    /// The loop of arguments of which these move; those beyond the arity do not.
    #[inline(always)]
    pub fn new<L: Lane>(work: LoopWork, moves: [bool; 3]) -> Self {
        let is_still = moves == [false; 3];
        let moves = if is_still { [true; 3] } else { moves };
        let find = Find { moves };
        let function = match work {
            LoopWork::Apply(op, _) => op.visit::<L, _>(find),
            LoopWork::Pair(pair, _) => pair.visit::<L, _>(find),
            // They have loops of their own.
            LoopWork::Noise(_) | LoopWork::Sum(_) | LoopWork::SumOfProducts(_) | LoopWork::Dot(_) => {
                Elementwise::Positive.visit::<L, _>(find)
            }
        };
        let wide = match work {
            LoopWork::Apply(op, _) if is_widened::<L>(op.code()) => Some(op.visit::<L::Wide, _>(find)),
            _ => None,
        };
        Self { function, wide, arity: work.arguments().len(), moves, is_still }
    }

    /// Runs the loop.
    ///
    /// # Safety
    /// It was found for registers of this kind at the addresses, which hold `length` numbers, and the instruction set is
    /// the one that this runs on.
    #[inline(always)]
    pub unsafe fn call(self, to: *mut u8, from: [*const u8; 3], length: usize) {
        let Self { function, wide, arity, moves, .. } = self;
        // SAFETY: promised by the caller.
        unsafe { function(Block { to, from, length, arity, moves, wide }) };
    }
}
