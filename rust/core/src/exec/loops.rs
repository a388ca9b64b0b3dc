//! The loops of the interpreter: one instruction over one block. One of the files that touch foreign memory.

use super::block::{SUMMANDS, Slot};
use super::gather::Compute;
use crate::lane::{Element, Lane};
use crate::noise;
use crate::op::{Binary, Ternary, Unary, Visitor};

/// # Safety
/// There is room for `length` numbers at `to`.
#[inline(always)]
pub(super) unsafe fn draws<E: Compute>(to: *mut E, key: u64, draw: u32, start: usize, length: usize) {
    let mut drawn = [0; 64];
    for from in (0..length).step_by(drawn.len()) {
        let count = drawn.len().min(length - from);
        noise::fill::<{ noise::NUMBER }>(&mut drawn[..count], key, draw, (start + from) as u64);
        for (k, bits) in drawn[..count].iter().enumerate() {
            // SAFETY: `from + k < length`.
            unsafe { to.add(from + k).write_unaligned(E::from_f64(f64::from(noise::number(*bits)))) };
        }
    }
}

/// Adds each number to one of the totals, in `f64`.
///
/// # Safety
/// The slot holds `length` numbers.
#[inline(always)]
pub(super) unsafe fn accumulate<L: Lane>(from: Slot, length: usize, totals: &mut [f64; SUMMANDS]) {
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
pub(super) fn fold(totals: &[f64; SUMMANDS]) -> f64 {
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
pub(super) struct Loop {
    /// A slot that moves, with room for a block of the lane's type.
    pub to: *mut u8,
    pub args: [Slot; 3],
    pub length: usize,
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
