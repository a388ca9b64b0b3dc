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
use crate::kernel::compiled::Squares;
use crate::kernel::native::code::{NativeCode, NativeVisitor};
use crate::simd::{Body, Element, Lane, Simd};

/// A run of native code: the registers of the kernel, the number of elements, and with `SUMS` the sums to add to.
pub(super) struct NativeRun<'a, L, const SUMS: bool> {
    kernel: &'a Kernel,
    registers: &'a [Register],
    length: usize,
    squares: Option<&'a mut SumsOfSquares>,
    lane: PhantomData<L>,
}

impl<'a, L> NativeRun<'a, L, false> {
    /// # Safety
    /// The registers are those of a native kernel: its inputs, its outputs, and its scalars as lanes. Inputs and outputs
    /// hold `length` elements of their dtype, a half or the lane's type; scalars are a lane. An output is apart from an
    /// input, or the same memory.
    #[inline(always)]
    pub unsafe fn new(kernel: &'a Kernel, registers: &'a [Register], length: usize) -> Self {
        Self { kernel, registers, length, squares: None, lane: PhantomData }
    }

    /// The run of a block that starts at a multiple of `SUMMANDS`, with sums.
    #[inline(always)]
    pub fn with(self, squares: &'a mut SumsOfSquares) -> NativeRun<'a, L, true> {
        let Self { kernel, registers, length, lane, .. } = self;
        NativeRun { kernel, registers, length, squares: Some(squares), lane }
    }
}

impl<L: Lane<Element: Compute>, const SUMS: bool> NativeVisitor for NativeRun<'_, L, SUMS> {
    #[inline(always)]
    fn visit<N: NativeCode<I, S, O>, const I: usize, const S: usize, const O: usize>(self) {
        // Too expensive to decide for each lane, but with sums, whose second variant would be too much code.
        if reads_halves::<L>() && (SUMS || self.has_halves()) {
            self.call(L::Set::address::<NativeLoop<L, N, I, S, O, true, SUMS>, _>());
        } else {
            self.call(L::Set::address::<NativeLoop<L, N, I, S, O, false, SUMS>, _>());
        }
    }
}

impl<L, const SUMS: bool> NativeRun<'_, L, SUMS> {
    fn has_halves(&self) -> bool {
        self.registers[..self.kernel.first_scalar()].iter().any(|register| register.dtype.is_half())
    }

    #[inline(always)]
    fn call(self, function: unsafe fn(Self)) {
        // SAFETY: the instruction set is the one that this runs on. The compiler shall not see which function it is.
        unsafe { black_box(function)(self) };
    }
}

/// The loop of one kernel; with `SUMS`, it adds up squares.
struct NativeLoop<L, N, const I: usize, const S: usize, const O: usize, const HALVES: bool, const SUMS: bool>(
    PhantomData<(L, N)>,
);

impl<'a, L, N, const I: usize, const S: usize, const O: usize, const HALVES: bool, const SUMS: bool>
    Body<NativeRun<'a, L, SUMS>> for NativeLoop<L, N, I, S, O, HALVES, SUMS>
where
    L: Lane<Element: Compute>,
    N: NativeCode<I, S, O>,
{
    #[inline(always)]
    fn call<T: Simd>(NativeRun { kernel, registers, length, squares, .. }: NativeRun<'a, L, SUMS>) {
        let (outputs, scalars) = (kernel.first_output(), kernel.first_scalar());
        // Testing for each lane whether a register moves is too expensive. An input that is not read may have any
        // memory.
        let inputs: [Register; I] = std::array::from_fn(|k| registers[if registers[k].moves { k } else { outputs }]);
        let outputs: [Register; O] = std::array::from_fn(|k| registers[outputs + k]);
        let (left, mut i) = (length % L::WIDTH, 0);
        let mut values = [L::zero(); I];
        let mut splats = [L::zero(); S];
        let mut sums = squares.as_deref().copied().filter(|_| SUMS).unwrap_or_default();
        let parameter = if SUMS { registers[sums.parameter] } else { inputs[0] };
        // SAFETY: the promise of `new`: `i + WIDTH` and `i + left` are at most `length`. All inputs of a lane are read
        // before an output is written, so that either may be the other.
        unsafe {
            for (splat, register) in splats.iter_mut().zip(&registers[scalars..]) {
                *splat = L::load(register.pointer.cast());
            }
            while i < length - left {
                for k in 0..I {
                    values[k] = inputs[k].load::<L, HALVES>(i);
                }
                let results = N::call(values, splats);
                if SUMS {
                    sums.add(i, values[0], results[0], parameter.load::<L, HALVES>(i));
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
                let results = N::call(values, splats);
                if SUMS {
                    let [g, new] = [values[0], results[0]].map(|lane| part_of(lane, left));
                    sums.add(i, g, new, parameter.load_part::<L, HALVES>(i, left));
                }
                for k in 0..O {
                    outputs[k].store_part::<L, HALVES>(i, left, results[k]);
                }
            }
        }
        if let Some(squares) = squares.filter(|_| SUMS) {
            *squares = sums;
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
        for (sum, found) in squares.of.iter().zip(self.totals) {
            if let Some(sum) = sum {
                totals[usize::from(*sum)] = found;
            }
        }
    }

    /// Adds the squares of the lanes of elements from `i` on, a multiple of their width.
    #[inline(always)]
    fn add<L: Lane>(&mut self, i: usize, g: L, new: L, old: L) {
        // The widest lane has a register for each total.
        let at = if L::WIDTH == SUMMANDS { 0 } else { i % SUMMANDS };
        for (totals, term) in self.totals.iter_mut().zip([g, new.sub(old), new]) {
            // SAFETY: `at` is a multiple of the width, which divides `SUMMANDS`.
            unsafe { add(totals, at, term.mul(term)) };
        }
    }
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

/// Whether native code for such lanes computes sums. One number at a time, the interpreter does: it needs no further code.
#[inline(always)]
pub(super) fn has_sums<L: Lane>() -> bool {
    L::WIDTH > 1
}
