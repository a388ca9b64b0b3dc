//! Elements of any layout and type into a block, and back. One of the files that touch foreign memory.

use crate::buffer::{Axis, Buffer, Dtype, DtypeVisitor, Layout, Stored};
use crate::lane::Element;

/// A type that kernels compute in: how it converts from and to what lies in memory.
pub(super) trait Compute: Element {
    const DTYPE: Dtype;
    fn read<T: Stored>(value: T) -> Self;
    fn write<T: Stored>(self) -> T;
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
}

/// Some consecutive elements of a buffer, and as many numbers of a block.
pub(super) struct Transfer<'a, E> {
    pub buffer: &'a Buffer,
    pub start: usize,
    pub length: usize,
    pub block: *mut E,
}

impl<E: Compute> Transfer<'_, E> {
    /// Reads the elements into the block, converted.
    ///
    /// # Safety
    /// The buffer has these elements, its memory is valid, and the block has room.
    pub unsafe fn gather(self) {
        self.buffer.dtype.visit(Gather(self));
    }

    /// Writes the block to the elements, converted.
    ///
    /// # Safety
    /// The buffer has these elements, its memory is valid and may be written, and the block holds as many.
    pub unsafe fn scatter(self) {
        self.buffer.dtype.visit(Scatter(self));
    }

    /// Calls `f(address, step, place, count)` for each run of evenly spaced elements.
    fn runs(&self, mut f: impl FnMut(*mut u8, isize, usize, usize)) {
        match &self.buffer.rows {
            None => self.runs_of(self.start, 0, self.length, &mut f),
            Some(rows) => {
                rows.runs(self.start, self.length, |start, place, count| self.runs_of(start, place, count, &mut f));
            }
        }
    }

    /// The runs among `length` elements from `start` on of all that lies there.
    fn runs_of(&self, start: usize, place: usize, length: usize, f: &mut impl FnMut(*mut u8, isize, usize, usize)) {
        let base = self.buffer.pointer;
        match &self.buffer.layout {
            Layout::Contiguous => {
                let size = self.buffer.dtype.size();
                f(base.wrapping_add(start * size), size.cast_signed(), place, length);
            }
            Layout::Repeated => f(base, 0, place, length),
            Layout::Strided(axes) => {
                let mut done = 0;
                while done < length {
                    let mut from = Place::of(axes, start + done);
                    while from.rows > 0 && done < length {
                        let count = from.left.min(length - done);
                        f(base.wrapping_offset(from.offset), from.last.stride, place + done, count);
                        done += count;
                        from.next_row();
                    }
                }
            }
        }
    }
}

/// Where an element lies, in bytes, and what follows it: elements on the last axis, rows on the one before.
struct Place {
    last: Axis,
    /// What leads from the end of a row to the start of the next.
    step: isize,
    offset: isize,
    left: usize,
    rows: usize,
}

impl Place {
    fn of(axes: &[Axis], index: usize) -> Self {
        const NONE: Axis = Axis { extent: 1, stride: 0 };
        let axis = |back: usize| axes.len().checked_sub(back).map_or(NONE, |at| axes[at]);
        let (last, row) = (axis(1), axis(2));
        let (mut rest, mut offset) = (index, 0);
        for axis in axes.iter().rev() {
            // The span was checked to lie in the address space: no product of it overflows.
            offset += (rest % axis.extent).cast_signed() * axis.stride;
            rest /= axis.extent;
        }
        let (left, rows) = (last.extent - index % last.extent, row.extent - index / last.extent % row.extent);
        Self { last, step: row.stride - last.extent.cast_signed() * last.stride, offset, left, rows }
    }

    fn next_row(&mut self) {
        self.offset += self.left.cast_signed() * self.last.stride + self.step;
        self.left = self.last.extent;
        self.rows -= 1;
    }
}

struct Gather<'a, E>(Transfer<'a, E>);

impl<E: Compute> DtypeVisitor for Gather<'_, E> {
    type Output = ();

    fn visit<T: Stored>(self) {
        let (same, size) = (self.0.buffer.dtype == E::DTYPE, size_of::<T>());
        self.0.runs(|from, step, place, count| {
            if same && step == size.cast_signed() {
                // SAFETY: as below; and `T` is `E`, so that the bytes are the numbers.
                unsafe { self.0.block.add(place).cast::<u8>().copy_from_nonoverlapping(from, count * size) };
                return;
            }
            if step == 0 && count > 0 {
                // SAFETY: as below.
                let one = E::read(unsafe { from.cast::<T>().read_unaligned() });
                for k in 0..count {
                    // SAFETY: as below.
                    unsafe { self.0.block.add(place + k).write_unaligned(one) };
                }
                return;
            }
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
        let (same, size) = (self.0.buffer.dtype == E::DTYPE, size_of::<T>());
        self.0.runs(|to, step, place, count| {
            if same && step == size.cast_signed() {
                // SAFETY: as below; and `T` is `E`, so that the bytes are the numbers.
                unsafe { to.copy_from_nonoverlapping(self.0.block.add(place).cast::<u8>(), count * size) };
                return;
            }
            for k in 0..count {
                let address = to.wrapping_offset(k.cast_signed() * step).cast::<T>();
                // SAFETY: the run lies in the buffer's span, which the caller of `scatter` promises to be writable,
                // and the block holds `place + count` numbers.
                unsafe { address.write_unaligned(self.0.block.add(place + k).read_unaligned().write::<T>()) };
            }
        });
    }
}
