//! Copies of few elements, with a change of layout or dtype. One of the files that touch foreign memory.

use smallvec::SmallVec;

use super::values::LINE;
use crate::array::buffer::Dtype;
use crate::scalar::narrowed;

/// Writes elements, which lie at strides in bytes, to contiguous memory in the order of their indices.
///
/// # Safety
/// The elements must be valid to read, there must be room for them at `to`, and the two must not overlap.
pub(super) unsafe fn copy(
    from: *const u8,
    extents: &[usize],
    strides: &[isize],
    dtype: Dtype,
    to: *mut u8,
    into: Dtype,
) {
    // The kind of elements is asked once: rows are short.
    // SAFETY: promised by the caller: a row lies at the strides of its indices.
    unsafe {
        match (dtype == into, dtype.size()) {
            (true, 4) => copy_rows(from, extents, strides, to, 4, |row, step, count, to| {
                copy_elements::<u32>(row, step, count, to);
            }),
            (true, 8) => copy_rows(from, extents, strides, to, 8, |row, step, count, to| {
                copy_elements::<u64>(row, step, count, to);
            }),
            _ => copy_rows(from, extents, strides, to, into.size(), |row, step, count, to| {
                for at in 0..count {
                    let (row, to) = (row.wrapping_offset(step * at.cast_signed()), to.add(at * into.size()));
                    set_number(to, into, number_at(row, dtype));
                }
            }),
        }
    }
}

/// Calls a function for each row of elements at strides: its address, its step, its number of elements, and where they go.
#[inline(always)]
fn copy_rows(
    from: *const u8,
    extents: &[usize],
    strides: &[isize],
    mut to: *mut u8,
    size: usize,
    copied: impl Fn(*const u8, isize, usize, *mut u8),
) {
    for_each_row(extents, strides, |offset, step, count| {
        copied(from.wrapping_offset(offset), step, count, to);
        to = to.wrapping_add(count * size);
    });
}

/// Writes contiguous numbers to elements that lie at strides in bytes, or adds them.
///
/// # Safety
/// The numbers must be valid to read, and the elements to write; the two must not overlap.
pub(super) unsafe fn scatter(
    mut from: *const u8,
    extents: &[usize],
    strides: &[isize],
    dtype: Dtype,
    to: *mut u8,
    adds: bool,
) {
    // SAFETY: promised by the caller.
    for_each_row(extents, strides, |offset, step, count| unsafe {
        let (to, size) = (to.wrapping_offset(offset), dtype.size().cast_signed());
        match (dtype, adds) {
            (Dtype::F32, false) => write_row(from, to, step, count, |from: f32, _| from),
            (Dtype::F32, true) => write_row(from, to, step, count, |from: f32, to| to + from),
            (_, false) => write_row(from, to, step, count, |from: f64, _| from),
            (_, true) => write_row(from, to, step, count, |from: f64, to| to + from),
        }
        from = from.wrapping_offset(size * count.cast_signed());
    });
}

/// Writes to elements at a step in bytes a function of contiguous others and of themselves.
///
/// # Safety
/// There are as many elements of each, and they are apart.
#[inline(always)]
unsafe fn write_row<T: Copy>(from: *const u8, to: *mut u8, step: isize, count: usize, written: impl Fn(T, T) -> T) {
    let from = from.cast::<T>();
    let write = |step: isize| {
        let mut to = to;
        for at in 0..count {
            let its = to.cast::<T>();
            // SAFETY: promised by the caller.
            unsafe { its.write_unaligned(written(from.add(at).read_unaligned(), its.read_unaligned())) };
            to = to.wrapping_offset(step);
        }
    };
    // A step that the compiler knows lets it write several elements at once.
    let next = size_of::<T>().cast_signed();
    if step == next { write(next) } else { write(step) }
}

/// Calls a function for each row of elements at strides: where it begins, the step from an element to the next, and their number.
#[inline(always)]
fn for_each_row(extents: &[usize], strides: &[isize], mut row: impl FnMut(isize, isize, usize)) {
    let (Some((count, outer)), Some((step, strides))) = (extents.split_last(), strides.split_last()) else {
        return row(0, 0, 1);
    };
    if extents.contains(&0) {
        return;
    }
    let (mut index, mut offset) = (SmallVec::<[usize; 6]>::from_elem(0, outer.len()), 0_isize);
    loop {
        row(offset, *step, *count);
        let mut axis = outer.len();
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            offset += strides[axis];
            if index[axis] < outer[axis] {
                break;
            }
            offset -= strides[axis] * index[axis].cast_signed();
            index[axis] = 0;
        }
    }
}

/// # Safety
/// As of [`copy`], of elements at a `step` in bytes.
#[inline(always)]
unsafe fn copy_elements<T: Copy>(from: *const u8, step: isize, count: usize, to: *mut u8) {
    let to = to.cast::<T>();
    // SAFETY: promised by the caller.
    unsafe {
        if step == size_of::<T>().cast_signed() {
            to.cast::<u8>().copy_from_nonoverlapping(from, count * size_of::<T>());
        } else if step == 0 {
            let element = from.cast::<T>().read_unaligned();
            (0..count).for_each(|at| to.add(at).write_unaligned(element));
        } else {
            let element = |at: usize| from.wrapping_offset(step * at.cast_signed()).cast::<T>().read_unaligned();
            (0..count).for_each(|at| to.add(at).write_unaligned(element(at)));
        }
    }
}

/// The number at an address.
///
/// # Safety
/// It must be valid to read.
#[inline(always)]
pub(super) unsafe fn number_at(from: *const u8, dtype: Dtype) -> f64 {
    // SAFETY: promised by the caller.
    unsafe {
        match dtype {
            Dtype::F32 => f64::from(from.cast::<f32>().read_unaligned()),
            Dtype::Bool => f64::from(u8::from(from.read() != 0)),
            _ => from.cast::<f64>().read_unaligned(),
        }
    }
}

/// # Safety
/// There must be room for an element at `to`.
#[inline(always)]
unsafe fn set_number(to: *mut u8, dtype: Dtype, number: f64) {
    // SAFETY: promised by the caller.
    unsafe {
        match dtype {
            Dtype::F32 => to.cast::<f32>().write_unaligned(narrowed(number)),
            Dtype::Bool => to.write(u8::from(number != 0.0)),
            _ => to.cast::<f64>().write_unaligned(number),
        }
    }
}

/// Repeats the first number of a line in all of it.
///
/// # Safety
/// There must be a line with a number at `to`.
#[inline(always)]
pub(super) unsafe fn spread(to: *mut u8, dtype: Dtype) {
    // SAFETY: promised by the caller.
    unsafe {
        match dtype.size() {
            4 => copy_elements::<u32>(to, 0, LINE / 4, to),
            8 => copy_elements::<u64>(to, 0, LINE / 8, to),
            _ => to.write_bytes(to.read(), LINE),
        }
    }
}
