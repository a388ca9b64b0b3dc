//! Elements of any layout and type into a block, and back. One of the files that touch foreign memory.

use crate::buffer::{Axis, Buffer, Dtype, Layout, Rounding};
use crate::dtype::{DtypeVisitor, Stored};
use crate::half::{Bfloat16, Float16, Half, narrowed};
use crate::lane::Element;
use crate::{noise, quantized};

/// A type that kernels compute in: how it converts from and to what lies in memory.
pub(super) trait Compute: Element {
    const DTYPE: Dtype;
    fn read<T: Stored>(value: T) -> Self;
    fn write<T: Stored>(self) -> T;
    /// A number of `H` next to it, chosen by the lower sixteen random bits.
    fn round<H: Half>(self, random: u32) -> Self;
}

impl Compute for f32 {
    const DTYPE: Dtype = Dtype::F32;
    #[inline(always)]
    fn read<T: Stored>(value: T) -> Self {
        value.to_f32()
    }
    #[inline(always)]
    fn write<T: Stored>(self) -> T {
        T::from_f32(self)
    }
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "takes the lower half")]
    fn round<H: Half>(self, random: u32) -> Self {
        H::stochastic(self, random as u16).to_f32()
    }
}

impl Compute for f64 {
    const DTYPE: Dtype = Dtype::F64;
    #[inline(always)]
    fn read<T: Stored>(value: T) -> Self {
        value.to_f64()
    }
    #[inline(always)]
    fn write<T: Stored>(self) -> T {
        T::from_f64(self)
    }
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "takes the lower half")]
    fn round<H: Half>(self, random: u32) -> Self {
        f64::from(H::stochastic(narrowed(self), random as u16).to_f32())
    }
}

/// Some consecutive elements of a buffer, and as many numbers of a block. Of a quantized buffer, whole blocks of its
/// scales, but for the last.
pub(super) struct Transfer<'a, E> {
    pub buffer: &'a Buffer,
    pub start: usize,
    pub length: usize,
    pub block: *mut E,
}

/// What stochastic rounding draws by: the key of the leaf's noise, and which output is rounded.
#[derive(Clone, Copy)]
pub(super) struct Draws {
    pub key: u64,
    pub output: usize,
}

