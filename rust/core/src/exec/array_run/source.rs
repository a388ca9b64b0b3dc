//! The values that a run reads, and the shape of those that it computes.

use std::ops::Range;

use smallvec::SmallVec;

use crate::array::buffer::{Buffer, Dtype};
use crate::array::shape::{Strides, broadcast_strides};

/// The shape of the results of a group of elementwise entries, and the dtype in which they are computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The shape.
    pub shape: SmallVec<[usize; 4]>,
    /// The dtype.
    pub dtype: Dtype,
}

impl Group {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A value that a run reads.
#[derive(Debug)]
pub enum Source {
    /// A number.
    Number(f64),
    /// An array, its first element, its strides in bytes when it is repeated to the shape of the run, and its dtype.
    Array(*mut u8, Strides, Dtype),
}

// SAFETY: addresses, which are read by `ArrayRun::compute` alone: its caller promises the memory.
unsafe impl Sync for Source {}

impl Source {
    /// An array of these extents and strides in bytes, repeated to a `shape`; `None` where it cannot be, or its elements do not lie in the
    /// order of their indices.
    #[must_use]
    pub fn array(first: *mut u8, extents: &[usize], strides: &[isize], dtype: Dtype, shape: &[usize]) -> Option<Self> {
        let repeated = broadcast_strides(extents, strides, shape)?;
        is_in_order(extents, strides).then_some(Self::Array(first, repeated, dtype))
    }

    /// The elements of some indices of the first axis, as far as it has them: a number lies where the source does.
    pub(super) fn part(&self, shape: &[usize], rows: Range<usize>) -> Option<Buffer> {
        let mut extents: SmallVec<[usize; 6]> = SmallVec::from_slice(shape);
        let mut first = 0;
        if let Some(extent) = extents.first_mut() {
            first = rows.start.min(*extent);
            *extent = rows.end.min(*extent) - first;
        }
        match self {
            Self::Number(number) => {
                let first = std::ptr::from_ref(number).cast();
                Buffer::repeated(first, extents.iter().product(), Dtype::F64).ok()
            }
            Self::Array(pointer, strides, dtype) => {
                let offset = strides.first().map_or(0, |stride| stride * first.cast_signed());
                Buffer::strided(pointer.wrapping_offset(offset), &extents, strides, *dtype, false).ok()
            }
        }
    }
}

/// Whether elements lie in the order of their indices, apart from axes along which they are repeated.
pub(super) fn is_in_order(extents: &[usize], strides: &[isize]) -> bool {
    let mut axes = extents.iter().zip(strides).filter(|(extent, stride)| **extent > 1 && **stride != 0);
    let mut last = isize::MAX;
    axes.all(|(_, stride)| *stride > 0 && std::mem::replace(&mut last, *stride) >= *stride)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_whose_elements_lie_in_another_order_are_no_sources() {
        let mut x = vec![0.0f64; 64 * 128];
        let first: *mut u8 = x.as_mut_ptr().cast();
        let array =
            |extents: &[usize], strides: &[isize]| Source::array(first, extents, strides, Dtype::F64, &[64, 128]);
        assert!(array(&[64, 128], &[8, 512]).is_none());
        assert!(array(&[64, 128], &[-1024, 8]).is_none());
        assert!(array(&[64], &[8]).is_none());
        assert!(array(&[64, 1], &[8, 8]).is_some());
    }
}
