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

/// From so many numbers on, a run is copied as a whole: for fewer, the call takes longer than they do.
const COPIED: usize = 32;

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
        if self.buffer.dtype != E::DTYPE {
            return self.buffer.dtype.visit(Gather(self));
        }
        self.runs(|from, step, place, count| {
            let (from, to) = (from.cast_const().cast::<u8>(), self.block.wrapping_add(place));
            let is_dense = step == size_of::<E>().cast_signed();
            // SAFETY: as in `Gather`; nothing is converted.
            unsafe {
                if is_dense && count >= COPIED {
                    from.copy_to_nonoverlapping(to.cast::<u8>(), count * size_of::<E>());
                } else if is_dense {
                    for k in 0..count {
                        to.add(k).write_unaligned(from.cast::<E>().add(k).read_unaligned());
                    }
                } else {
                    for k in 0..count {
                        let address = from.wrapping_offset(k.cast_signed() * step).cast::<E>();
                        to.add(k).write_unaligned(address.read_unaligned());
                    }
                }
            }
        });
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
                    let mut place = Place::of(axes, self.start + done);
                    while place.rows > 0 && done < self.length {
                        let count = place.left.min(self.length - done);
                        f(base.wrapping_offset(place.offset), place.last.stride, done, count);
                        done += count;
                        place.next_row();
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
