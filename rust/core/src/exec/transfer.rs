//! Transfer of elements of any layout and type into a block, and back. One of the files that touch foreign memory.

use super::batch::Leaf;
use crate::array::buffer::{Buffer, Dtype, Layout, Rounding};
use crate::array::dtype::{DtypeVisitor, Stored};
use crate::array::half::{Bfloat16, Float16, Half, narrowed};
use crate::array::quantized::{Codec, Coding, Eight, Four, eight, four};
use crate::array::traversal::grids;
use crate::simd::Element;

/// A type that kernels compute in, with its conversions from and to the dtypes in memory.
pub(super) trait Compute: Element {
    const DTYPE: Dtype;
    fn read<T: Stored>(value: T) -> Self;
    fn write<T: Stored>(self) -> T;
    /// Its stochastic rounding to `H`, by sixteen random bits.
    fn round<H: Half>(self, random: u16) -> Self;
    /// A whole block of numbers of the type in which they are encoded, if this is that type.
    fn as_numbers<const N: usize>(block: &mut [Self]) -> Option<&mut [f32; N]>;
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
    fn round<H: Half>(self, random: u16) -> Self {
        H::stochastic(self, random).to_f32()
    }
    #[inline(always)]
    fn as_numbers<const N: usize>(block: &mut [Self]) -> Option<&mut [f32; N]> {
        block.try_into().ok()
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
    fn round<H: Half>(self, random: u16) -> Self {
        f64::from(H::stochastic(narrowed(self), random).to_f32())
    }
    #[inline(always)]
    fn as_numbers<const N: usize>(_: &mut [Self]) -> Option<&mut [f32; N]> {
        None
    }
}

/// Consecutive elements of a buffer, and as many numbers of a block. In a quantized buffer, these are whole blocks of
/// its scales, except the last.
pub(super) struct Transfer<'a, E> {
    pub buffer: &'a Buffer,
    pub start: usize,
    pub block: &'a mut [E],
}