impl<E: Compute> Transfer<'_, E> {
    /// Reads the elements into the block, converted.
    ///
    /// # Safety
    /// The buffer has these elements, its memory is valid, and the block has room.
    #[inline(always)]
    pub unsafe fn gather(self) {
        // SAFETY: the caller's promise; each arm reads the buffer's own dtype.
        unsafe {
            match self.buffer.dtype {
                _ if !self.is_vectorised() => self.gather_any(),
                Dtype::F16 => self.read::<Float16>(),
                Dtype::BF16 => self.read::<Bfloat16>(),
                Dtype::I8 | Dtype::U8 if self.buffer.is_quantized() => self.decode(),
                _ => self.gather_any(),
            }
        }
    }

    /// Writes the block to the elements, converted. What is in the block after that is unspecified.
    ///
    /// # Safety
    /// The buffer has these elements, its memory is valid and may be written, and the block holds as many.
    #[inline(always)]
    pub unsafe fn scatter(self, draws: Draws) {
        // SAFETY: the caller's promise; each arm writes the buffer's own dtype.
        unsafe {
            match (self.buffer.dtype, self.buffer.rounding) {
                _ if !self.is_vectorised() => self.scatter_any(draws),
                (Dtype::F16, Rounding::Stochastic) => {
                    self.round::<Float16>(draws);
                    self.write::<Float16>();
                }
                (Dtype::BF16, Rounding::Stochastic) => {
                    self.round::<Bfloat16>(draws);
                    self.write::<Bfloat16>();
                }
                (Dtype::F16, Rounding::Nearest) => self.write::<Float16>(),
                (Dtype::BF16, Rounding::Nearest) => self.write::<Bfloat16>(),
                (Dtype::I8 | Dtype::U8, _) if self.buffer.is_quantized() => self.encode(),
                _ => self.scatter_any(draws),
            }
        }
    }

    /// Whether it is worth code of its own for each instruction set.
    #[inline(always)]
    fn is_vectorised(&self) -> bool {
        E::DTYPE == Dtype::F32 && self.buffer.layout == Layout::Contiguous
    }

    /// # Safety
    /// As `gather`.
    #[inline(never)]
    unsafe fn gather_any(self) {
        if self.buffer.is_quantized() {
            // SAFETY: the caller's promise.
            unsafe { self.decode() };
        } else {
            self.buffer.dtype.visit(Gather(self));
        }
    }

    /// # Safety
    /// As `scatter`.
    #[inline(never)]
    unsafe fn scatter_any(self, draws: Draws) {
        // SAFETY: the caller's promise.
        unsafe {
            match (self.buffer.dtype, self.buffer.rounding) {
                (Dtype::F16, Rounding::Stochastic) => self.round::<Float16>(draws),
                (Dtype::BF16, Rounding::Stochastic) => self.round::<Bfloat16>(draws),
                _ if self.buffer.is_quantized() => return self.encode(),
                _ => {}
            }
        }
        self.buffer.dtype.visit(Scatter(self));
    }

    /// # Safety
    /// As `gather`; the buffer is contiguous and of type `T`.
    #[inline(always)]
    unsafe fn read<T: Stored>(&self) {
        let from = self.buffer.pointer.cast::<T>().wrapping_add(self.start).cast_const();
        for k in 0..self.length {
            // SAFETY: the caller's promise.
            unsafe { self.block.add(k).write_unaligned(E::read(from.add(k).read_unaligned())) };
        }
    }

    /// # Safety
    /// As `scatter`; the buffer is contiguous and of type `T`.
    #[inline(always)]
    unsafe fn write<T: Stored>(&self) {
        let to = self.buffer.pointer.cast::<T>().wrapping_add(self.start);
        for k in 0..self.length {
            // SAFETY: the caller's promise.
            unsafe { to.add(k).write_unaligned(self.block.add(k).read_unaligned().write::<T>()) };
        }
    }

    /// Rounds the numbers of the block to halves at random, so that writing them will be exact.
    ///
    /// # Safety
    /// The block holds `length` numbers.
    #[inline(always)]
    unsafe fn round<H: Half + Stored>(&self, draws: Draws) {
        // The draws of a rule count from zero, these from the other end. One draw of 32 bits does for two outputs.
        let draw = u32::MAX - u32::try_from(draws.output / 2).unwrap_or(u32::MAX);
        let shift = if draws.output.is_multiple_of(2) { 0 } else { 16 };
        let mut drawn = [0; 64];
        for from in (0..self.length).step_by(drawn.len()) {
            let count = drawn.len().min(self.length - from);
            noise::fill(&mut drawn[..count], draws.key, draw, (self.start + from) as u64);
            for (k, bits) in drawn[..count].iter().enumerate() {
                let place = self.block.wrapping_add(from + k);
                // SAFETY: the caller's promise: `from + k < length`.
                unsafe { place.write_unaligned(place.read_unaligned().round::<H>(bits >> shift)) };
            }
        }
    }

    /// # Safety
    /// As `gather`; the buffer is quantized.
    #[inline(always)]
    unsafe fn decode(&self) {
        let signed = self.buffer.dtype == Dtype::I8;
        let (mut codes, mut numbers) = ([0; quantized::BLOCK], [0.0; quantized::BLOCK]);
        for at in (0..self.length).step_by(quantized::BLOCK) {
            let count = quantized::BLOCK.min(self.length - at);
            let (from, scale) = self.codes(at);
            // SAFETY: the caller's promise, and that `at + count <= length`.
            unsafe {
                from.copy_to_nonoverlapping(codes.as_mut_ptr(), count);
                quantized::decode(&codes, scale.read_unaligned(), signed, &mut numbers);
                for (k, number) in numbers[..count].iter().enumerate() {
                    self.block.add(at + k).write_unaligned(E::read(*number));
                }
            }
        }
    }

    /// # Safety
    /// As `scatter`; the buffer is quantized.
    #[inline(always)]
    unsafe fn encode(&self) {
        let signed = self.buffer.dtype == Dtype::I8;
        let (mut codes, mut numbers) = ([0; quantized::BLOCK], [0.0; quantized::BLOCK]);
        for at in (0..self.length).step_by(quantized::BLOCK) {
            let count = quantized::BLOCK.min(self.length - at);
            numbers[count..].fill(0.0);
            let (to, scale) = self.codes(at);
            // SAFETY: the caller's promise, and that `at + count <= length`.
            unsafe {
                for (k, number) in numbers[..count].iter_mut().enumerate() {
                    *number = self.block.add(at + k).read_unaligned().write();
                }
                scale.write_unaligned(quantized::encode(&numbers, signed, &mut codes));
                to.copy_from_nonoverlapping(codes.as_ptr(), count);
            }
        }
    }

    /// Where the codes from `at` on lie, and their scale.
    fn codes(&self, at: usize) -> (*mut u8, *mut f32) {
        let index = self.start + at;
        debug_assert!(index.is_multiple_of(quantized::BLOCK), "parts start where blocks of codes do");
        let scales = self.buffer.scales.cast::<f32>();
        (self.buffer.pointer.wrapping_add(index), scales.wrapping_add(index / quantized::BLOCK))
    }

    /// Calls `f(address, step, place, count)` for each run of evenly spaced elements.
    fn runs(&self, mut f: impl FnMut(*mut u8, isize, usize, usize)) {
        let base = self.buffer.pointer;
        match &self.buffer.layout {
            Layout::Contiguous => {
                let size = self.buffer.dtype.size();
                f(base.wrapping_add(self.start * size), size.cast_signed(), 0, self.length);
            }
            Layout::Repeated => f(base, 0, 0, self.length),
            Layout::Strided(axes) => {
                let mut done = 0;
                while done < self.length {
                    let (offset, left) = locate(axes, self.start + done);
                    let count = left.min(self.length - done);
                    let step = axes.last().map_or(0, |axis| axis.stride);
                    f(base.wrapping_offset(offset), step, done, count);
                    done += count;
                }
            }
        }
    }
}

