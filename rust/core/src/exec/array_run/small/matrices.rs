//! Products, and functions of C on matrices, in the plan of a run.

use smallvec::SmallVec;

use super::super::foreign::Foreign;
use super::foreign::{ForeignWork, Left};
use super::nodes::{Known, Planner, Work, length, number_or_array};
use super::values::{Extents, Kind, Layout};
use crate::array::buffer::Dtype;
use crate::array::matmul::{is_narrow, product_extents};
use crate::array::shape::{Strides, contiguous_strides};
use crate::op::Elementwise;
use crate::scalar::Condition;

/// The factors of a product.
struct Factors {
    /// Rows of the left one, its columns, and those of the right one.
    rows: [usize; 3],
    /// The extents of the product.
    shape: Extents,
    dtype: Dtype,
    nodes: [u32; 2],
    /// The first element, the row and the column of each, in bytes.
    places: [[isize; 3]; 2],
}

impl Planner {
    fn factors(&mut self, args: &[usize]) -> Option<Factors> {
        let [left, right] = [*args.first()?, *args.get(1)?];
        let ((one, dtype), (other, its)) = (self.array(left)?, self.array(right)?);
        let (rows, shape) = product_extents(&one, &other)?;
        if dtype != its {
            return None;
        }
        let mut elements = |value: usize, extents: &Extents| match self.values[value].kind {
            Kind::Array(.., Layout::Permuted) if self.values[value].node.is_none() => {
                Some((self.permuted(value, extents, dtype), 0, contiguous_strides(extents, 1)?))
            }
            _ => self.elements(value, extents, dtype),
        };
        let ((left, first, strides), (right, its, others)) = (elements(left, &one)?, elements(right, &other)?);
        let size = dtype.size().cast_signed();
        let places = [
            // A vector is a row on the left, and a column on the right.
            [first, if one.len() > 1 { strides[0] } else { 0 }, *strides.last()?],
            [its, others[0], if other.len() > 1 { others[1] } else { 0 }],
        ];
        let places = places.map(|factor| factor.map(|each| each * size));
        Some(Factors { rows, shape, dtype, nodes: [left, right], places })
    }

    /// A product by the core.
    pub(super) fn product(&mut self, args: &[usize]) -> Option<Known> {
        let Factors { rows, shape, dtype, nodes, places } = self.factors(args)?;
        if !is_narrow(rows[1], rows[2]) {
            return None;
        }
        let node = self.step(Work::Product { rows, factors: places, dtype }, &nodes, rows[0] * rows[2]);
        Some(Known::new(Some(node), number_or_array(&shape, dtype)))
    }

    /// A product by a function, whose bits depend on strides: those of axes of one element are zero, as NumPy has them.
    pub(super) fn foreign_product(&mut self, function: &Foreign, args: &[usize]) -> Option<Known> {
        let Factors { rows: [rows, inner, columns], shape, dtype, nodes, places } = self.factors(args)?;
        // Arrays that are read lie otherwise in their own memory.
        let is_strided = |read: usize| !matches!(self.values[read].kind, Kind::Array(.., Layout::Contiguous));
        let are_copied = self.loads.iter().any(|(to, load)| nodes.contains(to) && is_strided(load.read));
        if dtype != function.dtype || are_copied {
            return None;
        }
        let [[first, row, column], [its, others, last]] = places;
        let size = dtype.size().cast_signed();
        let axes = [
            (rows, row),
            (inner, column),
            (inner, others),
            (columns, last),
            (rows, columns.cast_signed() * size),
            (columns, size),
        ];
        let mut strides = Strides::from_elem(0, 3);
        strides.extend(axes.map(|(extent, stride)| if extent == 1 { 0 } else { stride }));
        let extents = [1, rows, inner, columns].map(usize::cast_signed).into_iter().collect();
        let (firsts, length) = (SmallVec::from_slice(&[first, its]), rows * columns);
        let work = ForeignWork { function: *function, firsts, extents, strides, length, left: Left::None };
        let node = self.step(Work::Foreign(work), &nodes, length);
        Some(Known::new(Some(node), number_or_array(&shape, dtype)))
    }

    /// The result of a function; of the transposed matrices if `is_transposed`.
    pub(super) fn foreign(
        &mut self,
        function: &Foreign,
        args: &[usize],
        is_transposed: bool,
        left: Left,
    ) -> Option<Known> {
        let (result, operands) = function.operands.split_last()?;
        let mut extents: SmallVec<[Option<usize>; 3]> = SmallVec::new();
        let (mut from, mut firsts) = (SmallVec::<[u32; 3]>::new(), SmallVec::new());
        let mut strides = Strides::from_elem(0, function.operands.len());
        if args.len() != operands.len() {
            return None;
        }
        for (arg, axes) in args.iter().zip(operands) {
            let (own, dtype) = self.array(*arg)?;
            if dtype != Dtype::F64 || dtype != function.dtype || own.len() != axes.len() {
                return None;
            }
            for (axis, extent) in axes.iter().zip(&own) {
                extents.resize(extents.len().max(axis + 1), None);
                if extents[*axis].replace(*extent).is_some_and(|known| known != *extent) {
                    return None;
                }
            }
            let (node, first, mut its) = self.elements(*arg, &own, dtype)?;
            if is_transposed {
                its.reverse();
            }
            from.push(node);
            firsts.push(first);
            strides.extend(its);
        }
        let shape = result.iter().map(|axis| *extents.get(*axis)?).collect::<Option<Extents>>()?;
        strides.extend(contiguous_strides(&shape, 1)?);
        let size = Dtype::F64.size().cast_signed();
        strides.iter_mut().chain(&mut firsts).for_each(|each| *each *= size);
        let extents = extents.into_iter().map(|extent| extent.map(usize::cast_signed)).collect::<Option<Vec<_>>>()?;
        let extents = std::iter::once(1).chain(extents).collect();
        let length = length(&shape);
        let work = ForeignWork { function: *function, firsts, extents, strides, length, left };
        let node = self.step(Work::Foreign(work), &from, length);
        Some(Known::new(Some(node), number_or_array(&shape, Dtype::F64)))
    }

    /// The transposed cofactors of a matrix: the determinant and the inverse of the transposed one, of one decomposition.
    pub(super) fn cofactor(&mut self, [determinant, inverse]: &[Foreign; 2], args: &[usize]) -> Option<Known> {
        let Kind::Array(extents, ..) = self.values[*args.first()?].kind.clone() else { return None };
        for (function, left) in [(determinant, Left::Small), (inverse, Left::Infinite)] {
            let known = self.foreign(function, args, true, left)?;
            self.values.push(known);
        }
        let at = self.values.len() - 2;
        let node = self.apply(Elementwise::Multiply, &[at, at + 1], &extents, Dtype::F64, Condition::None);
        self.values.truncate(at);
        self.copies.retain(|(value, ..), _| *value < at);
        Some(Known::new(Some(node?), Kind::array(&extents, Dtype::F64)))
    }
}
