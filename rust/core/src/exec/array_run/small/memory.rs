//! Copies of few elements, with a change of layout or dtype. One of the files that touch foreign memory.

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
    mut to: *mut u8,
    into: Dtype,
) {
    // SAFETY: promised by the caller: a row lies at the strides of its indices.
    for_each_row(extents, strides, |offset, step, count| unsafe {
        copy_row(from.wrapping_offset(offset), step, count, dtype, to, into);
        to = to.wrapping_add(count * into.size());
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
        for at in 0..count {
            let to = to.wrapping_offset(offset + step * at.cast_signed());
            match dtype {
                _ if !adds => to.copy_from_nonoverlapping(from, dtype.size()),
                Dtype::F32 => {
                    let sum = to.cast::<f32>().read_unaligned() + from.cast::<f32>().read_unaligned();
                    to.cast::<f32>().write_unaligned(sum);
                }
                _ => {
                    let sum = to.cast::<f64>().read_unaligned() + from.cast::<f64>().read_unaligned();
                    to.cast::<f64>().write_unaligned(sum);
                }
            }
            from = from.wrapping_add(dtype.size());
        }
    });
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
    let (mut index, mut offset) = ([0_usize; 64], 0_isize);
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
unsafe fn copy_row(from: *const u8, step: isize, count: usize, dtype: Dtype, to: *mut u8, into: Dtype) {
    let size = dtype.size();
    // SAFETY: promised by the caller.
    unsafe {
        if dtype == into && step == size.cast_signed() {
            to.copy_from_nonoverlapping(from, count * size);
            return;
        }
        for at in 0..count {
            let (from, to) = (from.wrapping_offset(step * at.cast_signed()), to.add(at * into.size()));
            if dtype == into {
                to.copy_from_nonoverlapping(from, size);
            } else {
                set_number(to, into, number_at(from, dtype));
            }
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
    let size = dtype.size();
    for at in (size..LINE).step_by(size) {
        // SAFETY: promised by the caller; the numbers are apart.
        unsafe { to.add(at).copy_from_nonoverlapping(to, size) };
    }
}