/// Where the element of an index lies, in bytes, and how many follow it on the last axis, itself included.
fn locate(axes: &[Axis], index: usize) -> (isize, usize) {
    let (mut rest, mut offset, mut left) = (index, 0isize, None);
    for axis in axes.iter().rev() {
        let at = rest % axis.extent;
        rest /= axis.extent;
        // The span was checked to lie in the address space: no product of it overflows.
        offset += at.cast_signed() * axis.stride;
        left.get_or_insert(axis.extent - at);
    }
    (offset, left.unwrap_or(1))
}

struct Gather<'a, E>(Transfer<'a, E>);

impl<E: Compute> DtypeVisitor for Gather<'_, E> {
    type Output = ();

    fn visit<T: Stored>(self) {
        self.0.runs(|from, step, place, count| {
            for k in 0..count {
                let address = from.wrapping_offset(k.cast_signed() * step).cast::<T>();
                // SAFETY: the run lies in the buffer's span, which the caller of `gather` promises to be valid, and
                // the block has room for `place + count` numbers; `T` is the buffer's dtype, all bits of it are valid.
                unsafe { self.0.block.add(place + k).write_unaligned(E::read(address.read_unaligned())) };
            }
        });
    }
}

struct Scatter<'a, E>(Transfer<'a, E>);

impl<E: Compute> DtypeVisitor for Scatter<'_, E> {
    type Output = ();

    fn visit<T: Stored>(self) {
        self.0.runs(|to, step, place, count| {
            for k in 0..count {
                let address = to.wrapping_offset(k.cast_signed() * step).cast::<T>();
                // SAFETY: the run lies in the buffer's span, which the caller of `scatter` promises to be writable,
                // and the block holds `place + count` numbers.
                unsafe { address.write_unaligned(self.0.block.add(place + k).read_unaligned().write::<T>()) };
            }
        });
    }
}
