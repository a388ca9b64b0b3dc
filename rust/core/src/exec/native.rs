//! Runs kernels that have native code, whole lanes at a time. One of the files that touch foreign memory.

#![allow(clippy::cast_ptr_alignment, reason = "lanes and halves are read and written at any alignment")]

use std::hint::black_box;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::batch::Part;
use super::loops::add_product;
use super::register::{Register, SUMMANDS, Totals};
use super::transfer::Compute;
use crate::array::buffer::{Buffer, Dtype, Layout, Rounding};
use crate::array::half::{Bfloat16, Float16, Half};
use crate::kernel::Kernel;
use crate::kernel::compiled::{Native, Phase};
use crate::kernel::native::code::{NativeCode, NativeVisitor};
use crate::simd::{Body, Element, Lane, Simd};

/// A run of native code: the registers of the kernel, the number of elements, and the sums to add to.
pub(super) struct NativeRun<'a, L> {
    kernel: &'a Kernel,
    native: &'a Native,
    registers: &'a [Register],
    length: usize,
    sums: Sums<'a>,
    lane: PhantomData<L>,
}

/// The sums of a phase: their numbers, and the totals of all sums of the kernel.
pub(super) struct Sums<'a> {
    pub numbers: &'a [u16],
    pub totals: &'a mut [Totals],
}

impl<'a, L: Lane<Element: Compute>> NativeRun<'a, L> {
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
        Self { kernel, native, registers, length, sums, lane: PhantomData }
    }

    /// Runs the loop of the phase.
    #[inline(always)]
    pub fn call(self) {
        // Too expensive to decide for each lane.
        let function = if reads_halves::<L>() && self.has_halves() {
            self.native.code.visit(FindLoop::<L, true>(PhantomData))
        } else {
            self.native.code.visit(FindLoop::<L, false>(PhantomData))
        };
        // SAFETY: the instruction set is the one that this runs on. The compiler shall not see which function it is.
        unsafe { black_box(function)(self) };
    }

    #[inline(always)]
    fn has_halves(&self) -> bool {
        self.registers[..self.kernel.first_scalar()].iter().any(|register| register.dtype.is_half())
    }
}

/// Finds the loop of a phase; with `HALVES`, the one that reads and writes them too.
struct FindLoop<'a, L, const HALVES: bool>(PhantomData<&'a L>);

