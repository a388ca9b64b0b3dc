//! Shapes: broadcasting of several arrays to one shape, and the plan of a reduction over some axes of an array.

use smallvec::SmallVec;

use crate::array::sum::Axes;

/// The extents of an array of at most [`Shape::MOST`] dimensions, the rest zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    dimensions: usize,
    extents: [usize; Shape::MOST],
}

impl Shape {
    /// The most dimensions.
    pub const MOST: usize = 6;

    /// The shape of these extents; `None` if there are too many.
    #[must_use]
    #[inline]
    pub fn new(given: &[usize]) -> Option<Self> {
        let (dimensions, mut extents) = (given.len(), [0; Self::MOST]);
        extents.get_mut(..dimensions)?.copy_from_slice(given);
        Some(Self { dimensions, extents })
    }

    /// The extents.
    #[must_use]
    #[inline]
    pub fn extents(&self) -> &[usize] {
        &self.extents[..self.dimensions]
    }

    /// The shape that two arrays are broadcast to; `None` if they cannot be.
    #[must_use]
    #[inline]
    pub fn broadcast(&self, other: &Self) -> Option<Self> {
        let dimensions = self.dimensions.max(other.dimensions);
        let mut extents = [0; Self::MOST];
        for (axis, extent) in extents[..dimensions].iter_mut().enumerate() {
            let of = |shape: &Self| (axis + shape.dimensions).checked_sub(dimensions).map_or(1, |at| shape.extents[at]);
            *extent = match (of(self), of(other)) {
                (a, b) if a == b || b == 1 => a,
                (1, b) => b,
                _ => return None,
            };
        }
        Some(Self { dimensions, extents })
    }
}

/// Strides in bytes, one an axis.
pub type Strides = SmallVec<[isize; Shape::MOST]>;

/// The byte strides of an array in row-major order; `None` if they leave the address space.
#[must_use]
#[inline]
pub fn contiguous_strides(extents: &[usize], size: usize) -> Option<Strides> {
    let mut strides = Strides::from_elem(0, extents.len());
    let mut step = isize::try_from(size).ok()?;
    for (stride, extent) in strides.iter_mut().zip(extents).rev() {
        *stride = step;
        step = step.checked_mul(isize::try_from(*extent).ok()?)?;
    }
    Some(strides)
}

/// The strides of an array repeated to the shape `to`: zero along the axes that broadcasting adds or stretches. `None`
/// where it cannot be broadcast to that shape.
#[must_use]
#[inline]
pub fn broadcast_strides(extents: &[usize], strides: &[isize], to: &[usize]) -> Option<Strides> {
    let added = to.len().checked_sub(extents.len())?;
    let mut repeated = Strides::from_elem(0, to.len());
    for (axis, (extent, stride)) in extents.iter().zip(strides).enumerate() {
        match (*extent, to[added + axis]) {
            (extent, wanted) if extent == wanted => repeated[added + axis] = *stride,
            (1, _) => {}
            _ => return None,
        }
    }
    Some(repeated)
}

/// The plan of a sum over neighbouring axes of a contiguous array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// The array with its axes merged into three.
    pub axes: Axes,
    /// The shape of the result.
    pub shape: SmallVec<[usize; Shape::MOST]>,
}

impl Reduction {
    /// The sum over `axes`, negative ones counted from the end; over all of them where none are given. `None` if an
    /// axis is out of range or given twice, the axes are not neighbours (axes of extent 1 between them do not
    /// count), or there are more elements than an address space has room for.
    #[must_use]
    pub fn over(extents: &[usize], axes: Option<&[isize]>, keepdims: bool) -> Option<Self> {
        let is_summed = match axes {
            Some(axes) => marked(axes, extents.len())?,
            None => SmallVec::from_elem(true, extents.len()),
        };
        let kept = |(extent, is_summed): (&usize, &bool)| match is_summed {
            true if keepdims => Some(1),
            true => None,
            false => Some(*extent),
        };
        let shape = extents.iter().zip(&is_summed).filter_map(kept).collect();
        Some(Self { axes: merged(extents, &is_summed)?, shape })
    }

