//! The description of a host array: the address, layout and dtype of its elements.

use smallvec::SmallVec;

use crate::array::buffer::{Buffer, Dtype, Span};
use crate::array::shape::broadcast_strides;

/// An array in host memory: plain data, safe to make, which does not own the memory.
///
/// Kernels read it as a [`Buffer`]; a view keeps its shape as well.
#[derive(Clone, Debug)]
pub struct ArrayView {
    /// The element of index zero.
    pub pointer: *mut u8,
    /// The length of each axis.
    pub extents: SmallVec<[usize; 4]>,
    /// Bytes from an element to the next, along each axis.
    pub strides: SmallVec<[isize; 4]>,
    /// The type of the elements; `None` if kernels do not read it.
    pub dtype: Option<Dtype>,
    /// Whether the memory may be written.
    pub writable: bool,
}

impl ArrayView {
    /// The elements as kernels see them; `None` if they cannot read the dtype.
    #[must_use]
    pub fn buffer(&self) -> Option<Buffer> {
        Buffer::strided(self.pointer, &self.extents, &self.strides, self.dtype?, self.writable).ok()
    }

    /// The buffer, where kernels compute in its dtype.
    #[must_use]
    pub fn computing(&self) -> Option<Buffer> {
        self.dtype.filter(|dtype| dtype.computes()).and_then(|_| self.buffer())
    }

    /// The elements repeated to a larger shape, to be read; `None` if they cannot be broadcast to it, or read.
    #[must_use]
    pub fn broadcast(&self, shape: &[usize]) -> Option<Buffer> {
        if self.extents[..] == *shape {
            return self.buffer();
        }
        let strides = broadcast_strides(&self.extents, &self.strides, shape)?;
        Buffer::strided(self.pointer, shape, &strides, self.dtype?, false).ok()
    }

    /// The bytes from the lowest element to the end of the highest, of elements of `size` bytes.
    #[must_use]
    pub fn span(&self, size: usize) -> Span {
        let start = self.pointer.addr();
        if self.extents.contains(&0) {
            return Span { start, end: start };
        }
        let (mut below, mut above) = (0usize, size);
        for (extent, stride) in self.extents.iter().zip(&self.strides) {
            let reach = (extent - 1).saturating_mul(stride.unsigned_abs());
            let side = if *stride < 0 { &mut below } else { &mut above };
            *side = side.saturating_add(reach);
        }
        Span { start: start.saturating_sub(below), end: start.saturating_add(above) }
    }

    /// Whether both are the same elements, in the same order; the stride of an axis of extent 1 means nothing.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        let mut strides = self.strides.iter().zip(&other.strides).zip(&self.extents);
        self.pointer == other.pointer
            && self.extents == other.extents
            && self.dtype.is_some()
            && self.dtype == other.dtype
            && strides.all(|((a, b), extent)| a == b || *extent < 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn view(pointer: *mut u8, extents: &[usize], strides: &[isize], dtype: Option<Dtype>) -> ArrayView {
        ArrayView { pointer, extents: extents.into(), strides: strides.into(), dtype, writable: true }
    }

    #[test]
    fn a_broadcast_view_is_read_only_and_its_own_shape_is_not_copied() {
        let mut memory = [0f32; 6];
        let row = view(memory.as_mut_ptr().cast(), &[3], &[4], Some(Dtype::F32));
        assert!(row.broadcast(&[3]).is_some_and(|buffer| buffer.is_writable()));
        assert!(row.broadcast(&[2, 3]).is_some_and(|buffer| !buffer.is_writable() && buffer.len() == 6));
        assert_eq!(row.broadcast(&[3, 2]), None);
        assert_eq!(row.broadcast(&[]), None);
    }

    #[test]
    fn what_kernels_cannot_read_has_no_buffer() {
        let mut memory = [0u8; 8];
        let pointer = memory.as_mut_ptr();
        assert_eq!(view(pointer, &[1], &[8], None).buffer(), None);
        assert!(view(pointer, &[8], &[1], Some(Dtype::U8)).buffer().is_some());
        assert_eq!(view(pointer, &[8], &[1], Some(Dtype::U8)).computing(), None);
    }

    #[test]
    fn the_stride_of_an_axis_of_one_element_means_nothing() {
        let mut memory = [0f64; 4];
        let pointer = memory.as_mut_ptr().cast();
        let of = |strides: &[isize]| view(pointer, &[1, 4], strides, Some(Dtype::F64));
        assert!(of(&[32, 8]).is_same_as(&of(&[0, 8])));
        assert!(!of(&[32, 8]).is_same_as(&of(&[32, -8])));
    }

    proptest! {
        #[test]
        fn the_span_is_that_of_all_elements(
            axes in prop::collection::vec((0usize..4, -40isize..40), 0..4),
            size in 1usize..9,
        ) {
            let (extents, strides): (Vec<usize>, Vec<isize>) = axes.into_iter().unzip();
            let start = 1usize << 20;
            let span = view(std::ptr::without_provenance_mut(start), &extents, &strides, None).span(size);
            let mut offsets = vec![0isize];
            for (extent, stride) in extents.iter().zip(&strides) {
                let reached = |offset| (0..extent.cast_signed()).map(move |at| offset + at * stride);
                offsets = offsets.into_iter().flat_map(reached).collect();
            }
            let at = |offset: &isize| start.checked_add_signed(*offset).expect("it is near the start");
            let expected = offsets.iter().map(at).min().map_or(
                Span { start, end: start },
                |low| Span { start: low, end: offsets.iter().map(at).max().map_or(low, |high| high + size) },
            );
            prop_assert_eq!(span, expected);
        }
    }
}
