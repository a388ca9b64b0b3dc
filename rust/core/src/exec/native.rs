//! Runs kernels that have native code, whole lanes at a time. One of the files that touch foreign memory.

#![allow(clippy::cast_ptr_alignment, reason = "lanes and halves are read and written at any alignment")]

use std::hint::black_box;
use std::marker::PhantomData;

use super::loops::add;
use super::register::{Register, SUMMANDS, Totals};
use super::transfer::Compute;
use crate::array::buffer::Dtype;
use crate::array::half::{Bfloat16, Float16, Half};
use crate::kernel::Kernel;
use crate::kernel::compiled::{Native, Squares};
use crate::kernel::native::code::{NativeCode, NativeVisitor};
use crate::simd::{Body, Element, Lane, Simd};

/// A run of native code: the registers of the kernel, the number of elements, and the sums to add to: those of the
/// code, and with `SQUARES` further ones.
pub(super) struct NativeRun<'a, L, const SQUARES: bool> {
    kernel: &'a Kernel,
    native: &'a Native,
    registers: &'a [Register],
    length: usize,
    sums: Sums<'a>,
    squares: Option<&'a mut SumsOfSquares>,
    lane: PhantomData<L>,
}

/// The sums of a phase: their numbers, and the totals of all sums of the kernel.
pub(super) struct Sums<'a> {
    pub numbers: &'a [u16],
    pub totals: &'a mut [Totals],
}

impl<'a, L> NativeRun<'a, L, false> {
    /// # Safety
    /// The registers are those of a phase with this native code: its inputs, its outputs, and its scalars as lanes.
    /// Inputs and outputs hold `length` elements of their dtype, a half or the lane's type; scalars are a lane. An output
    /// is apart from an input, or the same memory. With sums, the elements start at a multiple of `SUMMANDS`.
    #[inline(always)]
    pub unsafe fn new(
        kernel: &'a Kernel,
        native: &'a Native,
        registers: &'a [Register],
        length: usize,
        sums: Sums<'a>,
    ) -> Self {
        Self { kernel, native, registers, length, sums, squares: None, lane: PhantomData }
    }

    /// The run with further sums.
    #[inline(always)]
    pub fn with(self, squares: &'a mut SumsOfSquares) -> NativeRun<'a, L, true> {
        let Self { kernel, native, registers, length, sums, lane, .. } = self;
        NativeRun { kernel, native, registers, length, sums, squares: Some(squares), lane }
    }
}

impl<L: Lane<Element: Compute>, const SQUARES: bool> NativeVisitor for NativeRun<'_, L, SQUARES> {
    #[inline(always)]
    fn visit<N: NativeCode<I, S, O, Q>, const I: usize, const S: usize, const O: usize, const Q: usize>(self) {
        // Known to the compiler: it makes no code for what `has_code` excludes.
        if !N::IS_WHOLE && (SQUARES || L::WIDTH == 1) {
            return;
        }
        // Too expensive to decide for each lane, but with squares, whose second variant would be too much code.
        if reads_halves::<L>() && (SQUARES || self.has_halves()) {
            self.call(L::Set::address::<NativeLoop<L, N, I, S, O, Q, true, SQUARES>, _>());
        } else {
            self.call(L::Set::address::<NativeLoop<L, N, I, S, O, Q, false, SQUARES>, _>());
        }
    }
}

impl<L, const SQUARES: bool> NativeRun<'_, L, SQUARES> {
    fn has_halves(&self) -> bool {
        self.registers[..self.kernel.first_scalar()].iter().any(|register| register.dtype.is_half())
    }

    #[inline(always)]
    fn call(self, function: unsafe fn(Self)) {
        // SAFETY: the instruction set is the one that this runs on. The compiler shall not see which function it is.
        unsafe { black_box(function)(self) };
    }
}

/// The loop of one phase; with `SQUARES`, it adds up squares.
struct NativeLoop<
    L,
    N,
    const I: usize,
    const S: usize,
    const O: usize,
    const Q: usize,
    const HALVES: bool,
    const SQUARES: bool,
>(PhantomData<(L, N)>);

impl<'a, L, N, const I: usize, const S: usize, const O: usize, const Q: usize, const HALVES: bool, const SQUARES: bool>
    Body<NativeRun<'a, L, SQUARES>> for NativeLoop<L, N, I, S, O, Q, HALVES, SQUARES>