impl<E: Compute> Transfer<'_, E> {
    /// Reads the elements into the block, converted.
    ///
    /// # Safety
    /// The buffer has these elements, and its memory is valid.
    #[inline(always)]
    pub unsafe fn gather(self) {
        // SAFETY: the caller's promise; each arm reads the buffer's own dtype.
        unsafe {
            match self.buffer.dtype {
                _ if !self.is_vectorised() => self.gather_any(),
                Dtype::F16 => self.read::<Float16>(),
                Dtype::BF16 => self.read::<Bfloat16>(),
                Dtype::U8 if self.buffer.is_quantized() => self.decode(),
                _ => self.gather_any(),
            }
        }
    }

    /// Writes the block to the elements, converted; stochastic rounding draws by the noise of the `leaf`. The
    /// block is unspecified afterwards.
    ///
    /// # Safety
    /// The buffer has these elements, and its memory is valid and may be written.
    #[inline(always)]
    pub unsafe fn scatter(mut self, leaf: &Leaf) {
        // SAFETY: the caller's promise; each arm writes the buffer's own dtype.
        unsafe {
            match (self.buffer.dtype, self.buffer.rounding) {
                _ if !self.is_vectorised() => self.scatter_any(leaf),
                (Dtype::F16, Rounding::Stochastic(number)) => {
                    self.round::<Float16>(leaf, number);
                    self.write::<Float16>();
                }
                (Dtype::BF16, Rounding::Stochastic(number)) => {
                    self.round::<Bfloat16>(leaf, number);
                    self.write::<Bfloat16>();
                }
                (Dtype::F16, Rounding::Nearest) => self.write::<Float16>(),
                (Dtype::BF16, Rounding::Nearest) => self.write::<Bfloat16>(),
                (Dtype::U8, _) if self.buffer.is_quantized() => self.encode(),
                _ => self.scatter_any(leaf),
            }
        }
    }

    /// Whether it has specialized code for each instruction set.
    #[inline(always)]
    fn is_vectorised(&self) -> bool {
        E::DTYPE == Dtype::F32 && self.buffer.layout == Layout::Contiguous && self.buffer.rows.is_none()
    }

    /// `gather` for any dtype and layout, without an instruction set.
    ///
    /// # Safety
    /// As `gather`.
    #[inline(never)]
    pub unsafe fn gather_any(self) {
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
    unsafe fn scatter_any(mut self, leaf: &Leaf) {
        // SAFETY: the caller's promise.
        unsafe {
            match (self.buffer.dtype, self.buffer.rounding) {
                (Dtype::F16, Rounding::Stochastic(number)) => self.round::<Float16>(leaf, number),
                (Dtype::BF16, Rounding::Stochastic(number)) => self.round::<Bfloat16>(leaf, number),
                _ if self.buffer.is_quantized() => return self.encode(),
                _ => {}
            }
        }
        self.buffer.dtype.visit(Scatter(self));
    }

    /// # Safety
    /// As `gather`; the buffer is contiguous and of type `T`.
    #[inline(always)]
    unsafe fn read<T: Stored>(self) {
        let from = self.buffer.pointer.cast::<T>().wrapping_add(self.start).cast_const();
        for (k, number) in self.block.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *number = E::read(unsafe { from.add(k).read_unaligned() });
        }
    }

    /// # Safety
    /// As `scatter`; the buffer is contiguous and of type `T`.
    #[inline(always)]
    unsafe fn write<T: Stored>(self) {
        let to = self.buffer.pointer.cast::<T>().wrapping_add(self.start);
        for (k, number) in self.block.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { to.add(k).write_unaligned(number.write::<T>()) };
        }
    }

    /// Rounds the numbers of the block to halves stochastically, so that writing them is exact.
    #[inline(always)]
    fn round<H: Half>(&mut self, leaf: &Leaf, number: u32) {
        let Leaf { noise_key: key, first, .. } = *leaf;
        match &self.buffer.rows {
            None => round::<E, H>(self.block, key, number, first + self.start),
            Some(rows) => rows.runs(self.start, self.block.len(), |element, place, count| {
                round::<E, H>(&mut self.block[place..][..count], key, number, first + element);
            }),
        }
    }

    /// # Safety
    /// As `gather`; the buffer is quantized.
    #[inline(always)]
    unsafe fn decode(self) {
        // SAFETY: the caller's promise; the codes are of this kind.
        unsafe {
            match self.buffer.codec {
                Some(Codec::Four) => self.decode_by::<Four, { four::BLOCK }, { four::BYTES }>(),
                _ => self.decode_by::<Eight, { eight::BLOCK }, { eight::BLOCK }>(),
            }
        }
    }

    /// # Safety
    /// As `gather`; the buffer has codes of the kind `C`.
    #[inline(always)]
    unsafe fn decode_by<C: Coding<N, B>, const N: usize, const B: usize>(self) {
        for (at, block) in self.block.chunks_mut(N).enumerate() {
            let (codes, scale) = codes_at::<N, B>(self.buffer, self.start + at * N);
            // SAFETY: the caller's promise; the codes are a whole block where the numbers are.
            unsafe {
                match E::as_numbers::<N>(block) {
                    Some(numbers) => {
                        let codes = codes.cast::<[u8; B]>().read_unaligned();
                        C::decode(&codes, scale.read_unaligned(), numbers);
                    }
                    None => decode_some::<E, C, N, B>(codes, scale, block),
                }
            }
        }
    }

    /// # Safety
    /// As `scatter`; the buffer is quantized.
    #[inline(always)]
    unsafe fn encode(self) {
        // SAFETY: the caller's promise; the codes are of this kind.
        unsafe {
            match self.buffer.codec {
                Some(Codec::Four) => self.encode_by::<Four, { four::BLOCK }, { four::BYTES }>(),
                _ => self.encode_by::<Eight, { eight::BLOCK }, { eight::BLOCK }>(),
            }
        }
    }

    /// # Safety
    /// As `scatter`; the buffer has codes of the kind `C`.
    #[inline(always)]
    unsafe fn encode_by<C: Coding<N, B>, const N: usize, const B: usize>(self) {
        for (at, block) in self.block.chunks_mut(N).enumerate() {
            let (to, scale) = codes_at::<N, B>(self.buffer, self.start + at * N);
            // SAFETY: the caller's promise; the codes are a whole block where the numbers are.
            unsafe {
                match E::as_numbers::<N>(block) {
                    Some(numbers) => {
                        let mut codes = [0; B];
                        scale.write_unaligned(C::encode(numbers, &mut codes));
                        to.cast::<[u8; B]>().write_unaligned(codes);
                    }
                    None => encode_some::<E, C, N, B>(to, scale, block),
                }
            }
        }
    }
}

