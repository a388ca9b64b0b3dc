//! The addresses of consecutive elements of a buffer of any layout.

use crate::array::buffer::{Axis, Buffer, Layout};

/// Evenly spaced rows of evenly spaced elements of a buffer, of which `place` elements come before.
pub(crate) struct Grid {
    pub place: usize,
    pub rows: Axis,
    pub columns: Axis,
    pub first: *mut u8,
}

impl Grid {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.rows.extent * self.columns.extent
    }

    /// The address of an element.
    #[inline(always)]
    pub fn at(&self, row: usize, column: usize) -> *mut u8 {
        let offset = row.cast_signed() * self.rows.stride + column.cast_signed() * self.columns.stride;
        self.first.wrapping_offset(offset)
    }
}

/// Calls `f` for each grid of `length` elements from `start` on: the rest of a row, or the whole rows that follow.
pub(crate) fn grids(buffer: &Buffer, start: usize, length: usize, mut f: impl FnMut(Grid)) {
    match &buffer.rows {
        _ if length == 0 => {}
        None => grids_of(buffer, start, 0, length, &mut f),
        Some(rows) => rows.runs(start, length, |start, place, count| grids_of(buffer, start, place, count, &mut f)),
    }
}

/// The grids of `length` elements from `start` on of all that lies there.
fn grids_of(buffer: &Buffer, start: usize, place: usize, length: usize, f: &mut impl FnMut(Grid)) {
    const ONE: Axis = Axis { extent: 1, stride: 0 };
    let row =
        |first: *mut u8, stride: isize| Grid { place, rows: ONE, columns: Axis { extent: length, stride }, first };
    match &buffer.layout {
        Layout::Contiguous => {
            let size = buffer.dtype.size();
            f(row(buffer.pointer.wrapping_add(start * size), size.cast_signed()));
        }
        Layout::Repeated => f(row(buffer.pointer, 0)),
        Layout::Strided(axes) => {
            let axis = |back: usize| axes.len().checked_sub(back).map_or(ONE, |at| axes[at]);
            let (columns, rows) = (axis(1), axis(2));
            let mut done = 0;
            while done < length {
                let (index, left) = (start + done, length - done);
                let before = index % columns.extent;
                let whole = (left / columns.extent).min(rows.extent - index / columns.extent % rows.extent);
                let (rows, columns) = if before == 0 && whole > 0 {
                    (Axis { extent: whole, ..rows }, columns)
                } else {
                    (ONE, Axis { extent: left.min(columns.extent - before), ..columns })
                };
                let first = buffer.pointer.wrapping_offset(offset(axes, index));
                let grid = Grid { place: place + done, rows, columns, first };
                done += grid.len();
                f(grid);
            }
        }
    }
}

/// The position of an element, in bytes.
fn offset(axes: &[Axis], index: usize) -> isize {
    let (mut rest, mut offset) = (index, 0);
    for axis in axes.iter().rev() {
        // The span was checked to lie in the address space: no product of it overflows.
        offset += (rest % axis.extent).cast_signed() * axis.stride;
        rest /= axis.extent;
    }
    offset
}
