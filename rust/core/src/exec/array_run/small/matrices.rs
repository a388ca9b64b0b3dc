//! Functions of C on matrices in the plan of a run.

use smallvec::SmallVec;

use super::foreign::{Foreign, ForeignWork};
use super::nodes::{Known, Planner, Work, length, number_or_array};
use super::values::{Extents, Kind};
use crate::array::buffer::Dtype;
use crate::array::shape::{Strides, contiguous_strides};
use crate::op::Elementwise;
use crate::scalar::Condition;

impl Planner {
    /// The result of a function; of the transposed matrices if `is_transposed`.
    pub(super) fn foreign(
        &mut self,
        function: &Foreign,
        args: &[usize],
        is_transposed: bool,
        is_normal: bool,
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
            if dtype != Dtype::F64 || own.len() != axes.len() {
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
        let work = ForeignWork { function: *function, firsts, extents, strides, length, is_normal };
        let node = self.step(Work::Foreign(work), &from, length);
        Some(Known::new(Some(node), number_or_array(&shape, Dtype::F64)))
    }

    /// The transposed cofactors of a matrix: the determinant and the inverse of the transposed one, of one decomposition.
    pub(super) fn cofactor(&mut self, [determinant, inverse]: &[Foreign; 2], args: &[usize]) -> Option<Known> {
        let Kind::Array(extents, ..) = self.values[*args.first()?].kind.clone() else { return None };
        for (function, is_determinant) in [(determinant, true), (inverse, false)] {
            let known = self.foreign(function, args, true, is_determinant)?;
            self.values.push(known);
        }
        let at = self.values.len() - 2;
        let node = self.apply(Elementwise::Multiply, &[at, at + 1], &extents, Dtype::F64, Condition::None);
        self.values.truncate(at);
        self.copies.retain(|(value, ..), _| *value < at);
        Some(Known::new(Some(node?), Kind::array(&extents, Dtype::F64)))
    }
}