/// Decodes the start of a block, or numbers of another type.
///
/// # Safety
/// There are codes for the numbers, and a scale.
#[inline(never)]
unsafe fn decode_some<E: Compute, C: Coding<N, B>, const N: usize, const B: usize>(
    from: *const u8,
    scale: *const f32,
    block: &mut [E],
) {
    let (mut codes, mut numbers) = ([0; B], [0.0; N]);
    // SAFETY: the caller's promise.
    unsafe {
        from.copy_to_nonoverlapping(codes.as_mut_ptr(), C::CODEC.bytes(block.len()));
        C::decode(&codes, scale.read_unaligned(), &mut numbers);
    }
    for (to, number) in block.iter_mut().zip(numbers) {
        *to = E::read(number);
    }
}

/// Encodes the start of a block, or numbers of another type.
///
/// # Safety
/// There is room for the codes of the numbers, and a scale.
#[inline(never)]
unsafe fn encode_some<E: Compute, C: Coding<N, B>, const N: usize, const B: usize>(
    to: *mut u8,
    scale: *mut f32,
    block: &[E],
) {
    // Another number than one of them could change the scale.
    let (mut codes, mut numbers) = ([0; B], [block.first().map_or(0.0, |first| first.write()); N]);
    for (number, from) in numbers.iter_mut().zip(block) {
        *number = from.write();
    }
    let bytes = C::CODEC.bytes(block.len());
    // SAFETY: the caller's promise.
    unsafe {
        scale.write_unaligned(C::encode(&numbers, &mut codes));
        if bytes * N > block.len() * B {
            codes[bytes - 1] &= 0xf0; // half of it is the code of no number
        }
        to.copy_from_nonoverlapping(codes.as_ptr(), bytes);
    }
}

/// Rounds numbers, those of the elements from `index` on, to halves stochastically.
#[inline(always)]
fn round<E: Compute, H: Half>(numbers: &mut [E], key: u64, number: u32, index: usize) {
    // The draws change with the upper half of the index.
    let end = (index | u32::MAX as usize) - index + 1;
    let (same, others) = numbers.split_at_mut(numbers.len().min(end));
    let draws = Rounding::draws(key, number, index as u64);
    for (k, number) in same.iter_mut().enumerate() {
        *number = number.round::<H>(draws.after(k).first());
    }
    for (k, value) in others.iter_mut().enumerate() {
        *value = value.round::<H>(Rounding::random(key, number, (index + end + k) as u64));
    }
}

/// The addresses of the code of an index, the first of a block of `N` numbers in `B` bytes, and of its scale.
#[allow(clippy::cast_ptr_alignment, reason = "scales are read and written at any alignment")]
fn codes_at<const N: usize, const B: usize>(buffer: &Buffer, index: usize) -> (*mut u8, *mut f32) {
    let mut element = index;
    if let Some(rows) = &buffer.rows {
        rows.runs(index, 1, |first, _, _| element = first);
    }
    let index = element;
    debug_assert!(index.is_multiple_of(N), "parts start at blocks of codes");
    let scales = buffer.scales.cast::<f32>();
    (buffer.pointer.wrapping_add(index / N * B), scales.wrapping_add(index / N))
}

