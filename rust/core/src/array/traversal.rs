//! The addresses of consecutive elements of a buffer of any layout.

use crate::array::buffer::{Axis, Buffer, Layout};

/// Calls `f(address, step, place, count)` for each run of evenly spaced elements among `length` of them from `start`
/// on.
pub(crate) fn runs(buffer: &Buffer, start: usize, length: usize, mut f: impl FnMut(*mut u8, isize, usize, usize)) {
    match &buffer.rows {
        None => runs_of(buffer, start, 0, length, &mut f),
        Some(rows) => rows.runs(start, length, |start, place, count| runs_of(buffer, start, place, count, &mut f)),
    }
}

/// The runs among `length` elements from `start` on of all that lies there.
fn runs_of(
    buffer: &Buffer,
    start: usize,
    place: usize,
    length: usize,
    f: &mut impl FnMut(*mut u8, isize, usize, usize),
) {
    let base = buffer.pointer;
    match &buffer.layout {
        Layout::Contiguous => {
            let size = buffer.dtype.size();
            f(base.wrapping_add(start * size), size.cast_signed(), place, length);
        }
        Layout::Repeated => f(base, 0, place, length),
        Layout::Strided(axes) => {
            let mut done = 0;
            while done < length {
                let mut from = Cursor::of(axes, start + done);
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

/// The position of an element, in bytes, and of those after it: elements on the last axis, rows on the one before.
struct Cursor {
    last: Axis,
    /// The step from the end of a row to the start of the next.
    step: isize,
    offset: isize,
    left: usize,
    rows: usize,
}

impl Cursor {
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
