//! The values of a run and its calls, as they are stated.

use smallvec::SmallVec;

use super::super::fold::Fold;
use super::super::foreign::Foreign;
use super::super::source::{Group, is_in_order};
use crate::array::buffer::Dtype;
use crate::array::shape::{Strides, contiguous_strides};
use crate::array::view::ArrayView;
use crate::op::Elementwise;
use crate::scalar::{Condition, Precision, Scalar};

/// Bytes of a line: places are of whole lines, and the widest lane is one.
pub(super) const LINE: usize = 64;

/// Steps count bytes by the size of the smallest numbers.
pub(super) const GRAIN: usize = 4;

/// Extents of the axes of an array.
pub type Extents = SmallVec<[usize; 4]>;

/// The shape and dtype of a value, by which a run is planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number of this precision.
    Number(Precision),
    /// An array of these extents, of float32, float64 or truth values.
    Array(Extents, Dtype, Layout),
}

/// The layout of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One element after the other.
    Contiguous,
    /// The elements lie in the order of their indices, some apart from each other or repeated.
    Strided,
    /// The elements lie in another order, as in a transposed array: products of the core alone read them.
    Permuted,
}

/// A value that a run reads.
#[derive(Clone, Debug)]
pub enum Read {
    /// A number.
    Number(Scalar),
    /// An array.
    Array(ArrayView),
}

/// A call of a run.
#[derive(Clone, Debug)]
pub enum SmallCall {
    /// An op on arrays and numbers, whose result is an array of the group, or of as many truth values.
    Elementwise(Elementwise, Group, bool),
    /// An op on numbers of these precisions, and its condition.
    Number(Elementwise, Condition, SmallVec<[Precision; 3]>),
    /// The result along axes, all where none are given, and whether the axes are kept.
    Fold(Option<SmallVec<[isize; 4]>>, bool, Fold),
    /// A product of two matrices or vectors.
    Product,
    /// The same by a function of C on matrices.
    ForeignProduct(Foreign),
    /// The elements in another shape, in their order.
    Reshape(Extents),
    /// Elements of the first argument, an array or a number of this dtype.
    View(View, Dtype),
    /// The same with something added: the arguments are an array, what is added to those elements, and the number of the view; without the
    /// array, zeros take its place.
    Scatter(View, Dtype, bool),
    /// Arrays one after the other along an axis; arrays or numbers along one that is new.
    Join(usize, bool),
    /// A function of C.
    Foreign(Foreign),
    /// The transposed cofactors of a matrix, by functions for the determinant and the inverse.
    Cofactor([Foreign; 2]),
}

/// Elements of an array: each axis is one of the array, in steps, or repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The extents of the array.
    pub of: Extents,
    /// The first index along each axis of the array.
    pub starts: Extents,
    /// The axis of the array along which the first index is a number, and the argument which that is.
    pub index: Option<(usize, usize)>,
    /// The extents of the view.
    pub extents: Extents,
    /// For each axis of the view that of the array, if it is one, and the step.
    pub axes: SmallVec<[(Option<usize>, isize); 4]>,
}

impl View {
    /// Whether all elements are elements of the array, whatever the number is.
    #[must_use]
    pub fn is_within(&self) -> bool {
        let mut ranges: SmallVec<[(isize, isize); 4]> = SmallVec::new();
        if self.starts.len() != self.of.len() || self.axes.len() != self.extents.len() || self.extents.contains(&0) {
            return false;
        }
        ranges.extend(self.starts.iter().map(|start| (start.cast_signed(), start.cast_signed())));
        for ((axis, step), extent) in self.axes.iter().zip(&self.extents) {
            let Some(axis) = axis else { continue };
            let Some((least, most)) = ranges.get_mut(*axis) else { return false };
            let Some(reach) = step.checked_mul((extent - 1).cast_signed()) else { return false };
            *(if reach < 0 { least } else { most }) += reach;
        }
        let is_own = |axis: usize| self.axes.iter().all(|(other, _)| *other != Some(axis)) && self.starts[axis] == 0;
        self.index.is_none_or(|(axis, _)| axis < self.of.len() && is_own(axis))
            && ranges.iter().zip(&self.of).all(|((least, most), extent)| *least >= 0 && *most < extent.cast_signed())
    }

    /// The first element and the strides, of an array with these.
    pub(super) fn within(&self, first: isize, strides: &[isize]) -> (isize, Strides) {
        let ahead = self.starts.iter().zip(strides).map(|(start, stride)| start.cast_signed() * stride);
        let own = self.axes.iter().map(|(axis, step)| axis.map_or(0, |axis| strides[axis] * step));
        (first + ahead.sum::<isize>(), own.collect())
    }
}

/// A step: the number of its work, and where its result and its arguments begin, in grains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub work: u32,
    pub to: u32,
    pub from: [u32; 3],
}

impl Kind {
    /// A contiguous array.
    pub(super) fn array(extents: &[usize], dtype: Dtype) -> Self {
        Self::Array(Extents::from_slice(extents), dtype, Layout::Contiguous)
    }
}

impl Read {
    /// The kind of the value; `None` for an array of another dtype.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::Number(scalar) => Some(Kind::Number(scalar.precision)),
            Self::Array(ArrayView { extents, strides, dtype, .. }) => {
                let dtype = dtype.filter(|dtype| matches!(dtype, Dtype::F32 | Dtype::F64 | Dtype::Bool))?;
                let contiguous = contiguous_strides(extents, dtype.size())?;
                let mut axes = extents.iter().zip(strides.iter().zip(&contiguous));
                let is_contiguous = axes.all(|(extent, (stride, its))| *extent < 2 || stride == its);
                let layout = match (is_contiguous, is_in_order(extents, strides)) {
                    (true, _) => Layout::Contiguous,
                    (_, true) => Layout::Strided,
                    (_, false) => Layout::Permuted,
                };
                Some(Kind::Array(extents.clone(), dtype, layout))
            }
        }
    }
}