    /// The sum that takes an array back to the shape that it was broadcast from: over the axes that were added or
    /// stretched. `None` if `to` has more dimensions, or those axes are not neighbours.
    #[must_use]
    pub fn unbroadcast(extents: &[usize], to: &[usize]) -> Option<Self> {
        let added = extents.len().checked_sub(to.len())?;
        let differs = |(axis, extent): (usize, &usize)| axis < added || to[axis - added] != *extent;
        let is_summed: SmallVec<[bool; 8]> = extents.iter().enumerate().map(differs).collect();
        Some(Self { axes: merged(extents, &is_summed)?, shape: to.into() })
    }
}

/// For each dimension, whether it is among the axes.
fn marked(axes: &[isize], dimensions: usize) -> Option<SmallVec<[bool; 8]>> {
    let mut is_marked = SmallVec::from_elem(false, dimensions);
    for axis in axes {
        let axis = if *axis < 0 { dimensions.checked_sub(axis.unsigned_abs())? } else { axis.unsigned_abs() };
        if std::mem::replace(is_marked.get_mut(axis)?, true) {
            return None;
        }
    }
    Some(is_marked)
}

/// The axes before, among and after the summed ones, each merged into one.
fn merged(extents: &[usize], is_summed: &[bool]) -> Option<Axes> {
    let mut axes = Axes { outer: 1, count: 1, inner: 1 };
    let (mut has_summed, mut has_inner) = (false, false);
    for (extent, is_summed) in extents.iter().zip(is_summed).filter(|(extent, _)| **extent != 1) {
        match (is_summed, has_summed) {
            (true, _) if has_inner => return None,
            (true, _) => (axes.count, has_summed) = (axes.count.checked_mul(*extent)?, true),
            (false, false) => axes.outer = axes.outer.checked_mul(*extent)?,
            (false, true) => (axes.inner, has_inner) = (axes.inner.checked_mul(*extent)?, true),
        }
    }
    Some(axes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Shapes of few, small axes, so that many of them broadcast to each other.
    fn extents() -> impl Strategy<Value = Vec<usize>> {
        prop::collection::vec(prop::sample::select(vec![0usize, 1, 1, 2, 3]), 0..5)
    }

    /// All indices of an array, in row-major order.
    fn indices(extents: &[usize]) -> Vec<Vec<usize>> {
        extents.iter().fold(vec![vec![]], |found, extent| {
            let longer = |index: &Vec<usize>| {
                let longer = |at| [&index[..], &[at]].concat();
                (0..*extent).map(longer).collect::<Vec<_>>()
            };
            found.iter().flat_map(longer).collect()
        })
    }

    fn offset(index: &[usize], strides: &[isize]) -> isize {
        index.iter().zip(strides).map(|(at, stride)| at.cast_signed() * stride).sum()
    }

    #[test]
    fn known_shapes() {
        let shape = |extents: &[usize]| Shape::new(extents).expect("it has few dimensions");
        assert_eq!(shape(&[3, 1]).broadcast(&shape(&[4])), Some(shape(&[3, 4])));
        assert_eq!(shape(&[]).broadcast(&shape(&[2, 5])), Some(shape(&[2, 5])));
        assert_eq!(shape(&[0]).broadcast(&shape(&[1])), Some(shape(&[0])));
        assert_eq!(shape(&[0]).broadcast(&shape(&[2])), None);
        assert_eq!(Shape::new(&[1; 7]), None);
    }

    #[test]
    fn known_reductions() {
        let axes = |outer, count, inner| Axes { outer, count, inner };
        let over = |extents: &[usize], over: &[isize]| Reduction::over(extents, Some(over), false);
        assert_eq!(over(&[2, 3, 4], &[1]).map(|plan| plan.axes), Some(axes(2, 3, 4)));
        assert_eq!(over(&[2, 3, 4], &[-1, 1]).map(|plan| plan.axes), Some(axes(2, 12, 1)));
        assert_eq!(over(&[2, 1, 4], &[0, 2]).map(|plan| plan.axes), Some(axes(1, 8, 1)));
        assert_eq!(over(&[2, 3, 4], &[0, 2]), None);
        assert_eq!(over(&[2, 3], &[0, -2]), None);
        assert_eq!(over(&[2, 3], &[2]), None);
        assert_eq!(over(&[2, 3], &[isize::MIN]), None);
        assert_eq!(Reduction::unbroadcast(&[5, 3], &[1, 3]).map(|plan| plan.axes), Some(axes(1, 5, 3)));
        assert_eq!(Reduction::unbroadcast(&[3], &[1, 3]), None);
    }

    #[test]
    fn strides_beyond_the_address_space_are_none() {
        assert_eq!(contiguous_strides(&[usize::MAX, 2], 8), None);
        assert_eq!(contiguous_strides(&[1 << 40, 1 << 40], 8), None);
        assert_eq!(contiguous_strides(&[2, 3], 8).as_deref(), Some(&[24, 8][..]));
    }

    proptest! {
        #[test]
        fn broadcasting_is_commutative_and_keeps_what_it_has_reached(a in extents(), b in extents()) {
            let (Some(a), Some(b)) = (Shape::new(&a), Shape::new(&b)) else { return Ok(()) };
            let both = a.broadcast(&b);
            prop_assert_eq!(both, b.broadcast(&a));
            if let Some(both) = both {
                prop_assert_eq!(both.broadcast(&a), Some(both));
                prop_assert!(broadcast_strides(a.extents(), &vec![8; a.extents().len()], both.extents()).is_some());
            }
        }

        #[test]
        fn a_broadcast_array_repeats_the_elements_of_its_own(own in extents(), other in extents()) {
            let (Some(shape), Some(other)) = (Shape::new(&own), Shape::new(&other)) else { return Ok(()) };
            let Some(to) = shape.broadcast(&other) else { return Ok(()) };
            let strides = contiguous_strides(&own, 4).expect("it is small");
            let repeated = broadcast_strides(&own, &strides, to.extents()).expect("it was broadcast to that shape");
            let added = to.extents().len() - own.len();
            for index in indices(to.extents()) {
                let within: Vec<usize> = index[added..].iter().zip(&own).map(|(at, extent)| at % extent).collect();
                prop_assert_eq!(offset(&index, &repeated), offset(&within, &strides));
            }
        }

        #[test]
        fn a_reduction_adds_up_what_its_definition_says(
            extents in extents(),
            axes in prop::collection::vec(-4isize..4, 0..4),
            keepdims in any::<bool>(),
        ) {
            let Some(plan) = Reduction::over(&extents, Some(&axes), keepdims) else { return Ok(()) };
            let is_summed = marked(&axes, extents.len()).expect("a plan has axes that are in range");
            let Axes { outer, count, inner } = plan.axes;
            prop_assert_eq!(outer * count * inner, extents.iter().product::<usize>());
            prop_assert_eq!(outer * inner, plan.shape.iter().product::<usize>());
            // Element number `i` belongs to the sum that its index has without the summed axes.
            for (number, index) in indices(&extents).iter().enumerate() {
                let kept = index.iter().zip(&extents).zip(&is_summed).filter(|(_, is_summed)| !**is_summed);
                let expected = kept.fold(0, |at, ((index, extent), _)| at * extent + index);
                let found = number / (count * inner) * inner + number % inner;
                prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn unbroadcasting_sums_over_the_axes_that_broadcasting_stretched(own in extents(), other in extents()) {
            let (Some(shape), Some(other)) = (Shape::new(&own), Shape::new(&other)) else { return Ok(()) };
            let Some(to) = shape.broadcast(&other) else { return Ok(()) };
            let Some(plan) = Reduction::unbroadcast(to.extents(), &own) else { return Ok(()) };
            let Axes { outer, count, inner } = plan.axes;
            prop_assert_eq!(&plan.shape[..], &own[..]);
            prop_assert_eq!(outer * count * inner, to.extents().iter().product::<usize>());
            let strides = contiguous_strides(&own, 1).expect("it is small");
            let repeated = broadcast_strides(&own, &strides, to.extents()).expect("it was broadcast to that shape");
            for (number, index) in indices(to.extents()).iter().enumerate() {
                let found = number / (count * inner) * inner + number % inner;
                prop_assert_eq!(found.cast_signed(), offset(index, &repeated));
            }
        }
    }
}