where
    L: Lane<Element: Compute>,
    N: NativeCode<I, S, O, Q>,
{
    #[inline(always)]
    fn call<T: Simd>(NativeRun { kernel, native, registers, length, sums, squares, .. }: NativeRun<'a, L, SQUARES>) {
        let (outputs, scalars) = (kernel.first_output(), kernel.first_scalar());
        let inputs: [Register; I] = std::array::from_fn(|k| registers[usize::from(native.inputs[k])]);
        let outputs: [Register; O] = std::array::from_fn(|k| registers[outputs + k]);
        let (left, mut i) = (length % L::WIDTH, 0);
        let mut values = [L::zero(); I];
        let mut splats = [L::zero(); S];
        let mut totals: [Totals; Q] = std::array::from_fn(|k| sums.totals[usize::from(sums.numbers[k])]);
        let mut further = squares.as_deref().copied().filter(|_| SQUARES).unwrap_or_default();
        let parameter = if SQUARES { registers[further.parameter] } else { inputs[0] };
        // SAFETY: the promise of `new`: `i + WIDTH` and `i + left` are at most `length`, and there are totals for each
        // lane. All inputs of a lane are read before an output is written, so that either may be the other.
        unsafe {
            for (splat, register) in splats.iter_mut().zip(&registers[scalars..]) {
                *splat = L::load(register.pointer.cast());
            }
            while i < length - left {
                for k in 0..I {
                    values[k] = inputs[k].load::<L, HALVES>(i);
                }
                let (results, terms) = N::call(values, splats);
                if SQUARES {
                    further.add(i, values[0], results[0], parameter.load::<L, HALVES>(i));
                }
                for k in 0..Q {
                    add(&mut totals[k], summand::<L>(i), terms[k]);
                }
                for k in 0..O {
                    outputs[k].store::<L, HALVES>(i, results[k]);
                }
                i += L::WIDTH;
            }
            if left > 0 {
                for k in 0..I {
                    values[k] = inputs[k].load_part::<L, HALVES>(i, left);
                }
                let (results, terms) = N::call(values, splats);
                if SQUARES {
                    let [g, new] = [values[0], results[0]].map(|lane| part_of(lane, left));
                    further.add(i, g, new, parameter.load_part::<L, HALVES>(i, left));
                }
                for k in 0..Q {
                    add(&mut totals[k], summand::<L>(i), part_of(terms[k], left));
                }
                for k in 0..O {
                    outputs[k].store_part::<L, HALVES>(i, left, results[k]);
                }
            }
        }
        for (total, number) in totals.into_iter().zip(sums.numbers) {
            sums.totals[usize::from(*number)] = total;
        }
        if let Some(squares) = squares.filter(|_| SQUARES) {
            *squares = further;
        }
    }
}

/// The totals of the sums of a kernel, those that it does not have included: see [`Squares`].
#[derive(Clone, Copy, Default)]
pub(super) struct SumsOfSquares {
    totals: [Totals; 3],
    parameter: usize,
}

impl SumsOfSquares {
    /// The sums, with their totals so far.
    pub fn of(squares: &Squares, totals: &[Totals]) -> Self {
        let totals = squares.of.map(|sum| sum.map_or([0.0; SUMMANDS], |sum| totals[usize::from(sum)]));
        Self { totals, parameter: squares.parameter.into() }
    }

    /// Stores the totals.
    pub fn store(self, squares: &Squares, totals: &mut [Totals]) {
        for (sum, value) in squares.of.iter().zip(self.totals) {
            if let Some(sum) = sum {
                totals[usize::from(*sum)] = value;
            }
        }
    }

    /// Adds the squares of the lanes of elements from `i` on, a multiple of their width.
    #[inline(always)]
    fn add<L: Lane>(&mut self, i: usize, g: L, new: L, old: L) {
        for (totals, term) in self.totals.iter_mut().zip([g, new.sub(old), new]) {
            // SAFETY: there are totals for a lane from there on.
            unsafe { add(totals, summand::<L>(i), term.mul(term)) };
        }
    }
}

/// The number of the total to which the first of the elements from `i` on, a multiple of the width, belongs: there are
/// totals for a lane, since the width divides `SUMMANDS`.
#[inline(always)]
fn summand<L: Lane>(i: usize) -> usize {
    // The widest lane has a register for each total.
    if L::WIDTH == SUMMANDS { 0 } else { i % SUMMANDS }
}

/// The first `count` numbers of a lane, less than all of them; the others are zero.
#[inline(always)]
fn part_of<L: Lane>(lane: L, count: usize) -> L {
    let mut numbers = [L::Element::from_f64(0.0); SUMMANDS];
    // SAFETY: the array has room for the widest lane.
    unsafe {
        lane.store_part(numbers.as_mut_ptr(), count);
        L::load(numbers.as_ptr())
    }
}