struct Gather<'a, E>(Transfer<'a, E>);

/// Rows of at most so many elements are read column by column where there are more rows: a copy of a few bytes costs a call.
const FEW: usize = 8;

impl<E: Compute> DtypeVisitor for Gather<'_, E> {
    type Output = ();

    fn visit<T: Stored>(self) {
        let Transfer { buffer, start, block } = self.0;
        let (same, size) = (buffer.dtype == E::DTYPE, size_of::<T>());
        // SAFETY: grids lie in the buffer's span, which the caller of `gather` promises to be valid; `T` is the buffer's dtype, all bits of it
        // are valid.
        let read = |from: *mut u8| E::read(unsafe { from.cast::<T>().read_unaligned() });
        grids(buffer, start, block.len(), |grid| {
            let numbers = &mut block[grid.place..][..grid.len()];
            let (columns, step) = (grid.columns.extent, grid.columns.stride);
            let rows = if grid.rows.stride == 0 { 1 } else { grid.rows.extent };
            if columns <= FEW && columns < rows {
                for column in 0..columns {
                    let mut from = grid.at(0, column);
                    for row in numbers.chunks_exact_mut(columns) {
                        row[column] = read(from);
                        from = from.wrapping_offset(grid.rows.stride);
                    }
                }
                return;
            }
            for (row, numbers) in numbers.chunks_exact_mut(columns).take(rows).enumerate() {
                let from = grid.at(row, 0);
                if same && step == size.cast_signed() {
                    // SAFETY: as above; and `T` is `E`, so that the bytes are the numbers.
                    unsafe { numbers.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(from, columns * size) };
                } else if step == 0 {
                    numbers.fill(read(from));
                } else if size == 1 && step == 1 {
                    // Of a step that is known, truth values are converted by vector code.
                    for (k, number) in numbers.iter_mut().enumerate() {
                        *number = read(from.wrapping_add(k));
                    }
                } else {
                    for (k, number) in numbers.iter_mut().enumerate() {
                        *number = read(from.wrapping_offset(k.cast_signed() * step));
                    }
                }
            }
            // Repeated rows are copies, each of all before.
            let mut done = rows * columns;
            while done < numbers.len() {
                let count = done.min(numbers.len() - done);
                numbers.copy_within(..count, done);
                done += count;
            }
        });
    }
}

struct Scatter<'a, E>(Transfer<'a, E>);

impl<E: Compute> DtypeVisitor for Scatter<'_, E> {
    type Output = ();

    fn visit<T: Stored>(self) {
        let Transfer { buffer, start, block } = self.0;
        let (same, size) = (buffer.dtype == E::DTYPE, size_of::<T>());
        grids(buffer, start, block.len(), |grid| {
            let (columns, step) = (grid.columns.extent, grid.columns.stride);
            for (row, numbers) in block[grid.place..][..grid.len()].chunks_exact(columns).enumerate() {
                let to = grid.at(row, 0);
                if same && step == size.cast_signed() {
                    // SAFETY: as below; and `T` is `E`, so that the bytes are the numbers.
                    unsafe { to.copy_from_nonoverlapping(numbers.as_ptr().cast::<u8>(), columns * size) };
                    continue;
                }
                if size == 1 && step == 1 {
                    for (k, number) in numbers.iter().enumerate() {
                        // SAFETY: as below.
                        unsafe { to.cast::<T>().add(k).write(number.write::<T>()) };
                    }
                    continue;
                }
                for (k, number) in numbers.iter().enumerate() {
                    let address = to.wrapping_offset(k.cast_signed() * step).cast::<T>();
                    // SAFETY: the grid lies in the buffer's span, which the caller of `scatter` promises to be writable.
                    unsafe { address.write_unaligned(number.write::<T>()) };
                }
            }
        });
    }
}