impl<'a, L: Lane<Element: Compute>, const HALVES: bool> NativeVisitor for FindLoop<'a, L, HALVES> {
    type Output = unsafe fn(NativeRun<'a, L>);

    #[inline(always)]
    fn visit<N: NativeCode<I, S, O, Q>, const I: usize, const S: usize, const O: usize, const Q: usize>(
        self,
    ) -> Self::Output {
        L::Set::address::<NativeLoop<L, N, I, S, O, Q, HALVES>, _>()
    }
}

/// The loop of one phase.
struct NativeLoop<L, N, const I: usize, const S: usize, const O: usize, const Q: usize, const HALVES: bool>(
    PhantomData<(L, N)>,
);

impl<'a, L, N, const I: usize, const S: usize, const O: usize, const Q: usize, const HALVES: bool>
    Body<NativeRun<'a, L>> for NativeLoop<L, N, I, S, O, Q, HALVES>
where
    L: Lane<Element: Compute>,
    N: NativeCode<I, S, O, Q>,
{
    #[inline(always)]
    fn call<T: Simd>(NativeRun { kernel, native, registers, length, sums, .. }: NativeRun<'a, L>) {
        let (outputs, scalars) = (kernel.first_output(), kernel.first_scalar());
        let mut inputs: [Register; I] = std::array::from_fn(|k| registers[usize::from(native.inputs[k])]);
        let outputs: [Register; O] = std::array::from_fn(|k| registers[outputs + k]);
        let (left, mut i) = (length % L::WIDTH, 0);
        let mut values = [L::zero(); I];
        let mut splats = [L::zero(); S];
        let mut totals: [Totals; Q] = std::array::from_fn(|k| sums.totals[usize::from(sums.numbers[k])]);
        // SAFETY: the promise of `new`: `i + WIDTH` and `i + left` are at most `length`, and there are totals for each
        // lane. All inputs of a lane are read before an output is written, so that either may be the other.
        unsafe {
            for (splat, register) in splats.iter_mut().zip(&registers[scalars..]) {
                *splat = L::load(register.pointer.cast());
            }
            if HALVES {
                // What is less than a lane goes through lanes of its own.
                let (mut own_inputs, mut own_outputs) =
                    ([MaybeUninit::<L>::uninit(); I], [MaybeUninit::<L>::uninit(); O]);
                let (mut targets, mut end) = (outputs, length - left);
                loop {
                    if i >= end {
                        if i >= length {
                            break;
                        }
                        for k in 0..I {
                            own_inputs[k].write(inputs[k].load_part::<L, HALVES>(i, left));
                            inputs[k] = Register::of_lane(&mut own_inputs[k], i);
                        }
                        for k in 0..O {
                            targets[k] = Register::of_lane(&mut own_outputs[k], i);
                        }
                        end = i + L::WIDTH;
                    }
                    for k in 0..I {
                        values[k] = inputs[k].load::<L, HALVES>(i);
                    }
                    let results = N::lane(values, splats, &mut totals, i, length);
                    for k in 0..O {
                        targets[k].store::<L, HALVES>(i, results[k]);
                    }
                    i += L::WIDTH;
                }
                if left > 0 {
                    for k in 0..O {
                        outputs[k].store_part::<L, HALVES>(length - left, left, own_outputs[k].assume_init());
                    }
                }
            } else if L::MASKED {
                let mut count = L::WIDTH.min(length);
                while i < length {
                    for k in 0..I {
                        values[k] = inputs[k].load_part::<L, HALVES>(i, count);
                    }
                    let results = N::lane(values, splats, &mut totals, i, length);
                    for k in 0..O {
                        outputs[k].store_part::<L, HALVES>(i, count, results[k]);
                    }
                    i += L::WIDTH;
                    if i + L::WIDTH > length {
                        count = left;
                    }
                }
            } else {
                while i < length - left {
                    for k in 0..I {
                        values[k] = inputs[k].load::<L, HALVES>(i);
                    }
                    let results = N::lane(values, splats, &mut totals, i, length);
                    for k in 0..O {
                        outputs[k].store::<L, HALVES>(i, results[k]);
                    }
                    i += L::WIDTH;
                }
                // The code is there twice: leaves of a few numbers would wait for lanes of their own.
                if left > 0 {
                    for k in 0..I {
                        values[k] = inputs[k].load_part::<L, HALVES>(i, left);
                    }
                    let results = N::lane(values, splats, &mut totals, i, length);
                    for k in 0..O {
                        outputs[k].store_part::<L, HALVES>(i, left, results[k]);
                    }
                }
            }
        }
        for (total, number) in totals.into_iter().zip(sums.numbers) {
            sums.totals[usize::from(*number)] = total;
        }
    }
}

/// Native code with its sums.
trait Computed<L: Lane, const I: usize, const S: usize, const O: usize, const Q: usize> {
    /// The outputs of a lane from element `i` on, of which those before `length` add to the totals.
    fn lane(inputs: [L; I], scalars: [L; S], totals: &mut [Totals; Q], i: usize, length: usize) -> [L; O];
}

impl<L: Lane, N: NativeCode<I, S, O, Q>, const I: usize, const S: usize, const O: usize, const Q: usize>
    Computed<L, I, S, O, Q> for N
{
    #[inline(always)]
    fn lane(inputs: [L; I], scalars: [L; S], totals: &mut [Totals; Q], i: usize, length: usize) -> [L; O] {
        let (outputs, terms) = N::call(inputs, scalars);
        for k in 0..Q {
            let factors =
                if i + L::WIDTH > length { terms[k].map(|factor| part_of(factor, length - i)) } else { terms[k] };
            // SAFETY: there are totals for a lane from there on.
            unsafe { add_product(&mut totals[k], summand::<L>(i), factors) };
        }
        outputs
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
    /// The register whose numbers from `i` on are a lane.
    #[inline(always)]
    fn of_lane<L: Lane<Element: Compute>>(lane: &mut MaybeUninit<L>, i: usize) -> Self {
        let pointer = lane.as_mut_ptr().cast::<L::Element>().wrapping_sub(i).cast();
        Self { pointer, moves: true, dtype: L::Element::DTYPE, draws: None }
    }

    /// The lane of numbers from `i` on. The branch is the same each time, and is predicted.
    ///
    /// # Safety
    /// The register moves and holds elements up to `i + WIDTH`; of halves only if `HALVES`, and of `f32` then.
    #[inline(always)]
    unsafe fn load<L: Lane<Element: Compute>, const HALVES: bool>(self, i: usize) -> L {
        // SAFETY: promised by the caller.
        unsafe {
            match self.dtype {
                Dtype::BF16 if HALVES => L::load_bf16(self.pointer.cast::<Bfloat16>().wrapping_add(i)),
                Dtype::F16 if HALVES => L::load_f16(self.pointer.cast::<Float16>().wrapping_add(i)),
                _ => L::load(self.pointer.cast::<L::Element>().wrapping_add(i)),
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
                _ => values.store(self.pointer.cast::<L::Element>().wrapping_add(i)),
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
fn reads_halves<L: Lane<Element: Compute>>() -> bool {
    L::Element::DTYPE == Dtype::F32 && L::WIDTH > 1
}

/// The native code of a phase for such lanes: processors that compute one number at a time interpret rules.
#[inline(always)]
pub(super) fn native<L: Lane>(phase: &Phase) -> Option<&Native> {
    phase.native.as_ref().filter(|_| L::WIDTH > 1)
}

/// Whether the numbers can be read and written where they lie, by native code or by the interpreter.
#[inline(always)]
pub(super) fn lies_ready<L: Lane<Element: Compute>>(buffer: &Buffer, native: bool) -> bool {
    let is_read = buffer.dtype == L::Element::DTYPE || (native && buffer.dtype.is_half() && reads_halves::<L>());
    is_read && buffer.layout == Layout::Contiguous && buffer.rows.is_none()
}

/// Whether numbers are rounded on their way into the buffer otherwise than lanes do it: they round bfloat16 to nearest
/// and stochastically, by draws that change only where the upper half of the index does.
pub(super) fn is_rounded_apart<L: Lane>(buffer: &Buffer, part: &Part) -> bool {
    let is_drawn = buffer.rounding != Rounding::Nearest && buffer.dtype.is_half();
    let is_by_lane = native::<L>(part.phase).is_some() && buffer.dtype == Dtype::BF16;
    let first = part.leaf.first;
    is_drawn && !(is_by_lane && (first + part.start) | u32::MAX as usize >= first + part.end - 1)
}