impl Register {
    /// The lane of numbers from `i` on. The branch is the same each time, and is predicted.
    ///
    /// # Safety
    /// The register moves and holds elements up to `i + WIDTH`; of halves only if `HALVES`, and of `f32` then.
    #[inline(always)]
    unsafe fn load<L: Lane<Element: Compute>, const HALVES: bool>(self, i: usize) -> L {
        // SAFETY: promised by the caller.
        unsafe {
            match self.dtype {
                Dtype::BF16 if HALVES => L::load_bf16(self.pointer.cast::<Bfloat16>().add(i)),
                Dtype::F16 if HALVES => L::load_f16(self.pointer.cast::<Float16>().add(i)),
                _ => L::load(self.pointer.cast::<L::Element>().add(i)),
            }
        }
    }

    /// # Safety
    /// The register moves and has room for elements up to `i + WIDTH`.
    #[inline(always)]
    unsafe fn store<L: Lane<Element: Compute>, const HALVES: bool>(self, i: usize, values: L) {
        // SAFETY: promised by the caller.
        unsafe {
            match self.dtype {
                Dtype::BF16 if HALVES => {
                    let to = self.pointer.cast::<Bfloat16>().add(i);
                    match self.draws {
                        None => values.store_bf16(to),
                        Some(draws) => values.store_bf16_at_random(to, draws.after(i)),
                    }
                }
                Dtype::F16 if HALVES => values.store_f16(self.pointer.cast::<Float16>().add(i)),
                _ => values.store(self.pointer.cast::<L::Element>().add(i)),
            }
        }
    }

    /// # Safety
    /// The register moves and holds elements up to `i + count`, less than a lane of them.
    #[inline(always)]
    unsafe fn load_part<L: Lane<Element: Compute>, const HALVES: bool>(self, i: usize, count: usize) -> L {
        // SAFETY: promised by the caller; an array of sixteen holds the widest lane of `f32`.
        unsafe {
            if HALVES && self.dtype.is_half() {
                L::load(self.widened(i, count).as_ptr().cast())
            } else {
                L::load_part(self.pointer.cast::<L::Element>().add(i), count)
            }
        }
    }

    /// # Safety
    /// The register moves and has room for elements up to `i + count`, less than a lane of them.
    #[inline(always)]
    unsafe fn store_part<L: Lane<Element: Compute>, const HALVES: bool>(self, i: usize, count: usize, values: L) {
        // SAFETY: promised by the caller; an array of sixteen has room for the widest lane of `f32`.
        unsafe {
            if HALVES && self.dtype.is_half() {
                let mut numbers = [0.0f32; 16];
                values.store(numbers.as_mut_ptr().cast());
                self.narrow(i, &numbers[..count]);
            } else {
                values.store_part(self.pointer.cast::<L::Element>().add(i), count);
            }
        }
    }

    /// Halves as numbers of `f32`. Apart, since it is the same for all kernels and not for whole lanes.
    ///
    /// # Safety
    /// The register holds halves up to `i + count`, at most sixteen of them.
    #[inline(never)]
    unsafe fn widened(self, i: usize, count: usize) -> [f32; 16] {
        let mut numbers = [0.0; 16];
        for (k, number) in numbers[..count].iter_mut().enumerate() {
            // SAFETY: promised by the caller.
            let bits = unsafe { self.pointer.cast::<u16>().add(i + k).read_unaligned() };
            let (float16, bfloat16) = (Float16::from_bits(bits), Bfloat16::from_bits(bits));
            *number = if self.dtype == Dtype::F16 { float16.to_f32() } else { bfloat16.to_f32() };
        }
        numbers
    }

    /// # Safety
    /// The register has room for halves from `i` on, as many as there are numbers.
    #[inline(never)]
    unsafe fn narrow(self, i: usize, numbers: &[f32]) {
        for (k, number) in numbers.iter().enumerate() {
            let bits = match self.draws {
                Some(draws) => Bfloat16::stochastic(*number, draws.after(i + k).first()).to_bits(),
                None if self.dtype == Dtype::F16 => Float16::nearest(*number).to_bits(),
                None => Bfloat16::nearest(*number).to_bits(),
            };
            // SAFETY: promised by the caller.
            unsafe { self.pointer.cast::<u16>().add(i + k).write_unaligned(bits) };
        }
    }
}

/// Whether lanes read and write halves where they lie: those of `f32`, if they are more than one number.
#[inline(always)]
pub(super) fn reads_halves<L: Lane<Element: Compute>>() -> bool {
    L::Element::DTYPE == Dtype::F32 && L::WIDTH > 1
}

/// Whether there is code for such lanes. One number at a time, the interpreter runs what has sums or several phases: it
/// needs no further code.
#[inline(always)]
pub(super) fn has_code<L: Lane>(native: &Native) -> bool {
    L::WIDTH > 1 || (native.is_whole && native.squares.is_none())
}
